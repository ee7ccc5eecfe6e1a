/* SPDX-License-Identifier: MIT */
/*
 * One worker's counters: written by the worker alone with plain stores, read by
 * any thread at any time. No locked instruction, no shared line.
 *
 * [METER-1] pin_meter_add (release) -> pin_meter_read (acquire): a reader that
 * sees a count also sees what its worker did before counting. The termination
 * check relies on it: a thread that sees a task counted as run sees its spawns.
 */
#ifndef PIN_BASE_METRICS_H
#define PIN_BASE_METRICS_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

enum {
	/* One more than the last of enum pinion_way. */
	PIN_METER_WAYS = 6,
};

struct pin_meter {
	/* [W:owner R:any] */
	struct pin_atomic_u64 tasks_spawned;
	struct pin_atomic_u64 tasks_run;
	struct pin_atomic_u64 tasks_failed;
	struct pin_atomic_u64 tasks_cancelled;
	struct pin_atomic_u64 requests_submitted;
	struct pin_atomic_u64 requests_completed;
	struct pin_atomic_u64 read_bytes;
	struct pin_atomic_u64 ring_enters;
	struct pin_atomic_u64 parks_futex;
	struct pin_atomic_u64 parks_ring;
	struct pin_atomic_u64 wakes_sent;
	struct pin_atomic_u64 unregistered_reads;
	struct pin_atomic_u64 tasks_stolen;
	struct pin_atomic_u64 steals;
	struct pin_atomic_u64 lifo_polls;
	struct pin_atomic_u64 injector_takes;
	struct pin_atomic_u64 searches;
	struct pin_atomic_u64 spin_hits;
	struct pin_atomic_u64 park_timeout_found_work;
	struct pin_atomic_u64 write_bytes;
	struct pin_atomic_u64 unregistered_writes;
	struct pin_atomic_u64 requests_posted; /* taken over from outside threads */
	struct pin_atomic_u64 requests_cancelled;
	struct pin_atomic_u64 requests_timed_out;
	struct pin_atomic_u64 busy_ns; /* running tasks */
	struct pin_atomic_u64 high_run;
	struct pin_atomic_u64 low_run;
	struct pin_atomic_u64 floor_turns;
	struct pin_atomic_u64 aged_turns;
	struct pin_atomic_u64 assists;
	struct pin_atomic_u64 tasks_unwound;
	struct pin_atomic_u64 ticks;
	struct pin_atomic_u64 dontcache_reads;
	struct pin_atomic_u64 cached_reads;
	struct pin_atomic_u64 evicted_reads;
	struct pin_atomic_u64 files_registered;
	struct pin_atomic_u64 plain_file_transfers;
	struct pin_atomic_u64 polled_transfers;
	struct pin_atomic_u64 polled_refusals;
	struct pin_atomic_u64 ring_commands;
	struct pin_atomic_u64 tasks_shared;		    /* pushed to the injector */
	struct pin_atomic_u64 files_by_way[PIN_METER_WAYS]; /* enum pinion_way */
	struct pin_atomic_u64 direct_refusals;
	struct pin_atomic_u64 errors_tried_alone;
	struct pin_atomic_u64 steal_rounds;
	struct pin_atomic_u64 timers_processed;
	struct pin_atomic_u64 rebinds;		   /* of its thread to its CPUs */
	struct pin_atomic_u64 tasks_laned;	   /* pushed to the queues of other lanes */
	struct pin_atomic_u64 spawned_shared;	   /* by pinion_task_spawn_shared() */
	struct pin_atomic_u64 spawned_on;	   /* for one worker */
	struct pin_atomic_u64 spawned_timers;	   /* timers started */
	struct pin_atomic_u64 spawns_announced;	   /* times that spawns woke a sleeper */
	struct pin_atomic_u64 ready_polls;	   /* tasks run from the ready list */
	struct pin_atomic_u64 inbox_polls;	   /* tasks run from the inbox */
	struct pin_atomic_u64 steal_polls;	   /* tasks run straight after a theft */
	struct pin_atomic_u64 injector_tasks;	   /* in the batches of `injector_takes` */
	struct pin_atomic_u64 queued_cancelled;	   /* of `tasks_cancelled`: taken from a queue */
	struct pin_atomic_u64 wakes_saved;	   /* a searcher was there already */
	struct pin_atomic_u64 late_wakes;	   /* woken sleepers that ran late */
	struct pin_atomic_u64 budget_ends;	   /* turns that ended by their budget */
	struct pin_atomic_u64 buffer_waits;	   /* tasks that had to wait for a buffer */
	struct pin_atomic_u64 short_transfers;	   /* completions with a part of the bytes */
	struct pin_atomic_u64 retries_interrupted; /* after EINTR */
	struct pin_atomic_u64 retries_again;	   /* after EAGAIN */
	struct pin_atomic_u64 received_bytes;	   /* from sockets */
	struct pin_atomic_u64 sent_bytes;	   /* to sockets */
	/* Not counts but how it is now: what the queue-check interval says, */
	struct pin_atomic_u64 look_interval;
	/* how much of its budget the last turn took that was timed, */
	struct pin_atomic_u64 turn_polls;
	/* until when at most it sleeps, or has slept, */
	struct pin_atomic_u64 park_until_ns;
	/* when it last read the clock between two tasks, */
	struct pin_atomic_u64 clock_ns;
	/* and that after a task of `stall_ms` or more, */
	struct pin_atomic_u64 long_end_ns;
	/* and whether its thread has ended: 1. */
	struct pin_atomic_u64 has_left;
} PIN_CACHE_ALIGNED;

static inline void pin_meter_add(struct pin_atomic_u64 *counter, uint64_t amount)
{
	/* An amount below zero would wrap it. */
	PIN_DCHECK(pin_load_relaxed_u64(counter) + amount >= pin_load_relaxed_u64(counter));
	pin_add_own_release_u64(counter, amount); /* [METER-1] */
}

/* Relaxed: a figure by itself, nothing is seen with it. */
static inline void pin_meter_set(struct pin_atomic_u64 *figure, uint64_t value)
{
	pin_store_relaxed_u64(figure, value);
}

static inline uint64_t pin_meter_read(const struct pin_atomic_u64 *counter)
{
	return pin_load_acquire_u64(counter); /* [METER-1] */
}

#endif
