/* SPDX-License-Identifier: MIT */
/*
 * Goal: each event of a trace comes with its worker, its task and its values:
 * spawns by their three ways, tasks by their sources, ends, failures, panics,
 * cancels, thefts, sleeps and wakes, timers, requests, the end. And a written
 * trace is JSON with all of them. EX-37, EX-35.
 * Method: everything happens once (tests/support/happenings.h) in runtimes with
 * a trace, which is then read.
 */
#include "tests/support/happenings.h"
#include "tests/support/scratch.h"

#include "runtime/observe/trace_marks.h"
#include "runtime/observe/trace_reader.h"

#include <fcntl.h>

enum { LIMIT_SECONDS = 60, OUTSIDE = 1 };

static struct pinion_trace *trace;

/* A slice that is open when it is read lasts until then. */
static void expect_open_until(uint64_t before_ns)
{
	struct pin_marks marks;

	expect_true("it was alive", trace->read_ns >= before_ns);
	expect_number("marks", 0, pin_marks_make(trace, &marks));
	expect_true("open until it was read", marks.end_ns >= before_ns);
	pin_marks_free(&marks);
}

static void read_trace(struct pinion_runtime *runtime)
{
	uint64_t before_ns = pinion_clock_now_ns();

	expect_number("open", 0, pinion_trace_open(runtime, &trace));
	expect_number("read", 0, pinion_trace_read(trace));
	expect_open_until(before_ns);
	for (uint32_t i = 0; i < trace->header.ring_count; i++) {
		expect_number("lost", 0, (long long)trace->cursors[i].lost);
	}
}

/* The first of that kind and task, or with the task NULL, of that kind. */
static const struct pin_trace_taken *find(enum pin_trace_kind kind, const void *task)
{
	for (size_t i = 0; i < trace->taken_count; i++) {
		const struct pin_trace_taken *taken = &trace->taken[i];

		if (taken->event.kind == kind &&
			(task == NULL || taken->event.first == (uintptr_t)task)) {
			return taken;
		}
	}
	return NULL;
}

struct wanted {
	enum pin_trace_kind kind;
	const void *task; /* NULL: the first of its kind */
	uint32_t ring;
	uint32_t way;
	long long number;
	uint64_t second;
};

static void expect_event(const char *what, const struct wanted *wanted)
{
	const struct pin_trace_taken *taken = find(wanted->kind, wanted->task);
	char name[96];

	snprintf(name, sizeof(name), "event of %s", what);
	if (!expect_true(name, taken != NULL)) {
		return;
	}
	snprintf(name, sizeof(name), "ring of %s", what);
	expect_number(name, wanted->ring, taken->ring);
	snprintf(name, sizeof(name), "way of %s", what);
	expect_number(name, wanted->way, taken->event.way);
	snprintf(name, sizeof(name), "number of %s", what);
	expect_number(name, wanted->number, taken->event.number);
	snprintf(name, sizeof(name), "second of %s", what);
	expect_number(name, (long long)wanted->second, (long long)taken->event.second);
	expect_true("a time", taken->event.time_ns > 0);
}

#define EXPECT(...) expect_event(#__VA_ARGS__, &(struct wanted){__VA_ARGS__})
#define RUN(name) (uintptr_t) happenings_##name

static void check_spawns(void)
{
	enum { NORMAL = PINION_LANE_NORMAL };

	EXPECT(PIN_TRACE_SPAWN_EXTERNAL, &happenings_root, OUTSIDE, NORMAL, -1, RUN(run_root));
	EXPECT(PIN_TRACE_SPAWN_EXTERNAL, &happenings_late, OUTSIDE, NORMAL, -1, RUN(run_late));
	EXPECT(PIN_TRACE_SPAWN_LOCAL, &happenings_local, 0, NORMAL, -1, RUN(run_local));
	EXPECT(PIN_TRACE_SPAWN_LOCAL, &happenings_slot, 0, NORMAL, -1, RUN(run_slot));
	EXPECT(PIN_TRACE_SPAWN_LOCAL, &happenings_batch, 0, NORMAL, -1, RUN(run_batch));
	EXPECT(PIN_TRACE_SPAWN_GLOBAL, &happenings_shared, 0, NORMAL, -1, RUN(run_shared));
	EXPECT(PIN_TRACE_SPAWN_GLOBAL, &happenings_posted, 0, NORMAL, 0, RUN(run_posted));
	EXPECT(PIN_TRACE_SPAWN_GLOBAL, &happenings_urgent, 0, PINION_LANE_HIGH, -1,
		RUN(run_urgent));
}

