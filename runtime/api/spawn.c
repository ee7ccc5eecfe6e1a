/* SPDX-License-Identifier: MIT */
/*
 * The public calls that give work to a runtime: tasks, batches, timers,
 * requests.
 *
 * Each finds out whether the caller is a worker of this runtime. A worker uses
 * its own queues without locked instructions; any other thread passes the gate
 * and the limit of the lane first.
 *
 * Invariant: a refused task is the caller's, unchanged; an accepted one ends by
 * `run` or `cancel`, once.
 */
#include "runtime/worker/spawn.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/worker/events.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/request.h"
#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wait.h"
#include "runtime/worker/wake.h"

#include <errno.h>
#include <pinion/request.h>
#include <pinion/timer.h>

#define PLAIN_FLAGS ((uint32_t)PINION_TASK_MANDATORY)
#define TASK_FLAGS (PLAIN_FLAGS | (uint32_t)PIN_TASK_LANES)

/* ---- spawning ---- */

/* Of the normal lane. */
static inline bool is_plain_task(const struct pinion_task *task)
{
	return task != NULL && task->run != NULL && (task->flags & ~PLAIN_FLAGS) == 0;
}

/* As most are that are spawned. */
static inline bool is_plain_idle_task(const struct pinion_task *task)
{
	return task != NULL && task->run != NULL && pin_task_is_plain_idle(task);
}

static bool is_lane_task(const struct pinion_task *task)
{
	return task != NULL && task->run != NULL && (task->flags & ~TASK_FLAGS) == 0 &&
		(task->flags & PIN_TASK_LANES) != PIN_TASK_LANES;
}

static inline bool is_task(const struct pinion_task *task)
{
	return PIN_LIKELY(is_plain_task(task)) || is_lane_task(task);
}

static PIN_INLINE int check_task(
	const struct pinion_runtime *runtime, const struct pinion_task *task)
{
	if (!is_task(task)) {
		return -EINVAL;
	}
	return pin_runtime_is_foreign(runtime) ? -ECHILD : 0;
}

/* The caller's mistake, which check builds name; may read a running task. */
static PIN_APART PIN_COLD int refuse_busy(
	const struct pinion_runtime *runtime, const struct pinion_task *task)
{
#ifdef PIN_ENABLE_DCHECK
	char name[PIN_SYMBOL_BYTES];

	pin_running_describe((pin_fault_fn)task->run, name);
	pin_log(&runtime->shared.log, PINION_LOG_WARN,
		"task %p (%s) is spawned, and waits to be run already", (const void *)task, name);
#else
	(void)runtime;
	(void)task;
#endif
	return -EBUSY;
}

/* 0: the task is the runtime's; should it be refused after all, release it. */
static PIN_INLINE int claim_task(const struct pinion_runtime *runtime, struct pinion_task *task)
{
	int rc = check_task(runtime, task);

	if (rc == 0 && PIN_UNLIKELY(!pin_task_claim(task))) {
		rc = refuse_busy(runtime, task);
	}
	PIN_DCHECK(rc != 0 || !pin_task_is_idle(task));
	return rc;
}

/* As `rc` says: a refused task is its user's again. */
static PIN_INLINE int settle(int rc, struct pinion_task *task)
{
	PIN_DCHECK(rc <= 0);
	if (PIN_UNLIKELY(rc != 0)) {
		PIN_DCHECK(!pin_task_is_idle(task)); /* it was claimed */
		pin_task_release(task);
	}
	return rc;
}

static PIN_APART PIN_COLD void release_all(struct pinion_task *const *tasks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		PIN_DCHECK(!pin_task_is_idle(tasks[i]));
		pin_task_release(tasks[i]);
	}
}

/* Each in turn, so that a task listed twice is busy the second time. */
static PIN_INLINE int claim_batch(const struct pinion_runtime *runtime,
	struct pinion_task *const *tasks, uint32_t count, uint32_t *out_flags)
{
	*out_flags = 0;
	for (uint32_t i = 0; i < count; i++) {
		int rc = is_task(tasks[i]) ? 0 : -EINVAL;

		if (rc == 0 && PIN_UNLIKELY(!pin_task_claim(tasks[i]))) {
			rc = refuse_busy(runtime, tasks[i]);
		}
		if (PIN_UNLIKELY(rc != 0)) {
			release_all(tasks, i);
			return rc;
		}
		PIN_DCHECK(!pin_task_is_idle(tasks[i]));
		*out_flags |= tasks[i]->flags;
	}
	return 0;
}

