/* SPDX-License-Identifier: MIT */
/*
 * Records times in a worker's own histograms, and moves them to the runtime's.
 *
 * The loop calls it at readings of the clock, device_queue.c at the end of a
 * transfer that was timed, the loop's first turn after a sleep for the wake.
 *
 * Invariant: the buckets of a histogram and its sum are moved together, within
 * one write of the sequence, so that a reader finds their count in the buckets.
 */
#include "runtime/worker/timings.h"
#include "runtime/base/check.h"
#include "runtime/io/request.h"
#include "runtime/worker/worker.h"

/* Later than this is late: as `late_wakes` is defined. */
#define LATE_NS (UINT64_C(10) * 1000 * 1000)

void pin_timings_record(
	struct pin_worker *worker, uint32_t index, uint64_t value_ns, uint32_t weight)
{
	struct pin_timings *timings = worker->timings;
	struct pin_gathered *gathered;
	uint32_t bucket = pin_histogram_bucket(value_ns);

	PIN_DCHECK(index < PIN_TIMINGS);
	if (timings == NULL) {
		return;
	}
	PIN_DCHECK(pin_worker_is_current(worker));
	gathered = &timings->gathered[index];
	gathered->buckets[bucket] += weight;
	gathered->sum_ns += value_ns * weight;
	gathered->rows |= UINT32_C(1) << (bucket / PIN_HISTOGRAM_PARTS);
	timings->dirty |= UINT32_C(1) << index;
}

/* ---- runs ---- */

/*
 * A row may have one long task at its end or its beginning: the others were as
 * short as tasks of this worker usually are.
 */
static void note_runs(struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks)
{
	uint32_t index = pin_timing_of(
		PINION_TIMING_RUN, pin_load_relaxed_u32(&worker->running_lane) % PIN_LANES);
	uint64_t mean_ns = elapsed_ns / tasks;
	uint64_t usual_ns;

	if (elapsed_ns <= (uint64_t)tasks * PIN_TIMINGS_LONG_NS) {
		pin_timings_record(worker, index, mean_ns, tasks * PIN_TIMINGS_ROWS);
		return;
	}
	usual_ns = pin_queue_interval_average_ns(&worker->queue_interval);
	usual_ns = usual_ns < mean_ns ? usual_ns : mean_ns;
	pin_timings_record(worker, index, elapsed_ns - usual_ns * (tasks - 1), 1);
	if (tasks > 1) {
		pin_timings_record(worker, index, usual_ns, tasks - 1);
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
 * beyond it. Without one it came and went within the row, and is taken to have
 * waited for half of it. Tasks that thieves took are not counted.
 */
static void note_queue(struct pin_worker *worker, uint64_t elapsed_ns)
{
	struct pin_timings *timings = worker->timings;
	const struct pin_deque *deque = &worker->deque;
	/* Relaxed, all: its own. */
	uint32_t first = pin_load_relaxed_u32(&deque->own_first);
	uint32_t tail = pin_load_relaxed_u32(&deque->tail);
	uint64_t runs = pin_load_relaxed_u64(&worker->meter.tasks_run);
	uint64_t taken = first - timings->seen_first;
	uint64_t most = runs - timings->seen_runs;

	timings->seen_first = first;
	timings->seen_runs = runs;
	if (deque->order != PIN_DEQUE_FIFO || deque->takes_newest) {
		timings->mark_count = 0;
		return;
	}
	if (taken > 0 && most > 0) {
		uint64_t waited_ns = elapsed_ns / 2;

		drop_marks(timings, first);
		if (timings->mark_count > 0) {
			waited_ns = worker->now_ns - timings->marks[0].time_ns;
		}
		pin_timings_record(worker, pin_timing_of(PINION_TIMING_QUEUED, PINION_LANE_NORMAL),
			waited_ns, (uint32_t)(taken < most ? taken : most));
	}
	if (first != tail) {
		add_mark(timings, tail, worker->now_ns);
	}
}

PIN_APART void pin_timings_note_row_slowly(
	struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks)
{
	if (worker->rows_left == 0) {
		worker->rows_left = PIN_TIMINGS_ROWS;
	}
	if (worker->timings != NULL) {
		note_runs(worker, elapsed_ns, tasks);
		note_queue(worker, elapsed_ns);
	}
}

/* ---- requests ---- */

/* Its task's lane, else that of the task that has submitted it. */
static uint32_t lane_of(const struct pin_worker *worker, struct pinion_request *request)
{
	const struct pin_request *private = pin_request_of(request);

	if ((request->task.flags & PIN_TASK_LANES) != 0) {
		return pin_task_lane(&request->task);
	}
	if (private->cost.is_urgent) {
		return PINION_LANE_HIGH;
	}
	return private->lane_priority != 0 &&
			private->lane_priority == worker->shared->io_priorities[PINION_LANE_LOW]
		? PINION_LANE_LOW
		: PINION_LANE_NORMAL;
}

/* In place of the task's `run`: records when it is entered. */
static int run_ready(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pin_request *private = pin_request_of(request);
	struct pin_worker *worker = pin_worker_current();

	PIN_DCHECK(private->run != NULL && private->run != run_ready);
	task->run = private->run;
	pin_timings_record(worker, pin_timing_of(PINION_TIMING_READY, lane_of(worker, request)),
		worker->shared->host->now_ns() - private->cost.started_ns, 1);
	pin_running_enter(worker, (pin_fault_fn)task->run);
	return task->run(task);
}

void pin_timings_note_request(struct pin_worker *worker, uint32_t device_index,
	struct pinion_request *request, uint64_t now_ns, uint64_t took_ns)
{
	struct pin_request *private = pin_request_of(request);

	/* Where rings are shared its task may be entered elsewhere. */
	if (worker->timings == NULL || worker->shares_ring) {
		return;
	}
	pin_timings_record(
		worker, pin_timing_of(PINION_TIMING_REQUEST, lane_of(worker, request)), took_ns, 1);
	if (device_index < PIN_TIMED_DEVICES) {
		pin_timings_record(worker, PIN_TIMINGS_OF_DEVICES + device_index, took_ns, 1);
	}
	PIN_DCHECK(request->task.run != run_ready);
	private->cost.started_ns = now_ns;
	private->run = request->task.run;
	request->task.run = run_ready;
}

/* ---- wakes ---- */

PIN_APART void pin_timings_note_wake_slowly(struct pin_worker *worker)
{
	uint64_t woken_ns = worker->woken_ns;
	/* On another CPU the clock may be read the other way round. */
	uint64_t took_ns = worker->now_ns > woken_ns ? worker->now_ns - woken_ns : 0;

	worker->woken_ns = 0;
	pin_timings_record(
		worker, pin_timing_of(PINION_TIMING_WAKE, PINION_LANE_NORMAL), took_ns, 1);
	pin_meter_add(&worker->meter.late_wakes, took_ns > LATE_NS);
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

void pin_timings_move(struct pin_worker *worker, struct pin_atomic_u64 *words)
{
	struct pin_timings *timings = worker->timings;

	while (timings->dirty != 0) {
		uint32_t index = (uint32_t)__builtin_ctz(timings->dirty);

		timings->dirty &= timings->dirty - 1;
		move_one(&timings->gathered[index], words + (size_t)index * PIN_TIMING_WORDS);
	}
}
