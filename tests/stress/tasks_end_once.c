/* SPDX-License-Identifier: MIT */
/*
 * Goal: whatever spawns tasks in whatever way, and whenever the runtime is
 * drained or stopped meanwhile, each task that was taken ends exactly once, on
 * its worker if it was bound to one, mandatory ones by running, and refused
 * tasks are untouched; the counters say the same. C15, EX-41, EX-57, EX-58,
 * EX-61, EX-62, W13, W28, W35. Hazard that others met: a deadlock without
 * spinning, on few cores alone.
 * Method: seeded runs of random settings on 2 to 64 workers. Four outside
 * threads and the tasks themselves spawn more, alone, in batches, shared, onto
 * one worker, and themselves anew; some read a file. STRESS_ITERATIONS says how
 * many runs; a hang trips the watchdog.
 */
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	RUNS = 16,
#else
	RUNS = 48,
#endif
	RUN_SECONDS = 60,
	NODES = 20000,
	SPAWNERS = 4,
	BATCH_MAX = 40,
	RESPAWNS = 5,
	YIELDS_MAX = 2000,
	ANYWHERE = 0x7fffffff,
};

struct node {
	struct pinion_task task;
	struct pinion_request request;
	uint8_t byte;
	int worker;	/* where it has to run, or ANYWHERE */
	uint32_t again; /* how often it will spawn itself */
	struct pin_atomic_u32 taken;
	struct pin_atomic_u32 ended;
	struct pin_atomic_u32 reads_taken;
	struct pin_atomic_u32 reads_ended;
};

static struct pinion_runtime *runtime;
static uint32_t worker_count;
static struct pinion_file file;
static struct node nodes[NODES];
static struct pin_atomic_u32 next_node;
static struct pin_atomic_u32 misplaced;
static struct pin_atomic_u32 odd_results;
static uint64_t run_seed;

static void count(struct pin_atomic_u32 *counter)
{
	pin_fetch_add_acq_rel_u32(counter, 1);
}

static int run_node(struct pinion_task *task);

static struct node *node_of(struct pinion_task *task)
{
	return PIN_CONTAINER_OF(task, struct node, task);
}

static void end_node(struct node *node)
{
	if (node->worker != ANYWHERE && node->worker != pinion_worker_index(runtime)) {
		count(&misplaced);
	}
	count(&node->ended);
}

static void cancel_node(struct pinion_task *task)
{
	if ((task->flags & PINION_TASK_MANDATORY) != 0) {
		count(&odd_results);
	}
	end_node(node_of(task));
}

/* A result, and whether it left the refused task as it was. */
static void note_result(struct node *node, const struct pinion_task *before, int rc)
{
	if (rc == 0) {
		count(&node->taken);
	} else if (rc != -ESHUTDOWN || memcmp(before, &node->task, sizeof(*before)) != 0) {
		count(&odd_results);
	}
}

/* NULL when all are in use. */
static struct node *take_node(struct random_source *source)
{
	uint32_t number = pin_fetch_add_acq_rel_u32(&next_node, 1);
	struct node *node;

	if (number >= NODES) {
		return NULL;
	}
	node = &nodes[number];
	node->task = (struct pinion_task){
		.run = run_node,
		.cancel = cancel_node,
		.flags = random_below(source, 8) == 0 ? PINION_TASK_MANDATORY : 0,
	};
	node->worker = ANYWHERE;
	node->again = random_below(source, 4) == 0 ? (uint32_t)random_below(source, RESPAWNS) : 0;
	return node;
}

static void spawn_batch(struct random_source *source)
{
	struct pinion_task *tasks[BATCH_MAX] = {NULL};
	struct pinion_task before[BATCH_MAX];
	uint32_t wanted = (uint32_t)random_below(source, BATCH_MAX + 1);
	uint32_t length = 0;
	int rc;

	while (length < wanted) {
		struct node *node = take_node(source);

		if (node == NULL) {
			break;
		}
		tasks[length] = &node->task;
		before[length] = node->task;
		length++;
	}
	rc = pinion_task_spawn_batch(runtime, tasks, length);
	for (uint32_t i = 0; i < length; i++) {
		note_result(node_of(tasks[i]), &before[i], rc);
	}
}

