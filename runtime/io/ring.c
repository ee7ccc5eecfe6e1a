/* SPDX-License-Identifier: MIT */
/*
 * Submits to, reaps, waits in and wakes one io_uring.
 *
 * The worker that owns the ring calls everything but the doorbell, which any
 * thread rings to end the owner's wait. Without io_uring the same calls carry
 * entries out as system calls (sync_ring.c).
 *
 * Invariant: the completion queue has room for every entry in flight and its
 * cancel, so it never overflows.
 */
#include "runtime/io/ring.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
	/*
	 * What the fallback carries out at a time; tasks and messages have
	 * their turn in between.
	 */
	FALLBACK_BATCH = 8,
	/* Enters that make room in a full submission queue before giving up. */
	FLUSH_TRIES_MAX = 1024,
	/*
	 * Enters that ask for deferred completions from when there was one on.
	 * The first of them that does not ask costs one enter more, if there
	 * still are deferred ones; where there are none each saves some 12 ns
	 * of 150.
	 */
	ASKING_ENTERS = 255,
};

/* `limit` may be NULL: however long it takes. */
static PIN_INLINE void enter_until(struct pin_ring *ring, uint32_t min_complete, uint32_t flags,
	struct io_uring_getevents_arg *limit)
{
	struct io_uring_sq *sq = &ring->uring.sq;
	uint32_t to_submit;
	int rc;

	PIN_DCHECK(!ring->is_fallback);
	PIN_DCHECK(min_complete == 0 || (flags & IORING_ENTER_GETEVENTS) != 0); /* else no wait */
	/* The kernel may read entries before the tail once it is stored. */
	sq->sqe_head = sq->sqe_tail;
	io_uring_smp_store_release(sq->ktail, sq->sqe_tail);
	to_submit = sq->sqe_tail - io_uring_smp_load_acquire(sq->khead);
	PIN_DCHECK(to_submit <= sq->ring_entries);
	if (ring->has_no_iowait && min_complete > 0) {
		flags |= IORING_ENTER_NO_IOWAIT;
	}
	rc = ring->host->ring_enter(ring->enter_fd, to_submit, min_complete,
		flags | ring->enter_flags | (limit != NULL ? IORING_ENTER_EXT_ARG : 0), limit,
		limit != NULL ? sizeof(*limit) : 0);
	pin_meter_add(&ring->meter->ring_enters, 1);
	ring->asked_count += (flags & IORING_ENTER_GETEVENTS) != 0 ? 1 : 0;
	/*
	 * EINTR, EAGAIN and EBUSY leave entries in the queue, for the next
	 * enter. ETIME: the wait has lasted its time. Anything else means the
	 * ring itself is broken.
	 */
	PIN_CHECK(rc >= 0 || rc == -EINTR || rc == -ETIME || rc == -EAGAIN || rc == -EBUSY ||
		rc == -ENOMEM);
	PIN_DCHECK(rc <= (int)to_submit);
}

/* Without waiting. */
static void enter(struct pin_ring *ring, uint32_t flags)
{
	enter_until(ring, 0, flags, NULL);
}

uint32_t pin_ring_unsubmitted(const struct pin_ring *ring)
{
	if (ring->is_fallback) {
		return ring->queued_count;
	}
	return ring->uring.sq.sqe_tail - io_uring_smp_load_acquire(ring->uring.sq.khead);
}

static PIN_APART void enter_timed(struct pin_ring *ring, uint32_t flags)
{
	uint64_t start_ns = ring->host->now_ns();

	PIN_DCHECK(ring->is_bounded);
	enter(ring, flags);
	/* Entries that the kernel has refused are still due. */
	if (PIN_LIKELY(pin_ring_unsubmitted(ring) == 0)) {
		pin_submit_bound_note_call(&ring->bound, ring->host->now_ns() - start_ns);
	}
}

/* With the gathered entries. */
static PIN_INLINE void enter_gathered(struct pin_ring *ring, uint32_t flags)
{
	if (PIN_UNLIKELY(ring->is_bounded)) {
		enter_timed(ring, flags);
	} else {
		enter_until(ring, 0, flags, NULL);
	}
}

uint32_t pin_ring_submitted(const struct pin_ring *ring)
{
	return ring->is_fallback ? 0 : io_uring_smp_load_acquire(ring->uring.sq.khead);
}

