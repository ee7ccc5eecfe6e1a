/* SPDX-License-Identifier: MIT */
/*
 * What a worker and a runtime's workers together consist of: the structs that
 * the files of the worker's loop share. Each field's tag says which threads
 * write it.
 */
#ifndef PIN_WORKER_STATE_H
#define PIN_WORKER_STATE_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/list.h"
#include "runtime/base/log.h"
#include "runtime/base/thread.h"
#include "runtime/host/host.h"
#include "runtime/host/kernel.h"
#include "runtime/host/topology.h"
#include "runtime/host/unwind.h"
#include "runtime/host/wake_set.h"
#include "runtime/io/device.h"
#include "runtime/io/file.h"
#include "runtime/io/registered_buffers.h"
#include "runtime/io/registered_files.h"
#include "runtime/io/request.h"
#include "runtime/io/ring.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/pool.h"
#include "runtime/observe/lane_wait.h"
#include "runtime/observe/metrics_page.h"
#include "runtime/observe/trace.h"
#include "runtime/policy/lanes.h"
#include "runtime/policy/queue_interval.h"
#include "runtime/policy/spin.h"
#include "runtime/policy/steal_order.h"
#include "runtime/policy/wake_batch.h"
#include "runtime/queue/biased_lock.h"
#include "runtime/queue/deque.h"
#include "runtime/queue/gate.h"
#include "runtime/queue/idle_set.h"
#include "runtime/queue/inbox.h"
#include "runtime/queue/injector.h"
#include "runtime/queue/lane_queue.h"
#include "runtime/queue/lifo_slot.h"
#include "runtime/queue/parker.h"
#include "runtime/queue/timer_wheel.h"
#include "runtime/queue/wait_queue.h"
#include "runtime/worker/task.h"

#include <pinion/config.h>
#include <pinion/runtime.h>

struct pin_worker;
struct pin_blocked;
struct pin_wait_entry;

/* Ending a sleep in a ring costs more, and disturbs its submissions. */
enum pin_parked_set {
	PIN_PARKED_FUTEX,
	PIN_PARKED_RING,
	PIN_PARKED_SETS,
};

enum {
	/* Pools with memory of one runtime. */
	PIN_POOLS_MAX = 16,
};

/* Whether a worker is there: loop/retire.c. */
enum pin_service {
	PIN_SERVICE_IN = 0,	 /* a resizer moves it to LEAVING */
	PIN_SERVICE_LEAVING = 1, /* the worker moves it to OUT */
	PIN_SERVICE_OUT = 2,	 /* it has no thread; a new one moves it to IN */
};

/* How a worker reads by commands: extra_rings.c. */
enum pin_commands_way {
	PIN_COMMANDS_UNTRIED = 0, /* with the first it becomes one of these */
	PIN_COMMANDS_BY_RING,	  /* refused there: BY_CALLS */
	PIN_COMMANDS_BY_CALLS,
};

/* The workers that serve the same lanes in the same order. */
struct pin_worker_class {
	/* [const] after start */
	struct pin_lane_order order;
	uint32_t first_worker;
	uint32_t worker_count;		     /* that there may be */
	struct pin_atomic_u32 serving_count; /* [W:resizer R:any] that there are to be */
	/* Those that are parked, by rank, on their futex and in their ring. */
	struct pin_idle parked[PIN_PARKED_SETS] PIN_CACHE_ALIGNED; /* [W:any R:any] */
	struct pin_atomic_u32 searching PIN_CACHE_ALIGNED; /* [W:any R:any] searching workers */
	struct pin_atomic_u32 free_count; /* [W:own workers R:any] see wake.h; else 0 */
};

/* Whose code a worker is in. */
enum pin_running {
	PIN_RUNNING_TASK = 0, /* or in the loop itself */
	PIN_RUNNING_CANCEL,   /* a task's `cancel` */
	PIN_RUNNING_HOOK,     /* one of the configuration's, which is no task */
};

