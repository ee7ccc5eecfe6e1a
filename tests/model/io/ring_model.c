/* SPDX-License-Identifier: MIT */
/*
 * Rings without a kernel.
 */
#include "tests/model/io/ring_model.h"
#include "runtime/base/check.h"
#include "runtime/io/file.h"
#include "runtime/io/request.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <pinion/request.h>
#include <string.h>

enum {
	RINGS_MAX = 6,
	QUEUE_MAX = 16,
};

struct completion {
	uint64_t user_data;
	int32_t result;
};

struct ring {
	/* The completion queue; `posted` is its tail. */
	struct pin_atomic_u32 posted;
	uint32_t reaped;
	struct completion completions[QUEUE_MAX];
	/* Gathered by the owner, not yet submitted. */
	uint64_t gathered[QUEUE_MAX];
	uint32_t submitted_count;
	uint32_t gathered_count;
	bool has_gathered_poll;
	uint64_t gathered_cancels[QUEUE_MAX];
	uint32_t gathered_cancel_count;
	/* At the device. */
	uint64_t pending[QUEUE_MAX];
	uint32_t pending_count;
	bool has_poll;
	/* The ring whose completions end a wait in this one, and that once. */
	struct ring *gathered_watch;
	struct ring *watch;
	uint32_t eventfd_count;
	bool is_freed;
	bool is_in_use;
};

static struct {
	struct ring rings[RINGS_MAX];
	uint32_t ring_count;
	enum pin_doorbell_kind kind;
	bool is_held;
	void (*on_exit)(void);
	const struct pin_shared *ends[MODEL_THREADS_MAX]; /* by the reporting worker */
	uint32_t end_count;
} device;

bool model_shares_rings;
uint64_t model_near_ns;

bool model_rings_have_completions(void)
{
	for (uint32_t i = 0; i < device.ring_count; i++) {
		if (device.rings[i].posted.value != device.rings[i].reaped) {
			return true;
		}
	}
	return false;
}

void model_rings_begin(enum pin_doorbell_kind kind)
{
	memset(&device, 0, sizeof(device));
	device.kind = kind;
}

void model_device_hold(void)
{
	device.is_held = true;
}

void model_device_release(void)
{
	device.is_held = false;
}

void model_on_worker_exit(void (*hook)(void))
{
	device.on_exit = hook;
}

void model_note_end(const struct pin_shared *shared)
{
	MODEL_CHECK(device.end_count < MODEL_THREADS_MAX);
	device.ends[device.end_count] = shared;
	device.end_count++;
}

uint32_t model_end_count(const struct pin_shared *shared)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < device.end_count; i++) {
		count += device.ends[i] == shared ? 1 : 0;
	}
	return count;
}

static struct ring *ring_of(const struct pin_ring *ring)
{
	struct ring *own = &device.rings[ring->enter_fd];

	MODEL_CHECK(!own->is_freed);
	return own;
}

/* Two threads at once would break it. */
static void use(struct ring *ring)
{
	MODEL_CHECK(!ring->is_in_use);
	ring->is_in_use = true;
}

static void leave(struct ring *ring)
{
	ring->is_in_use = false;
}

/* These have rings, so nothing waits without one. */
bool pin_sync_waits_hold(const struct pin_ring *ring, uint64_t user_data)
{
	(void)user_data;
	MODEL_CHECK(ring->is_fallback);
	return false;
}

/* ---- the kernel's side ---- */

static void post(struct ring *ring, uint64_t user_data, int32_t result)
{
	/*
	 * No other thread runs between the two: the next point is the next
	 * operation.
	 */
	uint32_t tail = pin_fetch_add_acq_rel_u32(&ring->posted, 1);

	MODEL_CHECK(tail - ring->reaped < QUEUE_MAX);
	ring->completions[tail % QUEUE_MAX] =
		(struct completion){.user_data = user_data, .result = result};
	for (uint32_t i = 0; i < device.ring_count; i++) {
		if (device.rings[i].watch == ring) {
			device.rings[i].watch = NULL;
			post(&device.rings[i], PIN_RING_TAG_WATCH, 0);
		}
	}
}

static void complete_at(struct ring *ring, uint32_t index, int32_t result)
{
	uint64_t user_data = ring->pending[index];

	ring->pending_count--;
	memmove(&ring->pending[index], &ring->pending[index + 1],
		(ring->pending_count - index) * sizeof(ring->pending[0]));
	post(ring, user_data, result);
}