/* ---- from outside ---- */

static struct pin_room_counts count_lanes(struct pinion_task *const *tasks, uint32_t count)
{
	struct pin_room_counts counts = {0};

	for (uint32_t i = 0; i < count; i++) {
		PIN_DCHECK((uint32_t)pin_task_lane(tasks[i]) < PIN_LANES);
		counts.of[pin_task_lane(tasks[i])]++;
	}
	PIN_DCHECK(counts.of[PINION_LANE_NORMAL] + pin_room_others(&counts) == count);
	return counts;
}

static PIN_INLINE void push_normal(
	struct pin_shared *shared, struct pinion_task *const *tasks, uint32_t count)
{
	struct pin_list list = {0};

	for (uint32_t i = 0; i < count; i++) {
		PIN_DCHECK((tasks[i]->flags & PIN_TASK_LANES) == 0);
		PIN_DCHECK(!pin_task_is_idle(tasks[i]));
		pin_list_push(&list, pin_task_link(tasks[i]));
	}
	PIN_TRACE3(spawn_external, tasks[0], tasks[0]->run, count);
	pin_injector_push(&shared->injector, &list);
	pin_wake_one(shared, NULL);
}

/* Before they are queued. */
static PIN_APART void note_external(
	const struct pin_shared *shared, struct pinion_task *const *tasks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		pin_event_note_external(shared, NULL, tasks[i]);
	}
}

static PIN_APART int spawn_lanes_outside(struct pin_shared *shared,
	struct pinion_task *const *tasks, uint32_t count, struct pinion_full *out_full)
{
	struct pin_room_counts counts = count_lanes(tasks, count);
	int rc = pin_room_admit_lanes(shared, &counts, out_full);

	PIN_DCHECK(count > 0 && rc <= 0);
	if (rc == 0) {
		for (uint32_t i = 0; i < count; i++) {
			pin_event_spawn_external(shared, NULL, tasks[i]);
		}
		pin_room_note_elsewhere(shared, pin_room_others(&counts));
		pin_entry_push_lanes(shared, tasks, count);
	}
	return rc;
}

/* Of the normal lane; admitted first, as refused tasks stay untouched. */
static PIN_INLINE int spawn_normal_outside(struct pin_shared *shared,
	struct pinion_task *const *tasks, uint32_t count, struct pinion_full *out_full)
{
	int rc = pin_room_admit(shared, count, out_full);

	PIN_DCHECK(count > 0 && rc <= 0);
	if (rc == 0) {
		if (PIN_UNLIKELY(shared->trace != NULL)) {
			note_external(shared, tasks, count);
		}
		push_normal(shared, tasks, count);
	}
	return rc;
}

static PIN_INLINE int spawn_one_of_any_lane(struct pin_shared *shared, struct pinion_task *task)
{
	return PIN_UNLIKELY((task->flags & PIN_TASK_LANES) != 0)
		? spawn_lanes_outside(shared, &task, 1, NULL)
		: spawn_normal_outside(shared, &task, 1, NULL);
}

/* An admission for tasks that wait elsewhere than in the queues all share. */
static bool admit_elsewhere(struct pin_shared *shared, uint32_t count)
{
	PIN_DCHECK(count > 0);
	if (!pin_gate_admit(&shared->gate, count)) {
		return false;
	}
	pin_room_note_elsewhere(shared, count);
	return true;
}

/* Past what the likely spawn looks at: in a lane, or refused. */
static PIN_APART int spawn_unlikely(struct pinion_runtime *runtime, struct pinion_task *task)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);
	int rc = claim_task(runtime, task);

	if (rc != 0) {
		return rc;
	}
	return settle(worker != NULL ? pin_worker_spawn_lanes(worker, &task, 1)
				     : spawn_one_of_any_lane(&runtime->shared, task),
		task);
}