/* What the watchdog has seen of a worker, device or lane: stall.c. */
struct pin_stall {
	uint64_t signs;	      /* of life, at the last check */
	uint64_t since_ns;    /* there were no others */
	uint64_t before_ns;   /* the check before that, of a worker; 0: there was none */
	uint64_t left_out_ns; /* of `since_ns`: the watchdog did not look */
	uint64_t began_ns;    /* of a worker, once it is reported: its task, or what it does */
	uint64_t counted_ns;  /* until when it is counted, once it is reported */
	uint64_t cpu_ns;      /* that its thread had used, */
	uint64_t delay_ns;    /* and waited for one, */
	uint64_t cpu_read_ns; /* when that was read; 0: not yet */
	bool is_seen;
	bool is_told;
};

enum pin_stall_kind {
	PIN_STALL_OF_TASK,
	PIN_STALL_OF_DEVICE,
	PIN_STALL_OF_LANE,
	PIN_STALL_OF_RING,
	PIN_STALL_KINDS,
};

struct pin_stall_look_times {
	uint64_t now_ns;
	uint64_t late_ns; /* by which the watchdog came later than it meant to */
};

/* The same of all; but for the last lines it is the watchdog's. */
struct pin_stalls {
	uint64_t look_ns;      /* the next one, for tasks, devices and lanes; 0: at once */
	uint64_t looked_ns;    /* the last one; 0: there was none, or it slept since */
	uint64_t ring_look_ns; /* and for rings */
	uint32_t looks_asked;  /* since `asked` was set */
	bool is_quiet;	       /* there was no sign of life at the last one, nor is work left */
	struct pin_stall disks[PIN_DISKS];
	struct pin_stall lanes[PIN_LANES];
	/* [W:watchdog, workers R:any] */
	struct pin_atomic_u32 asked; /* 1 + the device whose oldest request is to be named */
	struct pin_atomic_u64 counts[PIN_STALL_KINDS];
	/* [W:watchdog R:any] how long they lasted, in all */
	struct pin_atomic_u64 task_ns;
	struct pin_atomic_u64 ring_ns;
	/* [W:watchdog R:workers] stalled now: how many workers, lane bits */
	struct pin_atomic_u32 tasks_now;
	struct pin_atomic_u32 lanes_now;
	/*
	 * [W:watchdog, workers R:any] bits of devices that were named:
	 * device_stall.h
	 */
	struct pin_atomic_u32 devices_now;
	bool has_news; /* that are not on the metrics page */
};

/* Reasons for a task to leave the usual way; each is set once. */
enum pin_shared_flag {
	PIN_SHARED_STOPPING = 1, /* set before the gate is closed */
	PIN_SHARED_LANES = 2,	 /* not all work is normal */
	PIN_SHARED_URGENT = 4,	 /* requests of the high lane come; never without LANES */
	PIN_SHARED_DRAINING = 8, /* set before the gate is closed by a drain */
};

/* Why a spawn does not go through the LIFO slot: bits of its `closed`. */
enum pin_slow_reason {
	PIN_SLOW_REASON_UNUSED = 2,    /* there are no polls of it; set once */
	PIN_SLOW_REASON_TELL = 4,      /* the watchdog, before anything is kept; by the owner */
	PIN_SLOW_REASON_STOPPING = 8,  /* it is refused; set once */
	PIN_SLOW_REASON_ANNOUNCE = 16, /* it may have to wake a sleeper: worker/spawn.h */
	PIN_SLOW_REASON_FOUND = 32,    /* the watchdog found the last one waiting */
	PIN_SLOW_REASON_TRACED = 64,   /* each spawn is traced; set before the start */
};

/* Of one lane, those who wait until work from outside fits: worker/lane.h. */
struct pin_room {
	struct pin_shared *shared; /* [const] */
	enum pinion_lane lane;	   /* [const] */
	struct pin_waiters waiters;
};

