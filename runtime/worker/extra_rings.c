/* SPDX-License-Identifier: MIT */
/*
 * The second ring: set up, fed, asked.
 */
#include "runtime/base/check.h"
#include "runtime/io/in_flight.h"
#include "runtime/worker/request.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <string.h>

enum {
	/*
	 * What is larger takes the device longer than an interrupt costs, and
	 * kernels do not poll what they had to split.
	 */
	POLLED_BYTES_MAX = 128 << 10,
};

/* ---- its life ---- */

void pin_polled_start(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_ring_options options = {
		.entries = shared->config.ring_entries,
		.helper_count = shared->config.ring_helper_count,
		.is_polled = true,
		.kernel = &shared->kernel,
	};
	int rc;

	if (shared->config.polled == PINION_POLLED_NEVER || worker->shares_ring ||
		worker->ring.is_fallback) {
		return;
	}
	rc = pin_ring_init(&worker->polled, shared->host, &worker->meter, &options, &shared->log);
	if (rc < 0) {
		pin_log(&shared->log, PINION_LOG_WARN,
			"worker %u polls no device: %s (reads and writes wait for interrupts, "
			"nothing else changes)",
			worker->index, strerror(-rc));
		return;
	}
	worker->has_polled = true;
}

void pin_polled_end(struct pin_worker *worker)
{
	if (worker->has_polled) {
		pin_ring_retire(&worker->polled);
	}
}

/* ---- in and out ---- */

static struct pin_ledger *ledger_of(struct pin_worker *worker, struct pinion_request *request)
{
	uint32_t place = pin_request_of(request)->toll.ledger_place;

	PIN_CHECK(place > 0 && place <= worker->throttle.ledger_count);
	return &worker->throttle.ledgers[place - 1];
}

bool pin_polled_submit(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	if (request->file->is_direct == 0 || request->length_bytes > POLLED_BYTES_MAX ||
		!ledger_of(worker, request)->is_polled ||
		!pin_request_submit(&worker->polled, request)) {
		return false;
	}
	pin_aside_enter(worker, private);
	pin_meter_add(&worker->meter.polled_transfers, 1);
	return true;
}

/*
 * Linux 6.1 now and then says 0 to a polled read across the end of a file,
 * where it has bytes; seen with an emulated NVMe drive on ext4. Where that end
 * has really moved, the first ring says so.
 */
static bool has_lost_bytes(struct pinion_request *request)
{
	uint64_t position = request->offset_bytes + pin_request_of(request)->resume_bytes;

	return request->op == PINION_OP_READ && position < request->file->size_bytes;
}

/*
 * Not an error of the device: no polling here, or not of this. Whatever it is,
 * the first ring gets to hear it as well.
 */
static bool is_refusal(struct pinion_request *request, int32_t result)
{
	return result == -EOPNOTSUPP || result == -EINVAL || result == -EAGAIN ||
		(result == 0 && has_lost_bytes(request));
}

static void go_on_unpolled(
	struct pin_worker *worker, struct pinion_request *request, int32_t result)
{
	struct pin_request *private = pin_request_of(request);

	pin_meter_add(&worker->meter.polled_refusals, 1);
	if (result == -EOPNOTSUPP) {
		ledger_of(worker, request)->is_polled = false;
	}
	if (private->ended_by != 0) {
		pin_flight_end_with(worker, request, private->ended_by);
	} else if (!pin_request_submit(&worker->ring, request)) {
		private->is_waiting = true;
		pin_flight_list_remove(&private->link);
		pin_flight_list_push(&worker->waiting, &private->link);
	}
}

static void land_polled(void *arg, uint64_t user_data, int32_t result)
{
	struct pin_worker *worker = arg;
	struct pinion_request *request = (struct pinion_request *)(uintptr_t)user_data;

	if (PIN_UNLIKELY(result <= 0 && is_refusal(request, result))) {
		pin_in_flight_end(request);
		pin_aside_leave(worker, pin_request_of(request));
		go_on_unpolled(worker, request, result);
		return;
	}
	request = pin_request_complete(&worker->polled, user_data, result);
	if (request != NULL) {
		pin_aside_leave(worker, pin_request_of(request));
		pin_flight_end(worker, worker, request);
	}
}

uint32_t pin_polled_poll(struct pin_worker *worker)
{
	return pin_ring_poll_device(&worker->polled, land_polled, worker);
}
