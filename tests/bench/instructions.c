/* SPDX-License-Identifier: MIT */
/*
 * The hot paths, each done a fixed number of times, for callgrind to count the
 * instructions of: tests/bench/instructions_hold.sh runs it and compares.
 *
 *   instructions [--planted]
 *
 * Prints "times N", how often each is done. --planted: one more in ten, as if
 * every path had become 10 % longer, which the comparison has to notice.
 *
 * One worker and one thread outside, of which always only one does something;
 * nothing spins. Under valgrind all goes some fifty times slower, and each task
 * would seem a long one; so while a path is counted the clock goes by looks at
 * it. Reads are preads, since valgrind does not know io_uring. What the kernel
 * does is not counted.
 */
#include "runtime/queue/deque.h"
#include "runtime/queue/idle_set.h"
#include "runtime/queue/timer_wheel.h"
#include "tests/support/expect.h"
#include "tests/support/idle.h"

#include <pinion/pinion.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define HAS_CALLGRIND 1
#endif
#endif
#ifndef HAS_CALLGRIND
#define HAS_CALLGRIND 0
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#define RUNNING_ON_VALGRIND 0
#endif

enum {
	TIMES = 4000,
	TASKS_MAX = TIMES + TIMES / 10,
	BATCH = 40,    /* fits the worker's own queue */
	NOP_BATCH = 8, /* what the worker carries out at a time */
	READ_BYTES = 512,
	LOOK_NS = 25, /* at the clock, while a path is counted */
};

_Static_assert(TIMES % NOP_BATCH == 0 && TASKS_MAX % NOP_BATCH == 0, "whole batches");
_Static_assert(TIMES % BATCH == 0 && TASKS_MAX % BATCH == 0, "whole batches");

static struct pinion_runtime *runtime;
static uint32_t times = TIMES; /* how often it is really done */
static sem_t finished;	       /* by the worker, when a path's turn is over */
static const char *path_name;

/*
 * The library's own calls reach these: the linker takes the first definition.
 */
static uint64_t counted_ns; /* while a path is counted; else 0 */

int clock_gettime(clockid_t clock, struct timespec *out_time)
{
	uint64_t now_ns = __atomic_load_n(&counted_ns, __ATOMIC_RELAXED);

	if (now_ns == 0 || clock != CLOCK_MONOTONIC) {
		return (int)syscall(SYS_clock_gettime, clock, out_time);
	}
	now_ns = __atomic_add_fetch(&counted_ns, LOOK_NS, __ATOMIC_RELAXED);
	*out_time = (struct timespec){
		.tv_sec = (time_t)(now_ns / 1000000000u),
		.tv_nsec = (long)(now_ns % 1000000000u),
	};
	return 0;
}

/* Both on the same thread; only its instructions count. */
static void begin_path(void)
{
	__atomic_store_n(&counted_ns, pinion_clock_now_ns(), __ATOMIC_RELAXED);
	CALLGRIND_ZERO_STATS;
	CALLGRIND_TOGGLE_COLLECT;
}

static void end_path(void)
{
	CALLGRIND_TOGGLE_COLLECT;
	CALLGRIND_DUMP_STATS_AT(path_name);
	__atomic_store_n(&counted_ns, 0, __ATOMIC_RELAXED);
}

static void spawn(struct pinion_task *task)
{
	expect_ready("spawn", pinion_task_spawn(runtime, task) == 0);
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0) {
	}
}

/* Runs `run` on the worker, and sleeps until it says that it is finished. */
static void turn_on_worker(const char *name, pinion_task_fn run)
{
	static struct pinion_task task;

	path_name = name;
	task = (struct pinion_task){.run = run};
	spawn(&task);
	wait_for(&finished);
}

/* ---- tasks ---- */

static struct pinion_task tasks[TASKS_MAX];
static uint32_t left_count;  /* that have not run, of all */
static uint32_t batch_count; /* of the batch in hand */

static int batch_task(struct pinion_task *task);

