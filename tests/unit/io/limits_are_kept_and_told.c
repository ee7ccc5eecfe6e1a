/* SPDX-License-Identifier: MIT */
/*
 * Goal: limits of a runtime and of a device are taken, also from the
 * configuration, refused, kept and reported: workers look at their accounts;
 * no more requests are in a device than its depth, by its statistics;
 * a rate holds back the excess until it is lifted or the request is cancelled,
 * and files have turns. Each error of pinion/limit.h. G2.
 * Method: reads of a file of our own, from outside; a rate of one byte in a
 * second holds back those that must wait, so nothing depends on a time. And
 * rates that are changed while it runs have to show in the time that all reads
 * take: less than the documented bound cannot be, however slow the machine. On
 * a clock set by hand a read takes exactly as long as `slow_ns`, or longer.
 */
#include "runtime/base/base.h"
#include "runtime/io/device.h"
#include "runtime/task/entry.h"
#include "runtime/worker/state.h"
#include "tests/support/clock.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/pinion.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READS = 64, BLOCK = 4096, WORKERS = 2, LIMIT_SECONDS = 120 };

static struct pinion_runtime *runtime;
static struct pinion_file file;
static uint8_t memory[READS][BLOCK] __attribute__((aligned(BLOCK)));
static struct pinion_request reads[READS];
static int ended;

static int note_end(struct pinion_task *task)
{
	(void)task;
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void await_ends(int count)
{
	while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < count) {
		sched_yield();
	}
}

static void submit(uint32_t count)
{
	__atomic_store_n(&ended, 0, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < count; i++) {
		reads[i] = (struct pinion_request){
			.task.run = note_end,
			.file = &file,
			.bytes = memory[i],
			.offset_bytes = (uint64_t)i * BLOCK,
			.length_bytes = BLOCK,
		};
		expect_number("submit", 0, pinion_request_submit(runtime, &reads[i]));
	}
}

static struct pinion_device_stats figures(void)
{
	struct pinion_device_stats figures;

	expect_number("figures", 0, pinion_device_get_stats(runtime, 0, &figures, sizeof(figures)));
	return figures;
}

static void make_file(void)
{
	int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);

	expect_ready("data", fd >= 0 && ftruncate(fd, READS * BLOCK) == 0);
	expect_ready("its bytes", pwrite(fd, memory, sizeof(memory), 0) == sizeof(memory));
	fsync(fd);
	close(fd);
	expect_ready("open", pinion_file_open(&file, "data", PINION_DIRECT_NEVER) == 0);
	/* The page cache answers at once, and would not be limited. */
	file.cached_percent = 0;
	file.flags = 0;
	posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void check_errors(void)
{
	struct {
		struct pinion_limits limits;
		uint64_t more;
	} newer;
	struct pinion_limits limits;
	struct pinion_device_stats none;
	pid_t child;
	int status = -1;

	pinion_limits_init(&limits);
	expect_number(
		"no device yet", -ENOENT, pinion_device_get_stats(runtime, 0, &none, sizeof(none)));
	expect_number("limits of one", 0, pinion_device_set_limits(runtime, 1, &limits));
	expect_number("are no request", -ENOENT,
		pinion_device_get_stats(runtime, 0, &none, sizeof(none)));
	expect_number("none any more", 0, pinion_device_set_limits(runtime, 1, NULL));
	limits.depth_count = 1 << 20;
	expect_number("too deep", -EINVAL, pinion_runtime_set_limits(runtime, &limits));
	pinion_limits_init(&limits);
	limits.depth_bytes = (UINT64_C(1) << 40) + 1;
	expect_number("too many bytes", -EINVAL, pinion_device_set_limits(runtime, 1, &limits));
	pinion_limits_init(&limits);
	limits.requests_per_second = UINT64_MAX;
	expect_number("too fast", -EINVAL, pinion_runtime_set_limits(runtime, &limits));
	pinion_limits_init(&limits);
	limits.slow_ns = (UINT64_C(1) << 62) + 1;
	expect_number("too slow", -EINVAL, pinion_runtime_set_limits(runtime, &limits));
	expect_number("too slow", -EINVAL, pinion_device_set_limits(runtime, 1, &limits));
	pinion_limits_init(&limits);
	limits.size = 2;
	expect_number("no size", -EINVAL, pinion_runtime_set_limits(runtime, &limits));
	pinion_limits_init_sized(&newer.limits, sizeof(newer));
	expect_number("a newer struct", 0, pinion_runtime_set_limits(runtime, &newer.limits));
	newer.more = 1;
	expect_number("that is used", -E2BIG, pinion_runtime_set_limits(runtime, &newer.limits));
	expect_number("none", 0, pinion_runtime_set_limits(runtime, NULL));
	child = fork();
	if (child == 0) {
		pinion_limits_init(&limits);
		_exit(pinion_runtime_set_limits(runtime, &limits) == -ECHILD &&
					pinion_device_set_limits(runtime, 1, &limits) == -ECHILD &&
					pinion_device_get_stats(runtime, 0, &none, sizeof(none)) ==
						-ECHILD
				? 0
				: 1);
	}
	expect_ready("fork", child > 0 && waitpid(child, &status, 0) == child);
	expect_number("in a child", 0, status);
}

