/* SPDX-License-Identifier: MIT */
/*
 * ITIMER_REAL and a handler of SIGALRM. A program that the user starts under an
 * alarm of their own (it survives exec) keeps that: it is set again afterwards,
 * and an alarm that is due before the limit is left alone.
 */
#include "tools/scan/compile_limit.h"

#include "tools/options.h"
#include "tools/report.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static bool is_begun;
static char line[192]; /* written by the handler, which may not format one */
static struct itimerval limit_timer;
static struct itimerval previous_timer;
static struct sigaction previous_action;
static sigset_t previous_mask;
static sigset_t alarm_set;

static void end_process(int number)
{
	ssize_t written = write(STDERR_FILENO, line, strlen(line));

	(void)number;
	(void)written;
	_exit(EXIT_STATUS_TROUBLE);
}

static bool is_set(const struct itimerval *timer)
{
	return timerisset(&timer->it_value);
}

void compile_limit_begin(uint64_t limit_ns, uint32_t rule_count)
{
	struct sigaction action = {.sa_handler = end_process};
	char count[16];

	compile_limit_end();
	limit_timer.it_value.tv_sec = (time_t)(limit_ns / 1000000000);
	limit_timer.it_value.tv_usec = (suseconds_t)(limit_ns % 1000000000 / 1000);
	getitimer(ITIMER_REAL, &previous_timer);
	if (is_set(&previous_timer) &&
		timercmp(&previous_timer.it_value, &limit_timer.it_value, <)) {
		return;
	}
	snprintf(count, sizeof(count), "%u ", rule_count);
	snprintf(line, sizeof(line),
		"pinion scan: %srules take longer than %g s to compile: use fewer or simpler "
		"ones, or raise --max-compile-time\n",
		rule_count > 0 ? count : "", (double)limit_ns / 1e9);
	sigemptyset(&alarm_set);
	sigaddset(&alarm_set, SIGALRM);
	sigaction(SIGALRM, &action, &previous_action);
	pthread_sigmask(SIG_UNBLOCK, &alarm_set, &previous_mask);
	setitimer(ITIMER_REAL, &limit_timer, NULL);
	is_begun = true;
}

void compile_limit_end(void)
{
	static const struct itimerval none;
	struct itimerval left;

	if (!is_begun) {
		return;
	}
	is_begun = false;
	setitimer(ITIMER_REAL, &none, &left);
	/* That one alone: others may have been blocked meanwhile. */
	if (sigismember(&previous_mask, SIGALRM) == 1) {
		pthread_sigmask(SIG_BLOCK, &alarm_set, NULL);
	}
	sigaction(SIGALRM, &previous_action, NULL);
	if (is_set(&previous_timer)) {
		struct timeval spent;

		timersub(&limit_timer.it_value, &left.it_value, &spent);
		timersub(&previous_timer.it_value, &spent, &previous_timer.it_value);
		if (!is_set(&previous_timer)) {
			previous_timer.it_value.tv_usec = 1;
		}
		setitimer(ITIMER_REAL, &previous_timer, NULL);
	}
}
