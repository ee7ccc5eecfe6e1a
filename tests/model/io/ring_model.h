/* SPDX-License-Identifier: MIT */
/*
 * A double of io/ring.c, io/ring_setup.c, io/request.c and io/transfer.c: rings
 * without a kernel.
 *
 * Submitted requests are at a device, which a test runs as a daemon thread;
 * when it completes one is the explorer's choice. Completions and doorbells are
 * counted in one atomic word, as the kernel moves the tail of a completion
 * queue; a wait ends when the owner has not reaped all it counted.
 *
 * The doorbell is a message or an eventfd with a poll, as in the product: an
 * eventfd whose poll is not armed keeps quiet until it is.
 */
#ifndef MODEL_RING_MODEL_H
#define MODEL_RING_MODEL_H

#include "runtime/io/request.h"

struct pin_shared;

/*
 * Whether other workers may reap a worker's ring; to be set before a runtime
 * begins.
 */
extern bool model_shares_rings;

/*
 * A worker that waits for a ring, and has a deadline within that time, finds
 * the deadline at once; 0, the default: it waits for completions alone.
 */
extern uint64_t model_near_ns;

/* For the next execution: which doorbell rings have, before any is set up. */
void model_rings_begin(enum pin_doorbell_kind kind);

/* A condition, without an argument: of the one driven worker. */
bool model_wake_set_is_readable(const void *arg);

/* Body of a daemon thread: completes requests, of any ring, one by one. */
void model_device(void *arg);
/* The device does nothing until it is released. */
void model_device_hold(void);
void model_device_release(void);

/* To be looked at as plain memory: a completion of any ring waits. */
bool model_rings_have_completions(void);

/* Called when a worker leaves its loop. NULL: nothing. */
void model_on_worker_exit(void (*hook)(void));

/*
 * A worker has found that the runtime is over, and reports it; how many have.
 */
void model_note_end(const struct pin_shared *shared);
uint32_t model_end_count(const struct pin_shared *shared);

#endif
