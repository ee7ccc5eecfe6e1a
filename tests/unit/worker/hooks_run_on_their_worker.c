/* SPDX-License-Identifier: MIT */
/*
 * Goal: each hook is called on its worker's own thread with that worker's
 * context, in the order start, tick and park, last tick, stop; a failing start
 * fails the creation and stops those that have started; ticks come on idle and
 * on busy workers, not before their time, and once at the end; without a tick
 * none comes; the context is had on its own worker alone; hooks may spawn while
 * the runtime runs and are refused when it has ended; a hook that panics is
 * called again. RP-4, RP-8, RP-9, RP-10, RP-14, RP-15 (ticks), C1, W50, W53,
 * AS-11, EX-17, EX-27.
 * Method: hooks that count and compare; the test waits for their counts.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	WORKERS = 3,
	TICKS = 4,
	SELDOM_MS = 3600000,
	LIMIT_SECONDS = 60,
};

/* What `after_start` makes. */
struct context {
	pthread_t thread;
	uint32_t index;
	struct pin_atomic_u32 tick_count;
	struct pin_atomic_u32 park_count;
	struct pin_atomic_u32 stop_count;
};

static struct context contexts[WORKERS];
static struct pin_atomic_u32 start_count;
static struct pin_atomic_u32 odd_count; /* called wrongly */
static struct pin_atomic_u32 early_count;
static struct pin_atomic_u32 spawned_count;
static struct pin_atomic_u32 refused_count;
static struct pin_atomic_u32 ran_count;
static uint32_t failing_index;
static bool panics;
static struct pin_atomic_u32 is_over; /* the last ticks may come early */
static struct pin_atomic_u32 has_runtime;
static uint64_t interval_ns;
static uint64_t create_ns;
static struct pinion_runtime *runtime;
static struct pinion_task spawned[WORKERS];

static void note_odd(bool is_odd)
{
	if (is_odd) {
		tasks_signal(&odd_count);
	}
}

static int after_start(void *arg, uint32_t worker_index, void **out_context)
{
	struct context *context = &contexts[worker_index];

	note_odd(arg != contexts || *out_context != NULL);
	tasks_signal(&start_count);
	if (worker_index == failing_index) {
		return -EBADMSG;
	}
	context->thread = pthread_self();
	context->index = worker_index;
	*out_context = context;
	return 0;
}

static struct context *check(void *arg, uint32_t worker_index, void *own)
{
	struct context *context = own;

	note_odd(arg != contexts || context != &contexts[worker_index] ||
		!pthread_equal(context->thread, pthread_self()) ||
		pin_load_acquire_u32(&context->stop_count) > 0);
	return context;
}

static void on_tick(void *arg, uint32_t worker_index, void *own)
{
	struct context *context = check(arg, worker_index, own);
	uint64_t number = pin_load_acquire_u32(&context->tick_count) + 1;

	if (pin_load_acquire_u32(&is_over) == 0 &&
		pinion_clock_now_ns() < create_ns + number * interval_ns) {
		tasks_signal(&early_count);
	}
	tasks_signal(&context->tick_count);
	if (panics) {
		pinion_task_panic(-EIO, "in a tick");
	}
}

static int run_spawned(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&ran_count);
	return 0;
}

static void before_park(void *arg, uint32_t worker_index, void *own)
{
	struct context *context = check(arg, worker_index, own);

	tasks_signal(&context->park_count);
	if (pin_load_acquire_u32(&has_runtime) != 0 && spawned[worker_index].run == NULL) {
		int rc;

		spawned[worker_index].run = run_spawned;
		rc = pinion_task_spawn(runtime, &spawned[worker_index]);
		note_odd(rc != 0 && (rc != -ESHUTDOWN || pin_load_acquire_u32(&is_over) == 0));
		note_odd(pinion_worker_index(runtime) != (int)worker_index);
		note_odd(pinion_runtime_drain(runtime) != -EDEADLK);
		pin_fetch_add_acq_rel_u32(rc == 0 ? &spawned_count : &refused_count, 1);
	}
}

static void before_stop(void *arg, uint32_t worker_index, void *own)
{
	struct context *context = check(arg, worker_index, own);
	struct pinion_task late = {.run = run_spawned};
	struct pinion_timer timer = {.task = {.run = run_spawned}};
	struct pinion_request request = {.op = PINION_OP_NOP, .task = {.run = run_spawned}};

	tasks_signal(&context->stop_count);
	if (pin_load_acquire_u32(&has_runtime) == 0) {
		return;
	}
	note_odd(pinion_task_spawn(runtime, &late) != -ESHUTDOWN ||
		pinion_task_respawn(runtime, &late) != -EPERM ||
		pinion_task_spawn_shared(runtime, &late) != -ESHUTDOWN ||
		pinion_timer_start(runtime, &timer, 0) != -ESHUTDOWN ||
		pinion_request_submit(runtime, &request) != -ESHUTDOWN);
}

static int create(uint32_t tick_interval_ms)
{
	struct pinion_config config;
	int rc;

	memset(contexts, 0, sizeof(contexts));
	memset(spawned, 0, sizeof(spawned));
	pin_store_release_u32(&start_count, 0);
	/*
	 * A failing worker ends at once, with a last tick where it had begun.
	 */
	pin_store_release_u32(&is_over, failing_index == UINT32_MAX ? 0 : 1);
	pin_store_release_u32(&has_runtime, 0);
	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	config.after_start = after_start;
	config.before_park = before_park;
	config.before_stop = before_stop;
	config.on_tick = tick_interval_ms > 0 ? on_tick : NULL;
	config.hook_arg = contexts;
	runtimes_tuning.tick_interval_ms = tick_interval_ms > 0 ? tick_interval_ms : 1000;
	interval_ns = (uint64_t)tick_interval_ms * 1000000;
	create_ns = pinion_clock_now_ns();
	rc = pinion_runtime_create(&config, &runtime);
	pin_store_release_u32(&has_runtime, rc == 0 ? 1 : 0);
	return rc;
}

