/* SPDX-License-Identifier: MIT */
/*
 * Goal: the histograms of a runtime hold the times of a known run: each
 * long task by itself in the bucket of its time, series of short ones as often
 * as they stand for, a wake, a wait for a buffer, timers, and reads of a device
 * with their tasks; the count is that of the buckets. A task of a timed read is
 * its caller's, unchanged. C17. Method: white box: the functions that record,
 * with made-up times on a worker; then a runtime whose work is known, drained,
 * so that all is moved.
 */
#include "runtime/api/internal.h"
#include "runtime/worker/metrics.h"
#include "tests/support/buffer_waits.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/thread_pool.h>

enum { READS = 400, READ_BYTES = 4096, LONG_NS = 3000000, STALL_MS = 100, WAKE_ROUNDS = 100 };

static struct pinion_runtime *runtime;
static struct pinion_histogram got;

static const struct pinion_histogram *read_of(enum pinion_timing timing, uint32_t lane)
{
	uint64_t sum = 0;

	expect_number("histogram", 0, pinion_runtime_get_histogram(runtime, timing, lane, &got));
	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		sum += got.buckets[i];
	}
	expect_number("the count is that of the buckets", (long long)got.count, (long long)sum);
	return &got;
}

static void expect_bucket(enum pinion_timing timing, uint32_t lane, uint64_t ns, uint64_t count)
{
	const struct pinion_histogram *histogram = read_of(timing, lane);

	expect_number("in its bucket", (long long)count,
		(long long)histogram->buckets[pin_histogram_bucket(ns)]);
}

static void end(void)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
}

/* ---- by made-up times ---- */

/* As of a series that has just ended; its number is due. */
static void note(struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks)
{
	worker->observed.series_left = 1;
	pin_metrics_note_series(worker, elapsed_ns, tasks);
}

static int record_runs(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();
	uint64_t stall_ns = STALL_MS * UINT64_C(1000000);

	(void)task;
	note(worker, 10 * 300, 10);
	note(worker, 1000, 1);
	for (uint32_t i = 0; i < PIN_TIMINGS_SERIES - 1; i++) {
		pin_metrics_note_series(worker, 700, 1);
	}
	pin_metrics_note_series(worker, 600, 1);
	pin_metrics_note_series(worker, LONG_NS, 1);
	pin_store_relaxed_u32(&worker->running_lane, PINION_LANE_LOW);
	pin_metrics_note_series(worker, LONG_NS, 1);
	pin_metrics_note_series(worker, stall_ns - 1, 1);
	expect_number("no stall", 0, (long long)pin_meter_read(&worker->meter.long_end_ns));
	pin_metrics_note_series(worker, stall_ns, 1);
	expect_number("the end of a stall", (long long)worker->now_ns,
		(long long)pin_meter_read(&worker->meter.long_end_ns));
	pin_store_relaxed_u32(&worker->running_lane, PINION_LANE_NORMAL);
	pin_metrics_record(worker, PINION_TIMING_WAKE, 100);
	pin_metrics_record(worker, PINION_TIMING_WAKE, 100);
	worker->observed.woken_ns = worker->now_ns - 20000000;
	pin_metrics_note_wake(worker);
	worker->observed.woken_ns = worker->now_ns - 300;
	pin_metrics_note_wake(worker);
	pin_metrics_note_wake(worker);
	return 0;
}