/* What all workers of a runtime have in common. */
struct pin_shared {
	/* [const] after start */
	const struct pin_host *host;
	struct pin_log log;
	struct pin_log_rates log_rates; /* of `log` */
	struct pinion_config config;
	struct pinion_tuning tuning;
	struct pin_kernel kernel;
	bool is_fallback;
	bool arenas_grow; /* memory for workers' buffers is taken as they are used */
	uint32_t worker_count;
	struct pin_worker *workers;
	struct pin_victims victims;
	uint32_t *cpu_indices; /* what workers are bound to by node, or NULL */
	uint32_t cpu_room;     /* of that array */
	bool has_fence_all;
	bool has_cpu_each; /* every worker a core of its own, of several */
	/* [W:creator R:workers] while they start, see arena_setup.c */
	struct io_uring source;
	bool has_source;
	struct pin_registry registry;	      /* [const] after start */
	struct pin_atomic_u32 has_registered; /* futex of the workers */
	/* [W:creators, destroyers R:workers] struct pin_pool *, or 0 */
	struct pin_atomic_u64 pools[PIN_POOLS_MAX];
	struct pin_atomic_u32 has_pools; /* there is, or was, one */
	struct pin_lock forward_lock;	 /* rank 3; posted requests on their way to the fallback */
	struct pin_lock pools_lock;	 /* rank 1; of arenas' pieces */
	struct pin_lock rings_lock; /* of a thread pool: no ring goes while the watchdog reads it */
	/* [lock:pools_lock] those who wait for each pool's, or NULL */
	struct pin_waiters *pool_waiters[PIN_POOLS_MAX];
	struct pin_pool_shortages ended_pools; /* [lock:pools_lock] of all that have ended */
	/* [const] after start */
	struct pin_lane_plan lane_plan;
	uint8_t class_order[PIN_WORKER_CLASSES_MAX]; /* in which they are woken: few lanes first */
	uint32_t class_count;
	bool is_thread_pool;		   /* made by pinion_thread_pool_create() */
	struct pin_worker *fallback;	   /* gets the work left for workers that are OUT; stays */
	struct pin_atomic_u32 is_resizing; /* [W:resizer R:resizers] one at a time */
	struct pin_atomic_u32 flags;	   /* [W:any R:any] bits of enum pin_shared_flag */
	bool announces;			   /* lone spawns wake sleepers: worker/spawn.h */
	bool has_watchdog;
	bool has_watchdog_listener; /* workers that get up check its state */
	bool has_watchdog_thread;   /* for that, or for stalls */
	struct pin_stalls stalls;   /* [own] the watchdog's */
	pthread_t watchdog_thread;
	/* [W:any R:any], each in its own line or rarely written */
	struct pin_gate gate PIN_CACHE_ALIGNED;
	struct pin_queue_limit queue_limit; /* of the injector; beside the gate on purpose */
	struct pin_injector injector PIN_CACHE_ALIGNED;
	/*
	 * By enum pinion_lane; of normal, which is `injector`, only the
	 * warning.
	 */
	struct pin_lane_queue lanes[PIN_LANES] PIN_CACHE_ALIGNED;
	struct pin_room rooms[PIN_LANES] PIN_CACHE_ALIGNED; /* rarely written */
	struct pin_lane_wait lane_waits[PIN_LANES] PIN_CACHE_ALIGNED;
	uint16_t io_priorities[PIN_LANES]; /* [const] as ioprio_set(2) has them; 0: none */
	struct pin_worker_class classes[PIN_WORKER_CLASSES_MAX];
	struct pin_atomic_u32 wake_start; /* PINION_WAKE_ROTATE: after the last one woken */
	struct pin_atomic_u32 next_request_worker PIN_CACHE_ALIGNED; /* for outside ones */
	struct pin_atomic_u32
		pool_searches; /* theirs, see buffers.c; [W:any R:destroyers of pools] */
	struct pin_atomic_u32 watchdog PIN_CACHE_ALIGNED; /* enum pin_watchdog_state, a futex */
	/* [W:watchdog R:any] spawned tasks that waited beside a sleeper */
	struct pin_atomic_u64 watchdog_found_work;
	struct pin_inbox timer_inbox PIN_CACHE_ALIGNED; /* any worker takes all of it */
	struct pin_atomic_u32 started_count;		/* futex of the creator */
	/*
	 * The first arena, and the address after the last: buffers.c; 0: not
	 * yet.
	 */
	struct pin_atomic_u64 arenas_start;
	struct pin_atomic_u64 arenas_beyond;
	struct pin_atomic_u32 cancels;	 /* [W:any R:any] of many, under way: request_external.c */
	struct pin_atomic_u32 has_ended; /* set once, by the last worker; a futex */
	struct pin_atomic_u32 growth_told;   /* [W:workers R:workers] bits of logged lines */
	struct pin_atomic_u32 first_failure; /* its errno; 0: none yet */
	/* [W:outside R:destroyer] threads about to end a wait: worker/wait.h */
	struct pin_atomic_u32 outside_callers;
	struct pin_disks disks;
	struct pin_metrics_page *metrics; /* [const] or NULL: metrics_page.h */
	struct pin_trace *trace;	  /* [const] or NULL: nothing is traced; events.h */
};