int pin_ring_file_slot(struct pin_ring *ring, const struct pinion_file *file)
{
	int slot = pin_ring_known_slot(ring, file);

	if (PIN_LIKELY(slot >= 0) || ring->files == NULL) {
		return slot;
	}
	pin_meter_add(&ring->meter->plain_file_transfers, 1);
	if (pin_file_table_note(ring->files, file, pin_ring_submitted(ring))) {
		pin_meter_add(&ring->meter->files_registered, 1);
	}
	return -1;
}

struct io_uring_sqe *pin_ring_sqe128_entry(struct pin_ring *ring)
{
	struct io_uring_sqe *sqe;

	PIN_CHECK(ring->is_sqe128);
	sqe = pin_ring_entry_again(ring);
	PIN_CHECK((size_t)(sqe - ring->uring.sq.sqes) < ring->uring.sq.ring_entries);
	/* Its index counts entries of twice that size. */
	return &ring->uring.sq.sqes[(size_t)(sqe - ring->uring.sq.sqes) * 2];
}

/*
 * The queue of entries is full: submits the gathered ones, as often as it takes
 * to get one free.
 */
struct io_uring_sqe *pin_ring_make_room(struct pin_ring *ring)
{
	struct io_uring_sqe *sqe = NULL;

	if (ring->is_fallback) {
		uint32_t last = (ring->queued_head + ring->queued_count) % ring->credit;
		PIN_CHECK(ring->queued_count < ring->credit); /* invariant 1 */

		ring->queued_count++;
		PIN_DCHECK(ring->queued_count <= ring->in_flight); /* invariant 2 */
		return &ring->queued[last];
	}
	for (uint32_t i = 0; sqe == NULL && i < FLUSH_TRIES_MAX; i++) {
		enter(ring, ring->is_deferred ? IORING_ENTER_GETEVENTS : 0);
		sqe = pin_ring_free_entry(ring);
	}
	PIN_CHECK(sqe != NULL);
	return sqe;
}

/* For what no function of liburing fills in. */
static struct io_uring_sqe *zeroed(struct io_uring_sqe *sqe)
{
	PIN_DCHECK((uintptr_t)sqe % _Alignof(struct io_uring_sqe) == 0);
	return memset(sqe, 0, sizeof(*sqe));
}

