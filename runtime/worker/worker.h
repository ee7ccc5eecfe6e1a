/* SPDX-License-Identifier: MIT */
/*
 * The parts of a worker that have no header of their own, a section each for
 * its file: arena_setup.c, steal.c, hooks.c, fault.c, buffers.c, extra_rings.c,
 * file_close.c.
 */
#ifndef PIN_WORKER_WORKER_H
#define PIN_WORKER_WORKER_H

#include "runtime/host/cgroup.h"
#include "runtime/host/symbols.h"
#include "runtime/worker/state.h"

#include <string.h>

/* ---- arena set-up ---- */

/*
 * The workers' arenas as a whole: how large they may be, on which rings they
 * are registered, and the messages when the machine gives less than was asked.
 * All but pin_arena_setup_join() run on the creator's thread. arena_setup.c has
 * the protocol.
 */

/* Of each worker; `config` has been completed. */
size_t pin_arena_setup_arena_bytes(const struct pinion_config *config);

/*
 * Lowers `config->buffer_count` until all arenas fit beside a trace of so many
 * bytes. -ENOMEM: not even one
 * large buffer each does. Both are logged.
 */
int pin_arena_setup_shrink(struct pinion_config *config, uint64_t trace_bytes,
	const struct pin_memlimit *limit, const struct pin_log *log);

/* The same for this machine and process. */
int pin_arena_setup_fit(struct pin_shared *shared);

/* Whether arenas are to be registered for all; fixed before workers start. */
bool pin_arena_setup_is_shared(const struct pin_shared *shared);

/*
 * Registers all arenas, as far as may be. Every worker has its memory and waits
 * in pin_arena_setup_join().
 */
void pin_arena_setup_register(struct pin_shared *shared);

/* On a worker: clones the registered buffers, else registers its own arena. */
void pin_arena_setup_join(struct pin_worker *worker);

/* On a worker, in its stead: its own arena alone. */
void pin_arena_setup_register_own(struct pin_worker *worker);

/*
 * On a worker, then: its polled ring is to know what its first one knows. Where
 * the kernel does not clone, that is charged a second time.
 */
void pin_arena_setup_register_polled(struct pin_worker *worker);

/* When no worker will join any more: the ring they cloned from goes. */
void pin_arena_setup_close(struct pin_shared *shared);

/* Logs each shortage in one line. */
void pin_arena_setup_report(const struct pin_shared *shared);

/* The same, later, for buffers that could not be registered: `error`. */
void pin_arena_setup_tell_unregistered(const struct pin_shared *shared, int error);

/* As far as registering goes; not what workers use. */
void pin_arena_setup_fini(struct pin_shared *shared);

/* ---- stealing ---- */

/*
 * A worker that has run dry looks into the others' queues, then spins for a
 * short while, then sleeps.
 *
 * Its adaptive spin (policy/spin.h) decides for how long, and learns from the
 * work that spinning catches. Where workers of a runtime share CPUs none of
 * them spins.
 */

/*
 * Steals from other workers; all but the returned element are in the worker's
 * own deque. NULL: nothing found, or enough others search already.
 */
struct pin_link *pin_search_others(struct pin_worker *worker);

/*
 * Visible work in other workers' queues: to be asked before sleeping, when no
 * worker searches.
 */
bool pin_search_sees_work(const struct pin_worker *worker);

/* The same of tasks in the slots of workers that are in a long task. */
bool pin_search_sees_slot(const struct pin_worker *worker);

enum {
	/*
	 * A thief's checks of the places where others hand over or show work,
	 * for each check of all there may be: a theft is late by the time
	 * between two of them.
	 */
	PIN_SEARCH_LOOKS_TO_FULL = 4,
};

/*
 * Waits awake, if that pays. True when something came: `has_work` said so, it
 * is in the inbox or the injector, or *out_link was stolen, else NULL.
 */