/* A waiter for a buffer, now or later. */
struct pin_buffer_waiter {
	struct pin_link link;
	struct pinion_task *task; /* bound to the worker when its turn comes */
	uint64_t since_ns;
	struct pinion_buffer buffer;
};

/* Its transfers between submission and start: device_queue.c. */
struct pin_device_queue {
	uint32_t account_count;
	uint32_t queued; /* requests, in all device wait queues */
	bool must_look;	 /* one of them may start */
	/* Under a rate of the runtime: */
	uint32_t turn;	       /* the account that has its turn */
	uint32_t passed_count; /* urgent requests that have passed other devices, in a row */
	struct pin_allowance allowance;
	struct pin_lines lines;
	struct pin_account accounts[PIN_ACCOUNTS];
};

/* What a worker knows of its affinity: loop/thread.c. */
struct pin_binding {
	uint64_t look_ns; /* when it is looked at next; never: it was not bound */
	uint64_t told_ns;
	bool has_told;
	bool loss_is_told;
};

/* What a worker takes of its arena, and gives back: arena_growth.c. */
struct pin_growth {
	/* [own] */
	uint64_t look_ns;      /* when rest is looked for next; never: nothing is taken */
	uint64_t unlimited_ns; /* until then no memory cgroup is taken to limit */
	uint64_t refused_ns;   /* until then none is taken to leave so much: */
	size_t refused_bytes;
	uint64_t seen_acquires[PIN_GROWN_KINDS]; /* at the last check */
	uint32_t seen_free[PIN_GROWN_KINDS];
	bool is_quiet; /* there was none between the last two checks */
	/* [W:owner R:any] */
	struct pin_atomic_u64 bytes; /* that have pages */
	struct pin_atomic_u64 huge_bytes;
	struct pin_atomic_u64 registered_bytes;
	struct pin_atomic_u64 grown_count;	/* steps ever */
	struct pin_atomic_u64 given_back_bytes; /* ever */
};

/* Of a worker whose thread is the embedder's: loop/driven.c. */
struct pin_driven {
	/* [const] after start */
	pthread_t owner;
	/* [own] */
	struct pin_wake_set wake_set;
	struct pin_guard guard;
	bool is_parked;	 /* it sleeps, as far as others see, until the next call */
	bool has_exited; /* its last step is over */
	bool has_left;	 /* and so is its end */
	/* The call in hand, which a task may unwind. */
	uint32_t max_tasks;
	uint32_t empty_steps;  /* in a row that ran no task */
	uint64_t ended_before; /* tasks, when it began */
	uint64_t ended_last;   /* and after the last step */
	uint64_t deadline_ns;  /* until then it waits for something to run; 0: not at all */
};

