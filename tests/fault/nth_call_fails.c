/* SPDX-License-Identifier: MIT */
/*
 * Goal: whichever call of the library fails, the n-th malloc, mmap, thread,
 * set-up, registration, enter, futex, open, stat or read, for every n until
 * none is left to fail: creation returns an error that fits or the runtime
 * works, each file is reported once, each file reported as done has every byte
 * right, and nothing is left: no memory, mapping, descriptor or thread. The
 * same when all calls from the n-th on fail. W16, §9 of the design.
 * Method: tests/fault/failing.h between the library and libc. One small life
 * each time: create, read a file, scan a tree through the page cache and past
 * it while a socket waits, stop, destroy; with rings, and without. Workers
 * enter a ring that polls hundreds of times from one place: of the enters with
 * the same stack, the first eight fail, one in each life. Under ASan its own
 * leak check looks as well; there every fourth read and stat fails, from a
 * random one, as they come from few places. PINION_FAULT=KIND runs the faults
 * of that name alone; FAULT_STRIDE=7 lets every 7th call fail, from a random
 * one, where all of them take too long.
 */
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/host/kernel.h"
#include "tests/fault/failing.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum {
	LIMIT_SECONDS = 20, /* of one life */
	CALLS_MAX = 5000,
	FILE_BYTES_MAX = 300000,
	WINDOW = 16384,
	OVERLAP = 64,
	WORKERS = 2,
	SAME_STACK_MAX = 8, /* enters that fail */
	PROBES = 20,
	SANITIZED_STRIDE = 4, /* of calls that come from few places */
};

static const uint32_t sizes[] = {0, 1, 4095, 4096, 70001, 131072, 200001, FILE_BYTES_MAX};
enum {
	FILES = 2 * sizeof(sizes) / sizeof(sizes[0]),
	IGNORED = 2, /* a folder, and the file that says so */
};

/* An error that is tolerated leaves everything done, others may cost files. */
static const struct fault {
	const char *name;
	enum failing_kind kind;
	int error;
	bool may_last;
	bool is_tolerated;
} faults[] = {
	{"memory", FAILING_MEMORY, ENOMEM, true, false},
	{"map", FAILING_MAP, ENOMEM, true, false},
	{"advice", FAILING_ADVICE, EINVAL, true, true},
	{"thread", FAILING_THREAD, EAGAIN, true, false},
	{"bind", FAILING_BIND, EPERM, true, true},
	{"probe-eperm", FAILING_RING_PROBE, EPERM, true, true},
	{"probe-enomem", FAILING_RING_PROBE, ENOMEM, true, true},
	{"probe-einval", FAILING_RING_PROBE, EINVAL, true, true},
	{"setup-enomem", FAILING_RING_SETUP, ENOMEM, true, true},
	{"setup-emfile", FAILING_RING_SETUP, EMFILE, true, true},
	{"setup-einval", FAILING_RING_SETUP, EINVAL, true, true},
	{"buffers", FAILING_RING_BUFFERS, ENOMEM, true, true},
	{"register-enomem", FAILING_RING_REGISTER, ENOMEM, false, true},
	{"register-eintr", FAILING_RING_REGISTER, EINTR, false, true},
	{"descriptor", FAILING_RING_DESCRIPTOR, EINVAL, true, true},
	{"enter-eintr", FAILING_RING_ENTER, EINTR, false, true},
	{"enter-eagain", FAILING_RING_ENTER, EAGAIN, false, true},
	{"enter-ebusy", FAILING_RING_ENTER, EBUSY, false, true},
	{"enter-enomem", FAILING_RING_ENTER, ENOMEM, false, true},
	{"futex", FAILING_FUTEX_WAIT, EINTR, true, true},
	{"open-emfile", FAILING_DESCRIPTOR, EMFILE, true, false},
	{"open-eacces", FAILING_DESCRIPTOR, EACCES, true, false},
	{"status", FAILING_STATUS, EIO, true, false},
	{"flags", FAILING_FLAGS, EINVAL, true, false},
	{"read-eio", FAILING_READ, EIO, true, false},
	{"read-eintr", FAILING_READ, EINTR, false, true},
	{"read-eagain", FAILING_READ, EAGAIN, false, true},
	{"listing", FAILING_LISTING, EIO, true, false},
};

