/* SPDX-License-Identifier: MIT */
/*
 * Goal: with the default of 100 ms, a task that sleeps for 300 ms, a task that
 * reads a file of a slow device, a worker that does so for a request, requests
 * that a slow device does not complete, and a lane that starves are each named
 * by one line and counted: the task by its function, the reads with file and
 * offset, the lane with its remedy. The one worker of a runtime is watched,
 * too. Tasks that end cause no line. WP-26, WP-35, AS-38, W46.
 * Method: tests/support/fuses.h, with files that are answered when the test
 * says so: when it has seen the line, so that no time is asserted. The lane
 * starves beside tasks of another that spawn their next, and are not answered
 * by a floor. A line for a worker that the machine holds up is another's, and
 * does not count.
 */
#include "tests/support/fuses.h"
#include "tests/support/metrics.h"
#include "tests/support/requests.h"

#include "runtime/worker/stall.h"
#include "runtime/worker/worker.h"

#include <sys/sysmacros.h>

enum {
	SIZE = 1 << 16,
	OFFSET = 8192,
	TASK_MS = 300,
	LIMIT_SECONDS = 60,
	FILES = 2,
	HEALTHY_TASKS = 10000,
};

/* ---- lines ---- */

static char lines[1 << 16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* lines */

static void keep(void *arg, enum pinion_log_level level, const char *message)
{
	size_t length;

	(void)arg;
	if (level > PINION_LOG_WARN) {
		return;
	}
	pthread_mutex_lock(&lock);
	length = strlen(lines);
	snprintf(lines + length, sizeof(lines) - length, "%s\n", message);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* Lines that have both. */
static uint32_t count_locked(const char *first, const char *second)
{
	uint32_t found = 0;

	for (const char *line = lines; *line != '\0'; line += strcspn(line, "\n") + 1) {
		size_t length = strcspn(line, "\n");
		char *copy = strndup(line, length);

		found += strstr(copy, first) != NULL && strstr(copy, second) != NULL;
		free(copy);
	}
	return found;
}

static void await_line(const char *first, const char *second)
{
	pthread_mutex_lock(&lock);
	while (count_locked(first, second) == 0) {
		pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
}

static void expect_one(const char *first, const char *second)
{
	pthread_mutex_lock(&lock);
	if (count_locked(first, second) != 1) {
		printf("%s", lines);
	}
	expect_number(second, 1, count_locked(first, second));
	pthread_mutex_unlock(&lock);
}

/* With the stall watch as it is by default. */
static struct pinion_runtime *start(uint32_t worker_count, uint32_t io_level)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;
	struct pinion_tuning defaults;

	pinion_tuning_init(&defaults);
	expect_number("default", 100, (long long)defaults.stall_ms);
	runtimes_config(&config, worker_count, io_level);
	runtimes_tuning.stall_ms = defaults.stall_ms;
	runtimes_tuning.lane_floor = 0;
	config.log = keep;
	lines[0] = '\0';
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	return runtime;
}

/* ---- the slow device ---- */

static bool is_cached(uint32_t file)
{
	(void)file;
	return false;
}

/* Answered when the folder of the test has a file called "go". */
static void serve_read(uint64_t unique, uint32_t file, uint64_t offset, size_t length)
{
	static const uint8_t bytes[SIZE];
	const struct timespec pause = {.tv_nsec = 1000 * 1000};

	(void)file;
	(void)offset;
	while (access("go", F_OK) != 0) {
		nanosleep(&pause, NULL);
	}
	fuses_answer(unique, 0, bytes, length);
}

static const struct fuses served = {
	.file_count = FILES, .file_bytes = SIZE, .is_cached = is_cached, .read = serve_read};

static void let_go(void)
{
	int fd = open("go", O_CREAT | O_WRONLY, 0600);

	expect_ready("go", fd >= 0 && close(fd) == 0);
}

/* ---- tasks ---- */

static struct pin_atomic_u32 ended;
static int slow_fd = -1;

static int nap(struct pinion_task *task)
{
	const struct timespec pause = {.tv_nsec = TASK_MS * 1000 * 1000};

	(void)task;
	nanosleep(&pause, NULL);
	tasks_signal(&ended);
	return 0;
}

static int read_slowly(struct pinion_task *task)
{
	static uint8_t bytes[4096];

	(void)task;
	expect_number("read", sizeof(bytes), pread(slow_fd, bytes, sizeof(bytes), OFFSET));
	tasks_signal(&ended);
	return 0;
}

/* By the watchdog: the only worker is in the task. */
static void await_on_page(const char *name, uint64_t least, uint64_t most)
{
	struct pinion_metrics *metrics = open_own(0);
	int row = pinion_metrics_find(metrics, name, PINION_METRICS_RUNTIME, UINT32_MAX);
	uint64_t value;

	expect_ready(name, row >= 0);
	do {
		sched_yield();
		(void)pinion_metrics_snapshot(metrics);
		expect_number(name, 0, pinion_metrics_read(metrics, (uint32_t)row, 0, &value));
	} while (value < least || value > most);
	pinion_metrics_close(metrics);
}

static void run_one(struct pinion_runtime *runtime, int (*run)(struct pinion_task *task),
	const char *name, const char *cause)
{
	struct pinion_task task = {.run = run};
	char where[192];

	pin_store_release_u32(&ended, 0);
	snprintf(where, sizeof(where), "task %s", name);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	await_line(where, cause);
	await_on_page("stalls", 1, UINT64_MAX);
	if (run != nap) {
		/* It lasts until it is let go. */
		await_on_page("tasks_stalled", 1, 1);
	}
	let_go();
	tasks_await(&ended, 1);
	await_on_page("tasks_stalled", 0, 0);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_one(where, "without progress");
	expect_true("counted", runtimes_counters(runtime).stalls >= 1);
	expect_number("no lane", 0, (long long)runtimes_counters(runtime).starved_lanes);
	pinion_runtime_destroy(runtime);
}

/* As in messages. */
static const char *name_of(int (*run)(struct pinion_task *task))
{
	static char name[PIN_SYMBOL_BYTES];

	pin_running_describe((pin_fault_fn)run, name);
	return name;
}

static void check_task(void)
{
	run_one(start(1, PINION_IO_FALLBACK), nap, name_of(nap), "it waits in clock_nanosleep");
}

static void check_blocking_read(void)
{
	char cause[384];

	slow_fd = open("mnt/0", O_RDONLY);
	expect_ready("open", slow_fd >= 0);
	snprintf(cause, sizeof(cause), "it waits in pread64 of %s/mnt/0 at offset %d", scratch_path,
		OFFSET);
	run_one(start(2, PINION_IO_FALLBACK), read_slowly, name_of(read_slowly), cause);
	close(slow_fd);
	expect_ready("go", unlink("go") == 0);
}

/* A FUSE file is read by plain calls, with rings or without. */
static void check_called_read(uint32_t io_level)
{
	struct pinion_runtime *runtime = start(1, io_level);
	static uint8_t bytes[4096] __attribute__((aligned(4096)));
	struct requests_one one;
	struct pinion_file file;
	char place[384];

	expect_number("open", 0, pinion_file_open(&file, "mnt/1", PINION_DIRECT_NEVER));
	requests_begin_transfer(&one, PINION_OP_READ, &file, bytes, OFFSET, sizeof(bytes));
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	snprintf(place, sizeof(place), "it waits in pread64 of %s/mnt/1 at offset %d", scratch_path,
		OFFSET);
	await_line("worker 0: task ", place);
	let_go();
	expect_number("read", sizeof(bytes), requests_await(&one));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_one("worker 0: task ", "mnt/1");
	expect_number("counted", 0, (long long)runtimes_counters(runtime).device_stalls);
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
	expect_ready("go", unlink("go") == 0);
}

/*
 * Requests in a ring, while no worker is in a task: of a pipe that claims to be
 * a file of a device.
 */
static void check_device(void)
{
	struct pinion_runtime *runtime = start(2, PINION_IO_AUTO);
	static uint8_t bytes[1];
	struct pinion_runtime_info info;
	struct requests_one one;
	struct pinion_file file;
	int ends[2];

	pinion_runtime_get_info(runtime, &info, sizeof(info));
	if (info.uses_ring == 0) {
		printf("no requests without rings: each read is in a task\n");
		pinion_runtime_destroy(runtime);
		return;
	}
	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	file.device = makedev(200, 7);
	requests_begin_transfer(&one, PINION_OP_READ, &file, bytes, 0, sizeof(bytes));
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	await_line("device 200:7: none of its requests has completed for more than 1000 ms",
		"the oldest is a read of pipe:");
	expect_ready("write", write(ends[1], "x", 1) == 1);
	expect_number("read", sizeof(bytes), requests_await(&one));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_one("device ", "none of its requests has completed");
	expect_number("counted", 1, (long long)runtimes_counters(runtime).device_stalls);
	pinion_runtime_destroy(runtime);
	close(ends[0]);
	close(ends[1]);
}

/* ---- the lane ---- */

static struct pinion_runtime *lane_runtime;
static struct pin_atomic_u32 may_end;

static int spawn_next(struct pinion_task *task)
{
	if (pin_load_acquire_u32(&may_end) == 0) {
		expect_number("next", 0, pinion_task_spawn(lane_runtime, task));
	} else {
		tasks_signal(&ended);
	}
	return 0;
}

static int begin_low(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&ended);
	return 0;
}

static void check_lane(void)
{
	struct pinion_task high = {.run = spawn_next, .flags = PINION_TASK_HIGH};
	struct pinion_task low = {.run = begin_low, .flags = PINION_TASK_LOW};

	lane_runtime = start(1, PINION_IO_FALLBACK);
	pin_store_release_u32(&ended, 0);
	expect_number("spawn", 0, pinion_task_spawn(lane_runtime, &high));
	expect_number("spawn", 0, pinion_task_spawn(lane_runtime, &low));
	await_line("lane low: 1 tasks wait and none has begun for more than 1000 ms",
		"lane_floor is 0");
	pin_store_release_u32(&may_end, 1);
	tasks_await(&ended, 2);
	expect_number("drain", 0, pinion_runtime_drain(lane_runtime));
	expect_one("lane low", "lane_floor is 0");
	expect_number("counted", 1, (long long)runtimes_counters(lane_runtime).starved_lanes);
	pinion_runtime_destroy(lane_runtime);
}

/* ---- none ---- */

static int spawn_some(struct pinion_task *task)
{
	static uint32_t left = HEALTHY_TASKS;

	if (--left > 0) {
		expect_number("next", 0, pinion_task_spawn(lane_runtime, task));
	} else {
		tasks_signal(&ended);
	}
	return 0;
}

static void check_healthy(void)
{
	struct pinion_task task = {.run = spawn_some};

	lane_runtime = start(2, PINION_IO_AUTO);
	pin_store_release_u32(&ended, 0);
	expect_number("spawn", 0, pinion_task_spawn(lane_runtime, &task));
	tasks_await(&ended, 1);
	expect_number("drain", 0, pinion_runtime_drain(lane_runtime));
	expect_number(lines, 0, (long long)strlen(lines));
	expect_number("lanes", 0, (long long)runtimes_counters(lane_runtime).starved_lanes);
	expect_number("devices", 0, (long long)runtimes_counters(lane_runtime).device_stalls);
	pinion_runtime_destroy(lane_runtime);
}

int main(void)
{
	pid_t server;

	runtimes_watchdog(LIMIT_SECONDS);
	if (!fuses_may_mount()) {
		return EXPECT_SKIPPED;
	}
	scratch_enter("stalls_are_named_once");
	check_healthy();
	check_task();
	check_lane();
	check_device();
	expect_ready("go", unlink("go") == 0);
	expect_ready("mnt", mkdir("mnt", 0755) == 0);
	server = fuses_start(&served);
	check_blocking_read();
	check_called_read(PINION_IO_FALLBACK);
	check_called_read(PINION_IO_AUTO);
	fuses_end(server);
	scratch_leave();
	return expect_status();
}
