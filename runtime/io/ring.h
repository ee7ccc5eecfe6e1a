/* SPDX-License-Identifier: MIT */
/*
 * A ring: one worker's io_uring, created and used on that worker's thread alone
 * and freed when its runtime is destroyed. Other workers may use a shared ring
 * as well, one at a time, under a lock that is not in this file
 * (worker/ring_lock.h).
 *
 * Set-up asks for everything at once and gives up flags step by step where the
 * kernel refuses them; entries are halved where memory is short. Submissions
 * gather and go out in one enter per loop. A credit keeps the number of
 * requests in flight, with a cancel for each, below the completion queue's
 * size, so the queue cannot overflow. With deferred task work the kernel hands
 * over at most some twenty completions per enter, so reaping goes on until its
 * flag is clear. A shared ring has no deferred task work: its completions have
 * to appear while its worker is busy elsewhere, for which the kernel may
 * interrupt the worker.
 *
 * The doorbell is how another thread ends a wait in this ring: a message posted
 * with IORING_REGISTER_SEND_MSG_RING where the kernel has it, else an eventfd
 * with a multishot poll, armed at the first wait. A wait always asks for one
 * completion only: a doorbell cannot end a wait for more.
 *
 * A polled ring is a worker's second one: the device raises no interrupt for
 * requests there, and completions appear in an enter that polls it. It takes
 * reads and writes past the page cache and nothing else, no doorbell and no
 * cancel, and no thread can wait in it: a worker only asks it, without waiting.
 *
 * A ring of 128-byte entries (`is_sqe128`) is another one beside the first: its
 * entries and completions have twice the size, as commands to a device need
 * (nvme_command.c). It has no doorbell and no cancel, and no thread waits in
 * it; but the first ring may watch it, so that a completion here ends a wait
 * there.
 *
 * Without io_uring the same interface executes entries by system call, a few
 * per poll, see sync_ring.c. Of these only polls of descriptors are in flight
 * for longer, and a worker can wait for them: sync_wait.c.
 *
 * Invariants: (1) in_flight <= credit, and with those cancels whose requests
 * have completed as well; so in_flight + cancelling <= 2 * credit < CQ entries.
 * (2) every entry handed out completes exactly once through
 * the deliver function. (3) only pin_ring_doorbell may be called from other
 * threads.
 *
 * Source: io_uring_setup(2), io_uring_enter(2); docs/decisions/rings.md.
 */
#ifndef PIN_IO_RING_H
#define PIN_IO_RING_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/metrics.h"
#include "runtime/host/host.h"
#include "runtime/host/kernel.h"
#include "runtime/io/registered_buffers.h"
#include "runtime/io/registered_files.h"
#include "runtime/policy/submit_bound.h"

#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Values of user_data that are the ring's own; all else is the caller's. */
enum {
	PIN_RING_TAG_DOORBELL = 1, /* a message or the eventfd's poll */
	PIN_RING_TAG_CANCEL = 2,   /* of a cancel, not of what it cancels */
	PIN_RING_TAG_WATCH = 3,	   /* the poll of a ring of 128-byte entries */
};

enum pin_doorbell_kind {
	PIN_DOORBELL_NONE,
	PIN_DOORBELL_MESSAGE,
	PIN_DOORBELL_EVENTFD,
};

enum {
	/* Not to be made one with others: pin_ring_submit_pair(). */
	PIN_RING_LARGE_BYTES = 128 << 10,
};

struct pin_ring_options {
	uint32_t entries;
	uint32_t helper_count;
	bool is_fallback;
	bool is_shared;			 /* threads other than the creator's may use it, in turns */
	bool is_polled;			 /* -EINVAL where the kernel has none such */
	bool is_sqe128;			 /* -EINVAL where the kernel has none such */
	const struct pin_kernel *kernel; /* the features found to work */
};

/* Gets one completion; never re-entered, but may call pin_ring_entry_again. */
typedef void (*pin_ring_deliver_fn)(void *arg, uint64_t user_data, int32_t result);

