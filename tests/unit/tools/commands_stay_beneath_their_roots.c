/* SPDX-License-Identifier: MIT */
/*
 * Goal: while a tree's owner exchanges its folders for symbolic links, also
 * those that ignore files are in, no command opens or lists anything outside
 * it: sum and scan, by rings and by calls, with ignore files, and doctor; with
 * openat2 and where a filter refuses it.
 * Method: a thread exchanges folders all along while each command runs over and
 * over; inotify notes each open and read of files outside. In the end one open
 * of ours has to be noted. With the argument "bind", which needs root, the tree
 * is a bind mount, out of which its owner moves folders as well.
 * STRESS_ITERATIONS: runs of each command.
 */
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "tests/support/child.h"
#include "tests/support/filter.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
	LIMIT_SECONDS = 200,
	RUNS = 12,
	EXCHANGE = 2, /* RENAME_EXCHANGE */
	STATUS_MAX = 2,
	ARGUMENTS_MAX = 6,
};

static const char *const commands[][ARGUMENTS_MAX] = {
	{"pinion", "sum", "-r", "tree"},
	{"pinion", "sum", "-r", "--io=fallback", "tree"},
	{"pinion", "sum", "-r", "--gitignore", "tree"},
	{"pinion", "scan", "-e", "SECRET", "tree"},
	{"pinion", "scan", "--gitignore", "-e", "SECRET", "tree"},
	{"pinion", "doctor", "tree"},
};

static char *program;
static struct pin_atomic_u32 is_over;
static const char *source = "tree"; /* where the tree's owner finds it */
static bool is_mounted;

static void at(char *out_path, size_t bytes, const char *below)
{
	snprintf(out_path, bytes, "%s/%s", source, below);
}

static void exchange(const char *below, const char *link)
{
	char path[64];

	at(path, sizeof(path), below);
	expect_ready(below, syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, link, EXCHANGE) == 0);
}

static void exchange_by_steps(void)
{
	char path[64];

	at(path, sizeof(path), "outer/inner");
	expect_ready("rename",
		rename(path, "base/away") == 0 && symlink("../../secret/inner", path) == 0 &&
			unlink(path) == 0 && rename("base/away", path) == 0);
}

static void *exchange_all_along(void *arg)
{
	uint64_t *count = arg;

	while (pin_load_acquire_u32(&is_over) == 0) {
		for (uint32_t twice = 0; twice < 2; twice++) {
			exchange("outer", "link");
			sched_yield();
		}
		for (uint32_t twice = 0; twice < 2; twice++) {
			exchange("outer/.git/info", "info_link");
			sched_yield();
		}
		exchange_by_steps();
		*count += 5;
	}
	return NULL;
}

/* `refusal`: the answer to openat2, 0: the kernel's own. */
static void execute(const char *const *command, int refusal)
{
	char *arguments[ARGUMENTS_MAX + 1] = {NULL};
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < ARGUMENTS_MAX && command[i] != NULL; i++) {
		arguments[i] = strdup(command[i]);
	}
	if (null_fd < 0 || dup2(null_fd, STDOUT_FILENO) < 0 || dup2(null_fd, STDERR_FILENO) < 0 ||
		(refusal != 0 && !filter_refuse(SYS_openat2, refusal))) {
		_exit(EXPECT_SKIPPED);
	}
	execv(program, arguments);
	_exit(EXPECT_SKIPPED);
}

static void run_command(const char *const *command, int refusal)
{
	int status = 0;
	pid_t child = fork();

	expect_ready("fork", child >= 0);
	if (child == 0) {
		execute(command, refusal);
	}
	expect_ready("waitpid", waitpid(child, &status, 0) == child);
	expect_true(command[1], WIFEXITED(status) && WEXITSTATUS(status) <= STATUS_MAX);
}

/* Opens and reads noted since the last call. */
static uint32_t noted(int notes)
{
	static char events[4096];
	uint32_t count = 0;

	while (read(notes, events, sizeof(events)) > 0) {
		count++;
	}
	return count;
}

