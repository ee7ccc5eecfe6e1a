/* SPDX-License-Identifier: MIT */
/*
 * Goal: no limit is ever exceeded, no place is lost, nobody waits while there
 * is room for him, also behind one that wanted more and gave up, nobody comes
 * in once it is closed, whoever has drained it may free it, and a job that
 * loses its place is cancelled instead of run: [PLACES-1]. RP-13, W41, W51,
 * W54.
 * Method: threads spawn jobs, which count how many of them are in. A job runs
 * inside of its spawn, or in a queue that another thread works off, or on a
 * real worker whose runtime is drained meanwhile. One that was forgotten is a
 * deadlock; counts that are left at the end are lost places.
 */
#include "runtime/core/admission.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/core/fault.h"
#include "runtime/core/job.h"
#include "runtime/core/job_log.h"
#include "runtime/core/runtime.h"
#include "runtime/core/runtime_state.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"
#include "tests/model/runtime_model.h"

#include <errno.h>
#include <pinion/fault.h>
#include <string.h>

/* ---- what a twin does otherwise in sched/places.c ---- */

enum { WATCHED = 2 };

/*
 * SKIP: whoever finds no room says nothing. LATE: he does so in a second step.
 * In core/job.c, SKIP: it takes it that the word names its job.
 */
static bool cas(struct pin_atomic_u64 *atomic, uint64_t *expected, uint64_t value, const char *site)
{
	bool watches = value == (*expected | WATCHED);

	if ((watches && model_is_spoilt(MODEL_SKIP, site, "watch")) ||
		model_is_spoilt(MODEL_SKIP, site, "job")) {
		return true;
	}
	if (watches && model_is_spoilt(MODEL_LATE, site, "watch")) {
		model_update_u64(atomic, MODEL_OR, WATCHED, MODEL_ORDER_ACQ_REL, site);
		return true;
	}
	return model_cas_u64(atomic, expected, value, MODEL_ORDER_ACQ_REL, site);
}

#undef pin_cas_acq_rel_u64
#define pin_cas_acq_rel_u64(atomic, expected, value) cas(atomic, expected, value, __func__)
#include "runtime/sched/places.c"

/* ---- and in core/{admission,job,admit}.c ---- */

static bool uses_runtime;
static void spawn_here(struct pinion_task *task);

/* LATE: looked at once more when the place is given. */
static bool give(struct pin_places *places, uint64_t amount, const char *site)
{
	bool is_given = pin_places_give(places, amount);

	if (model_is_spoilt(MODEL_LATE, site, "pin_places_give")) {
		pin_places_word(places);
	}
	return is_given;
}

#define pin_places_give(places, amount) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_places_give") \
			? true \
			: give(places, amount, __func__))
/* SKIP: who lost its place still has it. */
#define pin_places_exchange(places, given, amount) \
	(pin_places_exchange)(places, \
		model_is_spoilt(MODEL_SKIP, __func__, "pin_places_exchange") ? 0 : (given), \
		amount)
#define pin_waiters_pop_served(waiters, out_served) \
	(model_is_spoilt(MODEL_SKIP, __func__, #waiters) \
			? false \
			: (pin_waiters_pop_served)(waiters, out_served))
#define pin_waiters_lock(waiters) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_waiters_lock") ? (void)0 \
								   : (pin_waiters_lock)(waiters))
#define pin_waiters_unlock(waiters) \
	(model_is_spoilt(MODEL_SKIP, "pin_admission_lock", "pin_waiters_lock") \
			? (void)0 \
			: (pin_waiters_unlock)(waiters))
#define pin_runtime_reserve(runtime) (uses_runtime ? (pin_runtime_reserve)(runtime) : 0)
#define pin_runtime_spawn_reserved(runtime, task) \
	(uses_runtime ? (pin_runtime_spawn_reserved)(runtime, task) : spawn_here(task))
/* Also where jobs run on no worker. */
static struct pin_worker nobodies[MODEL_THREADS_MAX];
#define pin_worker_current() \
	(pin_worker_self != NULL ? pin_worker_self : &nobodies[model_thread_current()])
#include "runtime/core/admission.c"
#include "runtime/core/admit.c"
#include "runtime/core/job.c"
#include "runtime/core/job_log.c"

enum { JOBS_MAX = 4, LOW = PINION_LANE_LOW, HIGH = PINION_LANE_HIGH };

struct model_job {
	struct pinion_job job;
	int rc;
	uint32_t run_count;
	uint32_t cancel_count;
	bool goes_on;
	bool is_ended; /* one that goes on */
};

