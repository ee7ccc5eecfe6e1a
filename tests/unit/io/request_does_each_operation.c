/* SPDX-License-Identifier: MIT */
/*
 * Goal: each operation has the effect of its system call, with and without a
 * ring, past the cache and through it, and beyond 2^53 bytes; a tail that is
 * not aligned is refused and can be cut instead; files open as their options
 * say; writes from a buffer of the worker go as registered memory. G2, G3, G4.
 * Method: each is submitted from outside and looked at with plain system calls;
 * expected errors are those of the kernel.
 */
#include "runtime/io/operation.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
	BLOCK = 4096,
	BLOCKS = 40,
	BYTES = BLOCKS * BLOCK,
	FAR_BYTES = 100,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static uint8_t written[BYTES] __attribute__((aligned(BLOCK)));
static uint8_t read_back[BYTES] __attribute__((aligned(BLOCK)));

static int64_t on_file(uint16_t op, struct pinion_file *file)
{
	struct requests_one one;

	requests_begin(&one, op)->file = file;
	return requests_do(runtime, &one);
}

static struct pinion_file_options options_of(uint32_t flags, uint32_t direct)
{
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.flags = flags;
	options.direct = direct;
	return options;
}

static int64_t open_by_request(
	struct pinion_file *file, const char *path, const struct pinion_file_options *options)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_OPEN);

	request->file = file;
	request->path = path;
	request->options = options;
	return requests_do(runtime, &one);
}

static void check_content(const char *path, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	expect_number("size", (long long)bytes, pread(fd, read_back, BYTES, 0));
	expect_true("written bytes are there", memcmp(written, read_back, bytes) == 0);
	close(fd);
}

static void check_transfers(uint32_t direct)
{
	struct pinion_file_options options = options_of(
		PINION_FILE_READ | PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_TRUNCATE,
		direct);
	struct pinion_file file;

	expect_number("open", 0, open_by_request(&file, "transfers", &options));
	expect_true("direct only if asked", file.is_direct == 0 || direct == PINION_DIRECT_ALWAYS);
	expect_number("write", BYTES - BLOCK,
		requests_transfer(runtime, PINION_OP_WRITE, &file, written, 0, BYTES - BLOCK));
	expect_number("write after it", BLOCK,
		requests_transfer(runtime, PINION_OP_WRITE, &file, written + BYTES - BLOCK,
			BYTES - BLOCK, BLOCK));
	expect_number("fsync", 0, on_file(PINION_OP_FSYNC, &file));
	expect_number("fdatasync", 0, on_file(PINION_OP_FDATASYNC, &file));
	check_content("transfers", BYTES);
	memset(read_back, 0, BYTES);
	/* The file has grown since it was opened empty. */
	expect_number("read", BYTES,
		requests_transfer(runtime, PINION_OP_READ, &file, read_back, 0, BYTES));
	expect_true("bytes written", memcmp(written, read_back, BYTES) == 0);
	expect_number("read after the end", 0,
		requests_transfer(runtime, PINION_OP_READ, &file, read_back, BYTES, BLOCK));
	expect_number("read across the end", BLOCK,
		requests_transfer(runtime, PINION_OP_READ, &file, read_back, BYTES - BLOCK,
			2 * (uint64_t)BLOCK));
	if (file.is_direct != 0) {
		expect_number("a tail that is not aligned", -EINVAL,
			requests_transfer(runtime, PINION_OP_WRITE, &file, written, 0, BLOCK + 1));
		expect_number("an offset", -EINVAL,
			requests_transfer(runtime, PINION_OP_WRITE, &file, written, 1, BLOCK));
		expect_number("memory", -EINVAL,
			requests_transfer(runtime, PINION_OP_WRITE, &file, written + 1, 0, BLOCK));
	}
	expect_number("resize", 0, pinion_file_resize(&file, BYTES - 100));
	expect_number("the size it knows", BYTES - 100, (long long)file.size_bytes);
	check_content("transfers", BYTES - 100);
	expect_number("close", 0, on_file(PINION_OP_CLOSE, &file));
	expect_number("closed", -1, file.fd);
	expect_number("read of a closed file", -EBADF,
		requests_transfer(runtime, PINION_OP_READ, &file, read_back, 0, BLOCK));
	expect_number("close once more", -EBADF, on_file(PINION_OP_CLOSE, &file));
}