bool pin_search_spin(struct pin_worker *worker, bool (*has_work)(const struct pin_worker *worker),
	struct pin_link **out_link);

/* Whether a worker has ended no task for some microseconds; another asks. */
bool pin_search_is_stalled(const struct pin_worker *victim);

/* ---- running users' functions ---- */

/*
 * Which of the users' functions a worker is in, so that a message can name it
 * when it fails or does not end. The last one counts until the next is entered.
 */

/* Any function: callbacks are named by their address alone. */
typedef void (*pin_fault_fn)(void);

/* On the worker. Relaxed: a name, nothing is ordered by it. */
static inline void pin_running_enter(struct pin_worker *worker, pin_fault_fn function)
{
	uint64_t word = 0;

	_Static_assert(sizeof(function) <= sizeof(word), "addresses fit");
	memcpy(&word, &function, sizeof(function));
	pin_store_relaxed_u64(&worker->running, word);
}

/* Any thread. */
static inline pin_fault_fn pin_running_of(const struct pin_worker *worker)
{
	uint64_t word = pin_load_relaxed_u64(&worker->running);
	pin_fault_fn function;

	memcpy(&function, &word, sizeof(function));
	return function;
}

/* Its symbol if there is one, else what addr2line(1) takes. */
void pin_running_describe(pin_fault_fn function, char out_name[PIN_SYMBOL_BYTES]);

/* ---- hooks ---- */

/*
 * The configuration's hooks: functions of the embedder, called on each worker's
 * own thread.
 *
 *     after_start   in the worker's start, before it counts itself started
 *     on_tick       before a batch of tasks, when it is due, and at the end
 *     before_park   before the worker publishes that it sleeps, so that what
 *                   the hook spawns is found by the re-check of [PARK-1]
 *     before_stop   after the last step
 *
 * The tick's time is a deadline of the worker's sleep as timers are: where no
 * tick is asked for it is PIN_NO_DEADLINE, and costs the loop one comparison.
 *
 * A hook is no task, so nothing keeps the runtime from ending while one runs
 * [END-1]. Therefore a thread in a hook counts as an outside thread: its spawns
 * pass the gate, and are refused once that is closed.
 *
 * Called on the worker.
 */

/* after_start; its error. */
int pin_hooks_start(struct pin_worker *worker);

/* on_tick, which is due. */
void pin_hooks_tick(struct pin_worker *worker);

static inline bool pin_hooks_is_tick_due(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->shared->config.on_tick != NULL || worker->tick_ns == PIN_NO_DEADLINE);
	return PIN_UNLIKELY(worker->now_ns >= worker->tick_ns);
}

/* After an unwind out of a hook: the thread is the worker's again. */
void pin_hooks_leave(struct pin_worker *worker);

/* before_park. */
void pin_hooks_park(struct pin_worker *worker);

/* The last on_tick, then before_stop; no task is left, none can come. */
void pin_hooks_stop(struct pin_worker *worker);

/* ---- faults ---- */

/*
 * Tasks that fail, or do not return at all.
 *
 * A failure is counted, logged with the job's name and its error, and kept if
 * it is the runtime's first. A task that ends by pinion_task_panic(),
 * pthread_exit() or an exception fails too: its frames are unwound up to the
 * worker's loop (host/unwind.h), which accounts for it here and goes on.
 * Whatever is owed to others when a task ends, by a group, a future, a work
 * item, is done by cleanup attributes in the frames between.
 *
 * Each task costs one store: which function the worker is in.
 *
 * Invariant: wherever users' code is called in the loop, the loop's state is in
 * the worker, not in locals of the frames between, which are lost.
 */

/* The task that `worker` is in has returned `error`. */
void pin_fault_note(struct pin_worker *worker, int error);

/*
 * On the worker, in its guard: accounts for the task that was unwound to there.
 * Does nothing if there was none.
 */
void pin_fault_recover(struct pin_worker *worker);

/* In a cleanup: the error with which the task that is being unwound ends. */
int pin_fault_error(void);

