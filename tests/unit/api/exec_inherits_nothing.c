/* SPDX-License-Identifier: MIT */
/*
 * Goal: a program that a process with a runtime executes gets none of its
 * descriptors: rings, eventfds, files. G8.
 * Method: with rings, their eventfds and none of both, with files opened by a
 * call and by a request: whatever is open now and was not before has
 * FD_CLOEXEC; and this program, executed anew, has as many as without a
 * runtime.
 */
#include "tests/support/child.h"
#include "tests/support/requests.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum {
	LIMIT_SECONDS = 60,
	FDS_MAX = 1024,
};

static bool was_open[FDS_MAX];

/* Calls `visit` with each descriptor but that of the listing; how many. */
static uint32_t for_each_fd(void (*visit)(int fd))
{
	DIR *folder = opendir("/proc/self/fd");
	uint32_t count = 0;
	struct dirent *entry;

	expect_ready("/proc/self/fd", folder != NULL);
	while ((entry = readdir(folder)) != NULL) {
		int fd = entry->d_name[0] == '.' ? -1 : (int)strtol(entry->d_name, NULL, 10);

		if (fd >= 0 && fd != dirfd(folder)) {
			expect_ready("a small number", fd < FDS_MAX);
			visit(fd);
			count++;
		}
	}
	closedir(folder);
	return count;
}

static void note_open(int fd)
{
	was_open[fd] = true;
}

static void check_flag(int fd)
{
	if (!was_open[fd]) {
		expect_number("closed by exec", FD_CLOEXEC, fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
}

static void pass(int fd)
{
	(void)fd;
}

/* Prints how many there are after the program has been entered anew. */
static int execute(void *arg)
{
	(void)arg;
	execl("/proc/self/exe", "exec_inherits_nothing", "count", (char *)NULL);
	return 1;
}

static void check_executed(uint32_t expected)
{
	char output[64] = "";

	expect_number("the child", 0, child_code(child_run(execute, NULL, output, sizeof(output))));
	expect_number("descriptors that a program gets", expected, strtol(output, NULL, 10));
}

static void check_level(uint32_t io_level, uint32_t without)
{
	struct pinion_runtime *runtime = NULL;
	struct requests_one one;
	struct pinion_request *request;
	struct pinion_config config;
	struct pinion_file files[2] = {{.fd = -1}, {.fd = -1}};
	uint32_t before;
	char output[64] = "";

	before = for_each_fd(note_open);
	/* What a child has without a runtime. */
	expect_number("the child", 0, child_code(child_run(execute, NULL, output, sizeof(output))));
	runtimes_config(&config, 2, io_level);
	runtimes_tuning.io_without |= without;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("open", 0, pinion_file_open(&files[0], "/proc/self/exe", PINION_DIRECT_AUTO));
	request = requests_begin(&one, PINION_OP_OPEN);
	request->file = &files[1];
	request->path = "/proc/self/exe";
	expect_number("open by a request", 0, requests_do(runtime, &one));
	expect_true("there is something to see", for_each_fd(check_flag) > before);
	check_executed((uint32_t)strtol(output, NULL, 10));
	pinion_file_close(&files[0]);
	pinion_file_close(&files[1]);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

int main(int argument_count, char **arguments)
{
	if (argument_count == 2 && strcmp(arguments[1], "count") == 0) {
		fprintf(stderr, "%u\n", for_each_fd(pass));
		return 0;
	}
	runtimes_own_level();
	runtimes_watchdog(LIMIT_SECONDS);
	check_level(PINION_IO_FALLBACK, 0);
	check_level(PINION_IO_AUTO, 0);
	check_level(PINION_IO_AUTO, PINION_IO_SEND_MSG_RING);
	check_level(PINION_IO_AUTO, PINION_IO_REGISTERED_RING);
	return expect_status();
}