/* A completed request is not found. */
static void cancel(struct ring *ring, uint64_t user_data)
{
	for (uint32_t i = 0; i < ring->pending_count; i++) {
		if (ring->pending[i] == user_data) {
			complete_at(ring, i, -ECANCELED);
			return;
		}
	}
}

static bool device_has_work(const void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < device.ring_count; i++) {
		if (device.rings[i].pending_count > 0) {
			return !device.is_held;
		}
	}
	return false;
}

void model_device(void *arg)
{
	(void)arg;
	for (;;) {
		model_await("a request", device_has_work, NULL);
		for (uint32_t i = 0; i < device.ring_count; i++) {
			if (device.rings[i].pending_count > 0) {
				complete_at(&device.rings[i], 0, 0);
				break;
			}
		}
	}
}

/* A completion that is there already ends the wait at once. */
static void arm_watch(struct ring *ring)
{
	struct ring *watched = ring->gathered_watch;

	ring->gathered_watch = NULL;
	if (watched->posted.value != watched->reaped) {
		post(ring, PIN_RING_TAG_WATCH, 0);
	} else {
		ring->watch = watched;
	}
}

static void submit(struct ring *ring)
{
	model_point();
	for (uint32_t i = 0; i < ring->gathered_count; i++) {
		MODEL_CHECK(ring->pending_count < QUEUE_MAX);
		ring->pending[ring->pending_count] = ring->gathered[i];
		ring->pending_count++;
	}
	ring->submitted_count += ring->gathered_count;
	ring->gathered_count = 0;
	if (ring->has_gathered_poll) {
		ring->has_gathered_poll = false;
		ring->has_poll = true;
		if (ring->eventfd_count > 0) {
			post(ring, PIN_RING_TAG_DOORBELL, 0);
		}
	}
	if (ring->gathered_watch != NULL) {
		arm_watch(ring);
	}
	for (uint32_t i = 0; i < ring->gathered_cancel_count; i++) {
		cancel(ring, ring->gathered_cancels[i]);
		post(ring, PIN_RING_TAG_CANCEL, 0);
	}
	ring->gathered_cancel_count = 0;
}

/* ---- the ring, as io/ring.h has it ---- */

int pin_ring_init(struct pin_ring *ring, const struct pin_host *host, struct pin_meter *meter,
	const struct pin_ring_options *options, const struct pin_log *log)
{
	(void)log;
	MODEL_CHECK(device.ring_count < RINGS_MAX);
	*ring = (struct pin_ring){
		.host = host,
		.meter = meter,
		.credit = options->entries < QUEUE_MAX ? options->entries : QUEUE_MAX,
		.doorbell_kind = device.kind,
		.enter_fd = (int)device.ring_count,
		.is_initialised = true,
		.is_polled = options->is_polled,
		.is_sqe128 = options->is_sqe128,
		.uring.ring_fd = (int)device.ring_count,
	};
	device.ring_count++;
	return 0;
}

void pin_ring_forget_buffers(struct pin_ring *ring)
{
	(void)ring;
}

void pin_ring_retire(struct pin_ring *ring)
{
	(void)ring_of(ring);
	if (device.on_exit != NULL) {
		device.on_exit();
	}
}

void pin_ring_fini(struct pin_ring *ring)
{
	struct ring *own;

	if (!ring->is_initialised) {
		return;
	}
	own = ring_of(ring);
	MODEL_CHECK(ring->in_flight == 0);
	own->is_freed = true;
	ring->is_initialised = false;
}

uint32_t pin_ring_unsubmitted(const struct pin_ring *ring)
{
	const struct ring *own = ring_of(ring);

	return own->gathered_count + (own->has_gathered_poll ? 1 : 0) +
		(own->gathered_watch != NULL ? 1 : 0) + own->gathered_cancel_count;
}

uint32_t pin_ring_submitted(const struct pin_ring *ring)
{
	return ring_of(ring)->submitted_count;
}

bool pin_ring_has_completions(const struct pin_ring *ring)
{
	const struct ring *own = ring_of(ring);

	return pin_load_acquire_u32(&own->posted) != own->reaped;
}

