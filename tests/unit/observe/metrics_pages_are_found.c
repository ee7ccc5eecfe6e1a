/* SPDX-License-Identifier: MIT */
/*
 * Goal: a reader finds each metrics page of a process, among its descriptors or
 * by its file: a page that is none hides no other, a reader does not add to
 * those of its process, and a child has none of its own. A file outlives its
 * process, and says if the runtime has ended; two runtimes with one name get a
 * file each, and a user's file is not replaced. Where there is none, a line
 * says why.
 * Method: runtimes of this process and of children.
 */
#include "runtime/api/internal.h"
#include "runtime/observe/metrics_page.h"
#include "tests/support/child.h"
#include "tests/support/metrics.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct pinion_runtime *runtime;

static int nothing(struct pinion_task *task)
{
	(void)task;
	return 0;
}

/* ---- among the descriptors of a process ---- */

static const struct pin_page_header *own_header(void)
{
	return (const struct pin_page_header *)(const void *)runtime->shared.metrics->words;
}

static uint64_t created_ns(uint32_t index)
{
	struct pinion_metrics *metrics = open_own(index);
	struct pinion_metrics_info info;

	pinion_metrics_get_info(metrics, &info, sizeof(info));
	pinion_metrics_close(metrics);
	return info.created_ns;
}

static void expect_pages(uint32_t count)
{
	struct pinion_metrics *metrics;

	expect_number("no more pages", -ENOENT,
		pinion_metrics_open_pid(getpid(), count, note, NULL, &metrics));
	expect_true("the last of them",
		count == 0 || created_ns(count - 1) == own_header()->owner.created_ns);
}

/* A page that is none has its index, and those after it are found. */
static void check_bad_page(void)
{
	int bad = memfd_create(PIN_SHARED_PAGE_NAME, MFD_CLOEXEC);
	struct pinion_metrics *metrics;

	expect_ready("memfd", bad >= 0 && ftruncate(bad, 8192) == 0);
	expect_ready("memfd", pwrite(bad, "nonsense", 8, 0) == 8);
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	expect_number(
		"is none", -EPROTO, pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics));
	expect_pages(2);
	close(bad);
	expect_pages(1);
	pinion_runtime_destroy(runtime);
}

/* A reader's descriptors are no pages of its own, nor a second time its own. */
static void check_readers(void)
{
	struct pinion_metrics *first;
	struct pinion_metrics *second;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	first = open_own(0);
	second = open_own(0);
	expect_pages(1);
	pinion_metrics_close(first);
	pinion_metrics_close(second);
	pinion_runtime_destroy(runtime);
}

static int inspect_child(void *arg)
{
	struct pinion_metrics *metrics;
	(void)arg;
	/* Its parent's page is not its own. */
	expect_number("none in a child", -ENOENT,
		pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics));
	return expect_status();
}

/* The kernel starts the child in a later tick, so that the two differ. */
static void await_next_tick(void)
{
	uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;

	do {
		clock_gettime(CLOCK_BOOTTIME, &now);
	} while ((uint64_t)now.tv_sec * ticks_per_s +
			(uint64_t)now.tv_nsec / (1000000000 / ticks_per_s) <=
		pin_process_start(0) + 1);
}

static void check_child(void)
{
	pid_t child;
	int status = 0;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	await_next_tick();
	child = fork();
	if (child == 0) {
		_exit(inspect_child(NULL));
	}
	expect_ready("fork", child > 0 && waitpid(child, &status, 0) == child);
	expect_number("child", 0, status);
	pinion_metrics_close(open_own(0));
	pinion_runtime_destroy(runtime);
}

/* ---- a file ---- */

static void start_with_file(const char *path)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.metrics_file = path;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
}

static void die_with_file(const char *path)
{
	struct pinion_task task = {.run = nothing};

	start_with_file(path);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	for (;;) {
		struct pinion_worker_info info;

		pinion_worker_get_info(runtime, 0, &info, sizeof(info));
		if (info.place == PINION_WORKER_PARKED_FUTEX &&
			runtimes_counters(runtime).tasks_run == 1) {
			raise(SIGKILL);
		}
		sched_yield();
	}
}

/* A file that has the name already: a user's is not replaced. */
static void check_taken_names(void)
{
	char path[512];
	char folder[400];
	struct pinion_config config;
	struct stat status;
	char kept[8] = {0};
	int fd;

	expect_ready("folder", getcwd(folder, sizeof(folder)) != NULL);
	snprintf(path, sizeof(path), "%s/taken", folder);
	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.metrics_file = path;
	for (int kind = 0; kind < 5; kind++) {
		struct pinion_runtime *writer;
		ino_t before;
		bool is_left = kind < 3;

		unlink(path);
		fd = kind == 1 ? -1 : open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
		switch (kind) {
		case 0:
			expect_ready("text", write(fd, "a user's", 8) == 8);
			break;
		case 1:
			expect_ready("pipe", mkfifo(path, 0644) == 0);
			break;
		case 2:
			expect_ready("short", write(fd, "pinionM", 7) == 7);
			break;
		case 3: /* empty, as mktemp(1) makes it */
			break;
		default:
			expect_ready("page", write(fd, "pinionMP", 8) == 8);
			break;
		}
		expect_ready("stat", lstat(path, &status) == 0);
		before = status.st_ino;
		expect_number("create", 0, pinion_runtime_create(&config, &writer));
		pinion_runtime_destroy(writer);
		expect_ready("stat", lstat(path, &status) == 0);
		expect_true("left, or replaced", is_left == (status.st_ino == before));
		if (kind == 0) {
			expect_ready("read", pread(fd, kept, 8, 0) == 8);
			expect_true("its text", memcmp(kept, "a user's", 8) == 0);
			expect_number("and no more", 8, (long long)status.st_size);
		}
		if (fd >= 0) {
			close(fd);
		}
	}
	expect_number("back", 0, unlink(path));
	runtimes_tuning.metrics_file = NULL;
}

