/* SPDX-License-Identifier: MIT */
/*
 * Admission: a limit to how many jobs a runtime is given at once, by lane and
 * in all, that reports when it is full. A runtime with an admission in front is
 * a read pool; several runtimes side by side are several pools, and several
 * admissions may also share a runtime.
 */
#ifndef PINION_ADMISSION_H
#define PINION_ADMISSION_H

#include <pinion/lane.h>
#include <pinion/wait.h>

PINION_BEGIN_DECLS

enum {
	PINION_ADMISSION_TASKS = (1 << 20) - 1, /* the highest limit of a lane */
};

enum pinion_admission_flags {
	/*
	 * Where the total is reached, a job takes the slot of a job of a lower
	 * lane that has not begun: of the lowest lane that has one, the newest.
	 * It takes that slot alone, even where limits were lowered.
	 */
	PINION_ADMISSION_EVICT = 1,
};

/*
 * Shape: zeroed, all limits are those of the runtime's tuning (`max_tasks_high`
 * and its kin); all fields are inputs.
 * Units: jobs that are in, from admission to their end.
 * Since: 0.1
 */
struct pinion_admission_limits {
	uint32_t max_tasks[PINION_LANES]; /* 0: the tuning's */
	uint32_t max_tasks_total;	  /* of all lanes; 0: the tuning's */
	uint32_t flags;			  /* enum pinion_admission_flags */
	uint32_t reserved[3];		  /* 0 */
};

/*
 * Shape: 512 bytes, embeddable; pinion_admission_init() sets all of it.
 * Owns: the caller's memory. It must stay in place until
 * pinion_admission_drain() has returned 0; the library does not touch it from
 * then on. The runtime is destroyed after that.
 * Since: 0.1
 */
struct pinion_admission {
	uint64_t private_[64];
};

/* Returned by a `run` whose job has not ended. */
enum {
	PINION_JOB_GOES_ON = 1,
};

struct pinion_job;

/*
 * The work of a job, as pinion_task_fn: 0 or a negative errno ends the job, and
 * the struct is the caller's again as soon as this is entered.
 * PINION_JOB_GOES_ON: an operation that it has begun (a read, a wait, a task)
 * will call pinion_job_end(); until then the job keeps its slot and the struct
 * has to stay.
 * Since: 0.1
 */
typedef int (*pinion_job_fn)(struct pinion_job *job);

/*
 * Called instead of `run`, when the job's turn would have been. `reason` is
 * -EAGAIN: another job was given its slot (PINION_ADMISSION_EVICT); the job may
 * be tried again. -ECANCELED: the runtime was stopped, or pinion_job_cancel()
 * was called. -ETIME: `deadline_ns` had passed.
 *
 * Context: a worker. The struct is the caller's again.
 * Since: 0.1
 */
typedef void (*pinion_job_cancel_fn)(struct pinion_job *job, int reason);

/*
 * Shape: 128 bytes, embeddable; set `run`, `cancel`, `task.flags` and
 * `deadline_ns`, zero the rest. The flags name its lane, as for any task; with
 * PINION_TASK_MANDATORY the job is neither evicted nor cancelled.
 * Owns: the caller's memory, to stay in place until `run` or `cancel` is
 * entered; exactly one of them is.
 * Since: 0.1
 */
struct pinion_job {
	struct pinion_task task; /* the library's, but for `flags` */
	pinion_job_fn run;
	pinion_job_cancel_fn cancel; /* may be NULL */
	/*
	 * On the clock of pinion_clock_now_ns(): a job that has not begun by
	 * then is cancelled when its turn comes; a job that has begun can ask
	 * pinion_job_should_stop(). 0: none.
	 */
	uint64_t deadline_ns;
	uint64_t private_[9];
};

/*
 * Initialises an empty admission in front of `runtime`. `limits` is copied;
 * NULL: those of the runtime's tuning, which are the highest unless set.
 *
 * Context: any thread, while no other call uses the admission.
 * Errors: -EINVAL: no runtime; a limit beyond PINION_ADMISSION_TASKS (of all:
 * PINION_LANES times that); unknown flags; `reserved` is not 0.
 * Source: TiKV's read pool, which counts first and adds later, and so
 * overshoots.
 * Since: 0.1
 */
