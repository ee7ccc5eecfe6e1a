/* SPDX-License-Identifier: MIT */
/*
 * Parts of an admission: the slots (`struct pin_permits`), and the waiters, a
 * queue for each lane, all under one lock. The ways in are in
 * admission_admit.c, a job's turn and its end in admission_job.c.
 *
 *     spawn   a slot, without the lock unless any waits
 *             a slot in the runtime for each job: the last that can fail
 *             the tasks into the runtime
 *     end     the slot given back, without the lock unless any waits
 *     wait    under the lock: slots looked at and watched in one step, queue
 *
 * A thread that gives back under the lock serves all lanes, higher ones first.
 * A lower lane takes nothing while the oldest of a higher one waits for the
 * total alone: small jobs would keep many from ever being admitted at once.
 * When that waiter gives up, the next end of a job serves the others; there is
 * one to come, since an empty pool has room for any job that is not refused for
 * good.
 *
 * Limits may change: the thread that sets them first ends each wait for more
 * jobs than there can be room for, wherever it is in its queue, then serves the
 * others. A wait that was checked by the limits before, and queues after that
 * step, ends when it comes first.
 *
 * With PINION_ADMISSION_EVICT jobs that have not begun are in a list of their
 * lane, under the lock. The thread that takes a job off it decides on it: the
 * worker runs it, or another job has its slot from then on: one for one, so
 * where limits were lowered evicting neither adds to the excess nor works that
 * off. Its task is still in the runtime's queue then, and goes to `cancel` when
 * its turn comes. Such tasks are not counted as slots; there are at most as
 * many as the total.
 *
 * An end that is the last of a closed admission is made under the lock, which a
 * drain takes as well: it may be freed then. Without the lock a given slot is
 * the last touch.
 */
#ifndef PIN_TASK_ADMISSION_H
#define PIN_TASK_ADMISSION_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/worker/state.h"
#include "runtime/worker/wait.h"

#include <pinion/admission.h>

/* ---- slots ---- */

/*
 * Slots: how many of each lane are in, and how many may be.
 *
 * Counting first and adding later lets as many slip in between as there are
 * threads. Here all counts are one word, 20 bits for each lane; the total is
 * their sum, so a slot has its lane's limit and that of all checked, and is
 * taken, in one step. Several slots, in any lanes, are one step too.
 *
 * The word has two flags besides:
 *
 *     CLOSED   no job comes in any more
 *     WATCHED  a waiter is there; a leaving job has to serve
 *
 * A new waiter finds the slots full and sets WATCHED in that same step. So a
 * return of a slot either comes before it, and the waiter sees the slot, or
 * comes after it, and the leaving thread sees the flag: no fence is needed on
 * either side. With either flag set, slots are given back only under a lock of
 * the caller's, which also protects its queue of those who wait, and taken only
 * under it while WATCHED is. So a thread that leaves without the lock has
 * touched the struct for the last time.
 *
 * Invariants: 1. no take brings a count above its limit, and no exchange raises
 * a total that is above it already; 2. while WATCHED is
 * set only the holder of the lock changes the counts; 3. CLOSED is never taken
 * away.
 *
 * Progress: lock-free. Any thread; the functions of the second group with the
 * lock.
 *
 * [PERMITS-1] give (RMW, release half) -> take (CAS, acquire half): an admitted
 * job sees the work of those that made room for it.
 */

enum {
	PIN_PERMITS_LANES = 3,
	PIN_PERMITS_FLAG_BITS = 2,
	PIN_PERMITS_LANE_BITS = 20,
	PIN_PERMITS_MAX = (1 << PIN_PERMITS_LANE_BITS) - 1,
};

_Static_assert(PIN_PERMITS_FLAG_BITS + PIN_PERMITS_LANES * PIN_PERMITS_LANE_BITS <= 64, "one word");

enum pin_permits_answer {
	PIN_PERMITS_ROOM,
	PIN_PERMITS_LANE_FULL,
	PIN_PERMITS_FULL, /* the total */
	PIN_PERMITS_CLOSED,
	PIN_PERMITS_WATCHED,  /* with the lock only */
	PIN_PERMITS_TOO_MANY, /* there will be no room, unless limits are raised */
};