static void check_tasks(void)
{
	enum { NORMAL = PINION_LANE_NORMAL, HIGH = PINION_LANE_HIGH };
	const enum pin_trace_kind begin = PIN_TRACE_TASK_BEGIN;

	EXPECT(begin, &happenings_root, 0, PIN_SOURCE_INJECTOR, NORMAL, RUN(run_root));
	EXPECT(begin, &happenings_slot, 0, PIN_SOURCE_SLOT, NORMAL, RUN(run_slot));
	EXPECT(begin, &happenings_local, 0, PIN_SOURCE_LOCAL, NORMAL, RUN(run_local));
	EXPECT(begin, &happenings_shared, 0, PIN_SOURCE_INJECTOR, NORMAL, RUN(run_shared));
	EXPECT(begin, &happenings_posted, 0, PIN_SOURCE_INBOX, NORMAL, RUN(run_posted));
	EXPECT(begin, &happenings_urgent, 0, PIN_SOURCE_LANE, HIGH, RUN(run_urgent));
	EXPECT(begin, &happenings_timer, 0, PIN_SOURCE_LOCAL, NORMAL, RUN(run_expired));
	EXPECT(begin, &happenings_request, 0, PIN_SOURCE_COMPLETION, NORMAL, RUN(run_completed));
	EXPECT(PIN_TRACE_PANIC, NULL, 0, 0, HAPPENINGS_PANIC, RUN(panic));
}

/* Each end comes after its begin, on the same worker, with its result. */
static void check_ends(void)
{
	const struct pin_trace_event *begin = NULL;
	uint32_t count = 0;

	for (size_t i = 0; i < trace->taken_count; i++) {
		const struct pin_trace_event *event = &trace->taken[i].event;

		if (event->kind == PIN_TRACE_TASK_BEGIN) {
			expect_true("one at a time", begin == NULL);
			begin = event;
		} else if (event->kind == PIN_TRACE_TASK_END) {
			expect_ready("begun", begin != NULL);
			expect_number("result",
				begin->second == RUN(fail)	      ? HAPPENINGS_FAILURE
					: begin->second == RUN(panic) ? HAPPENINGS_PANIC
								      : 0,
				event->number);
			begin = NULL;
			count++;
		}
	}
	expect_number("ended", 12, count);
}

/* The worker also wakes itself, when all is done. */
static bool was_woken_from(uint32_t ring)
{
	for (size_t i = 0; i < trace->taken_count; i++) {
		const struct pin_trace_taken *taken = &trace->taken[i];

		if (taken->event.kind == PIN_TRACE_WAKE && taken->ring == ring &&
			taken->event.number == 0) {
			return true;
		}
	}
	return false;
}

static void check_others(void)
{
	const struct pin_trace_taken *park = find(PIN_TRACE_PARK, NULL);
	const struct pin_trace_taken *timer = find(PIN_TRACE_TIMER, &happenings_timer);

	EXPECT(PIN_TRACE_SUBMIT, &happenings_request, 0, PINION_OP_NOP, 0, 0);
	EXPECT(PIN_TRACE_COMPLETE, &happenings_request, 0, PINION_OP_NOP, 0, UINT32_MAX);
	expect_true("woken from outside", was_woken_from(OUTSIDE));
	EXPECT(PIN_TRACE_UNPARK, NULL, 0, 0, 0, 0);
	EXPECT(PIN_TRACE_DONE, NULL, 0, 0, 0, 0);
	expect_true("slept", park != NULL && park->ring == 0);
	expect_true("of a kind",
		park != NULL &&
			(park->event.way == PIN_PARK_FUTEX || park->event.way == PIN_PARK_RING));
	expect_true("expired", timer != NULL && timer->ring == 0 && timer->event.second > 0);
}

/* What jq says of the file. */
static void expect_jq(const char *what, const char *filter)
{
	char command[1024];

	snprintf(command, sizeof(command), "jq -e '%s' trace.json >/dev/null", filter);
	/* NOLINTNEXTLINE(cert-env33-c): the text is the test's own. */
	expect_number(what, 0, system(command));
}