/* In a child of the runtime's process, or of a runtime with a trace. */
static PIN_APART PIN_COLD int spawn_one_apart(
	struct pinion_runtime *runtime, struct pinion_task *task)
{
	return settle(pin_runtime_is_foreign(runtime)
			? -ECHILD
			: spawn_normal_outside(&runtime->shared, &task, 1, NULL),
		task);
}

/* Of the normal lane. Apart: a worker's spawn needs no frame. */
static PIN_APART int spawn_one_outside(struct pinion_runtime *runtime, struct pinion_task *task)
{
	int rc;

	PIN_DCHECK(!pin_task_is_idle(task) && (task->flags & PIN_TASK_LANES) == 0);
	PIN_DCHECK(pin_runtime_own_worker(runtime) == NULL);
	if (PIN_UNLIKELY(runtime->forked_untraced != pin_forked_now())) {
		return spawn_one_apart(runtime, task);
	}
	rc = pin_room_admit(&runtime->shared, 1, NULL);
	if (PIN_UNLIKELY(rc != 0)) {
		return settle(rc, task);
	}
	push_normal(&runtime->shared, &task, 1);
	return 0;
}

int pinion_task_spawn(struct pinion_runtime *runtime, struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();

	if (PIN_UNLIKELY(!is_plain_idle_task(task) || !pin_task_claim_idle(task))) {
		return spawn_unlikely(runtime, task);
	}
	PIN_DCHECK(!pin_task_is_idle(task) && (task->flags & PIN_TASK_LANES) == 0);
	/* A worker's thread is never a child's. */
	if (PIN_LIKELY(worker != NULL && worker->shared == &runtime->shared)) {
		return pin_worker_spawn(worker, task);
	}
	return spawn_one_outside(runtime, task);
}

/* As above. */
static PIN_APART int respawn_unlikely(
	struct pinion_runtime *runtime, struct pin_worker *worker, struct pinion_task *task)
{
	int rc = check_task(runtime, task);

	PIN_DCHECK(worker == pin_runtime_own_worker(runtime));
	if (rc == 0 && worker == NULL) {
		rc = -EPERM;
	}
	if (rc == 0 && pin_shared_is_stopping(&runtime->shared)) {
		rc = -ESHUTDOWN;
	}
	if (rc == 0 && PIN_UNLIKELY(!pin_task_claim(task))) {
		rc = refuse_busy(runtime, task);
	}
	if (rc == 0) {
		pin_worker_respawn(worker, task);
	}
	return rc;
}

int pinion_task_respawn(struct pinion_runtime *runtime, struct pinion_task *task)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);

	if (PIN_UNLIKELY(worker == NULL || !is_plain_idle_task(task) ||
		    pin_shared_is_stopping(&runtime->shared) || !pin_task_claim_idle(task))) {
		return respawn_unlikely(runtime, worker, task);
	}
	PIN_DCHECK(!pin_task_is_idle(task) && (task->flags & PIN_TASK_LANES) == 0);
	pin_worker_respawn(worker, task);
	return 0;
}

int pinion_task_spawn_shared(struct pinion_runtime *runtime, struct pinion_task *task)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);
	int rc = claim_task(runtime, task);

	if (rc != 0) {
		return rc;
	}
	return settle(worker != NULL ? pin_worker_spawn_shared(worker, task)
				     : spawn_one_of_any_lane(&runtime->shared, task),
		task);
}

/*
 * The target may be any worker, so the task goes by its inbox, which thieves
 * leave alone.
 */
int pinion_task_spawn_on(
	struct pinion_runtime *runtime, uint32_t worker_index, struct pinion_task *task)
{
	struct pin_shared *shared = &runtime->shared;
	struct pin_worker *worker = pin_runtime_own_worker(runtime);
	struct pin_worker *target;
	int rc = check_task(runtime, task);

