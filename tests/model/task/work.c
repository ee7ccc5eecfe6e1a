/* SPDX-License-Identifier: MIT */
/*
 * Goal: a work item never runs twice at once, a wake that returned 0 is seen by
 * a run that follows it, and its end comes exactly once, whatever state a
 * cancel, a stop or a drain meets it in: [WORK-1], [WORK-2]; EX-57, EX-59,
 * EX-61.
 * Method: real workers. Each waker writes a word, without any order, and wakes;
 * a run notes at its beginning which words it reads. The main thread then waits
 * for every word whose wake returned 0: a lost wake is a deadlock, and so is a
 * wake that ordered nothing.
 */
#include "runtime/base/base.h"
#include "runtime/task/internal.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <errno.h>

enum { WORDS = 2 };

static struct pinion_runtime *runtime;
static struct pinion_work *work;
static struct pinion_work in_place;
static struct model_task inside;
static struct pin_atomic_u32 words[WORDS];
static struct pin_atomic_u32 last_run; /* words that runs write for each other */
static bool is_due[WORDS];
static bool is_seen[WORDS];
static int (*body)(void);
static bool frees;
static bool is_running;
static uint32_t run_count;
static uint32_t end_count;
static int end_result;
static uint32_t cancelled_count; /* cancels that said it has ended */
static uint32_t follows_count;	 /* cancels that said that `end` follows */

/* ---- what a work item does here ---- */

static int run(struct pinion_work *self)
{
	int next;

	MODEL_CHECK(self == work && !is_running && end_count == 0 && cancelled_count == 0);
	is_running = true;
	run_count++;
	model_event("work", "runs", self, run_count);
	for (uint32_t i = 0; i < WORDS; i++) {
		is_seen[i] = is_seen[i] || pin_load_relaxed_u32(&words[i]) != 0;
	}
	/* [WORK-2]: the last run left its number. */
	MODEL_CHECK(pin_load_relaxed_u32(&last_run) == run_count - 1);
	pin_store_relaxed_u32(&last_run, run_count);
	next = body != NULL ? body() : PINION_WORK_WAIT;
	is_running = false;
	return next;
}

static void end(struct pinion_work *self, int result)
{
	MODEL_CHECK(self == work && !is_running && end_count == 0 && cancelled_count == 0);
	MODEL_CHECK(pin_load_relaxed_u32(&last_run) == run_count);
	end_count++;
	end_result = result;
	model_event("work", "ends", self, end_count);
	if (frees) {
		model_free(self);
	}
}

static void wake(uint32_t index)
{
	int rc;

	pin_store_relaxed_u32(&words[index], 1);
	rc = pinion_work_wake(runtime, work);
	MODEL_CHECK(rc == 0 || rc == -ECANCELED || rc == -ESHUTDOWN);
	is_due[index] = rc == 0;
}

static void wake_first(void *arg)
{
	(void)arg;
	wake(0);
}

static void wake_second(void *arg)
{
	(void)arg;
	wake(1);
}

static void cancel(void *arg)
{
	int rc = pinion_work_cancel(work);

	(void)arg;
	MODEL_CHECK(rc == PINION_WORK_ENDED || rc == PINION_WORK_END_FOLLOWS || rc == -EALREADY);
	cancelled_count += rc == PINION_WORK_ENDED ? 1 : 0;
	follows_count += rc == PINION_WORK_END_FOLLOWS ? 1 : 0;
	if (rc == PINION_WORK_ENDED) {
		MODEL_CHECK(pin_load_relaxed_u32(&last_run) == run_count); /* [WORK-2] */
	}
}

static void begin(uint32_t worker_count, int (*run_body)(void))
{
	for (uint32_t i = 0; i < WORDS; i++) {
		words[i] = (struct pin_atomic_u32){0};
		is_due[i] = is_seen[i] = false;
	}
	last_run = (struct pin_atomic_u32){0};
	body = run_body;
	frees = is_running = false;
	run_count = end_count = cancelled_count = follows_count = 0;
	work = &in_place;
	pinion_work_init(work, run, end);
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
}

static bool is_all_seen(const void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < WORDS; i++) {
		if (is_due[i] && !is_seen[i]) {
			return false;
		}
	}
	return true;
}

static bool has_ended(const void *arg)
{
	(void)arg;
	return end_count + cancelled_count > 0;
}

static bool is_all_seen_or_ended(const void *arg)
{
	return is_all_seen(arg) || has_ended(arg);
}

/* ---- wakes ---- */

static void finish_seen(void)
{
	model_await("a run that sees all", is_all_seen, NULL);
	MODEL_CHECK(end_count == 0);
	model_runtime_end(runtime);
}

