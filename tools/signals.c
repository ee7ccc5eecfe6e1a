/* SPDX-License-Identifier: MIT */
/*
 * No handler runs anywhere: every thread blocks the signals, and one thread
 * waits for them. It may therefore lock, and a signal is noticed
 * however busy the other threads are.
 */
#include "tools/signals.h"

#include "tools/options.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Time for work in progress to end by itself after the first signal. */
	END_SECONDS = 4,
	/*
	 * Signals that come so soon after the first are part of it: timeout(1)
	 * sends one to its child and one to the whole process group.
	 */
	ECHO_MS = 500,
	/* For the main thread, which makes a file or cancels a scan. */
	LOCK_TRIES = 50,
	LOCK_PAUSE_NS = 10 * 1000 * 1000,
};

static const int watched_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { SIGNAL_COUNT = sizeof(watched_signals) / sizeof(watched_signals[0]) };

static bool is_watching;
static bool has_thread;
static pthread_t thread;
static sigset_t watched_set;
static sigset_t previous_mask;
static int came_fd = -1; /* readable from the first signal on */
static int was_interrupted;
static void (*on_reload)(void); /* of SIGHUP; NULL: it ends the command */
static int is_releasing;	/* the next SIGUSR1 ends the thread */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pinion_scan *watched_scan; /* under the lock */

/* Under the lock: the file that is written. */
static const char *file_name; /* NULL: none is */
static const char *file_draft;
static bool has_ended_file; /* since the limit was last moved */

/* For half a second: the main thread may be stuck with the lock. */
static bool lock_soon(void)
{
	static const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (pthread_mutex_trylock(&lock) == 0) {
			return true;
		}
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Under the lock. The file is not whole, so it goes. */
static void drop_file(void)
{
	/* A draft that is gone has its name. */
	if (file_name != NULL && (file_draft == NULL || unlink(file_draft) == 0) &&
		report_is_possible()) {
		report_line("stopped by a signal: %s is not written%s", file_name,
			file_draft == NULL ? " to its end" : "");
	}
	file_name = NULL;
}

/* A file that is written, or was, gives it more time. */
static bool extends_limit(void)
{
	bool extends;

	if (!lock_soon()) {
		return false;
	}
	extends = file_name != NULL || has_ended_file;
	has_ended_file = false;
	pthread_mutex_unlock(&lock);
	return extends;
}

/*
 * Has the default action carried out, which ends the process. It has the lock
 * meanwhile, so that no other file is begun.
 */
static void end_at_once(int number)
{
	bool has_lock = lock_soon();

	if (has_lock) {
		drop_file();
	}
	pthread_sigmask(SIG_UNBLOCK, &watched_set, NULL);
	raise(number);
	pthread_sigmask(SIG_BLOCK, &watched_set, NULL);
	/* It goes on: the kernel spares the first process of a container. */
	if (has_lock) {
		pthread_mutex_unlock(&lock);
	}
}

static void take_first_signal(void)
{
	uint64_t one = 1;
	ssize_t written;

	pthread_mutex_lock(&lock);
	__atomic_store_n(&was_interrupted, 1, __ATOMIC_SEQ_CST);
	if (watched_scan != NULL) {
		pinion_scan_cancel(watched_scan);
	}
	pthread_mutex_unlock(&lock);
	written = write(came_fd, &one, sizeof(one));
	(void)written;
}

/*
 * Threads may be stuck anywhere, with any lock: this function waits for none.
 */
static void leave_behind(void)
{
	struct progress progress;
	bool is_whole = output_abandon();

	if (report_is_possible()) {
		report_line("stopped early by a signal");
		if (progress_read(&progress)) {
			uint64_t left = progress.begun_files - progress.ended_files;

			report_line("%llu files done, %llu given up: they did not end within "
				    "%d s",
				(unsigned long long)progress.ended_files, (unsigned long long)left,
				END_SECONDS);
		}
		if (!is_whole) {
			report_line("standard output was not taken: lines are lost");
		}
	}
	_exit(EXIT_STATUS_STOPPED);
}

static int64_t milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Of the first signal: when what it began is given up, and its echoes end. */
static int64_t limit_ms; /* 0: none has come */
static int64_t echo_ms;	 /* 0: they have ended */

/* Until something is to be done without a signal; 0: for ever. */
static int64_t milliseconds_to_wait(void)
{
	int64_t left_ms;

	if (limit_ms == 0) {
		return (int64_t)progress_show_ms();
	}
	left_ms = limit_ms - milliseconds_now();
	if (left_ms <= 0 && !extends_limit()) {
		leave_behind();
	}
	if (left_ms <= 0) {
		left_ms = END_SECONDS * 1000;
		limit_ms = milliseconds_now() + left_ms;
	}
	return left_ms;
}

/* The next signal; after the first of those that end, until the limit. */
static int next_signal(siginfo_t *info)
{
	struct timespec left = {0};
	int64_t left_ms = milliseconds_to_wait();
	int number;

	if (left_ms == 0) {
		return sigwaitinfo(&watched_set, info);
	}
	if (echo_ms != 0) {
		int64_t echo_left_ms = echo_ms - milliseconds_now();

		left_ms = echo_left_ms > 0 ? echo_left_ms : 0;
	}
	left.tv_sec = left_ms / 1000;
	left.tv_nsec = left_ms % 1000 * 1000000;
	number = sigtimedwait(&watched_set, info, &left);
	/* Only once none is left over, however late this thread was. */
	if (number < 0 && echo_ms != 0 && milliseconds_now() >= echo_ms) {
		echo_ms = 0;
	}
	return number;
}

static void take_ending_signal(int number)
{
	if (!signals_interrupted()) {
		limit_ms = milliseconds_now() + END_SECONDS * 1000;
		echo_ms = milliseconds_now() + ECHO_MS;
		take_first_signal();
	} else if (echo_ms == 0) {
		end_at_once(number);
	}
}

static void *take_signals(void *arg)
{
	siginfo_t info;

	(void)arg;
	if (signals_interrupted()) {
		limit_ms = milliseconds_now() + END_SECONDS * 1000;
	}
	/* A full pipe must not keep it from the next signal. */
	report_drop_late_lines();
	for (;;) {
		if (next_signal(&info) < 0) {
			progress_show();
			continue;
		}
		/*
		 * Not by info.si_pid: with RLIMIT_SIGPENDING used up the kernel
		 * delivers the number of a signal alone.
		 */
		if (info.si_signo == SIGUSR1 &&
			__atomic_load_n(&is_releasing, __ATOMIC_ACQUIRE) != 0) {
			return NULL;
		}
		if (info.si_signo == SIGUSR1) {
			progress_report();
		} else if (info.si_signo == SIGHUP && on_reload != NULL) {
			on_reload();
		} else if (info.si_signo == SIGQUIT) {
			end_at_once(SIGQUIT);
			_exit(128 + SIGQUIT); /* it was not ended: see there */
		} else {
			take_ending_signal(info.si_signo);
		}
	}
}

void signals_init(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN};

	sigaction(SIGUSR1, &action, NULL);
}