PINION_API int pinion_admission_init(struct pinion_admission *admission,
	struct pinion_runtime *runtime, const struct pinion_admission_limits *limits);

/*
 * Sets other limits while the admission is in use, for instance after
 * pinion_thread_pool_resize(). NULL: those of the runtime's tuning. Jobs that
 * are in stay. Where they are more than the new limits allow, no job comes in
 * until enough have ended, except with PINION_ADMISSION_EVICT in the slot of
 * another. Waiting jobs come in as far as there is room now; a wait for more
 * jobs than there ever is room for ends with -EINVAL at once, also while
 * earlier waits are under way. A spawn that began before this call returns may
 * still use the old limits.
 *
 * Context: any thread, as pinion_admission_spawn().
 * Errors: -EINVAL: as pinion_admission_init(), or flags other than at the
 * initialisation; nothing has changed. -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_admission_set_limits(
	struct pinion_admission *admission, const struct pinion_admission_limits *limits);

/*
 * Admits `count` jobs and spawns them, in order, all of them or none. No limit
 * is ever exceeded, however many threads do the same. A job keeps its slot
 * until it ends; tasks that it spawns need none.
 *
 * Owns: on success the jobs are the runtime's until they are entered; on
 * failure they stay with the caller. *out_full, unless NULL, is written with
 * -EAGAIN and otherwise not touched.
 * Context: any thread, tasks too; never blocks or allocates. With
 * PINION_ADMISSION_EVICT, and while a wait is under way, it may wait for
 * another thread that uses the same admission at that moment. 0 jobs are fine.
 * Errors: -EAGAIN: full, or others wait already. -EINVAL: a job has no `run`,
 * or unknown flags; more jobs than there ever is room for. -EBUSY: a job waits
 * for its turn already, or is among the jobs twice. -ESHUTDOWN: closed, or as
 * pinion_task_spawn(). -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_admission_spawn(struct pinion_admission *admission,
	struct pinion_job *const *jobs, uint32_t count, struct pinion_full *out_full);

/*
 * Admits and spawns jobs, and sleeps until there is room, at most until
 * `deadline_ns`, as in struct pinion_wait. Waits for one lane are served in the
 * order in which they began, so that several small ones wait until a large one
 * before them is served; higher lanes first.
 *
 * Context: as pinion_future_wait(); never allocates.
 * Errors: as pinion_admission_spawn(), except -EAGAIN; -EINVAL also when limits
 * are lowered so far meanwhile. -ETIME: nothing was spawned. -EDEADLK: a worker
 * thread of any runtime, and there is no room.
 * Since: 0.1
 */
PINION_API int pinion_admission_spawn_wait(struct pinion_admission *admission,
	struct pinion_job *const *jobs, uint32_t count, uint64_t deadline_ns);

/*
 * Admits and spawns jobs, and waits for room in a task: `wait->task` runs when
 * the jobs are spawned, with a result of 0; with any other result none of them
 * is. Besides the results of pinion_wait(3) there are -ESHUTDOWN: the admission
 * was closed, or the runtime was, meanwhile; and -EINVAL: limits were lowered
 * too far.
 *
 * Owns: `jobs` is read before this returns; the jobs stay in place.
 * Context: a task on a worker of `runtime`, which need not be the admission's.
 * Errors: -EPERM: not on such a worker. -EBUSY: as pinion_admission_spawn(), or
 * the wait is under way already. -EINVAL: as pinion_admission_spawn(), or no
 * jobs; no `run`, flags, or `reserved` of the wait is not 0. -ESHUTDOWN,
 * -ECHILD: as pinion_task_spawn() on `runtime`.
 * Since: 0.1
 */
