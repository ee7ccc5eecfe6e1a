/* SPDX-License-Identifier: MIT */
/*
 * A ring: one worker's io_uring, created and used on that worker's thread alone
 * and freed when its runtime is destroyed.
 *
 * Set-up asks for everything at once and gives up flags step by step where the
 * kernel refuses them; entries are halved where memory is short. Submissions
 * gather and go out in one enter per loop. A credit keeps requests in flight
 * below the completion queue's size, so it cannot overflow. With deferred task
 * work the kernel hands over at most some twenty completions per enter, so
 * reaping goes on until its flag is clear.
 *
 * The doorbell is how another thread ends a wait in this ring: a message posted
 * with IORING_REGISTER_SEND_MSG_RING where the kernel has it, else an eventfd
 * with a multishot poll, armed at the first wait. A wait always asks for one
 * completion only: one that asks for more cannot be ended by any doorbell.
 *
 * Without io_uring the same interface executes entries by system call, see
 * fallback.h; it then never waits, since nothing is ever in flight.
 *
 * Invariants: (1) in_flight <= credit < CQ entries. (2) every entry handed out
 * by pin_ring_entry completes exactly once through the deliver function.
 * (3) only pin_ring_doorbell may be called from other threads.
 *
 * Source: io_uring_setup(2), io_uring_enter(2); docs/DECISIONS.md.
 */
#ifndef PIN_IO_RING_H
#define PIN_IO_RING_H

#include "runtime/base/log.h"
#include "runtime/host/host.h"
#include "runtime/host/kernel.h"
#include "runtime/observe/meter.h"

#include <stdbool.h>

/* Values of user_data that are the ring's own; all else is the caller's. */
enum {
	PIN_RING_TAG_DOORBELL = 1, /* a message or the eventfd's poll */
	PIN_RING_TAG_IGNORE = 2,   /* a completion nobody waits for */
};

enum pin_doorbell_kind {
	PIN_DOORBELL_NONE,
	PIN_DOORBELL_MESSAGE,
	PIN_DOORBELL_EVENTFD,
};

struct pin_ring_options {
	uint32_t entries;
	uint32_t helper_count;
	bool is_fallback;
	const struct pin_kernel *kernel; /* what was found to work */
};

/* Gets one completion; never re-entered, but may call pin_ring_entry. */
typedef void (*pin_ring_deliver_fn)(void *arg, uint64_t user_data, int32_t result);

struct pin_ring {
	/* [const] after init */
	const struct pin_host *host;
	struct pin_meter *meter;
	bool is_fallback;
	bool is_deferred; /* completions appear only inside an enter */
	bool has_task_flag;
	bool has_no_iowait;
	bool is_initialised;
	enum pin_doorbell_kind doorbell_kind;
	int doorbell_fd; /* eventfd, or -1 */
	int enter_fd;
	uint32_t enter_flags;
	uint32_t setup_flags;
	uint32_t credit;
	uint32_t registered_bytes_shift; /* log2 of one registered range */
	uint8_t *registered;		 /* NULL: nothing is */
	size_t registered_bytes;
	/* [own] */
	struct io_uring uring;
	uint32_t in_flight;
	bool doorbell_is_armed;
	/* The fallback's queue of entries. */
	struct io_uring_sqe *queued; /* a circle of `credit` entries */
	uint32_t queued_head;
	uint32_t queued_count;
};

int pin_ring_init(struct pin_ring *ring, const struct pin_host *host, struct pin_meter *meter,
	const struct pin_ring_options *options, const struct pin_log *log);

/*
 * The last call on the owner's thread: gives back what the kernel keeps per
 * thread. Doorbells may still come in.
 */
void pin_ring_retire(struct pin_ring *ring);

/* Frees it, when no other thread can ring its doorbell any more. */
void pin_ring_fini(struct pin_ring *ring);

/*
 * Tells the kernel about `memory` once, so that reads into it skip the mapping.
 * False when it refuses (memlock limit); reads then go the plain way.
 */
bool pin_ring_register(
	struct pin_ring *ring, uint8_t *memory, size_t bytes, const struct pin_log *log);

/*
 * Index of the registered range that holds all of [bytes, bytes + length), or
 * -1.
 */
int pin_ring_registered_index(const struct pin_ring *ring, const uint8_t *bytes, size_t length);

/*
 * A zeroed submission entry, counted as in flight; NULL when the credit is
 * used up. The caller sets user_data.
 */
struct io_uring_sqe *pin_ring_entry(struct pin_ring *ring);

/* Entries that have gathered since the last enter. */
uint32_t pin_ring_unsubmitted(const struct pin_ring *ring);

/* True when pin_ring_poll would find something to do. Loads only. */
bool pin_ring_has_work(const struct pin_ring *ring);

/*
 * Submits what has gathered and delivers every completion there is, without
 * waiting. Returns how many were delivered.
 */
uint32_t pin_ring_poll(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg);

/*
 * Arms what pin_ring_wait needs to be interruptible. To be called before the
 * worker publishes that it sleeps in its ring.
 */
void pin_ring_prepare_wait(struct pin_ring *ring);

/*
 * Submits and sleeps until there is a completion, at most until `deadline_ns`.
 * May return early.
 */
void pin_ring_wait(struct pin_ring *ring, uint64_t deadline_ns);

/* Asks for cancellation of everything in flight; each still completes. */
void pin_ring_cancel_all(struct pin_ring *ring);

/* Ends a wait in this ring, now or the next one. Any thread. */
void pin_ring_doorbell(struct pin_ring *ring);

#endif
