/* SPDX-License-Identifier: MIT */
/*
 * Goal: another thread or process reads the metrics page of a runtime: it sees
 * each worker's counts as the runtime itself has them, and histograms; every
 * snapshot beside busy workers is whole: its sums balance. The page is sealed,
 * of mode 0600 and at most 256 KiB. Where memory cannot be had the runtime goes
 * on, with a line.
 * Method: runtimes of this process. METRICS_READS=n for more reads than 2000.
 */
#include "runtime/api/internal.h"
#include "runtime/observe/metrics_page.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/worker.h"
#include "tests/support/metrics.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { WORKERS = 3, BUSY_WORKERS = 8, TASKS = 500, READS = 2000 };

static struct pinion_runtime *runtime;

/* ---- by value ---- */

static int nothing(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void check_counts(void)
{
	static struct pinion_task tasks[TASKS];
	struct pinion_metrics *metrics;
	struct pinion_metrics_info info;
	uint64_t sum = 0;

	runtime = runtimes_start(WORKERS, PINION_IO_AUTO);
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = nothing};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	metrics = open_own(0);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	take_snapshot(metrics);
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct pinion_worker_stats stats;
		struct pinion_worker_info state;

		expect_number("stats", 0,
			pinion_worker_get_stats(runtime, (int)i, &stats, sizeof(stats)));
		for (uint32_t k = 0; k < PIN_COUNTS; k++) {
			uint64_t own = ((const uint64_t *)(const void *)&stats)[k];

			expect_number(pin_counts_name(k), (long long)own,
				(long long)worker_value(metrics, pin_counts_name(k), i));
		}
		sum += stats.tasks_run;
		expect_number("has left", PINION_WORKER_ABSENT,
			(long long)worker_value(metrics, "place", i));
		expect_number("and says so", 0,
			pinion_worker_get_info(runtime, (int)i, &state, sizeof(state)));
		expect_number("has left", PINION_WORKER_ABSENT, (long long)state.place);
	}
	expect_number("all tasks", TASKS, (long long)sum);
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_number("pid", getpid(), (long long)info.pid);
	expect_number("workers", WORKERS, info.worker_count);
	expect_number("slots", WORKERS, info.slot_count);
	expect_number("goes on", 0, info.has_ended);
	expect_number("torn", 0, info.torn_count);
	expect_text("library", PINION_VERSION_STRING, info.library);
	expect_number("boot", 36, (long long)strlen(info.boot_id));
	expect_true("size", info.page_bytes <= 256 << 10);
	expect_true("time", info.published_ns >= info.created_ns);
	expect_number("no other", -ENOENT,
		pinion_metrics_find(metrics, "tasks_run", PINION_METRICS_RUNTIME, UINT32_MAX));
	pinion_runtime_destroy(runtime);
	take_snapshot(metrics);
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_number("has ended", 1, info.has_ended);
	pinion_metrics_close(metrics);
	expect_number(
		"is gone", -ENOENT, pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics));
}

/* Before a sleep it publishes, but at most every millisecond. */
static void check_park(void)
{
	static struct pin_worker worker;
	const uint64_t last_ns = 1000000000;

	worker.observed.publish_ns = last_ns + 10000000;
	worker.now_ns = last_ns + 999999;
	expect_true("not yet", !pin_metrics_begin_park(&worker));
	worker.now_ns = last_ns + 1000000;
	expect_true("after a millisecond", pin_metrics_begin_park(&worker));
}

static void await_sleep(void)
{
	struct pinion_worker_info info = {.place = PINION_WORKER_RUNNING};

	while (info.place == PINION_WORKER_RUNNING) {
		expect_number("info", 0, pinion_worker_get_info(runtime, 0, &info, sizeof(info)));
	}
}