PINION_API int pinion_admission_spawn_async(struct pinion_runtime *runtime,
	struct pinion_admission *admission, struct pinion_job *const *jobs, uint32_t count,
	struct pinion_wait *wait);

/*
 * Ends a job whose `run` returned PINION_JOB_GOES_ON, or is about to, and gives
 * its slot back. `result`: 0 or a negative errno, which counts as a failure.
 * The struct is the caller's again. A job whose `run` has panicked, or ended
 * its thread, has ended with that: then this call does nothing, so the
 * operation that it had begun need not know. The struct and the runtime have to
 * be in place.
 *
 * Context: any thread, once; as pinion_admission_spawn(). At most one system
 * call for each wait that is served.
 * Since: 0.1
 */
PINION_API void pinion_job_end(struct pinion_job *job, int result);

/*
 * Cancels a job that was spawned. 0: it has not begun, and goes to its `cancel`
 * when its turn would have been; it keeps its slot until then. -EINPROGRESS: it
 * has begun, or is mandatory; pinion_job_should_stop() returns -ECANCELED to it
 * from now on.
 *
 * Context: any thread, while the struct is in place: the caller knows that the
 * job is not over, or that no thread frees it. Never blocks.
 * Since: 0.1
 */
PINION_API int pinion_job_cancel(struct pinion_job *job);

/*
 * Says to a long job whether to go on: 0: it should. -ECANCELED: it was
 * cancelled, or its runtime is being stopped; -ETIME: its deadline has passed.
 * Nothing follows from that by itself: the job decides what to return.
 *
 * Context: the job, or an operation that it has begun; a few nanoseconds, with
 * a deadline also a read of the clock. The struct has to be in place.
 * Since: 0.1
 */
PINION_API int pinion_job_should_stop(const struct pinion_job *job);

/*
 * Records how far a job has come, for others to read: any number, in units that
 * the job chooses; 0 when it is spawned. The job writes it, by a plain store
 * into its own struct.
 *
 * Context: any thread, while the struct is in place; a nanosecond.
 * Since: 0.1
 */
PINION_API void pinion_job_set_progress(struct pinion_job *job, uint64_t progress);
PINION_API uint64_t pinion_job_progress(const struct pinion_job *job);

/*
 * Refuses further jobs, and ends all waits to spawn some, with -ESHUTDOWN.
 * Admitted jobs go on. A second call changes nothing.
 *
 * Context: any thread; as pinion_admission_spawn().
 * Since: 0.1
 */
PINION_API void pinion_admission_close(struct pinion_admission *admission);

/*
 * Closes the admission and sleeps until no job is in, at most until
 * `deadline_ns`, as in struct pinion_wait. 0: all jobs have ended, their writes
 * are visible, and the admission may be freed.
 *
 * Context: a thread that is no worker of any runtime, and while no other call
 * begins; never allocates.
 * Errors: -ETIME: closed, but jobs are in; it may be called again. -EDEADLK:
 * the same, on a worker thread of any runtime. -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_admission_drain(struct pinion_admission *admission, uint64_t deadline_ns);

/*
 * Counts of an admission. `current` is of one moment, for all lanes; each other
 * field is a moment's reading by itself.
 *
 * Shape: size-versioned; pass sizeof(*out_stats).
 * Since: 0.1
 */
struct pinion_admission_stats {
	uint32_t current[PINION_LANES]; /* jobs in */
	uint32_t running;		/* of these, begun */
	uint64_t refused[PINION_LANES]; /* spawns answered with -EAGAIN, by lowest lane */
	uint64_t evicted[PINION_LANES]; /* jobs that lost their slot */
	uint64_t failed;		/* jobs that ended with an error */
	uint64_t job_ns;		/* average time of a job, as in struct pinion_full */
	uint64_t cancelled;		/* by pinion_job_cancel(), before they began */
	uint64_t timed_out;		/* jobs that had not begun by their deadline */
};

PINION_API void pinion_admission_get_stats(const struct pinion_admission *admission,
	struct pinion_admission_stats *out_stats, size_t size);

PINION_END_DECLS

#endif