struct pinion_request;

/*
 * A part of a long transfer is over and another follows. True: it goes on at
 * once; false: the callee has it now, and submits it later.
 */
typedef bool (*pin_ring_ask_part_fn)(void *arg, struct pinion_request *request);

/* The parts of a worker's arena that grow. */
enum pin_grown_kind {
	PIN_GROWN_LARGE, /* its large buffers */
	PIN_GROWN_SMALL,
	PIN_GROWN_KINDS,
};

enum pin_ring_slots {
	PIN_RING_SLOTS_UNTRIED, /* -> OPEN or REFUSED: pin_ring_open_slots() */
	PIN_RING_SLOTS_OPEN,	/* -> REFUSED: pin_ring_forget_buffers() */
	PIN_RING_SLOTS_REFUSED, /* grown steps are used unregistered */
};

/* Entries that wait for descriptors, without io_uring: sync_wait.c. */
struct pin_sync_waits {
	struct pollfd *descriptors; /* the doorbell, then that of each entry */
	uint64_t *user_data;	    /* of each entry */
	uint32_t begun;		    /* since the ring was made, modulo 2^32 */
	/* [W:holder of the ring R:any] how many entries wait */
	struct pin_atomic_u32 count;
	/*
	 * [W:holder of the ring R:any] tasks that its worker had run when it
	 * last checked them; UINT64_MAX: a sleep has found something since
	 */
	struct pin_atomic_u64 looked_run;
};