static void spawn_next_batch(void)
{
	if (left_count == 0) {
		end_path();
		sem_post(&finished);
		return;
	}
	batch_count = BATCH;
	left_count -= BATCH;
	for (uint32_t i = 0; i < BATCH; i++) {
		tasks[i].run = batch_task;
		(void)pinion_task_spawn(runtime, &tasks[i]);
	}
}

static int batch_task(struct pinion_task *task)
{
	(void)task;
	if (--batch_count == 0) {
		spawn_next_batch();
	}
	return 0;
}

static int begin_batches(struct pinion_task *task)
{
	(void)task;
	left_count = times;
	begin_path();
	spawn_next_batch();
	return 0;
}

/* Itself, after all others; there are none. */
static int respawn(struct pinion_task *task)
{
	if (left_count-- == 0) {
		end_path();
		sem_post(&finished);
		return 0;
	}
	return pinion_task_respawn(runtime, task);
}

static int begin_respawns(struct pinion_task *task)
{
	(void)task;
	left_count = times;
	tasks[0].run = respawn;
	begin_path();
	return pinion_task_respawn(runtime, &tasks[0]);
}

/* ---- from outside ---- */

static sem_t is_held;
static sem_t may_go_on;

/* Keeps the worker busy while tasks are spawned. */
static int hold(struct pinion_task *task)
{
	(void)task;
	sem_post(&is_held);
	wait_for(&may_go_on);
	return 0;
}

static int count_down(struct pinion_task *task)
{
	(void)task;
	if (left_count-- == times) {
		begin_path();
	}
	if (left_count == 0) {
		end_path();
		sem_post(&finished);
	}
	return 0;
}

static void push_singly(void)
{
	for (uint32_t i = 0; i < times; i++) {
		(void)pinion_task_spawn(runtime, &tasks[i]);
	}
}

static void push_batches(void)
{
	static struct pinion_task *pointers[TASKS_MAX];

	for (uint32_t i = 0; i < times; i++) {
		pointers[i] = &tasks[i];
	}
	for (uint32_t i = 0; i < times; i += BATCH) {
		(void)pinion_task_spawn_batch(runtime, &pointers[i], BATCH);
	}
}

/* Two paths: in from outside, and out of the shared queue into the tasks. */
static void inject(const char *name_in, const char *name_out, void (*push)(void))
{
	static struct pinion_task holder;

	holder = (struct pinion_task){.run = hold};
	spawn(&holder);
	wait_for(&is_held);
	left_count = times;
	for (uint32_t i = 0; i < times; i++) {
		tasks[i] = (struct pinion_task){.run = count_down};
	}
	path_name = name_in;
	begin_path();
	push();
	end_path();
	path_name = name_out;
	sem_post(&may_go_on);
	wait_for(&finished);
}

/* ---- timers, buffers, reads ---- */

static struct pinion_timer timers[BATCH];
static uint32_t open_count; /* of the batch in hand */

static int begin_timers(struct pinion_task *task);

static void timer_cancelled(struct pinion_task *task)
{
	static struct pinion_task next;

	(void)task;
	if (++open_count < BATCH) {
		return;
	}
	next.run = begin_timers;
	(void)pinion_task_spawn(runtime, &next);
}

static int timer_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

/* Starts and cancels a batch; the last cancel of it begins the next. */
static int begin_timers(struct pinion_task *task)
{
	(void)task;
	if (left_count == times) {
		begin_path();
	}
	if (left_count == 0) {
		end_path();
		sem_post(&finished);
		return 0;
	}
	left_count -= BATCH;
	open_count = 0;
	for (uint32_t i = 0; i < BATCH; i++) {
		timers[i].task.run = timer_run;
		timers[i].task.cancel = timer_cancelled;
		(void)pinion_timer_start(
			runtime, &timers[i], pinion_clock_now_ns() + 1000000000ull * (3600 + i));
	}
	for (uint32_t i = 0; i < BATCH; i++) {
		(void)pinion_timer_cancel(runtime, &timers[i]);
	}
	return 0;
}

