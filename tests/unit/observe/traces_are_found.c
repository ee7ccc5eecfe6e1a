/* SPDX-License-Identifier: MIT */
/*
 * Goal: of the descriptors of a process its own traces are found, each once: no
 * other process's, no page that is none, none that is filled only now; the line
 * for these says so where there is no other, but not for a descriptor that was
 * closed meanwhile. A trace says when its runtime has ended. A reader's work is
 * bounded: events beyond its limit count as lost, of descriptors called so it
 * opens 128. A head that goes back is refused. In a forked child so is a trace
 * that its parent has opened. `pinion trace` says that nothing happened, where
 * it has watched for a time. EX-37, WP-33.
 * Method: a runtime with a trace, and copies of its page in memory files of the
 * same name, with other headers; an open() of the test's own.
 */
#include "runtime/api/internal.h"
#include "runtime/observe/trace_reader.h"
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LIMIT_SECONDS = 60,
	EVENTS = 64,
	FIRST_TASKS = 12,
	MORE_TASKS = 5,
	TAKEN = 5,
	/* Documented: events of a trace. */
	TAKEN_MAX = 4194304,
	PAGES_MAX = 128,
};

static struct pinion_runtime *runtime;
static bool has_no_stat;   /* of this process: it ends just now */
static int closed_fd = -1; /* of this process: closed before it is opened */
static char said[512];
static uint32_t line_count;

int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode = 0;
	char own_stat[32];
	char own_fd[48];

	if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		va_end(arguments);
	}
	snprintf(own_stat, sizeof(own_stat), "/proc/%d/stat", (int)getpid());
	snprintf(own_fd, sizeof(own_fd), "/proc/%d/fd/%d", (int)getpid(), closed_fd);
	if ((has_no_stat && strcmp(path, own_stat) == 0) || strcmp(path, own_fd) == 0) {
		errno = ENOENT;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void note(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(said, sizeof(said), "%s", message);
	line_count++;
}

static void start(void)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.trace_events = EVENTS;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
}

static struct pin_trace *own(void)
{
	return runtime->shared.trace;
}

static int open_own(uint32_t index, struct pinion_trace **out_trace)
{
	line_count = 0;
	said[0] = '\0';
	return pinion_trace_open_pid(getpid(), index, note, NULL, out_trace);
}

/* The trace of that index is the runtime's; 0, or an error. */
static int find_own(uint32_t index)
{
	struct pinion_trace *trace = NULL;
	struct pinion_trace_info info;
	int rc = open_own(index, &trace);

	if (rc == 0) {
		pinion_trace_get_info(trace, &info, sizeof(info));
		expect_number("its own", getpid(), (long long)info.pid);
		expect_number("without a line", 0, line_count);
		pinion_trace_close(trace);
	}
	return rc;
}

