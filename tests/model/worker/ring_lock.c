/* SPDX-License-Identifier: MIT */
/*
 * Goal: requests in the ring of a stalled worker, gathered, in flight or
 * completed, end elsewhere, once, however the worker comes back meanwhile, and
 * neither a wake of its is lost by that, nor a request that waits for room
 * there: [REAP-1], [BIASED-1]. AS-31, EX-31.
 * Method: two real workers whose rings are shared, and the watchdog. A task
 * submits a request and waits for its end, which its own worker cannot see to;
 * or it goes on just when the other one has come to its ring. No ring may be
 * used by two at once.
 */
#include "runtime/task/entry.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <string.h>

static struct pinion_runtime *runtime;
static struct pinion_request request;
static struct pinion_file file;
static struct model_task tasks[2];
static uint32_t run_count;
static uint32_t keeper_index; /* of the worker that submitted it */
static bool has_submitted;
static bool may_go;
static bool has_seen_completion;
static int cancel_rc;

static int run(struct pinion_task *task)
{
	run_count++;
	MODEL_CHECK(run_count == 1);
	MODEL_CHECK(task->run == run && task->private_kind == 0);
	/* The caller's again: its private part is, too. */
	memset(&request.private_, 0, sizeof(request.private_));
	return 0;
}

static bool is_untouched(void)
{
	static const struct pinion_request fresh;

	return memcmp(&request.private_, &fresh.private_, sizeof(fresh.private_)) == 0;
}

static bool has_ended(const void *arg)
{
	(void)arg;
	return run_count > 0;
}

static bool is_submitted(const void *arg)
{
	(void)arg;
	return has_submitted;
}

/* The other worker has been sent for, and may have been there already. */
static bool has_help(const void *arg)
{
	(void)arg;
	return has_submitted &&
		(model_is_worker_awake(runtime, 1 - keeper_index) ||
			runtime->shared.workers[keeper_index].gathered_count.value == 0);
}

/* No worker has taken it in, but help has been sent for. */
static bool has_completed(const void *arg)
{
	(void)arg;
	has_seen_completion = has_seen_completion ||
		(has_submitted && model_rings_have_completions() &&
			model_is_worker_awake(runtime, 1 - keeper_index));
	return has_seen_completion;
}

static bool may_end(const void *arg)
{
	(void)arg;
	return may_go;
}

static void begin(void)
{
	request = (struct pinion_request){.task.run = run, .op = PINION_OP_NOP, .file = &file};
	run_count = 0;
	has_submitted = false;
	may_go = false;
	has_seen_completion = false;
	model_task_init(&tasks[0], NULL);
	model_task_init(&tasks[1], NULL);
	model_shares_rings = true;
	model_has_watchdog = true;
	runtime = model_runtime_begin(2, PIN_DOORBELL_MESSAGE, NULL);
	model_quiet_begin();
	model_settle();
}

static void submit(void)
{
	keeper_index = (uint32_t)pinion_worker_index(runtime);
	MODEL_CHECK(pinion_request_submit(runtime, &request) == 0);
	has_submitted = true;
}

/* What follows is explored, from the moment when `condition` holds. */
static void spawn_first(void (*body)(struct model_task *task), model_condition_fn condition)
{
	tasks[0].body = body;
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	model_await("the task to come so far", condition, NULL);
	model_quiet_end();
}

/* All that was counted has ended. */
static void finish(void)
{
	struct pinion_runtime_stats counters;

	model_quiet_begin();
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(run_count == 1 && is_untouched());
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.requests_submitted == 1 && counters.requests_completed == 1);
	MODEL_CHECK(counters.tasks_run == counters.tasks_spawned + 1);
	model_runtime_end(runtime);
}

/* ---- gathered, and not even submitted ---- */

static void submit_and_block(struct model_task *task)
{
	(void)task;
	submit();
	model_await("the request", has_ended, NULL);
}

static void run_gathered(void)
{
	begin();
	model_thread_start_daemon("device", model_device, NULL);
	spawn_first(submit_and_block, is_submitted);
	model_await("the request", has_ended, NULL);
	finish();
}

/* ---- in flight since an earlier turn ---- */

static void submit_only(struct model_task *task)
{
	(void)task;
	submit();
}

static void block(struct model_task *task)
{
	(void)task;
	model_device_release();
	model_await("the request", has_ended, NULL);
}

static void run_in_flight(void)
{
	begin();
	model_device_hold();
	model_thread_start_daemon("device", model_device, NULL);
	spawn_first(submit_only, is_submitted);
	model_watchdog_settle(runtime);
	tasks[1].body = block;
	MODEL_CHECK(pinion_task_spawn_on(runtime, keeper_index, &tasks[1].request.task) == 0);
	model_await("the request", has_ended, NULL);
	finish();
}

