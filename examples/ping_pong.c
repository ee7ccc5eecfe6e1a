/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: what it costs to hand on control: from one task to the next on a
 * worker, and from one worker to another.
 *
 * Try:   examples/ping_pong
 *
 * First two tasks spawn each other; a worker runs the task spawned last next,
 * so they stay together. Then two work items wake each other. A work item runs
 * where it was woken, so each has a task that is posted to its worker and wakes
 * it.
 */
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASK_HOPS = 1000000, WORK_HOPS = 20000 };

struct player {
	struct pinion_task task; /* first, so that it leads back here */
	struct player *other;
};

struct side {
	struct pinion_work work; /* first, as above */
	struct pinion_task knock;
	struct side *other;
	uint32_t worker_index;
};

/* State of the current game; only the player whose turn it is touches it. */
static struct pinion_runtime *runtime;
static uint32_t hop_count;
static uint32_t moves; /* hops to another worker */
static int last_worker;
static uint64_t began_ns;
static uint64_t ended_ns; /* 0: not yet */

/* Counts a hop, but for the first call, which begins the game. */
static bool is_last_hop(uint32_t hops)
{
	int worker = pinion_worker_index(runtime);

	if (began_ns == 0) {
		began_ns = pinion_clock_now_ns();
	} else {
		hop_count++;
		moves += worker != last_worker;
	}
	last_worker = worker;
	ended_ns = hop_count == hops ? pinion_clock_now_ns() : 0;
	return ended_ns != 0;
}

static int run_player(struct pinion_task *task)
{
	struct player *player = (struct player *)task;

	return is_last_hop(TASK_HOPS) ? 0 : pinion_task_spawn(runtime, &player->other->task);
}

static int run_side(struct pinion_work *work)
{
	struct side *other = ((struct side *)work)->other;
	int rc;

	if (is_last_hop(WORK_HOPS)) {
		return PINION_WORK_DONE;
	}
	/* It may be woken again before it returns, and then runs once more. */
	rc = pinion_task_spawn_on(runtime, other->worker_index, &other->knock);
	return rc < 0 ? rc : PINION_WORK_WAIT;
}

static int run_knock(struct pinion_task *task)
{
	struct side *side = (void *)((char *)task - offsetof(struct side, knock));

	return pinion_work_wake(runtime, &side->work);
}

static int begin(uint32_t worker_count)
{
	struct pinion_config config;

	pinion_config_init(&config);
	config.worker_count = worker_count;
	runtime = NULL;
	began_ns = hop_count = moves = 0;
	return pinion_runtime_create(&config, &runtime);
}

/* Waits for the end of the game, and prints its result. */
static int end(const char *name, uint32_t hops, int rc)
{
	rc = rc < 0 ? rc : pinion_runtime_join(runtime);
	pinion_runtime_destroy(runtime);
	if (rc < 0 || hop_count != hops) {
		fprintf(stderr, "ping_pong: %s\n", rc < 0 ? strerror(-rc) : "a hop is missing");
		return 1;
	}
	printf("%-10s %7u hops, %5u to another worker, %8.1f ns per hop\n", name, hop_count, moves,
		(double)(ended_ns - began_ns) / hops);
	return 0;
}

static int play_tasks(uint32_t worker_count)
{
	struct player players[2] = {
		{.task.run = run_player, .other = &players[1]},
		{.task.run = run_player, .other = &players[0]},
	};
	int rc = begin(worker_count);

	return end("tasks", TASK_HOPS, rc < 0 ? rc : pinion_task_spawn(runtime, &players[0].task));
}

static int play_works(uint32_t worker_count)
{
	struct side sides[2] = {
		{.knock.run = run_knock, .other = &sides[1]},
		{.knock.run = run_knock, .other = &sides[0]},
	};
	int rc = begin(worker_count);

	if (rc == 0) {
		pinion_work_init(&sides[0].work, run_side, NULL);
		pinion_work_init(&sides[1].work, run_side, NULL);
		sides[1].worker_index = pinion_runtime_worker_count(runtime) - 1;
		rc = pinion_work_wake(runtime, &sides[0].work);
	}
	return end("work items", WORK_HOPS, rc);
}

int main(int argc, char **argv)
{
	uint32_t worker_count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		puts("usage: ping_pong [WORKERS]");
		return 0;
	}
	return play_tasks(worker_count) || play_works(worker_count);
}