	if (rc != 0) {
		return rc;
	}
	if (worker_index >= shared->worker_count) {
		return -EINVAL;
	}
	if (PIN_UNLIKELY(!pin_task_claim(task))) {
		return refuse_busy(runtime, task);
	}
	target = &shared->workers[worker_index];
	PIN_DCHECK(target->index == worker_index && target->shared == shared);
	if (worker != NULL) {
		return settle(pin_worker_spawn_on(worker, target, task), task);
	}
	if (!admit_elsewhere(shared, 1)) {
		return settle(-ESHUTDOWN, task);
	}
	pin_event_spawn_external(shared, target, task);
	pin_inbox_push(&target->inbox, pin_task_link(task));
	pin_wake_worker(target, NULL);
	return 0;
}

/*
 * Claims every task before the first is queued: the batch is accepted as a
 * whole or refused as a whole.
 */
static PIN_INLINE int spawn_batch(struct pinion_runtime *runtime, struct pinion_task *const *tasks,
	uint32_t count, struct pinion_full *out_full)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);
	uint32_t flags;
	int rc;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	rc = claim_batch(runtime, tasks, count, &flags);
	if (rc != 0 || count == 0) {
		return rc;
	}
	PIN_DCHECK((flags & ~TASK_FLAGS) == 0);
	if ((flags & PIN_TASK_LANES) == 0) {
		rc = worker != NULL
			? pin_worker_spawn_batch(worker, tasks, count)
			: spawn_normal_outside(&runtime->shared, tasks, count, out_full);
	} else {
		rc = worker != NULL ? pin_worker_spawn_lanes(worker, tasks, count)
				    : spawn_lanes_outside(&runtime->shared, tasks, count, out_full);
	}
	PIN_DCHECK(rc <= 0);
	if (rc != 0) {
		release_all(tasks, count);
	}
	return rc;
}

int pinion_task_spawn_batch(
	struct pinion_runtime *runtime, struct pinion_task *const *tasks, uint32_t count)
{
	return spawn_batch(runtime, tasks, count, NULL);
}

int pinion_task_spawn_batch_full(struct pinion_runtime *runtime, struct pinion_task *const *tasks,
	uint32_t count, struct pinion_full *out_full)
{
	return spawn_batch(runtime, tasks, count, out_full);
}

/* ---- timers ---- */

uint64_t pinion_clock_now_ns(void)
{
	return pin_host_linux.now_ns();
}

static void post_timer(struct pin_shared *shared, struct pinion_timer *timer)
{
	PIN_DCHECK(!pin_task_is_idle(&timer->task));
	pin_room_note_elsewhere(shared, 1);
	pin_timer_post(timer);
	pin_inbox_push(&shared->timer_inbox, pin_task_link(&timer->task));
	pin_wake_one(shared, NULL);
}

/*
 * The runtime reserves an admission for the timer's task now, so that it can
 * run after the gate has closed.
 */
int pinion_timer_start(
	struct pinion_runtime *runtime, struct pinion_timer *timer, uint64_t deadline_ns)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);
	int rc = timer == NULL ? -EINVAL : check_task(runtime, &timer->task);

	if (rc == 0) {
		rc = pin_timer_claim(timer, deadline_ns);
	}
	if (rc != 0) {
		return rc;
	}
	PIN_DCHECK(!pin_task_is_idle(&timer->task));
	rc = pin_runtime_reserve(runtime);
	if (rc != 0) {
		pin_timer_disclaim(timer);
		return rc;
	}
	if (worker != NULL) {
		pin_worker_timer_start(worker, timer);
	} else {
		post_timer(&runtime->shared, timer);
	}
	return 0;
}

/*
 * The state decides whether the cancel came in time; if the timer is on another
 * worker's wheel, that worker is informed.
 */
int pinion_timer_cancel(struct pinion_runtime *runtime, struct pinion_timer *timer)
{
	bool must_post;
	uint32_t index;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (!pin_timer_cancel(timer, &must_post, &index)) {
		return -EALREADY;
	}
	if (must_post) {
		PIN_DCHECK(index < runtime->shared.worker_count);
		pin_worker_timer_cancelled(
			pin_runtime_own_worker(runtime), &runtime->shared.workers[index], timer);
	}
	return 0;
}

/* ---- waits ---- */