static void check_made_up(void)
{
	struct pinion_task task = {.run = record_runs};
	struct pinion_worker_stats stats;
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.stall_ms = STALL_MS;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	end();
	expect_bucket(PINION_TIMING_RUN, PINION_LANE_NORMAL, 300, 10 * PIN_TIMINGS_SERIES);
	expect_bucket(PINION_TIMING_RUN, PINION_LANE_NORMAL, 1000, PIN_TIMINGS_SERIES);
	expect_bucket(PINION_TIMING_RUN, PINION_LANE_NORMAL, 700, 0);
	expect_bucket(PINION_TIMING_RUN, PINION_LANE_NORMAL, 600, PIN_TIMINGS_SERIES);
	expect_bucket(PINION_TIMING_RUN, PINION_LANE_NORMAL, LONG_NS, 1);
	expect_bucket(PINION_TIMING_RUN, PINION_LANE_LOW, LONG_NS, 1);
	/* Shorter than any wake that happens meanwhile. */
	expect_bucket(PINION_TIMING_WAKE, PINION_LANE_NORMAL, 100, 2);
	expect_bucket(PINION_TIMING_WAKE, PINION_LANE_NORMAL, 20000000, 1);
	expect_bucket(PINION_TIMING_WAKE, PINION_LANE_NORMAL, 300, 1);
	expect_number("stats", 0, pinion_worker_get_stats(runtime, 0, &stats, sizeof(stats)));
	expect_true("the late one", stats.late_wakes >= 1);
	expect_number("no such lane", -EINVAL,
		pinion_runtime_get_histogram(runtime, PINION_TIMING_RUN, 3, &got));
	expect_number("of one lane", -EINVAL,
		pinion_runtime_get_histogram(runtime, PINION_TIMING_WAKE, PINION_LANE_HIGH, &got));
	expect_number("no such timing", -EINVAL,
		pinion_runtime_get_histogram(runtime, PINION_TIMINGS, PINION_LANE_NORMAL, &got));
	expect_number("no device", -ENOENT, pinion_device_get_histogram(runtime, 0, &got));
	pinion_runtime_destroy(runtime);
}

/* More than 10 ms after the wake is late; a clock that goes back is not. */
static void check_late(void)
{
	const uint64_t woken_ns = 1000000000;
	const struct {
		uint64_t now_ns;
		bool is_late;
	} cases[] = {
		{woken_ns + 10000000, false},
		{woken_ns + 10000001, true},
		{woken_ns - 10000001, false},
	};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(cases); i++) {
		struct pin_observed observed = {.woken_ns = woken_ns};

		expect_number("late", cases[i].is_late,
			pin_timings_note_wake(&observed, cases[i].now_ns));
	}
}

/* ---- what happens ---- */

static int take_long(struct pinion_task *task)
{
	uint64_t end_ns = pinion_clock_now_ns() + LONG_NS;

	(void)task;
	while (pinion_clock_now_ns() < end_ns) {
	}
	return 0;
}

static struct pinion_timer timer;

static int nothing(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static int start_timer(struct pinion_task *task)
{
	(void)task;
	timer = (struct pinion_timer){.task.run = nothing};
	return pinion_timer_start(runtime, &timer, pinion_clock_now_ns() + 1000000);
}

/* So that the next spawn wakes it. */
static void await_sleep(uint32_t index)
{
	struct pinion_worker_info info = {.place = PINION_WORKER_RUNNING};

	while (info.place == PINION_WORKER_RUNNING) {
		expect_number("info", 0,
			pinion_worker_get_info(runtime, (int)index, &info, sizeof(info)));
	}
}

static void check_tasks(void)
{
	struct pinion_task tasks[3] = {
		{.run = take_long}, {.run = take_long}, {.run = start_timer}};
	uint64_t longer = 0;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(tasks); i++) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	end();
	read_of(PINION_TIMING_RUN, PINION_LANE_NORMAL);
	for (uint32_t i = pin_histogram_bucket(LONG_NS); i < PINION_HISTOGRAM_BUCKETS; i++) {
		longer += got.buckets[i];
	}
	expect_true("both, perhaps in one series", longer == 1 || longer == 2);
	expect_true("their time", got.sum_ns >= 2 * LONG_NS);
	expect_number(
		"one timer", 1, (long long)read_of(PINION_TIMING_TIMER, PINION_LANE_NORMAL)->count);
	pinion_runtime_destroy(runtime);
}

/*
 * The spawn wakes it; unless it looked once more before it slept, and found the
 * task itself, as it may in a few of the rounds.
 */
static void check_woken(void)
{
	uint64_t woken = 0;

	for (int round = 0; round < WAKE_ROUNDS && woken == 0; round++) {
		struct pinion_task task = {.run = nothing};

		runtime = runtimes_start(1, PINION_IO_FALLBACK);
		await_sleep(0);
		expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
		end();
		woken = read_of(PINION_TIMING_WAKE, PINION_LANE_NORMAL)->count;
		pinion_runtime_destroy(runtime);
	}
	expect_true("woken for the task, and perhaps to end", woken == 1 || woken == 2);
}

