/* SPDX-License-Identifier: MIT */
/*
 * A worker's two further rings: one whose device is polled for completions, and
 * one of 128-byte entries for NVMe commands.
 *
 * submit.c sends transfers there that the first ring cannot carry as well; the
 * loop polls both while anything is in flight. Requests on them are in the
 * worker's lists like all others.
 *
 * Invariant: a worker never sleeps while a polled transfer is in flight, since
 * no interrupt would end that sleep, and never sleeps in its first ring without
 * a watch on the other one.
 */
#include "runtime/base/check.h"
#include "runtime/host/kernel.h"
#include "runtime/io/in_flight.h"
#include "runtime/io/request.h"
#include "runtime/worker/arena_growth.h"
#include "runtime/worker/request.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <string.h>

enum {
	/*
	 * A larger transfer takes the device longer than an interrupt costs,
	 * and kernels do not poll transfers that they had to split.
	 */
	POLLED_BYTES_MAX = 128 << 10,
};

/* ---- the polled ring: its life ---- */

/*
 * It takes, where the configuration's `polled` says so, reads and writes past
 * the page cache, of a size for which polling pays, of a disk for which sysfs
 * lists queues, or of any. They have been admitted like all others
 * (device_queue.c); where the second ring is full they go to the first, so
 * nothing ever waits for room in it. A transfer that the file system or the
 * device refuses goes to the first ring, too, and that device is not tried
 * again.
 *
 * While any is in flight the worker runs tasks and asks the device in between,
 * each time round its loop, and yields its CPU instead of sleeping
 * (pin_park_undo()). Nothing interrupts it, so a sleep would have no end.
 *
 * The ring takes no cancels, and the device would not get them. A transfer that
 * is cancelled, or past its deadline, ends when its device ends it, with the
 * device's result, unless it has to be tried again. A stop waits for that.
 */

/*
 * Makes the polled ring if the configuration asks for it. Without one the
 * worker reads by interrupts, so a refusal is a warning and no error.
 */
