/* SPDX-License-Identifier: MIT */
/*
 * Goal: 50 000 tasks that need a buffer each share 8 of them: none runs without
 * one, no two have the same at once, all come back, and the counters are exact;
 * the same when a thread outside fills buffers and hands them to tasks that own
 * them. BP-8, BP-22, BP-24, BP-27, BP-28, BP-T4, BP-T7.
 * Method: 4 workers, 8 buffers of 64 KiB, caches of 2; tasks that wait, tasks
 * that try again, and tasks that own what they were given. Each writes its
 * number into the buffer's first line and finds it there at the end.
 */
#include "runtime/api/internal.h"
#include "tests/support/users.h"

enum {
	WORKERS = 4,
	BUFFERS = 8,
	TASKS = 50000,
	OWNED = 50000,
	LIMIT_SECONDS = 110,
};

static struct pinion_runtime *runtime;
static struct pinion_pool *pool;
static struct pin_atomic_u64 addresses[BUFFERS];
static struct pin_atomic_u32 users[BUFFERS]; /* at this moment, of each */
static struct pin_atomic_u32 faults;
static struct pin_atomic_u32 ends;
static struct pin_atomic_u32 refusals;

struct job {
	struct pinion_task task;
	struct pinion_pool_wait wait;
};

static struct job jobs[TASKS];

static void fault_if(bool is_wrong)
{
	if (is_wrong) {
		pin_fetch_add_acq_rel_u32(&faults, 1);
	}
}

/* Each of the buffers has one address for ever. */
static void note_address(const struct pinion_buffer *buffer)
{
	uint64_t seen = 0;

	if (!pin_cas_acq_rel_u64(&addresses[buffer->index], &seen, (uintptr_t)buffer->bytes)) {
		fault_if(seen != (uintptr_t)buffer->bytes);
	}
}

static void enter(const struct pinion_buffer *buffer, uint64_t number)
{
	uint64_t *words = (uint64_t *)(void *)buffer->bytes;

	fault_if(buffer->index >= BUFFERS);
	note_address(buffer);
	fault_if(pin_fetch_add_acq_rel_u32(&users[buffer->index], 1) != 0);
	for (int i = 0; i < 8; i++) {
		words[i] = number;
	}
}

static void leave(const struct pinion_buffer *buffer, uint64_t number)
{
	const uint64_t *words = (const uint64_t *)(void *)buffer->bytes;

	for (int i = 0; i < 8; i++) {
		fault_if(words[i] != number);
	}
	fault_if(pin_fetch_sub_acq_rel_u32(&users[buffer->index], 1) != 1);
}

static void use(struct pinion_buffer *buffer, size_t number)
{
	enter(buffer, number);
	if (number % 64 == 0) {
		sched_yield();
	}
	leave(buffer, number);
	fault_if(pinion_pool_release(pool, buffer) != 0);
	pin_fetch_add_acq_rel_u32(&ends, 1);
}

static int run_waiting(struct pinion_task *task)
{
	struct job *job = PIN_CONTAINER_OF(task, struct job, task);

	return pinion_pool_acquire_async(runtime, pool, &job->wait);
}

static int run_served(struct pinion_task *task)
{
	struct job *job = PIN_CONTAINER_OF(task, struct job, wait.wait.task);

	fault_if(job->wait.wait.result != 0);
	use(&job->wait.buffer, (size_t)(job - jobs));
	return 0;
}

static int run_trying(struct pinion_task *task)
{
	struct pinion_buffer buffer;
	int rc = pinion_pool_try_acquire(pool, &buffer);

	if (rc == -EAGAIN) {
		pin_fetch_add_acq_rel_u32(&refusals, 1);
		return pinion_task_respawn(runtime, task);
	}
	if (rc == 0) {
		use(&buffer, (size_t)(PIN_CONTAINER_OF(task, struct job, task) - jobs));
	}
	return rc;
}

static void begin(void)
{
	struct pinion_pool_config config;

	runtime = users_runtime(WORKERS, 1 << 20);
	users_config(&config, 0, 2, BUFFERS);
	config.buffer_bytes = 64 << 10;
	pool = users_create(runtime, &config);
	memset(addresses, 0, sizeof(addresses));
	pin_store_release_u32(&ends, 0);
	pin_store_release_u32(&refusals, 0);
}

static void finish(uint32_t wanted, bool is_by_workers)
{
	struct pinion_pool_stats counters;
	uint32_t seen = 0;

	expect_number("join", 0, pinion_runtime_join(runtime));
	expect_number("faults", 0, pin_load_acquire_u32(&faults));
	expect_number("ends", wanted, pin_load_acquire_u32(&ends));
	for (int i = 0; i < BUFFERS; i++) {
		seen += pin_load_acquire_u64(&addresses[i]) != 0;
	}
	expect_true("few addresses", seen >= 1 && seen <= BUFFERS);
	pinion_pool_get_stats(pool, &counters, sizeof(counters));
	expect_number("acquires", wanted, (long long)pin_pool_count_acquires(&pool->pool));
	if (is_by_workers) {
		expect_number("outside", 0, (long long)counters.outside);
		expect_true("from own caches",
			counters.local_hits > 0 && counters.local_hits <= wanted);
	}
	users_end(pool);
	pinion_runtime_destroy(runtime);
}

static void check_waiting(void)
{
	begin();
	for (int i = 0; i < TASKS; i++) {
		jobs[i] = (struct job){
			.task = {.run = run_waiting},
			.wait = {.wait = {.task = {.run = run_served}, .deadline_ns = UINT64_MAX}},
		};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &jobs[i].task));
	}
	finish(TASKS, true);
}

static void check_trying(void)
{
	struct pinion_pool_stats counters;

	begin();
	for (int i = 0; i < TASKS; i++) {
		jobs[i] = (struct job){.task = {.run = run_trying}};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &jobs[i].task));
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_pool_get_stats(pool, &counters, sizeof(counters));
	expect_number("exhausted as often as refused", pin_load_acquire_u32(&refusals),
		(long long)counters.exhausted);
	finish(TASKS, true);
}

/* Buffers come from outside, and go back from where the tasks run. */
static struct pinion_buffer_task owners[BUFFERS];

static int run_owner(struct pinion_buffer_task *task, struct pinion_buffer *buffer)
{
	(void)task;
	leave(buffer, *(const uint64_t *)(void *)buffer->bytes);
	pin_fetch_add_acq_rel_u32(&ends, 1);
	return 0;
}

static void check_owned(void)
{
	begin();
	for (uint64_t i = 0; i < OWNED; i++) {
		struct pinion_buffer buffer;
		uint32_t index;

		expect_number("acquire", 0, pinion_pool_acquire_wait(pool, UINT64_MAX, &buffer));
		enter(&buffer, i);
		/* Its last task has ended, or it would not be free. */
		index = buffer.index;
		pinion_buffer_task_init(&owners[index], pool, &buffer, run_owner, NULL);
		expect_number("spawn", 0, pinion_task_spawn(runtime, &owners[index].task));
	}
	finish(OWNED, false);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_waiting();
	check_trying();
	check_owned();
	return expect_status();
}