static int use_buffers(struct pinion_task *task)
{
	struct pinion_buffer buffer;

	(void)task;
	begin_path();
	for (uint32_t i = 0; i < times; i++) {
		if (pinion_buffer_acquire(runtime, 1, &buffer) == 0) {
			pinion_buffer_release(runtime, &buffer);
		}
	}
	end_path();
	sem_post(&finished);
	return 0;
}

static struct pinion_request request;
static struct pinion_file file;
static uint8_t read_bytes[READ_BYTES];

static int read_next(struct pinion_task *task)
{
	(void)task;
	if (request.result != READ_BYTES && left_count != times) {
		expect_number("read", READ_BYTES, request.result);
		left_count = 0;
	}
	if (left_count == times) {
		begin_path();
	}
	if (left_count == 0) {
		end_path();
		sem_post(&finished);
		return 0;
	}
	left_count--;
	request.task.run = read_next;
	request.file = &file;
	request.bytes = read_bytes;
	request.length_bytes = READ_BYTES;
	return pinion_request_submit(runtime, &request);
}

static struct pinion_request nops[BATCH];

static int nop_ended(struct pinion_task *task);

/* A batch at once, and the next when all of it have completed. */
static void submit_next_nops(void)
{
	if (left_count == 0) {
		end_path();
		sem_post(&finished);
		return;
	}
	left_count -= batch_count;
	open_count = batch_count;
	for (uint32_t i = 0; i < batch_count; i++) {
		nops[i].task.run = nop_ended;
		nops[i].op = PINION_OP_NOP;
		(void)pinion_request_submit(runtime, &nops[i]);
	}
}

static int nop_ended(struct pinion_task *task)
{
	(void)task;
	if (--open_count == 0) {
		submit_next_nops();
	}
	return 0;
}

static int begin_nops(struct pinion_task *task)
{
	(void)task;
	left_count = times;
	begin_path();
	submit_next_nops();
	return 0;
}

/* ---- without a runtime ---- */

static void use_deque(const char *name, enum pin_deque_order order)
{
	static struct pin_atomic_u64 slots[256];
	struct pin_deque deque;
	struct pin_link links[BATCH];
	uint32_t popped_count = 0;

	pin_deque_init(&deque, slots, PIN_ARRAY_COUNT(slots), order);
	if (order == PIN_DEQUE_FIFO) {
		pin_deque_allow_reservation(&deque, &pin_host_linux);
	}
	path_name = name;
	begin_path();
	for (uint32_t i = 0; i < times; i += BATCH) {
		for (uint32_t k = 0; k < BATCH; k++) {
			(void)(pin_deque_push_known(&deque, &links[k]) ||
				pin_deque_push(&deque, &links[k]));
		}
		for (uint32_t k = 0; k < BATCH; k++) {
			popped_count += pin_deque_pop(&deque) != NULL;
		}
	}
	end_path();
	expect_number("popped", times, popped_count);
}

/* One buffer, taken and given back, with a cache and without. */
static void use_pool(const char *name, bool has_cache)
{
	struct pinion_pool_config config;
	struct pinion_pool *pool;
	struct pinion_buffer buffer;

	pinion_pool_config_init(&config);
	config.worker_count = 1;
	config.buffer_count = 16;
	config.buffer_bytes = 4096;
	expect_ready("pool", pinion_pool_create(NULL, &config, &pool) == 0);
	expect_ready("attach", !has_cache || pinion_pool_attach(pool) == 0);
	path_name = name;
	begin_path();
	for (uint32_t i = 0; i < times; i++) {
		if (pinion_pool_try_acquire(pool, &buffer) == 0) {
			(void)pinion_pool_release(pool, &buffer);
		}
	}
	end_path();
	if (has_cache) {
		pinion_pool_detach(pool);
	}
	expect_number("pool destroy", 0, pinion_pool_destroy(pool));
}

