/* SPDX-License-Identifier: MIT */
/*
 * The parts of a worker that have no header of their own, a section each for
 * its file: thread.c, arena_setup.c, loop.c, park.c, steal.c, hooks.c, fault.c,
 * buffers.c, extra_rings.c, file_close.c, retire.c.
 */
#ifndef PIN_WORKER_WORKER_H
#define PIN_WORKER_WORKER_H

#include "runtime/host/cgroup.h"
#include "runtime/worker/state.h"

#include <string.h>

/* ---- the thread ---- */

/*
 * A worker and the step it repeats.
 *
 * A worker owns everything it touches on the hot path: queue, ring, arena,
 * counters. Others reach it in three ways: they put tasks into its inbox, they
 * steal from its queue, they end its sleep. Its loop is pin_worker_step() and
 * nothing else; threads, tests and the simulator all call that.
 *
 * One step runs up to a budget of tasks, then submits and reaps the ring; when
 * neither found anything it sleeps, by the protocol of queue/parker.h. A task
 * comes from the first of these that has one:
 *
 *     injector    every N-th time and at least every millisecond
 *                 (policy/queue_interval.h)
 *     LIFO slot   what this worker spawned last; three in a row at most
 *     deque       its own queue, in turns with
 *     ready       completions and what else must run here; never shared
 *     inbox       from others, for this worker
 *     injector    from outside, for any worker
 *     others'     the older half of another worker's deque (steal.c)
 *
 * Where there are lanes, tasks of ended urgent requests come before all these
 * (next_task.c).
 */

/* In a forked child: the thread that lives on is no worker there. */
void pin_worker_forget(void);

/* Before its thread starts; index, place and shared are set. -ENOMEM. */
int pin_worker_init(struct pin_worker *worker);

/* Thread entry: sets itself up, counts itself started, steps until the end. */
void *pin_worker_main(void *worker);

/*
 * After its thread was joined, which had left: ready for another. Counters,
 * arena and queues stay.
 */
void pin_worker_reset(struct pin_worker *worker);

/* Frees what init and main set up, after its thread was joined. */
void pin_worker_fini(struct pin_worker *worker);

/* ---- binding to CPUs ---- */

/*
 * Keeps each worker on the CPUs that it was bound to.
 *
 * When the last CPU a thread may use goes offline, or leaves its cpuset, the
 * kernel lets the thread run on all others, and older kernels leave it so when
 * the CPU is back: the worker would run far from its memory, and share a CPU
 * with another. So each worker compares its affinity with what it was bound to,
 * ten times a second while it runs tasks, and binds itself again: one system
 * call for some 100 ms of work. A worker that sleeps does so when it next runs
 * tasks.
 *
 * The library owns the affinity of its workers: what another program sets for
 * them beyond these CPUs does not last. Fewer of the CPUs of a node are left as
 * they are. `bind_workers` none leaves all to others.
 *
 * A CPU that is still gone is tried again each time; the log says so once, and
 * once when the worker is back. All of it on the worker's own thread.
 */

/* Before the worker touches its memory, so that this is near. */
void pin_binding_start(struct pin_worker *worker);

/* Before it starts once more: it is not bound. */
void pin_binding_reset(struct pin_worker *worker);

/* Apart: between two of these are 100 ms. */
void pin_binding_look(struct pin_worker *worker);

static inline bool pin_binding_is_due(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->has_place || worker->binding.look_ns == PIN_NO_DEADLINE);
	return PIN_UNLIKELY(worker->now_ns >= worker->binding.look_ns);
}

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
 * Lowers `config->buffer_count` until all arenas fit. -ENOMEM: not even one
 * large buffer each does. Both are logged.
 */
int pin_arena_setup_shrink(
	struct pinion_config *config, const struct pin_memlimit *limit, const struct pin_log *log);

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

/* The same, later, of buffers that could not be registered: `error`. */
void pin_arena_setup_tell_unregistered(const struct pin_shared *shared, int error);

/* As far as registering goes; not what workers use. */
void pin_arena_setup_fini(struct pin_shared *shared);

