/* SPDX-License-Identifier: MIT */
/*
 * The ring's place-holder where io_uring cannot be had: the same submission
 * entries, carried out one by one with ordinary system calls when the ring
 * would have been entered. Everything above the ring is unaware of it.
 */
#ifndef PIN_IO_SYNC_RING_H
#define PIN_IO_SYNC_RING_H

#include <liburing.h>
#include <stdint.h>

/* The opcode of an entry that was cancelled while it waited; no kernel's. */
#define PIN_FALLBACK_CANCELLED 0xffu

/*
 * Carries out one entry and returns what its completion would carry: a count
 * or a negative errno. -EOPNOTSUPP: an operation the library never uses here.
 */
int32_t pin_fallback_execute(const struct io_uring_sqe *sqe);

/*
 * The same with the I/O priority that the entry asks for: 0, the thread's own.
 */
int32_t pin_fallback_execute_as_asked(const struct io_uring_sqe *sqe);

/*
 * When some have been carried out: gives the thread the I/O priority back that
 * it had before the first that asked for another.
 */
void pin_fallback_rest(void);

#endif