static int64_t allocate(struct pinion_file *file, uint64_t offset, uint64_t length, uint32_t flags)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_ALLOCATE);

	request->file = file;
	request->offset_bytes = offset;
	request->length_bytes = length;
	request->flags = flags;
	return requests_do(runtime, &one);
}

/* Where a double could not represent the next byte. */
static void check_far(void)
{
	uint64_t offset = (UINT64_C(1) << 53) + 1;
	struct pinion_file file = {.fd = memfd_create("far", MFD_CLOEXEC),
		.memory_align_bytes = 1,
		.offset_align_bytes = 1,
		.flags = PINION_FILE_READ | PINION_FILE_WRITE};

	expect_ready("a file of memory", file.fd >= 0);
	expect_number("grow", 0, pinion_file_resize(&file, offset + BLOCK));
	expect_number("write", FAR_BYTES,
		requests_transfer(runtime, PINION_OP_WRITE, &file, written, offset, FAR_BYTES));
	expect_number("read", 2 * FAR_BYTES,
		requests_transfer(runtime, PINION_OP_READ, &file, read_back, offset - FAR_BYTES,
			2 * FAR_BYTES));
	for (int i = 0; i < FAR_BYTES; i++) {
		expect_number("nothing before it", 0, read_back[i]);
	}
	expect_true("bytes written", memcmp(written, read_back + FAR_BYTES, FAR_BYTES) == 0);
	expect_number("read to the end", BLOCK - 1,
		requests_transfer(runtime, PINION_OP_READ, &file, read_back, offset + 1, BYTES));
	expect_true("bytes written, from the next byte on",
		memcmp(written + 1, read_back, FAR_BYTES - 1) == 0);
	pinion_file_close(&file);
}

static void check_allocate(void)
{
	struct pinion_file_options options =
		options_of(PINION_FILE_WRITE | PINION_FILE_CREATE, PINION_DIRECT_NEVER);
	struct pinion_file file;
	struct stat status;
	int64_t result;

	expect_number("open", 0, open_by_request(&file, "allocated", &options));
	result = allocate(&file, 0, BYTES, 0);
	if (result != -EOPNOTSUPP) {
		expect_number("allocate", 0, result);
		expect_number("fstat", 0, fstat(file.fd, &status));
		expect_number("its size", BYTES, status.st_size);
		expect_true("its blocks", status.st_blocks * 512 >= BYTES);
	}
	expect_number("no length", -EINVAL, allocate(&file, 0, 0, 0));
	expect_number("out of range", -EINVAL, allocate(&file, INT64_MAX, 1, 0));
	expect_number("flags that do not fit", -EOPNOTSUPP,
		allocate(&file, 0, BLOCK, FALLOC_FL_PUNCH_HOLE));
	expect_number("read of a file open for writing", -EBADF,
		requests_transfer(runtime, PINION_OP_READ, &file, read_back, 0, BLOCK));
	pinion_file_close(&file);
	expect_number("open", 0, open_by_request(&file, "allocated", NULL));
	expect_number("write to a file open for reading", -EBADF,
		requests_transfer(runtime, PINION_OP_WRITE, &file, written, 0, BLOCK));
	expect_number("resize of it", -EINVAL, pinion_file_resize(&file, 0));
	pinion_file_close(&file);
}