struct pin_permits {
	struct pin_atomic_u64 word; /* [W:any R:any] */
	/* [W:holder of the lock R:any] relaxed: see pin_permits_set_max() */
	struct pin_atomic_u32 max[PIN_PERMITS_LANES];
	struct pin_atomic_u32 max_total;
};

void pin_permits_init(struct pin_permits *permits, const uint32_t *max, uint32_t max_total);

static inline uint32_t pin_permits_max(const struct pin_permits *permits, uint32_t lane)
{
	PIN_DCHECK(lane < PIN_PERMITS_LANES);
	return pin_load_relaxed_u32(&permits->max[lane]);
}

static inline uint32_t pin_permits_max_total(const struct pin_permits *permits)
{
	return pin_load_relaxed_u32(&permits->max_total);
}

/* A number of slots in a lane, as the amount of the functions below. */
static inline uint64_t pin_permits_amount(uint32_t lane, uint32_t count)
{
	PIN_DCHECK(lane < PIN_PERMITS_LANES && count <= PIN_PERMITS_MAX);
	return (uint64_t)count << (PIN_PERMITS_FLAG_BITS + lane * PIN_PERMITS_LANE_BITS);
}

/* Of an amount, or of the word. */
static inline uint32_t pin_permits_count(uint64_t word, uint32_t lane)
{
	PIN_DCHECK(lane < PIN_PERMITS_LANES);
	return (uint32_t)(word >> (PIN_PERMITS_FLAG_BITS + lane * PIN_PERMITS_LANE_BITS)) &
		PIN_PERMITS_MAX;
}

static inline uint32_t pin_permits_total(uint64_t word)
{
	return pin_permits_count(word, 0) + pin_permits_count(word, 1) + pin_permits_count(word, 2);
}

/* True: no lane of `word` has less, so a subtraction cannot borrow. */
static inline bool pin_permits_hold(uint64_t word, uint64_t amount)
{
	return pin_permits_count(word, 0) >= pin_permits_count(amount, 0) &&
		pin_permits_count(word, 1) >= pin_permits_count(amount, 1) &&
		pin_permits_count(word, 2) >= pin_permits_count(amount, 2);
}

/*
 * Whether there is room for `amount` besides what `word` holds; besides a word
 * of 0, whether there can ever be.
 */
enum pin_permits_answer pin_permits_fit(
	const struct pin_permits *permits, uint64_t word, uint64_t amount);

/* The word, for counts that have to be of one moment. */
uint64_t pin_permits_word(const struct pin_permits *permits);

/* Takes slots, or says why not; *out_word is the word that decided it. */
enum pin_permits_answer pin_permits_take(
	struct pin_permits *permits, uint64_t amount, uint64_t *out_word);

/* Gives slots back. False: nothing was done, it takes the lock. */
bool pin_permits_give(struct pin_permits *permits, uint64_t amount);

/* ---- with the lock ---- */

/*
 * Other limits. A count above its new one stays until slots are given back. A
 * take that began before this returned may go by those before.
 */
void pin_permits_set_max(struct pin_permits *permits, const uint32_t *max, uint32_t max_total);

/* As pin_permits_take(), also past others who wait; watched when it fails. */
enum pin_permits_answer pin_permits_take_or_watch(
	struct pin_permits *permits, uint64_t amount, uint64_t *out_word);

/*
 * Takes `amount` in place of `given`, while it is watched. Where the total is
 * above its limit, as that was lowered, both are as many.
 */
void pin_permits_exchange(struct pin_permits *permits, uint64_t given, uint64_t amount);

void pin_permits_give_locked(struct pin_permits *permits, uint64_t amount);

/* No waiter is left. */
void pin_permits_unwatch(struct pin_permits *permits);

void pin_permits_close(struct pin_permits *permits);
bool pin_permits_is_closed(const struct pin_permits *permits);

/* ---- admissions ---- */

enum pin_job_state {
	PIN_JOB_UNLISTED, /* cannot be evicted */
	PIN_JOB_LISTED,	  /* by its worker to UNLISTED, by another job to EVICTED */
	PIN_JOB_EVICTED,
};

