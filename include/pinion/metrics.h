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

#include <pinion/log.h>
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
	 * Time in tasks, which the worker measures for series of short tasks
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
	 * cancelled by a stop: the slot of the last spawn, the worker's own
	 * queue, completions and other tasks that only this worker may run, the
	 * inbox, the queue that all workers share, another worker's queue.
	 * Their sum is normal_polls. Further tasks of a batch count when they
	 * are run, as tasks of the own queue. While a task runs, deque_polls
	 * may lack it.
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
	 * Near 0: how often the worker ran more than 10 ms after it was woken:
	 * the machine had no CPU for it.
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
	uint64_t received_bytes;  /* from sockets, by requests */
	uint64_t sent_bytes;	  /* to sockets, by requests */
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
	/* sleeps; its ring is empty: requests may wait for a rate, or time */
	PINION_WORKER_PARKED_FUTEX = 1,
	PINION_WORKER_PARKED_RING = 2, /* sleeps, until a request completes */
	PINION_WORKER_ABSENT = 3,      /* has left, or never was there */
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
	 * it does between tasks. If its present task takes long, that is its
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

/* ---- histograms ---- */

enum {
	PINION_HISTOGRAM_BUCKETS = 992,
};

/*
 * How often something took how long. A bucket is at most 1/32 as wide as its
 * values are large, so a value that is read from it is off by 1.6 % at most,
 * and by 1 ns below 64 ns; times above 68 s are in the last bucket.
 *
 * Shape: a plain value, to be copied; zeroed it is empty.
 * Units: nanoseconds.
 * Since: 0.1
 */
struct pinion_histogram {
	uint64_t count; /* of all buckets */
	uint64_t sum_ns;
	uint64_t buckets[PINION_HISTOGRAM_BUCKETS];
};

/*
 * Counts `weight` values of `value_ns`: for times that a program measures
 * itself.
 *
 * Context: any thread, one at a time; a few nanoseconds.
 * Since: 0.1
 */
PINION_API void pinion_histogram_record(
	struct pinion_histogram *histogram, uint64_t value_ns, uint64_t weight);

/* Adds the counts of `more`: of another lane, runtime or process. Since: 0.1 */
PINION_API void pinion_histogram_add(
	struct pinion_histogram *sum, const struct pinion_histogram *more);

/*
 * Subtracts an earlier snapshot, so that the time between the two remains.
 * Since: 0.1
 */
PINION_API void pinion_histogram_subtract(
	struct pinion_histogram *histogram, const struct pinion_histogram *before);

/*
 * Returns the value that `permille` thousandths of all are not above: 500 is
 * the median, 999 the worst but one of a thousand, 1000 the largest. 0: there
 * are none.
 * Since: 0.1
 */
PINION_API uint64_t pinion_histogram_quantile_ns(
	const struct pinion_histogram *histogram, uint32_t permille);

/*
 * Returns the lowest value of a bucket; that of the next is where it ends.
 * UINT64_MAX: there is no such bucket.
 * Since: 0.1
 */
PINION_API uint64_t pinion_histogram_lowest_ns(uint32_t bucket);

/* The times that a runtime records. */
enum pinion_timing {
	/*
	 * A task's time in a queue, from its spawn. Of high and low: that which
	 * all workers share. Of normal: the own queue of the worker that ran
	 * it, or from the last move there; not the inbox. For the shared queue
	 * see PINION_TIMING_SHARED.
	 */
	PINION_TIMING_QUEUED = 0,
	/* A task's `run`. */
	PINION_TIMING_RUN = 1,
	/* A read or write, from its start in the device to its completion. */
	PINION_TIMING_REQUEST = 2,
	/* From the completion of a read or write to its task. */
	PINION_TIMING_READY = 3,
	/* From a wake to the first turn of the worker. */
	PINION_TIMING_WAKE = 4,
	/* A task's wait for a buffer of its worker. */
	PINION_TIMING_BUFFER = 5,
	/* From a timer's deadline to its expiry. */
	PINION_TIMING_TIMER = 6,
	/*
	 * A task's time in the queue of the normal lane that all workers share,
	 * unless it found that empty, or was taken with the first of a burst.
	 */
	PINION_TIMING_SHARED = 7,
	PINION_TIMINGS = 8,
};