/* A worker that is woken after a publication was due publishes what it runs. */
static void check_burst(void)
{
	struct pinion_task task = {.run = nothing};
	struct pinion_metrics *metrics;
	uint64_t due_ns;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	await_sleep();
	metrics = open_own(0);
	for (due_ns = pinion_clock_now_ns() + 20000000; pinion_clock_now_ns() < due_ns;) {
		sched_yield();
	}
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	do {
		take_snapshot(metrics);
	} while (worker_value(metrics, "tasks_run", 0) != 1);
	pinion_metrics_close(metrics);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

/*
 * Tasks so soon after a publication that the worker sleeps without another
 * appear all the same, although it is not woken again.
 */
static void check_quiet_burst(void)
{
	enum { BURSTS = 20 };
	struct pinion_task task = {.run = nothing};
	struct pinion_metrics *metrics;
	uint64_t due_ns;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	metrics = open_own(0);
	for (uint64_t i = 0; i < BURSTS; i++) {
		/* The first is published with the sleep after it. */
		await_sleep();
		for (due_ns = pinion_clock_now_ns() + 20000000; pinion_clock_now_ns() < due_ns;) {
			sched_yield();
		}
		expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
		while (runtimes_counters(runtime).tasks_run != 2 * i + 1) {
		}
		await_sleep();
		expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
		do {
			sched_yield();
			take_snapshot(metrics);
		} while (worker_value(metrics, "tasks_run", 0) != 2 * i + 2);
	}
	pinion_metrics_close(metrics);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

/* The unit of a worker's count is at the end of its name. */
static void check_unit(const struct pinion_metrics_field *field)
{
	const char *end = strrchr(field->name, '_');

	if (field->scope != PINION_METRICS_WORKER || field->kind != PINION_METRICS_COUNTER) {
		return;
	}
	if (end == NULL || (strcmp(end, "_ns") != 0 && strcmp(end, "_bytes") != 0)) {
		expect_text(field->name, "", field->unit);
	} else {
		expect_text(field->name, end + 1, field->unit);
	}
}

static void check_fields(void)
{
	struct pinion_metrics *metrics;
	struct pinion_metrics_field field;
	struct pinion_histogram *histogram = calloc(1, sizeof(*histogram));
	uint32_t histograms = 0;
	uint32_t count = 0;
	uint64_t value;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	metrics = open_own(0);
	take_snapshot(metrics);
	for (; pinion_metrics_get_field(metrics, count, &field, sizeof(field)) == 0; count++) {
		check_unit(&field);
		if (field.kind == PINION_METRICS_HISTOGRAM) {
			histograms += field.copies;
			expect_number("histogram", 0,
				pinion_metrics_read_histogram(metrics, count, 0, histogram));
		} else {
			expect_number("no histogram", -EINVAL,
				pinion_metrics_read_histogram(metrics, count, 0, histogram));
		}
		expect_number("no further", -ENOENT,
			pinion_metrics_read(metrics, count, field.copies, &value));
		expect_true("is found",
			pinion_metrics_find(metrics, field.name,
				(enum pinion_metrics_scope)field.scope, field.lane) == (int)count);
	}
	expect_number("rows", pin_metrics_page_field_count(), count);
	expect_number("histograms", PIN_TIMINGS, histograms);
	pinion_metrics_close(metrics);
	pinion_runtime_destroy(runtime);
	free(histogram);
}

/* ---- beside busy workers ---- */

/* Grows whenever a worker has published. */
static uint64_t published_sum_ns(const struct pinion_metrics *metrics)
{
	uint64_t sum_ns = 0;

	for (uint32_t worker = 0; worker < BUSY_WORKERS; worker++) {
		sum_ns += worker_value(metrics, "published_ns", worker);
	}
	return sum_ns;
}

static struct pin_atomic_u32 may_stop;

static int go_on(struct pinion_task *task)
{
	return pin_load_acquire_u32(&may_stop) != 0 ? 0 : pinion_task_respawn(runtime, task);
}

/* Of one instant they balance, and of no other. */
static void expect_balance(const struct pinion_metrics *metrics, uint32_t worker)
{
	static const char *const sources[] = {"lifo_polls", "deque_polls", "ready_polls",
		"inbox_polls", "injector_polls", "steal_polls"};
	uint64_t sum = 0;

	for (size_t i = 0; i < PIN_ARRAY_COUNT(sources); i++) {
		sum += worker_value(metrics, sources[i], worker);
	}
	expect_number("sources", (long long)worker_value(metrics, "normal_polls", worker),
		(long long)sum);
	expect_number("tasks",
		(long long)(worker_value(metrics, "tasks_run", worker) +
			worker_value(metrics, "tasks_cancelled", worker)),
		(long long)(sum + worker_value(metrics, "high_polls", worker) +
			worker_value(metrics, "low_polls", worker) +
			worker_value(metrics, "timers_cancelled", worker)));
}

static void expect_buckets(const struct pinion_metrics *metrics, uint32_t number)
{
	static struct pinion_histogram histogram;
	uint64_t count = 0;

	expect_number("read", 0, pinion_metrics_read_histogram(metrics, number, 0, &histogram));
	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		count += histogram.buckets[i];
	}
	expect_number("buckets", (long long)histogram.count, (long long)count);
}

static void check_busy(void)
{
	const char *given = getenv("METRICS_READS");
	unsigned long reads = given == NULL ? READS : strtoul(given, NULL, 10);
	struct pinion_task tasks[2 * BUSY_WORKERS];
	struct pinion_metrics *metrics;
	uint64_t seen = 0;
	uint64_t changes = 0;
	uint64_t torn = 0;
	int run;

	runtime = runtimes_start(BUSY_WORKERS, PINION_IO_AUTO);
	/* As often as can be, for more writes beside reads. */
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(tasks); i++) {
		tasks[i] = (struct pinion_task){.run = go_on};
		expect_number(
			"spawn", 0, pinion_task_spawn_on(runtime, i % BUSY_WORKERS, &tasks[i]));
	}
	metrics = open_own(0);
	run = pinion_metrics_find(metrics, "run", PINION_METRICS_RUNTIME, PINION_LANE_NORMAL);
	expect_true("histogram of runs", run >= 0);
	/* Until the page has changed, however late workers get a CPU. */
	for (unsigned long i = 0; (i < reads || changes < 2) && expect_failure_count == 0; i++) {
		uint64_t now;
		int rc = pinion_metrics_snapshot(metrics);

		if (i >= reads) {
			sched_yield();
		}
		if (rc == -EAGAIN) {
			torn++;
			continue;
		}
		expect_number("snapshot", 0, rc);
		for (uint32_t worker = 0; worker < BUSY_WORKERS; worker++) {
			expect_balance(metrics, worker);
		}
		expect_buckets(metrics, (uint32_t)run);
		now = published_sum_ns(metrics);
		changes += now != seen;
		seen = now;
	}
	expect_true("the page changed meanwhile", changes > 1);
	printf("%lu reads beside %d workers: %llu of a part in writing, %llu with news\n", reads,
		BUSY_WORKERS, (unsigned long long)torn, (unsigned long long)changes);
	pin_store_release_u32(&may_stop, 1);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_metrics_close(metrics);
	pinion_runtime_destroy(runtime);
}