static struct pinion_admission *admission;
static struct pinion_runtime *runtime;
static struct model_job jobs[JOBS_MAX];
static struct pinion_task *queue[JOBS_MAX];
static uint32_t queued_count;
static bool queues;
static bool is_drained;
static bool is_cancelling;
static uint32_t in_count;
static uint32_t in_max;
static uint32_t run_total;
static uint32_t over_count;
static struct pin_atomic_u32 last_run; /* what jobs leave for each other */

static struct model_job *own_job(struct pinion_job *job)
{
	return PIN_CONTAINER_OF(job, struct model_job, job);
}

static int run(struct pinion_job *job)
{
	struct model_job *model_job = own_job(job);

	model_job->run_count++;
	MODEL_CHECK(model_job->run_count + model_job->cancel_count == 1);
	MODEL_CHECK(!is_drained);
	in_count++;
	MODEL_CHECK(in_count <= in_max);
	if (in_max == 1) {
		MODEL_CHECK(pin_load_relaxed_u32(&last_run) == run_total); /* [PLACES-1] */
		run_total++;
		pin_store_relaxed_u32(&last_run, run_total);
	}
	if (model_job->goes_on) {
		return PINION_JOB_GOES_ON;
	}
	model_point();
	in_count--;
	return 0;
}

static void cancel(struct pinion_job *job, int reason)
{
	struct model_job *model_job = own_job(job);

	model_job->cancel_count++;
	MODEL_CHECK(model_job->run_count + model_job->cancel_count == 1);
	MODEL_CHECK(reason == (uses_runtime || is_cancelling ? -ECANCELED : -EAGAIN));
}

static void spawn_here(struct pinion_task *task)
{
	if (queues) {
		queue[queued_count] = task;
		queued_count++;
	} else {
		task->run(task);
	}
}

static void begin(uint32_t max, uint32_t max_total, uint32_t flags)
{
	static struct pinion_runtime nobody; /* has no worker */
	struct pinion_admission_limits limits = {.max_tasks_total = max_total, .flags = flags};

	nobody.forked = pin_forked_now();
	nobody.shared.worker_count = 1;
	if (!uses_runtime) {
		runtime = &nobody;
	}
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		limits.max_tasks[i] = max;
	}
	admission = model_aligned_alloc(PIN_CACHE_LINE, sizeof(*admission));
	MODEL_CHECK(pinion_admission_init(admission, runtime, &limits) == 0);
	memset(jobs, 0, sizeof(jobs));
	for (uint32_t i = 0; i < JOBS_MAX; i++) {
		jobs[i].job = (struct pinion_job){
			.task.flags = PINION_TASK_HIGH, .run = run, .cancel = cancel};
	}
	last_run = (struct pin_atomic_u32){0};
	queues = is_drained = false;
	queued_count = in_count = run_total = 0;
	in_max = max < max_total ? max : max_total;
}

static void spawn(void *arg)
{
	struct model_job *model_job = arg;
	struct pinion_job *job = &model_job->job;

	model_job->rc = pinion_admission_spawn(admission, &job, 1, NULL);
	MODEL_CHECK(model_job->rc == 0 || model_job->rc == -EAGAIN || model_job->rc == -ESHUTDOWN);
}

static void spawn_wait(void *arg)
{
	struct model_job *model_job = arg;
	struct pinion_job *job = &model_job->job;

	model_job->rc = pinion_admission_spawn_wait(admission, &job, 1, PIN_NO_DEADLINE);
	MODEL_CHECK(model_job->rc == 0 || model_job->rc == -ESHUTDOWN);
}

/* The first two jobs together, if there is room for both in time. */
static void spawn_both_in_time(void *arg)
{
	struct pinion_job *both[] = {&jobs[0].job, &jobs[1].job};

	(void)arg;
	jobs[0].rc = pinion_admission_spawn_wait(admission, both, 2, 1);
	MODEL_CHECK(jobs[0].rc == 0 || jobs[0].rc == -ETIME);
}

static void end(void *arg)
{
	struct model_job *model_job = arg;

	in_count--;
	pinion_job_end(&model_job->job, 0);
}

static void begin_going_on(struct model_job *job)
{
	job->goes_on = true;
	spawn(job);
	MODEL_CHECK(job->rc == 0);
}

/* Whoever was admitted has run, all places are back. */
static void expect_end(uint32_t job_count)
{
	for (uint32_t i = 0; i < job_count; i++) {
		MODEL_CHECK(jobs[i].run_count + jobs[i].cancel_count == (jobs[i].rc == 0 ? 1 : 0));
	}
	MODEL_CHECK(pin_places_total(pin_admission_of(admission)->places.word.value) == 0);
	MODEL_CHECK(pin_admission_of(admission)->running.value == 0);
	model_free(admission);
}