static char setting[128] = "probes"; /* printed with each failure */
static uint32_t io_level;
static uint32_t uses_ring; /* a runtime none of whose calls fails */
static uint32_t stride = 1;
static struct random_source draw;
static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_request request;
static struct pinion_task reader;
static struct pinion_file ends[2]; /* of a pair of sockets */
static struct pinion_request waiting;
static uint8_t waited;
static uint8_t bytes[4096] __attribute__((aligned(4096)));

static struct {
	struct pin_atomic_u32 reports;
	struct pin_atomic_u32 done;
	struct pin_atomic_u32 ignored;
	struct pin_atomic_u32 wrong;
	struct pin_atomic_u32 reads;
	struct pin_atomic_u32 waits;
	struct pin_atomic_u32 error; /* of the first file that failed */
} seen;

/* The engine's memory of one file. */
struct user {
	struct pin_atomic_u64 new_bytes;
};

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)((offset * 2654435761u >> 11) ^ (offset >> 12));
}

static uint8_t contents[FILE_BYTES_MAX];

static void expect(const char *what, long long expected, long long got)
{
	char line[200];

	snprintf(line, sizeof(line), "%s: %s", setting, what);
	expect_number(line, expected, got);
}

static void make_tree(void)
{
	for (size_t i = 0; i < sizeof(contents); i++) {
		contents[i] = byte_at(i);
	}
	expect_ready("mkdir", mkdir("tree", 0755) == 0 && mkdir("tree/below", 0755) == 0);
	for (size_t i = 0; i < FILES; i++) {
		uint32_t size = sizes[i / 2];
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "tree/%s%u", i % 2 == 0 ? "" : "below/", size);
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		expect_ready(path, fd >= 0 && write(fd, contents, size) == (ssize_t)size);
		/* The larger ones not from the page cache, if that works. */
		if (size > 4096) {
			fdatasync(fd);
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		}
		close(fd);
	}
}

static void make_ignored(void)
{
	FILE *rules = fopen("tree/.gitignore", "w");

	expect_ready("rules",
		rules != NULL && fputs("/.gitignore\nhid[d]en/\n", rules) >= 0 &&
			fclose(rules) == 0);
	expect_ready(
		"hidden", mkdir("tree/hidden", 0755) == 0 && symlink("..", "tree/hidden/up") == 0);
}

static int window(void *arg, struct pinion_scan_file *scanned, const struct pinion_window *given)
{
	struct user *user = scanned->user;

	(void)arg;
	if (given->base_offset_bytes + given->length_bytes > FILE_BYTES_MAX ||
		memcmp(given->bytes, contents + given->base_offset_bytes, given->length_bytes) !=
			0) {
		pin_fetch_add_acq_rel_u32(&seen.wrong, 1);
	}
	pin_fetch_add_acq_rel_u64(&user->new_bytes, given->length_bytes - given->prefix_bytes);
	return 0;
}

static void report(void *arg, const struct pinion_scan_file *scanned,
	enum pinion_scan_outcome outcome, int error)
{
	const char *name = strrchr(scanned->path, '/');
	const struct user *user = scanned->user;

	(void)arg;
	pin_fetch_add_acq_rel_u32(&seen.reports, 1);
	if (outcome == PINION_SCAN_IGNORED) {
		pin_fetch_add_acq_rel_u32(&seen.ignored, 1);
		return;
	}
	/* The link in a folder that nothing hides when its rules are lost. */
	if (outcome == PINION_SCAN_SKIPPED && error == 0) {
		return;
	}
	if (outcome != PINION_SCAN_DONE) {
		uint32_t none = 0;

		(void)pin_cas_acq_rel_u32(&seen.error, &none, (uint32_t)-error);
		if (error == 0) {
			pin_fetch_add_acq_rel_u32(&seen.wrong, 1);
		}
		return;
	}
	pin_fetch_add_acq_rel_u32(&seen.done, 1);
	if (name == NULL ||
		pin_load_acquire_u64(&user->new_bytes) != strtoull(name + 1, NULL, 10)) {
		pin_fetch_add_acq_rel_u32(&seen.wrong, 1);
	}
}

