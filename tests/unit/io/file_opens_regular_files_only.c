/* SPDX-License-Identifier: MIT */
/*
 * Goal: only regular files open; all else is the promised error, without
 * blocking and without being opened at all, and no descriptor is left. A
 * request to open one for reading or writing ends with the same error, by a
 * ring and without.
 * Method: one of each kind; inotify shows whether a FIFO was opened.
 */
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
	LIMIT_SECONDS = 60,
};

static void check(const char *path, int expected)
{
	for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER; direct++) {
		struct pinion_file file;

		expect_number(path, expected, pinion_file_open(&file, path, direct));
		if (expected < 0) {
			expect_number("descriptor after a failure", -1, file.fd);
		}
		pinion_file_close(&file);
		expect_number("descriptor after the close", -1, file.fd);
		pinion_file_close(&file);
	}
}

static void make_socket(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect_ready("socket",
		fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
	close(fd);
}

/* A writer that waits for a reader would be let go, to its death by SIGPIPE. */
static void check_fifo_is_left_alone(void)
{
	char events[512];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0 || inotify_add_watch(fd, "fifo", IN_OPEN) < 0) {
		close(fd);
		return;
	}
	check("fifo", -ENOTSUP);
	if (read(fd, events, sizeof(events)) > 0) {
		printf("a FIFO: expected it never to be opened, got an open\n");
		expect_failure_count++;
	}
	close(fd);
}

static void check_request(struct pinion_runtime *runtime, const char *path, uint32_t flags)
{
	struct pinion_file_options options;
	struct pinion_file called;
	struct pinion_file opened = {0}; /* 0: a descriptor that it must not keep */
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_OPEN);
	int rc;

	pinion_file_options_init(&options);
	options.flags = flags;
	request->file = &opened;
	request->path = path;
	request->options = &options;
	rc = pinion_file_open_with(&called, path, &options);
	expect_number(path, rc, (long long)requests_do(runtime, &one));
	expect_true("a file that has not opened has no descriptor", (opened.fd < 0) == (rc < 0));
	pinion_file_close(&called);
	pinion_file_close(&opened);
}

static void check_requests(uint32_t io_level, uint32_t ring_sharing)
{
	static const char *const paths[] = {"plain", "fifo", "socket", "/dev/null", "missing", "."};
	struct pinion_runtime *runtime;
	struct pinion_config config;

	/* Two: with one alone no ring is shared. */
	runtimes_config(&config, 2, io_level);
	runtimes_tuning.ring_sharing = ring_sharing;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		check_request(runtime, paths[i], PINION_FILE_READ);
		check_request(runtime, paths[i], PINION_FILE_WRITE);
		check_request(runtime, paths[i], PINION_FILE_READ | PINION_FILE_WRITE);
	}
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct pinion_file file;
	size_t descriptors;
	char *deep;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("file_opens_regular_files_only");
	scratch_file("plain", "text");
	scratch_file("empty", "");
	make_socket();
	deep = scratch_deep("deep", 30, 200);
	deep = realloc(deep, strlen(deep) + sizeof("/leaf"));
	expect_ready("realloc", deep != NULL);
	strcat(deep, "/leaf");
	expect_ready("fifo", mkfifo("fifo", 0600) == 0);
	expect_ready("links",
		symlink("plain", "link") == 0 && symlink("loop", "loop") == 0 &&
			symlink("nothing", "dangling") == 0);
	descriptors = runtimes_count_entries("/proc/self/fd");

	check("plain", 0);
	check("link", 0);
	check("empty", 0);
	check(deep, 0);
	check(".", -EISDIR);
	check("missing", -ENOENT);
	check("plain/below", -ENOTDIR);
	check("dangling", -ENOENT);
	check("loop", -ELOOP);
	check("socket", -ENOTSUP);
	check("/dev/null", -ENOTSUP);
	check_fifo_is_left_alone();
	expect_number("NULL path", -EINVAL, pinion_file_open(&file, NULL, PINION_DIRECT_AUTO));
	expect_number("NULL file", -EINVAL, pinion_file_open(NULL, "plain", PINION_DIRECT_AUTO));
	expect_number("direct of 3", -EINVAL, pinion_file_open(&file, "plain", 3));
	expect_number("descriptors", (long long)descriptors,
		(long long)runtimes_count_entries("/proc/self/fd"));
	check_requests(PINION_IO_AUTO, PINION_RING_OWN);
	check_requests(PINION_IO_AUTO, PINION_RING_SHARED);
	check_requests(PINION_IO_FALLBACK, PINION_RING_OWN);
	expect_number("descriptors after requests", (long long)descriptors,
		(long long)runtimes_count_entries("/proc/self/fd"));
	free(deep);
	scratch_leave();
	return expect_status();
}
