/* SPDX-License-Identifier: MIT */
/*
 * Goal: --nice and --ioprio reach threads that start while the threads are
 * listed: the list is read again until it is as long as before, eight times at
 * most. Threads that have ended meanwhile are no error. When a limits file
 * takes a priority back, each thread has again what the command started with:
 * an I/O priority of its own, or none, so that it follows the niceness.
 * Method: lists of threads, and the priorities at the start, are made up: the
 * linker leads the calls that read and set them to the functions below.
 */
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tools/signals.h"
#include "tools/throttle.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	FIRST_THREAD = 101,
	LISTINGS_MAX = 8,
	STARTED_NICE = 3,
	IO_OF_NICE = 2 << 13 | 4, /* (3 + 20) / 5 */
	IO_OF_ITS_OWN = 2 << 13 | 1,
	IO_IDLE = 3 << 13,
};

static void (*reload)(void);

/* ---- what the linker asks for ---- */

static uint32_t thread_counts[LISTINGS_MAX]; /* in each listing; 0: as before */
static uint32_t listing_count;
static uint32_t thread_count; /* in the listing that is read */
static uint32_t entry_count;  /* read of it */
static struct dirent entry;
static char listing; /* its address is that of the folder of threads */

static uint32_t set_count;
static int niceness[LISTINGS_MAX + 1]; /* of each thread; -1: not set */
static long io_priorities[LISTINGS_MAX + 1];
static long started_io;

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
struct dirent *__real_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder);
int __real_closedir(DIR *folder);
int __wrap_closedir(DIR *folder);
int __wrap_getpriority(__priority_which_t which, id_t who);
int __wrap_setpriority(__priority_which_t which, id_t who, int value);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
void __wrap_signals_on_reload(void (*function)(void));

DIR *__wrap_opendir(const char *path)
{
	if (strcmp(path, "/proc/self/task") != 0) {
		return __real_opendir(path);
	}
	expect_ready("listings", listing_count < LISTINGS_MAX);
	if (thread_counts[listing_count] != 0) {
		thread_count = thread_counts[listing_count];
	}
	listing_count++;
	entry_count = 0;
	return (DIR *)&listing;
}

struct dirent *__wrap_readdir(DIR *folder)
{
	if (folder != (DIR *)&listing) {
		return __real_readdir(folder);
	}
	if (entry_count > thread_count) {
		return NULL;
	}
	/* The folder itself comes first. */
	snprintf(entry.d_name, sizeof(entry.d_name), ".");
	if (entry_count > 0) {
		snprintf(entry.d_name, sizeof(entry.d_name), "%u", FIRST_THREAD - 1 + entry_count);
	}
	entry_count++;
	return &entry;
}

int __wrap_closedir(DIR *folder)
{
	return folder == (DIR *)&listing ? 0 : __real_closedir(folder);
}

int __wrap_getpriority(__priority_which_t which, id_t who)
{
	expect_true("of the process", which == PRIO_PROCESS && who == 0);
	return STARTED_NICE;
}

/* The second thread has ended when its turn comes. */
int __wrap_setpriority(__priority_which_t which, id_t who, int value)
{
	expect_true("of a thread", which == PRIO_PROCESS && who >= FIRST_THREAD);
	set_count++;
	if (who == FIRST_THREAD + 1) {
		errno = ESRCH;
		return -1;
	}
	niceness[who - FIRST_THREAD] = value;
	return 0;
}

long __wrap_syscall(long number, ...)
{
	long values[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++) {
		values[i] = va_arg(arguments, long);
	}
	va_end(arguments);
	if (number == SYS_ioprio_get) {
		return started_io;
	}
	if (number == SYS_ioprio_set) {
		io_priorities[(pid_t)values[1] - FIRST_THREAD] = (int)values[2];
		return 0;
	}
	return __real_syscall(
		number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

void __wrap_signals_on_reload(void (*function)(void))
{
	reload = function;
}

/* ---- the test ---- */

static void write_limits(const char *line)
{
	FILE *stream = fopen("limits", "we");

	expect_ready("limits", stream != NULL && fputs(line, stream) >= 0 && fclose(stream) == 0);
}

/* From now on as many threads, unless later listings have others. */
static void forget(uint32_t count)
{
	memset(thread_counts, 0, sizeof(thread_counts));
	memset(niceness, -1, sizeof(niceness));
	memset(io_priorities, -1, sizeof(io_priorities));
	thread_counts[0] = count;
	listing_count = 0;
	set_count = 0;
}

static struct scanning_options options = {.limits = LIMITS_NONE, .limits_file = "limits"};

static void check_listings(void)
{
	write_limits("nice=5\n");
	forget(1);
	expect_ready("prepare", throttle_prepare(&options));
	expect_number("once more, as it was", 2, listing_count);
	expect_number("threads", 2, set_count);
	forget(1);
	thread_counts[1] = 3;
	reload();
	expect_number("until it is as before", 3, listing_count);
	expect_number("threads", 1 + 3 + 3, set_count);
	expect_number("the first", 5, niceness[0]);
	expect_number("which has ended", -1, niceness[1]);
	expect_number("which has started", 5, niceness[2]);
	forget(1);
	for (uint32_t i = 1; i < LISTINGS_MAX; i++) {
		thread_counts[i] = i + 1;
	}
	reload();
	expect_number("at most", LISTINGS_MAX, listing_count);
	expect_number("threads", 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8, set_count);
	expect_number("the last", 5, niceness[LISTINGS_MAX - 1]);
	forget(1);
	write_limits("");
	reload();
	expect_number("as at the start", STARTED_NICE, niceness[0]);
}

static void check_io(const char *what, long started, long taken_back)
{
	started_io = started;
	write_limits("ioprio=idle\n");
	forget(1);
	expect_ready("prepare", throttle_prepare(&options));
	expect_number(what, IO_IDLE, io_priorities[0]);
	write_limits("");
	forget(1);
	reload();
	expect_number(what, taken_back, io_priorities[0]);
}

int main(void)
{
	alarm(300);
	scratch_enter("priorities_reach_all_threads");
	check_listings();
	check_io("that of its niceness", IO_OF_NICE, 0);
	check_io("one of its own", IO_OF_ITS_OWN, IO_OF_ITS_OWN);
	check_io("none is known", -1, 0);
	scratch_leave();
	return expect_status();
}
