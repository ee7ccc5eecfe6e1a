/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file that is read often is registered with the ring of the worker
 * that reads it; whatever is closed and opened in between, also under the same
 * number, each read delivers its own file's bytes, also when it had only
 * gathered at the close; a closed file is let go by a worker that sleeps. What
 * finds no room, what the kernel refuses, and what others opened is read by its
 * descriptor. G5.
 * Method: files that hold their own number, read past the shortcut through the
 * page cache; a lock of flock(2) shows when the kernel has let go of a file;
 * the calls that register are refused in this process. Runs on rings of the
 * worker's own and on shared ones.
 */
#include "runtime/task/entry.h"
#include "tests/support/child.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"
#include "tests/support/syscalls.h"

#include <sys/resource.h>

enum {
	BYTES = 4096,
	FILES_MANY = 48,
	WORKERS_MAX = 2,
	/* Enough on each of them. */
	READS = 2 * WORKERS_MAX * PIN_FILE_USES_MIN,
	SLOTS = 8,
	LIMIT_SECONDS = 100,
};

static struct pinion_runtime *runtime;
static struct pinion_runtime_info facts;
static uint8_t bytes[READS][BYTES];
static struct requests_one ones[READS];
static struct requests_one closing;

/* What refuses to do what. */
static struct pin_atomic_u32 refuses_table;
static struct pin_atomic_u32 refuses_updates;
static struct pin_atomic_u32 refused_removals; /* this number more */
static bool is_exact;			       /* one worker: counts are known */

static bool refuse(long number, const long *arguments, long *out_result)
{
	const struct io_uring_rsrc_update *update = (const void *)arguments[2];
	bool is_update;
	bool is_removal;

	if (number != __NR_io_uring_register) {
		return false;
	}
	is_update = arguments[1] == IORING_REGISTER_FILES_UPDATE;
	is_removal = is_update && *(const int *)(uintptr_t)update->data == -1;
	if (is_removal && pin_load_relaxed_u32(&refused_removals) > 0) {
		pin_fetch_sub_acq_rel_u32(&refused_removals, 1);
	} else if ((arguments[1] != IORING_REGISTER_FILES2 ||
			   pin_load_relaxed_u32(&refuses_table) == 0) &&
		(!is_update || is_removal || pin_load_relaxed_u32(&refuses_updates) == 0)) {
		return false;
	}
	errno = ENOMEM;
	*out_result = -1;
	return true;
}

static bool start(uint32_t slots, uint32_t ring_sharing)
{
	struct pinion_config config;

	is_exact = ring_sharing == PINION_RING_OWN;
	runtimes_config(&config, is_exact ? 1 : WORKERS_MAX, PINION_IO_AUTO);
	runtimes_tuning.registered_files = slots;
	runtimes_tuning.ring_sharing = ring_sharing;
	/* All of them go into the ring at once, none queues. */
	runtimes_tuning.depth_count = 1024;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	return facts.file_slots > 0;
}

static void end(void)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	runtime = NULL;
}

static void make_file(unsigned number)
{
	char name[16];
	static char text[BYTES + 1];

	memset(text, 'a' + (int)number % 26, BYTES);
	snprintf(text, sizeof(text), "%04u", number);
	text[4] = '.';
	text[BYTES] = '\0';
	snprintf(name, sizeof(name), "%u", number);
	scratch_file(name, text);
}

static struct pinion_file open_file(unsigned number)
{
	struct pinion_file file;
	char name[16];

	snprintf(name, sizeof(name), "%u", number);
	expect_ready(name, pinion_file_open(&file, name, PINION_DIRECT_NEVER) == 0);
	/* Else the worker copies it from the cache by itself. */
	file.cached_percent = 255;
	return file;
}

static void prepare_read(uint32_t index, struct pinion_file *file)
{
	struct pinion_request *request = requests_begin(&ones[index], PINION_OP_READ);

	memset(bytes[index], 0, BYTES);
	request->file = file;
	request->bytes = bytes[index];
	request->length_bytes = BYTES;
}

static void check_read(uint32_t index, unsigned number)
{
	char wanted[8];

	snprintf(wanted, sizeof(wanted), "%04u.", number);
	expect_number("bytes read", BYTES, requests_await(&ones[index]));
	expect_true("of that file", memcmp(bytes[index], wanted, 5) == 0);
}

static void read_often(struct pinion_file *file, unsigned number)
{
	for (uint32_t i = 0; i < READS; i++) {
		prepare_read(i, file);
		expect_number("submit", 0, pinion_request_submit(runtime, &ones[i].request));
		check_read(i, number);
	}
}