/* Deadlines at all distances, up to some seconds. */
static void use_wheel(void)
{
	static struct pin_timers wheel;
	static struct pin_timer entries[BATCH];
	uint64_t due_count = 0;

	pin_timers_init(&wheel, 0);
	path_name = "wheel_insert_expire";
	begin_path();
	for (uint32_t i = 0; i < times; i += BATCH) {
		uint64_t now_ns = wheel.now_ns;

		for (uint32_t k = 0; k < BATCH; k++) {
			pin_timers_insert(&wheel, &entries[k], now_ns + (1000ull << k % 20) + k);
		}
		due_count += pin_timers_advance(&wheel, now_ns + (1000ull << 20));
		while (pin_timers_pop(&wheel) != NULL) {
		}
	}
	end_path();
	expect_number("expired", times, (long long)due_count);
}

/* A wake, and the worker parks again, with `worker_count` parked. */
static void use_idle_set(const char *name, uint32_t worker_count)
{
	static struct pin_idle idle;
	uint32_t last = 0;

	pin_idle_init(&idle, worker_count);
	for (uint32_t i = 0; i < worker_count; i++) {
		pin_idle_publish(&idle, i);
	}
	path_name = name;
	begin_path();
	for (uint32_t i = 0; i < times; i++) {
		last = pin_idle_claim_from(&idle, last + 1);
		pin_idle_publish(&idle, last);
	}
	end_path();
	expect_number("parked", worker_count, idle_count(&idle));
}

static void start_runtime(void)
{
	struct pinion_config config;
	struct pinion_tuning tuning;

	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.tuning = &tuning;
	config.worker_count = 1;
	config.bind_workers = 0;
	config.io_level = PINION_IO_FALLBACK;
	config.buffer_count = 2;
	config.buffer_bytes = 4096;
	config.small_buffer_count = 2;
	config.small_buffer_bytes = 4096;
	tuning.buffer_rest_ms = 0; /* steps of growth are no part of a path */
	tuning.spin_iters = 0;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	expect_ready("file", pinion_file_open(&file, "/proc/self/exe", PINION_DIRECT_NEVER) == 0);
}

static void walk_paths(void)
{
	turn_on_worker("spawn_run", begin_batches);
	turn_on_worker("respawn_run", begin_respawns);
	inject("inject", "injected_run", push_singly);
	inject("inject_batch", "injected_batch_run", push_batches);
	left_count = times;
	turn_on_worker("timer_start_cancel", begin_timers);
	turn_on_worker("buffer_acquire_release", use_buffers);
	left_count = times;
	turn_on_worker("read_submit_complete", read_next);
	batch_count = NOP_BATCH;
	turn_on_worker("nop_submit_complete", begin_nops);
	batch_count = 1;
	turn_on_worker("nop_alone", begin_nops);
	use_deque("deque_fifo_push_pop", PIN_DEQUE_FIFO);
	use_deque("deque_lifo_push_pop", PIN_DEQUE_LIFO);
	use_wheel();
	use_pool("pool_attached", true);
	use_pool("pool_outside", false);
	use_idle_set("idle_claim_publish_64", 64);
	use_idle_set("idle_claim_publish_1024", 1024);
	use_idle_set("idle_claim_publish_4096", 4096);
}

int main(int argc, char **argv)
{
	bool is_planted = argc > 1 && strcmp(argv[1], "--planted") == 0;

	if (!HAS_CALLGRIND || !RUNNING_ON_VALGRIND) {
		printf("to be run by valgrind, and built with its headers\n");
		return EXPECT_SKIPPED;
	}
	if (is_planted) {
		times = TASKS_MAX;
	}
	sem_init(&finished, 0, 0);
	sem_init(&is_held, 0, 0);
	sem_init(&may_go_on, 0, 0);
	start_runtime();
	walk_paths();
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
	printf("times %d\n", TIMES);
	/* What the counts depend on besides the source. */
#ifdef PIN_ENABLE_DCHECK
	printf("key checks, %s, %s\n", __VERSION__, BUILD_CFLAGS);
#else
	printf("key %s, %s\n", __VERSION__, BUILD_CFLAGS);
#endif
	return expect_status();
}
