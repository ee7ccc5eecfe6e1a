/* SPDX-License-Identifier: MIT */
/*
 * Accounts for tasks that fail, panic, throw or end their thread.
 *
 * The worker's main function calls pin_fault_recover() after each unwind that
 * the guard has caught; the code that runs tasks calls pin_fault_note() for a
 * negative result.
 *
 * Invariant: each task that was entered is counted as run or as cancelled
 * exactly once, also if it never returned. A drain waits for that sum
 * ([END-1]).
 */
#include "runtime/base/check.h"
#include "runtime/worker/events.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/state.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <pinion/fault.h>
#include <string.h>

/* Many failures must not become as many lookups of names either. */
static void say(struct pin_worker *worker, pin_fault_fn function, const char *what, int error)
{
	static const char format[] = "worker %u: task %s %s: %s (%d)";
	const struct pin_log *log = &worker->shared->log;
	char name[PIN_SYMBOL_BYTES];

	if (pin_log_try(log, PINION_LOG_WARN, format)) {
		pin_running_describe(function, name);
		pin_log_put(log, PINION_LOG_WARN, format, worker->index, name, what,
			strerror(-error), error);
	}
}

/* ---- failures ---- */

static void count(struct pin_worker *worker, int error)
{
	struct pin_shared *shared = worker->shared;
	uint32_t none = 0;

	PIN_DCHECK(error < 0); /* 0 would be kept as no failure */
	pin_meter_add(&worker->meter.tasks_failed, 1);
	if (pin_load_relaxed_u32(&shared->first_failure) == 0) {
		pin_cas_seq_cst_u32(&shared->first_failure, &none, (uint32_t)-error);
	}
	if (shared->tuning.fault_policy == PINION_FAULT_FAIL_FAST) {
		pin_shared_stop(shared);
	}
}

void pin_fault_note(struct pin_worker *worker, int error)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	say(worker, pin_running_of(worker), "failed", error);
	count(worker, error);
}

/* ---- ends without a return ---- */

static int error_of(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->panic_error <= 0);
	return worker->panic_error != 0 ? worker->panic_error : -EOWNERDEAD;
}

int pin_fault_error(void)
{
	return error_of(pin_worker_current());
}

static const char *name_of(enum pin_unwind_result unwind_result)
{
	switch (unwind_result) {
	case PIN_UNWIND_EXIT:
		return "called pthread_exit";
	case PIN_UNWIND_EXCEPTION:
		return "let an exception out";
	case PIN_UNWIND_UNWOUND:
	case PIN_UNWIND_RETURNED:
		break;
	}
	return "was unwound";
}

/*
 * Finishes the task that was unwound, in place of the code after its call,
 * which never ran. A hook is no task and is not counted.
 */
void pin_fault_recover(struct pin_worker *worker)
{
	enum pin_unwind_result unwind_result = worker->unwind_result;
	enum pin_running kind = worker->running_kind;
	int error = error_of(worker);

	PIN_DCHECK(pin_worker_of_thread() == worker);
	if (PIN_LIKELY(unwind_result == PIN_UNWIND_RETURNED)) {
		return;
	}
	worker->unwind_result = PIN_UNWIND_RETURNED;
	worker->panic_error = 0;
	worker->running_kind = PIN_RUNNING_TASK;
	if (unwind_result != PIN_UNWIND_UNWOUND) {
		say(worker, pin_running_of(worker), name_of(unwind_result), error);
	}
	if (kind == PIN_RUNNING_HOOK) {
		pin_hooks_leave(worker);
		return;
	}
	pin_meter_add(&worker->meter.tasks_unwound, 1);
	if (pin_events_are_traced(worker)) {
		pin_event_note(worker, PIN_TRACE_TASK_END, 0, error, 0, 0);
	}
	if (kind == PIN_RUNNING_CANCEL) {
		pin_meter_add(&worker->meter.tasks_cancelled, 1); /* [END-1] */
		return;
	}
	count(worker, error);
	PIN_TRACE2(task_end, worker->index, error);
	pin_meter_add(&worker->meter.tasks_run, 1); /* [END-1] */
}

static bool is_guarded(const struct pin_worker *worker)
{
	return worker->guard != NULL && pin_guard_is_running(worker->guard);
}

/* Now, since `said` may be in a frame that is about to go. */
static void say_panic(const struct pin_worker *worker, const char *said)
{
	static const char format[] = "worker %u: task %s panicked: %.200s: %s (%d)";
	const struct pin_log *log = &worker->shared->log;
	char name[PIN_SYMBOL_BYTES];

	if (pin_log_try(log, PINION_LOG_ERROR, format)) {
		pin_running_describe(pin_running_of(worker), name);
		pin_log_put(log, PINION_LOG_ERROR, format, worker->index, name, said,
			strerror(-worker->panic_error), worker->panic_error);
	}
}

void pinion_task_panic(int error, const char *message)
{
	struct pin_worker *worker = pin_worker_of_thread();
	const char *said = message != NULL ? message : "no reason given";

	if (worker == NULL || !is_guarded(worker)) {
		pin_check_misused(worker != NULL ? &worker->shared->log : NULL,
			"pinion_task_panic() outside of a worker's task: %s", said);
	}
	worker->panic_error = error < 0 ? error : -EINVAL;
	pin_event_panic(worker, (uintptr_t)pin_running_of(worker), worker->panic_error);
	say_panic(worker, said);
	pin_guard_unwind(worker->guard);
}
