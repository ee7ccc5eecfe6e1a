/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker is reported when it has shown no sign of life for `stall_ms`,
 * not a nanosecond earlier, and once, however long it goes on; an ended or
 * cancelled task, a park and a job's progress are such signs, and a worker that
 * sleeps, has left, or is not watched is never reported. A stall of which the
 * watchdog learns late counts from when it was first seen. Of many, as many
 * are reported in a second as of any message, then how many were not. WP-26,
 * WP-35, W46.
 * Method: workers without threads, on a clock that is set by hand, and the
 * watchdog's look called by the test: no pause of the machine is in it. That
 * real tasks are named is in stalled_tasks_are_named.
 */
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"
#include "tests/support/expect.h"

#include <stdlib.h>

enum {
	WORKERS = PIN_LOG_LINES_MAX + 10,
	STALL_MS = 20,
};

#define MS_NS (UINT64_C(1000) * 1000)
#define LIMIT_NS (STALL_MS * MS_NS)
#define SECOND_NS (1000 * MS_NS)

static uint64_t clock_ns;
static char last_line[512];
static uint32_t line_count;
static char rest_line[512]; /* of those left out */
static uint32_t rest_count;
static char over_line[512]; /* that a worker goes on */
static uint32_t over_count;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static const struct pin_host host = {.now_ns = now_ns};

static void keep(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	if (level == PINION_LOG_INFO) {
		snprintf(over_line, sizeof(over_line), "%s", message);
		over_count++;
		return;
	}
	expect_number("level", PINION_LOG_WARN, level);
	if (strstr(message, "more like") != NULL) {
		snprintf(rest_line, sizeof(rest_line), "%s", message);
		rest_count++;
		return;
	}
	snprintf(last_line, sizeof(last_line), "%s", message);
	line_count++;
}

static void run_on(void)
{
}

static struct pin_shared shared;
static struct pin_worker_class all_lanes;

static struct pin_worker *start(uint32_t worker_count, uint64_t stall_ms)
{
	static struct pin_worker *workers;

	free(workers);
	workers = aligned_alloc(PIN_CACHE_LINE, worker_count * sizeof(*workers));
	expect_ready("memory", workers != NULL);
	memset(workers, 0, worker_count * sizeof(*workers));
	shared = (struct pin_shared){
		.host = &host,
		.log = {.fn = keep, .rates = &shared.log_rates},
		.log_rates.now_ns = now_ns,
		.tuning.stall_ms = stall_ms,
		.worker_count = worker_count,
		.workers = workers,
	};
	for (uint32_t i = 0; i < PIN_LANES; i++) {
		pin_lane_queue_init(&shared.lanes[i], &host);
	}
	pin_injector_init(&shared.injector, &host);
	for (uint32_t i = 0; i < worker_count; i++) {
		workers[i].shared = &shared;
		workers[i].worker_class = &all_lanes;
		workers[i].index = i;
		pin_parker_init(&workers[i].parker);
		pin_running_enter(&workers[i], run_on);
		pin_store_relaxed_u32(&workers[i].is_stepping, 1);
		pin_store_relaxed_u32(&workers[i].running_lane, PINION_LANE_LOW);
	}
	clock_ns = 1000 * SECOND_NS;
	line_count = 0;
	rest_count = 0;
	over_count = 0;
	return workers;
}

/* The watchdog checks that much later, and there are that many lines in all. */
static void expect_lines(const char *what, uint32_t lines, uint64_t later_ns)
{
	clock_ns += later_ns;
	/* Now, whenever it meant to come. */
	shared.stalls.look_ns = 0;
	(void)pin_stall_look(&shared, true);
	expect_number(what, lines, line_count);
}