static int watch_outside(void)
{
	static const char *const folders[] = {"secret", "secret/inner", "secret/info"};
	int notes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	expect_ready("inotify", notes >= 0);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(folders); i++) {
		expect_ready(
			folders[i], inotify_add_watch(notes, folders[i], IN_OPEN | IN_ACCESS) >= 0);
	}
	return notes;
}

static void check_commands(int notes, int refusal)
{
	uint64_t runs = tasks_iterations(RUNS);

	for (size_t i = 0; i < PIN_ARRAY_COUNT(commands); i++) {
		char what[64];

		for (uint64_t run = 0; run < runs; run++) {
			run_command(commands[i], refusal);
		}
		snprintf(what, sizeof(what), "escapes of %s %s, refusal %d", commands[i][1],
			commands[i][2], refusal);
		expect_number(what, 0, noted(notes));
	}
}

static void check_race(int notes)
{
	uint64_t count = 0;
	pthread_t owner;

	pin_store_release_u32(&is_over, 0);
	expect_ready("thread", pthread_create(&owner, NULL, exchange_all_along, &count) == 0);
	check_commands(notes, 0);
	check_commands(notes, ENOSYS);
	pin_store_release_u32(&is_over, 1);
	pthread_join(owner, NULL);
	printf("%llu exchanges\n", (unsigned long long)count);
}

static void make_tree(void)
{
	char path[64];
	static const char *const folders[] = {
		"outer", "outer/inner", "outer/.git", "outer/.git/info"};
	static const char *const files[] = {
		"outer/a", "outer/b", "outer/inner/c", "outer/.git/info/exclude"};

	expect_ready("folders",
		mkdir("base", 0755) == 0 && mkdir(source, 0755) == 0 &&
			mkdir("secret", 0755) == 0 && mkdir("secret/inner", 0755) == 0 &&
			mkdir("secret/info", 0755) == 0 && symlink("../secret", "link") == 0 &&
			symlink("../../../secret/info", "info_link") == 0);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(folders); i++) {
		at(path, sizeof(path), folders[i]);
		expect_ready(path, mkdir(path, 0755) == 0);
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(files); i++) {
		at(path, sizeof(path), files[i]);
		scratch_file(path, "own");
	}
	/* The same names, and a file that is there only. */
	scratch_file("secret/a", "SECRET");
	scratch_file("secret/b", "SECRET");
	scratch_file("secret/inner/c", "SECRET");
	scratch_file("secret/inner/stolen", "SECRET");
	scratch_file("secret/info/exclude", "a\n");
}

/* Nothing of it outlives the process. */
static bool mount_tree(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mkdir("tree", 0755) == 0 && mount(source, "tree", NULL, MS_BIND, NULL) == 0;
}

int main(int argument_count, char **arguments)
{
	const char *top = getenv("top_builddir");
	char *build;
	int notes;
	int fd;

	runtimes_watchdog(LIMIT_SECONDS);
	is_mounted = argument_count > 1 && strcmp(arguments[1], "bind") == 0;
	source = is_mounted ? "base/sub" : "tree";
	build = realpath(top == NULL ? "." : top, NULL);
	expect_ready("pinion",
		build != NULL && asprintf(&program, "%s/pinion", build) >= 0 &&
			access(program, X_OK) == 0);
	scratch_enter("commands_stay_beneath_their_roots");
	make_tree();
	if (is_mounted && !mount_tree()) {
		printf("cannot mount: %s\n", strerror(errno));
		return EXPECT_SKIPPED;
	}
	notes = watch_outside();
	check_race(notes);
	fd = open("secret/a", O_RDONLY | O_CLOEXEC);
	expect_true("an open outside is noted", noted(notes) > 0);
	close(fd);
	close(notes);
	if (is_mounted) {
		expect_ready("umount", umount2("tree", MNT_DETACH) == 0);
	}
	free(program);
	free(build);
	scratch_leave();
	return expect_status();
}