struct pin_worker {
	/* [const] after start */
	struct pin_shared *shared;
	struct pin_worker_class *worker_class;
	uint32_t index;
	union {
		struct {
			bool shares_ring;     /* others may reap it: ring_lock.h */
			bool notes_submitted; /* requests are traced: events.h */
		};
		uint16_t submit_slow_reasons; /* 0: neither of the two, in one test */
	};
	bool has_polled;    /* a second ring: extra_rings.c */
	int register_error; /* why not all of the arena is registered, or 0 */
	int ring_error;	    /* why it has no ring of its own, or 0 */
	int start_error;
	size_t registered_bytes; /* of the arena, from its front */
	struct pin_cpu_place place;
	bool has_place;
	bool has_claim; /* is bound there, and counted: host/process.h */
	bool is_driven; /* its thread is the embedder's: loop/driven.c */
	pthread_t thread;
	bool has_thread;
	bool needs_ring; /* it is started by a resize: api/internal.h */
	/* [W:any R:any] */
	struct pin_parker parker PIN_CACHE_ALIGNED;
	struct pin_inbox inbox;
	struct pin_inbox timer_cancels; /* of its timers; the holder of their lock takes them */
	struct pin_injector external;	/* from outside: request_external.c */
	struct pin_injector external_urgent; /* of the high lane */
	struct pin_atomic_u32 service;	     /* enum pin_service */
	struct pin_atomic_u32 is_bound;	     /* [W:owner R:any] to its CPUs, now: loop/thread.c */
	struct pin_atomic_u32 kicked;	     /* to look at its device wait queues: device_queue.c */
	struct pin_atomic_u32
		rung; /* [W:wakers R:resizer] doorbells, of a thread pool: loop/retire.c */
	struct pin_atomic_u64 notified_ns;	/* [W:any R:owner] when it was woken: metrics.h */
	uint64_t watchdog_ended_tasks;		/* [own] the watchdog's: at its last check */
	struct pin_stall stall;			/* [own] the watchdog's */
	uint64_t stall_look_signs;		/* [own] the watchdog's: at its last check */
	struct pin_stall ring_stall;		/* [own] the watchdog's, of its ring */
	struct pin_lifo lifo PIN_CACHE_ALIGNED; /* closed by enum pin_slow_reason */
	struct pin_biased_lock timers_lock;
	struct pin_biased_lock ring_lock;     /* if `shares_ring`: ring_lock.h */
	struct pin_atomic_u32 gathered_count; /* [W:lock holder R:any] not submitted */
	struct pin_atomic_u32
		ring_is_open; /* [W:owner, resizer R:any] ring_lock.h, loop/retire.c */
	struct pin_atomic_u32
		sqe128_is_open; /* [W:owner, resizer R:watchdog] watchdog.c, loop/retire.c */
	struct pin_biased_lock cancels;		/* of requests in flight: worker/request.h */
	struct pin_atomic_u32 has_closed_files; /* [W:any R:owner] file_close.c */
	struct pinion_task files_message;	/* in the inbox while that is set */
	struct pin_atomic_u64 timer_ns; /* [W:lock holder R:any] when the first is due, a guess */
	/* [W:owner R:any] */
	struct pin_meter meter;
	struct pin_atomic_u64
		job; /* [W:owner, threads that end jobs R:the same] the job in its `run` */
	/* [W:owner R:watchdog] */
	struct pin_atomic_u64 running;	     /* the task or callback it is in, or was in last */
	struct pin_atomic_u32 running_lane;  /* and its lane */
	struct pin_atomic_u32 life;	     /* stall.c */
	struct pin_atomic_u32 is_stepping;   /* in its loop: neither on its way in nor out */
	struct pin_atomic_u32 devices_used;  /* device_stall.h: bits of its devices */
	struct pin_atomic_u32 thread_number; /* as /proc has it; 0: not known */
	/* [W:owner thieves R:any] as its header says */
	struct pin_deque deque PIN_CACHE_ALIGNED;
	/* [lock:timers_lock] */
	struct pin_timers timers;
	struct pin_list cancelled_timers; /* off the wheel, to be cancelled */
	uint64_t cancelled_ns;		  /* since about when the first of them is */
	/* [own] */
	struct pin_list ready;	/* tasks bound to this worker, completions first of all */
	struct pin_list urgent; /* those of urgent requests, before all others: loop/next_task.c */
	struct pin_list posted; /* taken from the inbox */
	struct pin_queue_interval queue_interval;
	struct pin_wait_entry *waits; /* begun here and not over */
	struct pin_random random;
	struct pin_lane_turns lanes;
	uint64_t turn_end_ns; /* of the loop in hand; 0: as yet untimed */
	uint64_t now_ns;      /* the clock when it was last read */
	uint64_t look_ns;     /* and when the injector was last looked into */
	uint64_t tick_ns;     /* when the next tick is due */
	struct pin_observed observed;
	struct pin_trace_ring *trace_ring; /* or NULL: events.h */
	struct pin_binding binding;
	uint64_t dry_since_ns;
	struct pin_spin spin;
	uint32_t turn;		   /* which of the own queues comes first */
	uint32_t budget_polls;	   /* tasks in one turn; less in a driven worker's last */
	uint32_t polls_since_look; /* into the injector */
	uint32_t untimed_batches;  /* in a row */
	uint32_t stride;	   /* tasks to the next reading of the clock, at the last one */
	uint32_t unsearched_batches;
	struct pin_atomic_u32 lifo_row; /* [W:owner R:any] polls of the slot in a row */
	struct pin_wake_batch wake_batch;
	struct pin_worker *woken;     /* by this one, last of all */
	struct pin_worker *announced; /* woken for a spawn, last of all */
	uint64_t announced_runs;      /* and the tasks that it had run by then */
	uint64_t paused_runs;	      /* of this one, at the last spawn that woke none */
	uint64_t announce_ns;	      /* when its spawns are to wake sleepers again */
	uint64_t dry_found_work;      /* `watchdog_found_work` when it had run dry */
	union {
		struct {
			bool is_searching; /* and counted as such */
			bool is_traced;	   /* [const] has a `trace_ring` */
		};
		uint16_t slow_reasons; /* 0: neither of the two, in one test */
	};
	bool is_free;	 /* and counted as such: wake.h */
	bool is_dry;	 /* has found nothing to run since `dry_since_ns` */
	bool is_on_time; /* `now_ns` was read after the last task, and nothing done since */
	bool cancel_sent;
	uint64_t drained_moves;	 /* pin_requests_moves() when it last drained; 0: never */
	uint32_t rings_due;	 /* doorbells for it so far, `rung` when all have rung */
	bool has_timers;	 /* perhaps, on its wheel */
	bool has_remote_batches; /* perhaps, of buffers that are to go home */
	bool sorts_ends;	 /* ended requests have several ways to their task: complete.c */
	bool ran_urgent;	 /* its last task was one of `urgent` */
	/* [own]; [lock:ring_lock] if `shares_ring` */
	struct pin_ring ring;
	struct pin_file_table files;
	struct pin_request_link in_flight; /* requests from their start to their end */
	struct pin_request_link waiting;   /* those that wait for room in the ring */
	struct pin_timers deadlines;	   /* of requests and waits; no other thread takes them */
	struct pin_device_queue device_queue;
	/* [own] */
	struct pin_ring polled; /* not initialised: there is none */
	struct pin_ring sqe128; /* for commands; not initialised: there is none; extra_rings.c */
	enum pin_commands_way commands_way;
	uint32_t secondary_count; /* requests on these two: request.h */
	struct pin_arena arena;
	struct pin_pool buffers;
	struct pin_pool small_buffers;
	struct pin_growth growth;
	struct pin_list buffer_queue; /* waiters, oldest first */
	struct pin_list small_buffer_queue;
	struct pin_device_cache devices;
	void *context; /* the embedder's: hooks.c */
	/* How long a waker may pause before its wake: loop/park.c. */
	uint64_t waker_delay_ns;
	bool has_last_tick;
	bool has_stopped;   /* `before_stop` was called */
	uint64_t away_ns;   /* of the turn, outside of its tasks */
	uint64_t series_ns; /* of the turn, in its tasks, at the last reading of the clock */
	/* Of tasks that fail: fault.c. */
	int panic_error; /* of the task that is being unwound, or 0 */
	enum pin_running running_kind;
	enum pin_unwind_result unwind_result; /* not accounted for yet */
	struct pin_guard *guard; /* what does not return leads back there; NULL: none */
	struct pin_cached cached;
	struct pin_driven driven; /* if `is_driven` */
};