static void spawn_one(struct random_source *source)
{
	struct node *node = take_node(source);
	struct pinion_task before;

	if (node == NULL) {
		return;
	}
	before = node->task;
	switch (random_below(source, 4)) {
	case 0:
		note_result(node, &before, pinion_task_spawn_shared(runtime, &node->task));
		break;
	case 1:
		node->worker = (int)random_below(source, worker_count);
		note_result(node, &before,
			pinion_task_spawn_on(runtime, (uint32_t)node->worker, &node->task));
		break;
	default:
		note_result(node, &before, pinion_task_spawn(runtime, &node->task));
		break;
	}
}

static void spawn_any(struct random_source *source)
{
	if (random_below(source, 16) == 0) {
		spawn_batch(source);
	} else {
		spawn_one(source);
	}
}

static int end_read(struct pinion_task *task)
{
	count(&PIN_CONTAINER_OF(task, struct node, request.task)->reads_ended);
	return 0;
}

static void read_byte(struct node *node)
{
	int rc;

	node->request = (struct pinion_request){
		.task.run = end_read,
		.file = &file,
		.bytes = &node->byte,
		.length_bytes = 1,
	};
	rc = pinion_request_submit(runtime, &node->request);
	if (rc == 0) {
		count(&node->reads_taken);
	} else if (rc != -EAGAIN && rc != -ESHUTDOWN) {
		count(&odd_results);
	}
}

static int run_node(struct pinion_task *task)
{
	struct node *node = node_of(task);
	size_t number = (size_t)(node - nodes);
	struct random_source source = {run_seed ^ (number * RESPAWNS + node->again)};
	uint32_t again = node->again;
	uint64_t kind = random_below(&source, 16);

	end_node(node);
	/* Slightly more than dies out, so that most runs use all nodes. */
	for (uint64_t i = random_below(&source, 4); i > 0; i--) {
		spawn_any(&source);
	}
	if (kind == 0) {
		(void)pinion_worker_should_yield(runtime);
	} else if (kind == 1) {
		sched_yield();
	} else if (kind == 2 && again == 0) {
		read_byte(node);
	}
	if (again > 0) {
		struct pinion_task before;
		bool is_bound = random_below(&source, 8) == 0;

		node->again = again - 1;
		node->worker = is_bound ? (int)(number % worker_count) : ANYWHERE;
		before = node->task;
		note_result(node, &before,
			is_bound ? pinion_task_spawn_on(
					   runtime, (uint32_t)(number % worker_count), task)
				 : pinion_task_respawn(runtime, task));
	}
	return number % 100 == 0 ? -EIO : 0;
}

static void *spawn_outside(void *arg)
{
	struct random_source *source = arg;

	for (int i = 0; i < NODES / SPAWNERS / 8; i++) {
		spawn_any(source);
		if (random_below(source, 64) == 0) {
			sched_yield();
		}
	}
	return NULL;
}

/* Every task taken has ended, and the runtime's own counters agree. */
static void check_ends(bool is_stopped)
{
	struct pinion_runtime_stats counters = runtimes_counters(runtime);
	uint64_t taken = 0;
	uint64_t reads = 0;

	for (size_t i = 0; i < NODES && expect_failure_count == 0; i++) {
		const struct node *node = &nodes[i];

		expect_number("ends of a task", pin_load_acquire_u32(&node->taken),
			pin_load_acquire_u32(&node->ended));
		expect_number("ends of a read", pin_load_acquire_u32(&node->reads_taken),
			pin_load_acquire_u32(&node->reads_ended));
		taken += pin_load_acquire_u32(&node->taken);
		reads += pin_load_acquire_u32(&node->reads_taken);
	}
	expect_number("on the wrong worker", 0, pin_load_acquire_u32(&misplaced));
	expect_number("odd results", 0, pin_load_acquire_u32(&odd_results));
	expect_number("tasks_spawned", (long long)taken, (long long)counters.tasks_spawned);
	expect_number(
		"requests_submitted", (long long)reads, (long long)counters.requests_submitted);
	expect_number(
		"requests_completed", (long long)reads, (long long)counters.requests_completed);
	expect_number("run and cancelled", (long long)(taken + reads),
		(long long)(counters.tasks_run + counters.tasks_cancelled));
	if (!is_stopped) {
		expect_number("cancelled by a drain", 0, (long long)counters.tasks_cancelled);
	}
}