bool pin_ring_owes_completions(const struct pin_ring *ring)
{
	return pin_ring_has_completions(ring);
}

uint32_t pin_ring_reaped(const struct pin_ring *ring)
{
	return ring_of(ring)->reaped;
}

bool pin_ring_has_work(const struct pin_ring *ring)
{
	const struct ring *own = ring_of(ring);

	return pin_ring_unsubmitted(ring) > 0 || pin_load_acquire_u32(&own->posted) != own->reaped;
}

uint32_t pin_ring_poll_device(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	uint32_t delivered;

	MODEL_CHECK(ring->is_polled);
	delivered = pin_ring_poll(ring, deliver, arg);
	if (delivered == 0) {
		/* Or it would ask for ever. */
		model_yield();
	}
	return delivered;
}

uint32_t pin_ring_poll_sqe128(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	MODEL_CHECK(ring->is_sqe128);
	return pin_ring_poll(ring, deliver, arg);
}

uint32_t pin_ring_poll(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	struct ring *own = ring_of(ring);
	uint32_t delivered = 0;

	use(own);
	if (pin_ring_unsubmitted(ring) > 0) {
		submit(own);
	}
	while (pin_load_acquire_u32(&own->posted) != own->reaped) {
		struct completion completion = own->completions[own->reaped % QUEUE_MAX];

		own->reaped++;
		if (completion.user_data == PIN_RING_TAG_WATCH) {
			ring->watch_is_armed = false;
		} else if (completion.user_data != PIN_RING_TAG_DOORBELL &&
			completion.user_data != PIN_RING_TAG_CANCEL) {
			ring->in_flight--;
			delivered++;
			deliver(arg, completion.user_data, completion.result);
		}
	}
	leave(own);
	return delivered;
}

void pin_ring_prepare_wait(struct pin_ring *ring)
{
	struct ring *own = ring_of(ring);

	if (ring->doorbell_kind == PIN_DOORBELL_EVENTFD && !ring->doorbell_is_armed) {
		own->has_gathered_poll = true;
		ring->doorbell_is_armed = true;
	}
}

void pin_ring_watch(struct pin_ring *ring, const struct pin_ring *sqe128)
{
	MODEL_CHECK(sqe128->is_sqe128 && !ring->is_sqe128);
	if (!ring->watch_is_armed) {
		ring_of(ring)->gathered_watch = ring_of(sqe128);
		ring->watch_is_armed = true;
	}
}

int pin_ring_clone(struct pin_ring *ring, const struct io_uring *source,
	const struct pin_registry *registry, uint32_t home_region)
{
	(void)ring;
	(void)source;
	(void)registry;
	(void)home_region;
	model_fail("%s is not modelled", __func__);
}

static bool has_completion(const void *arg)
{
	const struct ring *ring = arg;

	return ring->posted.value != ring->reaped;
}

void pin_ring_wait(struct pin_ring *ring, uint64_t deadline_ns)
{
	struct ring *own = ring_of(ring);

	MODEL_CHECK(!ring->is_polled && !ring->is_sqe128);
	use(own);
	submit(own);
	if (deadline_ns < model_clock_ns() + model_near_ns && !has_completion(own)) {
		model_event(__func__, "deadline", own, 0);
		model_clock_reach(deadline_ns);
		leave(own);
		return;
	}
	model_event(__func__, "sleep", own, 0);
	model_await("a completion or a doorbell", has_completion, own);
	/* Coming back from the kernel, it knows of what ended its wait. */
	pin_fetch_add_acq_rel_u32(&own->posted, 0);
	leave(own);
}

void pin_ring_cancel(struct pin_ring *ring, uint64_t user_data)
{
	struct ring *own = ring_of(ring);

	MODEL_CHECK(!ring->is_polled && !ring->is_sqe128);
	MODEL_CHECK(own->gathered_cancel_count < QUEUE_MAX);
	use(own);
	if (model_shares_rings) {
		model_point();
	}
	own->gathered_cancels[own->gathered_cancel_count] = user_data;
	own->gathered_cancel_count++;
	leave(own);
}

void pin_ring_doorbell(struct pin_ring *ring)
{
	struct ring *own = ring_of(ring);

	model_point();
	/* Not a ring that a resize took away, nor the one in its place. */
	MODEL_CHECK(ring->is_initialised);
	own = ring_of(ring);
	own->eventfd_count++;
	if (device.kind == PIN_DOORBELL_MESSAGE || own->has_poll) {
		post(own, PIN_RING_TAG_DOORBELL, 0);
	}
}