_Static_assert(sizeof(uint16_t) == 2 * sizeof(bool), "a test of two");
_Static_assert(offsetof(struct pin_worker, meter) % PIN_CACHE_LINE == 0, "own line");
_Static_assert(offsetof(struct pin_worker, lifo) % PIN_CACHE_LINE == 0, "own line");
_Static_assert(offsetof(struct pin_worker, deque) % PIN_CACHE_LINE == 0, "own line");

/* [own] each thread's; only through the function below. */
extern _Thread_local struct pin_worker *pin_worker_self PIN_TLS_INITIAL;

/* The worker that runs the calling code, NULL on any other thread. */
static inline struct pin_worker *pin_worker_current(void)
{
	return pin_worker_self;
}

/* For assertions: that worker's thread calls, and not from a hook. */
static inline bool pin_worker_is_current(const struct pin_worker *worker)
{
	return pin_worker_self == worker;
}

/*
 * For assertions: `caller` is the calling worker, of this runtime, or NULL
 * since a thread from outside calls.
 */
static inline bool pin_worker_is_caller(
	const struct pin_shared *shared, const struct pin_worker *caller)
{
	return caller == NULL || (caller->shared == shared && pin_worker_is_current(caller));
}

/* Whether the worker runs the waiting tasks of this lane, unasked. */
static inline bool pin_worker_serves(const struct pin_worker *worker, uint32_t lane)
{
	PIN_DCHECK(lane < PIN_LANES); /* tasks for one worker alone are in no lane */
	return (worker->worker_class->order.mask & PIN_LANE_BIT(lane)) != 0;
}