/*
 * Reads a histogram of the whole runtime; `lane` is an enum pinion_lane.
 *
 * Most of them are samples, which cost the tasks hardly anything. A worker
 * reads the clock after each task of more than some 100 ns, and after a series
 * of shorter ones. A series gives the mean of its tasks, and every 32nd series
 * counts 32 times, but a task that takes more than 2 us is always recorded by
 * itself. The time of a series' last task in its queue is recorded for all of
 * them. In a queue that workers share one task is timed for each time that the
 * queue is gone through, and the tasks between two of these are recorded in
 * steps. One read or write in 8 to 32 is timed, with `slow_ns` (limit.h) each
 * of them. Wakes by workers and other threads, waits for buffers, and timers
 * are all recorded.
 *
 * A worker's times are included 10 ms later at most, unless it is in a task for
 * longer; the time of ticks and of other work between tasks belongs to no task.
 *
 * Context: any thread; never blocks.
 * Errors: -EINVAL: there is no such timing or lane; WAKE, BUFFER, TIMER and
 * SHARED have the normal lane only. -EAGAIN: workers have written to it all
 * the time; try again. -ECHILD: as above.
 * Since: 0.1
 */
PINION_API int pinion_runtime_get_histogram(const struct pinion_runtime *runtime,
	enum pinion_timing timing, uint32_t lane, struct pinion_histogram *out_histogram);

/*
 * Reads the histogram of PINION_TIMING_REQUEST of one device, with the index
 * of pinion_device_get_stats(); the first four devices have one.
 *
 * Errors: -ENOENT: that device has none. Else as above.
 * Since: 0.1
 */
PINION_API int pinion_device_get_histogram(const struct pinion_runtime *runtime, uint32_t index,
	struct pinion_histogram *out_histogram);

struct pinion_pool;

/*
 * Reads how long threads have waited in pinion_pool_acquire_wait(), whatever
 * came of it, and how long tasks have waited for the buffers that they got by
 * pinion_pool_acquire_async(). A call that found a buffer at once is not
 * included.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_pool_get_waits(
	const struct pinion_pool *pool, struct pinion_histogram *out_histogram);

/* ---- reading the metrics of a process ---- */

/*
 * A metrics page, as its reader sees it: pinion-metrics(5). Reading writes
 * nothing that the process could see, and neither stops nor slows it.
 */
struct pinion_metrics;

enum pinion_metrics_kind {
	PINION_METRICS_COUNTER = 1,
	PINION_METRICS_GAUGE = 2,
	PINION_METRICS_HISTOGRAM = 3,
};

enum pinion_metrics_scope {
	PINION_METRICS_RUNTIME = 1,
	PINION_METRICS_WORKER = 2, /* one of each worker with a slot */
	PINION_METRICS_DEVICE = 3, /* one of each of the first devices */
};

/*
 * One row of a page's table.
 *
 * Shape: size-versioned.
 * Since: 0.1
 */
struct pinion_metrics_field {
	char name[32];
	char unit[8];	 /* "", "ns" or "bytes" */
	uint32_t kind;	 /* enum pinion_metrics_kind */
	uint32_t scope;	 /* enum pinion_metrics_scope */
	uint32_t lane;	 /* enum pinion_lane; UINT32_MAX: of none */
	uint32_t copies; /* how many: of workers, of devices, or 1 */
};

/*
 * Whose page it is, and how it is.
 *
 * Shape: size-versioned.
 * Since: 0.1
 */
struct pinion_metrics_info {
	uint32_t version; /* of the format */
	uint32_t field_count;
	uint32_t worker_count; /* of the runtime */
	uint32_t slot_count;   /* workers that are in the page */
	uint64_t page_bytes;
	uint64_t pid;		/* as its own namespace numbers it */
	uint64_t process_start; /* field 22 of /proc/PID/stat; 0: unknown */
	uint64_t created_ns;	/* on CLOCK_MONOTONIC of that boot */
	uint64_t created_unix_ns;
	uint64_t published_ns; /* the latest write of all, as of the last snapshot */
	uint32_t has_ended;    /* the runtime was destroyed */
	/* Parts that were never seen whole: their writer was killed in them. */
	uint32_t torn_count;
	char boot_id[40];
	char program[16];
	char library[16];
};

