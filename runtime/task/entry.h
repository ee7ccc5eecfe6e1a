/* SPDX-License-Identifier: MIT */
/*
 * The ways into a runtime, below its public calls: places for tasks that are to
 * come, waits, and tasks that were admitted. Groups, futures, admissions, scans
 * and the like use a runtime by these.
 *
 * Any thread, unless said otherwise.
 */
#ifndef PIN_TASK_ENTRY_H
#define PIN_TASK_ENTRY_H

#include "runtime/host/host.h"
#include "runtime/host/process.h"
#include "runtime/worker/wait.h"
#include "runtime/worker/worker.h"

#include <pinion/lane.h>
#include <pinion/runtime.h>

/* ---- runtime state ---- */

/*
 * What a runtime consists of, for the files that its public calls are in.
 */

struct pinion_runtime {
	struct pin_shared shared;
	struct pin_lock life; /* the end of the runtime; rank 1, held while joining */
	bool is_joined;	      /* [lock:life] */
	uint32_t forked;      /* [const] pin_forked_now() of its process */
	/* As `forked`, or UINT32_MAX: spawns from outside are traced. */
	uint32_t forked_untraced;
	char fallback_cause[192]; /* [const] empty: there are rings */
	int latency_fd;		  /* [const] that asks for `cpu_latency_us`, or -1 */
	struct pin_host own_host; /* [const] with an allocator of the embedder's */
	struct pin_live live;
};

/* A child of the process that created it has none of its workers. */
static inline bool pin_runtime_is_foreign(const struct pinion_runtime *runtime)
{
	return PIN_UNLIKELY(runtime->forked != pin_forked_now());
}

/* The calling worker, if it is one of this runtime's, else NULL. */
static inline struct pin_worker *pin_runtime_own_worker(const struct pinion_runtime *runtime)
{
	struct pin_worker *worker = pin_worker_current();

	return worker != NULL && worker->shared == &runtime->shared ? worker : NULL;
}

/* The same, if the thread is one of its workers', in a hook too. */
static inline struct pin_worker *pin_runtime_own_thread(const struct pinion_runtime *runtime)
{
	struct pin_worker *worker = pin_worker_of_thread();

	return worker != NULL && worker->shared == &runtime->shared ? worker : NULL;
}

/* ---- entry ---- */

/*
 * Queues tasks that room was admitted for, apart by their lanes, and wakes
 * workers for them; from outside the runtime's workers.
 */
void pin_entry_push_lanes(
	struct pin_shared *shared, struct pinion_task *const *tasks, uint32_t count);

/* Its hook; for a runtime that is NULL a log that drops messages. */
const struct pin_log *pin_runtime_log(const struct pinion_runtime *runtime);

const struct pin_host *pin_runtime_host(const struct pinion_runtime *runtime);

/*
 * A place for one task, before there is one: afterwards the task cannot be
 * refused. Exactly one of the other two follows, on the same thread. Any
 * thread; while an outside one holds a place, a drain waits for it.
 * -ESHUTDOWN, as pinion_task_spawn().
 */
int pin_runtime_reserve(struct pinion_runtime *runtime);
void pin_runtime_spawn_reserved(struct pinion_runtime *runtime, struct pinion_task *task);
void pin_runtime_undo(struct pinion_runtime *runtime);

/*
 * The same three, for a task of `lane` that is bounded as spawns are: it takes
 * one of the lane's places. -EAGAIN: from outside, while `injector_tasks` wait
 * in that lane; counted.
 */
int pin_runtime_reserve_room(struct pinion_runtime *runtime, enum pinion_lane lane);
void pin_runtime_spawn_in_room(struct pinion_runtime *runtime, struct pinion_task *task);
void pin_runtime_undo_room(struct pinion_runtime *runtime, enum pinion_lane lane);

/*
 * Where those outside wait for room in a lane, with a demand of 1. A waiter's
 * value has PIN_ROOM_ANSWER: 0, then it is as after pin_runtime_reserve_room(),
 * or -ESHUTDOWN. Not for the runtime's own workers, who have room always.
 */
struct pin_waiters *pin_runtime_room(struct pinion_runtime *runtime, enum pinion_lane lane);

/* Whether the caller is one of its workers, in a task. */
bool pin_runtime_is_own(const struct pinion_runtime *runtime);

/*
 * Begins a wait on the calling worker, which has to be one of the runtime's.
 * -EPERM, -ECHILD, or as pin_wait_begin().
 */
int pin_runtime_await(
	struct pinion_runtime *runtime, struct pinion_wait *wait, const struct pin_wait_aim *aim);

/*
 * pin_waiters_wait() for an object that was set up with `runtime`, which may be
 * NULL. -EDEADLK on a worker thread of any runtime, unless it can be had at
 * once; -ECHILD.
 */
int pin_runtime_wait(const struct pinion_runtime *runtime, struct pin_waiters *waiters,
	struct pin_waiter *waiter, uint64_t deadline_ns);

/* Size of its large buffers. */
uint32_t pin_runtime_buffer_bytes(const struct pinion_runtime *runtime);

#endif
