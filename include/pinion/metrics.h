/* SPDX-License-Identifier: MIT */
/*
 * What each worker of a runtime has done, in numbers: counts, the state of now,
 * and the ratios that are derived from them.
 *
 * Counts only grow. To see a period, take two snapshots and subtract; to see a
 * whole runtime or several, add. Each worker writes its own with plain stores,
 * and any thread reads them at any time: no worker is stopped or slowed.
 * runtime.h has sums with the state of the whole scheduler, lane.h those of
 * lanes, limit.h those of devices, pool.h those of pools.
 */
#ifndef PINION_METRICS_H
#define PINION_METRICS_H

#include <pinion/runtime.h>
#include <stddef.h>
#include <stdint.h>

PINION_BEGIN_DECLS

enum {
	/* In place of a worker's index: all of them, added up. */
	PINION_ALL_WORKERS = -1,
};

/*
 * Counts of one worker, or of several, since the runtime was created.
 *
 * Shape: size-versioned; every field is a uint64_t.
 * Since: 0.1
 */
struct pinion_worker_stats {
	/* Tasks by their end. */
	uint64_t tasks_run;	  /* entered through `run`, and over */
	uint64_t tasks_failed;	  /* of those, returned a negative value */
	uint64_t tasks_unwound;	  /* ended otherwise than by returning */
	uint64_t tasks_cancelled; /* entered through `cancel` */
	/*
	 * Time in tasks, which the worker measures for rows of short ones
	 * together; the task that runs now is not included.
	 */
	uint64_t busy_ns;
	/*
	 * Tasks that were spawned on the worker, by the way: into its own
	 * queues; by pinion_task_spawn_shared(); by pinion_task_spawn_on();
	 * started timers. Their sum is tasks_spawned. Spawns from outside are
	 * no worker's: `tasks_spawned` of struct pinion_runtime_stats has them
	 * as well.
	 */
	uint64_t tasks_spawned;
	uint64_t spawned_local;
	uint64_t spawned_shared;
	uint64_t spawned_on;
	uint64_t spawned_timers;
	uint64_t spawns_announced; /* times that its spawns woke a sleeper */
	/*
	 * Tasks by the queue that they were taken from, to be run, or to be
	 * cancelled by a stop: the slot of the last spawn, the own queue,
	 * completions and what else only this worker may run, the inbox, the
	 * queue that all share, another worker's. Their sum is normal_polls.
	 * Tasks that were taken along in a batch count where they are run, as
	 * of the own queue. While a task runs, deque_polls may lack it.
	 */
	uint64_t lifo_polls;
	uint64_t deque_polls;
	uint64_t ready_polls;
	uint64_t inbox_polls;
	uint64_t injector_polls;
	uint64_t steal_polls;
	/* Tasks by lane: taken from the queue of high, of low; all others. */
	uint64_t high_polls;
	uint64_t normal_polls;
	uint64_t low_polls;
	uint64_t injector_tasks; /* in the batches of `injector_polls` */
	uint64_t tasks_shared;	 /* moved to the queue that all share */
	uint64_t tasks_laned;	 /* moved to the queues of high and low */
	uint64_t steals;	 /* batches taken from other workers */
	uint64_t tasks_stolen;	 /* in these batches */
	uint64_t searches;	 /* times it searched the queues of others */
	uint64_t steal_rounds;	 /* rounds in these */
	uint64_t spin_hits;	 /* times it found work while it spun */
	uint64_t floor_turns;	 /* turns of a lane that others passed too often */
	uint64_t aged_turns;	 /* turns of low work that had waited too long */
	uint64_t assists;	 /* tasks of lanes that it does not serve */
	uint64_t budget_ends;	 /* turns that ended by `budget_polls` or `budget_us` */
	uint64_t ticks;		 /* calls of `on_tick` */
	/* Sleeps and wakes. */
	uint64_t parks_futex;
	uint64_t parks_ring;
	uint64_t wakes_sent;
	/* Wakes that were spared, as another worker was searching already. */
	uint64_t wakes_saved;
	/* Must stay 0: sleeps that only the safety net ended. */
	uint64_t park_timeout_found_work;
	/*
	 * Near 0: times that it ran more than 10 ms after it was woken: the
	 * machine had no CPU for it.
	 */
	uint64_t late_wakes;
	uint64_t timers_processed; /* expired timers, also of another worker */
	uint64_t timers_cancelled;
	/* Requests. */
	uint64_t requests_submitted;
	uint64_t requests_completed;
	uint64_t requests_cancelled; /* of these, with ECANCELED */
	uint64_t requests_timed_out; /* of these, with ETIME */
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t ring_enters;
	uint64_t short_transfers;     /* parts that came with less than was asked for */
	uint64_t retries_interrupted; /* attempts made again after EINTR */
	uint64_t retries_again;	      /* attempts made again after EAGAIN */
	uint64_t errors_tried_alone;
	uint64_t direct_refusals;
	uint64_t cached_reads;
	uint64_t dontcache_reads;
	uint64_t evicted_reads;
	uint64_t unregistered_reads;
	uint64_t unregistered_writes;
	uint64_t files_registered;
	uint64_t plain_file_transfers;
	uint64_t polled_transfers;
	uint64_t polled_refusals;
	uint64_t ring_commands;
	uint64_t files_direct; /* files opened, by their enum pinion_way */
	uint64_t files_asked;
	uint64_t files_cached;
	uint64_t files_empty;
	uint64_t files_unable;
	uint64_t buffer_waits;	  /* tasks that waited for one of its buffers */
	uint64_t workers_rebound; /* times that it was bound to its CPUs again */
};