/* By the caller of a user's function in a task of the library's. */
static inline void pin_fault_name(pin_fault_fn function)
{
	struct pin_worker *worker = pin_worker_current();

	if (worker != NULL) {
		pin_running_enter(worker, function);
	}
}

/* ---- buffers ---- */

/*
 * Buffers of a worker, for code that runs on it.
 *
 * Buffers are the worker's own, so taking and giving back one is a few plain
 * instructions. A task that finds none waits in a queue, in order, and gets the
 * next returned buffer handed over.
 *
 * While a request uses a buffer, of the worker or of a pool, the request has
 * borrowed it: no thread can give it back until the request has ended.
 * buffers.c has the protocol.
 */

/*
 * `bytes` at most the configuration's buffer_bytes. -EAGAIN: all are out.
 * -ENOMEM: none is out, but there is no memory for the first.
 */
int pin_worker_buffer_acquire(
	struct pin_worker *worker, size_t bytes, struct pinion_buffer *out_buffer);

/*
 * As above, but when all are out `waiter` joins the queue: the first buffer
 * released while it is at the front is its own, and its task runs. -EAGAIN: it
 * waits; it must stay in place.
 */
int pin_worker_buffer_await(
	struct pin_worker *worker, size_t bytes, struct pin_buffer_waiter *waiter);

/*
 * Gives a buffer to the first in the queue for its size, or back to the pool.
 */
void pin_worker_buffer_release(struct pin_worker *worker, const struct pinion_buffer *buffer);

/* Whether it may be in an arena; always while that is not known. */
static inline bool pin_worker_is_among_arenas(const struct pin_shared *shared, const uint8_t *bytes)
{
	uint64_t beyond = pin_load_acquire_u64(&shared->arenas_beyond); /* [IO-4] */
	uint64_t start = pin_load_relaxed_u64(&shared->arenas_start);

	return (uintptr_t)bytes - start <= UINT64_MAX - beyond;
}

/* Whether memory that is in no buffer of its worker's own may be in another. */
static inline bool pin_worker_may_borrow(const struct pin_shared *shared, const uint8_t *bytes)
{
	return pin_worker_is_among_arenas(shared, bytes) ||
		pin_load_relaxed_u32(&shared->has_pools) != 0;
}

/*
 * `bytes` are about to be a request's, on the thread that runs that worker's
 * requests: borrows the buffer they are in; NULL: they are in none. `own`: it
 * is one of the worker's own, which could not be borrowed the short way
 * (submit.c); NULL: it is none. PIN_POOL_IS_FREE: it must not be used, which
 * has been logged.
 */
enum pin_pool_borrowed pin_worker_borrow(struct pin_worker *worker, const uint8_t *bytes,
	struct pin_entry *own, struct pin_entry **out_entry);

/*
 * The same from outside, for a request on its way to `worker`, whose buffer may
 * be given back anywhere meanwhile; false: it is free. Any thread may end it.
 */
bool pin_worker_borrow_posted(
	struct pin_worker *worker, const uint8_t *bytes, struct pin_entry **out_entry);

/* All workers have their buffers, for good. */
void pin_worker_buffers_publish(struct pin_shared *shared);

/* The worker has nothing to do: buffers of other nodes go home. */
void pin_worker_send_home(struct pin_worker *worker);

/*
 * Makes a complete pool known to the workers, and the waiters for its buffers
 * to a stop; or -EMFILE. Under `pools_lock`, both.
 */
int pin_worker_pools_add(
	struct pin_shared *shared, struct pin_pool *pool, struct pin_waiters *waiters);
/* Returns when no thread searches it any more. */
void pin_worker_pools_remove(struct pin_shared *shared, const struct pin_pool *pool);

static inline bool pin_worker_pool_has(const struct pin_pool *pool, const struct pin_entry *entry)
{
	return entry >= pool->entries && entry < pool->entries + pool->buffer_count;
}

