/* SPDX-License-Identifier: MIT */
/*
 * Goal: where memory for more buffers, or its registration, is refused while a
 * runtime works, requests go on with the memory there is, one line names the
 * limit, and nothing is killed: no pages, an error of a ring's table,
 * RLIMIT_MEMLOCK lowered between two steps, a memory cgroup's limit lowered
 * between two steps. Method: each starts with one step that went well, and
 * reads a file into each buffer. The cgroup is the caller's, who names the file
 * of its limit in TEST_MEMORY_LIMIT: tests/root/limits.bats, and a guest of
 * tests/vm with cgroup v2. RLIMIT_MEMLOCK is for another user than root, in a
 * child. What a limit leaves to the last byte, and how long one is trusted, is
 * of limits that the test makes up, on a clock set by hand.
 */
#include "runtime/api/internal.h"
#include "runtime/host/cgroup.h"
#include "runtime/host/numa.h"
#include "tests/support/arenas.h"
#include "tests/support/child.h"
#include "tests/support/clock.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"
#include "tests/support/users.h"

#include <linux/io_uring.h>

enum {
	LIMIT_SECONDS = 60,
	NOBODY = 65534,
	MIB = 1 << 20,
	COUNT = 6, /* steps of 2 buffers of 1 MiB */
	STEP = 2,
	LONG_MS = 3600 * 1000,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_buffer buffers[COUNT];
static bool has_no_pages;

int __real_pin_pages_populate(void *memory, size_t bytes);
int __wrap_pin_pages_populate(void *memory, size_t bytes);
int __wrap_pin_pages_populate(void *memory, size_t bytes)
{
	return has_no_pages ? -ENOMEM : __real_pin_pages_populate(memory, bytes);
}

/* A step of the small buffers of a runtime here, which are all of them. */
enum { SMALL = 4096, SMALL_STEP_BYTES = 8 * SMALL };

/* As free_bytes, of which an eighth is for others. */
static bool is_made_up;
static uint64_t made_up_free;
static uint32_t limit_reads;

void __real_pin_memlimit_find(const char *root, struct pin_memlimit *out_limit);
void __wrap_pin_memlimit_find(const char *root, struct pin_memlimit *out_limit);
void __wrap_pin_memlimit_find(const char *root, struct pin_memlimit *out_limit)
{
	if (!is_made_up) {
		__real_pin_memlimit_find(root, out_limit);
		return;
	}
	limit_reads++;
	*out_limit = (struct pin_memlimit){
		.limit_bytes = made_up_free == UINT64_MAX ? UINT64_MAX : UINT64_C(64) << 20,
		.free_bytes = made_up_free,
		.path = "/sys/fs/cgroup/app.slice/memory.max",
	};
}

static void start(void)
{
	struct pinion_config config;

	has_no_pages = false;
	is_made_up = false;
	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.buffer_rest_ms = LONG_MS;
	config.buffer_bytes = MIB;
	config.buffer_count = COUNT;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_ready(runtimes_log, runtime != NULL);
}

/* ---- use ---- */

/* Buffers from one number to another. */
struct range {
	uint32_t from;
	uint32_t to;
	int expected; /* what the acquire of each says */
};

static void take(void *arg)
{
	const struct range *range = arg;

	for (uint32_t i = range->from; i < range->to; i++) {
		expect_number("acquire", range->expected,
			pinion_buffer_acquire(runtime, MIB, &buffers[i]));
	}
}

static void give(void *arg)
{
	const struct range *range = arg;

	for (uint32_t i = range->from; i < range->to; i++) {
		/* A refused growth is reported, and no misuse as well. */
		if (buffers[i].bytes != NULL) {
			pinion_buffer_release(runtime, &buffers[i]);
		}
	}
}

static void on_worker(void (*body)(void *arg), uint32_t from, uint32_t to, int expected)
{
	struct range range = {.from = from, .to = to, .expected = expected};

	users_on(runtime, 0, body, &range);
}

/* The file has another byte in each MiB. */
static void read_into(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		memset(buffers[i].bytes, 0, MIB);
		expect_number("read", MIB,
			requests_transfer(runtime, PINION_OP_READ, &file, buffers[i].bytes,
				(uint64_t)(i % STEP) * MIB, MIB));
		expect_number("first byte", i % STEP + 1, buffers[i].bytes[0]);
		expect_number("last byte", i % STEP + 1, buffers[i].bytes[MIB - 1]);
	}
}

