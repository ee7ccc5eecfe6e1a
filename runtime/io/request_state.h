/* SPDX-License-Identifier: MIT */
/*
 * What a request consists of besides what its user sees: its private part, and
 * how far it has got.
 */
#ifndef PIN_IO_REQUEST_STATE_H
#define PIN_IO_REQUEST_STATE_H

#include "runtime/io/file.h"
#include "runtime/queue/timer_wheel.h"

#include <errno.h>
#include <linux/openat2.h>
#include <pinion/request.h>

/* Behind the public operations: the library's own. */
enum {
	/*
	 * As PINION_OP_OPEN for a path from the working folder, `flags` are
	 * open(2)'s. The descriptor, as it is. Of `options`, which may be NULL,
	 * directory_fd and resolve count.
	 */
	PIN_OP_OPEN_PLAIN = PINION_OP_CANCEL + 1,
	PIN_OP_COUNT,
};

/* A place in a list of which one can be taken out of the middle. */
struct pin_flight_link {
	struct pin_flight_link *next; /* in a circle; NULL: in no list */
	struct pin_flight_link *previous;
};

static inline void pin_flight_list_init(struct pin_flight_link *list)
{
	list->next = list;
	list->previous = list;
}

static inline bool pin_flight_list_is_empty(const struct pin_flight_link *list)
{
	return list->next == list;
}

static inline void pin_flight_list_push(struct pin_flight_link *list, struct pin_flight_link *link)
{
	link->next = list;
	link->previous = list->previous;
	list->previous->next = link;
	list->previous = link;
}

static inline void pin_flight_list_remove(struct pin_flight_link *link)
{
	link->next->previous = link->previous;
	link->previous->next = link->next;
	link->next = NULL;
}

/* What a transfer owes its device: worker/device_queue.h. */
struct pin_request_toll {
	uint64_t started_ns;  /* 0: it is not timed */
	uint32_t pages;	      /* of the credit that it has; 0: none */
	uint8_t ledger_place; /* 1 + that of the device's ledger; 0: it never got there */
	bool is_lined_up;     /* waits for credit, or for its time */
	bool is_paid;	      /* rates have been kept */
};

/* What a request's private part holds. */
struct pin_request {
	struct pin_atomic_u32 word; /* [W:any R:any] worker/request.h */
	/*
	 * [own] of the worker it is on, from here on; the first eight bytes are
	 * reset in one
	 */
	int16_t ended_by;     /* what ends it early, -ECANCELED or -ETIME; or 0 */
	uint8_t stall_count;  /* attempts in a row without a byte */
	uint8_t asked_again;  /* times for its end, with the next, when `deadline` comes */
	bool is_timed;	      /* `deadline` has been armed */
	bool is_waiting;      /* for room in the ring, or lined up */
	bool uses_own_buffer; /* of the worker it is on */
	bool keeps_cache;     /* DONTCACHE was refused */
	uint32_t hops_left;   /* of a cancel: workers still to be visited */
	bool is_from_outside; /* and not yet counted by its worker */
	bool has_ended;	      /* but a message of it is still under way */
	bool is_aside; /* not on the first ring: worker/request_aside.h; false when it ends */
	bool was_free; /* of a posted transfer: its buffer, then */
	uint16_t lane_priority; /* of a transfer that asks for none itself; 0: none */
	bool is_lent_own;	/* `lent`: by pin_pool_lend_own() */
	struct pin_flight_link link;
	union {
		struct open_how how; /* of an open: the kernel reads it when it is submitted */
		struct {	     /* of a transfer */
			struct pin_request_toll toll;
			uint64_t resume_bytes; /* where the next attempt starts */
		};
	};
	pinion_task_fn run; /* of an open: comes after looking at the file */
	union {
		struct pin_device_cache *devices; /* with this worker's help */
		struct pin_entry *lent;		  /* of a transfer: whose memory it uses */
	};
	/* Last: most have none, and so touch one cache line less. */
	struct pin_timer deadline;
};

static inline struct pin_request *pin_request_of(struct pinion_request *request)
{
	return (struct pin_request *)(void *)request->private_;
}

static inline struct pinion_request *pin_flight_request(struct pin_request *private)
{
	return PIN_CONTAINER_OF((uint64_t *)(void *)private, struct pinion_request, private_);
}

/*
 * Of a longer transfer the kernel is given so much at a time, part after part:
 * as much as the device has at once by default. Between parts others have their
 * turn, cancels and deadlines take effect, and what one call can move at most
 * (2 GiB) limits nothing. A multiple of all alignments.
 */
#define PIN_REQUEST_PART_BYTES (64u << 20)

/* How much of a transfer comes next, when so much of it is done. */
static inline uint32_t pin_request_part(uint64_t length_bytes, uint64_t done_bytes)
{
	uint64_t left_bytes = length_bytes - done_bytes;
	uint32_t part_bytes =
		PIN_REQUEST_PART_BYTES - (uint32_t)(done_bytes % PIN_REQUEST_PART_BYTES);

	return left_bytes < part_bytes ? (uint32_t)left_bytes : part_bytes;
}

static inline bool pin_request_moves_bytes(const struct pinion_request *request)
{
	return request->op <= PINION_OP_WRITE; /* READ is 0 */
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
 * A transfer that is nothing for the first ring: that might get it wrong
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

/* Whether it is tried again after that error; counts it as an attempt. */
static inline bool pin_request_may_retry(struct pinion_request *request, int64_t result)
{
	struct pin_request *private = pin_request_of(request);

	if (result != -EINTR && result != -EAGAIN) {
		return false;
	}
	private->stall_count++;
	return private->stall_count <= PIN_REQUEST_STALLS_MAX;
}

#endif
