/* SPDX-License-Identifier: MIT */
/*
 * Admission: a limit to how many jobs a runtime is given at once, by lane and
 * in all, that answers when it is reached. With one in front of a runtime, that
 * is a read pool; several runtimes side by side are several pools, and several
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
	 * Where the total is reached, a job takes the place of one of a lower
	 * lane that has not begun: of the lowest lane there is, the newest. Of
	 * one and no more, also where limits were lowered.
	 */
	PINION_ADMISSION_EVICT = 1,
};

/*
 * Shape: zeroed, all limits are those of the runtime's configuration
 * (`max_tasks_high` and its kin); all fields are inputs.
 * Units: jobs that are in, from admission to their end.
 * Since: 0.1
 */
struct pinion_admission_limits {
	uint32_t max_tasks[PINION_LANES]; /* 0: the configuration's */
	uint32_t max_tasks_total;	  /* of all lanes; 0: the configuration's */
	uint32_t flags;			  /* enum pinion_admission_flags */
	uint32_t reserved[3];		  /* 0 */
};

/*
 * Shape: 512 bytes, embeddable; pinion_admission_init() sets all of it.
 * Owns: the caller's memory. It must stay in place until
 * pinion_admission_drain() has returned 0; nothing touches it from then on. The
 * runtime is destroyed after that.
 * Since: 0.1
 */
struct pinion_admission {
	uint64_t private_[64];
};

/* What a `run` returns that is not the end of its job. */
enum {
	PINION_JOB_GOES_ON = 1,
};

struct pinion_job;

/*
 * As pinion_task_fn: 0 or a negative errno ends the job, and the struct is the
 * caller's again as soon as this is entered. PINION_JOB_GOES_ON: something it
 * has begun, a read, a wait, a task, will call pinion_job_end(); until then the
 * job keeps its place and the struct has to stay.
 * Since: 0.1
 */
typedef int (*pinion_job_fn)(struct pinion_job *job);

/*
 * Called instead of `run`, when the job's turn would have been. `reason` is
 * -EAGAIN: another job was given its place (PINION_ADMISSION_EVICT); the job
 * may be tried again. -ECANCELED: the runtime was stopped, or
 * pinion_job_cancel() was called. -ETIME: `deadline_ns` had passed.
 * Context: a worker. The struct is the caller's again.
 * Since: 0.1
 */
typedef void (*pinion_job_cancel_fn)(struct pinion_job *job, int reason);

/*
 * Shape: 128 bytes, embeddable; set `run`, `cancel`, `task.flags` and
 * `deadline_ns`, zero the rest. The flags name its lane, as for any task; with
 * PINION_TASK_MANDATORY it is neither evicted nor cancelled.
 * Owns: the caller's memory, to stay in place until `run` or `cancel` is
 * entered, of which exactly one is.
 * Since: 0.1
 */
struct pinion_job {
	struct pinion_task task; /* the library's, but for `flags` */
	pinion_job_fn run;
	pinion_job_cancel_fn cancel; /* may be NULL */
	/*
	 * As pinion_clock_now_ns(): one that has not begun by then is cancelled
	 * when its turn comes; one that has can ask, see below. 0: none.
	 */
	uint64_t deadline_ns;
	uint64_t private_[9];
};

/*
 * Makes it one that nobody is in, in front of `runtime`. `limits` is copied;
 * NULL: those of its configuration, which are the highest unless set.
 *
 * Context: any thread, while nobody else uses it.
 * Errors: -EINVAL: no runtime; a limit beyond PINION_ADMISSION_TASKS (of all:
 * PINION_LANES times that); unknown flags; `reserved` is not 0.
 * Source: TiKV's read pool, which counts first and adds later, and so
 * overshoots.
 * Since: 0.1
 */
PINION_API int pinion_admission_init(struct pinion_admission *admission,
	struct pinion_runtime *runtime, const struct pinion_admission_limits *limits);

/*
 * Sets other limits while it is used, as after pinion_thread_pool_resize().
 * NULL: those of the runtime's configuration. Jobs that are in stay: where
 * there are more than the new limits allow, none comes in until so many have
 * ended, but with PINION_ADMISSION_EVICT in the place of another. Jobs that
 * wait come in as far as there is room now; a wait for more jobs than there
 * ever is room for ends with -EINVAL at once, also where it waits behind
 * others. A spawn that began before this returns may go by the limits before.
 *
 * Context: any thread, as pinion_admission_spawn().
 * Errors: -EINVAL: as pinion_admission_init(), or flags other than those it was
 * made with; nothing has changed. -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_admission_set_limits(
	struct pinion_admission *admission, const struct pinion_admission_limits *limits);

/*
 * Admits `count` jobs and spawns them, in order, all of them or none. No
 * limit is ever exceeded, whoever else does the same. A job keeps its place
 * until it ends; what it spawns needs none.
 *
 * Owns: on success the jobs are the runtime's until they are entered; on
 * failure they stay with the caller. *out_full, unless NULL, is written with
 * -EAGAIN and else not touched.
 * Context: any thread, tasks too; never blocks or allocates. With
 * PINION_ADMISSION_EVICT, and while somebody waits, it may wait for another
 * thread that is just using the same admission. 0 jobs are fine.
 * Errors: -EAGAIN: full, or others wait for it already. -EINVAL: a job has no
 * `run`, or unknown flags; more than there ever is room for. -EBUSY: a job
 * waits for its turn already, or is among the jobs twice. -ESHUTDOWN: closed,
 * or as pinion_task_spawn(). -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_admission_spawn(struct pinion_admission *admission,
	struct pinion_job *const *jobs, uint32_t count, struct pinion_full *out_full);

/*
 * Likewise, but sleeps until there is room, at most until `deadline_ns`, as in
 * struct pinion_wait. Those who wait for one lane are served in the order of
 * their coming, several jobs behind one that wants much; higher lanes first.
 *
 * Context: as pinion_future_wait(); never allocates.
 * Errors: as above, but for -EAGAIN; -EINVAL also when limits are lowered so
 * far meanwhile. -ETIME: nothing was spawned. -EDEADLK: a worker thread of any
 * runtime, and there is no room.
 * Since: 0.1
 */