static const struct pinion_scan_ops ops = {.window = window, .report = report};

static int has_read(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&seen.reads, 1);
	return 0;
}

static int start_read(struct pinion_task *task)
{
	(void)task;
	request = (struct pinion_request){
		.task.run = has_read, .file = &file, .bytes = bytes, .length_bytes = sizeof(bytes)};
	return pinion_request_submit(runtime, &request);
}

static void read_one(bool must_work)
{
	int rc = pinion_file_open(&file, "tree/70001", PINION_DIRECT_AUTO);

	if (must_work || rc == 0) {
		expect("open", 0, rc);
	}
	if (rc != 0) {
		return;
	}
	reader = (struct pinion_task){.run = start_read};
	expect("spawn", 0, pinion_task_spawn(runtime, &reader));
	/* A scan comes next; the drain at its end waits for both. */
}

static void check_read(bool must_work)
{
	if (file.fd < 0) {
		return;
	}
	expect("reads", 1, pin_load_acquire_u32(&seen.reads));
	if (must_work || request.result >= 0) {
		expect("result", sizeof(bytes), request.result);
		expect("bytes read", 0, memcmp(bytes, contents, sizeof(bytes)));
	}
	pinion_file_close(&file);
}

static int end_wait(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&seen.waits, 1);
	return 0;
}

/* Waits while the tree is scanned. */
static void begin_wait(void)
{
	waiting = (struct pinion_request){.task.run = end_wait,
		.op = PINION_OP_RECV,
		.file = &ends[0],
		.bytes = &waited,
		.length_bytes = 1};
	expect("submit", 0, pinion_request_submit(runtime, &waiting));
}

/* Before the drain, which would end it as well. */
static void let_it_end(void)
{
	expect("send", 1, send(ends[1].fd, "x", 1, 0));
	while (pin_load_acquire_u32(&seen.waits) == 0) {
		sched_yield();
	}
}

/* Its byte comes, or has been left where it failed. */
static void check_wait(bool must_work)
{
	uint8_t byte;

	expect("waits end", 1, pin_load_acquire_u32(&seen.waits));
	if (must_work || waiting.result >= 0) {
		expect("received", 1, waiting.result);
		expect("the byte", 'x', waited);
	} else {
		expect("left", 1, recv(ends[0].fd, &byte, 1, MSG_DONTWAIT));
	}
}

static void scan_tree(bool must_work, uint32_t direct)
{
	struct pinion_scan_stats totals = {0};
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;
	int rc;

	pinion_scan_config_init(&config);
	pin_store_release_u32(&seen.reports, 0);
	pin_store_release_u32(&seen.done, 0);
	pin_store_release_u32(&seen.ignored, 0);
	config.direct = direct;
	config.overlap_bytes = OVERLAP;
	config.window_bytes = WINDOW;
	config.files_in_flight = 4;
	config.windows_in_flight = 4;
	config.file_user_bytes = sizeof(struct user);
	config.skip_ignored = 1;
	rc = pinion_scan_create(runtime, &config, &ops, NULL, &scan);
	if (must_work || rc == 0) {
		expect("scan", 0, rc);
	}
	if (rc != 0) {
		expect("scan untouched", 1, scan == NULL);
		return;
	}
	rc = pinion_scan_add_tree(scan, "tree");
	expect("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect("ends add up", (long long)totals.seen,
		(long long)(totals.done + totals.failed + totals.skipped + totals.cancelled +
			totals.ignored));
	expect("ignored", (long long)totals.ignored, pin_load_acquire_u32(&seen.ignored));
	expect("reports", (long long)totals.seen, pin_load_acquire_u32(&seen.reports));
	expect("done", (long long)totals.done, pin_load_acquire_u32(&seen.done));
	if (must_work) {
		expect("add", 0, rc);
		expect("the first error", 0, pin_load_acquire_u32(&seen.error));
		expect("all done", FILES, (long long)totals.done);
		expect("all ignored", IGNORED, (long long)totals.ignored);
	} else if (rc == 0 && totals.failed == 0) {
		/* No failure was reported, so there must not be any. */
		expect("all seen", FILES + IGNORED, (long long)totals.seen);
	}
	pinion_scan_destroy(scan);
}

