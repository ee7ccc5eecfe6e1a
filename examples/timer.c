/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: timers, how much too late they are, and how one is cancelled.
 *
 * Try:   examples/timer
 *
 * A timer embeds a task, which runs when its deadline has come. Between two
 * deadlines the workers sleep, so most of each printed delay is the time a core
 * takes to wake up.
 */
#include <pinion/pinion.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALARMS = 500, STEP_NS = 200 * 1000, FAR_NS = 2000000000 };

struct alarm {
	struct pinion_timer timer; /* first, so that its task leads back here */
	uint64_t deadline_ns;
	uint64_t late_ns;
};

static struct pinion_runtime *runtime;
static struct alarm alarms[ALARMS];
static uint32_t alarms_left = ALARMS; /* atomic */
static uint32_t early_count;	      /* atomic */
static sem_t all_rang;

static struct alarm far_alarm;
static uint32_t far_cancel_count;

static int run_alarm(struct pinion_task *task)
{
	struct alarm *alarm = (struct alarm *)task;
	uint64_t now_ns = pinion_clock_now_ns();

	if (now_ns >= alarm->deadline_ns) {
		alarm->late_ns = now_ns - alarm->deadline_ns;
	} else {
		__atomic_add_fetch(&early_count, 1, __ATOMIC_RELAXED);
	}
	/* On any worker; the last one has seen what all of them wrote. */
	if (__atomic_sub_fetch(&alarms_left, 1, __ATOMIC_ACQ_REL) == 0) {
		sem_post(&all_rang);
	}
	return 0;
}

/* Instead of run_alarm(), on a worker. */
static void cancel_far(struct pinion_task *task)
{
	(void)task;
	far_cancel_count++;
}

static int start(struct alarm *alarm, uint64_t deadline_ns)
{
	alarm->deadline_ns = deadline_ns;
	alarm->timer.task.run = run_alarm;
	return pinion_timer_start(runtime, &alarm->timer, deadline_ns);
}

static int compare_late(const void *left, const void *right)
{
	uint64_t a = ((const struct alarm *)left)->late_ns;
	uint64_t b = ((const struct alarm *)right)->late_ns;

	return (a > b) - (a < b);
}

static int fail(const char *what)
{
	fprintf(stderr, "timer: %s\n", what);
	return 1;
}

/* 0, with all alarms rung and the far one cancelled; else what went wrong. */
static int ring_all(void)
{
	uint64_t now_ns = pinion_clock_now_ns();
	int rc = 0;

	for (uint32_t i = 0; i < ALARMS && rc == 0; i++) {
		rc = start(&alarms[i], now_ns + (i + 1) * (uint64_t)STEP_NS);
	}
	if (rc == 0) {
		far_alarm.timer.task.cancel = cancel_far;
		rc = start(&far_alarm, now_ns + FAR_NS);
	}
	if (rc == 0) {
		while (sem_wait(&all_rang) != 0) {
			/* A signal came. */
		}
		/* Were it running or over, this would say -EALREADY. */
		rc = pinion_timer_cancel(runtime, &far_alarm.timer);
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct pinion_config config;
	int rc;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		puts("usage: timer [WORKERS]");
		return 0;
	}
	pinion_config_init(&config);
	config.worker_count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	rc = pinion_runtime_create(&config, &runtime);
	if (rc < 0) {
		return fail(strerror(-rc));
	}
	sem_init(&all_rang, 0, 0);
	rc = ring_all();
	if (rc == 0) {
		rc = pinion_runtime_join(runtime);
	}
	/*
	 * Stops it first if need be, which cancels timers that have not rung
	 * yet.
	 */
	pinion_runtime_destroy(runtime);
	if (rc < 0) {
		return fail(strerror(-rc));
	}
	if (early_count > 0 || far_cancel_count != 1) {
		return fail("an alarm rang early, or the stop did not cancel the far one");
	}
	qsort(alarms, ALARMS, sizeof(alarms[0]), compare_late);
	printf("%d alarms rang, %u of them early; late by", ALARMS, early_count);
	printf(" %.1f us (median), %.1f us (99 of 100), %.1f us (worst)\n",
		(double)alarms[ALARMS / 2].late_ns / 1e3,
		(double)alarms[ALARMS * 99 / 100].late_ns / 1e3,
		(double)alarms[ALARMS - 1].late_ns / 1e3);
	printf("1 alarm cancelled %.1f s before its time\n", (double)FAR_NS / 1e9);
	return 0;
}
