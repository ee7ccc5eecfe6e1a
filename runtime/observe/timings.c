/* SPDX-License-Identifier: MIT */
/*
 * Records times in a worker's own histograms, and moves them to the runtime's.
 *
 * The worker calls it: at readings of the clock, at the end of a transfer that
 * was timed, in its first turn after a sleep, and when it publishes.
 *
 * Invariant: the buckets of a histogram and its sum are moved together, within
 * one write of the sequence, so that a reader finds their count in the buckets.
 */
#include "runtime/observe/timings.h"
#include "runtime/base/check.h"

#include <string.h>

/* Later than this is late: as `late_wakes` is defined. */
#define LATE_NS (UINT64_C(10) * 1000 * 1000)

void pin_timings_record(
	struct pin_timings *timings, uint32_t index, uint64_t value_ns, uint32_t weight)
{
	struct pin_gathered *gathered;
	uint32_t bucket = pin_histogram_bucket(value_ns);

	PIN_DCHECK(index < PIN_TIMINGS);
	if (timings == NULL) {
		return;
	}
	gathered = &timings->gathered[index];
	gathered->buckets[bucket] += weight;
	gathered->sum_ns += value_ns * weight;
	gathered->rows |= UINT32_C(1) << (bucket / PIN_HISTOGRAM_PARTS);
	timings->dirty |= UINT32_C(1) << index;
}

/* ---- runs ---- */

/*
 * A series may have one long task at its end or its beginning: the others were
 * as short as tasks of this worker usually are.
 */
static void note_runs(struct pin_timings *timings, const struct pin_series *series)
{
	uint32_t index = pin_timing_of(PINION_TIMING_RUN, series->lane);
	uint64_t mean_ns = series->elapsed_ns / series->tasks;
	uint64_t usual_ns = series->usual_ns < mean_ns ? series->usual_ns : mean_ns;

	if (series->elapsed_ns <= (uint64_t)series->tasks * PIN_TIMINGS_LONG_NS) {
		pin_timings_record(timings, index, mean_ns, series->tasks * PIN_TIMINGS_SERIES);
		return;
	}
	pin_timings_record(timings, index, series->elapsed_ns - usual_ns * (series->tasks - 1), 1);
	if (series->tasks > 1) {
		pin_timings_record(timings, index, usual_ns, series->tasks - 1);
	}
}

/* ---- the queue ---- */

/* Every second one, but the last, makes room for twice the time. */
static void thin_out(struct pin_timings *timings)
{
	uint32_t kept = 0;

	for (uint32_t i = 1; i < timings->mark_count; i += 2) {
		timings->marks[kept++] = timings->marks[i];
	}
	PIN_DCHECK(kept > 0 && kept < PIN_TIMINGS_MARKS);
	timings->mark_count = kept;
}

static void add_mark(struct pin_timings *timings, uint32_t tail, uint64_t now_ns)
{
	if (timings->mark_count > 0 && timings->marks[timings->mark_count - 1].tail == tail) {
		return;
	}
	if (timings->mark_count == PIN_TIMINGS_MARKS) {
		thin_out(timings);
	}
	PIN_DCHECK(timings->mark_count < PIN_TIMINGS_MARKS);
	timings->marks[timings->mark_count++] =
		(struct pin_queue_mark){.time_ns = now_ns, .tail = tail};
}

/* Those of tasks that are all taken. */
static void drop_marks(struct pin_timings *timings, uint32_t first)
{
	uint32_t dropped = 0;

	while (dropped < timings->mark_count &&
		(int32_t)(timings->marks[dropped].tail - first) < 0) {
		dropped++;
	}
	timings->mark_count -= dropped;
	memmove(timings->marks, timings->marks + dropped,
		timings->mark_count * sizeof(timings->marks[0]));
}

/*
 * The task that was taken last had its place in the queue at the first mark
 * beyond it. Without one it came and went within the series, and is taken to
 * have waited for half of it. Tasks that thieves took are not counted.
 */
static void note_queue(struct pin_timings *timings, const struct pin_series *series)
{
	uint64_t taken = series->first - timings->seen_first;
	uint64_t most = series->runs - timings->seen_runs;

	timings->seen_first = series->first;
	timings->seen_runs = series->runs;
	if (!series->is_in_order) {
		timings->mark_count = 0;
		return;
	}
	if (taken > 0 && most > 0) {
		uint64_t waited_ns = series->elapsed_ns / 2;

		drop_marks(timings, series->first);
		if (timings->mark_count > 0) {
			PIN_DCHECK(timings->marks[0].time_ns <= series->now_ns);
			waited_ns = series->now_ns - timings->marks[0].time_ns;
		}
		pin_timings_record(timings, pin_timing_of(PINION_TIMING_QUEUED, PINION_LANE_NORMAL),
			waited_ns, (uint32_t)(taken < most ? taken : most));
	}
	if (series->first != series->tail) {
		add_mark(timings, series->tail, series->now_ns);
	}
}

void pin_timings_note_series(struct pin_observed *observed, const struct pin_series *series)
{
	PIN_DCHECK(series->tasks > 0); /* a divisor */
	if (observed->series_left == 0) {
		observed->series_left = PIN_TIMINGS_SERIES;
	}
	if (observed->timings != NULL) {
		note_runs(observed->timings, series);
		note_queue(observed->timings, series);
	}
}

/* ---- wakes ---- */

bool pin_timings_note_wake(struct pin_observed *observed, uint64_t now_ns)
{
	uint64_t woken_ns = observed->woken_ns;
	/* On another CPU the clock may be read the other way round. */
	uint64_t took_ns = now_ns > woken_ns ? now_ns - woken_ns : 0;

	PIN_DCHECK(woken_ns != 0); /* 0 is no wake to record */
	observed->woken_ns = 0;
	pin_timings_record(observed->timings, pin_timing_of(PINION_TIMING_WAKE, PINION_LANE_NORMAL),
		took_ns, 1);
	return took_ns > LATE_NS;
}

/* ---- moving ---- */

/* The writer holds the lock, so its own loads are of the latest. Relaxed. */
static void grow(struct pin_atomic_u64 *word, uint64_t amount)
{
	pin_store_relaxed_u64(word, pin_load_relaxed_u64(word) + amount);
}

static void move_one(struct pin_gathered *gathered, struct pin_atomic_u64 *words)
{
	uint64_t count = 0;

	while (gathered->rows != 0) {
		uint32_t row = (uint32_t)__builtin_ctz(gathered->rows);
		uint32_t first = row * PIN_HISTOGRAM_PARTS;

		gathered->rows &= gathered->rows - 1;
		for (uint32_t i = first; i < first + PIN_HISTOGRAM_PARTS; i++) {
			if (gathered->buckets[i] != 0) {
				grow(&words[PIN_TIMING_BUCKETS + i], gathered->buckets[i]);
				count += gathered->buckets[i];
				gathered->buckets[i] = 0;
			}
		}
	}
	grow(&words[PIN_TIMING_COUNT], count);
	grow(&words[PIN_TIMING_SUM], gathered->sum_ns);
	gathered->sum_ns = 0;
}

void pin_timings_move(struct pin_timings *timings, struct pin_atomic_u64 *words)
{
	while (timings->dirty != 0) {
		uint32_t index = (uint32_t)__builtin_ctz(timings->dirty);

		PIN_DCHECK(index < PIN_TIMINGS);
		timings->dirty &= timings->dirty - 1;
		move_one(&timings->gathered[index], words + (size_t)index * PIN_TIMING_WORDS);
	}
}
