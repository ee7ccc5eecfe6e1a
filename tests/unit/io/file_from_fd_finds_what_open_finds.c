/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_file_from_fd() finds the same facts of a descriptor as an open
 * of the path, makes O_DIRECT agree with `is_direct`, takes the descriptor over
 * on success alone, and refuses descriptors that cannot be read as a file, each
 * with its error.
 * Method: the same file opened both ways and compared field by field; one
 * descriptor of each wrong kind.
 */
#include "tests/support/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { BYTES = 3 * 4096 + 100, LIMIT_SECONDS = 60 };

static struct pinion_file_options options_of(uint32_t flags, uint32_t direct)
{
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.flags = flags;
	options.direct = direct;
	return options;
}

static void check_same(uint32_t direct, int descriptor_flags)
{
	struct pinion_file_options options = options_of(PINION_FILE_READ, direct);
	int fd = open("file", O_RDONLY | O_CLOEXEC | descriptor_flags);
	struct pinion_file by_path;
	struct pinion_file by_fd;

	if (fd < 0 && descriptor_flags != 0) {
		return; /* a file system without O_DIRECT */
	}
	expect_number("open", 0, pinion_file_open_with(&by_path, "file", &options));
	expect_number("from fd", 0, pinion_file_from_fd(&by_fd, fd, &options));
	expect_number("fd", fd, by_fd.fd);
	expect_number("is_direct", by_path.is_direct, by_fd.is_direct);
	expect_number("memory_align_bytes", by_path.memory_align_bytes, by_fd.memory_align_bytes);
	expect_number("offset_align_bytes", by_path.offset_align_bytes, by_fd.offset_align_bytes);
	expect_number("size_bytes", BYTES, (long long)by_fd.size_bytes);
	expect_number("allocated_bytes", (long long)by_path.allocated_bytes,
		(long long)by_fd.allocated_bytes);
	expect_number("device", (long long)by_path.device, (long long)by_fd.device);
	expect_number("inode", (long long)by_path.inode, (long long)by_fd.inode);
	expect_number("way", by_path.way, by_fd.way);
	expect_number("flags", by_path.flags, by_fd.flags);
	expect_number(
		"O_DIRECT", by_fd.is_direct != 0 ? O_DIRECT : 0, fcntl(fd, F_GETFL) & O_DIRECT);
	pinion_file_close(&by_path);
	pinion_file_close(&by_fd);
	expect_number("closed", -1, fcntl(fd, F_GETFD));
}

/* The descriptor stays open and `file` as it was. */
static void expect_refused(
	const char *what, int error, int fd, const struct pinion_file_options *options)
{
	struct pinion_file file = {.fd = 12345, .size_bytes = 99};

	expect_ready(what, fd >= 0);
	expect_number(what, error, pinion_file_from_fd(&file, fd, options));
	expect_true("it is open still", fcntl(fd, F_GETFD) >= 0);
	expect_true("the struct is as it was", file.fd == 12345 && file.size_bytes == 99);
	close(fd);
}

static void check_refusals(void)
{
	struct pinion_file_options read_only = options_of(PINION_FILE_READ, PINION_DIRECT_AUTO);
	struct pinion_file_options write_only = options_of(PINION_FILE_WRITE, PINION_DIRECT_AUTO);
	struct pinion_file_options both =
		options_of(PINION_FILE_READ | PINION_FILE_WRITE, PINION_DIRECT_AUTO);
	struct pinion_file_options creates =
		options_of(PINION_FILE_READ | PINION_FILE_CREATE, PINION_DIRECT_AUTO);
	struct pinion_file_options resolves = read_only;
	struct pinion_file file;
	int ends[2];
	int pair[2];

	expect_ready("pipe", pipe(ends) == 0);
	expect_ready("sockets", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	expect_refused("a pipe", -ESPIPE, ends[0], NULL);
	expect_refused("its other end", -ESPIPE, ends[1], NULL);
	expect_refused("a socket", -ESPIPE, pair[0], NULL);
	expect_refused("its peer", -ESPIPE, pair[1], &both);
	expect_refused("a folder", -EISDIR, open(".", O_RDONLY | O_CLOEXEC), NULL);
	expect_refused("a device", -ENOTSUP, open("/dev/null", O_RDWR | O_CLOEXEC), NULL);
	expect_refused("an eventfd", -ENOTSUP, eventfd(0, EFD_CLOEXEC), NULL);
	expect_refused("a path", -EBADF, open("file", O_PATH | O_CLOEXEC), NULL);
	expect_refused("not for writing", -EBADF, open("file", O_RDONLY | O_CLOEXEC), &write_only);
	expect_refused("not for both", -EBADF, open("file", O_WRONLY | O_CLOEXEC), &both);
	expect_refused("not for reading", -EBADF, open("file", O_WRONLY | O_CLOEXEC), &read_only);
	expect_refused("appends", -EINVAL, open("file", O_WRONLY | O_APPEND | O_CLOEXEC), NULL);
	expect_refused("creates", -EINVAL, open("file", O_RDONLY | O_CLOEXEC), &creates);
	resolves.resolve = 1;
	expect_refused("resolves", -EINVAL, open("file", O_RDONLY | O_CLOEXEC), &resolves);
	resolves.resolve = 0;
	resolves.direct = 3;
	expect_refused("no such way", -EINVAL, open("file", O_RDONLY | O_CLOEXEC), &resolves);
	expect_number("no descriptor", -EBADF, pinion_file_from_fd(&file, -1, NULL));
	expect_number("no file", -EINVAL, pinion_file_from_fd(NULL, 0, NULL));
}

static void check_transfers(void)
{
	struct pinion_runtime *runtime = runtimes_start(1, PINION_IO_AUTO);
	struct pinion_file file;
	uint8_t byte = 7;

	expect_number(
		"from fd", 0, pinion_file_from_fd(&file, open("file", O_RDWR | O_CLOEXEC), NULL));
	if (!file.is_direct) {
		expect_number("write", 1,
			requests_transfer(runtime, PINION_OP_WRITE, &file, &byte, 5, 1));
		byte = 0;
		expect_number(
			"read", 1, requests_transfer(runtime, PINION_OP_READ, &file, &byte, 5, 1));
		expect_number("bytes written", 7, byte);
	}
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	static const uint32_t ways[] = {
		PINION_DIRECT_AUTO, PINION_DIRECT_ALWAYS, PINION_DIRECT_NEVER};
	static uint8_t bytes[BYTES];
	int fd;

	runtimes_watchdog(LIMIT_SECONDS);
	fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	expect_ready("file", fd >= 0 && write(fd, bytes, BYTES) == BYTES && fsync(fd) == 0);
	close(fd);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(ways); i++) {
		check_same(ways[i], 0);
		check_same(ways[i], O_DIRECT);
	}
	check_refusals();
	check_transfers();
	return expect_status();
}