PINION_API int pinion_admission_spawn_wait(struct pinion_admission *admission,
	struct pinion_job *const *jobs, uint32_t count, uint64_t deadline_ns);

/*
 * Begins to wait for that in a task: `wait->task` runs when the jobs are
 * spawned, with a result of 0; with any other none of them is. Besides those of
 * pinion_wait(3) there are -ESHUTDOWN: closed, or the runtime was, meanwhile;
 * and -EINVAL: limits were lowered so far.
 *
 * Owns: `jobs` is read before this returns; the jobs stay in place.
 * Context: a task on a worker of `runtime`, which need not be the admission's.
 * Errors: -EPERM: not on such a worker. -EBUSY: as above, or the wait is under
 * way already. -EINVAL: as above, or no jobs; no `run`, flags, or `reserved` of
 * the wait. -ESHUTDOWN, -ECHILD: as pinion_task_spawn() on `runtime`.
 * Since: 0.1
 */
PINION_API int pinion_admission_spawn_async(struct pinion_runtime *runtime,
	struct pinion_admission *admission, struct pinion_job *const *jobs, uint32_t count,
	struct pinion_wait *wait);

/*
 * Ends a job whose `run` returned PINION_JOB_GOES_ON, or is about to, and gives
 * its place back. `result`: 0 or a negative errno, which counts as a failure.
 * The struct is the caller's again. A job whose `run` has panicked, or ended
 * its thread, has ended with that: then this does nothing, so what it had begun
 * need not know. It has to find the struct in place, and the runtime.
 *
 * Context: any thread, once; as pinion_admission_spawn(). At most one system
 * call for each who waits and is served.
 * Since: 0.1
 */
PINION_API void pinion_job_end(struct pinion_job *job, int result);

/*
 * Cancels a job that was spawned. 0: it has not begun, and goes to its `cancel`
 * when its turn would have been; it keeps its place until then. -EINPROGRESS:
 * it has begun, or is mandatory; pinion_job_should_stop() tells it so.
 *
 * Context: any thread, while the struct is in place: the caller knows that the
 * job is not over, or that nobody frees it. Never blocks.
 * Since: 0.1
 */
PINION_API int pinion_job_cancel(struct pinion_job *job);

/*
 * For a long job, now and then: 0: it should go on. -ECANCELED: it was
 * cancelled, or its runtime is being stopped; -ETIME: its deadline has passed.
 * Nothing follows from that by itself: what it returns is up to the job.
 *
 * Context: the job, or what it has begun; a few nanoseconds, with a deadline a
 * look at the clock besides. The struct has to be in place.
 * Since: 0.1
 */
PINION_API int pinion_job_should_stop(const struct pinion_job *job);

/*
 * How far a job has come, for others to read: any number, in units of its own;
 * 0 when it is spawned. Written by the job, a plain store into its own struct.
 *
 * Context: any thread, while the struct is in place; a nanosecond.
 * Since: 0.1
 */
PINION_API void pinion_job_set_progress(struct pinion_job *job, uint64_t progress);
PINION_API uint64_t pinion_job_progress(const struct pinion_job *job);

/*
 * Refuses further jobs, and ends the waits of those who want to spawn some,
 * with -ESHUTDOWN. What is in goes on. A second call changes nothing.
 *
 * Context: any thread; as pinion_admission_spawn().
 * Since: 0.1
 */
PINION_API void pinion_admission_close(struct pinion_admission *admission);

/*
 * Closes it and sleeps until nobody is in, at most until `deadline_ns`, as in
 * struct pinion_wait. 0: all jobs have ended, what they wrote is seen; the
 * admission may be freed.
 *
 * Context: a thread that is no worker of any runtime, and while no other call
 * begins; never allocates.
 * Errors: -ETIME: closed, but somebody is in; it may be called again.
 * -EDEADLK: likewise, on a worker thread of any runtime. -ECHILD: as
 * pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_admission_drain(struct pinion_admission *admission, uint64_t deadline_ns);

/*
 * What an admission has seen. `current` is of one moment, of all lanes; the
 * rest a moment's reading each.
 *
 * Shape: size-versioned; pass sizeof(*out_stats).
 * Since: 0.1
 */
struct pinion_admission_stats {
	uint32_t current[PINION_LANES]; /* jobs in */
	uint32_t running;		/* of these, begun */
	uint64_t refused[PINION_LANES]; /* spawns answered with -EAGAIN, by lowest lane */
	uint64_t evicted[PINION_LANES]; /* jobs that lost their place */
	uint64_t failed;		/* jobs that ended with an error */
	uint64_t job_ns;		/* what a job takes, as in struct pinion_full */
	uint64_t cancelled;		/* by pinion_job_cancel(), before they began */
	uint64_t timed_out;		/* that had not begun by their deadline */
};

PINION_API void pinion_admission_get_stats(const struct pinion_admission *admission,
	struct pinion_admission_stats *out_stats, size_t size);

PINION_END_DECLS

#endif
