/* SPDX-License-Identifier: MIT */
/*
 * Goal: a result counts for a later run only if its file was changed a second
 * or more before it was opened, by either run's clock: where a clock was set
 * back, and the file seems to be changed in the future, it is done again, and
 * so it is if its clock reads exactly less than a second. Parts of long files
 * come by the clock that nobody sets. EX-51.
 * Method: the clocks are the test's; a log with one file, which later runs look
 * up at other times.
 */
#include "tests/support/scratch.h"
#include "tools/checkpointing.h"

#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define CHANGED (INT64_C(1700000000) * SECOND)

static int64_t real_ns; /* 0: that of the machine */
static int64_t monotonic_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	int64_t ns = clock == CLOCK_REALTIME_COARSE ? real_ns
		: clock == CLOCK_MONOTONIC_COARSE   ? monotonic_ns
						    : 0;

	if (ns == 0) {
		return __real_clock_gettime(clock, out);
	}
	*out = (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
	return 0;
}

static const struct pinion_scan_file file = {
	.path = "path",
	.path_bytes = 4,
	.file = {.inode = 7, .size_bytes = 5, .modified_ns = CHANGED, .changed_ns = CHANGED},
};

static struct checkpointing *begin(bool resumes)
{
	struct checkpointing_options options = {.file = "log", .resumes = resumes};
	struct checkpointing *log = NULL;

	expect_ready("log", checkpointing_begin(&options, "sum", NULL, 0, &log));
	checkpointing_options_fini(&options);
	return log;
}

/* What a run at that time knows of the file; it ends without doing it. */
static enum checkpointing_outcome find_at(int64_t now_ns)
{
	struct checkpointing_found found = {.offset = 0};
	struct checkpointing_file own;
	struct checkpointing *log = begin(true);
	enum checkpointing_outcome outcome;

	real_ns = now_ns;
	outcome = checkpointing_find(log, &file, &own, &found);
	expect_number("text", outcome == CHECKPOINTING_ALL ? 4 : 0, (long long)found.text.length);
	output_text_free(&found.text);
	expect_true("ended", checkpointing_end(log, NULL));
	return outcome;
}

/* A new log, by a run that opens and notes the file at that time. */
static void note_at(int64_t now_ns)
{
	struct checkpointing_result result = {.bytes = "line", .length = 4};
	struct checkpointing_found found = {.offset = 0};
	struct checkpointing_file own;
	struct checkpointing *log;

	(void)unlink("log");
	log = begin(false);
	real_ns = now_ns;
	expect_number("new", CHECKPOINTING_NOTHING, checkpointing_find(log, &file, &own, &found));
	expect_true("noted", checkpointing_add(log, &file, &own, 0, &result, true));
	expect_true("ended", checkpointing_end(log, NULL));
}

static void check_results(void)
{
	static const struct {
		int64_t noted_ns;
		int64_t found_ns; /* both after the change */
		enum checkpointing_outcome outcome;
	} rows[] = {
		{SECOND, SECOND, CHECKPOINTING_ALL},
		{SECOND, SECOND - 1, CHECKPOINTING_NOTHING},
		{SECOND - 1, SECOND, CHECKPOINTING_NOTHING},
		{SECOND, -3600 * SECOND, CHECKPOINTING_NOTHING},
		{-3600 * SECOND, SECOND, CHECKPOINTING_NOTHING},
		{3600 * SECOND, SECOND, CHECKPOINTING_ALL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		note_at(CHANGED + rows[i].noted_ns);
		if (!expect_number(
			    "outcome", rows[i].outcome, find_at(CHANGED + rows[i].found_ns))) {
			printf("row %zu\n", i);
		}
	}
}

static void check_parts(void)
{
	struct checkpointing_found found = {.offset = 0};
	struct checkpointing_file own;
	struct checkpointing *log;

	(void)unlink("log");
	log = begin(false);
	real_ns = CHANGED + SECOND;
	monotonic_ns = SECOND;
	(void)checkpointing_find(log, &file, &own, &found);
	expect_true("begins", !checkpointing_wants_part(log, &own, 0));
	real_ns += 3600 * SECOND;
	monotonic_ns = 2 * SECOND - 1;
	expect_true("not yet", !checkpointing_wants_part(log, &own, 0));
	real_ns = CHANGED - 3600 * SECOND;
	monotonic_ns = 2 * SECOND;
	expect_true("now", checkpointing_wants_part(log, &own, 0));
	expect_true("ended", checkpointing_end(log, NULL));
}

int main(void)
{
	scratch_enter("checkpoints_survive_clocks");
	check_results();
	check_parts();
	scratch_leave();
	return expect_status();
}