struct pin_ring {
	/* [const] after init */
	const struct pin_host *host;
	struct pin_meter *meter;
	const struct pin_log *log;     /* may be NULL */
	pin_ring_ask_part_fn ask_part; /* NULL: parts follow each other at once */
	void *ask_arg;
	bool is_fallback;
	bool is_polled;
	bool is_sqe128;
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
	uint32_t lacks; /* what operations may need (io/operation.h) and it does not have */
	const struct pin_registry *registry; /* NULL: no memory is registered */
	uint32_t home_region;		     /* the worker's own, looked at first */
	struct pin_registry own_registry;    /* of one region */
	struct pin_region own_region;
	enum pin_ring_slots slots;		 /* [own] */
	struct pin_grown grown[PIN_GROWN_KINDS]; /* [own] nothing, where arenas do not grow */
	struct pin_file_table *files;		 /* NULL: no file is registered */
	/* [own] */
	struct io_uring uring;
	uint32_t sqe_index;   /* of the entry that was handed out last */
	uint32_t asking;      /* enters still to come that ask for deferred completions */
	uint32_t asked_count; /* that have asked, modulo 2^32 */
	uint32_t in_flight;
	uint32_t cancelling; /* cancels that have not completed */
	bool has_missed;     /* one of them did not end its request, as far as it could see */
	bool is_bounded;     /* its calls are timed, and kept to `bound` */
	/* pin_request_submit() looks twice at requests of that length. */
	uint32_t noted_bytes;
	struct pin_submit_bound bound;
	bool doorbell_is_armed;
	bool watch_is_armed;
	/* The fallback's queue of entries. */
	struct io_uring_sqe *queued; /* a circle of `credit` entries */
	uint32_t queued_head;
	uint32_t queued_count;
	struct pin_sync_waits waits;
	/* Entries of requests that wait for a peer, so far. */
	struct pin_atomic_u64 peer_entries;
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
 * Registers `memory` with the kernel, so that reads into it skip the mapping,
 * in ranges of `range_bytes`. Returns how much of its front the kernel took;
 * `*out_error` says why it is not all, or is 0. The rest is read the plain way.
 * `slot_count` entries are kept for memory that is to grow.
 */
size_t pin_ring_register(struct pin_ring *ring, uint8_t *memory, size_t bytes, size_t range_bytes,
	uint32_t slot_count, int *out_error);

/*
 * Takes over the buffers registered on `source`, a ring of any thread that is
 * not set up for a single issuer, as `registry` describes them; the registry
 * outlives this ring, `source` need not. It replaces pin_ring_register(). A
 * negative errno when the kernel does not do it; nothing has changed then.
 */
int pin_ring_clone(struct pin_ring *ring, const struct io_uring *source,
	const struct pin_registry *registry, uint32_t home_region);

/*
 * By the holder of the ring: prepares a table entry for each step of `grown`.
 * -errno: memory that grows is not registered with this ring, now and later.
 */
int pin_ring_open_slots(struct pin_ring *ring, const struct pin_grown grown[PIN_GROWN_KINDS]);

/*
 * Registers the step at `offset`, which has pages; the last step may be
 * shorter. Does nothing if an earlier step is not registered. -errno: nothing
 * has changed.
 */
int pin_ring_grow(struct pin_ring *ring, enum pin_grown_kind kind, size_t offset, size_t bytes);

/*
 * Unregisters all memory from `offset` on, where a step begins and which no
 * request may use. Its pages can be given back then.
 */
void pin_ring_shrink(struct pin_ring *ring, enum pin_grown_kind kind, size_t offset);

/* From now on its transfers go the plain way. */
void pin_ring_forget_buffers(struct pin_ring *ring);

/* Index of the grown step that holds the bytes, or -1. */
static inline int pin_ring_grown_index(
	const struct pin_ring *ring, const uint8_t *bytes, size_t length)
{
	int index = pin_grown_index(&ring->grown[PIN_GROWN_LARGE], bytes, length);

	return index >= 0 ? index : pin_grown_index(&ring->grown[PIN_GROWN_SMALL], bytes, length);
}

/*
 * Index of the registered range that holds all of [bytes, bytes + length), or
 * -1.
 */
static inline int pin_ring_registered_index(
	const struct pin_ring *ring, const uint8_t *bytes, size_t length)
{
	int index = pin_ring_grown_index(ring, bytes, length);

	if (index >= 0 || ring->registry == NULL) {
		return index;
	}
	return pin_registry_index_near(ring->registry, ring->home_region, bytes, length);
}

/* The same, of the worker's own memory only, where that is one range. */
static inline int pin_ring_home_index(
	const struct pin_ring *ring, const uint8_t *bytes, size_t length)
{
	int index = pin_ring_grown_index(ring, bytes, length);

	return index >= 0 || ring->registry == NULL
		? index
		: pin_registry_index_home(ring->registry, ring->home_region, bytes, length);
}

/*
 * The next free entry, NULL if there is none. Without an array of indices
 * (NO_SQARRAY) they go round, which saves the kernel a load for each. With one,
 * it is the first entry where the kernel has taken all of them, so that a ring
 * that is never full stays in few cache lines.
 */
static PIN_INLINE struct io_uring_sqe *pin_ring_free_entry(struct pin_ring *ring)
{
	struct io_uring_sq *sq = &ring->uring.sq;
	uint32_t tail = sq->sqe_tail;
	uint32_t used = tail - io_uring_smp_load_acquire(sq->khead);

	PIN_DCHECK(used <= sq->ring_entries); /* the kernel takes no more than there are */
	if (PIN_UNLIKELY(used >= sq->ring_entries)) {
		return NULL;
	}
	sq->sqe_tail = tail + 1;
	if (PIN_LIKELY(sq->array == NULL)) {
		return &sq->sqes[tail & sq->ring_mask];
	}
	ring->sqe_index = used == 0 ? 0 : (ring->sqe_index + 1) & sq->ring_mask;
	PIN_DCHECK(ring->sqe_index < sq->ring_entries);
	sq->array[tail & sq->ring_mask] = ring->sqe_index;
	return &sq->sqes[ring->sqe_index];
}

/* Like pin_ring_entry_again(), of a ring of 128-byte entries. */
struct io_uring_sqe *pin_ring_sqe128_entry(struct pin_ring *ring);

/* An entry where there is no free one, or no ring. */
struct io_uring_sqe *pin_ring_make_room(struct pin_ring *ring);

/* Not zeroed, not counted. */
static PIN_INLINE struct io_uring_sqe *pin_ring_next_entry(struct pin_ring *ring)
{
	struct io_uring_sqe *sqe =
		PIN_UNLIKELY(ring->is_fallback) ? NULL : pin_ring_free_entry(ring);

	return PIN_LIKELY(sqe != NULL) ? sqe : pin_ring_make_room(ring);
}

/*
 * A submission entry, counted as in flight, for a request that has just
 * completed and goes on, or for which there is room: there always is one. It is
 * not zeroed, so one of liburing's functions has to fill it in, and then
 * user_data is set.
 */
static PIN_INLINE struct io_uring_sqe *pin_ring_entry_again(struct pin_ring *ring)
{
	PIN_CHECK(ring->in_flight < ring->credit); /* invariant 1 */
	ring->in_flight++;
	return pin_ring_next_entry(ring);
}

/* How many entries the credit is good for. */
static inline uint32_t pin_ring_room(const struct pin_ring *ring)
{
	uint32_t used = ring->in_flight + ring->cancelling; /* invariant 1 */

	PIN_DCHECK(used <= 2 * ring->credit);
	return used < ring->credit ? ring->credit - used : 0;
}

/* Whether there are that many. */
static inline bool pin_ring_has_room(const struct pin_ring *ring, uint32_t count)
{
	PIN_DCHECK(ring->in_flight <= ring->credit); /* invariant 1 */
	return ring->in_flight + ring->cancelling + count <= ring->credit;
}

/* Entries that have gathered since the last enter. */
uint32_t pin_ring_unsubmitted(const struct pin_ring *ring);

/*
 * Of all entries there ever were, how many the kernel has taken; modulo 2^32.
 */
uint32_t pin_ring_submitted(const struct pin_ring *ring);

/*
 * The slot in which the ring has registered that open file, for the entry that
 * was handed out last; -1: it has not, and the descriptor is to be used.
 */
int pin_ring_file_slot(struct pin_ring *ring, const struct pinion_file *file);

/* The same, but for uses that are not counted where it has none. */
static inline int pin_ring_known_slot(struct pin_ring *ring, const struct pinion_file *file)
{
	return PIN_UNLIKELY(ring->files == NULL)
		? -1
		: pin_file_table_find(
			  ring->files, pin_file_record_of(file), ring->uring.sq.sqe_tail);
}

/*
 * Completions wait to be reaped. Any thread, while others use the ring: a guess
 * then.
 */
bool pin_ring_has_completions(const struct pin_ring *ring);

/*
 * The same, including completions that the kernel holds back until it is asked
 * for them, and all in flight on a polled ring; and how many were reaped so
 * far, modulo 2^32.
 */
bool pin_ring_owes_completions(const struct pin_ring *ring);
uint32_t pin_ring_reaped(const struct pin_ring *ring);

/*
 * There are polls to check, since their worker has run something after the last
 * check. Any thread: a guess then. Relaxed: a thread that acts on it holds the
 * ring.
 */
static inline bool pin_sync_waits_are_due(const struct pin_ring *ring)
{
	return pin_load_relaxed_u32(&ring->waits.count) > 0 &&
		pin_load_relaxed_u64(&ring->meter->tasks_run) !=
		pin_load_relaxed_u64(&ring->waits.looked_run);
}

/* Something is in flight whose end pin_ring_wait() waits for. */
static inline bool pin_ring_may_wait(const struct pin_ring *ring)
{
	return ring->in_flight > 0 &&
		(!ring->is_fallback || pin_load_relaxed_u32(&ring->waits.count) > 0);
}

/* True when pin_ring_poll would find something to do. Loads only. */
bool pin_ring_has_work(const struct pin_ring *ring);

/*
 * From now on requests that gather are submitted as soon as they may take a
 * call of some length (policy/submit_bound.h). The kernel takes the entries of
 * a call one after the other, and some devices copy meanwhile.
 */
static inline void pin_ring_set_bound(struct pin_ring *ring)
{
	pin_submit_bound_init(&ring->bound);
	ring->is_bounded = true;
	if (!ring->is_fallback) {
		ring->noted_bytes = 0;
	}
}

/* Submits gathered entries, without waiting for anything. */
void pin_ring_submit(struct pin_ring *ring);

/*
 * Submits gathered entries once there are two. From three on the kernel holds
 * them back until it has seen all, and makes one request of neighbours on the
 * disk: that pays for small requests, but with large ones the device then does
 * fewer at a time than it was given.
 */
void pin_ring_submit_pair(struct pin_ring *ring);

/*
 * Submits gathered entries and delivers every completion there is, without
 * waiting. Returns how many were delivered.
 */
uint32_t pin_ring_poll(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg);

/*
 * The same for a polled ring: polls the device for completions, whatever
 * pin_ring_has_work says.
 */
uint32_t pin_ring_poll_device(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg);

/* The same for a ring of 128-byte entries, which pin_ring_poll() misreads. */
uint32_t pin_ring_poll_sqe128(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg);

/*
 * Arms what pin_ring_wait needs to be interruptible. To be called before the
 * worker publishes that it sleeps in its ring.
 */
void pin_ring_prepare_wait(struct pin_ring *ring);

/*
 * The same for a second ring, so that a completion in `sqe128` ends a wait in
 * `ring` as well. One call serves one wait.
 */
void pin_ring_watch(struct pin_ring *ring, const struct pin_ring *sqe128);

/*
 * Submits and sleeps until there is a completion, at most until `deadline_ns`.
 * May return early.
 */
void pin_ring_wait(struct pin_ring *ring, uint64_t deadline_ns);

/*
 * Asks the kernel to end the entry in flight with that user_data, which
 * completes in any case, cancelled or not. At most once per entry: invariant 1.
 */
void pin_ring_cancel(struct pin_ring *ring, uint64_t user_data);

/* Ends a wait in this ring, now or the next one. Any thread. */
void pin_ring_doorbell(struct pin_ring *ring);

/* ---- sync ring ---- */

/*
 * The ring's place-holder where io_uring cannot be had: the same submission
 * entries, carried out one by one with ordinary system calls when the ring
 * would have been entered. Everything above the ring is unaware of it.
 */

/* The opcode of an entry that was cancelled while it waited; no kernel's. */
#define PIN_FALLBACK_CANCELLED 0xffu

/*
 * Carries out one entry and returns what its completion would carry: a count
 * or a negative errno. -EOPNOTSUPP: an operation the library never uses here.
 */
int32_t pin_fallback_execute(const struct io_uring_sqe *sqe);

/*
 * Polls of descriptors, for all of which one call of ppoll(2) waits. All
 * functions are called on the worker, except the doorbell.
 */

int pin_sync_waits_init(struct pin_ring *ring);
void pin_sync_waits_fini(struct pin_ring *ring);

/*
 * Carries out the poll that the entry asks for. Its events, or a negative
 * errno; 0: none yet, and it waits from now on.
 */
int32_t pin_sync_wait_begin(struct pin_ring *ring, const struct io_uring_sqe *sqe);

/* Delivers those that are over; how many. There are some; it does not sleep. */
uint32_t pin_sync_waits_look(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg);

/* Sleeps until a poll is over, the doorbell rings, or the deadline comes. */
void pin_sync_waits_sleep(struct pin_ring *ring, uint64_t deadline_ns);

/* Whether the entry of that user_data waits. */
bool pin_sync_waits_hold(const struct pin_ring *ring, uint64_t user_data);

/* It waits no longer, and is not delivered. False: it did not wait. */
bool pin_sync_waits_drop(struct pin_ring *ring, uint64_t user_data);

/*
 * The same with the I/O priority that the entry asks for: 0, the thread's own.
 */
int32_t pin_fallback_execute_as_asked(const struct io_uring_sqe *sqe);

/*
 * After some entries have been carried out: gives the thread back the I/O
 * priority that it had before the first entry that asked for another.
 */
void pin_fallback_rest(void);

#endif