static uint64_t registered_count(void)
{
	return runtimes_counters(runtime).files_registered;
}

/*
 * On the ring of each worker that has read it often enough: of several, one may
 * have begun a request queued on another.
 */
static void expect_registered(uint32_t file_count)
{
	uint64_t count = registered_count();

	if (is_exact) {
		expect_number("registered", file_count, (long long)count);
	} else {
		expect_true("registered", count >= file_count && count <= file_count * WORKERS_MAX);
	}
}

/* Also the next one of that number. */
static void check_numbers(void)
{
	struct pinion_file file = open_file(0);
	struct pinion_file next;
	uint64_t plain;
	int fd = file.fd;

	read_often(&file, 0);
	expect_registered(1);
	plain = runtimes_counters(runtime).plain_file_transfers;
	if (is_exact) {
		expect_number("until then by number", PIN_FILE_USES_MIN, (long long)plain);
	}
	expect_number("lock", 0, flock(file.fd, LOCK_EX));
	pinion_file_close(&file);
	expect_number("closed", -1, file.fd);
	next = open_file(1);
	expect_number("the same number", fd, next.fd);
	read_often(&next, 1);
	expect_registered(2);
	scratch_await_lock("0");
	/* By a request, which is a close as well. */
	expect_number("lock", 0, flock(next.fd, LOCK_EX));
	requests_begin(&closing, PINION_OP_CLOSE)->file = &next;
	expect_number("close", 0, requests_do(runtime, &closing));
	expect_number("closed", -1, next.fd);
	scratch_await_lock("1");
}

static struct pinion_file in_flight;
static struct pinion_file after;
static struct pin_atomic_u32 has_closed;

/* All reads of it have gathered, and its number is another's at once. */
static int submit_and_close(struct pinion_task *task)
{
	int fd = in_flight.fd;

	(void)task;
	for (uint32_t i = 0; i < READS; i++) {
		expect_number("submit", 0, pinion_request_submit(runtime, &ones[i].request));
	}
	pinion_file_close(&in_flight);
	after = open_file(3);
	expect_number("the same number", fd, after.fd);
	tasks_signal(&has_closed);
	return 0;
}

static void check_closed_in_flight(void)
{
	static struct pinion_task task = {.run = submit_and_close};
	uint64_t before = registered_count();

	in_flight = open_file(2);
	read_often(&in_flight, 2);
	if (registered_count() - before < (is_exact ? 1 : WORKERS_MAX)) {
		/* By descriptor, requests have to be over before a close. */
		pinion_file_close(&in_flight);
		return;
	}
	expect_number("lock", 0, flock(in_flight.fd, LOCK_EX));
	for (uint32_t i = 0; i < READS; i++) {
		prepare_read(i, &in_flight);
	}
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&has_closed, 1);
	for (uint32_t i = 0; i < READS; i++) {
		check_read(i, 2);
	}
	scratch_await_lock("2");
	read_often(&after, 3);
	pinion_file_close(&after);
}

/* More files than slots, all read in turn, often. */
static void check_full(void)
{
	static struct pinion_file files[FILES_MANY];
	uint64_t before = registered_count();
	uint64_t count;

	for (unsigned i = 0; i < FILES_MANY; i++) {
		files[i] = open_file(i);
	}
	for (unsigned i = 0; i < FILES_MANY; i++) {
		read_often(&files[i], i);
	}
	count = registered_count() - before;
	expect_true("as many as find room", count > 0 && count <= SLOTS * WORKERS_MAX);
	for (unsigned i = 0; i < FILES_MANY; i++) {
		read_often(&files[i], i);
		pinion_file_close(&files[i]);
	}
}

/* The library does not learn of the close. */
static void check_foreign(void)
{
	struct pinion_file file = {
		.fd = open("4", O_RDONLY | O_CLOEXEC),
		.memory_align_bytes = 1,
		.offset_align_bytes = 1,
		.size_bytes = BYTES,
		.cached_percent = 255,
	};
	uint64_t before = registered_count();

	read_often(&file, 4);
	expect_number("not registered", (long long)before, (long long)registered_count());
	pinion_file_close(&file);
}

/*
 * A file open for writing could not be executed before all rings have let go.
 */
static void check_writable(void)
{
	struct pinion_file_options options;
	struct pinion_file file;
	uint64_t before = registered_count();

	pinion_file_options_init(&options);
	options.direct = PINION_DIRECT_NEVER;
	options.flags |= PINION_FILE_WRITE;
	expect_ready("5", pinion_file_open_with(&file, "5", &options) == 0);
	file.cached_percent = 255;
	read_often(&file, 5);
	expect_number("not registered", (long long)before, (long long)registered_count());
	pinion_file_close(&file);
}

