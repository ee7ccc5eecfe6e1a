/* SPDX-License-Identifier: MIT */
/*
 * The early end of a scan: each worker ends what it has in flight of it.
 *
 * Called by any thread; see [CANCEL-1] in scan.h.
 */
#include "runtime/scan/scan.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/worker/request.h"

static const uint64_t one_canceller = 1;

static int end_requests(struct pinion_task *task)
{
	struct pin_scan_worker *part = PIN_CONTAINER_OF(task, struct pin_scan_worker, canceller);
	struct pinion_scan *scan = part->scan;

	PIN_DCHECK(part == &scan->workers[pin_worker_current()->index]);
	pin_requests_abandon_among(
		pin_worker_current(), scan->slots, scan->slot_count * sizeof(*scan->slots));
	/* The last touch. */
	pinion_budget_release(&scan->idle_cancellers, &one_canceller);
	return 0;
}

/* The runtime is being stopped, which ends all requests. */
static void skip_requests(struct pinion_task *task)
{
	struct pin_scan_worker *part = PIN_CONTAINER_OF(task, struct pin_scan_worker, canceller);

	pinion_budget_release(&part->scan->idle_cancellers, &one_canceller);
}

void pinion_scan_cancel(struct pinion_scan *scan)
{
	uint32_t worker_count = pinion_runtime_worker_count(scan->runtime);
	uint32_t not_yet = 0;

	if (!pin_cas_seq_cst_u32(&scan->is_cancelled, &not_yet, 1)) { /* [CANCEL-1] */
		return;
	}
	for (uint32_t i = 0; i < worker_count; i++) {
		struct pin_scan_worker *part = &scan->workers[i];
		int rc = pinion_budget_try_acquire(&scan->idle_cancellers, &one_canceller);

		PIN_CHECK(rc == 0);
		part->canceller =
			(struct pinion_task){.run = end_requests, .cancel = skip_requests};
		if (pinion_task_spawn_on(scan->runtime, i, &part->canceller) < 0) {
			skip_requests(&part->canceller);
		}
	}
}

void pin_scan_await_cancellers(struct pinion_scan *scan)
{
	uint64_t count = pinion_runtime_worker_count(scan->runtime);
	int rc = pinion_budget_acquire_wait(&scan->idle_cancellers, &count, UINT64_MAX);

	PIN_CHECK(rc == 0);
}