/* Whose thread this is, also in a hook. */
static inline struct pin_worker *pin_worker_of_thread(void)
{
	const struct pin_thread *thread;

	if (pin_worker_self != NULL) {
		return pin_worker_self;
	}
	thread = pin_thread_find();
	return thread != NULL ? thread->worker_in_hook : NULL;
}

static inline uint32_t pin_shared_flags(const struct pin_shared *shared)
{
	return pin_load_acquire_u32(&shared->flags);
}

static inline bool pin_shared_is_stopping(const struct pin_shared *shared)
{
	return (pin_load_acquire_u32(&shared->flags) & PIN_SHARED_STOPPING) != 0;
}

/* Or is being drained. */
static inline bool pin_shared_is_ending(const struct pin_shared *shared)
{
	return (pin_load_acquire_u32(&shared->flags) &
		       (PIN_SHARED_STOPPING | PIN_SHARED_DRAINING)) != 0;
}

static inline bool pin_shared_has_lanes(const struct pin_shared *shared)
{
	return (pin_load_relaxed_u32(&shared->flags) & PIN_SHARED_LANES) != 0;
}

/* Requests of the high lane come, or have come. */
static inline bool pin_shared_has_urgent(const struct pin_shared *shared)
{
	return (pin_load_relaxed_u32(&shared->flags) & PIN_SHARED_URGENT) != 0;
}

#endif
