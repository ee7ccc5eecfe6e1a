/* SPDX-License-Identifier: MIT */
/*
 * Goal: real threads that wake one work item: runs never overlap, and each wake
 * that returned 0 is followed by a run that sees all writes before it; however
 * a cancel, a stop or a drain comes in between, the end is reported once
 * (EX-57, EX-59, EX-61).
 * Method: each thread counts in a word of its own, without any order, and
 * wakes; a run notes the words. In every other phase a thread waits until its
 * count is noted; a lost wake hangs and trips the watchdog. Runs share plain
 * memory, so that TSan sees an overlap. Then short lives: random wakes and one
 * of three ends, after which the promises are checked.
 */
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/host/host.h"
#include "tests/support/random.h"
#include "tests/support/rounds.h"
#include "tests/support/runtimes.h"

#include <errno.h>

enum {
	WAKERS = 3,
	ROUNDS = 20000,
	ROUNDS_LEAST = 200,
	ROUNDS_SECONDS = 10,
	LIVES = 150,
	WAKES_PER_LIFE = 40,
	LIMIT_SECONDS = 100,
};

enum life_end { LIFE_CANCELLED, LIFE_STOPPED, LIFE_DRAINED, LIFE_ENDS };

struct counts {
	struct pin_atomic_u32 written; /* [W:waker R:runs] */
	struct pin_atomic_u32 noted;   /* [W:runs R:waker] */
	uint32_t due;		       /* [own] written before the last wake that returned 0 */
	uint32_t round_count;	       /* [own] */
};

static struct pinion_runtime *runtime;
static struct pinion_work work;
static struct counts counts[WAKERS];
static struct rounds rounds;
static uint32_t run_count; /* plain: of the runs, one after another */
static uint32_t end_count;
static uint32_t cancelled_count;
static uint32_t overlap_count;
static struct pin_atomic_u32 is_running;

static int run(struct pinion_work *self)
{
	overlap_count += pin_exchange_acq_rel_u32(&is_running, 1);
	run_count++;
	for (size_t i = 0; i < WAKERS; i++) {
		pin_store_release_u32(&counts[i].noted, pin_load_relaxed_u32(&counts[i].written));
	}
	/* Time for others to wake a running item. */
	if (run_count % 4 == 0) {
		pin_host_linux.yield();
	}
	/* Now and then it wakes itself, or asks for more. */
	if (run_count % 32 == 1) {
		pinion_work_wake(runtime, self);
	}
	pin_store_release_u32(&is_running, 0);
	return run_count % 64 == 2 ? PINION_WORK_AGAIN : PINION_WORK_WAIT;
}

static void end(struct pinion_work *self, int result)
{
	(void)self;
	if (result != -ECANCELED) {
		abort();
	}
	end_count++;
}

static void begin(uint32_t worker_count)
{
	runtime = runtimes_start(worker_count, PINION_IO_FALLBACK);
	run_count = end_count = cancelled_count = overlap_count = 0;
	memset(counts, 0, sizeof(counts));
	pinion_work_init(&work, run, end);
}

/* One more in the word, then a wake. */
static int wake(struct counts *own)
{
	uint32_t written = pin_load_relaxed_u32(&own->written) + 1;
	int rc;

	pin_store_relaxed_u32(&own->written, written);
	rc = pinion_work_wake(runtime, &work);
	if (rc == 0) {
		own->due = written;
	}
	return rc;
}

/* ---- no wake is lost ---- */

static void *wake_and_await(void *arg)
{
	struct counts *own = arg;

	for (uint32_t i = 1; rounds_go_on(&rounds, i - 1); i++) {
		own->round_count = i;
		if (wake(own) != 0) {
			abort();
		}
		/* Phases with a wait for each wake, then with none for long. */
		while ((i / 64 % 2 == 0 || i % 64 == 0) && pin_load_acquire_u32(&own->noted) != i) {
			pin_host_linux.yield();
		}
	}
	return NULL;
}

static void check_wakes(uint32_t worker_count)
{
	pthread_t threads[WAKERS];

	begin(worker_count);
	rounds = rounds_begin(ROUNDS, ROUNDS_LEAST, ROUNDS_SECONDS);
	for (size_t i = 0; i < WAKERS; i++) {
		expect_ready("thread",
			pthread_create(&threads[i], NULL, wake_and_await, &counts[i]) == 0);
	}
	for (size_t i = 0; i < WAKERS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("overlapping runs", 0, overlap_count);
	expect_number("ends", 0, end_count);
	for (size_t i = 0; i < WAKERS; i++) {
		expect_number("noted at last", counts[i].round_count,
			pin_load_acquire_u32(&counts[i].noted));
	}
	expect_number("tasks run", run_count, (long long)runtimes_counters(runtime).tasks_run);
	expect_number("it was idle", PINION_WORK_ENDED, pinion_work_cancel(&work));
	pinion_runtime_destroy(runtime);
}

/* ---- the end is reported once ---- */

static void *wake_some(void *arg)
{
	for (uint32_t i = 0; i < WAKES_PER_LIFE; i++) {
		int rc = wake(arg);

		if (rc != 0 && rc != -ECANCELED && rc != -ESHUTDOWN) {
			abort();
		}
		if (i % 8 == 0) {
			pin_host_linux.yield();
		}
	}
	return NULL;
}

static void end_life(enum life_end how)
{
	if (how == LIFE_CANCELLED) {
		int rc = pinion_work_cancel(&work);

		expect_true("cancel succeeds",
			rc == PINION_WORK_ENDED || rc == PINION_WORK_END_FOLLOWS);
		cancelled_count = rc == PINION_WORK_ENDED ? 1 : 0;
	} else if (how == LIFE_STOPPED) {
		expect_number("stop", 0, pinion_runtime_stop(runtime));
	} else {
		expect_number("drain", 0, pinion_runtime_drain(runtime));
	}
}

static void live_once(struct random_source *source, enum life_end how)
{
	pthread_t threads[WAKERS];
	uint64_t until_end = random_below(source, 30);

	begin(1 + (uint32_t)random_below(source, 3));
	for (size_t i = 0; i < WAKERS; i++) {
		expect_ready(
			"thread", pthread_create(&threads[i], NULL, wake_some, &counts[i]) == 0);
	}
	for (uint64_t i = 0; i < until_end; i++) {
		pin_host_linux.yield();
	}
	end_life(how);
	for (size_t i = 0; i < WAKERS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("overlapping runs", 0, overlap_count);
	if (how == LIFE_DRAINED) {
		expect_number("ends of a drain", 0, end_count);
	}
	if (how == LIFE_CANCELLED) {
		expect_number("ends of a cancel", 1, end_count + cancelled_count);
	}
	for (size_t i = 0; i < WAKERS && end_count + cancelled_count == 0; i++) {
		expect_true("a due run is noted",
			pin_load_acquire_u32(&counts[i].noted) >= counts[i].due);
	}
	/* Idle if it has not ended; reported here if it was not before. */
	expect_number("the end is reported once",
		end_count + cancelled_count == 0 ? PINION_WORK_ENDED : -EALREADY,
		pinion_work_cancel(&work));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);

	runtimes_watchdog(LIMIT_SECONDS);
	check_wakes(1);
	check_wakes(3);
	for (uint32_t i = 0; i < LIVES && expect_failure_count == 0; i++) {
		live_once(&source, (enum life_end)(i % LIFE_ENDS));
	}
	if (expect_failure_count != 0) {
		printf("seed %llu\n", (unsigned long long)seed);
	}
	return expect_status();
}
