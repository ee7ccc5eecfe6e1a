/* SPDX-License-Identifier: MIT */
/*
 * No handler runs anywhere: every thread blocks the signals, and one thread
 * waits for them. It may therefore lock, and a signal is noticed
 * however busy the other threads are.
 */
#include "tools/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const int watched_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNAL_COUNT = sizeof(watched_signals) / sizeof(watched_signals[0]) };

static bool is_watching;
static bool has_thread;
static pthread_t thread;
static sigset_t watched_set;
static sigset_t previous_mask;
static int wake_number;	 /* a watched signal, 0: all are ignored */
static int came_fd = -1; /* readable from the first signal on */
static int was_interrupted;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pinion_scan *watched_scan; /* under the lock */

/* As if nobody watched: by default it ends the process. */
static void take_second_signal(int number)
{
	pthread_sigmask(SIG_UNBLOCK, &watched_set, NULL);
	raise(number);
	pthread_sigmask(SIG_BLOCK, &watched_set, NULL);
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

static void *take_signals(void *arg)
{
	siginfo_t info;

	(void)arg;
	for (;;) {
		if (sigwaitinfo(&watched_set, &info) < 0) {
			continue;
		}
		/* signals_release() sends one to this very thread. */
		if (info.si_pid == getpid()) {
			return NULL;
		}
		if (signals_interrupted()) {
			take_second_signal(info.si_signo);
		} else {
			take_first_signal();
		}
	}
}

static void collect_signals(void)
{
	struct sigaction action;

	sigemptyset(&watched_set);
	wake_number = 0;
	for (int i = 0; i < SIGNAL_COUNT; i++) {
		/* A blocked signal would be kept although it is ignored. */
		if (sigaction(watched_signals[i], NULL, &action) == 0 &&
			action.sa_handler != SIG_IGN) {
			sigaddset(&watched_set, watched_signals[i]);
			wake_number = watched_signals[i];
		}
	}
}

static void start_watching(void)
{
	if (is_watching) {
		return;
	}
	is_watching = true;
	collect_signals();
	/* Blocked first: one that comes meanwhile waits for the thread. */
	pthread_sigmask(SIG_BLOCK, &watched_set, &previous_mask);
	came_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	has_thread = wake_number != 0 && came_fd >= 0 &&
		pthread_create(&thread, NULL, take_signals, NULL) == 0;
	if (!has_thread) {
		/* Too few descriptors or threads: then a signal just kills. */
		pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
	}
}

static void set_scan(struct pinion_scan *scan)
{
	pthread_mutex_lock(&lock);
	watched_scan = scan;
	/* One that came between two scans has found no scan to cancel. */
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
		pthread_kill(thread, wake_number);
		pthread_join(thread, NULL);
		pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
	}
	if (came_fd >= 0) {
		close(came_fd);
		came_fd = -1;
	}
	has_thread = false;
	is_watching = false;
}

bool signals_interrupted(void)
{
	return __atomic_load_n(&was_interrupted, __ATOMIC_SEQ_CST) != 0;
}

int signals_fd(void)
{
	return came_fd;
}
