/* SPDX-License-Identifier: MIT */
/*
 * Goal: each static probe that pinion_runtime(3) lists is reached when what it
 * is for happens, and its values are where its note says, for a program that
 * traces this one. EX-37.
 * Method: a breakpoint in place of each probe of this program
 * (tests/support/breakpoints.h); then everything happens once
 * (tests/support/happenings.h).
 */
#include "tests/support/breakpoints.h"
#include "tests/support/happenings.h"
#include "tests/support/sanitized.h"

enum { LIMIT_SECONDS = 60 };

struct wanted {
	const char *name;
	uint32_t place; /* of the value that says which one it is */
	int64_t value;
	uint32_t count; /* of its values */
	int64_t values[BREAKPOINTS_VALUES];
};

/* Of a value that is not known. */
#define ANY INT64_MIN

static void expect_hit(const struct wanted *wanted)
{
	const struct breakpoint_hit *hit =
		breakpoints_find(wanted->name, wanted->place, wanted->value);
	char what[64];

	snprintf(what, sizeof(what), "%s is reached", wanted->name);
	if (!expect_true(what, hit != NULL)) {
		return;
	}
	snprintf(what, sizeof(what), "values of %s", wanted->name);
	expect_number(what, wanted->count, hit->value_count);
	for (uint32_t i = 0; i < wanted->count; i++) {
		snprintf(what, sizeof(what), "value %u of %s", i, wanted->name);
		if (wanted->values[i] != ANY) {
			expect_number(what, wanted->values[i], hit->values[i]);
		}
	}
}

#define AT(object) (int64_t)(uintptr_t)(object)
#define RUN(name) (int64_t)(uintptr_t) happenings_##name
#define EXPECT(...) expect_hit(&(struct wanted){__VA_ARGS__})
#define TASK(name, own, run) \
	1, AT(&happenings_##own), 3, \
	{ \
		0, AT(&happenings_##own), RUN(run) \
	}
#define BEGUN(own, run, source) \
	"task_begin", 1, AT(&happenings_##own), 4, \
	{ \
		0, AT(&happenings_##own), RUN(run), source \
	}

static void check_run(struct pinion_runtime *runtime)
{
	(void)runtime;
	EXPECT("spawn_external", 0, AT(&happenings_root), 3,
		{AT(&happenings_root), RUN(run_root), 1});
	EXPECT("spawn_local", TASK(spawn_local, slot, run_slot));
	EXPECT("spawn_local", TASK(spawn_local, local, run_local));
	EXPECT("spawn_local", TASK(spawn_local, batch, run_batch));
	EXPECT("spawn_global", TASK(spawn_global, shared, run_shared));
	EXPECT("spawn_global", TASK(spawn_global, posted, run_posted));
	EXPECT("spawn_global", TASK(spawn_global, urgent, run_urgent));
	EXPECT(BEGUN(root, run_root, PIN_SOURCE_INJECTOR));
	EXPECT(BEGUN(slot, run_slot, PIN_SOURCE_SLOT));
	EXPECT(BEGUN(local, run_local, PIN_SOURCE_LOCAL));
	EXPECT(BEGUN(posted, run_posted, PIN_SOURCE_INBOX));
	EXPECT(BEGUN(urgent, run_urgent, PIN_SOURCE_LANE));
	EXPECT(BEGUN(request, run_completed, PIN_SOURCE_COMPLETION));
	EXPECT("task_end", 1, HAPPENINGS_FAILURE, 2, {0, HAPPENINGS_FAILURE});
	EXPECT("task_end", 1, HAPPENINGS_PANIC, 2, {0, HAPPENINGS_PANIC});
	EXPECT("panic", 2, HAPPENINGS_PANIC, 3, {0, RUN(panic), HAPPENINGS_PANIC});
	EXPECT("timer", 1, AT(&happenings_timer), 3, {0, AT(&happenings_timer), ANY});
	EXPECT("park", 0, 0, 3, {0, ANY, ANY});
	EXPECT("unpark", 0, 0, 1, {0});
	EXPECT("wake", 0, 0, 1, {0});
	EXPECT("done", 0, 1, 1, {1});
	EXPECT("request_submit", 1, AT(&happenings_request), 3,
		{0, AT(&happenings_request), PINION_OP_NOP});
	EXPECT("request_complete", 1, AT(&happenings_request), 3, {0, AT(&happenings_request), 0});
}

static void check_stop(struct pinion_runtime *runtime)
{
	(void)runtime;
	EXPECT("task_cancel", TASK(task_cancel, cancelled, cancel));
}

static void check_steals(void)
{
	EXPECT("steal", 2, HAPPENINGS_QUEUED / 2, 3, {0, 1, HAPPENINGS_QUEUED / 2});
	EXPECT("steal", 2, 1, 3, {0, 1, 1});
}

/* None is there that no test knows. */
static void check_names(void)
{
	uint32_t count = breakpoint_count;

	for (uint32_t i = 0; i < count; i++) {
		bool is_hit = false;

		for (uint32_t j = 0; j < breakpoint_hit_count && j < BREAKPOINTS_HITS_MAX; j++) {
			is_hit |= strcmp(breakpoint_hits[j].name, breakpoints[i].name) == 0;
		}
		expect_true(breakpoints[i].name, is_hit);
	}
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	if (SANITIZED_BUILD) {
		puts("a sanitizer has no shadow of code, which is written to here");
		return EXPECT_SKIPPED;
	}
	if (breakpoints_set("pinion") == 0) {
		puts("no probes to replace: apt-get install systemtap-sdt-dev, and x86-64");
		return EXPECT_SKIPPED;
	}
	happenings_run(0, check_run);
	happenings_stop(0, check_stop);
	happenings_steal(NULL);
	check_steals();
	check_names();
	expect_true("room for all", breakpoint_hit_count < BREAKPOINTS_HITS_MAX);
	return expect_status();
}