static int64_t look(struct statx *status, struct pinion_file *file, const char *path,
	const struct pinion_file_options *options)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_STATX);

	request->file = file;
	request->path = path;
	request->options = options;
	request->status = status;
	request->flags = STATX_BASIC_STATS;
	return requests_do(runtime, &one);
}

static void check_statx(void)
{
	struct pinion_file_options options =
		options_of(PINION_FILE_READ | PINION_FILE_NO_FOLLOW, PINION_DIRECT_AUTO);
	struct pinion_file file;
	struct statx status = {0};

	expect_number("open", 0, pinion_file_open(&file, "transfers", PINION_DIRECT_NEVER));
	expect_number("of a file", 0, look(&status, &file, NULL, NULL));
	expect_number("its size", BYTES - 100, (long long)status.stx_size);
	pinion_file_close(&file);
	expect_number("of a path", 0, look(&status, NULL, "link", NULL));
	expect_true("through the link", S_ISREG(status.stx_mode));
	expect_number("of a link", 0, look(&status, NULL, "link", &options));
	expect_true("the link", S_ISLNK(status.stx_mode));
	expect_number("of nothing", -ENOENT, look(&status, NULL, "missing", NULL));
	expect_number("nothing given", -EINVAL, look(&status, NULL, NULL, NULL));
	expect_number("no place for it", -EINVAL, look(NULL, NULL, "link", NULL));
}

/* Both ways of opening say the same. */
static void expect_open(
	const char *what, int expected, const char *path, const struct pinion_file_options *options)
{
	struct pinion_file file = {.fd = -1};

	expect_number(what, expected, open_by_request(&file, path, options));
	if (expected == 0) {
		pinion_file_close(&file);
	}
	expect_number(what, expected, pinion_file_open_with(&file, path, options));
	if (expected == 0) {
		pinion_file_close(&file);
	}
}

static void check_resolve(void)
{
	struct pinion_file_options options = options_of(PINION_FILE_READ, PINION_DIRECT_AUTO);

	options.directory_fd = open("folder", O_PATH | O_CLOEXEC);
	expect_open("below a folder", 0, "inside", &options);
	expect_open("out of it", 0, "../transfers", &options);
	options.resolve = RESOLVE_BENEATH;
	expect_open("below it", 0, "inside", &options);
	expect_open("out of it, which is forbidden", -EXDEV, "../transfers", &options);
	options.resolve = RESOLVE_NO_SYMLINKS;
	expect_open("a link, which is forbidden", -ELOOP, "../link", &options);
	close(options.directory_fd);
}

static void check_options(void)
{
	struct {
		struct pinion_file_options options;
		uint64_t newer;
	} larger = {.options = options_of(PINION_FILE_READ, PINION_DIRECT_AUTO)};
	struct pinion_file_options options =
		options_of(PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_EXCLUSIVE,
			PINION_DIRECT_NEVER);

	options.mode = 0600;
	expect_open("exists", -EEXIST, "transfers", &options);
	options.flags = PINION_FILE_READ | PINION_FILE_NO_FOLLOW;
	expect_open("a link", -ELOOP, "link", &options);
	expect_open("nothing there", -ENOENT, "missing", &options);
	expect_open("a folder", -EISDIR, "folder", &options);
	options.flags = 0;
	expect_open("neither read nor write", -EINVAL, "transfers", &options);
	options.flags = PINION_FILE_READ | PINION_FILE_TRUNCATE;
	expect_open("truncate without write", -EINVAL, "transfers", &options);
	options.flags = PINION_FILE_WRITE | PINION_FILE_EXCLUSIVE;
	expect_open("exclusive without create", -EINVAL, "transfers", &options);
	options.flags = 1024;
	expect_open("an unknown flag", -EINVAL, "transfers", &options);
	options = options_of(PINION_FILE_READ, 99);
	expect_open("an unknown way", -EINVAL, "transfers", &options);
	options = options_of(PINION_FILE_READ, PINION_DIRECT_AUTO);
	options.reserved = 1;
	expect_open("reserved", -EINVAL, "transfers", &options);
	larger.options.size = sizeof(larger);
	expect_open("newer, unused", 0, "transfers", &larger.options);
	larger.newer = 1;
	expect_open("newer, used", -E2BIG, "transfers", &larger.options);
	larger.options.size = offsetof(struct pinion_file_options, flags);
	larger.options.flags = 1024;
	expect_open("older", 0, "transfers", &larger.options);
	larger.options.size = 0;
	expect_open("no size", -EINVAL, "transfers", &larger.options);
}

