/* SPDX-License-Identifier: MIT */
/*
 * Requests between a worker and its ring: turning one into a submission entry,
 * and deciding at each completion whether it is done or must go on.
 *
 * Operations differ by their rows in io/operation.h: which inputs they need,
 * how their entries are made, and whether a completion is their end.
 *
 * Called by the worker whose ring it is. worker/request.h describes how a
 * request gets to that worker, which threads may end it early, and which enters
 * its task.
 *
 * Source: docs/decisions/rings.md, "One struct describes every request".
 */
#ifndef PIN_IO_REQUEST_H
#define PIN_IO_REQUEST_H

#include "runtime/base/check.h"
#include "runtime/base/metrics.h"
#include "runtime/host/block_device.h"
#include "runtime/io/file.h"
#include "runtime/io/operation.h"
#include "runtime/io/ring.h"
#include "runtime/queue/timer_wheel.h"

#include <errno.h>
#include <linux/openat2.h>
#include <pinion/request.h>

/* ---- states ---- */

/*
 * The private part of a request, which its user does not see, and its state.
 */

/* A place in a list of which one can be taken out of the middle. */
struct pin_request_link {
	struct pin_request_link *next; /* in a circle; NULL: in no list */
	struct pin_request_link *previous;
};

static inline void pin_request_list_init(struct pin_request_link *list)
{
	list->next = list;
	list->previous = list;
}

static inline bool pin_request_list_is_empty(const struct pin_request_link *list)
{
	PIN_DCHECK((list->next == list) == (list->previous == list));
	return list->next == list;
}

static inline void pin_request_list_push(
	struct pin_request_link *list, struct pin_request_link *link)
{
	struct pin_request_link *last = list->previous;

	PIN_DCHECK(link->next == NULL); /* in one list at a time */
	PIN_DCHECK(last->next == list);
	PIN_DCHECK(list->next->previous == list);
	/* Apart: as neighbours gcc makes four instructions of two stores. */
	link->next = list;
	last->next = link;
	link->previous = last;
	list->previous = link;
}

static inline void pin_request_list_remove(struct pin_request_link *link)
{
	PIN_DCHECK(link->next != NULL);
	PIN_DCHECK(link->next->previous == link && link->previous->next == link);
	link->next->previous = link->previous;
	link->previous->next = link->next;
	link->next = NULL;
}

/* What a transfer owes its device: worker/request.h. */
struct pin_request_cost {
	uint64_t started_ns;   /* 0: it is not timed */
	uint16_t pages;	       /* of the credit that it has; 0: none */
	uint8_t part_cut;      /* it goes in parts of PIN_REQUEST_PART_BYTES >> part_cut */
	uint8_t account_place; /* 1 + that of the device's account; 0: it never got there */
	bool is_queued;	       /* waits for credit, or for its time */
	bool is_paid;	       /* rates have been kept */
	bool is_urgent;	       /* of the high lane: passes others that are queued */
};

/* What a request's private part holds. */
struct pin_request {
	struct pin_atomic_u32 word; /* [W:any R:any] worker/request.h */
	/*
	 * [own] of the worker it is on, from here on; the first eight bytes are
	 * reset in one
	 */
	int16_t ended_by;     /* the early end, -ECANCELED or -ETIME; or 0 */
	uint8_t stall_count;  /* attempts in a row without a byte */
	uint8_t asked_again;  /* times for its end, with the next, when `deadline` comes */
	bool is_timed;	      /* `deadline` has been armed */
	bool is_waiting;      /* for room in the ring, or queued */
	bool uses_own_buffer; /* of the worker it is on */
	union {
		bool keeps_cache; /* of a transfer: DONTCACHE was refused */
		bool asks_ready;  /* of a socket: its entry is a poll */
	};
	uint32_t hops_left;	/* of a cancel: workers still to be visited */
	bool is_from_outside;	/* and not yet counted by its worker */
	bool has_ended;		/* but a message of it is still under way */
	bool is_secondary;	/* not on the first ring: worker/request.h; false when it ends */
	bool was_free;		/* of a posted transfer: its buffer, then */
	uint16_t lane_priority; /* of a transfer that asks for none itself; 0: none */
	bool is_borrowed_own;	/* `borrowed`: by pin_pool_borrow_own() */
	/*
	 * Set by the library, for a request of its own: time that it is queued
	 * does not count. Meanwhile `deadline_ns` is the time that is left;
	 * when the request starts that becomes a deadline again.
	 */
	bool stops_clock;
	struct pin_request_link link;
	union {
		struct open_how how; /* of an open: the kernel reads it when it is submitted */
		struct {	     /* of a transfer */
			struct pin_request_cost cost;
			uint64_t resume_bytes; /* where the next attempt starts */
		};
		uint32_t address_bytes; /* of an accept: the kernel reads and writes it */
	};
	pinion_task_fn run; /* of an open: comes after looking at the file */
	union {
		struct pin_device_cache *devices; /* with this worker's help */
		struct pin_entry *borrowed;	  /* of a transfer: whose memory it uses */
	};
	/* Last: most have none, and so touch one cache line less. */
	struct pin_timer deadline;
};