static void expect_line(const char *words)
{
	const char *line = strstr(runtimes_log, words);

	if (line == NULL) {
		expect_text("a line", words, runtimes_log);
		return;
	}
	expect_true("one line", strstr(line + 1, words) == NULL);
}

/* All were acquired; those of the first step alone are registered. */
static void expect_unregistered(void)
{
	expect_number("memory", COUNT * MIB, (long long)runtimes_info(runtime).populated_bytes);
	expect_number("registered", STEP * MIB, (long long)runtimes_info(runtime).registered_bytes);
	read_into(0, STEP);
	expect_number(
		"registered reads", 0, (long long)runtimes_counters(runtime).unregistered_reads);
	read_into(STEP, COUNT);
	expect_number(
		"others", COUNT - STEP, (long long)runtimes_counters(runtime).unregistered_reads);
	on_worker(give, 0, COUNT, 0);
}

/* ---- no pages ---- */

static void check_pages(void)
{
	start();
	on_worker(take, 0, STEP, 0);
	has_no_pages = true;
	/* A release helps, so it is no -ENOMEM. */
	on_worker(take, STEP, STEP + 1, -EAGAIN);
	on_worker(take, STEP, STEP + 1, -EAGAIN);
	expect_number("memory", STEP * MIB, (long long)runtimes_info(runtime).populated_bytes);
	expect_line("no memory for more buffers of worker 0, which wants 2048 KiB: "
		    "Cannot allocate memory; it goes on with those that it has");
	read_into(0, STEP);
	on_worker(give, 0, 1, 0);
	on_worker(take, 0, 1, 0);
	has_no_pages = false;
	on_worker(take, STEP, COUNT, 0);
	expect_number("all", COUNT * MIB, (long long)runtimes_info(runtime).populated_bytes);
	read_into(0, COUNT);
	on_worker(give, 0, COUNT, 0);
	pinion_runtime_destroy(runtime);
}

/* ---- no entry in the ring's table ---- */

static struct pin_host refusing;
static int refusal;

static int refuse_updates(int fd, uint32_t opcode, const void *arg, uint32_t count)
{
	return opcode == IORING_REGISTER_BUFFERS_UPDATE
		? refusal
		: pin_host_linux.ring_register(fd, opcode, arg, count);
}

static void refuse_from_now_on(void *arg)
{
	(void)arg;
	refusing = pin_host_linux;
	refusing.ring_register = refuse_updates;
	pin_worker_current()->ring.host = &refusing;
}

static void check_registration(int error, const char *words)
{
	start();
	if (!arenas_may_register(runtime)) {
		pinion_runtime_destroy(runtime);
		return;
	}
	on_worker(take, 0, STEP, 0);
	refusal = error;
	users_on(runtime, 0, refuse_from_now_on, NULL);
	on_worker(take, STEP, COUNT, 0);
	expect_line("not all buffers are registered with io_uring");
	expect_line(words);
	expect_unregistered();
	pinion_runtime_destroy(runtime);
}

/* ---- RLIMIT_MEMLOCK ---- */