static int64_t advise(uint16_t op, struct pinion_file *file, uint8_t *bytes, uint64_t length_bytes,
	uint32_t flags)
{
	struct requests_one one;
	struct pinion_request *request =
		requests_begin_transfer(&one, op, file, bytes, 0, length_bytes);

	request->flags = flags;
	return requests_do(runtime, &one);
}

static void check_advice(void)
{
	uint8_t *memory = mmap(NULL, 2 * (size_t)BLOCK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pinion_file file;
	struct pinion_file by_hand = {0};
	int ends[2];

	expect_ready("memory", memory != MAP_FAILED && pipe(ends) == 0);
	by_hand.fd = ends[0];
	memset(memory, 1, 2 * (size_t)BLOCK);
	expect_number("a block", 0, advise(PINION_OP_MADVISE, NULL, memory, BLOCK, MADV_DONTNEED));
	expect_number("is gone", 0, memory[BLOCK - 1]);
	expect_number("and no other", 1, memory[BLOCK]);
	expect_number("no advice", -EINVAL, advise(PINION_OP_MADVISE, NULL, memory, BLOCK, 12345));
	expect_number("unmap", 0, munmap(memory, 2 * (size_t)BLOCK));
	expect_number("no memory", -ENOMEM,
		advise(PINION_OP_MADVISE, NULL, memory, BLOCK, MADV_DONTNEED));
	expect_number("open", 0, pinion_file_open(&file, "transfers", PINION_DIRECT_NEVER));
	expect_number(
		"of a file", 0, advise(PINION_OP_FADVISE, &file, NULL, 0, POSIX_FADV_DONTNEED));
	expect_number("no advice", -EINVAL, advise(PINION_OP_FADVISE, &file, NULL, BLOCK, 12345));
	expect_number("of a pipe", -ESPIPE,
		advise(PINION_OP_FADVISE, &by_hand, NULL, BLOCK, POSIX_FADV_NORMAL));
	expect_number("to the disk", 0,
		advise(PINION_OP_SYNC_FILE_RANGE, &file, NULL, BLOCK, SYNC_FILE_RANGE_WRITE));
	expect_number(
		"a flag", -EINVAL, advise(PINION_OP_SYNC_FILE_RANGE, &file, NULL, BLOCK, 1 << 20));
	expect_number("of a pipe", -ESPIPE,
		advise(PINION_OP_SYNC_FILE_RANGE, &by_hand, NULL, BLOCK, SYNC_FILE_RANGE_WRITE));
	pinion_file_close(&file);
	close(ends[0]);
	close(ends[1]);
}

static void check_others(void)
{
	struct requests_one one;

	requests_begin(&one, PINION_OP_NOP);
	expect_number("nop", 0, requests_do(runtime, &one));
	requests_begin(&one, PINION_OP_TIMEOUT);
	expect_number("timeout without a deadline", -EINVAL, requests_do(runtime, &one));
	one.request.deadline_ns = 1;
	expect_number("timeout that is over", -ETIME, requests_do(runtime, &one));
	requests_begin(&one, PINION_OP_TIMEOUT);
	one.request.deadline_ns = pinion_clock_now_ns() + 1000000;
	expect_number("timeout", -ETIME, requests_do(runtime, &one));
	expect_true("not early", pinion_clock_now_ns() >= one.request.deadline_ns);
	requests_begin(&one, PINION_OP_CANCEL);
	expect_number("cancel of nothing", 0, requests_do(runtime, &one));
	requests_begin(&one, PINION_OP_CANCEL);
	one.request.deadline_ns = 1;
	expect_number("cancel with a deadline", -EINVAL, requests_do(runtime, &one));
	requests_begin(&one, PIN_OP_PUBLIC_COUNT);
	expect_number("unknown", -EINVAL, requests_do(runtime, &one));
	requests_begin(&one, PINION_OP_NOP);
	one.request.task.run = NULL;
	expect_number("no function", -EINVAL, pinion_request_submit(runtime, &one.request));
	requests_begin(&one, PINION_OP_FSYNC);
	expect_number("no file", -EINVAL, requests_do(runtime, &one));
}

/* ---- names ---- */

struct names {
	const char *path;
	int directory_fd;
	const char *new_path;
	int new_directory_fd;
	uint32_t flags;
	uint64_t deadline_ns;
};

static int64_t on_names(uint16_t op, const struct names *names)
{
	struct pinion_file_options options = options_of(PINION_FILE_READ, PINION_DIRECT_AUTO);
	struct pinion_file_options new_options = options;
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, op);

	request->path = names->path;
	request->new_path = names->new_path;
	request->flags = names->flags;
	request->deadline_ns = names->deadline_ns;
	/* 0 is none here. */
	if (names->directory_fd != 0) {
		options.directory_fd = names->directory_fd;
		request->options = &options;
	}
	if (names->new_directory_fd != 0) {
		new_options.directory_fd = names->new_directory_fd;
		request->new_options = &new_options;
	}
	return requests_do(runtime, &one);
}