static void check_json(void)
{
	int fd = open("trace.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	expect_ready("trace.json", fd >= 0);
	expect_number("write", 0, pinion_trace_write(trace, fd));
	close(fd);
	/* NOLINTNEXTLINE(cert-env33-c) */
	if (system("command -v jq >/dev/null") != 0) {
		return;
	}
	expect_jq("slice",
		".traceEvents | any(.ph == \"X\" and .name == \"happenings_run_slot\" and "
		".args.source == \"slot\" and .args.lane == \"normal\" and .args.result == 0)");
	expect_jq("lane",
		".traceEvents | any(.ph == \"X\" and .name == \"happenings_run_urgent\" and "
		".args.lane == \"high\")");
	expect_jq("timer",
		".traceEvents | any(.name == \"happenings_run_expired\" and "
		".args.source == \"timer\")");
	expect_jq("failure",
		".traceEvents | any(.name == \"happenings_fail\" and .args.result == -33)");
	expect_jq("panic",
		".traceEvents | any(.name == \"panic\" and "
		".args.function == \"happenings_panic\")");
	expect_jq("request",
		"[.traceEvents[] | select(.ph == \"b\" or .ph == \"e\") | .name] == "
		"[\"nop\", \"nop\"]");
	expect_jq("done", "[.traceEvents[] | select(.name == \"done\")] | length == 1");
}

static void check_run(struct pinion_runtime *runtime)
{
	read_trace(runtime);
	check_spawns();
	check_tasks();
	check_ends();
	check_others();
	check_json();
	pinion_trace_close(trace);
}

static void check_stop(struct pinion_runtime *runtime)
{
	read_trace(runtime);
	EXPECT(PIN_TRACE_TASK_CANCEL, &happenings_cancelled, 0, 0, -1, RUN(cancel));
	expect_true("never run", find(PIN_TRACE_TASK_BEGIN, &happenings_cancelled) == NULL);
	pinion_trace_close(trace);
}

static void check_steals(void)
{
	static const struct pin_log log = {.fn = NULL};
	struct pin_trace *made = NULL;

	expect_number("made", 0, pin_trace_create(&pin_host_linux, &log, 2, 16, &made));
	happenings_steal(made);
	expect_number("open", 0, pin_trace_open_words(made->words, (int)getpid(), &trace));
	expect_number("read", 0, pinion_trace_read(trace));
	expect_number("thefts", 2, (long long)trace->taken_count);
	EXPECT(PIN_TRACE_STEAL, (const void *)(uintptr_t)(HAPPENINGS_QUEUED / 2), 0, 0, 1, 0);
	EXPECT(PIN_TRACE_STEAL, (const void *)(uintptr_t)1, 0, 0, 1, 0);
	pinion_trace_close(trace);
	pin_trace_destroy(made);
}

/* A task that does not end is in the trace while it runs. */
static void check_stall(void)
{
	struct tasks_hold hold = {.task.run = tasks_hold_run};
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.trace_events = HAPPENINGS_EVENTS;
	runtimes_tuning.stall_ms = 1;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("hold", 0, pinion_task_spawn(runtime, &hold.task));
	tasks_await(&hold.has_begun, 1);
	expect_number("open", 0, pinion_trace_open(runtime, &trace));
	while (find(PIN_TRACE_STALL, NULL) == NULL) {
		sched_yield();
		expect_ready("read", pinion_trace_read(trace) == 0);
	}
	EXPECT(PIN_TRACE_STALL, NULL, OUTSIDE, PIN_STALLED_TASK, 0, (uintptr_t)tasks_hold_run);
	tasks_signal(&hold.may_end);
	pinion_trace_close(trace);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

static void check_none(void)
{
	struct pinion_runtime *runtime = runtimes_start(1, PINION_IO_FALLBACK);

	expect_number("no trace", -ENOTSUP, pinion_trace_open(runtime, &trace));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("events_are_read_back");
	check_none();
	happenings_run(HAPPENINGS_EVENTS, check_run);
	happenings_stop(HAPPENINGS_EVENTS, check_stop);
	check_steals();
	check_stall();
	return expect_status();
}