/* Whether that buffer, or NULL, is the worker's own. */
static inline bool pin_worker_owns_entry(
	const struct pin_worker *worker, const struct pin_entry *entry)
{
	return entry != NULL &&
		(pin_worker_pool_has(&worker->buffers, entry) ||
			pin_worker_pool_has(&worker->small_buffers, entry));
}

/* ---- extra rings ---- */

/*
 * Polled transfers: the worker asks the device for their completions, on a
 * second ring, instead of being interrupted for them. On the worker alone:
 * where rings are shared there is none. extra_rings.c has the rules.
 */

/*
 * Sets the ring up, if it is wanted; where that fails, logs it and goes on
 * without. The worker's first ring is there.
 */
void pin_polled_start(struct pin_worker *worker);

/* The last call on the worker's thread. */
void pin_polled_end(struct pin_worker *worker);

/* True: it is in flight, and in that list. False: it is for the first ring. */
bool pin_polled_submit(struct pin_worker *worker, struct pinion_request *request);

/*
 * Submits gathered transfers, and polls for completed ones; returns how many
 * those were. Never waits.
 */
uint32_t pin_polled_poll(struct pin_worker *worker);

/* Something is in flight: the worker has to ask, and must not sleep. */
static inline bool pin_polled_is_busy(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->has_polled || worker->polled.in_flight == 0);
	return worker->polled.in_flight > 0;
}

/* ---- extra rings: commands ---- */

/*
 * Reads of NVMe namespaces by commands (io/request.h), on the worker's ring of
 * 128-byte entries, or by calls. On the worker alone. extra_rings.c has the
 * rules.
 */

/* An admitted request, in no list: begins it, or is done with it. */
void pin_commands_begin(struct pin_worker *worker, struct pinion_request *request);

/*
 * Submits gathered commands, and takes in completed ones; returns how many
 * those were. Never waits.
 */
uint32_t pin_commands_poll(struct pin_worker *worker);

/* The last call on the worker's thread; nothing is in flight. */
void pin_commands_end(struct pin_worker *worker);

/* Some are in flight on the command ring. */
static inline bool pin_commands_is_busy(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->secondary_count > 0 || worker->sqe128.in_flight == 0);
	return PIN_UNLIKELY(worker->secondary_count > 0) && worker->sqe128.in_flight > 0;
}

/* pin_commands_poll() would find something to do. Loads only. */
static inline bool pin_commands_has_work(const struct pin_worker *worker)
{
	return pin_commands_is_busy(worker) && pin_ring_has_work(&worker->sqe128);
}

/*
 * Before a wait in the first ring, which a completion here then ends.
 */
static inline void pin_commands_watch(struct pin_worker *worker)
{
	if (pin_commands_is_busy(worker)) {
		PIN_DCHECK(!worker->shares_ring); /* another could take the watch's completion */
		pin_ring_watch(&worker->ring, &worker->sqe128);
	}
}

/* ---- closing files ---- */

/*
 * Files that a worker's ring has registered, and their end: a thread that
 * closes a file elsewhere leaves a message. file_close.c has the protocol.
 */

/*
 * On the worker, once its ring is set up: lets the ring register files, as far
 * as configuration and kernel allow.
 */
void pin_files_start(struct pin_worker *worker);

static inline bool pin_files_is_message(const struct pinion_task *task)
{
	return task->private_kind == PIN_TASK_FILES;
}

/* Whose message it is. */
static inline struct pin_worker *pin_files_owner_of(struct pinion_task *message)
{
	PIN_DCHECK(pin_task_kind(message) == PIN_TASK_FILES);
	return PIN_CONTAINER_OF(message, struct pin_worker, files_message);
}

/* On the worker, from its inbox; it may be that of a worker that has left. */
void pin_files_take(struct pin_worker *worker, struct pinion_task *message);

/* The worker's last check of its ring. It gets no messages from then on. */
void pin_files_end(struct pin_worker *worker);

#endif
