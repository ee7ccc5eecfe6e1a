/* SPDX-License-Identifier: MIT */
/*
 * Goal: reads in flight on a device that hangs cannot be ended: neither a
 * cancel nor a deadline does, and a stop returns -ETIME within its limit. Their
 * buffers are not taken back, let alone handed out again, and others work as
 * before. When the device answers after all, each read ends once, with its
 * bytes or cancelled, and the next stop finds the end. C15, W17, §9.
 * Hazard that others met: a cancel is taken for the end of what it cancels, and
 * the buffer is used again while the kernel still writes to it.
 * Method: a FUSE file whose server keeps its answers back until the test
 * releases them: by itself, so that its worker reads it, and as the backing
 * file of a block device (loop), which rings read; each with rings and without.
 * Buffers are from a pool.
 */
#include "tests/support/fuses.h"
#include "tests/support/loops.h"
#include "tests/support/requests.h"
#include "tests/support/users.h"

enum {
	READS = 4,
	PIECE = 4096,
	SIZE = 1 << 20,
	STOP_LIMIT_NS = 50 * 1000 * 1000,
	LIMIT_SECONDS = 60,
};

enum how {
	HOW_CANCELLED, /* by a call */
	HOW_LATE,      /* the first, by its deadline */
	HOW_ALONE,
};

static int asked[2];  /* the server says that a read has come */
static int let_go[2]; /* a byte: it may answer */
static uint8_t contents[SIZE];
static struct requests_one ones[READS];
static struct pinion_buffer buffers[READS];

static bool is_cached(uint32_t file)
{
	return file == 0;
}

/* In the server, which has one thread: the first holds up all. */
static void serve_read(uint64_t unique, uint32_t file, uint64_t offset, size_t length)
{
	static bool may_answer;
	char byte;

	(void)file;
	if (!may_answer && (write(asked[1], "x", 1) != 1 || read(let_go[0], &byte, 1) != 1)) {
		_exit(1);
	}
	may_answer = true;
	fuses_answer(unique, 0, contents + offset, length);
}

static const struct fuses served = {
	.file_count = 2, .file_bytes = SIZE, .is_cached = is_cached, .read = serve_read};

/* ---- the device ---- */

static int open_loop(const char *backing)
{
	char path[LOOPS_PATH_BYTES];
	int backing_fd = open(backing, O_RDONLY | O_CLOEXEC);
	int fd;

	expect_ready(backing, backing_fd >= 0);
	fd = loops_open(backing_fd, O_RDONLY | O_DIRECT, path);
	close(backing_fd);
	return fd;
}

static bool open_target(struct pinion_file *file, bool is_device)
{
	if (!is_device) {
		expect_number("open", 0, pinion_file_open(file, "mnt/1", PINION_DIRECT_NEVER));
		return true;
	}
	*file = (struct pinion_file){
		.fd = open_loop("mnt/0"),
		.memory_align_bytes = PIECE,
		.offset_align_bytes = PIECE,
		.size_bytes = SIZE,
		.is_direct = true,
	};
	return file->fd >= 0;
}

/* ---- the reads ---- */

static void submit(struct pinion_runtime *runtime, struct pinion_pool *pool,
	struct pinion_file *file, enum how how)
{
	for (uint32_t i = 0; i < READS; i++) {
		struct pinion_request *request = requests_begin(&ones[i], PINION_OP_READ);

		buffers[i] = users_take(pool);
		memset(buffers[i].bytes, 0, PIECE);
		request->file = file;
		request->bytes = buffers[i].bytes;
		request->offset_bytes = (uint64_t)i * (SIZE / READS);
		request->length_bytes = PIECE;
		/* Most likely begun by then; if not, others are. */
		request->deadline_ns =
			how == HOW_LATE && i == 0 ? pinion_clock_now_ns() + 20 * 1000 * 1000 : 0;
		expect_number("submit", 0, pinion_request_submit(runtime, request));
	}
}

static bool has_ended(const struct requests_one *one)
{
	return pin_load_acquire_u32(&one->entered) != 0;
}

/* What the device has keeps its buffer, whatever is tried. */
static void check_kept(struct pinion_pool *pool, enum how how)
{
	struct pinion_buffer copy;
	uint32_t kept = 0;
	int rc;

	for (uint32_t i = 0; i < READS; i++) {
		kept += has_ended(&ones[i]) ? 0 : 1;
	}
	expect_true("some are kept", kept > 0);
	if (!has_ended(&ones[0])) {
		copy = buffers[0];
		rc = pinion_pool_release(pool, &copy);
		if (rc == 0) {
			/* It ended just now, before it was begun. */
			expect_true("it was to end", how != HOW_ALONE);
			buffers[0] = users_take(pool);
		} else {
			expect_number("release", -EBUSY, rc);
		}
	}
	expect_number("another", -EAGAIN, pinion_pool_try_acquire(pool, &copy));
}

