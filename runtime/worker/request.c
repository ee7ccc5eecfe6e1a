/* SPDX-License-Identifier: MIT */
/*
 * What all of a request's way has in common.
 */
#include "runtime/worker/request.h"

void pin_flight_init(struct pin_worker *worker)
{
	pin_flight_list_init(&worker->flying);
	pin_flight_list_init(&worker->waiting);
	pin_throttle_init(worker);
	worker->cancels.is_fenced = !worker->shared->has_fence_all;
	pin_timers_init(&worker->deadlines, worker->shared->host->now_ns());
}

void pin_flight_lock_cancels(struct pin_worker *owner)
{
	const struct pin_host *host = owner->shared->host;

	while (!pin_owned_take(&owner->cancels, host)) {
		host->yield();
	}
}
