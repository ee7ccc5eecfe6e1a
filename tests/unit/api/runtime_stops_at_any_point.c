/* SPDX-License-Identifier: MIT */
/*
 * Goal: wherever a runtime is when it is stopped, drained or destroyed, each
 * task that was admitted ends exactly once, each read too, and nothing hangs.
 * Method: 100 seeded runs: two outside threads spawn tasks that spawn tasks
 * and read a file or an empty pipe, while the main thread ends the runtime
 * after a random number of yields.
 */
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <sched.h>

enum {
	RUNS = 100,
	SPAWNERS = 2,
	PER_SPAWNER = 200,
	ITEMS = SPAWNERS * PER_SPAWNER,
	LIMIT_SECONDS = 60,
};

struct item {
	struct pinion_task task;
	struct pinion_task child;
	struct pinion_request request;
	uint8_t byte;
	bool was_admitted;
	struct pin_atomic_u32 task_ends;
	struct pin_atomic_u32 child_begins;
	struct pin_atomic_u32 child_ends;
	struct pin_atomic_u32 read_begins;
	struct pin_atomic_u32 read_ends;
};

static struct pinion_runtime *runtime;
static struct pinion_file files[2];
static struct item items[ITEMS];
static bool may_read_pipe;

static void count(struct pin_atomic_u32 *counter)
{
	pin_fetch_add_acq_rel_u32(counter, 1);
}

static int read_has_ended(struct pinion_task *task)
{
	count(&PIN_CONTAINER_OF(task, struct item, request.task)->read_ends);
	return 0;
}

static int run_child(struct pinion_task *task)
{
	struct item *item = PIN_CONTAINER_OF(task, struct item, child);
	size_t number = (size_t)(item - items);

	count(&item->child_ends);
	item->request = (struct pinion_request){
		.task.run = read_has_ended,
		.file = &files[may_read_pipe ? number % 2 : 0],
		.bytes = &item->byte,
		.length_bytes = 1,
	};
	if (number % 3 == 0 && pinion_request_submit(runtime, &item->request) == 0) {
		count(&item->read_begins);
	}
	return 0;
}

static void cancel_child(struct pinion_task *task)
{
	count(&PIN_CONTAINER_OF(task, struct item, child)->child_ends);
}

static int run_task(struct pinion_task *task)
{
	struct item *item = PIN_CONTAINER_OF(task, struct item, task);
	size_t number = (size_t)(item - items);
	int rc;

	count(&item->task_ends);
	item->child = (struct pinion_task){.run = run_child, .cancel = cancel_child};
	rc = number % 2 == 0 ? pinion_task_spawn(runtime, &item->child)
			     : pinion_task_spawn_shared(runtime, &item->child);
	if (rc == 0) {
		count(&item->child_begins);
	}
	return 0;
}

static void cancel_task(struct pinion_task *task)
{
	count(&PIN_CONTAINER_OF(task, struct item, task)->task_ends);
}

static void *spawn_all(void *arg)
{
	struct item *own = arg;

	for (int i = 0; i < PER_SPAWNER; i++) {
		own[i].task = (struct pinion_task){.run = run_task, .cancel = cancel_task};
		own[i].was_admitted = pinion_task_spawn(runtime, &own[i].task) == 0;
		if (i % 16 == 0) {
			sched_yield();
		}
	}
	return NULL;
}

static void check_items(void)
{
	struct pinion_runtime_stats counters = runtimes_counters(runtime);

	for (size_t i = 0; i < ITEMS && expect_failure_count == 0; i++) {
		const struct item *item = &items[i];

		expect_number("ends of a task", item->was_admitted ? 1 : 0,
			pin_load_acquire_u32(&item->task_ends));
		expect_number("ends of a child", pin_load_acquire_u32(&item->child_begins),
			pin_load_acquire_u32(&item->child_ends));
		expect_number("ends of a read", pin_load_acquire_u32(&item->read_begins),
			pin_load_acquire_u32(&item->read_ends));
	}
	expect_number("tasks counted",
		(long long)(counters.tasks_spawned + counters.requests_submitted),
		(long long)(counters.tasks_run + counters.tasks_cancelled));
	expect_number("reads counted", (long long)counters.requests_submitted,
		(long long)counters.requests_completed);
}

static void run_once(struct random_source *source)
{
	static const uint32_t levels[] = {PINION_IO_AUTO, PINION_IO_AUTO, PINION_IO_FALLBACK};
	uint32_t level = levels[random_below(source, PIN_ARRAY_COUNT(levels))];
	bool is_stopped = random_below(source, 3) != 0;
	struct pinion_runtime_info facts;
	pthread_t threads[SPAWNERS];

	runtime = runtimes_start(1 + (uint32_t)random_below(source, 4), level);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	/* A drain would wait for an empty pipe for ever, a pread of it too. */
	may_read_pipe = is_stopped && facts.uses_ring != 0;
	memset(items, 0, sizeof(items));
	for (int i = 0; i < SPAWNERS; i++) {
		expect_ready("thread",
			pthread_create(&threads[i], NULL, spawn_all, &items[i * PER_SPAWNER]) == 0);
	}
	for (uint64_t i = random_below(source, 200); i > 0; i--) {
		sched_yield();
	}
	expect_number("end", 0,
		is_stopped ? pinion_runtime_stop(runtime) : pinion_runtime_drain(runtime));
	for (int i = 0; i < SPAWNERS; i++) {
		pthread_join(threads[i], NULL);
	}
	check_items();
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);
	int ends[2];

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("runtime_stops_at_any_point");
	scratch_file("file", "text");
	expect_number("open", 0, pinion_file_open(&files[0], "file", PINION_DIRECT_NEVER));
	expect_ready("pipe", pipe(ends) == 0);
	files[1] = runtimes_plain_file(ends[0]);
	for (int i = 0; i < RUNS && expect_failure_count == 0; i++) {
		run_once(&source);
		if (expect_failure_count != 0) {
			printf("run %d of seed %llu\n", i, (unsigned long long)seed);
		}
	}
	pinion_file_close(&files[0]);
	scratch_leave();
	return expect_status();
}