/* Another runtime reads files elsewhere. */
static void check_others(void)
{
	struct pinion_runtime *other = runtimes_start(1, PINION_IO_AUTO);
	struct pinion_request *request;
	struct pinion_file file;
	struct requests_one one;
	uint8_t bytes[5];

	request = requests_begin(&one, PINION_OP_READ);
	expect_number("open", 0, pinion_file_open(&file, "other", PINION_DIRECT_NEVER));
	request->file = &file;
	request->bytes = bytes;
	request->length_bytes = sizeof(bytes);
	expect_number("another's read", sizeof(bytes), requests_do(other, &one));
	expect_number("its bytes", 0, memcmp(bytes, "other", sizeof(bytes)));
	pinion_file_close(&file);
	pinion_runtime_destroy(other);
}

static void check_results(struct pinion_pool *pool, enum how how)
{
	uint32_t whole = 0;

	for (uint32_t i = 0; i < READS; i++) {
		int64_t result = ones[i].request.result;

		expect_number("entered", 1, pin_load_acquire_u32(&ones[i].entered));
		if (result == PIECE) {
			whole++;
			expect_number("bytes", 0,
				memcmp(buffers[i].bytes, contents + i * (SIZE / READS), PIECE));
		} else if (how != HOW_LATE || result != -ETIME) {
			expect_number("result", -ECANCELED, result);
		}
		users_give(pool, &buffers[i]);
	}
	expect_true("finished parts are whole", whole > 0);
}

static void await_first(void)
{
	char byte;

	expect_ready("a read has come", read(asked[0], &byte, 1) == 1);
}

static void let_all_go(void)
{
	expect_ready("let go", write(let_go[1], "x", 1) == 1);
}

static void check_stop(uint32_t io_level, struct pinion_file *file, enum how how)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;
	struct pinion_pool *pool;

	runtimes_config(&config, 1, io_level);
	config.pool_bytes = READS * 2 * PIECE;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pool = users_pool(runtime, 1, READS, READS);
	submit(runtime, pool, file, how);
	await_first();
	for (uint32_t i = 0; i < READS && how == HOW_CANCELLED; i++) {
		expect_number("cancel", 0, pinion_request_cancel(runtime, &ones[i].request));
	}
	check_kept(pool, how);
	for (int i = 0; i < 2; i++) {
		expect_number("stop", -ETIME,
			pinion_runtime_stop_until(runtime, pinion_clock_now_ns() + STOP_LIMIT_NS));
		check_kept(pool, how);
	}
	expect_number("destroy", -EBUSY, pinion_pool_destroy(pool));
	check_others();
	let_all_go();
	expect_number("the last stop", 0, pinion_runtime_stop_until(runtime, UINT64_MAX - 1));
	check_results(pool, how);
	expect_number("destroy", 0, pinion_pool_destroy(pool));
	pinion_runtime_destroy(runtime);
}

static bool check(uint32_t io_level, bool is_device, enum how how)
{
	struct pinion_file file;
	bool is_there;
	pid_t server;

	expect_ready("pipe", pipe2(asked, O_CLOEXEC) == 0 && pipe2(let_go, O_CLOEXEC) == 0);
	server = fuses_start(&served);
	is_there = open_target(&file, is_device);
	if (is_there) {
		check_stop(io_level, &file, how);
		pinion_file_close(&file);
	} else {
		let_all_go();
	}
	close(asked[0]);
	close(asked[1]);
	close(let_go[0]);
	close(let_go[1]);
	fuses_end(server);
	return is_there;
}

int main(void)
{
	bool has_device = true;

	runtimes_watchdog(LIMIT_SECONDS);
	if (!fuses_may_mount()) {
		return EXPECT_SKIPPED;
	}
	scratch_enter("hung_reads_outlive_stop");
	expect_ready("mnt", mkdir("mnt", 0755) == 0);
	scratch_file("other", "other");
	for (size_t i = 0; i < sizeof(contents); i++) {
		contents[i] = (uint8_t)((i * 2654435761u >> 11) ^ (i >> 12));
	}
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		for (enum how how = HOW_CANCELLED; how <= HOW_ALONE; how++) {
			check(level, false, how);
			has_device = has_device && check(level, true, how);
		}
	}
	scratch_leave();
	if (!has_device && expect_failure_count == 0) {
		printf("passed without a block device: no loop device can be had\n");
	}
	return expect_status();
}
