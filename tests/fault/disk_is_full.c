/* SPDX-License-Identifier: MIT */
/*
 * Goal: writes that find no room end once, with the kernel's -ENOSPC or -EFBIG
 * and as many bytes done as the file then has; those that had room are whole;
 * reads of all that work beside them. When there is room again the same writes
 * succeed. Nothing hangs, and the runtime ends as ever. W16.
 * Method: more is written at once than fits, past the cache and through it,
 * with rings and without: into a file system that was filled up (the folder
 * that is the argument; else, as root, a small tmpfs), beyond the limit on a
 * file's size, and to /dev/full.
 */
#include "tests/support/child.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

enum {
	PIECE = 64 << 10,
	WRITES = 64,
	ROOM = 1 << 20, /* a quarter of the written bytes */
	LIMIT_SECONDS = 100,
};

static uint8_t contents[WRITES][PIECE] __attribute__((aligned(4096)));
static uint8_t read_back[PIECE] __attribute__((aligned(4096)));
static struct requests_one ones[WRITES];

struct setting {
	uint32_t io_level;
	uint32_t direct;
	int32_t error; /* of what finds no room */
};

static void open_file(struct pinion_file *file, const char *path, uint32_t direct)
{
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.flags =
		PINION_FILE_READ | PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_TRUNCATE;
	options.direct = direct;
	expect_ready(path, pinion_file_open_with(file, path, &options) == 0);
}

/* All at once; how many were whole. */
static uint32_t write_all(struct pinion_runtime *runtime, struct pinion_file *file)
{
	uint32_t whole = 0;

	for (uint32_t i = 0; i < WRITES; i++) {
		struct pinion_request *request = requests_begin(&ones[i], PINION_OP_WRITE);

		request->file = file;
		request->bytes = contents[i];
		request->offset_bytes = (uint64_t)i * PIECE;
		request->length_bytes = PIECE;
		expect_number("submit", 0, pinion_request_submit(runtime, request));
	}
	for (uint32_t i = 0; i < WRITES; i++) {
		whole += requests_await(&ones[i]) == PIECE ? 1 : 0;
	}
	return whole;
}

/* What the file has where a write was. */
static void check_bytes(
	struct pinion_runtime *runtime, struct pinion_file *file, uint32_t i, uint32_t length)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_READ);

	memset(read_back, 0, sizeof(read_back));
	request->file = file;
	request->bytes = read_back;
	request->offset_bytes = (uint64_t)i * PIECE;
	request->length_bytes = PIECE;
	expect_true("as much can be read", requests_do(runtime, &one) >= (int32_t)length);
	expect_number("bytes", 0, memcmp(read_back, contents[i], length));
}

static void check_writes(struct pinion_runtime *runtime, struct pinion_file *file, int32_t error)
{
	for (uint32_t i = 0; i < WRITES; i++) {
		const struct pinion_request *request = &ones[i].request;

		expect_number("ends", 1, pin_load_acquire_u32(&ones[i].entered));
		if (request->result != PIECE) {
			expect_number("no room", error, request->result);
			expect_true("not whole", request->done_bytes < PIECE);
		}
		if (request->done_bytes > 0) {
			check_bytes(runtime, file, i, (uint32_t)request->done_bytes);
		}
	}
}

static struct pinion_runtime *start(uint32_t io_level)
{
	return runtimes_start(2, io_level);
}

/* ---- a full file system ---- */

/* Leaves less than a page, or what a file system keeps for itself. */
static int fill(const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
	struct statvfs status;
	off_t end = 0;
	off_t step;

	expect_ready(path, fd >= 0 && fstatvfs(fd, &status) == 0);
	step = (off_t)(status.f_bfree * status.f_frsize) + 4096;
	while (step >= 4096) {
		step &= ~(off_t)4095;
		if (posix_fallocate(fd, end, step) == 0) {
			end += step;
		} else {
			step /= 2;
		}
	}
	expect_ready("some room", end > ROOM && ftruncate(fd, end - ROOM) == 0);
	return fd;
}

