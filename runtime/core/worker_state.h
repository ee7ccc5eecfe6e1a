/* SPDX-License-Identifier: MIT */
/*
 * What a worker and a runtime's workers together consist of: the structs that
 * the files of the worker's loop share. Who writes what stands beside each
 * field.
 */
#ifndef PIN_CORE_WORKER_STATE_H
#define PIN_CORE_WORKER_STATE_H

#include "runtime/core/task.h"
#include "runtime/host/kernel.h"
#include "runtime/host/topology.h"
#include "runtime/io/file.h"
#include "runtime/io/request.h"
#include "runtime/io/ring.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/pool.h"
#include "runtime/sched/deque.h"
#include "runtime/sched/gate.h"
#include "runtime/sched/idle.h"
#include "runtime/sched/inbox.h"
#include "runtime/sched/injector.h"
#include "runtime/sched/lifo.h"
#include "runtime/sched/parker.h"
#include "runtime/sched/timers.h"
#include "runtime/sched/tuner.h"
#include "runtime/sched/victims.h"

#include <pinion/config.h>
#include <pinion/runtime.h>

struct pin_worker;

/* Ending a sleep in a ring costs more, and disturbs its submissions. */
enum pin_parked_set {
	PIN_PARKED_FUTEX,
	PIN_PARKED_RING,
	PIN_PARKED_SETS,
};

/* What all workers of a runtime have in common. */
struct pin_shared {
	/* [const] after start */
	const struct pin_host *host;
	struct pin_log log;
	struct pinion_config config;
	struct pin_kernel kernel;
	bool is_fallback;
	uint32_t worker_count;
	struct pin_worker *workers;
	struct pin_victims victims;
	bool has_cpu_each; /* every worker a core of its own, of several */
	/* [W:any R:any], each in its own line or rarely written */
	struct pin_gate gate PIN_CACHE_ALIGNED;
	struct pin_injector injector PIN_CACHE_ALIGNED;
	/* Parked workers by rank, on their futex and in their ring. */
	struct pin_idle parked[PIN_PARKED_SETS] PIN_CACHE_ALIGNED;
	struct pin_atomic_u32 wake_start; /* PINION_WAKE_ROTATE: behind the last one woken */
	struct pin_atomic_u32 searching PIN_CACHE_ALIGNED;	   /* workers that look for work */
	struct pin_atomic_u32 next_timer_worker PIN_CACHE_ALIGNED; /* for outside ones */
	struct pin_atomic_u32 started_count;			   /* futex of the creator */
	struct pin_atomic_u32 is_stopping;			   /* set once, before the close */
	struct pin_atomic_u32 has_ended;     /* set once, by the last worker */
	struct pin_atomic_u32 first_failure; /* its errno; 0: none yet */
};

/* Who gets a buffer, now or later. */
struct pin_buffer_waiter {
	struct pin_link link;
	struct pinion_task *task; /* bound to the worker when its turn comes */
	uint8_t *bytes;
	uint32_t index;
};

struct pin_worker {
	/* [const] after start */
	struct pin_shared *shared;
	uint32_t index;
	bool is_bound;
	bool is_registered;
	int start_error;
	struct pin_cpu_place place;
	bool has_place;
	pthread_t thread;
	bool has_thread;
	/* [W:any R:any] */
	struct pin_parker parker PIN_CACHE_ALIGNED;
	struct pin_inbox inbox;
	struct pin_lifo lifo PIN_CACHE_ALIGNED;
	/* [W:owner R:any] */
	struct pin_meter meter;
	/* [W:owner thieves R:any] as its header says */
	struct pin_deque deque PIN_CACHE_ALIGNED;
	/* [own] */
	struct pin_list ready;	/* tasks bound to this worker, completions first of all */
	struct pin_list posted; /* taken from the inbox */
	struct pin_tuner tuner;
	struct pin_timers timers;
	struct pin_random random;
	uint64_t turn_end_ns; /* of the loop in hand */
	uint64_t now_ns;      /* the clock when it was last read */
	uint64_t look_ns;     /* and when the injector was last looked into */
	uint64_t dry_since_ns;
	uint64_t idle_gap_ns;	   /* smoothed: from running dry to the next task */
	uint32_t turn;		   /* which of the own queues comes first */
	uint32_t polls_since_look; /* into the injector */
	uint32_t lifo_polls;	   /* in a row, in this loop */
	uint32_t spawns_since_wake;
	uint32_t hoard_spawns; /* [const] UINT32_MAX: there is nobody to wake */
	bool uses_lifo;
	bool is_searching; /* and counted as such */
	bool is_dry;	   /* has found nothing to run since `dry_since_ns` */
	bool cancel_sent;
	struct pin_ring ring;
	struct pin_arena arena;
	struct pin_pool buffers;
	struct pin_pool small_buffers;
	struct pin_list buffer_queue; /* waiters, oldest first */
	struct pin_list small_buffer_queue;
	struct pin_device_cache devices;
};

_Static_assert(offsetof(struct pin_worker, meter) % PIN_CACHE_LINE == 0, "own line");
_Static_assert(offsetof(struct pin_worker, lifo) % PIN_CACHE_LINE == 0, "own line");
_Static_assert(offsetof(struct pin_worker, deque) % PIN_CACHE_LINE == 0, "own line");

static inline bool pin_shared_is_stopping(const struct pin_shared *shared)
{
	return pin_load_acquire_u32(&shared->is_stopping) != 0;
}

#endif