/* ---- limits ---- */

/* Two want the one place that is left, a third is given back meanwhile. */
static void run_limit(void)
{
	uint32_t threads[2];

	begin(2, 2, 0);
	begin_going_on(&jobs[2]);
	threads[0] = model_thread_start("spawner", spawn, &jobs[0]);
	threads[1] = model_thread_start("spawner", spawn, &jobs[1]);
	end(&jobs[2]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs[0].rc == 0 || jobs[1].rc == 0);
	expect_end(3);
}

/* In two lanes, so that the total alone limits them. */
static void run_total_limit(void)
{
	uint32_t threads[2];

	begin(3, 1, 0);
	jobs[1].job.task.flags = PINION_TASK_LOW;
	threads[0] = model_thread_start("spawner", spawn, &jobs[0]);
	threads[1] = model_thread_start("spawner", spawn, &jobs[1]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs[0].rc == 0 || jobs[1].rc == 0);
	expect_end(2);
}

/* ---- waits ---- */

static void run_waits(void)
{
	uint32_t threads[2];

	begin(1, 1, 0);
	threads[0] = model_thread_start("waits", spawn_wait, &jobs[0]);
	threads[1] = model_thread_start("waits", spawn_wait, &jobs[1]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs[0].rc == 0 && jobs[1].rc == 0);
	expect_end(2);
}

static void note_over(struct pin_waiter *waiter)
{
	MODEL_CHECK(waiter->value.words[PIN_ADMISSION_ANSWER] == PIN_PLACES_ROOM);
	over_count++;
}

static void enter_queue(void *arg)
{
	pin_waiters_enter(&pin_admission_of(admission)->lanes[HIGH].waiters, arg);
}

/* Without a look beforehand, which would have said already that it waits. */
static void run_queues(void)
{
	static struct pin_waiter waiter;
	uint32_t thread;

	begin(1, 1, 0);
	over_count = 0;
	begin_going_on(&jobs[0]);
	pin_waiter_init(&waiter, pin_places_amount(HIGH, 1), note_over);
	thread = model_thread_start("waits", enter_queue, &waiter);
	end(&jobs[0]);
	model_thread_join(thread);
	MODEL_CHECK(over_count == 1);
	pin_admission_leave(pin_admission_of(admission), pin_places_amount(HIGH, 1));
	expect_end(1);
}

/* One waits in a lane that is not the one a place is given back of. */
static void run_waits_for_total(void)
{
	uint32_t waiter;

	begin(2, 1, 0);
	jobs[1].job.task.flags = PINION_TASK_LOW;
	begin_going_on(&jobs[0]);
	waiter = model_thread_start("waits", spawn_wait, &jobs[1]);
	end(&jobs[0]);
	model_thread_join(waiter);
	MODEL_CHECK(jobs[1].rc == 0);
	expect_end(2);
}

/* Who waits for two holds up a lower lane, and may give up. */
static void run_gives_up(void)
{
	uint32_t threads[2];

	begin(2, 2, 0);
	jobs[2].job.task.flags = PINION_TASK_LOW;
	begin_going_on(&jobs[3]);
	threads[0] = model_thread_start("wants two", spawn_both_in_time, NULL);
	threads[1] = model_thread_start("wants one", spawn_wait, &jobs[2]);
	end(&jobs[3]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs[2].rc == 0);
	jobs[1].rc = jobs[0].rc;
	expect_end(4);
}

/* ---- its end ---- */

static void run_closed(void)
{
	uint32_t threads[2];

	begin(1, 1, 0);
	threads[0] = model_thread_start("spawner", spawn, &jobs[0]);
	threads[1] = model_thread_start("waits", spawn_wait, &jobs[1]);
	MODEL_CHECK(pinion_admission_drain(admission, PIN_NO_DEADLINE) == 0);
	is_drained = true;
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	spawn(&jobs[2]);
	MODEL_CHECK(jobs[2].rc == -ESHUTDOWN);
	expect_end(3);
}

/* Freed while the end that made that possible is under way. */
static void run_freed(void)
{
	uint32_t ender;

	begin(1, 1, 0);
	begin_going_on(&jobs[0]);
	ender = model_thread_start("ender", end, &jobs[0]);
	MODEL_CHECK(pinion_admission_drain(admission, PIN_NO_DEADLINE) == 0);
	MODEL_CHECK(in_count == 0);
	model_free(admission);
	model_thread_join(ender);
}

/* ---- evicted ---- */

static bool has_queued(const void *arg)
{
	const uint32_t *count = arg;

	return queued_count > *count;
}