static void end(void)
{
	pin_store_release_u32(&is_over, 1);
	expect_number("join", 0, pinion_runtime_join(runtime));
	expect_number("starts", WORKERS, pin_load_acquire_u32(&start_count));
	for (uint32_t i = 0; i < WORKERS; i++) {
		expect_number("stops", 1, pin_load_acquire_u32(&contexts[i].stop_count));
	}
	expect_number("what hooks spawned", pin_load_acquire_u32(&spawned_count),
		pin_load_acquire_u32(&ran_count));
	pinion_runtime_destroy(runtime);
	expect_number("hooks called wrongly", 0, pin_load_acquire_u32(&odd_count));
	expect_number("ticks too early", 0, pin_load_acquire_u32(&early_count));
}

/* ---- cases ---- */

static void check_failing_start(void)
{
	failing_index = 1;
	expect_number("create", -EBADMSG, create(SELDOM_MS));
	expect_number("starts", WORKERS, pin_load_acquire_u32(&start_count));
	for (uint32_t i = 0; i < WORKERS; i++) {
		expect_number("stops", i == failing_index ? 0 : 1,
			pin_load_acquire_u32(&contexts[i].stop_count));
	}
	failing_index = UINT32_MAX;
}

static void check_idle(void)
{
	expect_number("create", 0, create(1));
	for (uint32_t i = 0; i < WORKERS; i++) {
		tasks_await(&contexts[i].tick_count, TICKS);
	}
	end();
}

static int stay_busy(struct pinion_task *task)
{
	if (pin_load_acquire_u32(&contexts[0].tick_count) < TICKS) {
		return pinion_task_respawn(runtime, task);
	}
	return 0;
}

static void check_busy(void)
{
	struct pinion_task busy[WORKERS * 2];

	expect_number("create", 0, create(1));
	for (uint32_t i = 0; i < WORKERS * 2; i++) {
		busy[i] = (struct pinion_task){.run = stay_busy};
		expect_number("spawn", 0, pinion_task_spawn_on(runtime, i % WORKERS, &busy[i]));
	}
	/* Until the busy ones have seen it. */
	tasks_await(&contexts[0].tick_count, TICKS);
	end();
}

static void check_seldom(void)
{
	uint32_t ran = pin_load_acquire_u32(&ran_count);
	struct pinion_task waking = {.run = run_spawned};

	expect_number("create", 0, create(SELDOM_MS));
	/* Its worker then parks again, with the runtime there, and spawns. */
	pin_fetch_add_acq_rel_u32(&spawned_count, 1);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &waking));
	tasks_await(&ran_count, ran + 2);
	end();
	for (uint32_t i = 0; i < WORKERS; i++) {
		expect_number("the last tick", 1, pin_load_acquire_u32(&contexts[i].tick_count));
	}
}

static void check_none(void)
{
	expect_number("create", 0, create(0));
	end();
	for (uint32_t i = 0; i < WORKERS; i++) {
		expect_number("no tick", 0, pin_load_acquire_u32(&contexts[i].tick_count));
	}
}

static void check_panicking(void)
{
	struct pinion_runtime_stats counters;

	panics = true;
	expect_number("create", 0, create(1));
	for (uint32_t i = 0; i < WORKERS; i++) {
		tasks_await(&contexts[i].tick_count, TICKS);
	}
	counters = runtimes_counters(runtime);
	expect_true("ticks are counted", counters.ticks >= WORKERS * TICKS);
	end();
	expect_true("and named", strstr(runtimes_log, "panicked: in a tick") != NULL);
	panics = false;
}

static struct pinion_runtime *other;

static int look(struct pinion_task *task)
{
	struct context *context = NULL;
	void *none = task;
	int index = pinion_worker_index(runtime);

	note_odd(pinion_worker_context(runtime, (void **)&context) != 0);
	note_odd(context != &contexts[index]);
	note_odd(pinion_worker_context(other, &none) != -ENOENT || none != task);
	return 0;
}

static int look_elsewhere(struct pinion_task *task)
{
	void *context = task;

	note_odd(pinion_worker_context(runtime, &context) != -ENOENT || context != task);
	note_odd(pinion_worker_context(other, &context) != 0 || context != NULL);
	return 0;
}

static void check_context(void)
{
	struct pinion_task tasks[WORKERS];
	struct pinion_task elsewhere = {.run = look_elsewhere};
	void *context = tasks;

	expect_number("create", 0, create(SELDOM_MS));
	other = runtimes_start(1, PINION_IO_AUTO);
	expect_number("outside", -ENOENT, pinion_worker_context(runtime, &context));
	expect_true("untouched", context == tasks);
	for (uint32_t i = 0; i < WORKERS; i++) {
		tasks[i] = (struct pinion_task){.run = look};
		expect_number("spawn", 0, pinion_task_spawn_on(runtime, i, &tasks[i]));
	}
	expect_number("spawn", 0, pinion_task_spawn(other, &elsewhere));
	expect_number("join", 0, pinion_runtime_join(other));
	end();
	pinion_runtime_destroy(other);
}

int main(void)
{
	failing_index = UINT32_MAX;
	runtimes_watchdog(LIMIT_SECONDS);
	check_failing_start();
	check_idle();
	check_busy();
	check_seldom();
	check_none();
	check_panicking();
	check_context();
	return expect_status();
}