#define ON_NAMES(op, ...) on_names(PINION_OP_##op, &(struct names){__VA_ARGS__})

static void expect_mode(const char *path, mode_t expected)
{
	struct stat status;

	expect_number(path, 0, lstat(path, &status));
	expect_number(path, expected, status.st_mode);
}

static void open_directory(struct pinion_file *file, const char *path)
{
	struct pinion_file_options options =
		options_of(PINION_FILE_READ | PINION_FILE_DIRECTORY, PINION_DIRECT_AUTO);

	expect_number(path, 0, open_by_request(file, path, &options));
}

static void check_directories(void)
{
	struct pinion_file_options options =
		options_of(PINION_FILE_READ | PINION_FILE_DIRECTORY, PINION_DIRECT_AUTO);
	struct pinion_file file;
	struct statx status;

	expect_number("mkdir", 0, ON_NAMES(MKDIR, .path = "made", .flags = 0750));
	expect_mode("made", S_IFDIR | 0750);
	expect_number("once more", -EEXIST, ON_NAMES(MKDIR, .path = "made", .flags = 0750));
	expect_open("a directory", 0, "made", &options);
	expect_open("a file, as a directory", -ENOTDIR, "named", &options);
	expect_open("nothing, as a directory", -ENOENT, "missing", &options);
	options.flags |= PINION_FILE_CREATE;
	expect_open("a directory, to be made", -EINVAL, "made", &options);
	options.flags = PINION_FILE_WRITE | PINION_FILE_DIRECTORY;
	expect_open("a directory, to be written", -EINVAL, "made", &options);
	open_directory(&file, "made");
	expect_number("its fsync", 0, on_file(PINION_OP_FSYNC, &file));
	expect_number("of a directory", 0, look(&status, &file, NULL, NULL));
	expect_true("it is one", S_ISDIR(status.stx_mode));
	expect_number("its bytes", -EISDIR,
		requests_transfer(runtime, PINION_OP_READ, &file, read_back, 0, BLOCK));
	expect_number("its close", 0, on_file(PINION_OP_CLOSE, &file));
}