void pin_polled_start(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_ring_options options = {
		.entries = shared->tuning.ring_entries,
		.helper_count = shared->tuning.ring_helper_count,
		.is_polled = true,
		.kernel = &shared->kernel,
	};
	int rc;

	PIN_DCHECK(worker->ring.is_initialised && !worker->has_polled);
	if (shared->tuning.polled == PINION_POLLED_NEVER || worker->shares_ring ||
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
	PIN_CHECK(worker->polled.in_flight == 0); /* no interrupt would end them */
	if (worker->has_polled) {
		pin_ring_retire(&worker->polled);
	}
}

/* ---- the polled ring: in and out ---- */

static struct pin_account *account_of(struct pin_worker *worker, struct pinion_request *request)
{
	uint32_t place = pin_request_of(request)->cost.account_place;

	PIN_CHECK(place > 0 && place <= worker->device_queue.account_count);
	return &worker->device_queue.accounts[place - 1];
}

bool pin_polled_submit(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(worker->has_polled);
	PIN_DCHECK(!private->is_secondary && !private->is_waiting);
	if (request->file->is_direct == 0 || request->length_bytes > POLLED_BYTES_MAX ||
		!account_of(worker, request)->is_polled ||
		!pin_request_submit(&worker->polled, request)) {
		return false;
	}
	pin_secondary_enter(worker, private);
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

	return pin_request_has(request, PIN_OP_READS) && position < request->file->size_bytes;
}

/*
 * Not an error of the device: there is no polling here, or not of this
 * transfer. Any other error the first ring gets as well.
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

	PIN_DCHECK(!private->is_secondary && !private->is_waiting);
	pin_meter_add(&worker->meter.polled_refusals, 1);
	if (result == -EOPNOTSUPP) {
		account_of(worker, request)->is_polled = false;
	}
	if (private->ended_by != 0) {
		pin_request_end_with(worker, request, private->ended_by);
	} else if (!pin_request_submit(&worker->ring, request)) {
		private->is_waiting = true;
		pin_request_list_remove(&private->link);
		pin_request_list_push(&worker->waiting, &private->link);
	}
}

static void land_polled(void *arg, uint64_t user_data, int32_t result)
{
	struct pin_worker *worker = arg;
	struct pinion_request *request = (struct pinion_request *)(uintptr_t)user_data;

	if (PIN_UNLIKELY(result <= 0 && is_refusal(request, result))) {
		pin_in_flight_end(request);
		pin_secondary_leave(worker, pin_request_of(request));
		go_on_unpolled(worker, request, result);
		return;
	}
	request = pin_request_complete(&worker->polled, user_data, result);
	if (request != NULL) {
		pin_secondary_leave(worker, pin_request_of(request));
		pin_request_end(worker, worker, request);
	}
}

uint32_t pin_polled_poll(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker) && worker->has_polled);
	return pin_ring_poll_device(&worker->polled, land_polled, worker);
}

/* ---- the ring for commands ---- */

/*
 * That ring is made when the first such read comes, so that a worker without
 * such reads has none. The first ring watches it while the worker sleeps there,
 * so one wait is for both, and for all that else ends it:
 *
 *     worker                               device
 *     a  publishes that it sleeps          1  completes: command ring's queue
 *     b  command ring's queue empty?       2  armed? first ring's queue
 *     c  arms the watch, which looks
 *        at the command ring's queue again
 *     d  waits in the first ring
 *
 * The kernel's check in c sees completions between b and c; later ones fire the
 * watch. That is one poll for each sleep, and none for a worker that has more
 * to do. A watch that was armed for an earlier sleep, and has not fired since,
 * is as good as a new one.
 *
 * Calls take its place, one after the other and with the worker blocked, where
 * the kernel has no such ring or its driver does not take commands from one,
 * where rings are shared, without io_uring, and while the secondary ring is
 * full.
 *
 * The ring takes no cancels: a command on it ends when its device ends it.
 */

/*
 * The command ring, a ring of 128-byte entries: made, fed and reaped; and doing
 * without it.
 */

enum {
	/* More than devices are given to do at once. */
	SQE128_ENTRIES_MAX = 256,
};

/* ---- its life ---- */

/*
 * With the memory that the first ring knows, where that costs nothing: to
 * register it a second time would be charged again.
 */
static void take_buffers(struct pin_worker *worker)
{
	const struct pin_ring *first = &worker->ring;

	if (worker->shared->arenas_grow) {
		/* A clone would hold pages that are given back later. */
		pin_arena_growth_tell(worker, &worker->sqe128);
	} else if (first->registry != NULL &&
		pin_kernel_has(&worker->shared->kernel, PINION_IO_CLONE_BUFFERS)) {
		(void)pin_ring_clone(
			&worker->sqe128, &first->uring, first->registry, first->home_region);
	}
}

/*
 * Makes the ring for NVMe commands when the first such request comes. Where
 * that fails, this and all later requests are calls of ioctl(2), one at a time.
 */
static void open_sqe128_ring(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_ring_options options = {
		.entries = shared->tuning.ring_entries < SQE128_ENTRIES_MAX
			? shared->tuning.ring_entries
			: SQE128_ENTRIES_MAX,
		.helper_count = shared->tuning.ring_helper_count,
		.is_sqe128 = true,
		.kernel = &shared->kernel,
	};
	int rc = -EOPNOTSUPP;

	PIN_DCHECK(worker->commands_way == PIN_COMMANDS_UNTRIED);
	PIN_DCHECK(!worker->sqe128.is_initialised);
	worker->commands_way = PIN_COMMANDS_BY_CALLS;
	/* The caller that asked for it knows. */
	if (worker->shares_ring || worker->ring.is_fallback ||
		(pin_level_struck(shared->config.io_level, shared->tuning.io_without) &
			PINION_IO_NVME_COMMANDS) != 0) {
		return;
	}
	if (pin_kernel_has(&shared->kernel, PINION_IO_NVME_COMMANDS)) {
		rc = pin_ring_init(
			&worker->sqe128, shared->host, &worker->meter, &options, &shared->log);
	}
	if (rc < 0) {
		pin_log(&shared->log, PINION_LOG_WARN,
			"worker %u reads NVMe commands one at a time, as it has no ring for them: "
			"%s (Linux 5.19 brought it; its block device does without)",
			worker->index, strerror(-rc));
		return;
	}
	worker->commands_way = PIN_COMMANDS_BY_RING;
	pin_request_ask_parts(worker, &worker->sqe128);
	take_buffers(worker);
	pin_store_release_u32(&worker->sqe128_is_open, 1); /* [STALL-1] */
}

void pin_commands_end(struct pin_worker *worker)
{
	PIN_CHECK(worker->sqe128.in_flight == 0);
	if (worker->sqe128.is_initialised) {
		pin_ring_retire(&worker->sqe128);
	}
	worker->commands_way = PIN_COMMANDS_UNTRIED;
}

/* ---- in and out ---- */

static bool give_to_ring(struct pin_worker *worker, struct pinion_request *request)
{
	if (worker->commands_way == PIN_COMMANDS_UNTRIED) {
		open_sqe128_ring(worker);
	}
	PIN_DCHECK(worker->commands_way != PIN_COMMANDS_BY_RING || worker->sqe128.is_initialised);
	if (worker->commands_way != PIN_COMMANDS_BY_RING ||
		!pin_request_submit_command(&worker->sqe128, request)) {
		return false;
	}
	pin_secondary_enter(worker, pin_request_of(request));
	pin_meter_add(&worker->meter.ring_commands, 1);
	return true;
}

void pin_commands_begin(struct pin_worker *worker, struct pinion_request *request)
{
	if (!give_to_ring(worker, request)) {
		pin_request_list_push(&worker->in_flight, &pin_request_of(request)->link);
		pin_requests_carry_out(worker, request);
	}
}

/* The kernel's, not the device's: no commands by rings here, or not such. */
static bool is_kernels_word(int32_t result)
{
	return result == -EOPNOTSUPP || result == -ENOTTY || result == -EINVAL;
}

static void go_on_by_call(struct pin_worker *worker, struct pinion_request *request, int32_t result)
{
	struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(!private->is_secondary);
	PIN_DCHECK(worker->commands_way != PIN_COMMANDS_UNTRIED);
	if (result == -EINVAL) {
		/* Of commands, not the first kernels take registered memory. */
		pin_ring_forget_buffers(&worker->sqe128);
	} else {
		worker->commands_way = PIN_COMMANDS_BY_CALLS;
	}
	if (private->ended_by != 0) {
		pin_request_end_with(worker, request, private->ended_by);
	} else {
		pin_requests_carry_out(worker, request);
	}
}

static void land_command(void *arg, uint64_t user_data, int32_t result)
{
	struct pin_worker *worker = arg;
	struct pinion_request *request = (struct pinion_request *)(uintptr_t)user_data;

	if (PIN_UNLIKELY(is_kernels_word(result))) {
		pin_in_flight_end(request);
		pin_secondary_leave(worker, pin_request_of(request));
		go_on_by_call(worker, request, result);
		return;
	}
	request = pin_request_complete_command(&worker->sqe128, user_data, result);
	if (request != NULL) {
		pin_secondary_leave(worker, pin_request_of(request));
		pin_request_end(worker, worker, request);
	}
}

uint32_t pin_commands_poll(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker) && !worker->shares_ring);
	return pin_ring_poll_sqe128(&worker->sqe128, land_command, worker);
}