static void set(uint32_t depth_count, uint64_t bytes_per_second, uint64_t requests_per_second)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.depth_count = depth_count;
	limits.bytes_per_second = bytes_per_second;
	limits.requests_per_second = requests_per_second;
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
}

/* Each worker that has ended enough requests has looked at its account. */
static void expect_looks(void)
{
	uint32_t looks = 0;

	for (uint32_t i = 0; i < WORKERS; i++) {
		const struct pin_account *account =
			&runtime->shared.workers[i].device_queue.accounts[0];

		expect_true("fewer ends than to the next",
			account->ends_since_look < account->look_ends);
		looks += account->look_ns != 0;
	}
	expect_true("a look", looks > 0);
}

static void check_depth(void)
{
	set(3, 0, 0);
	submit(READS);
	await_ends(1);
	expect_true("taken within the depth", figures().taken_count <= 3);
	await_ends(READS);
	expect_number("the depth that was set", 3, (long long)figures().depth_count);
	expect_number("not found out", 0, figures().is_found_out);
	expect_looks();
	set(0, 0, 0);
	expect_number("found out again", 1, figures().is_found_out);
	expect_true("a depth", figures().depth_count > 3);
}

/* One goes or some, all of them would take a minute, by their bytes days. */
static void check_rate(bool counts_bytes, bool is_device)
{
	uint64_t throttled = figures().throttled;
	struct pinion_limits limits;
	uint32_t lasting = 0;

	set(0, 0, 0);
	pinion_limits_init(&limits);
	limits.bytes_per_second = counts_bytes ? 1 : 0;
	limits.requests_per_second = counts_bytes ? 0 : 1;
	if (is_device) {
		expect_number("limits of a device", 0,
			pinion_device_set_limits(runtime, file.device, &limits));
	} else {
		expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
	}
	submit(READS);
	await_ends(1);
	for (uint32_t i = 0; i < READS; i++) {
		lasting += pinion_request_cancel(runtime, &reads[i]) == 0;
		if (lasting == 1) {
			break;
		}
	}
	expect_number("a waiting one is cancelled", 1, lasting);
	await_ends(2);
	/* Held back, as soon as their worker has looked at them. */
	while (counts_bytes && figures().throttled == throttled) {
		sched_yield();
	}
	pinion_limits_init(&limits);
	if (is_device) {
		expect_number(
			"no limits", 0, pinion_device_set_limits(runtime, file.device, &limits));
	} else {
		expect_number("no limits", 0, pinion_runtime_set_limits(runtime, &limits));
	}
	await_ends(READS);
}

/* `per_second` blocks, by their bytes or by their number. */
static void check_time(uint32_t per_second, bool counts_bytes)
{
	/*
	 * The amount that may go out besides, by each of two workers and once
	 * more.
	 */
	uint32_t share = per_second / 1000 > 1 ? per_second / 1000 : 1;
	uint64_t least_ns = (READS - 3 * share) * UINT64_C(1000000000) / per_second - 10000000;
	uint64_t began_ns = pinion_clock_now_ns();
	uint64_t took_ns;

	set(0, counts_bytes ? (uint64_t)per_second * BLOCK : 0, counts_bytes ? 0 : per_second);
	submit(READS);
	await_ends(READS);
	took_ns = pinion_clock_now_ns() - began_ns;
	printf("%d blocks at %u a second by their %s: %llu us, at least %llu\n", READS, per_second,
		counts_bytes ? "bytes" : "number", (unsigned long long)took_ns / 1000,
		(unsigned long long)least_ns / 1000);
	expect_true("as long as the rate says", took_ns >= least_ns);
}

static void check_times(void)
{
	for (int i = 0; i <= 1; i++) {
		check_time(400, i != 0);
		check_time(2000, i != 0);
		check_time(800, i != 0);
	}
	set(0, 0, 0);
}

/* Of major 0: each a device of its own. */
static int limit_device(uint32_t number, const struct pinion_limits *limits)
{
	return pinion_device_set_limits(runtime, 0xf00 + number, limits);
}

/* One has requests; limits for 15 more fill the table. */
static void check_devices(void)
{
	struct pinion_limits limits;
	struct pinion_device_stats stats;

	pinion_limits_init(&limits);
	for (uint32_t i = 1; i <= 15; i++) {
		expect_number("limits for 16 devices", 0, limit_device(i, &limits));
	}
	expect_number("for a 17th", -ENOSPC, limit_device(16, &limits));
	expect_number("again for one of them", 0, limit_device(15, &limits));
	expect_number("none for the 17th", 0, limit_device(16, NULL));
	expect_number("makes no room", -ENOSPC, limit_device(16, &limits));
	expect_number("none for the third", 0, limit_device(3, NULL));
	expect_number("does", 0, limit_device(16, &limits));
	expect_number("for one", -ENOSPC, limit_device(3, &limits));
	expect_number("the device of the requests", 0,
		pinion_device_set_limits(runtime, file.device, NULL));
	expect_number("keeps its place", -ENOSPC, limit_device(3, &limits));
	expect_number(
		"which is read", 0, pinion_device_get_stats(runtime, 0, &stats, sizeof(stats)));
	expect_number(
		"and alone", -ENOENT, pinion_device_get_stats(runtime, 1, &stats, sizeof(stats)));
}