static void check_limit(void)
{
	char name[PIN_SYMBOL_BYTES];
	uint64_t look_ns;

	start(1, STALL_MS);
	pin_running_describe((pin_fault_fn)run_on, name);
	expect_lines("seen", 0, 0);
	expect_lines("not yet", 0, LIMIT_NS / 2);
	expect_lines("not yet", 0, LIMIT_NS / 2 - 1);
	expect_lines("now", 1, 1);
	expect_true("by name", strstr(last_line, name) != NULL);
	expect_true("worker", strstr(last_line, "worker 0:") != NULL);
	expect_true("lane", strstr(last_line, "of the low lane") != NULL);
	expect_true("limit", strstr(last_line, "more than 20 ms") != NULL);
	expect_lines("once", 1, LIMIT_NS);
	expect_lines("once", 1, 1000 * LIMIT_NS);
	/* Twice in the limit, and nothing in between. */
	shared.stalls.look_ns = 0;
	look_ns = pin_stall_look(&shared, true);
	expect_number("next check", (long long)(LIMIT_NS / 2), (long long)(look_ns - clock_ns));
	expect_number("same look", (long long)look_ns, (long long)pin_stall_look(&shared, true));
	clock_ns = look_ns;
	expect_number("and the next but one", (long long)(look_ns + LIMIT_NS / 2),
		(long long)pin_stall_look(&shared, true));
}

/* How long it was is said when it is over, and counted while it lasts. */
static void check_end(void)
{
	struct pin_worker *worker = start(1, STALL_MS);

	expect_lines("seen", 0, 0);
	expect_lines("named", 1, LIMIT_NS);
	expect_number("counted", 1,
		(long long)pin_load_relaxed_u64(&shared.stalls.counts[PIN_STALL_OF_TASK]));
	expect_lines("it lasts", 1, 3 * LIMIT_NS);
	expect_number("its time", 4 * LIMIT_NS, (long long)pin_meter_read(&shared.stalls.task_ns));
	expect_number("not over", 0, over_count);
	pin_meter_add(&worker->meter.tasks_run, 1);
	pin_meter_set(&worker->meter.long_end_ns, clock_ns + LIMIT_NS);
	expect_lines("it is over", 1, LIMIT_NS);
	expect_number("which is said", 1, over_count);
	expect_true("with its time",
		strcmp(over_line, "worker 0 goes on: it was without progress for 100 ms") == 0);
	expect_lines("once", 1, LIMIT_NS / 2);
	expect_number("once", 1, over_count);
	expect_number("counted once", 1,
		(long long)pin_load_relaxed_u64(&shared.stalls.counts[PIN_STALL_OF_TASK]));
}

/* ---- how long it was ---- */

/* The last stall is over: the log's time of it, and that of all. */
static void expect_time(const char *what, uint64_t ms, uint64_t all_ns)
{
	char line[128];

	snprintf(line, sizeof(line), "worker 0 goes on: it was without progress for %llu ms",
		(unsigned long long)ms);
	expect_text(what, line, over_line);
	expect_number(what, (long long)all_ns, (long long)pin_meter_read(&shared.stalls.task_ns));
}

/* Seen from now on, and named. */
static void be_named(uint32_t lines)
{
	expect_lines("seen", lines - 1, 0);
	expect_lines("not yet", lines - 1, LIMIT_NS / 2);
	expect_lines("named", lines, LIMIT_NS / 2);
}

