/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes: their entries, and where they go on when a completion was
 * not all. For the table in request.c, whose columns say what each is to do.
 */
#ifndef PIN_IO_TRANSFER_H
#define PIN_IO_TRANSFER_H

#include "runtime/io/request_state.h"
#include "runtime/io/ring.h"

int pin_transfer_check(const struct pinion_request *request);

void pin_transfer_prepare_read(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
void pin_transfer_prepare_write(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);

bool pin_transfer_read_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);
bool pin_transfer_write_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result);

/*
 * Carries out one that is special, from where it has got to up to the end of a
 * part; blocks. True: it is over, and has its result.
 */
bool pin_transfer_carry_out(struct pin_ring *ring, struct pinion_request *request);

#endif