/*
 * [JOB-1] the canceller adds CANCEL, the worker adds BEGUN, each by one
 * read-modify-write: of the two the later sees the other, so a job whose cancel
 * found it not begun does not begin.
 */
enum pin_job_asked {
	PIN_JOB_BEGUN = 1,  /* by its worker */
	PIN_JOB_CANCEL = 2, /* by its canceller */
};

/*
 * A job that goes on is ended by pinion_job_end(), perhaps before its `run` has
 * returned; an unwound job, by the unwind. As the struct may be gone when it is
 * entered, or has ended, the two meet in a word of the worker (`job`): whose
 * `run` it is in, or was in last. Only where the word says that a job which
 * goes on has not ended is the struct touched again, to say so.
 *
 *     pinion_job_end()                   worker, after `run`
 *     a  WENT_ON: end it                    went on:
 *     b  word: job -> 0, if it is that:  1  word: job -> busy, else done
 *        end it                          2  WENT_ON := 1
 *     c  while busy: yield, again        3  word := 0
 *     d  WENT_ON: end it, else it is        unwound:
 *        over                            4  word: job -> 0, else done; end it
 *
 * [JOB-2] b against 1 and 4: of two read-modify-writes one is first. If that is
 * b, the worker is done; else the ending thread loads 3 or 4, or a later value
 * (acquire), and knows in d which of them it was. 2 (release) is the worker's
 * last touch of the struct -> a (acquire), whose caller may use it anew.
 */

/* In the word, beside the job. */
#define PIN_JOB_BUSY UINT64_C(1)

/* What `private_` of a job holds. */
struct pin_job_entry {
	struct pin_admission *admission; /* [const] from its spawn */
	struct pin_atomic_u64 *place;	 /* [const] from its beginning: the worker's word */
	struct pinion_job *chained;	 /* [own] the spawning thread's: the next of its batch */
	uint64_t began_ns;		 /* [own] the worker's, then of the thread that ends it */
	struct pin_atomic_u64 progress;	 /* [W:the job R:any] */
	struct pin_atomic_u32 asked;	 /* [W:any R:any] of enum pin_job_asked */
	struct pin_atomic_u32 went_on;	 /* [W:its worker R:the thread that ends it] */
	struct pin_job_entry *older;	 /* [lock:waiters] of its lane's list */
	struct pin_job_entry *newer;
	uint32_t lane;	/* [const] from its spawn */
	uint32_t state; /* [lock:waiters] enum pin_job_state */
};

/* What a served waiter finds in its value. */
enum {
	PIN_ADMISSION_ANSWER, /* enum pin_permits_answer */
	PIN_ADMISSION_WORD,   /* of the slots, by which it was given */
};

struct pin_admission_lane {
	struct pin_waiters waiters;   /* of the first lane: the lock of all */
	struct pin_job_entry *newest; /* [lock:waiters] of those that have not begun */
	uint32_t index;		      /* [const] */
	uint32_t listed_count;	      /* [lock:waiters] */
};

struct pin_admission {
	/* [W:any R:any] by each job */
	struct pin_permits permits;
	struct pin_atomic_u64 job_ns;  /* smoothed; 0: not known */
	struct pin_atomic_u32 running; /* jobs begun and not ended */
	/* [const] */
	uint32_t flags;
	struct pinion_runtime *runtime;
	/* [W:any R:any] rarely */
	struct pin_atomic_u64 refused[PINION_LANES];
	struct pin_atomic_u64 evicted[PINION_LANES];
	struct pin_atomic_u64 failed;
	struct pin_atomic_u64 cancelled;
	struct pin_atomic_u64 timed_out;
	uint32_t evicted_queued;    /* [lock:waiters] tasks of evicted jobs, in queues */
	struct pin_waiters drained; /* threads that wait until no job is in */
	struct pin_admission_lane lanes[PINION_LANES];
};