/* An enter that fails in passing costs no ring, nor does the probe's. */
static void check_ring(const struct fault *fault)
{
	struct pinion_runtime_info info;

	pinion_runtime_get_info(runtime, &info, sizeof(info));
	if (fault->kind == FAILING_NOTHING) {
		uses_ring = info.uses_ring;
	} else if (fault->kind == FAILING_RING_ENTER) {
		expect("uses a ring", uses_ring, info.uses_ring);
	}
}

/* Returns how many calls failed. */
static uint32_t live_once(const struct fault *fault, uint32_t nth, bool is_lasting)
{
	struct pinion_config config;
	bool must_work = fault->is_tolerated;
	size_t live_count = failing_live_count();
	size_t mapped_bytes = failing_mapped_bytes();
	uint32_t failed_count;
	int rc;

	snprintf(setting, sizeof(setting), "%s%s %u%s", fault->name,
		io_level == PINION_IO_FALLBACK ? " without rings" : "", nth,
		is_lasting ? " and later" : "");
	memset(&seen, 0, sizeof(seen));
	file.fd = -1;
	runtime = NULL;
	runtimes_watchdog(LIMIT_SECONDS);
	runtimes_config(&config, WORKERS, io_level);
	if (fault->kind == FAILING_DESCRIPTOR && config.io_level != PINION_IO_RING_MESSAGE) {
		/* So that there are eventfds to fail. */
		runtimes_tuning.io_without |= PINION_IO_SEND_MSG_RING;
	}
	/*
	 * Rings that may fail, and reads that most devices refuse. Where one
	 * polls, and slowly, there is no end of enters that may fail.
	 */
	runtimes_tuning.polled = fault->kind == FAILING_RING_ENTER && stride > 1
		? PINION_POLLED_NEVER
		: PINION_POLLED_ALWAYS;
	if (fault->kind == FAILING_RING_ENTER) {
		failing_arm_stacks(fault->kind, fault->error,
			stride < SAME_STACK_MAX ? SAME_STACK_MAX / stride : 1);
	} else {
		failing_arm(fault->kind, nth, fault->error, is_lasting);
	}
	rc = pinion_runtime_create(&config, &runtime);
	if (must_work || rc == 0) {
		expect("create", 0, rc);
	}
	if (rc == 0) {
		check_ring(fault);
		begin_wait();
		read_one(must_work);
		scan_tree(must_work, PINION_DIRECT_NEVER);
		scan_tree(must_work, PINION_DIRECT_ALWAYS);
		let_it_end();
		expect("drain", 0, pinion_runtime_drain(runtime));
		expect("stop", 0, pinion_runtime_stop(runtime));
		check_read(must_work);
		check_wait(must_work);
		pinion_runtime_destroy(runtime);
	} else {
		expect("nothing was written", 1, runtime == NULL);
		expect("a fitting error", 1, rc == -fault->error || rc == -ENOMEM || rc == -EIO);
	}
	failed_count = failing_disarm();
	expect("wrong bytes", 0, pin_load_acquire_u32(&seen.wrong));
	expect("memory left", (long long)live_count, (long long)failing_live_count());
	expect("mapped bytes left", (long long)mapped_bytes, (long long)failing_mapped_bytes());
	return failed_count;
}