/* ---- the loop ---- */

/*
 * The step a worker repeats: the one loop body that threads, the simulator and
 * the model tests all run. worker/worker.h describes it.
 */

enum pin_step {
	PIN_STEP_RAN,  /* did something, or was woken: step again */
	PIN_STEP_EXIT, /* the runtime has ended, or the worker has left */
};

enum pin_step pin_worker_step(struct pin_worker *worker);

/*
 * The rest of a step whose batch was cut short by a task that did not return:
 * others are woken, completions collected, as ever.
 */
void pin_worker_end_loop(struct pin_worker *worker);

/* As pinion_worker_should_yield(). */
bool pin_worker_should_yield(struct pin_worker *worker);

/* ---- sleeping ---- */

/*
 * A worker goes to sleep: on its futex, or in its ring if anything is in
 * flight there, until it is woken, a completion comes, or a timer is due.
 *
 * queue/parker.h [PARK-1] [PARK-2] and worker/wake.h [SEARCH-1] have the
 * protocol. A worker about to sleep may also find that the runtime has come to
 * its end [END-1]; park.c has that.
 */

/* Everything that could make this worker run; the re-check of [PARK-1]. */
bool pin_park_has_work(const struct pin_worker *worker);

/*
 * After a fence: if all that was ever admitted is over, notifies all waiters,
 * unless another worker has; true then, too. [END-1] [END-2]
 */
bool pin_park_look_for_end(struct pin_shared *shared);

/* Sleeps, or not if there is work. */
void pin_park(struct pin_worker *worker);

/* Its steps, for a worker that leaves: "leaving" below. */

/*
 * Chooses how to sleep, and makes ready for it. False: there is room in the
 * ring for requests that wait for that.
 */
bool pin_park_choose_mode(struct pin_worker *worker, enum pin_park_state *out_mode);

/* Between pin_parker_prepare() and pin_park_finish(). */
void pin_park_sleep_until(
	struct pin_worker *worker, enum pin_park_state mode, uint64_t deadline_ns);

/* Awake again, slept or not. */
void pin_park_finish(struct pin_worker *worker);

/*
 * Instead of that, by a worker that has found nothing to do and has to poll a
 * device (extra_rings.c): makes way for a moment. It is no longer relied on as
 * a searcher, or has seen what for and is one still.
 */
void pin_park_undo(struct pin_worker *worker);

/* ---- stealing ---- */

/*
 * What a worker does that has run dry: it looks into the others' queues, then
 * for a short while it spins, then it sleeps.
 *
 * How long it spins is the business of its adaptive spin (policy/spin.h), which
 * learns from what spinning catches. Where workers of a runtime share CPUs none
 * of them spins.
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
bool pin_search_is_stuck(const struct pin_worker *victim);

/* ---- running users' functions ---- */

/*
 * Which of the users' functions a worker is in, so that a message can name it
 * when it fails or does not end. The last one counts until the next is entered.
 */

enum { PIN_RUNNING_NAME_BYTES = 160 };

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

/* Its symbol if that is shown, else what addr2line(1) takes. */
void pin_running_describe(pin_fault_fn function, char out_name[PIN_RUNNING_NAME_BYTES]);

/* ---- hooks ---- */

/*
 * The configuration's hooks: what the embedder has done on each worker's own
 * thread, and when.
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
 * [END-1]. Therefore a thread in a hook counts as one from outside: what it
 * spawns passes the gate, and is refused once that is closed.
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

/* For what lands out of a hook: the thread is the worker's again. */
void pin_hooks_leave(struct pin_worker *worker);

/* before_park. */
void pin_hooks_park(struct pin_worker *worker);

/* The last on_tick, then before_stop; no task is left, none can come. */
void pin_hooks_stop(struct pin_worker *worker);

/* ---- faults ---- */

/*
 * What becomes of a task that fails, or does not return at all.
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
 * On the worker, in its guard: accounts for what it was in when it landed
 * there. Does nothing if it has not.
 */
void pin_fault_recover(struct pin_worker *worker);

