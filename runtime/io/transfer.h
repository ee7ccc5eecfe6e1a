/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes: their entries, and where they go on when a completion was
 * not all. For the table in request.c, whose columns say what each is to do.
 */
#ifndef PIN_IO_TRANSFER_H
#define PIN_IO_TRANSFER_H

#include "runtime/io/refusal.h"
#include "runtime/io/request_state.h"
#include "runtime/io/ring.h"

int pin_transfer_check(const struct pinion_request *request, struct pin_refusal *why);

void pin_transfer_prepare_read(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_transfer_prepare_write(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);

bool pin_transfer_read_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);
bool pin_transfer_write_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);

/*
 * Whether so much is the end of one that was moved in one piece, as most are,
 * with nothing to do about the cache; it has done_bytes then. False: the
 * functions above tell.
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
	pin_meter_add(request->op == PINION_OP_READ ? &ring->meter->read_bytes
						    : &ring->meter->write_bytes,
		(uint64_t)got);
	return true;
}

/*
 * Carries out one that is special, from where it has got to up to the end of a
 * part; blocks. True: it is over, and has its result.
 */
bool pin_transfer_carry_out(struct pin_ring *ring, struct pinion_request *request);

#endif