int pinion_wait_cancel(struct pinion_runtime *runtime, struct pinion_wait *wait)
{
	return pin_runtime_is_foreign(runtime) ? -ECHILD : pin_wait_cancel(wait);
}

/* ---- requests ---- */

/* The most urgent lane of these: they go to one worker. */
static enum pinion_lane lane_of_all(struct pinion_request *const *requests, uint32_t count)
{
	enum pinion_lane lane = PINION_LANE_LOW;

	for (uint32_t i = 0; i < count; i++) {
		enum pinion_lane other = pin_task_lane(&requests[i]->task);

		PIN_DCHECK((uint32_t)other < PIN_LANES);
		lane = other < lane ? other : lane;
	}
	return lane;
}

_Static_assert(PINION_LANE_HIGH < PINION_LANE_NORMAL && PINION_LANE_NORMAL < PINION_LANE_LOW,
	"the more urgent, the less");

/* All posted to one worker, in order. */
static int submit_outside(
	struct pin_shared *shared, struct pinion_request *const *requests, uint32_t count)
{
	int rc = pin_request_claim(requests, count);

	PIN_DCHECK(count > 0);
	if (rc != 0) {
		return pin_requests_explain(shared, requests, count, rc);
	}
	if (!admit_elsewhere(shared, count)) {
		pin_request_disclaim(requests, count);
		return -ESHUTDOWN;
	}
	pin_request_post(
		pin_external_choose(shared, lane_of_all(requests, count)), requests, count);
	return 0;
}

/* Checks the numbers of all operations before any request is claimed. */
int pinion_request_submit_batch(
	struct pinion_runtime *runtime, struct pinion_request *const *requests, uint32_t count)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	for (uint32_t i = 0; i < count; i++) {
		/* The library's own operations have higher numbers. */
		if (requests[i] == NULL || requests[i]->op >= PIN_OP_PUBLIC_COUNT) {
			return pin_requests_explain(&runtime->shared, requests, count, -EINVAL);
		}
	}
	if (count == 0) {
		return 0;
	}
	return worker != NULL ? pin_worker_submit(worker, requests, count)
			      : submit_outside(&runtime->shared, requests, count);
}

/* Apart: only here its address is needed. */
static PIN_APART int submit_one_outside(
	struct pinion_runtime *runtime, struct pinion_request *request)
{
	return pin_runtime_is_foreign(runtime) ? -ECHILD
					       : submit_outside(&runtime->shared, &request, 1);
}

/* Apart for the same reason. */
static PIN_APART int refuse_unknown(
	const struct pinion_runtime *runtime, struct pinion_request *request)
{
	return pin_runtime_is_foreign(runtime)
		? -ECHILD
		: pin_requests_explain(&runtime->shared, &request, 1, -EINVAL);
}

int pinion_request_submit(struct pinion_runtime *runtime, struct pinion_request *request)
{
	struct pin_worker *worker = pin_worker_current();

	/* The library's own operations have higher numbers. */
	if (PIN_UNLIKELY(request == NULL || request->op >= PIN_OP_PUBLIC_COUNT)) {
		return refuse_unknown(runtime, request);
	}
	/* A worker's thread is never a child's. */
	if (PIN_LIKELY(worker != NULL && worker->shared == &runtime->shared)) {
		return pin_worker_submit_one(worker, request);
	}
	return submit_one_outside(runtime, request);
}

/*
 * The request's state decides here whether the cancel came in time; on the
 * message, its worker asks the kernel to end the operation.
 */
int pinion_request_cancel(struct pinion_runtime *runtime, struct pinion_request *request)
{
	struct pin_shared *shared = &runtime->shared;
	struct pin_worker *worker = pin_runtime_own_worker(runtime);
	bool must_post;
	uint32_t index;
	int rc;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	rc = pin_request_cancel(shared, worker, request, &must_post, &index);
	PIN_DCHECK(!must_post || (rc == 0 && worker != &shared->workers[index]));
	if (must_post) {
		PIN_DCHECK(index < shared->worker_count);
		pin_inbox_push(&shared->workers[index].inbox, pin_task_link(&request->task));
		pin_wake_worker(&shared->workers[index], worker);
	}
	return rc;
}
