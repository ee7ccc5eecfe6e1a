/* SPDX-License-Identifier: MIT */
/*
 * Goal: another thread or process reads the metrics page of a runtime: it finds
 * it by the process or by a file, sees each worker's counts as the runtime
 * itself has them, and histograms; every snapshot beside busy workers is whole:
 * its sums balance. The page is sealed, of mode 0600 and at most 256 KiB; a
 * child has none of its own, and a reader does not add to those of its process;
 * a page that is none hides no other. A file outlives its process, and says if
 * the runtime has ended; two runtimes with one name get a file each. Where
 * memory cannot be had the runtime goes on, with a line.
 * Method: runtimes of this process and of children. METRICS_READS=n for more
 * reads than 2000.
 */
#include "runtime/api/internal.h"
#include "runtime/observe/metrics_page.h"
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { WORKERS = 3, BUSY_WORKERS = 8, TASKS = 500, READS = 2000 };

static struct pinion_runtime *runtime;
static char said[512];

static void note(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(said, sizeof(said), "%s", message);
}

static struct pinion_metrics *open_own(uint32_t index)
{
	struct pinion_metrics *metrics = NULL;

	said[0] = '\0';
	expect_number("open", 0, pinion_metrics_open_pid(getpid(), index, note, NULL, &metrics));
	expect_text("without a line", "", said);
	return metrics;
}

/* The number of a row, remembered by the address of its name. */
static int find_row(const struct pinion_metrics *metrics, const char *name)
{
	static struct {
		const char *name;
		int number;
	} rows[256];
	size_t slot = (size_t)(uintptr_t)name / 8 % PIN_ARRAY_COUNT(rows);

	if (rows[slot].name != name) {
		rows[slot].name = name;
		rows[slot].number =
			pinion_metrics_find(metrics, name, PINION_METRICS_WORKER, UINT32_MAX);
	}
	return rows[slot].number;
}

static uint64_t worker_value(
	const struct pinion_metrics *metrics, const char *name, uint32_t worker)
{
	uint64_t value = UINT64_MAX;
	int number = find_row(metrics, name);

	expect_true(name, number >= 0);
	expect_number(name, 0, pinion_metrics_read(metrics, (uint32_t)number, worker, &value));
	return value;
}

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
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
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
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_number("has ended", 1, info.has_ended);
	pinion_metrics_close(metrics);
	expect_number(
		"is gone", -ENOENT, pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics));
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
		expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
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
			expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
		} while (worker_value(metrics, "tasks_run", 0) != 2 * i + 2);
	}
	pinion_metrics_close(metrics);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
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
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
	for (; pinion_metrics_get_field(metrics, count, &field, sizeof(field)) == 0; count++) {
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
	for (unsigned long i = 0; i < reads && expect_failure_count == 0; i++) {
		uint64_t now;
		int rc = pinion_metrics_snapshot(metrics);

		if (rc == -EAGAIN) {
			torn++;
			continue;
		}
		expect_number("snapshot", 0, rc);
		for (uint32_t worker = 0; worker < BUSY_WORKERS; worker++) {
			expect_balance(metrics, worker);
		}
		expect_buckets(metrics, (uint32_t)run);
		now = worker_value(metrics, "published_ns", 0);
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

/* ---- among the descriptors of a process ---- */

static const struct pin_page_header *own_header(void)
{
	return (const struct pin_page_header *)(const void *)runtime->shared.metrics->words;
}

static uint64_t created_ns(uint32_t index)
{
	struct pinion_metrics *metrics = open_own(index);
	struct pinion_metrics_info info;

	pinion_metrics_get_info(metrics, &info, sizeof(info));
	pinion_metrics_close(metrics);
	return info.created_ns;
}

static void expect_pages(uint32_t count)
{
	struct pinion_metrics *metrics;

	expect_number("no more pages", -ENOENT,
		pinion_metrics_open_pid(getpid(), count, note, NULL, &metrics));
	expect_true("the last of them",
		count == 0 || created_ns(count - 1) == own_header()->created_ns);
}

/* A page that is none has its index, and those after it are found. */
static void check_bad_page(void)
{
	int bad = memfd_create(PIN_SHARED_PAGE_NAME, MFD_CLOEXEC);
	struct pinion_metrics *metrics;

	expect_ready("memfd", bad >= 0 && ftruncate(bad, 8192) == 0);
	expect_ready("memfd", pwrite(bad, "nonsense", 8, 0) == 8);
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	expect_number(
		"is none", -EPROTO, pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics));
	expect_pages(2);
	close(bad);
	expect_pages(1);
	pinion_runtime_destroy(runtime);
}

/* A reader's descriptors are no pages of its own, nor a second time its own. */
static void check_readers(void)
{
	struct pinion_metrics *first;
	struct pinion_metrics *second;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	first = open_own(0);
	second = open_own(0);
	expect_pages(1);
	pinion_metrics_close(first);
	pinion_metrics_close(second);
	pinion_runtime_destroy(runtime);
}

static int inspect_child(void *arg)
{
	struct pinion_metrics *metrics;
	(void)arg;
	/* Its parent's page is not its own. */
	expect_number("none in a child", -ENOENT,
		pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics));
	return expect_status();
}