static void check_links(const struct pinion_file *made)
{
	char text[16] = {0};

	expect_number("symlink", 0, ON_NAMES(SYMLINK, .path = "any text", .new_path = "made/soft"));
	expect_number("its text", 8, readlink("made/soft", text, sizeof(text)));
	expect_text("its text", "any text", text);
	expect_number("symlink, once more", -EEXIST,
		ON_NAMES(SYMLINK, .path = "other", .new_path = "soft",
			.new_directory_fd = made->fd));
	expect_number("link", 0,
		ON_NAMES(LINK, .path = "named", .new_path = "hard", .new_directory_fd = made->fd));
	expect_mode("made/hard", S_IFREG | 0644);
	expect_number("link of a link", 0,
		ON_NAMES(
			LINK, .path = "soft", .directory_fd = made->fd, .new_path = "made/softer"));
	expect_number("its text", 8, readlink("made/softer", text, sizeof(text)));
	expect_number("link through a link", -ENOENT,
		ON_NAMES(LINK, .path = "made/soft", .new_path = "made/none",
			.flags = AT_SYMLINK_FOLLOW));
}

static void check_renames(const struct pinion_file *made, const struct pinion_file *other)
{
	expect_number("rename", 0,
		ON_NAMES(RENAME, .path = "hard", .directory_fd = made->fd, .new_path = "moved",
			.new_directory_fd = other->fd));
	expect_mode("other/moved", S_IFREG | 0644);
	expect_number("its old name", -1, access("made/hard", F_OK));
	expect_number("of what has gone", -ENOENT,
		ON_NAMES(RENAME, .path = "made/hard", .new_path = "other/again"));
	expect_number("that replaces nothing", -EEXIST,
		ON_NAMES(RENAME, .path = "made/soft", .new_path = "other/moved",
			.flags = RENAME_NOREPLACE));
	expect_number("too late", -ETIME,
		ON_NAMES(RENAME, .path = "made/soft", .new_path = "other/moved", .deadline_ns = 1));
	expect_mode("made/soft", S_IFLNK | 0777);
	expect_number("that replaces", 0,
		ON_NAMES(RENAME, .path = "made/soft", .new_path = "other/moved"));
	expect_mode("other/moved", S_IFLNK | 0777);
}

static void check_unlinks(const struct pinion_file *other)
{
	expect_number("of a directory", -EISDIR, ON_NAMES(UNLINK, .path = "other"));
	expect_number("of one that is not empty", -ENOTEMPTY,
		ON_NAMES(UNLINK, .path = "other", .flags = AT_REMOVEDIR));
	expect_number("unlink", 0, ON_NAMES(UNLINK, .path = "moved", .directory_fd = other->fd));
	expect_number("of what has gone", -ENOENT, ON_NAMES(UNLINK, .path = "other/moved"));
	expect_number("unlink", 0, ON_NAMES(UNLINK, .path = "made/softer"));
	expect_number("rmdir", 0, ON_NAMES(UNLINK, .path = "other", .flags = AT_REMOVEDIR));
	expect_number("rmdir", 0, ON_NAMES(UNLINK, .path = "made", .flags = AT_REMOVEDIR));
	expect_number("no path", -EINVAL, ON_NAMES(UNLINK, .flags = AT_REMOVEDIR));
	expect_number("no second path", -EINVAL, ON_NAMES(LINK, .path = "named"));
}