/* In a cleanup: what the task that is being unwound ends with. */
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
 * While a request uses a buffer, of the worker or of a pool, it is lent to the
 * kernel: it cannot be given back until the request has ended. buffers.c has
 * the protocol.
 */

/*
 * `bytes` at most the configuration's buffer_bytes. -EAGAIN: all are out.
 * -ENOMEM: so they are, as there is no memory for the first.
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
static inline bool pin_worker_may_lend(const struct pin_shared *shared, const uint8_t *bytes)
{
	return pin_worker_is_among_arenas(shared, bytes) ||
		pin_load_relaxed_u32(&shared->has_pools) != 0;
}

/*
 * `bytes` are about to be a request's, on the thread that runs that worker's
 * requests: lends it the buffer they are in; NULL: they are in none. `own`: it
 * is one of the worker's own, which could not be lent the short way
 * (submit.c); NULL: it is none. PIN_POOL_IS_FREE: it must not be used, which
 * has been logged.
 */
enum pin_pool_lent pin_worker_lend(struct pin_worker *worker, const uint8_t *bytes,
	struct pin_entry *own, struct pin_entry **out_entry);

/*
 * The same from outside, for a request on its way to `worker`, whose buffer may
 * be given back anywhere meanwhile; false: it is free. Any thread may end it.
 */
bool pin_worker_lend_posted(
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
 * Polled transfers: those whose completions a worker asks the device for, on a
 * second ring, instead of being interrupted for them. On the worker alone:
 * where rings are shared there is none. extra_rings.c has the rules.
 */

/*
 * Sets the ring up, if it is wanted; where that fails, says so and does
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
 * Reads of NVMe namespaces by commands (io/request.h), on a wide ring of the
 * worker's, or by calls. On the worker alone. extra_rings.c has the rules.
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

/* Some are in flight on the wide ring. */
static inline bool pin_commands_is_busy(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->secondary_count > 0 || worker->wide.in_flight == 0);
	return PIN_UNLIKELY(worker->secondary_count > 0) && worker->wide.in_flight > 0;
}

/* pin_commands_poll() would find something to do. Loads only. */
static inline bool pin_commands_has_work(const struct pin_worker *worker)
{
	return pin_commands_is_busy(worker) && pin_ring_has_work(&worker->wide);
}

/*
 * Before a wait in the first ring, which a completion here then ends.
 */
static inline void pin_commands_watch(struct pin_worker *worker)
{
	if (pin_commands_is_busy(worker)) {
		PIN_DCHECK(!worker->shares_ring); /* another could take the watch's completion */
		pin_ring_watch(&worker->ring, &worker->wide);
	}
}

/* ---- closing files ---- */

/*
 * Files that a worker's ring has registered, and their end: a thread that
 * closes a file elsewhere leaves a message. file_close.c has the protocol.
 */

/*
 * On the worker, once its ring is set up: has the ring keep files, as far as
 * configuration and kernel allow.
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

/* ---- leaving ---- */

/*
 * How a worker leaves while its runtime goes on: when a thread pool becomes
 * smaller (api/internal.h). Called on the worker. retire.c has the protocol.
 */

static inline bool pin_retire_is_asked(const struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	return pin_load_acquire_u32(&worker->service) != PIN_SERVICE_IN; /* [RETIRE-2] */
}

/* By the resizer, of a worker whose thread was joined: every doorbell rang. */
static inline bool pin_retire_has_rung(const struct pin_worker *worker)
{
	uint32_t still_due =
		worker->rings_due - pin_load_acquire_u32(&worker->rung); /* [RETIRE-3] */

	PIN_DCHECK(still_due <= INT32_MAX); /* none rings that the worker has not counted */
	return still_due == 0;
}

/* Gives to others what they may run. Again and again is fine. */
void pin_retire_hand_over(struct pin_worker *worker);

/* After that. False: something is bound to it. */
bool pin_retire_try_leave(struct pin_worker *worker);

/* Until there is something for it alone. */
void pin_retire_sleep(struct pin_worker *worker);

#endif