/* Two processes of one tick would look the same: the child begins later. */
static void await_next_tick(void)
{
	uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;

	do {
		clock_gettime(CLOCK_BOOTTIME, &now);
	} while ((uint64_t)now.tv_sec * ticks_per_s +
			(uint64_t)now.tv_nsec / (1000000000 / ticks_per_s) <=
		pin_process_start(0) + 1);
}

static void check_child(void)
{
	pid_t child;
	int status = 0;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	await_next_tick();
	child = fork();
	if (child == 0) {
		_exit(inspect_child(NULL));
	}
	expect_ready("fork", child > 0 && waitpid(child, &status, 0) == child);
	expect_number("child", 0, status);
	pinion_metrics_close(open_own(0));
	pinion_runtime_destroy(runtime);
}

/* ---- a file ---- */

static void start_with_file(const char *path)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.metrics_file = path;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
}

static void die_with_file(const char *path)
{
	struct pinion_task task = {.run = nothing};

	start_with_file(path);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	for (;;) {
		struct pinion_worker_info info;

		pinion_worker_get_info(runtime, 0, &info, sizeof(info));
		if (info.place == PINION_WORKER_PARKED_FUTEX &&
			runtimes_counters(runtime).tasks_run == 1) {
			raise(SIGKILL);
		}
		sched_yield();
	}
}

/* A file that has the name already: a user's is not replaced. */
static void check_taken_names(void)
{
	char path[512];
	char folder[400];
	struct pinion_config config;
	struct stat status;
	char kept[8] = {0};
	int fd;

	expect_ready("folder", getcwd(folder, sizeof(folder)) != NULL);
	snprintf(path, sizeof(path), "%s/taken", folder);
	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.metrics_file = path;
	for (int kind = 0; kind < 5; kind++) {
		struct pinion_runtime *writer;
		ino_t before;
		bool is_left = kind < 3;

		unlink(path);
		fd = kind == 1 ? -1 : open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
		switch (kind) {
		case 0:
			expect_ready("text", write(fd, "a user's", 8) == 8);
			break;
		case 1:
			expect_ready("pipe", mkfifo(path, 0644) == 0);
			break;
		case 2:
			expect_ready("short", write(fd, "pinionM", 7) == 7);
			break;
		case 3: /* empty, as mktemp(1) makes it */
			break;
		default:
			expect_ready("page", write(fd, "pinionMP", 8) == 8);
			break;
		}
		expect_ready("stat", lstat(path, &status) == 0);
		before = status.st_ino;
		expect_number("create", 0, pinion_runtime_create(&config, &writer));
		pinion_runtime_destroy(writer);
		expect_ready("stat", lstat(path, &status) == 0);
		expect_true("left, or replaced", is_left == (status.st_ino == before));
		if (kind == 0) {
			expect_ready("read", pread(fd, kept, 8, 0) == 8);
			expect_true("its text", memcmp(kept, "a user's", 8) == 0);
			expect_number("and no more", 8, (long long)status.st_size);
		}
		if (fd >= 0) {
			close(fd);
		}
	}
	expect_number("back", 0, unlink(path));
	runtimes_tuning.metrics_file = NULL;
}