/* A task from 7 ms before the watchdog sees it to 3 ms after the last check. */
static void check_task_time(void)
{
	struct pin_worker *worker = start(1, STALL_MS);
	uint64_t task_ns = 7 * MS_NS + LIMIT_NS + 3 * MS_NS;

	expect_lines("before it", 0, 0);
	pin_meter_add(&worker->meter.tasks_run, 1);
	pin_meter_set(&worker->meter.clock_ns, clock_ns + 2 * MS_NS);
	clock_ns += 9 * MS_NS;
	be_named(1);
	expect_number("so far", (long long)(task_ns - 3 * MS_NS),
		(long long)pin_meter_read(&shared.stalls.task_ns));
	pin_meter_add(&worker->meter.tasks_run, 1);
	pin_meter_set(&worker->meter.long_end_ns, clock_ns + 3 * MS_NS);
	pin_meter_set(&worker->meter.clock_ns, clock_ns + 4 * MS_NS);
	expect_lines("it is over", 1, LIMIT_NS / 2);
	expect_time("from its begin to its end", 30, task_ns);

	/* The first after a sleep of the watchdog's: it has no check before. */
	worker = start(1, STALL_MS);
	expect_lines("before it", 0, 0);
	(void)pin_stall_look(&shared, false);
	pin_meter_add(&worker->meter.tasks_run, 1);
	clock_ns += 1000 * LIMIT_NS;
	pin_meter_set(&worker->meter.clock_ns, clock_ns - 1 * MS_NS);
	be_named(1);
	expect_number("it began a millisecond before", (long long)(LIMIT_NS + MS_NS),
		(long long)pin_meter_read(&shared.stalls.task_ns));

	/* It was stopped for long, before it was named. */
	worker = start(1, STALL_MS);
	pin_meter_set(&worker->meter.clock_ns, clock_ns - 2 * MS_NS);
	expect_lines("seen", 0, 0);
	clock_ns = shared.stalls.look_ns + 50 * LIMIT_NS;
	(void)pin_stall_look(&shared, true);
	clock_ns = shared.stalls.look_ns;
	(void)pin_stall_look(&shared, true);
	expect_number("named", 1, line_count);
	expect_number("without that time", (long long)(LIMIT_NS + 2 * MS_NS),
		(long long)pin_meter_read(&shared.stalls.task_ns));
}

/* Reports of progress are read off no clock: it is half way between checks. */
static void check_progress_time(void)
{
	struct pin_worker *worker = start(1, STALL_MS);
	uint64_t half_ns = LIMIT_NS / 4;

	pin_meter_set(&worker->meter.clock_ns, clock_ns);
	expect_lines("its task", 0, 0);
	pin_worker_self = worker;
	pin_stall_note_life(worker);
	clock_ns += LIMIT_NS / 2;
	be_named(1);
	expect_number("so far", (long long)(half_ns + LIMIT_NS),
		(long long)pin_meter_read(&shared.stalls.task_ns));
	pin_stall_note_life(worker);
	pin_worker_self = NULL;
	expect_lines("it reports progress", 1, LIMIT_NS / 2);
	expect_time("half and half", 30, 2 * half_ns + LIMIT_NS);

	/* The watchdog was held up: no more than the half of its period. */
	worker = start(1, STALL_MS);
	expect_lines("before it", 0, 0);
	pin_meter_add(&worker->meter.tasks_run, 1);
	clock_ns += 100 * LIMIT_NS;
	be_named(1);
	expect_number("of its period", (long long)(half_ns + LIMIT_NS),
		(long long)pin_meter_read(&shared.stalls.task_ns));
}

/* A watchdog that was held up for long has seen nothing of that time. */
static void check_late_watchdog(void)
{
	struct pin_worker *worker = start(1, STALL_MS);

	expect_lines("seen", 0, 0);
	pin_meter_add(&worker->meter.tasks_run, 1);
	expect_lines("another task, seen late", 0, 100 * LIMIT_NS);
	expect_lines("not yet", 0, LIMIT_NS - 1);
	expect_lines("now", 1, 1);

	/* The process was stopped: no worker could show a sign meanwhile. */
	start(1, STALL_MS);
	expect_lines("seen", 0, 0);
	clock_ns = shared.stalls.look_ns + 50 * LIMIT_NS;
	(void)pin_stall_look(&shared, true);
	expect_number("no time passed", 0, line_count);
	clock_ns = shared.stalls.look_ns;
	(void)pin_stall_look(&shared, true);
	expect_number("the limit", 1, line_count);
}

/* ---- signs ---- */