static inline struct pin_request *pin_request_of(struct pinion_request *request)
{
	return (struct pin_request *)(void *)request->private_;
}

static inline struct pinion_request *pin_request_of_link(struct pin_request *private)
{
	return PIN_CONTAINER_OF((uint64_t *)(void *)private, struct pinion_request, private_);
}

/*
 * The kernel gets a longer transfer in parts of this size: as much as the
 * device has at once by default. Between parts others have their turn, and
 * cancels and deadlines take effect; and the most that one call can move (2
 * GiB) is no limit. A multiple of all alignments.
 *
 * Where a rate is kept parts may be shorter (worker/device_queue.c), by a power
 * of two, down to PIN_REQUEST_PART_BYTES_MIN. The size changes between parts
 * only.
 */
#define PIN_REQUEST_PART_BYTES (64u << 20)
#define PIN_REQUEST_PART_BYTES_MIN 4096u

/* Of a transfer. */
static inline uint32_t pin_request_part_bytes(const struct pinion_request *request)
{
	const struct pin_request *private = (const void *)request->private_;

	PIN_DCHECK(PIN_REQUEST_PART_BYTES >> private->cost.part_cut >= PIN_REQUEST_PART_BYTES_MIN);
	return PIN_REQUEST_PART_BYTES >> private->cost.part_cut;
}

/* Whether a part ends after `done_bytes`. */
static inline bool pin_request_ends_part(const struct pinion_request *request, uint64_t done_bytes)
{
	return (done_bytes & (pin_request_part_bytes(request) - 1)) == 0;
}

/* The length of the next part of a transfer, after `done_bytes`. */
static inline uint32_t pin_request_part(const struct pinion_request *request, uint64_t done_bytes)
{
	uint64_t left_bytes = request->length_bytes - done_bytes;
	uint32_t part_bytes = pin_request_part_bytes(request);

	PIN_DCHECK(done_bytes <= request->length_bytes);
	part_bytes -= (uint32_t)done_bytes & (part_bytes - 1);
	return left_bytes < part_bytes ? (uint32_t)left_bytes : part_bytes;
}

static inline bool pin_request_moves_bytes(const struct pinion_request *request)
{
	return pin_request_has(request, PIN_OP_MOVES);
}

/* Begins anew: nothing is left of when it was last used. */
static inline void pin_request_reset(struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	private->ended_by = 0;
	private->stall_count = 0;
	private->asked_again = 0;
	private->is_timed = false;
	private->is_waiting = false;
	private->uses_own_buffer = false;
	private->keeps_cache = false;
	if (pin_request_moves_bytes(request)) {
		private->lane_priority = 0;
		private->resume_bytes = 0;
	}
	request->done_bytes = 0;
}

/*
 * A transfer that must not go to the first ring: the ring might get it wrong
 * (PIN_FILE_PLAIN), or cannot carry it (PIN_FILE_COMMANDS).
 */
static inline bool pin_request_is_special(const struct pinion_request *request)
{
	return pin_request_moves_bytes(request) &&
		(request->file->flags & (PIN_FILE_PLAIN | PIN_FILE_COMMANDS)) != 0;
}

/* Attempts in a row without a byte before a request is given up. */
enum { PIN_REQUEST_STALLS_MAX = 64 }; /* fits the counter, with one more */

/* What a device says of its sectors, as the kernel words it. */
static inline bool pin_request_is_of_sectors(int64_t result)
{
	return result == -EIO || result == -ENODATA || result == -EREMOTEIO || result == -EILSEQ;
}

/* An attempt that the kernel broke off. */
static inline void pin_request_count_retry(struct pin_meter *meter, int64_t result)
{
	PIN_DCHECK(result == -EINTR || result == -EAGAIN);
	pin_meter_add(result == -EINTR ? &meter->retries_interrupted : &meter->retries_again, 1);
}

/* Whether it is tried again after that error; counts it as an attempt. */
static inline bool pin_request_may_retry(
	struct pin_meter *meter, struct pinion_request *request, int64_t result)
{
	struct pin_request *private = pin_request_of(request);

	if (result != -EINTR && result != -EAGAIN) {
		return false;
	}
	pin_request_count_retry(meter, result);
	PIN_DCHECK(private->stall_count < UINT8_MAX);
	private->stall_count++;
	return private->stall_count <= PIN_REQUEST_STALLS_MAX;
}

/* ---- operations ---- */