static void check_file(void)
{
	char path[512];
	char folder[400];
	struct pinion_metrics *metrics = NULL;
	struct pinion_metrics_info info;
	struct stat status;
	pid_t child;
	int end = 0;

	expect_ready("folder", getcwd(folder, sizeof(folder)) != NULL);
	snprintf(path, sizeof(path), "%s/page", folder);
	child = fork();
	if (child == 0) {
		die_with_file(path);
	}
	expect_ready("child", child > 0 && waitpid(child, &end, 0) == child);
	expect_true("was killed", WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL);
	expect_number("its page", 0, pinion_metrics_open(path, note, NULL, &metrics));
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_number("whose", child, (long long)info.pid);
	expect_number("did not end", 0, info.has_ended);
	expect_true("began", info.process_start != 0);
	pinion_metrics_close(metrics);
	expect_ready("stat", stat(path, &status) == 0);
	expect_number("mode", 0600, status.st_mode & 07777);

	start_with_file(path);
	expect_text("without a line", "", runtimes_log);
	expect_pages(1);
	pinion_runtime_destroy(runtime);
	expect_number("its page", 0, pinion_metrics_open(path, note, NULL, &metrics));
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_number("another", getpid(), (long long)info.pid);
	expect_number("has ended", 1, info.has_ended);
	pinion_metrics_close(metrics);
	unlink(path);
	expect_number("nothing else is left", 0, rmdir(folder) != 0 && errno == ENOTEMPTY);
	expect_ready("again", mkdir(folder, 0700) == 0 && chdir(folder) == 0);

	snprintf(path, sizeof(path), "%s/none/page", folder);
	start_with_file(path);
	expect_true("a line", strstr(runtimes_log, "metrics_file") != NULL);
	pinion_runtime_destroy(runtime);
}

static uint64_t created_in_file(const char *path)
{
	struct pinion_metrics *metrics;
	struct pinion_metrics_info info;

	expect_number(path, 0, pinion_metrics_open(path, note, NULL, &metrics));
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	pinion_metrics_close(metrics);
	return info.created_ns;
}

/* The second has a name of its own, until the first has ended. */
static void check_shared_name(void)
{
	struct pinion_runtime *first;
	char path[512];
	char folder[400];
	uint64_t first_ns;
	uint64_t second_ns;

	expect_ready("folder", getcwd(folder, sizeof(folder)) != NULL);
	snprintf(path, sizeof(path), "%s/shared", folder);
	start_with_file(path);
	first = runtime;
	first_ns = own_header()->owner.created_ns;
	start_with_file(path);
	second_ns = own_header()->owner.created_ns;
	expect_true("a line", strstr(runtimes_log, "this runtime has ") != NULL);
	expect_true("two", first_ns != second_ns);
	expect_true("the first has its name", created_in_file("shared") == first_ns);
	expect_true("the second has another", created_in_file("shared.1") == second_ns);
	expect_pages(2);
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(first);
	start_with_file(path);
	expect_true(
		"the name is free", created_in_file("shared") == own_header()->owner.created_ns);
	expect_true("the other is left", created_in_file("shared.1") == second_ns);
	pinion_runtime_destroy(runtime);
}

/* Every name has the page of a runtime that lives, as far as locks say. */
static void check_no_name_left(void)
{
	static const char line[] = "none is not there: that name, and with .1 to .15 after it, "
				   "have pages of runtimes that live; choose another name";
	int locked[PIN_SHARED_PAGE_NAMES];
	char path[512];
	char folder[400];
	size_t length;

	expect_ready("folder", getcwd(folder, sizeof(folder)) != NULL);
	snprintf(path, sizeof(path), "%s/none", folder);
	length = strlen(path);
	for (int i = 0; i < PIN_SHARED_PAGE_NAMES; i++) {
		snprintf(path + length, sizeof(path) - length, ".%d", i);
		path[i == 0 ? length : strlen(path)] = '\0';
		locked[i] = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
		expect_ready("page",
			write(locked[i], "pinionMP", 8) == 8 &&
				flock(locked[i], LOCK_EX | LOCK_NB) == 0);
	}
	path[length] = '\0';
	start_with_file(path);
	expect_true(runtimes_log, strstr(runtimes_log, line) != NULL);
	expect_pages(0);
	pinion_runtime_destroy(runtime);
	for (int i = 0; i < PIN_SHARED_PAGE_NAMES; i++) {
		close(locked[i]);
	}
}

/* A file is asked for, and no page. */
static void check_file_of_no_page(void)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.metrics_file = "/nowhere/page";
	runtimes_tuning.metrics_page = 0;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_true(runtimes_log,
		strstr(runtimes_log, "/nowhere/page is not there: metrics_page is 0") != NULL);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	scratch_enter("metrics_pages_are_found");
	check_bad_page();
	check_readers();
	check_child();
	check_file();
	check_taken_names();
	check_shared_name();
	check_no_name_left();
	check_file_of_no_page();
	scratch_leave();
	return expect_status();
}