/* A memory file that is called as a trace. */
static int make_page(const void *bytes, size_t length)
{
	int fd = memfd_create(PIN_TRACE_PAGE_NAME, MFD_CLOEXEC);

	expect_ready("memfd", fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
	return fd;
}

static bool is_scarce(int fd)
{
	(void)fd;
	return true;
}

/* Of the last descriptors it takes none, and the runtime has its trace. */
static void check_scarce(void)
{
	struct pin_host host = pin_host_linux;
	struct pin_log log = {.fn = note};
	struct pin_trace *trace = NULL;
	int before = dup(0);
	int after;

	close(before);
	pin_log_init(&log);
	host.fd_is_scarce = is_scarce;
	said[0] = '\0';
	expect_ready("create", pin_trace_create(&host, &log, 1, 16, &trace) == 0);
	expect_text("said",
		"no other process can read this runtime's trace: it would take one of the last "
		"descriptors (ulimit -n): Too many open files; the program itself can",
		said);
	expect_true("memory of its own", trace->page.memory == NULL && trace->words != NULL);
	after = dup(0);
	expect_number("descriptors", before, after);
	close(after);
	pin_trace_destroy(trace);
}

/* ---- which are found ---- */

/* As `kind` says, and in front of the runtime's: descriptors come in order. */
static void check_beside(const char *kind, int low, int error, const char *line)
{
	expect_number(kind, 0, find_own(0));
	expect_number(kind, error, find_own(1));
	expect_number(kind, error == -ENOENT ? 0 : 1, line_count);
	expect_true(line, strstr(said, line) != NULL);
	close(low);
	expect_number(kind, -ENOENT, find_own(1));
}

/* Word by word: the worker goes on to write. */
static void copy_page(struct pin_trace_header *copy)
{
	uint64_t *words = (uint64_t *)copy;

	for (size_t i = 0; i < own()->word_count; i++) {
		words[i] = pin_load_relaxed_u64(&own()->words[i]);
	}
}

/* Whose it is cannot be known: it may be its own. */
static void check_beside_unknown(struct pin_trace_header *copy, size_t bytes)
{
	int low = make_page(copy, bytes); /* of another process */

	expect_number("another process's", -ENOENT, find_own(1));
	has_no_stat = true;
	expect_number("by an unknown process", 0, find_own(1));
	has_no_stat = false;
	close(low);
	copy->owner.process_start = 0;
	low = make_page(copy, bytes);
	expect_number("of an unknown writer", 0, find_own(1));
	close(low);
}

static void check_others(void)
{
	size_t bytes = own()->word_count * sizeof(uint64_t);
	struct pin_trace_header *copy = malloc(bytes);
	uint64_t zero = 0;
	static const char nonsense[200] = "nonsense"; /* longer than a header */

	expect_ready("memory", copy != NULL);
	check_beside("nonsense", make_page(nonsense, sizeof(nonsense)), -EPROTO, "it is no trace");
	check_beside("short", make_page("short", 5), -EPROTO, "too short");
	check_beside("empty", make_page("", 0), -EAGAIN, "try again");
	copy_page(copy);
	memcpy(copy, &zero, sizeof(zero));
	check_beside("being filled", make_page(copy, bytes), -EAGAIN, "try again");
	copy_page(copy);
	copy->owner.process_start++;
	check_beside("another process's", make_page(copy, bytes), -ENOENT, "");
	check_beside_unknown(copy, bytes);
	check_beside("the same", dup(own()->page.fd), -ENOENT, "");
	free(copy);
}

/* It says nothing of the page that was closed, but of the next. */
static void check_closed(void)
{
	int bad;

	closed_fd = make_page("short", 5);
	expect_number("closed meanwhile", -ENOENT, find_own(0));
	expect_number("a line", 1, line_count);
	expect_true(said, strstr(said, "has no trace: start it with") != NULL);
	bad = make_page("short", 5);
	expect_number("beside another", -EPROTO, find_own(0));
	expect_number("a line", 1, line_count);
	expect_true(said, strstr(said, "too short") != NULL);
	close(bad);
	close(closed_fd);
	closed_fd = -1;
}

/* Descriptors that are called so, in front of the runtime's. */
static void check_crowd(void)
{
	int pages[PAGES_MAX];
	struct rlimit limit;

	expect_ready("limit", getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max < 4 * PAGES_MAX ? limit.rlim_max : 4 * PAGES_MAX;
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (uint32_t i = 0; i < PAGES_MAX; i++) {
		pages[i] = make_page("short", 5);
	}
	start();
	expect_number("one too many", -EPROTO, find_own(0));
	close(pages[0]);
	expect_number("the last", 0, find_own(0));
	for (uint32_t i = 1; i < PAGES_MAX; i++) {
		close(pages[i]);
	}
	pinion_runtime_destroy(runtime);
}

/* ---- whether it has ended ---- */

static void check_end(void)
{
	struct pinion_trace *trace = NULL;
	struct pinion_trace_info info;

	start();
	expect_number("open", 0, open_own(0, &trace));
	pinion_trace_get_info(trace, &info, sizeof(info));
	expect_number("lives", 0, info.has_ended);
	expect_number("read", 0, pinion_trace_read(trace));
	expect_true("until now", trace->read_ns > 0);
	pinion_runtime_destroy(runtime);
	pinion_trace_get_info(trace, &info, sizeof(info));
	expect_number("has ended", 1, info.has_ended);
	expect_number("read", 0, pinion_trace_read(trace));
	expect_number("until its end", 0, (long long)trace->read_ns);
	expect_number("no line", 0, line_count);
	pinion_trace_close(trace);
}

/* ---- how much is read ---- */

static int nothing(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void run_tasks(uint32_t count)
{
	static struct pinion_task tasks[FIRST_TASKS];
	uint64_t before = runtimes_counters(runtime).tasks_run;

	for (uint32_t i = 0; i < count; i++) {
		tasks[i] = (struct pinion_task){.run = nothing};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	while (runtimes_counters(runtime).tasks_run != before + count) {
		sched_yield();
	}
}

/* All that was ever written is taken or lost, once. */
static void expect_sum(const struct pinion_trace *trace, uint64_t taken)
{
	struct pinion_trace_info info;
	uint64_t written = 0;

	pinion_trace_get_info(trace, &info, sizeof(info));
	for (uint32_t i = 0; i < own()->ring_count; i++) {
		written += trace->cursors[i].next;
	}
	expect_number("taken", (long long)taken, (long long)info.event_count);
	expect_number("lost", (long long)(written - taken), (long long)info.lost_count);
}

static void check_bounds(void)
{
	struct pinion_trace *trace = NULL;

	start();
	run_tasks(FIRST_TASKS);
	expect_number("open", 0, open_own(0, &trace));
	expect_number("as documented", TAKEN_MAX, (long long)trace->taken_max);
	trace->taken_max = TAKEN;
	expect_number("read", 0, pinion_trace_read(trace));
	expect_sum(trace, TAKEN);
	/* Room for some of a ring's. */
	trace->taken_max = TAKEN + 2;
	run_tasks(MORE_TASKS);
	expect_number("read some", 0, pinion_trace_read(trace));
	expect_sum(trace, TAKEN + 2);
	run_tasks(MORE_TASKS);
	expect_number("read none", 0, pinion_trace_read(trace));
	expect_sum(trace, TAKEN + 2);
	expect_true("all rings", trace->cursors[0].next > TAKEN && trace->cursors[1].next > TAKEN);
	pinion_trace_close(trace);
	pinion_runtime_destroy(runtime);
}

static void expect_damaged(struct pinion_trace *trace)
{
	line_count = 0;
	expect_number("its head went back", -EPROTO, pinion_trace_read(trace));
	expect_number("with a line", 1, line_count);
	expect_true(said, strstr(said, "damaged") != NULL);
}

/* By a process that writes what it likes. */
static void check_back(void)
{
	struct pinion_trace *trace = NULL;

	start();
	run_tasks(FIRST_TASKS);
	expect_number("open", 0, open_own(0, &trace));
	expect_number("read", 0, pinion_trace_read(trace));
	expect_number("and again", 0, pinion_trace_read(trace));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pin_store_release_u64(own()->rings[1].words, 1);
	expect_damaged(trace);
	/* Without room for any event as well. */
	trace->taken_max = trace->taken_count;
	expect_damaged(trace);
	pinion_trace_close(trace);
	pinion_runtime_destroy(runtime);
}

/* ---- the command ---- */

static void expect_command(const char *seconds, const char *line)
{
	const char *folder = getenv("top_builddir");
	char command[640];

	snprintf(command, sizeof(command),
		"said=$(%s/pinion trace %d %s 2>&1 >/dev/null) && [ \"$said\" = '%s' ]",
		folder == NULL ? "." : folder, (int)getpid(), seconds, line);
	/* NOLINTNEXTLINE(cert-env33-c): the text is the test's own. */
	expect_number(command, 0, system(command));
}

/* Rings that no thread writes to. */
static void check_silence(void)
{
	struct pin_log log = {.fn = note};
	struct pin_trace *trace = NULL;
	char line[256];

	pin_log_init(&log);
	expect_ready("create", pin_trace_create(&pin_host_linux, &log, 1, 16, &trace) == 0);
	snprintf(line, sizeof(line),
		"pinion trace: process %d: nothing began or ended in that time; with 0 in place "
		"of SECONDS the trace has what came before",
		(int)getpid());
	expect_command("0.001", line);
	expect_command("0", "");
	pin_trace_destroy(trace);
}

/* Each call with a trace that the parent opened is refused in a child. */
static int use_in_child(void *arg)
{
	struct pinion_trace *trace = arg;
	struct pinion_trace_info info;

	expect_number("skip", -ECHILD, pinion_trace_skip(trace));
	expect_number("read", -ECHILD, pinion_trace_read(trace));
	expect_number("write", -ECHILD, pinion_trace_write(trace, STDOUT_FILENO));
	pinion_trace_get_info(trace, &info, sizeof(info));
	expect_number("ended for it", 1, info.has_ended);
	expect_number("rings", EVENTS, (long long)info.ring_events);
	pinion_trace_close(trace);
	return expect_failure_count == 0 ? 0 : 1;
}

static void check_child(void)
{
	struct pinion_trace *trace = NULL;
	struct pinion_trace_info info;

	start();
	expect_number("open", 0, pinion_trace_open(runtime, &trace));
	expect_number("child", 0, child_run(use_in_child, trace, NULL, 0));
	expect_number("read", 0, pinion_trace_read(trace));
	pinion_trace_get_info(trace, &info, sizeof(info));
	expect_number("it lives", 0, info.has_ended);
	pinion_trace_close(trace);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	check_scarce();
	check_child();
	runtimes_watchdog(LIMIT_SECONDS);
	start();
	expect_true("no reader can cut it",
		(fcntl(own()->page.fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_SEAL)) ==
			(F_SEAL_SHRINK | F_SEAL_SEAL));
	expect_number("one", 0, find_own(0));
	check_others();
	pinion_runtime_destroy(runtime);
	expect_number("none", -ENOENT, find_own(0));
	expect_true(said, strstr(said, "has no trace: start it with") != NULL);
	check_closed();
	check_crowd();
	check_end();
	check_bounds();
	check_back();
	check_silence();
	return expect_status();
}