struct pin_operation {
	/* 0, or why it cannot be submitted. */
	int (*check)(const struct pinion_request *request, struct pin_refusal *why);
	void (*prepare)(
		struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
	bool is_whole;
	uint32_t needs;
	/*
	 * Asked about all else. True: it has to be submitted once more. False:
	 * it is over, with what *result is then.
	 */
	bool (*goes_on)(struct pin_ring *ring, struct pinion_request *request, int64_t *result);
};

/* By enum pin_op_place: operation_table.c. */
extern const struct pin_operation pin_operations[PIN_OP_COUNT];

/* ---- entries of transfers ---- */

/*
 * Reads and writes: their entries, and where they go on after a completion of a
 * part. For the table of operations, whose columns say what each function does.
 */

enum {
	PIN_VECTOR_COUNT_MAX = 1024, /* IOV_MAX, which C libraries show to few */
};

int pin_transfer_check(const struct pinion_request *request, struct pin_refusal *why);

void pin_transfer_prepare_read(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_transfer_prepare_write(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);

/* The same of those whose memory is in pieces. */
int pin_vector_check(const struct pinion_request *request, struct pin_refusal *why);

void pin_vector_prepare_read(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_vector_prepare_write(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);

bool pin_transfer_read_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);
bool pin_transfer_write_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);

/*
 * Whether that result ends a transfer that was moved in one piece, as most are,
 * with nothing to do about the cache; it has done_bytes then. False: the
 * functions above decide.
 */
static PIN_INLINE bool pin_transfer_ends_whole(
	struct pin_ring *ring, struct pinion_request *request, int32_t got)
{
	if (PIN_UNLIKELY((uint64_t)got != request->length_bytes ||
		    pin_request_of(request)->resume_bytes != 0 ||
		    (request->file->flags & PIN_FILE_EVICT) != 0)) {
		return false;
	}
	request->done_bytes = (uint64_t)got;
	pin_meter_add(pin_request_has(request, PIN_OP_READS) ? &ring->meter->read_bytes
							     : &ring->meter->write_bytes,
		(uint64_t)got);
	return true;
}

/* As pin_request_carry_out(), of transfers. */
bool pin_transfer_carry_out(struct pin_ring *ring, struct pinion_request *request);

/* ---- entries of sockets ---- */

/*
 * Operations that wait for a peer, and their neighbours: socket.c. For the
 * table of operations.
 */

/* The most that one call moves: what it is asked for is an int. */
#define PIN_SOCKET_BYTES_MAX UINT32_C(0x7ffff000)

int pin_socket_check_poll(const struct pinion_request *request, struct pin_refusal *why);
int pin_socket_check_accept(const struct pinion_request *request, struct pin_refusal *why);
int pin_socket_check_connect(const struct pinion_request *request, struct pin_refusal *why);
int pin_socket_check_bytes(const struct pinion_request *request, struct pin_refusal *why);
int pin_socket_check_shutdown(const struct pinion_request *request, struct pin_refusal *why);

void pin_socket_prepare_poll(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_socket_prepare_accept(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_socket_prepare_connect(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_socket_prepare_recv(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_socket_prepare_send(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_socket_prepare_shutdown(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_socket_prepare_new(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);

bool pin_socket_accept_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);
bool pin_socket_connect_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);
bool pin_socket_recv_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);
bool pin_socket_send_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);

/* The same of those whose memory is that of a message. */
int pin_socket_check_message(const struct pinion_request *request, struct pin_refusal *why);

void pin_socket_prepare_sendmsg(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_socket_prepare_recvmsg(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);

bool pin_socket_sendmsg_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);
bool pin_socket_recvmsg_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);

/* ---- entries of NVMe commands ---- */

/*
 * Makes commands for a ring, or a call, of reads of an NVMe namespace
 * (host/block_device.h), each of at most as many blocks as the device takes at
 * once.
 *
 * A command is done whole or not at all, and knows no end of file; so the range
 * is cut here, to the namespace and to one command, and a longer read goes on
 * at the end of the command (io/transfer.c).
 *
 * The file's `inode` is the namespace's number, its offset alignment one block;
 * how many of those a command may have, less one, is in the upper half of its
 * `flags`.
 */

/* Which part of `length` bytes from `offset` on the next command reads. */
uint32_t pin_command_length(const struct pinion_file *file, uint64_t offset, uint64_t length);

/*
 * Fills in a 128-byte entry, all but its user_data. The range was cut by
 * pin_command_length(), and is not empty. `index` is that of the registered
 * range that holds the memory, or -1.
 */
void pin_command_prepare(struct io_uring_sqe *sqe, const struct pinion_file *file, uint8_t *bytes,
	uint64_t offset, uint32_t length, int index);

/* Its outcome, from the result of its ring: its length, or an error. */
int32_t pin_command_result(int32_t result, uint32_t length);

/* Does it here and now. Bytes that were read, 0 at the end; or an error. */
int32_t pin_command_read(
	const struct pinion_file *file, uint8_t *bytes, uint64_t offset, uint64_t length);

/* ---- cached reads ---- */

/*
 * Reads that the page cache can answer: the worker copies them at once with
 * preadv2(RWF_NOWAIT), which never waits for a disk and, for a read that comes
 * alone, costs less than the way through a ring and back. Reads that come
 * together share an enter and go by the ring (worker/submit.c), unless there
 * are rates to keep: cached reads are not limited.
 *
 * Tried on files of which something was cached when they were opened. Earlier
 * tries decide whether the next one is worth the system call: after a miss one
 * read is not tried, after the next miss two, then four, up to 64; after a hit
 * all are tried again. So a file that is cached no longer costs little.
 *
 * Called by the worker; its own, one for each. Large reads go through the ring,
 * where the kernel's threads may copy them while the worker goes on.
 *
 * Source: docs/decisions/files-and-scan.md, "The worker copies cached data".
 */

enum {
	/* At most this number is copied while a callback submits. */
	PIN_CACHED_BYTES_MAX = 128 << 10,
	PIN_CACHED_SKIPS_MAX = 64,
};

/* [own] */
struct pin_cached {
	uint32_t skips_left; /* reads not to be tried */
	uint32_t next_skips; /* after the next miss; 0 counts as 1 */
};

/* Whether to try it; to be asked once for each read. */
static inline bool pin_cached_is_worth_it(
	struct pin_cached *cached, const struct pinion_request *request)
{
	const struct pinion_file *file = request->file;

	/* 0: nothing was cached; more than 100: unknown. */
	if (!pin_op_is_in(request->op, PIN_OPS_READING_BYTES) || file->is_direct ||
		file->cached_percent - 1 >= 100 || request->length_bytes > PIN_CACHED_BYTES_MAX) {
		return false;
	}
	PIN_DCHECK(cached->skips_left <= PIN_CACHED_SKIPS_MAX);
	if (cached->skips_left > 0) {
		cached->skips_left--;
		return false;
	}
	return true;
}

/*
 * True: it is done, with its result. False: it is as it was, for the ring. It
 * was checked, and done_bytes is 0.
 */
bool pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request);

/* ---- requests ---- */

/* 0, or why pinion_request_submit() refuses it, -EBUSY apart. */
int pin_request_check(const struct pinion_request *request);

/* The same of one of the public operations, in words as well. */
int pin_request_explain(const struct pinion_request *request, struct pin_refusal *why);

/*
 * Submits a request that was checked and reset; its entry is made here. False:
 * no credit is left, or the ring lacks what the operation needs.
 */
bool pin_request_submit(struct pin_ring *ring, struct pinion_request *request);

/* Whether it is the latter: pin_request_carry_out() does it instead. */
bool pin_request_is_beyond(const struct pin_ring *ring, const struct pinion_request *request);

/*
 * The same for a read of a namespace (PIN_FILE_COMMANDS) and a ring of 128-byte
 * entries. False also where there is nothing to read.
 */
bool pin_request_submit_command(struct pin_ring *ring, struct pinion_request *request);

/*
 * Carries out a request that is special, or beyond its ring, by calls; a
 * transfer from where it has got to up to the end of a part. Blocks, so a
 * worker calls it by pin_requests_carry_out(). True: it is over, and has its
 * result.
 */
bool pin_request_carry_out(struct pin_ring *ring, struct pinion_request *request);

/* Asks the kernel for its end, when `ended_by` has been set. */
void pin_request_abandon(struct pin_ring *ring, struct pinion_request *request);

/*
 * Takes one completion's user_data and result. Returns the request that is
 * done, with its result; or NULL when it was submitted anew, or is going to be:
 * `ask_part` of the ring.
 */
struct pinion_request *pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result);

/* The same for a ring of 128-byte entries. */
struct pinion_request *pin_request_complete_command(
	struct pin_ring *ring, uint64_t user_data, int32_t result);

/* A request in flight was written to by its caller. Aborts. */
_Noreturn void pin_request_report_changed(
	const struct pin_ring *ring, const struct pinion_request *request);

/* The message about a caller's change of a request in flight; one address. */
#define PIN_REQUEST_CHANGED \
	"the pinion_request at %p was written to while it was in flight: leave it alone from " \
	"the submit until its task is entered"
#define PIN_REQUEST_VECTOR_CHANGED \
	"the vector of the pinion_request at %p was changed while it was in flight: leave it " \
	"alone until its task is entered"
#define PIN_REQUEST_OPTIONS_CHANGED \
	"the options of the pinion_request at %p were changed while it was in flight to what " \
	"the submit would have refused: leave them alone until its task is entered"

#endif