static bool has_task_work(const struct pin_ring *ring)
{
	return ring->has_task_flag &&
		(IO_URING_READ_ONCE(*ring->uring.sq.kflags) &
			(IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

bool pin_ring_has_completions(const struct pin_ring *ring)
{
	const struct io_uring_cq *cq = &ring->uring.cq;

	return !ring->is_fallback &&
		io_uring_smp_load_acquire(cq->khead) != io_uring_smp_load_acquire(cq->ktail);
}

/* Each entry that the kernel took completes once, when it is asked. */
static bool has_unasked(const struct pin_ring *ring)
{
	return ring->is_polled &&
		io_uring_smp_load_acquire(ring->uring.sq.khead) !=
		io_uring_smp_load_acquire(ring->uring.cq.ktail);
}

bool pin_ring_owes_completions(const struct pin_ring *ring)
{
	return !ring->is_fallback &&
		(has_task_work(ring) || pin_ring_has_completions(ring) || has_unasked(ring));
}

uint32_t pin_ring_reaped(const struct pin_ring *ring)
{
	return ring->is_fallback ? 0 : io_uring_smp_load_acquire(ring->uring.cq.khead);
}

bool pin_ring_has_work(const struct pin_ring *ring)
{
	if (ring->is_fallback) {
		return ring->queued_count > 0 || pin_sync_waits_are_due(ring);
	}
	return pin_ring_unsubmitted(ring) > 0 || io_uring_cq_ready(&ring->uring) > 0 ||
		has_task_work(ring);
}

/* `shift`: entries of the queue are of 1 << shift times their usual size. */
static PIN_INLINE uint32_t reap_sized(
	struct pin_ring *ring, uint32_t shift, pin_ring_deliver_fn deliver, void *arg)
{
	const struct io_uring_cq *cq = &ring->uring.cq;
	uint32_t mask = *cq->kring_mask;
	uint32_t head = *cq->khead; /* only this thread moves it */
	uint32_t delivered = 0;

	PIN_DCHECK(shift == (ring->is_sqe128 ? 1 : 0));
	PIN_DCHECK(IO_URING_READ_ONCE(*cq->koverflow) == 0); /* invariant 1 */
	/* Not io_uring_peek_cqe: it may enter the kernel by itself. */
	while (head != io_uring_smp_load_acquire(cq->ktail)) {
		const struct io_uring_cqe *cqe = &cq->cqes[(head & mask) << shift];
		uint64_t user_data = cqe->user_data;
		int32_t result = cqe->res;
		bool has_more = (cqe->flags & IORING_CQE_F_MORE) != 0;

		head++;
		io_uring_smp_store_release(cq->khead, head);
		if (PIN_LIKELY(user_data > PIN_RING_TAG_WATCH)) {
			PIN_CHECK(ring->in_flight > 0); /* invariant 2 */
			ring->in_flight--;
			delivered++;
			deliver(arg, user_data, result);
		} else if (user_data == PIN_RING_TAG_DOORBELL) {
			/* A multishot poll that ended must be armed anew. */
			if (ring->doorbell_kind == PIN_DOORBELL_EVENTFD && !has_more) {
				ring->doorbell_is_armed = false;
			}
		} else if (user_data == PIN_RING_TAG_WATCH) {
			ring->watch_is_armed = false;
		} else {
			PIN_CHECK(user_data == PIN_RING_TAG_CANCEL && ring->cancelling > 0);
			ring->cancelling--;
			ring->has_missed |= result < 0;
		}
	}
	return delivered;
}

static uint32_t reap(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	return reap_sized(ring, 0, deliver, arg);
}

static void pop_queued(struct pin_ring *ring)
{
	PIN_DCHECK(ring->queued_count <= ring->in_flight); /* invariant 2 */
	ring->queued_head = (ring->queued_head + 1) % ring->credit;
	ring->queued_count--;
}

/* A poll that waits from now on is in flight, but in the queue no longer. */
static PIN_APART uint32_t carry_out_poll(
	struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	const struct io_uring_sqe *sqe = &ring->queued[ring->queued_head];
	uint64_t user_data = sqe->user_data;
	int32_t result = pin_sync_wait_begin(ring, sqe);

	pop_queued(ring);
	if (result == 0) {
		return 0;
	}
	ring->in_flight--;
	deliver(arg, user_data, result);
	return 1;
}

/* A bounded batch, so that tasks run between calls that may each take long. */
static uint32_t poll_fallback(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	uint32_t count = ring->queued_count < FALLBACK_BATCH ? ring->queued_count : FALLBACK_BATCH;
	uint32_t delivered = count;
	uint32_t priorities = 0; /* all bits of those that entries have asked for */

	PIN_DCHECK(ring->cancelling == 0); /* here a cancel is over at once */
	PIN_DCHECK(ring->queued_head < ring->credit);
	/* Delivering may queue more; those go after the waiting ones. */
	for (uint32_t i = 0; i < count; i++) {
		const struct io_uring_sqe *sqe = &ring->queued[ring->queued_head];
		uint64_t user_data = sqe->user_data;
		int32_t result;

		if (PIN_UNLIKELY(sqe->opcode == IORING_OP_POLL_ADD)) {
			delivered -= 1 - carry_out_poll(ring, deliver, arg);
			continue;
		}
		priorities |= sqe->ioprio;
		result = PIN_UNLIKELY(priorities != 0) ? pin_fallback_execute_as_asked(sqe)
						       : pin_fallback_execute(sqe);
		pop_queued(ring);
		ring->in_flight--;
		deliver(arg, user_data, result);
	}
	if (PIN_UNLIKELY(priorities != 0)) {
		pin_fallback_rest();
	}
	return PIN_UNLIKELY(pin_sync_waits_are_due(ring))
		? delivered + pin_sync_waits_look(ring, deliver, arg)
		: delivered;
}

/*
 * Submits. The same enter asks for deferred completions if the last enters have
 * brought some; where requests are over at once, asking is in vain.
 */
static PIN_INLINE void submit(struct pin_ring *ring)
{
	uint32_t flags = 0;

	if (ring->is_deferred && (ring->asking > 0 || has_task_work(ring))) {
		ring->asking -= ring->asking > 0 ? 1 : 0;
		flags = IORING_ENTER_GETEVENTS;
	}
	enter_gathered(ring, flags);
}

/*
 * Asks for deferred completions. One enter hands over some twenty completions;
 * their number in flight bounds how often it is worth asking again.
 */
static PIN_APART uint32_t poll_deferred(
	struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	uint32_t delivered = 0;

	PIN_DCHECK(ring->has_task_flag);
	for (uint32_t i = ring->in_flight + 1; i > 0 && has_task_work(ring); i--) {
		ring->asking = ASKING_ENTERS;
		enter(ring, IORING_ENTER_GETEVENTS);
		delivered += reap(ring, deliver, arg);
	}
	return delivered;
}

/*
 * Submits gathered entries, then reaps. Without entries it makes no call,
 * unless the kernel says that it has deferred work.
 */
uint32_t pin_ring_poll(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	uint32_t delivered;

	PIN_DCHECK(!ring->is_sqe128);
	if (PIN_UNLIKELY(ring->is_fallback)) {
		return poll_fallback(ring, deliver, arg);
	}
	if (pin_ring_unsubmitted(ring) > 0) {
		submit(ring);
	}
	delivered = reap_sized(ring, 0, deliver, arg);
	if (PIN_UNLIKELY(has_task_work(ring))) {
		delivered += poll_deferred(ring, deliver, arg);
	}
	return delivered;
}

uint32_t pin_ring_poll_sqe128(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	PIN_CHECK(ring->is_sqe128);
	if (pin_ring_unsubmitted(ring) > 0 || has_task_work(ring)) {
		enter(ring, IORING_ENTER_GETEVENTS);
	}
	return reap_sized(ring, 1, deliver, arg);
}

void pin_ring_submit(struct pin_ring *ring)
{
	if (!ring->is_fallback && pin_ring_unsubmitted(ring) > 0) {
		enter_gathered(ring, 0);
	}
}

void pin_ring_submit_pair(struct pin_ring *ring)
{
	if (!ring->is_fallback && pin_ring_unsubmitted(ring) >= 2) {
		enter_gathered(ring, 0);
	}
}

uint32_t pin_ring_poll_device(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	PIN_CHECK(ring->is_polled);
	enter(ring, IORING_ENTER_GETEVENTS);
	return reap(ring, deliver, arg);
}

/*
 * Arms the eventfd doorbell where the kernel lacks messages between rings; once
 * is enough for many waits.
 */
void pin_ring_prepare_wait(struct pin_ring *ring)
{
	struct io_uring_sqe *sqe;

	if (ring->doorbell_kind != PIN_DOORBELL_EVENTFD || ring->doorbell_is_armed) {
		return;
	}
	/*
	 * Never drained: each write makes the multishot poll complete once
	 * more, edge by edge, and a counter of 2^64 - 2 wakes is out of reach.
	 */
	sqe = pin_ring_next_entry(ring);
	PIN_DCHECK(ring->doorbell_fd >= 0);
	io_uring_prep_poll_multishot(sqe, ring->doorbell_fd, POLLIN);
	sqe->user_data = PIN_RING_TAG_DOORBELL;
	ring->doorbell_is_armed = true;
}

void pin_ring_watch(struct pin_ring *ring, const struct pin_ring *sqe128)
{
	struct io_uring_sqe *sqe;

	PIN_CHECK(sqe128->is_sqe128 && !ring->is_sqe128);
	if (ring->watch_is_armed) {
		return;
	}
	PIN_DCHECK(!ring->is_fallback && !ring->is_polled);
	/* Not multishot: the wait is over with the first, and polls anew. */
	sqe = pin_ring_next_entry(ring);
	io_uring_prep_poll_add(sqe, sqe128->uring.ring_fd, POLLIN);
	sqe->user_data = PIN_RING_TAG_WATCH;
	ring->watch_is_armed = true;
}

/*
 * The kernel adds it to its clock, in signed 64 bits of nanoseconds, which a
 * wait of almost three centuries may overflow, to end at once, each time.
 */
#define WAIT_NS_MAX (UINT64_C(1) << 60)

/*
 * Sleeps in the ring until a completion, the doorbell or the deadline; never
 * longer than the kernel's timeouts can say.
 */
void pin_ring_wait(struct pin_ring *ring, uint64_t deadline_ns)
{
	struct __kernel_timespec wait = {0};
	struct io_uring_getevents_arg limit = {.ts = (uintptr_t)&wait};

	if (PIN_UNLIKELY(ring->is_fallback)) {
		pin_sync_waits_sleep(ring, deadline_ns);
		return;
	}
	PIN_CHECK(!ring->is_polled && !ring->is_sqe128);
	/* Else no doorbell would end it. */
	PIN_DCHECK(ring->doorbell_kind != PIN_DOORBELL_EVENTFD || ring->doorbell_is_armed);
	if (deadline_ns != PIN_NO_DEADLINE) {
		uint64_t now_ns = ring->host->now_ns();
		uint64_t wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

		wait_ns = wait_ns < WAIT_NS_MAX ? wait_ns : WAIT_NS_MAX;
		wait.tv_sec = (int64_t)(wait_ns / 1000000000u);
		wait.tv_nsec = (int64_t)(wait_ns % 1000000000u);
	}
	enter_until(
		ring, 1, IORING_ENTER_GETEVENTS, deadline_ns != PIN_NO_DEADLINE ? &limit : NULL);
}

static void cancel_fallback(struct pin_ring *ring, uint64_t user_data)
{
	PIN_DCHECK(ring->queued_count <= ring->credit);
	if (pin_sync_waits_drop(ring, user_data)) {
		/* In flight still, so there is room: invariant 1. */
		struct io_uring_sqe *sqe = pin_ring_make_room(ring);

		sqe->user_data = user_data;
		sqe->opcode = PIN_FALLBACK_CANCELLED;
		sqe->ioprio = 0;
		return;
	}
	for (uint32_t i = 0; i < ring->queued_count; i++) {
		struct io_uring_sqe *sqe = &ring->queued[(ring->queued_head + i) % ring->credit];

		if (sqe->user_data == user_data) {
			sqe->opcode = PIN_FALLBACK_CANCELLED;
		}
	}
}

void pin_ring_cancel(struct pin_ring *ring, uint64_t user_data)
{
	struct io_uring_sqe *sqe;

	if (ring->is_fallback) {
		cancel_fallback(ring, user_data);
		return;
	}
	PIN_CHECK(!ring->is_polled && !ring->is_sqe128);
	PIN_DCHECK(user_data > PIN_RING_TAG_WATCH); /* a request's */
	sqe = zeroed(pin_ring_next_entry(ring));
	sqe->opcode = IORING_OP_ASYNC_CANCEL;
	sqe->fd = -1;
	sqe->addr = user_data;
	sqe->user_data = PIN_RING_TAG_CANCEL;
	ring->cancelling++;
	PIN_DCHECK(ring->in_flight + ring->cancelling <= 2 * ring->credit); /* invariant 1 */
}

static int send_message(struct pin_ring *ring)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_MSG_RING,
		.fd = ring->uring.ring_fd,
		.off = PIN_RING_TAG_DOORBELL,
	};

	return ring->host->ring_register(-1, IORING_REGISTER_SEND_MSG_RING, &sqe, 1);
}

/*
 * On any thread: ends the owner's wait in this ring. It must not fail, as the
 * waker has already taken over the duty to wake.
 */
void pin_ring_doorbell(struct pin_ring *ring)
{
	uint64_t one = 1;
	int rc;

	PIN_CHECK(ring->is_initialised);
	if (ring->is_fallback) {
		ring->host->event_raise(ring->doorbell_fd);
		return;
	}
	if (ring->doorbell_kind == PIN_DOORBELL_EVENTFD) {
		/*
		 * EAGAIN: the counter is full, so the poll has long completed.
		 */
		while (write(ring->doorbell_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
		}
		return;
	}
	PIN_CHECK(ring->doorbell_kind == PIN_DOORBELL_MESSAGE); /* a secondary ring has none */
	/*
	 * Giving up for want of a few bytes of kernel memory would lose the
	 * wake, so try until they are there. EOVERFLOW: the ring is full of
	 * completions, which end the wait by themselves.
	 */
	while ((rc = send_message(ring)) < 0 && rc != -EOVERFLOW) {
		PIN_CHECK(rc == -ENOMEM || rc == -EAGAIN || rc == -EINTR);
		ring->host->yield();
	}
}