static uint32_t stride_of(const struct fault *fault)
{
	bool is_repeated = fault->kind == FAILING_READ || fault->kind == FAILING_STATUS ||
		fault->kind == FAILING_LISTING;

	return SANITIZED_BUILD && is_repeated && stride < SANITIZED_STRIDE ? SANITIZED_STRIDE
									   : stride;
}

static void check_fault(const struct fault *fault, bool is_lasting)
{
	size_t descriptors = runtimes_count_entries("/proc/self/fd");
	size_t threads = runtimes_count_entries("/proc/self/task");
	uint32_t step = stride_of(fault);
	uint32_t nth = 1;

	failing_forget_stacks();
	if (step > 1) {
		nth += (uint32_t)random_below(&draw, step);
	}
	while (nth < CALLS_MAX && live_once(fault, nth, is_lasting) > 0 &&
		expect_failure_count == 0) {
		nth += step;
	}
	expect("calls until success", 1, nth < CALLS_MAX);
	expect("descriptors", (long long)descriptors,
		(long long)runtimes_count_entries("/proc/self/fd"));
	runtimes_expect_threads(threads);
	printf("%s%s%s: %u calls\n", fault->name,
		io_level == PINION_IO_FALLBACK ? ", no rings" : "", is_lasting ? ", lasting" : "",
		(nth - 1) / step);
}

/*
 * Calls that are others, or are made elsewhere, where workers have no ring. And
 * a user that asks for a level has no other way than that.
 */
static bool is_worth(const struct fault *fault)
{
	if (getenv("PINION_IO_LEVEL") != NULL &&
		(fault->kind == FAILING_RING_PROBE || fault->kind == FAILING_RING_SETUP ||
			fault->kind == FAILING_RING_REGISTER)) {
		return false;
	}
	return io_level != PINION_IO_FALLBACK || fault->kind == FAILING_MEMORY ||
		fault->kind == FAILING_DESCRIPTOR || fault->kind == FAILING_READ;
}

static void check_all(const char *only)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(faults) && expect_failure_count == 0; i++) {
		const struct fault *fault = &faults[i];

		if (!is_worth(fault) || (only != NULL && strcmp(only, fault->name) != 0)) {
			continue;
		}
		check_fault(fault, false);
		if (fault->may_last && expect_failure_count == 0) {
			check_fault(fault, true);
		}
	}
}

/* An abort says where; this says with what. */
static void tell_setting(int signal_number)
{
	(void)signal_number;
	if (write(STDOUT_FILENO, setting, strlen(setting)) < 0) {
		_exit(2);
	}
}

/*
 * Where no thread can be had, the probe asks on the caller's: it leaves no slot
 * of that thread taken, of which there are 16.
 */
static void check_probes(void)
{
	struct pin_kernel first;
	struct pin_kernel later;

	failing_arm(FAILING_THREAD, 1, EAGAIN, true);
	pin_kernel_probe(&first);
	for (uint32_t i = 0; i < PROBES; i++) {
		pin_kernel_probe(&later);
		expect("features of a later probe", first.features, later.features);
	}
	expect("threads refused", 1 + PROBES, failing_disarm());
}

static void make_ends(void)
{
	int fds[2];

	expect("pair", 0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	ends[0].fd = fds[0];
	ends[1].fd = fds[1];
}

int main(void)
{
	const char *only = getenv("PINION_FAULT");
	const char *strides = getenv("FAULT_STRIDE");
	const struct fault none = {"nothing", FAILING_NOTHING, 0, false, true};

	signal(SIGABRT, tell_setting);
	if (strides != NULL && strtoul(strides, NULL, 10) > 1) {
		stride = (uint32_t)strtoul(strides, NULL, 10);
	}
	random_begin(&draw);
	scratch_enter("nth_call_fails");
	make_tree();
	make_ignored();
	check_probes();
	make_ends();
	for (io_level = PINION_IO_AUTO; io_level <= PINION_IO_FALLBACK; io_level++) {
		/* First without: what a process sets up once is there then. */
		live_once(&none, 1, false);
		check_all(only);
	}
	scratch_leave();
	return expect_status();
}