static void check_full(const struct setting *setting)
{
	struct pinion_runtime *runtime = start(setting->io_level);
	int filler = fill("filler");
	struct pinion_file file;
	struct requests_one one;
	uint32_t whole;

	open_file(&file, "file", setting->direct);
	whole = write_all(runtime, &file);
	expect_true("some had no room", whole < WRITES);
	check_writes(runtime, &file, setting->error);
	expect_ready("room again", ftruncate(filler, 0) == 0);
	expect_number("all have room", WRITES, write_all(runtime, &file));
	check_writes(runtime, &file, setting->error);
	requests_begin(&one, PINION_OP_FSYNC)->file = &file;
	expect_number("fsync", 0, requests_do(runtime, &one));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	pinion_file_close(&file);
	close(filler);
	expect_ready("unlink", unlink("file") == 0 && unlink("filler") == 0);
}

/* A namespace of its own, so that it goes with the child. */
static int check_in_tmpfs(void *arg)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("tmpfs", ".", "tmpfs", 0, "size=8m") < 0) {
		return EXPECT_SKIPPED;
	}
	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("tmpfs", chdir(scratch_path) == 0);
	check_full(arg);
	return expect_status();
}

static int check_in_folder(void *arg)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_full(arg);
	return expect_status();
}

/* ---- a limit on size, a device that is full ---- */

static int check_limit(void *arg)
{
	const struct setting *setting = arg;
	struct rlimit limit = {.rlim_cur = ROOM, .rlim_max = ROOM};
	struct pinion_runtime *runtime;
	struct pinion_file file;

	runtimes_watchdog(LIMIT_SECONDS);
	signal(SIGXFSZ, SIG_IGN);
	expect_ready("setrlimit", setrlimit(RLIMIT_FSIZE, &limit) == 0);
	runtime = start(setting->io_level);
	open_file(&file, "limited", setting->direct);
	expect_number("those within", ROOM / PIECE, write_all(runtime, &file));
	check_writes(runtime, &file, -EFBIG);
	pinion_runtime_destroy(runtime);
	pinion_file_close(&file);
	return expect_status();
}

static int check_device(void *arg)
{
	const struct setting *setting = arg;
	struct pinion_runtime *runtime;
	struct pinion_file file = {
		.fd = open("/dev/full", O_WRONLY | O_CLOEXEC),
		.memory_align_bytes = 1,
		.offset_align_bytes = 1,
	};

	if (file.fd < 0) {
		return EXPECT_SKIPPED;
	}
	runtimes_watchdog(LIMIT_SECONDS);
	runtime = start(setting->io_level);
	expect_number("none", 0, write_all(runtime, &file));
	for (uint32_t i = 0; i < WRITES; i++) {
		expect_number("full", -ENOSPC, ones[i].request.result);
		expect_number("done", 0, (long long)ones[i].request.done_bytes);
	}
	pinion_runtime_destroy(runtime);
	close(file.fd);
	return expect_status();
}

/* ---- all of them ---- */

static void run(const char *what, int (*body)(void *), struct setting *setting)
{
	int code = child_code(child_run(body, setting, NULL, 0));
	char line[80];

	snprintf(line, sizeof(line), "%s, level %u, direct %u", what, setting->io_level,
		setting->direct);
	if (code == EXPECT_SKIPPED) {
		printf("%s: cannot be had here\n", line);
	} else {
		expect_number(line, 0, code);
	}
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < WRITES; i++) {
		for (size_t j = 0; j < PIECE; j++) {
			contents[i][j] = (uint8_t)((j * 2654435761u >> 11) ^ (i * 37) ^ 1);
		}
	}
	if (argc > 1) {
		expect_ready(argv[1], chdir(argv[1]) == 0);
	} else {
		scratch_enter("disk_is_full");
	}
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		for (uint32_t direct = PINION_DIRECT_ALWAYS; direct <= PINION_DIRECT_NEVER;
			direct++) {
			struct setting setting = {level, direct, -ENOSPC};

			run("full", argc > 1 ? check_in_folder : check_in_tmpfs, &setting);
			run("limit", check_limit, &setting);
			run("device", check_device, &setting);
		}
	}
	if (argc == 1) {
		scratch_leave();
	}
	return expect_status();
}
