/* SPDX-License-Identifier: MIT */
/*
 * Goal: in the default order of queues a tree of tasks has few tasks alive at
 * once, as a worker whose queue was full walks it depth first, and takes small
 * shares of the injector meanwhile; and more tasks than fit into the queue that
 * spawn themselves anew have their turns all the same, by a spawn as by a
 * yield.
 * Method: one worker, which takes no other work. A tree of 32,767 tasks, each
 * of which spawns two, counts those alive: breadth first that were 16,384.
 * Then 600 tasks spawn themselves until each has had its turns; a bound of the
 * turns of all ends it else.
 */
#include "tests/support/runtimes.h"

#include "runtime/base/base.h"
#include "runtime/host/host.h"

enum {
	DEPTH = 15,
	NODES = (1 << DEPTH) - 1,
	ALIVE_MAX = 1024, /* in the queue, in the injector, and on the way down */
	/*
	 * Tasks of the injector at once: 4 while the queue is walked depth
	 * first, 64 before and after that; on average of all, counted, 7, or 37
	 * if there are always 64.
	 */
	SHARE_MAX = 16,
	ACTORS = 600,
	TURNS = 8,
	/*
	 * Depth first one task may run 16 times in a row, each time with 3
	 * tasks of the LIFO slot; four times as many runs are allowed.
	 */
	ALL_TURNS_MAX = ACTORS * TURNS * 256,
	LIMIT_SECONDS = 120,
};

struct node {
	struct pinion_task task;
	uint32_t depth;
};

struct actor {
	struct pinion_task task;
	uint32_t turn_count;
};

static struct pinion_runtime *runtime;
static struct node nodes[NODES];
static uint32_t node_count;
static uint32_t alive_count;
static uint32_t alive_max;
static struct actor actors[ACTORS];
static int (*spawn_anew)(struct pinion_runtime *runtime, struct pinion_task *task);
static uint32_t all_turns;
static uint32_t behind_count; /* actors that have not had their turns */

static int run_node(struct pinion_task *task);

static void spawn_node(uint32_t depth)
{
	struct node *node = &nodes[node_count];

	node_count++;
	alive_count++;
	alive_max = alive_count > alive_max ? alive_count : alive_max;
	*node = (struct node){.task.run = run_node, .depth = depth};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &node->task));
}

static int run_node(struct pinion_task *task)
{
	uint32_t depth = PIN_CONTAINER_OF(task, struct node, task)->depth;

	alive_count--;
	if (depth + 1 < DEPTH) {
		spawn_node(depth + 1);
		spawn_node(depth + 1);
	}
	return 0;
}

static int plant(struct pinion_task *task)
{
	(void)task;
	spawn_node(0);
	return 0;
}

/* Meanwhile it takes few tasks of the injector at once. */
static void check_shares(void)
{
	struct pinion_worker_stats stats;

	expect_number("stats", 0, pinion_worker_get_stats(runtime, 0, &stats, sizeof(stats)));
	printf("%llu tasks in %llu shares\n", (unsigned long long)stats.injector_tasks,
		(unsigned long long)stats.injector_polls);
	expect_true("shares of the injector are small",
		stats.injector_tasks <= SHARE_MAX * stats.injector_polls);
}

static void check_tree(void)
{
	struct pinion_task starter = {.run = plant};

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &starter));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("nodes", NODES, node_count);
	expect_number("alive", 0, alive_count);
	printf("%u nodes alive at once\n", alive_max);
	if (pin_host_linux.fence_all()) {
		check_shares();
		expect_true("few are alive at once", alive_max <= ALIVE_MAX);
	}
	pinion_runtime_destroy(runtime);
}

static int run_actor(struct pinion_task *task)
{
	struct actor *actor = PIN_CONTAINER_OF(task, struct actor, task);

	all_turns++;
	actor->turn_count++;
	behind_count -= actor->turn_count == TURNS ? 1 : 0;
	if (behind_count == 0 || all_turns >= ALL_TURNS_MAX) {
		return 0;
	}
	return spawn_anew(runtime, task);
}

static int spawn_actors(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < ACTORS; i++) {
		actors[i] = (struct actor){.task.run = run_actor};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &actors[i].task));
	}
	return 0;
}

static void check_actors(
	const char *way, int (*spawn)(struct pinion_runtime *runtime, struct pinion_task *task))
{
	struct pinion_task starter = {.run = spawn_actors};

	spawn_anew = spawn;
	all_turns = 0;
	behind_count = ACTORS;
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &starter));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number(way, 0, behind_count);
	printf("%s: %u turns\n", way, all_turns);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_tree();
	check_actors("by a spawn, actors left behind", pinion_task_spawn);
	check_actors("by a yield, actors left behind", pinion_task_respawn);
	return expect_status();
}