static void work_off(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < 2; i++) {
		model_await("a job in the queue", has_queued, &i);
		queue[i]->run(queue[i]);
	}
}

static void run_evicted(void)
{
	uint32_t worker;

	begin(1, 1, PINION_ADMISSION_EVICT);
	queues = true;
	jobs[0].job.task.flags = PINION_TASK_LOW;
	spawn(&jobs[0]);
	worker = model_thread_start("worker", work_off, NULL);
	spawn(&jobs[1]);
	if (jobs[1].rc != 0) {
		/* The other has begun: so it waits for its end. */
		spawn_wait(&jobs[1]);
	}
	MODEL_CHECK(jobs[1].rc == 0);
	model_thread_join(worker);
	MODEL_CHECK(jobs[1].run_count == 1);
	MODEL_CHECK(pin_admission_of(admission)->evicted[LOW].value == jobs[0].cancel_count);
	MODEL_CHECK(pin_admission_of(admission)->evicted_queued == 0);
	MODEL_CHECK(pinion_admission_drain(admission, PIN_NO_DEADLINE) == 0);
	expect_end(2);
}

/* ---- a cancel, and the job's turn ---- */

static void work_off_one(void *arg)
{
	(void)arg;
	queue[0]->run(queue[0]);
}

static void run_cancelled(void)
{
	uint32_t worker;
	int rc;

	begin(1, 1, 0);
	is_cancelling = queues = true;
	spawn(&jobs[0]);
	worker = model_thread_start("worker", work_off_one, NULL);
	rc = pinion_job_cancel(&jobs[0].job);
	MODEL_CHECK(rc == 0 || rc == -EINPROGRESS);
	model_thread_join(worker);
	/* What the cancel said is so. */
	MODEL_CHECK(jobs[0].cancel_count == (rc == 0 ? 1u : 0u));
	MODEL_CHECK(jobs[0].run_count == (rc == 0 ? 0u : 1u));
	MODEL_CHECK(pinion_admission_drain(admission, PIN_NO_DEADLINE) == 0);
	is_cancelling = false;
	expect_end(1);
}

/* ---- one that goes on, or is unwound, and its end by another ---- */

static struct model_job *long_job;
static struct pin_atomic_u32 may_be_ended;

static bool is_begun(const void *arg)
{
	(void)arg;
	return may_be_ended.value != 0;
}

static void end_begun(void *arg)
{
	(void)arg;
	model_await("the job", is_begun, NULL);
	/* What it has begun is ordered behind that. */
	pin_fetch_add_acq_rel_u32(&may_be_ended, 1);
	pinion_job_end(&long_job->job, -EIO);
	model_free(long_job);
}

static int go_on(struct pinion_job *job)
{
	(void)job;
	pin_fetch_add_acq_rel_u32(&may_be_ended, 1);
	return PINION_JOB_GOES_ON;
}

static int begin_and_panic(struct pinion_job *job)
{
	go_on(job);
	pinion_panic(-EIO, NULL);
}

/* It has one end, whichever that is, and is not touched behind it. */
static void run_ended(pinion_job_fn body)
{
	struct pinion_admission_counters counters;
	uint32_t ender;

	uses_runtime = true;
	may_be_ended = (struct pin_atomic_u32){0};
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	begin(1, 1, 0);
	long_job = model_aligned_alloc(PIN_CACHE_LINE, sizeof(*long_job));
	*long_job = (struct model_job){.job.run = body};
	ender = model_thread_start("ender", end_begun, NULL);
	spawn(long_job);
	MODEL_CHECK(pinion_admission_drain(admission, PIN_NO_DEADLINE) == 0);
	pinion_admission_counters(admission, &counters, sizeof(counters));
	MODEL_CHECK(counters.failed == 1 && counters.running == 0);
	expect_end(0);
	model_quiet_begin();
	model_thread_join(ender);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_runtime_end(runtime);
	model_quiet_end();
	uses_runtime = false;
}

static void run_goes_on(void)
{
	run_ended(go_on);
}

static void run_unwound(void)
{
	run_ended(begin_and_panic);
}

/* ---- the runtime's end ---- */

/* Who has a place and is refused by the runtime gives it to who waits. */
static void run_runtime_drained(void)
{
	uint32_t threads[2];

	uses_runtime = true;
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	begin(1, 1, 0);
	threads[0] = model_thread_start("waits", spawn_wait, &jobs[0]);
	threads[1] = model_thread_start("waits", spawn_wait, &jobs[1]);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	model_runtime_end(runtime);
	uses_runtime = false;
	expect_end(2);
}