/* The wake that dismisses a worker is no wake of its slot's next thread. */
static void check_dismissed(void)
{
	const struct pinion_thread_pool_sizes large = {1, 1, 2};
	const struct pinion_thread_pool_sizes small = {1, 1, 1};
	struct pinion_config config;
	uint32_t idle = 0;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	expect_ready("create", pinion_thread_pool_create(&config, &large, &runtime) == 0);
	for (uint32_t i = 0; i < runtime->shared.worker_count; i++) {
		if (runtime->shared.workers[i].has_thread) {
			await_sleep(i);
		}
	}
	expect_number("smaller", 0, pinion_thread_pool_resize(runtime, &small));
	for (uint32_t i = 0; i < runtime->shared.worker_count; i++) {
		const struct pin_worker *worker = &runtime->shared.workers[i];

		if (!worker->has_thread) {
			expect_number("woken", 0, (long long)worker->observed.woken_ns);
			expect_number(
				"stamp", 0, (long long)pin_load_relaxed_u64(&worker->notified_ns));
			idle++;
		}
	}
	expect_true("some have left", idle > 0);
	end();
	pinion_runtime_destroy(runtime);
}

static int use_up(struct pinion_task *task)
{
	struct pinion_buffer buffer;

	(void)task;
	expect_number("acquire", 0, pinion_buffer_acquire(runtime, 1, &buffer));
	buffer_waits_begin(runtime)->since_ns -= 50000000;
	pinion_buffer_release(runtime, &buffer);
	return 0;
}

static void check_buffer(void)
{
	struct pinion_task task = {.run = use_up};
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	config.small_buffer_count = 1;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	end();
	expect_number(
		"one", 1, (long long)read_of(PINION_TIMING_BUFFER, PINION_LANE_NORMAL)->count);
	expect_true("its time", got.sum_ns >= 50000000);
	pinion_runtime_destroy(runtime);
}

/* ---- reads ---- */

static struct pinion_file file;
static struct pinion_request request;
static uint8_t bytes[READ_BYTES];
static uint32_t left;

static int read_next(struct pinion_task *task)
{
	expect_true("the task is its caller's", task->run == read_next);
	if (left < READS) {
		expect_number("read", READ_BYTES, request.result);
	}
	if (left-- == 0) {
		return 0;
	}
	request.file = &file;
	request.bytes = bytes;
	request.length_bytes = READ_BYTES;
	return pinion_request_submit(runtime, &request);
}

/* With a limit of slow ones every read is timed. */
static void check_reads(uint32_t io_level)
{
	struct pinion_limits limits;
	struct pinion_task *first = &request.task;
	uint64_t count;

	pinion_limits_init(&limits);
	limits.slow_ns = 1000000000;
	runtime = runtimes_start(1, io_level);
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
	request = (struct pinion_request){.task.run = read_next};
	left = READS;
	file.cached_percent = 0; /* by the ring */
	expect_number("spawn", 0, pinion_task_spawn(runtime, first));
	end();
	expect_number("each read", READS,
		(long long)read_of(PINION_TIMING_REQUEST, PINION_LANE_NORMAL)->count);
	expect_true("their time", got.sum_ns > 0);
	expect_number("each task", READS,
		(long long)read_of(PINION_TIMING_READY, PINION_LANE_NORMAL)->count);
	expect_number("the device", 0, pinion_device_get_histogram(runtime, 0, &got));
	count = got.count;
	expect_number("its reads", READS, (long long)count);
	expect_number("no other", -ENOENT, pinion_device_get_histogram(runtime, 1, &got));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	int fd;

	check_made_up();
	check_late();
	check_tasks();
	check_woken();
	check_dismissed();
	check_buffer();
	scratch_enter("times_are_recorded");
	fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	expect_ready("file", fd >= 0 && write(fd, bytes, READ_BYTES) == READ_BYTES);
	close(fd);
	expect_ready("open", pinion_file_open(&file, "file", PINION_DIRECT_NEVER) == 0);
	check_reads(PINION_IO_FALLBACK);
	check_reads(PINION_IO_AUTO);
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