/* With rings, without, and with rings that lack these operations. */
static void check_names(uint32_t io_level, uint32_t without)
{
	struct pinion_config config;
	struct pinion_file made;
	struct pinion_file other;

	runtimes_config(&config, 2, io_level);
	runtimes_tuning.io_without |= without;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	check_directories();
	expect_number("mkdir", 0, ON_NAMES(MKDIR, .path = "other", .flags = 0700));
	open_directory(&made, "made");
	open_directory(&other, "other");
	check_links(&made);
	check_renames(&made, &other);
	check_unlinks(&other);
	pinion_file_close(&made);
	pinion_file_close(&other);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

/* ---- from a buffer, on its worker ---- */

static struct from_buffer {
	struct pinion_request request;
	struct pinion_task task;
	struct pinion_buffer buffer;
	struct pinion_file file;
	struct pin_atomic_u32 ended;
	int rc;
} from_buffer;

static int buffer_written(struct pinion_task *task)
{
	(void)task;
	pinion_buffer_release(runtime, &from_buffer.buffer);
	tasks_signal(&from_buffer.ended);
	return 0;
}

static int write_buffer(struct pinion_task *task)
{
	(void)task;
	from_buffer.rc = pinion_buffer_acquire(runtime, BLOCK, &from_buffer.buffer);
	memcpy(from_buffer.buffer.bytes, written, BLOCK);
	from_buffer.request = (struct pinion_request){.task.run = buffer_written,
		.op = PINION_OP_WRITE,
		.file = &from_buffer.file,
		.bytes = from_buffer.buffer.bytes,
		.length_bytes = BLOCK};
	from_buffer.rc |= pinion_request_submit(runtime, &from_buffer.request);
	return 0;
}

static void check_buffer(void)
{
	struct pinion_file_options options =
		options_of(PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_TRUNCATE,
			PINION_DIRECT_ALWAYS);
	struct pinion_runtime_info facts;
	uint64_t before = runtimes_counters(runtime).unregistered_writes;
	uint64_t after;

	pin_store_release_u32(&from_buffer.ended, 0);
	from_buffer.task.run = write_buffer;
	expect_number("open", 0, open_by_request(&from_buffer.file, "buffer", &options));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &from_buffer.task));
	tasks_await(&from_buffer.ended, 1);
	expect_number("submit", 0, from_buffer.rc);
	expect_number("write", BLOCK, from_buffer.request.result);
	check_content("buffer", BLOCK);
	pinion_file_close(&from_buffer.file);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	after = runtimes_counters(runtime).unregistered_writes;
	expect_number("unregistered", facts.arenas_registered == facts.worker_count ? 0 : 1,
		(long long)(after - before));
}

static void check_counters(void)
{
	struct pinion_runtime_stats counters = runtimes_counters(runtime);

	expect_number("bytes written", 3 * (long long)BYTES + BLOCK + FAR_BYTES,
		(long long)counters.write_bytes);
	expect_true("from memory of our own", counters.unregistered_writes >= 6);
	expect_number("timed out", 2, (long long)counters.requests_timed_out);
	expect_number("one task, the others requests", 1, (long long)counters.tasks_spawned);
	expect_number("all ended", (long long)counters.requests_submitted,
		(long long)counters.requests_completed);
}

static void check(uint32_t io_level)
{
	struct pinion_config config;

	runtimes_config(&config, 2, io_level);
	runtimes_tuning.buffer_rest_ms = 0; /* all is registered, or not, at once */
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER; direct++) {
		check_transfers(direct);
	}
	check_far();
	check_allocate();
	check_statx();
	check_resolve();
	check_options();
	check_advice();
	check_others();
	check_buffer();
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	check_counters();
	pinion_runtime_destroy(runtime);
	expect_number("unlink", 0, unlink("allocated"));
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("request_does_each_operation");
	umask(022);
	for (size_t i = 0; i < BYTES; i++) {
		written[i] = (uint8_t)(i * 37 + i / BLOCK + 1);
	}
	expect_ready("folder", mkdir("folder", 0755) == 0);
	scratch_file("folder/inside", "inside");
	expect_ready("link", symlink("transfers", "link") == 0);
	check(PINION_IO_AUTO);
	check(PINION_IO_FALLBACK);
	scratch_file("named", "named");
	check_names(PINION_IO_AUTO, 0);
	check_names(PINION_IO_FALLBACK, 0);
	check_names(PINION_IO_AUTO, PINION_IO_RENAMEAT | PINION_IO_LINKAT);
	scratch_leave();
	return expect_status();
}