static void limit_locked(uint64_t bytes)
{
	struct rlimit limit;

	expect_ready("getrlimit", getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	limit.rlim_cur = bytes;
	expect_ready("setrlimit", setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
}

static int live_with_less_locked(void *arg)
{
	(void)arg;
	runtimes_watchdog(LIMIT_SECONDS);
	/* Root may lock what it likes. */
	expect_ready("another user", getuid() != 0 || (setgid(NOBODY) == 0 && setuid(NOBODY) == 0));
	start();
	on_worker(take, 0, STEP, 0);
	if (!arenas_may_register(runtime) ||
		runtimes_info(runtime).registered_bytes != STEP * MIB) {
		puts("nothing is registered, so no limit is met");
		return expect_status();
	}
	limit_locked(64 << 10);
	on_worker(take, STEP, COUNT, 0);
	expect_line("the locked-memory limit is 64 KiB, raise it with `ulimit -l ");
	expect_unregistered();
	pinion_runtime_destroy(runtime);
	return expect_status();
}

/* ---- a memory cgroup ---- */

static void write_limit(const char *path, uint64_t bytes)
{
	FILE *stream = fopen(path, "we");

	expect_ready(path,
		stream != NULL && fprintf(stream, "%llu\n", (unsigned long long)bytes) > 0 &&
			fclose(stream) == 0);
}

/* Processes of the group that the kernel has killed. */
static long long killed_in(const char *limit_path)
{
	static const char *const names[] = {"memory.events", "memory.oom_control"};
	long long killed = -1;

	for (size_t i = 0; killed < 0 && i < PIN_ARRAY_COUNT(names); i++) {
		char path[1024];
		char line[128];
		FILE *stream;

		snprintf(path, sizeof(path), "%.*s/%s",
			(int)(strrchr(limit_path, '/') - limit_path), limit_path, names[i]);
		stream = fopen(path, "re");
		while (stream != NULL && fgets(line, sizeof(line), stream) != NULL) {
			(void)sscanf(line, "oom_kill %lld", &killed);
		}
		if (stream != NULL) {
			fclose(stream);
		}
	}
	return killed;
}

/* As after the time for which a worker trusts it. */
static void forget_refusal(void *arg)
{
	(void)arg;
	pin_worker_current()->growth.refused_ns = 0;
}

/*
 * Lowers the limit until `bytes` are left. The kernel charges in batches, and
 * returns the rest of them when a limit is lowered: hence again.
 */
static uint64_t leave_free(const char *path, uint64_t bytes)
{
	static struct pin_memlimit limit;
	uint64_t before = 0;

	for (int i = 0; i < 3; i++) {
		pin_memlimit_find("", &limit);
		expect_text("the group's limit", path, limit.path);
		before = i == 0 ? limit.limit_bytes : before;
		write_limit(path, limit.limit_bytes - limit.free_bytes + bytes);
	}
	return before;
}

static void check_memory(const char *path)
{
	uint64_t before;

	start();
	on_worker(take, 0, STEP, 0);
	/* A step is left, an eighth of which is for others. */
	before = leave_free(path, STEP * MIB);
	on_worker(take, STEP, STEP + 1, -EAGAIN);
	on_worker(take, STEP, STEP + 1, -EAGAIN);
	expect_number("memory", STEP * MIB, (long long)runtimes_info(runtime).populated_bytes);
	expect_line("no memory for more buffers of worker 0, which wants 2048 KiB");
	expect_line(path);
	read_into(0, STEP);
	on_worker(give, 0, 1, 0);
	on_worker(take, 0, 1, 0);
	write_limit(path, before);
	users_on(runtime, 0, forget_refusal, NULL);
	on_worker(take, STEP, COUNT, 0);
	expect_number("all", COUNT * MIB, (long long)runtimes_info(runtime).populated_bytes);
	read_into(0, COUNT);
	on_worker(give, 0, COUNT, 0);
	expect_number("killed", 0, killed_in(path));
	pinion_runtime_destroy(runtime);
}

/* ---- a limit to the byte, and the time for which it is trusted ---- */

/* The least of which seven eighths are a step of large buffers. */
#define FREE_FOR_STEP (UINT64_C(2) * MIB * 8 / 7)
#define TRUST_NS (UINT64_C(100) * 1000 * 1000)

/* On the worker: the time goes on, as it sees at the begin of a turn. */
static void go_on(void *arg)
{
	struct pin_worker *worker = pin_worker_current();

	clock_own_ns += *(uint64_t *)arg;
	worker->now_ns = clock_own_ns;
}

static void go_on_by(uint64_t elapsed_ns)
{
	users_on(runtime, 0, go_on, &elapsed_ns);
}

static void take_small(void *arg)
{
	struct pinion_buffer buffer;

	expect_number("small", *(int *)arg, pinion_buffer_acquire(runtime, SMALL, &buffer));
	if (*(int *)arg == 0) {
		pinion_buffer_release(runtime, &buffer);
	}
}

static void start_made_up(uint64_t free_bytes)
{
	start();
	clock_stop(runtime, 0);
	made_up_free = free_bytes;
	limit_reads = 0;
	is_made_up = true;
}

static void end_made_up(uint32_t count)
{
	on_worker(give, 0, count, 0);
	is_made_up = false;
	pinion_runtime_destroy(runtime);
}

/* Each step that is taken reads the limit. */
static void check_last_byte(void)
{
	start_made_up(FREE_FOR_STEP);
	on_worker(take, 0, STEP, 0);
	on_worker(take, STEP, 2 * STEP, 0);
	expect_number("reads", 2, limit_reads);
	expect_text("no line", "", runtimes_log);
	made_up_free = FREE_FOR_STEP - 1;
	on_worker(take, 2 * STEP, 2 * STEP + 1, -EAGAIN);
	expect_number("reads", 3, limit_reads);
	expect_number("memory", 2 * STEP * MIB, (long long)runtimes_info(runtime).populated_bytes);
	expect_line("/sys/fs/cgroup/app.slice/memory.max is 64 MiB, of which 2 are free");
	end_made_up(2 * STEP);
}

/* Of as much or more; less may fit. */
static void check_refusal_is_trusted(void)
{
	int fits = 0;

	start_made_up(FREE_FOR_STEP - 1);
	on_worker(take, 0, 1, -ENOMEM);
	made_up_free = UINT64_MAX;
	go_on_by(TRUST_NS - 1);
	on_worker(take, 0, 1, -ENOMEM);
	expect_number("the refusal is trusted", 1, limit_reads);
	made_up_free = SMALL_STEP_BYTES * 2;
	users_on(runtime, 0, take_small, &fits);
	expect_number("not for less", 2, limit_reads);
	made_up_free = UINT64_MAX;
	go_on_by(1);
	on_worker(take, 0, STEP, 0);
	expect_number("nor any longer", 3, limit_reads);
	expect_line("no memory for more buffers of worker 0, which wants 2048 KiB");
	end_made_up(STEP);
}

static void check_freedom_is_trusted(void)
{
	start_made_up(UINT64_MAX);
	on_worker(take, 0, STEP, 0);
	expect_number("read once", 1, limit_reads);
	made_up_free = 0;
	go_on_by(TRUST_NS - 1);
	on_worker(take, STEP, 2 * STEP, 0);
	expect_number("it is trusted", 1, limit_reads);
	go_on_by(1);
	on_worker(take, 2 * STEP, 2 * STEP + 1, -EAGAIN);
	expect_number("and no longer", 2, limit_reads);
	end_made_up(2 * STEP);
}

static void make_file(void)
{
	static uint8_t bytes[STEP * MIB];
	FILE *stream = fopen("file", "we");

	memset(bytes, 1, MIB);
	memset(bytes + MIB, 2, MIB);
	expect_ready("file", stream != NULL && fwrite(bytes, sizeof(bytes), 1, stream) == 1);
	fclose(stream);
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	/* The page cache would answer before a ring is asked. */
	file.cached_percent = 0;
}

int main(void)
{
	const char *limit_path = getenv("TEST_MEMORY_LIMIT");

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("growth_is_refused");
	make_file();
	if (pin_pages_hugetlb_free() > 0) {
		puts("skipped: huge pages are set aside, so nothing may grow");
		return EXPECT_SKIPPED;
	}
	/* In a child: it needs a process with one thread. */
	expect_number(
		"locked memory", 0, child_code(child_run(live_with_less_locked, NULL, NULL, 0)));
	check_pages();
	check_registration(-ENOMEM, "the locked-memory limit is ");
	check_registration(-EINVAL, "io_uring: Invalid argument (reads into the rest");
	check_last_byte();
	check_refusal_is_trusted();
	check_freedom_is_trusted();
	if (limit_path != NULL) {
		check_memory(limit_path);
	}
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