static void run_wakes(void)
{
	begin(1, NULL);
	wake(0);
	wake(1);
	MODEL_CHECK(is_due[0] && is_due[1]);
	finish_seen();
}

static void run_two_wakers(void)
{
	uint32_t waker;

	begin(2, NULL);
	waker = model_thread_start("waker", wake_second, NULL);
	wake(0);
	model_thread_join(waker);
	MODEL_CHECK(is_due[0] && is_due[1]);
	finish_seen();
}

static bool has_run_twice(const void *arg)
{
	(void)arg;
	return run_count >= 2;
}

static int wake_itself(void)
{
	if (run_count == 1) {
		wake(1);
		MODEL_CHECK(is_due[1]);
	}
	return PINION_WORK_WAIT;
}

static void run_self_wake(void)
{
	begin(1, wake_itself);
	wake(0);
	model_await("a second run", has_run_twice, NULL);
	/* Woken in the first run, so seen by the second. */
	MODEL_CHECK(is_due[1] && is_seen[1]);
	finish_seen();
}

static int once_more(void)
{
	return run_count == 1 ? PINION_WORK_AGAIN : PINION_WORK_WAIT;
}

static void run_again(void)
{
	begin(2, once_more);
	wake(0);
	wake(1);
	model_await("a second run", has_run_twice, NULL);
	finish_seen();
}

/* ---- ends ---- */

/* Cancelled, or done; no longer to be woken or cancelled. */
static void finish_ended(void)
{
	uint32_t runs;

	model_await("the end", has_ended, NULL);
	runs = run_count;
	MODEL_CHECK(pinion_work_wake(runtime, work) == -ECANCELED);
	MODEL_CHECK(pinion_work_cancel(work) == -EALREADY);
	MODEL_CHECK(pinion_work_is_cancelled(work));
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(run_count == runs && end_count + cancelled_count == 1);
	MODEL_CHECK(follows_count + cancelled_count <= 1);
	model_runtime_end(runtime);
}

static void run_cancel(void)
{
	uint32_t canceller;

	begin(1, NULL);
	wake(0);
	canceller = model_thread_start("canceller", cancel, NULL);
	wake(1);
	model_thread_join(canceller);
	MODEL_CHECK(follows_count + cancelled_count == 1);
	model_await("a run that sees all, or the end", is_all_seen_or_ended, NULL);
	finish_ended();
	MODEL_CHECK(end_count == 0 || end_result == -ECANCELED);
}

static void run_two_cancels(void)
{
	uint32_t canceller;

	begin(1, NULL);
	wake(0);
	canceller = model_thread_start("canceller", cancel, NULL);
	cancel(NULL);
	model_thread_join(canceller);
	MODEL_CHECK(follows_count + cancelled_count == 1);
	finish_ended();
}

static int cancel_itself(void)
{
	cancel(NULL);
	MODEL_CHECK(cancelled_count == 0);
	return PINION_WORK_AGAIN;
}

static void run_self_cancel(void)
{
	begin(1, cancel_itself);
	wake(0);
	wake(1);
	finish_ended();
	MODEL_CHECK(run_count == 1 && end_result == -ECANCELED);
}

static int be_done(void)
{
	return PINION_WORK_DONE;
}

static void run_done(void)
{
	uint32_t waker;

	begin(1, be_done);
	wake(0);
	waker = model_thread_start("waker", wake_second, NULL);
	cancel(NULL);
	model_thread_join(waker);
	MODEL_CHECK(cancelled_count == 0);
	finish_ended();
	MODEL_CHECK(end_result == (run_count == 1 ? 0 : -ECANCELED));
}

