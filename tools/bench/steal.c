/* SPDX-License-Identifier: MIT */
/*
 * The subject `steal`: the time from a busy worker's spawn of a task to its
 * start on another worker, which is awake and searches for work. The floor is a
 * thread that spins on one pointer, on the same two workers' threads.
 *
 * The victim spawns one task at a time and waits, without returning to its
 * worker, until the other has run it. A thief that has gone to sleep meanwhile
 * is woken by a task that any worker may take; that steal does not count as a
 * figure. Where nothing is ever stolen the victim gives up and runs its task.
 */
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	STEAL_FIGURES = 64, /* of one turn */
	STEAL_WARM_COUNT = 8,
	/* Between two steals, so that the thief is back at its search. */
	STEAL_GAP_NS = 2 * 1000,
	/* After which the thief is taken to be asleep. */
	STEAL_HOT_NS = 50 * 1000,
	/* After which no worker steals. */
	STEAL_NEVER_NS = 200 * 1000 * 1000,
};

struct steal {
	/* The victim's, or constant while a turn is running. */
	struct pinion_runtime *runtime;
	enum bench_side side;
	struct pinion_task turn;
	struct pinion_task kick; /* wakes the thief */
	uint32_t kick_count;
	uint32_t offer_count;
	uint32_t figure_count;
	double samples[STEAL_FIGURES];
	uint64_t hot_count; /* over all turns, and those that found it asleep */
	uint64_t cold_count;
	int error;
	uint32_t turn_number; /* the first is 1 */
	/* Written by the victim, read by the thief of the floor. */
	struct pinion_task *slot BENCH_LINE_ALIGNED;
	uint32_t is_over; /* the floor's thief returns */
	/* Written by the thief. */
	struct pinion_task loot BENCH_LINE_ALIGNED;
	uint64_t taken_ns;
	uint32_t taken_count;
	uint32_t kicked_count;
	struct pinion_task thief; /* the floor's */
	uint32_t thief_count;	  /* raised when it begins and when it ends */
	/* Numbers of turns, which either may write. */
	uint32_t given_up_turn BENCH_LINE_ALIGNED; /* its task is yet to run */
	uint32_t ended_turn;
	uint32_t done;
};

/* A turn ends once, by whichever thread. */
static void end_turn(struct steal *steal, uint32_t turn_number)
{
	uint32_t before = turn_number - 1;

	if (__atomic_compare_exchange_n(&steal->ended_turn, &before, turn_number, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		bench_word_raise(&steal->done);
	}
}

/* ---- the thief's side ---- */

static int loot_run(struct pinion_task *task)
{
	struct steal *steal = (struct steal *)(void *)((char *)task - offsetof(struct steal, loot));
	uint32_t turn_number;

	steal->taken_ns = bench_now_ns();
	/* Against given_up_turn: one of the two sees the other's. */
	__atomic_store_n(&steal->taken_count, steal->taken_count + 1, __ATOMIC_SEQ_CST);
	turn_number = __atomic_load_n(&steal->given_up_turn, __ATOMIC_SEQ_CST);
	if (turn_number != 0) {
		end_turn(steal, turn_number);
	}
	return 0;
}

static int kick_run(struct pinion_task *task)
{
	struct steal *steal = (struct steal *)(void *)((char *)task - offsetof(struct steal, kick));

	__atomic_store_n(&steal->kicked_count, steal->kicked_count + 1, __ATOMIC_RELEASE);
	return 0;
}

/* The floor: takes what appears in the slot. */
static int thief_run(struct pinion_task *task)
{
	struct steal *steal =
		(struct steal *)(void *)((char *)task - offsetof(struct steal, thief));

	bench_word_raise(&steal->thief_count);
	while (bench_word_read(&steal->is_over) == 0) {
		struct pinion_task *found = __atomic_load_n(&steal->slot, __ATOMIC_ACQUIRE);

		if (found != NULL &&
			__atomic_compare_exchange_n(&steal->slot, &found, NULL, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			(void)found->run(found);
		} else {
			bench_relax();
		}
	}
	bench_word_raise(&steal->thief_count);
	return 0;
}

/* ---- the victim's side ---- */

static bool await_taken(const struct steal *steal, uint32_t before, uint64_t end_ns)
{
	uint32_t spins = 0;

	while (bench_word_read(&steal->taken_count) == before) {
		/* The clock costs as much as the steal. */
		if (++spins % 64 == 0 && bench_now_ns() > end_ns) {
			return false;
		}
		bench_relax();
	}
	return true;
}

static int offer(struct steal *steal)
{
	steal->offer_count++;
	if (steal->side == BENCH_OURS) {
		return pinion_task_spawn(steal->runtime, &steal->loot);
	}
	__atomic_store_n(&steal->slot, &steal->loot, __ATOMIC_RELEASE);
	return 0;
}

/* What a sleeping worker may be woken for; the last such task has run. */
static int kick(struct steal *steal)
{
	if (steal->side == BENCH_FLOOR ||
		bench_word_read(&steal->kicked_count) != steal->kick_count) {
		return 0;
	}
	steal->kick_count++;
	return pinion_task_spawn_shared(steal->runtime, &steal->kick);
}

/* One steal. -ETIME: no thief came. */
static int steal_once(struct steal *steal, bool is_warm)
{
	uint32_t before = bench_word_read(&steal->taken_count);
	uint64_t start_ns = bench_now_ns();
	int rc = offer(steal);

	if (rc == 0 && await_taken(steal, before, start_ns + STEAL_HOT_NS)) {
		steal->hot_count++;
		if (is_warm) {
			steal->samples[steal->figure_count++] =
				(double)(steal->taken_ns - start_ns);
		}
		return 0;
	}
	if (rc == 0) {
		rc = kick(steal);
	}
	if (rc != 0) {
		return rc;
	}
	steal->cold_count++;
	return await_taken(steal, before, start_ns + STEAL_NEVER_NS) ? 0 : -ETIME;
}

static void wait_gap(void)
{
	uint64_t end_ns = bench_now_ns() + STEAL_GAP_NS;

	while (bench_now_ns() < end_ns) {
		bench_relax();
	}
}

static int steal_all(struct steal *steal)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < STEAL_WARM_COUNT + STEAL_FIGURES; i++) {
		rc = steal_once(steal, i >= STEAL_WARM_COUNT);
		wait_gap();
	}
	return rc;
}

