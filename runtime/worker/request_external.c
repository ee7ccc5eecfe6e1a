/* SPDX-License-Identifier: MIT */
/*
 * Requests of other threads: from the submitter to the worker that begins them,
 * or, if that is stalled, to a searcher.
 *
 * submit.c posts on a thread that is no worker of the runtime; the loop takes
 * before it runs anything. request.h, "requests from other threads", has the
 * protocol.
 */
#include "runtime/worker/request.h"
#include "runtime/base/check.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

void pin_external_push(struct pin_worker *target, struct pin_list *list)
{
	PIN_DCHECK(!pin_list_is_empty(list));
	pin_injector_push(&target->external, list);
	pin_wake_worker(target, NULL);
	if (!pin_parker_is_parked(&target->parker)) {
		pin_fence_seq_cst(); /* [EXTERNAL-1] */
		pin_watchdog_tell_of_other(target->shared);
	}
}

struct pin_link *pin_external_pop(struct pin_worker *target)
{
	struct pin_list list = {0};
	bool has_more;

	return pin_injector_pop(&target->external, 1, 1, &list, &has_more) == 0
		? NULL
		: pin_list_pop(&list);
}

bool pin_external_may_adopt(const struct pin_worker *worker)
{
	PIN_DCHECK(!pin_worker_is_current(worker));
	return !pin_external_is_empty(worker) &&
		pin_load_acquire_u32(&worker->shared->cancels) == 0 && /* [EXTERNAL-2] */
		!pin_parker_is_parked(&worker->parker) && pin_search_is_stuck(worker);
}

static void post_cancel(struct pin_worker *target, struct pinion_request *request)
{
	PIN_DCHECK(pin_request_has(request, PIN_OP_TRAVELS));
	pin_request_of(request)->hops_left = target->shared->worker_count;
	request->result = 0;
	pin_external_hold(target->shared);
	pin_inbox_push(&target->inbox, pin_task_link(&request->task));
	pin_wake_worker(target, NULL);
}

static void offer(struct pin_worker *target, struct pin_list *list)
{
	if (!pin_list_is_empty(list)) {
		pin_external_push(target, list);
	}
}

/*
 * Pins each request's buffer now, while the submitter still holds it: the
 * worker may begin the request when that thread has long released it.
 */
void pin_request_post(
	struct pin_worker *target, struct pinion_request *const *requests, uint32_t count)
{
	struct pin_list list = {0};

	for (uint32_t i = 0; i < count; i++) {
		struct pin_request *private = pin_request_of(requests[i]);

		PIN_DCHECK(pin_task_kind(&requests[i]->task) == PIN_TASK_REQUEST);
		private->is_from_outside = true;
		if (pin_request_moves_bytes(requests[i])) {
			private->is_lent_own = false;
			private->was_free =
				!pin_worker_lend_posted(target, requests[i]->bytes, &private->lent);
		}
		pin_request_set(private, pin_request_word(target, PIN_REQUEST_POSTED));
		if (!pin_request_has(requests[i], PIN_OP_TRAVELS)) {
			pin_list_push(&list, pin_task_link(&requests[i]->task));
			continue;
		}
		/* After all that came before. */
		offer(target, &list);
		post_cancel(target, requests[i]);
	}
	offer(target, &list);
}