/* Of all reads, those of `slow_ns`, whichever limits it is of. */
static void read_timed(const char *what, uint64_t common_ns, uint64_t own_ns, bool are_slow)
{
	struct pinion_limits limits;
	struct pinion_device_stats before = figures();
	struct pinion_device_stats after;

	pinion_limits_init(&limits);
	limits.slow_ns = common_ns;
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
	limits.slow_ns = own_ns;
	expect_number("of the device", 0, pinion_device_set_limits(runtime, file.device, &limits));
	submit(READS);
	await_ends(READS);
	after = figures();
	if (common_ns != 0 || own_ns != 0) {
		expect_number(what, READS, (long long)(after.timed - before.timed));
	} else {
		expect_true(what, after.timed - before.timed < READS);
	}
	expect_number(what, are_slow ? READS : 0, (long long)(after.slow - before.slow));
}

static void check_slow(void)
{
	const uint64_t day_ns = UINT64_C(86400000000000);

	read_timed("none counts", 0, 0, false);
	read_timed("all are slower than 1 ns", 1, 0, true);
	read_timed("none takes a day", day_ns, 0, false);
	read_timed("the device's replaces the runtime's", day_ns, 1, true);
	read_timed("also a longer one", 1, day_ns, false);
	read_timed("none counts any more", 0, 0, false);
}

/* ---- a read that takes a given time ---- */

enum { SLOW_NS = 1000000 };

static uint64_t read_ns;

static void read_for_a_time(struct tasks_hold *hold)
{
	(void)hold;
	clock_own_ns = pinion_clock_now_ns();
	submit(1);
	clock_own_ns += read_ns;
}

static void check_slow_exactly(void)
{
	struct pinion_limits limits;

	runtime = runtimes_start(1, PINION_IO_AUTO);
	pinion_limits_init(&limits);
	limits.slow_ns = SLOW_NS;
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
	for (int i = 0; i <= 1; i++) {
		struct tasks_hold hold = {.prepare = read_for_a_time};

		read_ns = SLOW_NS + (uint64_t)i;
		tasks_hold_begin(&hold, runtime, 0);
		tasks_hold_end(&hold);
		await_ends(1);
		expect_number("timed", i + 1, (long long)figures().timed);
		expect_number("slower than slow_ns", i, (long long)figures().slow);
	}
	pinion_runtime_destroy(runtime);
}

/* Two files with three requests each, and one with a single one. */
static void check_turns(void)
{
	static struct pinion_request requests[7];
	static struct pinion_file files[3];
	static const uint32_t owner[7] = {0, 0, 0, 1, 1, 1, 2};
	static const uint32_t order[7] = {0, 3, 6, 1, 4, 2, 5};
	static struct pin_lines lines;
	static struct pin_device_waiters device_waiters;

	pin_lines_init(&lines);
	pin_device_waiters_init(&device_waiters);
	for (uint32_t i = 0; i < 7; i++) {
		requests[i].file = &files[owner[i]];
		pin_device_waiters_push(&device_waiters, &lines, &requests[i]);
	}
	for (uint32_t i = 0; i < 7; i++) {
		expect_number("whose turn it is", (long long)order[i],
			(long long)(pin_device_waiters_first(&device_waiters, &lines) - requests));
		pin_device_waiters_pop(&device_waiters);
	}
	expect_true("nobody's", pin_device_waiters_first(&device_waiters, &lines) == NULL);
}

/* Its requests go in parts, as those of limits that are set later. */
static void check_configured(void)
{
	struct pinion_tuning tuning;
	struct pinion_config config;

	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	tuning.bytes_per_second = 50 * (WORKERS + 1) * BLOCK;
	config.worker_count = WORKERS;
	config.tuning = &tuning;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("on", 1, pin_load_relaxed_u32(&runtime->shared.disks.limiter.is_on));
	expect_number("a part", BLOCK,
		(long long)pin_load_relaxed_u64(&runtime->shared.disks.limiter.part_bytes));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct pinion_config config;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("limits");
	make_file();
	check_configured();
	check_slow_exactly();
	pinion_config_init(&config);
	config.worker_count = WORKERS;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	check_turns();
	check_errors();
	check_depth();
	check_rate(true, false);
	check_rate(false, false);
	check_rate(true, true);
	check_times();
	check_slow();
	check_devices();
	pinion_runtime_destroy(runtime);
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
