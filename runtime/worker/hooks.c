/* SPDX-License-Identifier: MIT */
/*
 * Calls the embedder's hooks on the worker's thread: after start, at each tick,
 * before a sleep, before the end.
 *
 * While a hook runs, the thread counts as one from outside: its spawns pass the
 * gate, since no counted task keeps the runtime from ending meanwhile.
 */
#include "runtime/base/check.h"
#include "runtime/base/thread.h"
#include "runtime/worker/worker.h"

#include <string.h>

static void call(struct pin_worker *worker, pinion_worker_hook_fn hook)
{
	const struct pinion_config *config = &worker->shared->config;
	struct pin_thread *thread = pin_thread_own();

	PIN_CHECK(thread != NULL); /* since the worker's start */
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(worker->running_kind == PIN_RUNNING_TASK); /* no hook is called in a hook */
	pin_running_enter(worker, (pin_fault_fn)hook);
	worker->running_kind = PIN_RUNNING_HOOK;
	thread->worker_in_hook = worker;
	pin_worker_self = NULL;
	hook(config->hook_arg, worker->index, worker->context);
	pin_hooks_leave(worker);
}

void pin_hooks_leave(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_self == NULL);
	worker->running_kind = PIN_RUNNING_TASK;
	pin_worker_self = worker;
	pin_thread_find()->worker_in_hook = NULL;
}

static uint64_t interval_ns(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->shared->tuning.tick_interval_ms > 0);
	return (uint64_t)worker->shared->tuning.tick_interval_ms * 1000000;
}

int pin_hooks_start(struct pin_worker *worker)
{
	const struct pinion_config *config = &worker->shared->config;
	int rc = 0;

	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(worker->tick_ns == PIN_NO_DEADLINE && !worker->has_last_tick);
	if (config->after_start != NULL) {
		rc = config->after_start(config->hook_arg, worker->index, &worker->context);
	}
	if (rc >= 0 && config->on_tick != NULL) {
		worker->tick_ns = worker->shared->host->now_ns() + interval_ns(worker);
	}
	return rc < 0 ? rc : 0;
}

void pin_hooks_tick(struct pin_worker *worker)
{
	/* First: it may not return. */
	worker->tick_ns = worker->now_ns + interval_ns(worker);
	pin_meter_add(&worker->meter.ticks, 1);
	call(worker, worker->shared->config.on_tick);
}

void pin_hooks_park(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(worker->shared->config.before_park != NULL)) {
		call(worker, worker->shared->config.before_park);
	}
}

/* Each once: it may not return, and then this is called again. */
void pin_hooks_stop(struct pin_worker *worker)
{
	const struct pinion_config *config = &worker->shared->config;

	PIN_CHECK(pin_list_is_empty(&worker->ready) && pin_list_is_empty(&worker->posted));
	PIN_CHECK(pin_list_is_empty(&worker->urgent));
	if (config->on_tick != NULL && !worker->has_last_tick) {
		worker->has_last_tick = true;
		pin_hooks_tick(worker);
	}
	if (config->before_stop != NULL && !worker->has_stopped) {
		worker->has_stopped = true;
		call(worker, config->before_stop);
	}
}

/* ---- running users' functions ---- */

void pin_running_describe(pin_fault_fn function, char out_name[PIN_SYMBOL_BYTES])
{
	uint64_t address = 0;

	memcpy(&address, &function, sizeof(function));
	pin_symbols_name_own(address, out_name);
}
