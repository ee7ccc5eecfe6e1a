/* SPDX-License-Identifier: MIT */
/*
 * Goal: signals within half a second of the first one are part of it, a later
 * one ends the process; work that has not ended 4 s after the first is given
 * up, with status 3 and lines that say so, unless a file is written. The first
 * signal cancels the scan that is watched, and each that is watched later; none
 * that is not watched any more.
 * Method: children whose clock and signals are the test's: the linker leads the
 * waits of the thread that takes signals to a script, which has an answer for
 * each and the time that it is to be asked for.
 */
#include "tests/support/child.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { NO_TIME = -1, NO_SIGNAL = 0 };

/* A wait that is to come: for so long, and what comes of it after so long. */
struct wait {
	int64_t asked_ms; /* NO_TIME: for ever */
	int64_t after_ms;
	int number; /* NO_SIGNAL: none came */
};

/* After the last one the thread waits for real. */
static const struct wait *script;
static uint32_t script_left;
static bool has_ended;	      /* [lock:script_lock] the thread asks for more than it has */
static int64_t now_ms = 1000; /* [lock:script_lock] */
static uint32_t cancels;
static pthread_mutex_t script_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t script_ended = PTHREAD_COND_INITIALIZER;

/* ---- what the linker asks for ---- */

int __real_sigwaitinfo(const sigset_t *set, siginfo_t *info);
int __wrap_sigwaitinfo(const sigset_t *set, siginfo_t *info);
int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out_now);
int __wrap_pinion_scan_cancel(struct pinion_scan *scan);

static int answer(const sigset_t *set, siginfo_t *info, int64_t asked_ms)
{
	struct wait wait;

	pthread_mutex_lock(&script_lock);
	if (script_left == 0) {
		has_ended = true;
		pthread_cond_signal(&script_ended);
		pthread_mutex_unlock(&script_lock);
		return __real_sigwaitinfo(set, info);
	}
	wait = *script;
	script++;
	script_left--;
	now_ms += wait.after_ms;
	pthread_mutex_unlock(&script_lock);
	expect_number("asked for", (long long)wait.asked_ms, (long long)asked_ms);
	if (expect_failure_count != 0) {
		fflush(stdout);
		_exit(99);
	}
	*info = (siginfo_t){.si_signo = wait.number};
	errno = EAGAIN;
	return wait.number == NO_SIGNAL ? -1 : wait.number;
}

int __wrap_sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return answer(set, info, NO_TIME);
}

int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	return answer(set, info, (int64_t)timeout->tv_sec * 1000 + timeout->tv_nsec / 1000000);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out_now)
{
	(void)clock;
	pthread_mutex_lock(&script_lock);
	*out_now = (struct timespec){
		.tv_sec = now_ms / 1000, .tv_nsec = (long)(now_ms % 1000 * 1000000)};
	pthread_mutex_unlock(&script_lock);
	return 0;
}

int __wrap_pinion_scan_cancel(struct pinion_scan *scan)
{
	(void)scan;
	__atomic_add_fetch(&cancels, 1, __ATOMIC_SEQ_CST);
	return 0;
}

/* ---- the test ---- */

struct part {
	const struct wait *waits;
	uint32_t wait_count;
	bool has_file; /* one is written all the while */
};

static void prepare(const struct part *part)
{
	report_name_command("test");
	signal(SIGTERM, SIG_DFL);
	script = part->waits;
	script_left = part->wait_count;
	if (part->has_file) {
		signals_begin_file("file");
	}
}

/* Until the script ends the process, or has an end. */
static int run_script(void *arg)
{
	prepare(arg);
	progress_begin(false);
	progress_add(NULL, &(struct progress){.begun_files = 7, .ended_files = 5});
	signals_hold();
	pthread_mutex_lock(&script_lock);
	while (!has_ended) {
		pthread_cond_wait(&script_ended, &script_lock);
	}
	pthread_mutex_unlock(&script_lock);
	return 42;
}

static void check(const char *what, const struct part *part, int code, const char *lines)
{
	char output[512];
	int status = child_run(run_script, (void *)(uintptr_t)part, output, sizeof(output));

	expect_number(what, code, child_code(status));
	expect_text(what, lines, output);
}

#define PART(waits, has_file) \
	&(struct part) \
	{ \
		waits, sizeof(waits) / sizeof((waits)[0]), has_file \
	}

static void check_echoes(void)
{
	static const struct wait echoes[] = {
		{NO_TIME, 50, SIGTERM},
		{500, 0, SIGTERM},
		{500, 400, NO_SIGNAL}, /* a wait that ends early */
		{100, 99, SIGTERM},
		{1, 0, SIGTERM},
		{1, 1, SIGTERM}, /* also late, as long as the wait has not ended */
		{0, 0, NO_SIGNAL},
		{3500, 100, NO_SIGNAL},
		{3400, 0, NO_SIGNAL},
	};
	static const struct wait second[] = {
		{NO_TIME, 50, SIGTERM},
		{500, 500, NO_SIGNAL},
		{3500, 0, SIGTERM},
	};

	check("echoes", PART(echoes, false), 42, "");
	check("a second one", PART(second, false), 128 + SIGTERM, "");
	check("a second one drops a file", PART(second, true), 128 + SIGTERM,
		"pinion test: stopped by a signal: file is not written to its end\n");
}

static void check_limit(void)
{
	static const struct wait given_up[] = {
		{NO_TIME, 50, SIGTERM},
		{500, 500, NO_SIGNAL},
		{3500, 3499, NO_SIGNAL},
		{1, 1, NO_SIGNAL},
	};
	static const struct wait extended[] = {
		{NO_TIME, 50, SIGTERM},
		{500, 500, NO_SIGNAL},
		{3500, 3500, NO_SIGNAL},
		{4000, 3999, NO_SIGNAL},
		{1, 1, NO_SIGNAL},
		{4000, 0, NO_SIGNAL},
	};

	check("given up", PART(given_up, false), 3,
		"pinion test: stopped early by a signal\n"
		"pinion test: 5 files done, 2 given up: they did not end within 4 s\n");
	check("a file has more time", PART(extended, true), 42, "");
}

static void expect_cancels(const char *what, uint32_t count)
{
	expect_number(what, count, __atomic_load_n(&cancels, __ATOMIC_SEQ_CST));
}

static int watch_scans(void *arg)
{
	/* They are named only. */
	struct pinion_scan *scans = arg;

	signal(SIGTERM, SIG_DFL);
	signals_watch(scans);
	expect_cancels("no signal, no cancel", 0);
	signals_hold();
	kill(getpid(), SIGTERM);
	while (!signals_interrupted()) {
		sched_yield();
	}
	signals_hold();
	expect_cancels("none is watched", 0);
	signals_watch(scans);
	expect_cancels("a later one is cancelled at once", 1);
	signals_hold();
	expect_cancels("and not again", 1);
	return expect_failure_count == 0 ? 42 : 1;
}

static int cancel_scan(void *arg)
{
	signal(SIGTERM, SIG_DFL);
	signals_watch(arg);
	kill(getpid(), SIGTERM);
	while (!signals_interrupted()) {
		sched_yield();
	}
	/* The thread has the lock until it has cancelled. */
	signals_hold();
	expect_cancels("the watched one is cancelled", 1);
	return expect_failure_count == 0 ? 42 : 1;
}

int main(void)
{
	int scan;

	alarm(120);
	check_echoes();
	check_limit();
	expect_number("later", 42, child_code(child_run(watch_scans, &scan, NULL, 0)));
	expect_number("watched", 42, child_code(child_run(cancel_scan, &scan, NULL, 0)));
	return expect_status();
}