/* ---- what others may do ---- */

static void check_seals(void)
{
	char path[64];
	struct pin_shared_page *page;
	void *memory;
	int fd;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	page = &runtime->shared.metrics->page;
	expect_true("is there", page->memory != NULL);
	expect_true("cannot be cut", ftruncate(page->fd, 0) != 0 && errno == EPERM);
	expect_true(
		"nor grown", ftruncate(page->fd, (off_t)page->bytes + 4096) != 0 && errno == EPERM);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", page->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && (fcntl(fd, F_GET_SEALS) & 0x10) != 0) {
		expect_true("nor written", pwrite(fd, "x", 1, 0) != 1);
		memory = mmap(NULL, page->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		expect_true("nor mapped for that", memory == MAP_FAILED);
	}
	if (fd >= 0) {
		close(fd);
	}
	pinion_runtime_destroy(runtime);
}

/* ---- without ---- */

static void check_without(void)
{
	struct pinion_config config;
	struct pinion_metrics *metrics;
	static struct pinion_histogram histogram;
	struct rlimit limit;
	struct rlimit before;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.metrics_page = 0;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_number("none", -ENOENT, pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics));
	expect_number("but histograms", 0,
		pinion_runtime_get_histogram(
			runtime, PINION_TIMING_RUN, PINION_LANE_NORMAL, &histogram));
	expect_text("no line", "", runtimes_log);
	pinion_runtime_destroy(runtime);

	/* Beyond it a process would be killed. */
	expect_ready("limit", getrlimit(RLIMIT_FSIZE, &before) == 0);
	limit = before;
	limit.rlim_cur = 4096;
	expect_ready("limit", setrlimit(RLIMIT_FSIZE, &limit) == 0);
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	expect_ready("limit", setrlimit(RLIMIT_FSIZE, &before) == 0);
	expect_true("a line", strstr(runtimes_log, "RLIMIT_FSIZE") != NULL);
	expect_number("none", -ENOENT, pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics));
	pinion_runtime_destroy(runtime);
	expect_number(
		"no process", -ESRCH, pinion_metrics_open_pid(0x3fffffff, 0, note, NULL, &metrics));
	expect_true("and says so", strstr(said, "no such process") != NULL);
}

int main(void)
{
	scratch_enter("metrics_page_is_read");
	check_counts();
	check_park();
	check_burst();
	check_quiet_burst();
	check_fields();
	check_busy();
	check_seals();
	check_without();
	scratch_leave();
	return expect_status();
}