_Static_assert(sizeof(struct pin_admission) <= sizeof(struct pinion_admission), "fits");
_Static_assert(sizeof(struct pinion_admission) == 512, "released size");
_Static_assert(sizeof(struct pin_job_entry) <= sizeof(((struct pinion_job *)0)->private_), "fits");
_Static_assert(sizeof(struct pinion_job) == 128, "released size");
_Static_assert(sizeof(struct pinion_full) == 24, "released size");
_Static_assert(sizeof(struct pinion_admission_limits) == 32, "released size");
_Static_assert(PINION_LANES == (int)PIN_PERMITS_LANES, "a count for each");
_Static_assert((int)PINION_ADMISSION_TASKS == (int)PIN_PERMITS_MAX, "the counts hold it");

static inline struct pin_admission *pin_admission_of(struct pinion_admission *admission)
{
	return (struct pin_admission *)(void *)admission->private_;
}

static inline struct pin_job_entry *pin_job_entry_of(struct pinion_job *job)
{
	return (struct pin_job_entry *)(void *)job->private_;
}

static inline bool pin_admission_evicts(const struct pin_admission *self)
{
	return (self->flags & PINION_ADMISSION_EVICT) != 0;
}

/* Whether tasks of evicted jobs are queued still; under the lock. */
static inline bool pin_admission_has_evicted(const struct pin_admission *self)
{
	PIN_DCHECK(self->evicted_queued == 0 || pin_admission_evicts(self));
	return self->evicted_queued > 0;
}

/* One lock for all of it. */
void pin_admission_lock(struct pin_admission *self);
void pin_admission_unlock(struct pin_admission *self);

/* Serves those who wait. It may be gone afterwards, if it is closed. */
void pin_admission_serve_unlock(struct pin_admission *self);

/*
 * Gives slots back, without the lock; the admission may be gone afterwards,
 * too.
 */
void pin_admission_leave(struct pin_admission *self, uint64_t amount);

/* Onto the list of those that may be evicted, and off it; under the lock. */
void pin_admission_enlist(struct pin_admission *self, struct pin_job_entry *entry);
void pin_admission_delist(
	struct pin_admission *self, struct pin_job_entry *entry, enum pin_job_state state);

/* ---- the log ---- */

/*
 * Logs a job at level debug, where `job_log` of the configuration asks for it:
 * when it is handed over, begins, and has ended. Of jobs of admissions and of
 * calls (pinion_call_run); plain tasks are too many, and pay nothing.
 *
 * Source: the seed's four log events, in its words; the fourth, a warning of a
 * lane that is deep, is pin_lane_warn()'s.
 */

static inline bool pin_job_log_is_on(const struct pin_shared *shared)
{
	return PIN_UNLIKELY(shared->tuning.job_log != 0);
}

/* The lines; only where it is on. */
void pin_job_log_say_submitted(const struct pin_shared *shared, enum pinion_lane lane);
void pin_job_log_say_begun(const struct pin_shared *shared);
void pin_job_log_say_ended(const struct pin_shared *shared, uint64_t began_ns, int result);

/* Before the job is given away. Any thread. */
static inline void pin_job_log_submitted(const struct pin_shared *shared, enum pinion_lane lane)
{
	if (pin_job_log_is_on(shared)) {
		pin_job_log_say_submitted(shared, lane);
	}
}

/* On its worker. */
static inline void pin_job_log_begun(const struct pin_shared *shared)
{
	if (pin_job_log_is_on(shared)) {
		pin_job_log_say_begun(shared);
	}
}

/* Any thread. */
static inline void pin_job_log_ended(const struct pin_shared *shared, uint64_t began_ns, int result)
{
	if (pin_job_log_is_on(shared)) {
		pin_job_log_say_ended(shared, began_ns, result);
	}
}

/* ---- jobs ---- */

/*
 * A job that is in: from the turn of its task to the slot given back.
 *
 * The runtime knows the job by its task, whose `run` and `cancel` are the two
 * functions below. They claim the job first: a job evicted meanwhile has no
 * slot any more and goes to its `cancel`. A claimed job is run or cancelled,
 * timed and counted, and its slot is given back last, since the admission may
 * be gone then.
 */

/* Its task's callbacks. */
int pin_job_run(struct pinion_task *task);
void pin_job_cancel(struct pinion_task *task);

#endif