void signals_on_reload(void (*reload)(void))
{
	sigset_t hangup;

	on_reload = reload;
	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	/* Until a thread takes it: rules may take long to compile. */
	pthread_sigmask(SIG_BLOCK, &hangup, NULL);
}

static void collect_signals(void)
{
	struct sigaction action;

	sigemptyset(&watched_set);
	/* Ignored, and blocked all the same: so it is kept for the thread. */
	sigaddset(&watched_set, SIGUSR1);
	for (int i = 0; i < SIGNAL_COUNT; i++) {
		/* A blocked signal would be kept although it is ignored. */
		if (sigaction(watched_signals[i], NULL, &action) == 0 &&
			action.sa_handler != SIG_IGN) {
			sigaddset(&watched_set, watched_signals[i]);
		}
	}
	/* It ends nothing then, so that nohup(1) is no reason to ignore it. */
	if (on_reload != NULL) {
		sigaddset(&watched_set, SIGHUP);
	}
}

static void start_watching(void)
{
	if (is_watching) {
		return;
	}
	is_watching = true;
	collect_signals();
	/* Blocked first: a signal that comes meanwhile waits for the thread. */
	pthread_sigmask(SIG_BLOCK, &watched_set, &previous_mask);
	came_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	has_thread = came_fd >= 0 && pthread_create(&thread, NULL, take_signals, NULL) == 0;
	if (!has_thread) {
		/* Too few descriptors or threads: then a signal just kills. */
		pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
	}
}

static void set_scan(struct pinion_scan *scan)
{
	pthread_mutex_lock(&lock);
	watched_scan = scan;
	/* A signal between two scans has found no scan to cancel. */
	if (scan != NULL && signals_interrupted()) {
		pinion_scan_cancel(scan);
	}
	pthread_mutex_unlock(&lock);
}

void signals_watch(struct pinion_scan *scan)
{
	start_watching();
	set_scan(scan);
}

void signals_hold(void)
{
	signals_watch(NULL);
}

void signals_release(void)
{
	if (!is_watching) {
		return;
	}
	set_scan(NULL);
	if (has_thread) {
		/* Set first: the thread reads it when it wakes. */
		__atomic_store_n(&is_releasing, 1, __ATOMIC_RELEASE);
		pthread_kill(thread, SIGUSR1);
		pthread_join(thread, NULL);
		__atomic_store_n(&is_releasing, 0, __ATOMIC_RELAXED);
		/* An echo of the signal would take the place of the status. */
		if (!signals_interrupted()) {
			pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
		}
	}
	if (came_fd >= 0) {
		close(came_fd);
		came_fd = -1;
	}
	has_thread = false;
	is_watching = false;
}

void signals_begin_file(const char *name)
{
	pthread_mutex_lock(&lock);
	file_name = name;
	file_draft = NULL;
	pthread_mutex_unlock(&lock);
}

int signals_begin_draft(const char *name, const char *draft, int (*make)(void *arg), void *arg)
{
	int rc;

	pthread_mutex_lock(&lock);
	rc = make(arg);
	if (rc >= 0) {
		file_name = name;
		file_draft = draft;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void signals_end_file(void)
{
	pthread_mutex_lock(&lock);
	file_name = NULL;
	file_draft = NULL;
	has_ended_file = true;
	pthread_mutex_unlock(&lock);
}

bool signals_interrupted(void)
{
	return __atomic_load_n(&was_interrupted, __ATOMIC_SEQ_CST) != 0;
}

int signals_fd(void)
{
	return came_fd;
}