static void end_task(struct pin_worker *worker)
{
	pin_meter_add(&worker->meter.tasks_run, 1);
}

static void cancel_task(struct pin_worker *worker)
{
	pin_meter_add(&worker->meter.tasks_cancelled, 1);
}

static void park_on_futex(struct pin_worker *worker)
{
	pin_meter_add(&worker->meter.parks_futex, 1);
}

static void park_in_ring(struct pin_worker *worker)
{
	pin_meter_add(&worker->meter.parks_ring, 1);
}

static void note_life(struct pin_worker *worker)
{
	pin_worker_self = worker;
	pin_stall_note_life(worker);
	pin_worker_self = NULL;
}

static void check_sign(const char *what, void (*give)(struct pin_worker *worker))
{
	struct pin_worker *worker = start(1, STALL_MS);

	for (int i = 0; i < 10; i++) {
		expect_lines(what, 0, LIMIT_NS - 1);
		give(worker);
	}
	/* From the last one on there is none. */
	expect_lines(what, 0, LIMIT_NS - 1);
	expect_lines(what, 0, LIMIT_NS - 1);
	expect_lines(what, 1, 1);
	give(worker);
	expect_lines(what, 1, LIMIT_NS);
	expect_lines(what, 2, LIMIT_NS);
}

/* ---- who is not in a task ---- */

static void check_absent(void)
{
	struct pin_worker *worker = start(1, STALL_MS);

	expect_true("parks", pin_parker_prepare(&worker->parker, PIN_PARK_FUTEX));
	expect_lines("asleep", 0, 0);
	expect_lines("asleep", 0, 1000 * LIMIT_NS);
	pin_parker_finish(&worker->parker);
	expect_lines("awake", 0, LIMIT_NS);
	expect_lines("awake", 0, LIMIT_NS - 1);
	expect_lines("awake for long", 1, 1);

	worker = start(1, STALL_MS);
	expect_lines("there", 0, 0);
	pin_store_release_u32(&worker->service, PIN_SERVICE_OUT);
	expect_lines("has left", 0, 1000 * LIMIT_NS);

	start(1, 0);
	expect_lines("not asked for", 0, 0);
	expect_lines("not asked for", 0, 1000 * LIMIT_NS);
	expect_true("nor looked for", pin_stall_look(&shared, true) == PIN_NO_DEADLINE);
}

/* ---- many ---- */

static void check_crowd(void)
{
	struct pin_worker *workers = start(WORKERS, STALL_MS);
	const uint32_t most = PIN_LOG_LINES_MAX;

	expect_lines("seen", 0, 0);
	expect_lines("some of them", most, LIMIT_NS);
	expect_lines("not the others", most, LIMIT_NS);
	expect_number("none is left out yet", 0, rest_count);
	end_task(&workers[0]);
	expect_lines("another is seen", most, LIMIT_NS);
	expect_lines("and left out", most, LIMIT_NS);
	expect_lines("a second later", most, SECOND_NS);
	expect_number("those left out", 1, rest_count);
	/* Ten at once, then one. */
	expect_true("how many", strncmp(rest_line, "11 more", strlen("11 more")) == 0);
	end_task(&workers[1]);
	expect_lines("one more", most, LIMIT_NS);
	expect_lines("one more", most + 1, LIMIT_NS);
	expect_number("none was left out", 1, rest_count);
	expect_number("all are counted", WORKERS + 2,
		(long long)pin_load_relaxed_u64(&shared.stalls.counts[PIN_STALL_OF_TASK]));
}

int main(void)
{
	all_lanes.order.mask = PIN_LANES_ALL;
	check_limit();
	check_end();
	check_task_time();
	check_progress_time();
	check_late_watchdog();
	check_sign("task", end_task);
	check_sign("cancelled", cancel_task);
	check_sign("futex", park_on_futex);
	check_sign("ring", park_in_ring);
	check_sign("life", note_life);
	check_absent();
	check_crowd();
	return expect_status();
}