/* ---- requests, as io/request.h has them ---- */

int pin_request_check(const struct pinion_request *request)
{
	return request->task.run != NULL ? 0 : -EINVAL;
}

int pin_request_explain(const struct pinion_request *request, struct pin_refusal *why)
{
	return pin_refuse(why, pin_request_check(request), "task.run is NULL");
}

int pin_refuse(struct pin_refusal *why, int error, const char *format, ...)
{
	(void)why;
	(void)format;
	return error;
}

bool pin_request_carry_out(struct pin_ring *ring, struct pinion_request *request)
{
	(void)ring;
	(void)request;
	model_fail("no model has a file on FUSE, or a ring that is full of commands");
}

bool pin_request_is_beyond(const struct pin_ring *ring, const struct pinion_request *request)
{
	(void)ring;
	(void)request;
	return false;
}

bool pin_request_submit(struct pin_ring *ring, struct pinion_request *request)
{
	struct ring *own = ring_of(ring);

	if (ring->in_flight >= ring->credit) {
		return false;
	}
	use(own);
	if (model_shares_rings) {
		model_point();
	}
	own->gathered[own->gathered_count] = (uintptr_t)request;
	own->gathered_count++;
	ring->in_flight++;
	/* As io/socket.c counts its entries. */
	if (pin_request_has(request, PIN_OP_WAITS_FOR_PEER)) {
		pin_store_relaxed_u64(
			&ring->peer_entries, pin_load_relaxed_u64(&ring->peer_entries) + 1);
	}
	leave(own);
	return true;
}

bool pin_request_submit_command(struct pin_ring *ring, struct pinion_request *request)
{
	MODEL_CHECK(ring->is_sqe128);
	return pin_request_submit(ring, request);
}

struct pinion_request *pin_request_complete_command(
	struct pin_ring *ring, uint64_t user_data, int32_t result)
{
	MODEL_CHECK(ring->is_sqe128);
	return pin_request_complete(ring, user_data, result);
}

void pin_request_abandon(struct pin_ring *ring, struct pinion_request *request)
{
	pin_ring_cancel(ring, (uintptr_t)request);
}

/* A long request one part of which has come and that has another. */
static bool goes_on(struct pinion_request *request, int32_t result)
{
	struct pin_request *private = pin_request_of(request);

	if (result < 0 || !pin_request_moves_bytes(request) ||
		request->length_bytes - private->resume_bytes ==
			pin_request_part(request, private->resume_bytes)) {
		return false;
	}
	private->resume_bytes += pin_request_part(request, private->resume_bytes);
	request->done_bytes = private->resume_bytes;
	return true;
}

struct pinion_request *pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result)
{
	struct pinion_request *request = (struct pinion_request *)(uintptr_t)user_data;
	int32_t ended_by = pin_request_of(request)->ended_by;

	if (PIN_UNLIKELY(goes_on(request, result))) {
		if (ended_by != 0) {
			request->result = ended_by;
			return request;
		}
		if (ring->ask_part == NULL || ring->ask_part(ring->ask_arg, request)) {
			/* By the thread that reaps it, that is. */
			leave(ring_of(ring));
			MODEL_CHECK(pin_request_submit(ring, request));
			use(ring_of(ring));
		}
		return NULL;
	}
	request->result = result == -ECANCELED && ended_by != 0 ? ended_by : result;
	return request;
}

/* ---- files, as io/file.h has them: no case opens any ---- */

/* Its files have nothing cached. */
bool pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request)
{
	(void)cached;
	(void)meter;
	(void)request;
	return false;
}

int pin_file_options_accept(struct pinion_file_options *out,
	const struct pinion_file_options *given, struct pin_refusal *why)
{
	(void)out;
	(void)given;
	(void)why;
	model_fail("%s is not modelled", __func__);
}

int pin_file_adopt_with(struct pinion_file *file, int fd, const struct pinion_file_options *options,
	struct pin_device_cache *cache)
{
	(void)file;
	(void)fd;
	(void)options;
	(void)cache;
	model_fail("%s is not modelled", __func__);
}
