/* SPDX-License-Identifier: MIT */
/*
 * Workers that have more to do than they can ever finish: tasks that
 * spawn themselves anew, so that no worker's own queue is ever empty. How long
 * they take is random. Some of them may be of the low lane.
 *
 * The same without queues, for floors: the workers' threads in a loop over
 * tasks of the same lengths, who look at one pointer after each.
 */
#ifndef PINION_TOOLS_BENCH_LOAD_H
#define PINION_TOOLS_BENCH_LOAD_H

#include "tools/bench/tasks.h"

#include <stdbool.h>

enum {
	LOAD_TASKS = 16, /* of each worker */
	/* Of short tasks. */
	LOAD_SHORT_NS_MIN = 1000,
	LOAD_SHORT_NS_MAX = 100 * 1000,
};

struct load_worker;

/* Zero-initialise; set the inputs. */
struct load {
	uint32_t first_index; /* input: of the workers that are kept busy */
	uint32_t low_count;   /* input: how many of the tasks of each are low */
	uint64_t task_ns_min; /* input, and up to: */
	uint64_t task_ns_max;
	/* Input: what a task does; NULL: it spins, as long as said above. */
	int (*work)(void *arg, uint64_t *random);
	void *work_arg;
	struct pinion_runtime *runtime;
	struct load_worker *workers;
	uint32_t worker_count;
	struct pinion_task *slot; /* the loops': to be run by its finder */
	uint32_t is_over;	  /* tasks no longer spawn themselves */
	int error;
	uint32_t begun BENCH_LINE_ALIGNED; /* workers, raised */
	uint32_t ended;			   /* tasks or loops, raised */
};

/*
 * For the workers from `first_index` on. Returns 0 or a negative errno that is
 * reported; load_fini() in any case, after the runtime's end.
 */
int load_init(struct load *load, struct pinion_runtime *runtime);
void load_fini(struct load *load);

/*
 * Returns when each of them is busy, with tasks or in a loop. 0 or a negative
 * errno, which is reported unless it is -ECANCELED; then the runtime is to be
 * destroyed before anything else.
 */
int load_begin(struct load *load, bool in_loops);

/* Returns when all have ended; 0 or a negative errno. */
int load_end(struct load *load);

/* The tasks end by themselves, and no thread waits. */
void load_abandon(struct load *load);

/*
 * How many tasks have run, of the low lane or the others, while there was no
 * end to them; when it has ended.
 */
uint64_t load_runs(const struct load *load, bool is_low);

/* xorshift64: as good as any for lengths. `state` is not 0. */
uint64_t load_random_below(uint64_t *state, uint64_t end);

/* Sleeps for up to that long, so that what follows begins at any moment. */
void load_sleep_gap(uint64_t *random, uint64_t end_ns);

#endif