/*
 * Writes the counts of a worker to *out_stats, or with PINION_ALL_WORKERS the
 * sum of all. Each count is exact; together they are of no single instant while
 * the worker runs.
 *
 * Context: any thread; never blocks.
 * Errors: -ENOENT: there is no such worker. -ECHILD: the runtime belongs to the
 * process that this one was forked from.
 * Since: 0.1
 */
PINION_API int pinion_worker_get_stats(const struct pinion_runtime *runtime, int worker_index,
	struct pinion_worker_stats *out_stats, size_t size);

/*
 * Adds the counts in `more` to *sum: of another worker, runtime or process.
 *
 * Shape: both have `size` bytes.
 * Since: 0.1
 */
PINION_API void pinion_worker_stats_add(
	struct pinion_worker_stats *sum, const struct pinion_worker_stats *more, size_t size);

/*
 * Subtracts the counts in `before` from *stats, so that those of the time
 * between the two remain. A count that has not grown gives 0.
 *
 * Shape: both have `size` bytes.
 * Since: 0.1
 */
PINION_API void pinion_worker_stats_subtract(
	struct pinion_worker_stats *stats, const struct pinion_worker_stats *before, size_t size);

/* Where a worker is. */
enum pinion_worker_place {
	PINION_WORKER_RUNNING = 0,
	PINION_WORKER_PARKED_FUTEX = 1, /* sleeps, without requests in flight */
	PINION_WORKER_PARKED_RING = 2,	/* sleeps, until a request completes */
	PINION_WORKER_ABSENT = 3,	/* of a thread pool: has left, or never was there */
};

/*
 * The state of one worker: no counts, so they are neither added nor subtracted.
 *
 * Shape: size-versioned.
 * Since: 0.1
 */
struct pinion_worker_info {
	uint64_t place; /* enum pinion_worker_place */
	/*
	 * Of a worker that runs: the time since it last read the clock, which
	 * it does between tasks. If the task in hand takes long, that is its
	 * time so far, or a few microseconds more.
	 */
	uint64_t running_ns;
	uint64_t queue_depth;	     /* tasks in its own queue and in its slot */
	uint64_t requests_in_flight; /* submitted and not completed */
	uint64_t look_interval;	     /* as `look_interval_min` of the runtime's */
	uint64_t turn_polls;
	uint64_t lifo_row;
	uint64_t park_until_ns; /* of a sleeper: when it wakes by itself, or UINT64_MAX */
};

/*
 * Writes the state of a worker to *out_info.
 *
 * Context: any thread; never blocks.
 * Errors: as pinion_worker_get_stats(); there is no state of all workers.
 * Since: 0.1
 */
PINION_API int pinion_worker_get_info(const struct pinion_runtime *runtime, int worker_index,
	struct pinion_worker_info *out_info, size_t size);

/*
 * Ratios of counts: what a monitor shows. Each is 0 where nothing was counted,
 * and those of parts are at most 1.
 *
 * Shape: size-versioned; every field is a double.
 * Since: 0.1
 */
struct pinion_worker_ratios {
	double failed_share; /* tasks_failed / tasks_run */
	double lifo_share;   /* lifo_polls / normal_polls, and so on */
	double deque_share;
	double ready_share;
	double inbox_share;
	double injector_share;
	double steal_share;
	double high_share; /* high_polls / all three lanes' */
	double low_share;
	/* steals / (searches + spin_hits), or / steals if these are more. */
	double steal_rate;
	double stolen_per_steal;   /* tasks_stolen / steals */
	double announced_share;	   /* spawns_announced / spawned_local, at most 1 */
	double wakes_saved_share;  /* wakes_saved / (wakes_saved + wakes_sent) */
	double tasks_per_park;	   /* tasks_run / (parks_futex + parks_ring) */
	double requests_per_enter; /* requests_completed / ring_enters */
	double task_ns_mean;	   /* busy_ns / tasks_run */
};

/*
 * Computes the ratios of counts, or of the difference of two snapshots.
 *
 * Shape: `stats` is a whole struct of this version.
 * Since: 0.1
 */
PINION_API void pinion_worker_stats_ratios(const struct pinion_worker_stats *stats,
	size_t stats_size, struct pinion_worker_ratios *out_ratios, size_t size);

PINION_END_DECLS

#endif