/* One wake is the whole life; no thread touches the struct after the end. */
static void run_frees(void)
{
	begin(2, be_done);
	frees = true;
	work = model_aligned_alloc(sizeof(*work), sizeof(*work));
	pinion_work_init(work, run, end);
	wake(0);
	model_await("the end", has_ended, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(run_count == 1 && end_count == 1 && end_result == 0);
	model_runtime_end(runtime);
}

/* ---- the runtime's end ---- */

static void finish_idle_or_ended(void)
{
	MODEL_CHECK(is_all_seen_or_ended(NULL));
	MODEL_CHECK(end_count == 0 || end_result == -ECANCELED);
	/* An idle item is reported as the caller's. */
	MODEL_CHECK(pinion_work_wake(runtime, work) == (end_count == 0 ? -ESHUTDOWN : -ECANCELED));
	MODEL_CHECK(pinion_work_cancel(work) == (end_count == 0 ? PINION_WORK_ENDED : -EALREADY));
	model_runtime_end(runtime);
}

static void run_stop(void)
{
	uint32_t waker;

	begin(1, NULL);
	wake(0);
	waker = model_thread_start("waker", wake_second, NULL);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	model_thread_join(waker);
	finish_idle_or_ended();
}

static void wake_inside(struct model_task *task)
{
	(void)task;
	wake(1);
	MODEL_CHECK(is_due[1]); /* a drain refuses nothing inside */
}

/* A waker outside, whom the drain may refuse, and one inside. */
static void run_drain(void)
{
	uint32_t waker;

	begin(1, NULL);
	model_task_init(&inside, wake_inside);
	MODEL_CHECK(pinion_task_spawn(runtime, &inside.request.task) == 0);
	waker = model_thread_start("waker", wake_first, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(waker);
	MODEL_CHECK(is_due[1] && is_all_seen(NULL) && end_count == 0);
	finish_idle_or_ended();
}

static void wake_last(struct model_task *task)
{
	(void)task;
	wake(1);
}

/*
 * The waker outside may find the work ended when it has its place already, and
 * the workers asleep.
 */
static void run_drain_done(void)
{
	uint32_t waker;

	begin(1, be_done);
	model_task_init(&inside, wake_last);
	MODEL_CHECK(pinion_task_spawn(runtime, &inside.request.task) == 0);
	waker = model_thread_start("waker", wake_first, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(waker);
	MODEL_CHECK(run_count == 1 && end_count == 1 && end_result == 0);
	model_runtime_end(runtime);
}

static const struct model_mutant wakes_mutants[] = {
	{"a wake while running is dropped", {MODEL_SKIP, "change", "notified"}},
	{"a step is no single step", {MODEL_TORN, "change", NULL}},
	{"steps order nothing", {MODEL_RELAXED, "change", NULL}},
	{"woken while running, not queued", {MODEL_SKIP, "leave", "pin_worker_respawn"}},
	{.name = NULL},
};

static const struct model_mutant two_wakers_mutants[] = {
	{"a step is no single step", {MODEL_TORN, "change", NULL}},
	{"steps order nothing", {MODEL_RELAXED, "change", NULL}},
	{.name = NULL},
};

static const struct model_mutant self_wake_mutants[] = {
	{"a wake while running is dropped", {MODEL_SKIP, "change", "notified"}},
	{.name = NULL},
};

static const struct model_mutant again_mutants[] = {
	{"wants to run, not queued", {MODEL_SKIP, "leave", "pin_worker_respawn"}},
	{.name = NULL},
};

static const struct model_mutant cancel_mutants[] = {
	{"a step is no single step", {MODEL_TORN, "change", NULL}},
	{"steps order nothing", {MODEL_RELAXED, "change", NULL}},
	{.name = NULL},
};

static const struct model_mutant two_cancels_mutants[] = {
	{"a step is no single step", {MODEL_TORN, "change", NULL}},
	{.name = NULL},
};

static const struct model_mutant drain_mutants[] = {
	{"the runtime is asked too late", {MODEL_LATE, "pinion_work_wake", "pin_runtime_reserve"}},
	{"a place is not given back", {MODEL_SKIP, "pinion_work_wake", "pin_runtime_undo"}},
	{.name = NULL},
};

static const struct model_mutant drain_done_mutants[] = {
	{"a place is not given back", {MODEL_SKIP, "pinion_work_wake", "pin_runtime_undo"}},
	{"no thread learns of it", {MODEL_SKIP, "pin_runtime_undo", "pin_wake_all"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"wakes", run_wakes, 3, 2, 1, wakes_mutants, NULL},
	{"two_wakers", run_two_wakers, 1, 1, 0, two_wakers_mutants, NULL},
	{"self_wake", run_self_wake, 2, 1, 0, self_wake_mutants, NULL},
	{"again", run_again, 1, 1, 0, again_mutants, NULL},
	{"cancel", run_cancel, 2, 1, 0, cancel_mutants, NULL},
	{"two_cancels", run_two_cancels, 1, 1, 0, two_cancels_mutants, NULL},
	{"self_cancel", run_self_cancel, 2, 1, 0, NULL, NULL},
	{"done", run_done, 2, 1, 0, two_cancels_mutants, NULL},
	{"frees", run_frees, 1, 1, 0, NULL, NULL},
	{"stop", run_stop, 2, 1, 0, NULL, NULL},
	{"drain", run_drain, 2, 1, 0, drain_mutants, NULL},
	{"drain_done", run_drain_done, 2, 1, 0, drain_done_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("work", cases, PIN_ARRAY_COUNT(cases));
}