/*
 * Opens a page: a file of `metrics_file`, or /proc/PID/fd/N. All of it is
 * checked before any of it is used.
 *
 * Owns: *out_metrics is the caller's until pinion_metrics_close().
 * Context: any thread; allocates, makes system calls. One thread at a time uses
 * it.
 * Errors: `log`, unless NULL, gets one line that says which and why.
 * -EPROTO: it is no metrics page, is cut short, or contradicts itself.
 * -EPROTONOSUPPORT: it is of a version that this library does not read.
 * -EAGAIN: its process has not filled it yet. -ENOMEM, and the errors of
 * open(2) and read(2).
 * Since: 0.1
 */
PINION_API int pinion_metrics_open(
	const char *path, pinion_log_fn log, void *log_arg, struct pinion_metrics **out_metrics);

/*
 * Opens the page of the `index`th runtime of a process, from 0 on, in the order
 * of their descriptors: the anonymous pages, and the metrics files that it
 * writes. Pages that a process has from its parent, or only reads, do not
 * count. A page that is refused has an index all the same, so the next index
 * may be good.
 *
 * Errors: as above; -ENOENT: the process has no more. -ESRCH: there is no such
 * process. -EACCES: it is another user's. Without a line: -ENOENT.
 * Since: 0.1
 */
PINION_API int pinion_metrics_open_pid(int pid, uint32_t index, pinion_log_fn log, void *log_arg,
	struct pinion_metrics **out_metrics);

/*
 * Whether the process has the page open for writing, as a runtime has until it
 * is destroyed. A process that called exec(2) keeps its number and its start,
 * and has lost the page.
 *
 * Shape: 1: it has; 0: it has not, so nobody writes the page.
 * Context: any thread; reads /proc/PID/fdinfo, a few microseconds a descriptor.
 * Errors: -ESRCH: there is no such process. -EACCES: it is another user's.
 * -EMFILE and others of open(2).
 * Since: 0.1
 */
PINION_API int pinion_metrics_is_open(const struct pinion_metrics *metrics, int pid);

/* NULL is accepted. Since: 0.1 */
PINION_API void pinion_metrics_close(struct pinion_metrics *metrics);

/*
 * Writes the page's description of itself to *out_info.
 * Since: 0.1
 */
PINION_API void pinion_metrics_get_info(
	const struct pinion_metrics *metrics, struct pinion_metrics_info *out_info, size_t size);

/*
 * Writes a row of the table to *out_field.
 *
 * Errors: -ENOENT: there are no more.
 * Since: 0.1
 */
PINION_API int pinion_metrics_get_field(const struct pinion_metrics *metrics, uint32_t number,
	struct pinion_metrics_field *out_field, size_t size);

/*
 * Returns the number of a row by its name, scope and lane (UINT32_MAX: none).
 *
 * Errors: -ENOENT: this page has no such value.
 * Since: 0.1
 */
PINION_API int pinion_metrics_find(const struct pinion_metrics *metrics, const char *name,
	enum pinion_metrics_scope scope, uint32_t lane);

/*
 * Takes a snapshot, which the calls below read. Each part of it, of a worker or
 * of the runtime, is of one instant, so its values agree with each other.
 *
 * Errors: -EAGAIN: a writer has not come to the end of a part for a
 * millisecond: it waits for a CPU, or was killed. The snapshot has that part as
 * it is, and `torn_count` counts it. Others as pinion_metrics_open().
 * Since: 0.1
 */
PINION_API int pinion_metrics_snapshot(struct pinion_metrics *metrics);

/*
 * Reads a value of the snapshot; `copy` is the worker's index, the device's, or
 * 0. Of a histogram it is the count.
 *
 * Errors: -ENOENT: there is no such row or copy.
 * Since: 0.1
 */
PINION_API int pinion_metrics_read(
	const struct pinion_metrics *metrics, uint32_t number, uint32_t copy, uint64_t *out_value);

/*
 * Reads a histogram of the snapshot.
 *
 * Errors: -ENOENT: as above; -EINVAL: the row is none.
 * Since: 0.1
 */
PINION_API int pinion_metrics_read_histogram(const struct pinion_metrics *metrics, uint32_t number,
	uint32_t copy, struct pinion_histogram *out_histogram);

PINION_END_DECLS

#endif