static void check_file(void)
{
	char path[512];
	char folder[400];
	struct pinion_metrics *metrics = NULL;
	struct pinion_metrics_info info;
	struct stat status;
	pid_t child;
	int end = 0;

	expect_ready("folder", getcwd(folder, sizeof(folder)) != NULL);
	snprintf(path, sizeof(path), "%s/page", folder);
	child = fork();
	if (child == 0) {
		die_with_file(path);
	}
	expect_ready("child", child > 0 && waitpid(child, &end, 0) == child);
	expect_true("was killed", WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL);
	expect_number("its page", 0, pinion_metrics_open(path, note, NULL, &metrics));
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_number("whose", child, (long long)info.pid);
	expect_number("did not end", 0, info.has_ended);
	expect_true("began", info.process_start != 0);
	pinion_metrics_close(metrics);
	expect_ready("stat", stat(path, &status) == 0);
	expect_number("mode", 0600, status.st_mode & 07777);

	start_with_file(path);
	expect_text("without a line", "", runtimes_log);
	expect_pages(1);
	pinion_runtime_destroy(runtime);
	expect_number("its page", 0, pinion_metrics_open(path, note, NULL, &metrics));
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_number("another", getpid(), (long long)info.pid);
	expect_number("has ended", 1, info.has_ended);
	pinion_metrics_close(metrics);
	unlink(path);
	expect_number("nothing else is left", 0, rmdir(folder) != 0 && errno == ENOTEMPTY);
	expect_ready("again", mkdir(folder, 0700) == 0 && chdir(folder) == 0);

	snprintf(path, sizeof(path), "%s/none/page", folder);
	start_with_file(path);
	expect_true("a line", strstr(runtimes_log, "metrics_file") != NULL);
	pinion_runtime_destroy(runtime);
}

static uint64_t created_in_file(const char *path)
{
	struct pinion_metrics *metrics;
	struct pinion_metrics_info info;

	expect_number(path, 0, pinion_metrics_open(path, note, NULL, &metrics));
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	pinion_metrics_close(metrics);
	return info.created_ns;
}

/* The second has a name of its own, until the first has ended. */
static void check_shared_name(void)
{
	struct pinion_runtime *first;
	char path[512];
	char folder[400];
	uint64_t first_ns;
	uint64_t second_ns;

	expect_ready("folder", getcwd(folder, sizeof(folder)) != NULL);
	snprintf(path, sizeof(path), "%s/shared", folder);
	start_with_file(path);
	first = runtime;
	first_ns = own_header()->created_ns;
	start_with_file(path);
	second_ns = own_header()->created_ns;
	expect_true("a line", strstr(runtimes_log, "this runtime has ") != NULL);
	expect_true("two", first_ns != second_ns);
	expect_true("the first has its name", created_in_file("shared") == first_ns);
	expect_true("the second has another", created_in_file("shared.1") == second_ns);
	expect_pages(2);
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(first);
	start_with_file(path);
	expect_true("the name is free", created_in_file("shared") == own_header()->created_ns);
	expect_true("the other is left", created_in_file("shared.1") == second_ns);
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
	check_burst();
	check_quiet_burst();
	check_fields();
	check_busy();
	check_seals();
	check_bad_page();
	check_readers();
	check_child();
	check_file();
	check_taken_names();
	check_shared_name();
	check_without();
	scratch_leave();
	return expect_status();
}