/* Open beyond the runtime's end, and closed then. */
static void check_outlives(void)
{
	struct pinion_file file = open_file(6);

	read_often(&file, 6);
	end();
	expect_true("still open", fcntl(file.fd, F_GETFD) >= 0);
	expect_number("lock", 0, flock(file.fd, LOCK_EX));
	pinion_file_close(&file);
	scratch_await_lock("6");
}

static int run_all(void *arg)
{
	if (!start(SLOTS, *(const uint32_t *)arg)) {
		end();
		printf("skipped: no file can be registered here\n");
		return EXPECT_SKIPPED;
	}
	expect_number("slots", SLOTS, facts.file_slots);
	check_numbers();
	check_closed_in_flight();
	check_full();
	check_foreign();
	check_writable();
	check_outlives();
	return expect_status();
}

static int run_off(void *arg)
{
	struct pinion_file file = open_file(7);

	(void)arg;
	expect_true("no slots", !start(0, PINION_RING_OWN));
	read_often(&file, 7);
	expect_number("registered", 0, (long long)registered_count());
	end();
	pinion_file_close(&file);
	return expect_status();
}

static int run_without_table(void *arg)
{
	struct pinion_file file = open_file(8);

	(void)arg;
	pin_store_relaxed_u32(&refuses_table, 1);
	expect_true("no slots", !start(SLOTS, PINION_RING_OWN));
	read_often(&file, 8);
	expect_number("registered", 0, (long long)registered_count());
	end();
	pinion_file_close(&file);
	return expect_status();
}

static int run_refused(void *arg)
{
	struct pinion_file file = open_file(9);
	struct pinion_file other = open_file(10);

	(void)arg;
	if (!start(SLOTS, PINION_RING_OWN)) {
		end();
		return EXPECT_SKIPPED;
	}
	pin_store_relaxed_u32(&refuses_updates, 1);
	read_often(&file, 9);
	expect_number("registered", 0, (long long)registered_count());
	expect_number("lock", 0, flock(file.fd, LOCK_EX));
	pinion_file_close(&file);
	scratch_await_lock("9");
	/* Another is taken, and then kept for a while. */
	pin_store_relaxed_u32(&refuses_updates, 0);
	read_often(&other, 10);
	expect_number("registered", 1, (long long)registered_count());
	pin_store_relaxed_u32(&refused_removals, 3);
	expect_number("lock", 0, flock(other.fd, LOCK_EX));
	pinion_file_close(&other);
	scratch_await_lock("10");
	expect_number("was refused", 0, pin_load_relaxed_u32(&refused_removals));
	end();
	return expect_status();
}

/* The kernel takes no more slots than there may be descriptors. */
static int run_few_descriptors(void *arg)
{
	struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};
	struct pinion_file file = open_file(11);
	bool has_slots;

	(void)arg;
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &limit) == 0);
	has_slots = start(256, PINION_RING_OWN);
	expect_true("as many as it allows", !has_slots || facts.file_slots <= 64);
	read_often(&file, 11);
	end();
	pinion_file_close(&file);
	return expect_status();
}

static const struct {
	const char *name;
	int (*run)(void *arg);
	uint32_t ring_sharing;
} parts[] = {
	{"own", run_all, PINION_RING_OWN},
	{"shared", run_all, PINION_RING_SHARED},
	{"off", run_off, 0},
	{"without a table", run_without_table, 0},
	{"refused", run_refused, 0},
	{"few descriptors", run_few_descriptors, 0},
};

int main(void)
{
	int skipped_count = 0;

	runtimes_watchdog(LIMIT_SECONDS);
	syscalls_begin();
	syscalls_hook = refuse;
	scratch_enter("files_are_registered");
	for (unsigned i = 0; i < FILES_MANY; i++) {
		make_file(i);
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(parts); i++) {
		uint32_t ring_sharing = parts[i].ring_sharing;
		int status = child_code(child_run(parts[i].run, &ring_sharing, NULL, 0));

		skipped_count += status == EXPECT_SKIPPED ? 1 : 0;
		expect_true(parts[i].name, status == 0 || status == EXPECT_SKIPPED);
	}
	scratch_leave();
	if (expect_failure_count == 0 && skipped_count > 0) {
		printf("skipped: no file can be registered here\n");
		return EXPECT_SKIPPED;
	}
	return expect_status();
}