static uint32_t choose(struct random_source *source, uint32_t one, uint32_t other)
{
	return random_below(source, 2) == 0 ? one : other;
}

static void start(struct random_source *source, uint32_t run)
{
	static const uint32_t counts[] = {8, 64, 2, 8};
	struct pinion_config config;
	int rc;

	worker_count = counts[run % PIN_ARRAY_COUNT(counts)];
	runtimes_config(&config, worker_count,
		random_below(source, 4) == 0 ? PINION_IO_FALLBACK : PINION_IO_AUTO);
	runtimes_tuning.ring_entries = 16;
	runtimes_tuning.seed = random_next(source);
	runtimes_tuning.queue_order = choose(source, PINION_QUEUE_FIFO, PINION_QUEUE_LIFO);
	runtimes_tuning.lifo_polls = choose(source, 0, 3);
	runtimes_tuning.queue_tasks = choose(source, 4, 256);
	runtimes_tuning.spin_iters = choose(source, 0, 200);
	runtimes_tuning.wake_batch_spawns = choose(source, 1, 32);
	runtimes_tuning.steal_tries = choose(source, 1, 4);
	runtimes_tuning.budget_polls = choose(source, 1, 128);
	runtimes_tuning.interval_min = choose(source, 1, 8);
	runtimes_tuning.park_timeout_us = choose(source, 0, 1000);
	runtimes_tuning.wake_policy = (uint32_t)random_below(source, 3);
	runtimes_tuning.watchdog_us = choose(source, 20, 10000);
	rc = pinion_runtime_create(&config, &runtime);
	if (rc != 0) {
		printf("pinion_runtime_create: expected 0, got %d: %s\n", rc, runtimes_log);
		exit(1);
	}
	printf("run %u: %u workers, queue_order %u of %u, lifo_polls %u, spin_iters %u, "
	       "wake_policy %u, park_timeout_us %u, watchdog_us %u\n",
		run, worker_count, runtimes_tuning.queue_order, runtimes_tuning.queue_tasks,
		runtimes_tuning.lifo_polls, runtimes_tuning.spin_iters, runtimes_tuning.wake_policy,
		runtimes_tuning.park_timeout_us, runtimes_tuning.watchdog_us);
	fflush(stdout);
}

static void run_once(struct random_source *source, uint32_t run)
{
	struct random_source spawner_sources[SPAWNERS];
	pthread_t threads[SPAWNERS];
	bool is_stopped = random_below(source, 3) != 0;
	uint64_t yields = random_below(source, YIELDS_MAX);

	runtimes_watchdog(RUN_SECONDS);
	start(source, run);
	memset(nodes, 0, sizeof(nodes));
	pin_store_release_u32(&next_node, 0);
	run_seed = random_next(source);
	for (int i = 0; i < SPAWNERS; i++) {
		spawner_sources[i].state = random_next(source);
		expect_ready("thread",
			pthread_create(&threads[i], NULL, spawn_outside, &spawner_sources[i]) == 0);
	}
	for (uint64_t i = 0; i < yields; i++) {
		sched_yield();
	}
	expect_number("end", 0,
		is_stopped ? pinion_runtime_stop(runtime) : pinion_runtime_drain(runtime));
	for (int i = 0; i < SPAWNERS; i++) {
		pthread_join(threads[i], NULL);
	}
	check_ends(is_stopped);
	printf("  %s: %u nodes used\n", is_stopped ? "stopped" : "drained",
		pin_load_acquire_u32(&next_node));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);
	uint32_t runs = tasks_iterations(RUNS);

	scratch_enter("tasks_end_once");
	scratch_file("file", "text");
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	for (uint32_t i = 0; i < runs && expect_failure_count == 0; i++) {
		run_once(&source, i);
		if (expect_failure_count != 0) {
			printf("run %u of PINION_SEED=%llu failed, see above\n", i,
				(unsigned long long)seed);
		}
	}
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
