/* SPDX-License-Identifier: MIT */
/*
 * Requests between a worker and its ring: turning one into a submission entry,
 * and deciding at each completion whether it is done or must go on.
 *
 * What differs from one operation to the other stands in a table: what its
 * inputs must be, how its entry is made, and whether a completion is its end.
 *
 * Called by the worker whose ring it is. How a request gets to that worker, who
 * may end it early, and who enters its task, is worker/request.h.
 *
 * Source: docs/decisions/rings.md, "One struct describes every request".
 */
#ifndef PIN_IO_REQUEST_H
#define PIN_IO_REQUEST_H

#include "runtime/io/refusal.h"
#include "runtime/io/request_state.h"
#include "runtime/io/ring.h"

/* 0, or why pinion_request_submit() refuses it, -EBUSY apart. */
int pin_request_check(const struct pinion_request *request);

/* The same of one of the public operations, in words as well. */
int pin_request_explain(const struct pinion_request *request, struct pin_refusal *why);

/*
 * Submits one that was checked and reset; its entry is made here. False: no
 * credit is left.
 */
bool pin_request_submit(struct pin_ring *ring, struct pinion_request *request);

/*
 * The same for a read of a namespace (PIN_FILE_COMMANDS) and a wide ring. False
 * also where there is nothing to read.
 */
bool pin_request_submit_command(struct pin_ring *ring, struct pinion_request *request);

/* Asks the kernel for its end, when `ended_by` has been set. */
void pin_request_abandon(struct pin_ring *ring, struct pinion_request *request);

/*
 * Takes one completion's user_data and result. Returns the request that is
 * done, with its result; or NULL when it was submitted anew, or is going to be:
 * `ask_part` of the ring.
 */
struct pinion_request *pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result);

/* The same for a wide ring. */
struct pinion_request *pin_request_complete_command(
	struct pin_ring *ring, uint64_t user_data, int32_t result);

/* What a caller's change of a request in flight is told by; one address. */
#define PIN_REQUEST_CHANGED \
	"the pinion_request at %p was written to while it was in flight: leave it alone from " \
	"the submit until its task is entered"
#define PIN_REQUEST_OPTIONS_CHANGED \
	"the options of the pinion_request at %p were changed while it was in flight to what " \
	"the submit would have refused: leave them alone until its task is entered"

#endif