static const struct model_twin limit_twins[] = {
	{"overshoots: taken in two steps", {MODEL_TORN, "pin_places_take", NULL}},
	{"a place is lost: given in two steps", {MODEL_TORN, "pin_places_give", NULL}},
	{.name = NULL},
};

static const struct model_twin total_twins[] = {
	{"overshoots: taken in two steps", {MODEL_TORN, "pin_places_take", NULL}},
	{"given without a release", {MODEL_RELAXED, "pin_places_give", NULL}},
	{"taken without an acquire", {MODEL_RELAXED, "pin_places_take", NULL}},
	{.name = NULL},
};

static const struct model_twin waits_twins[] = {
	{"stranded: who waits does not say so", {MODEL_SKIP, "pin_places_take_or_watch", "watch"}},
	{"stranded: who leaves serves nobody",
		{MODEL_SKIP, "pin_admission_serve_unlock", "&self->lanes[i].waiters"}},
	{"a place is not given back", {MODEL_SKIP, "pin_admission_leave", "pin_places_give"}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_twin queues_twins[] = {
	{"stranded: said in a second step", {MODEL_LATE, "pin_places_take_or_watch", "watch"}},
	{.name = NULL},
};

static const struct model_twin total_wait_twins[] = {
	{"stranded: who leaves serves nobody",
		{MODEL_SKIP, "pin_admission_serve_unlock", "&self->lanes[i].waiters"}},
	{.name = NULL},
};

static const struct model_twin closed_twins[] = {
	{"comes in while it closes: taken in two steps", {MODEL_TORN, "pin_places_take", NULL}},
	{"closed in two steps", {MODEL_TORN, "pin_places_close", NULL}},
	{"who drains is not told", {MODEL_SKIP, "pin_admission_serve_unlock", "&self->drained"}},
	{.name = NULL},
};

static const struct model_twin freed_twins[] = {
	{"touched when the place is given", {MODEL_LATE, "pin_admission_leave", "pin_places_give"}},
	{.name = NULL},
};

static const struct model_twin evicted_twins[] = {
	{"the lists without the lock", {MODEL_SKIP, "pin_admission_lock", "pin_waiters_lock"}},
	{"who is evicted keeps its place", {MODEL_SKIP, "evict", "pin_places_exchange"}},
	{.name = NULL},
};

static const struct model_twin drained_twins[] = {
	{"refused, and the place is lost", {MODEL_SKIP, "pin_admission_leave", "pin_places_give"}},
	{.name = NULL},
};

static const struct model_twin goes_on_twins[] = {
	{"said in two steps", {MODEL_TORN, "leave_run", NULL}},
	{"not seen: said without a release", {MODEL_RELAXED, "note_going_on", NULL}},
	{"not seen: looked at without an acquire", {MODEL_RELAXED, "may_end", NULL}},
	{.name = NULL},
};

static const struct model_twin unwound_twins[] = {
	{"ended twice: unwound in two steps", {MODEL_TORN, "leave_run", NULL}},
	{"ended twice: ended in two steps", {MODEL_TORN, "may_end", NULL}},
	{"ended twice: unwound without a look", {MODEL_SKIP, "leave_run", "job"}},
	{"ended twice: ended without a look", {MODEL_SKIP, "may_end", "job"}},
	{.name = NULL},
};

static const struct model_twin cancelled_twins[] = {
	{"cancelled in two steps", {MODEL_TORN, "pinion_job_cancel", NULL}},
	{"begun in two steps", {MODEL_TORN, "refusal", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"limit", run_limit, 2, 1, 0, limit_twins, NULL},
	{"total_limit", run_total_limit, 3, 2, 0, total_twins, NULL},
	{"waits", run_waits, 2, 1, 1, waits_twins, NULL},
	{"queues", run_queues, 3, 2, 0, queues_twins, NULL},
	{"waits_for_total", run_waits_for_total, 2, 1, 1, total_wait_twins, NULL},
	{"gives_up", run_gives_up, 2, 1, 0, total_wait_twins, NULL},
	{"closed", run_closed, 2, 1, 0, closed_twins, NULL},
	{"freed", run_freed, 3, 2, 0, freed_twins, NULL},
	{"evicted", run_evicted, 3, 2, 0, evicted_twins, NULL},
	{"cancelled", run_cancelled, 2, 1, 0, cancelled_twins, NULL},
	{"goes_on", run_goes_on, 1, 1, 0, goes_on_twins, NULL},
	{"unwound", run_unwound, 2, 1, 0, unwound_twins, NULL},
	{"runtime_drained", run_runtime_drained, 1, 1, 0, drained_twins, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("admission", cases, PIN_ARRAY_COUNT(cases));
}