/* ---- the worker comes back ---- */

static void submit_and_go_on(struct model_task *task)
{
	(void)task;
	submit();
	model_await("help", has_help, NULL);
	may_go = true;
}

static bool is_parked(uint32_t index)
{
	uint32_t state = runtime->shared.workers[index].parker.state.value;

	return state == PIN_PARK_FUTEX || state == PIN_PARK_RING;
}

static bool do_all_sleep(const void *arg)
{
	(void)arg;
	return may_go && is_parked(0) && is_parked(1);
}

/* Both of them at its ring, which completes nothing until the end. */
static void run_comes_back(void)
{
	begin();
	spawn_first(submit_and_go_on, has_help);
	model_await("all to sleep", do_all_sleep, NULL);
	model_runtime_end(runtime);
	MODEL_CHECK(run_count == 1 && request.result == -ECANCELED);
}

/* Which of them reaps it is open. */
static void run_lands(void)
{
	begin();
	model_thread_start_daemon("device", model_device, NULL);
	spawn_first(submit_and_go_on, has_help);
	model_await("the request", has_ended, NULL);
	finish();
}

static void submit_and_cancel(struct model_task *task)
{
	(void)task;
	submit();
	model_await("help", has_completed, NULL);
	cancel_rc = pinion_request_cancel(runtime, &request);
}

static void run_cancels(void)
{
	begin();
	model_thread_start_daemon("device", model_device, NULL);
	spawn_first(submit_and_cancel, has_completed);
	model_await("the task", model_task_has_run, &tasks[0]);
	model_await("the request", has_ended, NULL);
	MODEL_CHECK(request.result == 0 || request.result == -ECANCELED);
	finish();
}

/* Back just to sleep, and woken while another still is in its ring. */
static void submit_and_wait(struct model_task *task)
{
	(void)task;
	submit();
	model_await("the signal", may_end, NULL);
}

static bool is_going_to_sleep(const void *arg)
{
	(void)arg;
	return runtime->shared.workers[keeper_index].parker.state.value == PIN_PARK_RING;
}

static void run_wake(void)
{
	begin();
	spawn_first(submit_and_wait, has_help);
	may_go = true;
	model_await("the worker", is_going_to_sleep, NULL);
	MODEL_CHECK(pinion_task_spawn_on(runtime, keeper_index, &tasks[1].request.task) == 0);
	model_await("the task", model_task_has_run, &tasks[1]);
	model_runtime_end(runtime);
}

/* ---- a request that waits for room in the ring ---- */

static struct pinion_request pair[2];
static uint32_t pair_ended;

static int end_of_pair(struct pinion_task *task)
{
	(void)task;
	pair_ended++;
	return 0;
}

static bool has_pair_ended(const void *arg)
{
	(void)arg;
	return pair_ended == 2;
}

/* The request with room has completed, and help has been sent for. */
static bool is_reaped_soon(const void *arg)
{
	(void)arg;
	return pair_ended > 0 || model_is_worker_awake(runtime, 1 - keeper_index);
}

static bool is_on_its_way(const void *arg)
{
	(void)arg;
	return may_go;
}

/* Its way to sleep takes a while. */
static void linger(void *arg, uint32_t worker_index, void *context)
{
	(void)arg;
	(void)context;
	if (worker_index == keeper_index && has_submitted && !may_go) {
		may_go = true;
		model_device_release();
		model_await("help", is_reaped_soon, NULL);
	}
}

static void post_to_keeper(struct pinion_request *posted)
{
	*posted = (struct pinion_request){
		.task.run = end_of_pair, .op = PINION_OP_NOP, .file = &file};
	runtime->shared.next_request_worker.value = keeper_index;
	MODEL_CHECK(pinion_request_submit(runtime, posted) == 0);
	model_settle();
}

/*
 * The ring has room for one request. That one ends as its worker is on its way
 * to sleep, and another takes it in.
 */
static void run_room(void)
{
	begin();
	keeper_index = 0;
	pair_ended = 0;
	runtime->shared.workers[keeper_index].ring.credit = 1;
	runtime->shared.config.before_park = linger;
	model_device_hold();
	model_thread_start_daemon("device", model_device, NULL);
	post_to_keeper(&pair[0]);
	post_to_keeper(&pair[1]);
	has_submitted = true;
	MODEL_CHECK(pinion_task_spawn_on(runtime, keeper_index, &tasks[0].request.task) == 0);
	model_await("the worker", is_on_its_way, NULL);
	model_quiet_end();
	model_await("both requests", has_pair_ended, NULL);
	model_quiet_begin();
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_runtime_end(runtime);
}