/* Only the other worker can take the thief. */
static int steal_floor(struct steal *steal)
{
	uint32_t count = bench_word_read(&steal->thief_count);
	int rc;

	__atomic_store_n(&steal->is_over, 0, __ATOMIC_RELEASE);
	rc = pinion_task_spawn_shared(steal->runtime, &steal->thief);
	if (rc == 0) {
		rc = bench_word_wait(&steal->thief_count, count);
	}
	if (rc == 0) {
		rc = steal_all(steal);
	}
	__atomic_store_n(&steal->is_over, 1, __ATOMIC_RELEASE);
	return rc == 0 ? bench_word_wait(&steal->thief_count, count + 1) : rc;
}

static int steal_turn(struct pinion_task *task)
{
	struct steal *steal = (struct steal *)(void *)((char *)task - offsetof(struct steal, turn));
	uint32_t turn_number = steal->turn_number;

	steal->figure_count = 0;
	steal->offer_count = bench_word_read(&steal->taken_count);
	steal->error = steal->side == BENCH_OURS ? steal_all(steal) : steal_floor(steal);
	if (steal->error == -ETIME && steal->side == BENCH_OURS) {
		/* Unless it is taken in this moment, it runs here, later. */
		__atomic_store_n(&steal->given_up_turn, turn_number, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&steal->taken_count, __ATOMIC_SEQ_CST) != steal->offer_count) {
			return 0;
		}
	}
	end_turn(steal, turn_number);
	return 0;
}

/* ---- the subject ---- */

static int steal_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct steal *steal = state;
	int rc;

	steal->side = side;
	steal->slot = NULL;
	steal->turn_number++;
	rc = bench_run_turn(steal->runtime, &steal->turn, &steal->done);
	if (rc != 0 || steal->error == -ECANCELED) {
		return rc != 0 ? rc : steal->error;
	}
	if (steal->error != 0 && steal->error != -ETIME) {
		report_line("cannot steal: %s", report_reason(steal->error));
		return steal->error;
	}
	if (steal->figure_count == 0) {
		report_line("steal: skipped, no worker took what another had spawned");
		return BENCH_SKIPPED;
	}
	for (uint32_t i = 0; rc == 0 && i < steal->figure_count; i++) {
		rc = samples_add(out_figures, steal->samples[i]);
	}
	return rc;
}

static uint32_t steal_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	const struct steal *steal = state;

	further[0] = (struct bench_further){"asleep_percent",
		100 * (double)steal->cold_count / (double)(steal->hot_count + steal->cold_count)};
	return 1;
}

static void steal_stop(void *state)
{
	struct steal *steal = state;

	/* A thief of the floor would spin for ever after a signal. */
	__atomic_store_n(&steal->is_over, 1, __ATOMIC_RELEASE);
	pinion_runtime_destroy(steal->runtime);
	free(steal);
}

static int steal_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct bench_options options = *bench->options;
	struct steal *steal;
	int rc = bench_require_cpus(bench->subject, 2);

	if (rc != 0) {
		return rc;
	}
	steal = bench_allocate(sizeof(*steal));
	if (steal == NULL) {
		return -ENOMEM;
	}
	steal->turn.run = steal_turn;
	steal->kick.run = kick_run;
	steal->loot.run = loot_run;
	steal->thief.run = thief_run;
	/* The task spawned last would be stolen only as a last resort. */
	options.tuning.lifo_polls = 0;
	options.runtime.tuning = &options.tuning;
	rc = bench_start_workers(
		&(struct bench){.options = &options}, 2, out_setting, &steal->runtime);
	if (rc != 0) {
		steal_stop(steal);
		return rc;
	}
	*out_state = steal;
	return 0;
}

const struct bench_subject bench_steal = {
	.name = "steal",
	.unit = "ns",
	.brief = "from a spawn on a busy worker to the start on another that looks for work",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "spin-on-pointer"},
	.start = steal_start,
	.run = steal_run,
	.stop = steal_stop,
	.further = steal_further,
};