/* ---- a long one, whose first part another worker takes in ---- */

static void submit_long_and_block(struct model_task *task)
{
	static struct pinion_file disk_file = {
		.memory_align_bytes = 1, .offset_align_bytes = 1, .is_direct = 1};
	static uint8_t memory;

	request.op = PINION_OP_READ;
	request.file = &disk_file;
	request.bytes = &memory;
	request.length_bytes = 2 * (uint64_t)PIN_REQUEST_PART_BYTES;
	submit_and_block(task);
}

/* The first part was taken in, and the worker that did so sleeps again. */
static bool is_between_parts(const void *arg)
{
	(void)arg;
	return has_submitted &&
		(run_count > 0 ||
			(request.done_bytes == PIN_REQUEST_PART_BYTES &&
				is_parked(1 - keeper_index)));
}

/*
 * The second part is at the device by then: no thread waits for the watchdog.
 */
static void run_parts(void)
{
	begin();
	model_thread_start_daemon("device", model_device, NULL);
	spawn_first(submit_long_and_block, is_submitted);
	model_await("the first part", is_between_parts, NULL);
	MODEL_CHECK(run_count > 0 ||
		pin_ring_unsubmitted(&runtime->shared.workers[keeper_index].ring) == 0);
	model_await("the request", has_ended, NULL);
	finish();
}

/* ---- the end ---- */

static void run_stop(void)
{
	begin();
	model_thread_start_daemon("device", model_device, NULL);
	spawn_first(submit_and_go_on, has_help);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	MODEL_CHECK(run_count == 1);
	model_runtime_end(runtime);
}

static const struct model_mutant gathered_mutants[] = {
	{"the watchdog is not woken", {MODEL_SKIP, "submit_checked", "pin_watchdog_note_kept"}},
	{"it does not look at rings", {MODEL_SKIP, "keeps_work", "pin_remote_reap_is_wanted"}},
	{"no worker checks others' rings", {MODEL_SKIP, "reap_others", "pin_requests_reap_remote"}},
	{.name = NULL},
};

static const struct model_mutant in_flight_mutants[] = {
	{"the watchdog is not woken", {MODEL_SKIP, "tell_of_ring", "pin_watchdog_note_kept"}},
	{.name = NULL},
};

static const struct model_mutant back_mutants[] = {
	{"the worker does not lock", {MODEL_SKIP, "pin_requests_poll", "pin_remote_reap_enter"}},
	{"the remote reaper does not lock",
		{MODEL_SKIP, "pin_requests_reap_remote", "pin_remote_reap_take"}},
	{"no fence for the worker", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_mutant cancels_mutants[] = {
	{"a cancel does not lock", {MODEL_SKIP, "pin_request_cancel", "pin_remote_reap_enter"}},
	{.name = NULL},
};

static const struct model_mutant wake_mutants[] = {
	{"it sleeps though it was woken", {MODEL_SKIP, "sleep_in_ring", "pin_parker_is_parked"}},
	{.name = NULL},
};

static const struct model_mutant room_mutants[] = {
	{"it is relied on in its hook", {MODEL_SKIP, "call_hook", "pin_search_give_up"}},
	{"it parks beside room",
		{MODEL_SKIP, "pin_park_choose_mode", "pin_remote_reap_has_room_for_more"}},
	{"it sleeps beside room",
		{MODEL_SKIP, "sleep_in_ring", "pin_remote_reap_has_room_for_more"}},
	{.name = NULL},
};

static const struct model_mutant parts_mutants[] = {
	{"it leaves the next part where it is",
		{MODEL_SKIP, "pin_requests_reap_remote", "pin_ring_unsubmitted"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"gathered", run_gathered, 0, 1, 0, gathered_mutants, NULL},
	{"in_flight", run_in_flight, 1, 0, 0, in_flight_mutants, NULL},
	{"comes_back", run_comes_back, 1, 1, 0, back_mutants, NULL},
	{"lands", run_lands, 0, 1, 0, NULL, NULL},
	{"cancels", run_cancels, 1, 0, 0, cancels_mutants, NULL},
	{"wake", run_wake, 1, 0, 0, wake_mutants, NULL},
	{"room", run_room, 1, 0, 0, room_mutants, NULL},
	{"parts", run_parts, 0, 1, 0, parts_mutants, NULL},
	{"stop", run_stop, 0, 1, 0, NULL, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("ring_lock", cases, PIN_ARRAY_COUNT(cases));
}
