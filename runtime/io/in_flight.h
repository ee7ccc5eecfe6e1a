/* SPDX-License-Identifier: MIT */
/*
 * Marks for sanitizers about memory that the kernel has: they do not see its
 * reads and writes. Elsewhere all this is nothing.
 *
 * AddressSanitizer: from submission to completion no code touches memory that a
 * read, a receive or a statx is to fill. Memory of a write may be read by
 * others meanwhile, for which it has no mark.
 *
 * ThreadSanitizer: the worker writes what a read fills, and reads what a write
 * takes, once at the submission and once at the completion. A thread that
 * touches it in between, without an order before the completion, races with
 * that. A completion comes after its submission, whichever thread reaps it.
 *
 * Of long pieces of memory the first MiB is marked: their shadow would be as
 * long.
 */
#ifndef PIN_IO_IN_FLIGHT_H
#define PIN_IO_IN_FLIGHT_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/io/operation.h"

#include <pinion/request.h>

#if defined(PIN_ASAN) || defined(PIN_TSAN)
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum {
	PIN_IN_FLIGHT_TOLD_BYTES = 1 << 20,
};

static inline size_t pin_in_flight_told(uint64_t bytes)
{
	return bytes < PIN_IN_FLIGHT_TOLD_BYTES ? (size_t)bytes : PIN_IN_FLIGHT_TOLD_BYTES;
}

/* The kernel writes to its memory, or else reads it. */
static inline bool pin_in_flight_fills(const struct pinion_request *request)
{
	return pin_request_has(request, PIN_OP_READS | PIN_OP_LOOKS | PIN_OP_FILLS);
}

/* In how many pieces its memory is; 0: it has none to mark. */
static inline uint32_t pin_in_flight_count(const struct pinion_request *request)
{
	if (pin_request_has(request, PIN_OP_GATHERS)) {
		return request->vector_count;
	}
	if (pin_request_has(request, PIN_OP_HAS_MESSAGE)) {
		return (uint32_t)request->message->msg_iovlen;
	}
	return pin_request_has(request, PIN_OP_MOVES | PIN_OP_LOOKS | PIN_OP_FILLS | PIN_OP_TAKES)
		? 1
		: 0;
}

static inline struct iovec pin_in_flight_piece(const struct pinion_request *request, uint32_t index)
{
	struct iovec piece = {.iov_base = request->status, .iov_len = sizeof(struct statx)};

	if (pin_request_has(request, PIN_OP_GATHERS)) {
		piece = request->vector[index];
	} else if (pin_request_has(request, PIN_OP_HAS_MESSAGE)) {
		piece = request->message->msg_iov[index];
	} else if (pin_request_has(request, PIN_OP_MOVES | PIN_OP_FILLS | PIN_OP_TAKES)) {
		piece = (struct iovec){
			.iov_base = request->bytes, .iov_len = request->length_bytes};
	}
	piece.iov_len = pin_in_flight_told(piece.iov_len);
	return piece;
}
#endif

#ifdef PIN_TSAN
#include <sanitizer/tsan_interface.h>

/* Of its runtime, as compilers call them; no header has them. */
void __tsan_read_range(void *address, unsigned long bytes);
void __tsan_write_range(void *address, unsigned long bytes);

static inline void pin_in_flight_access(const struct pinion_request *request)
{
	for (uint32_t i = 0; i < pin_in_flight_count(request); i++) {
		struct iovec piece = pin_in_flight_piece(request, i);

		if (pin_in_flight_fills(request)) {
			__tsan_write_range(piece.iov_base, piece.iov_len);
		} else {
			__tsan_read_range(piece.iov_base, piece.iov_len);
		}
	}
}
#endif

/* From here on the kernel may have the request's memory. */
static inline void pin_in_flight_begin(const struct pinion_request *request)
{
	/* No ring has what only waits, or travels between workers. */
	PIN_DCHECK(!pin_request_has(request, PIN_OP_WAITS | PIN_OP_TRAVELS));
#ifdef PIN_TSAN
	pin_in_flight_access(request);
	__tsan_release((void *)(uintptr_t)request);
#elif defined(PIN_ASAN)
	for (uint32_t i = 0; i < pin_in_flight_count(request); i++) {
		struct iovec piece = pin_in_flight_piece(request, i);

		if (pin_in_flight_fills(request)) {
			PIN_ASAN_POISON(piece.iov_base, piece.iov_len);
		}
	}
#else
	(void)request;
#endif
}

/* Its completion has been seen. */
static inline void pin_in_flight_end(const struct pinion_request *request)
{
#ifdef PIN_TSAN
	__tsan_acquire((void *)(uintptr_t)request);
	pin_in_flight_access(request);
#elif defined(PIN_ASAN)
	for (uint32_t i = 0; i < pin_in_flight_count(request); i++) {
		struct iovec piece = pin_in_flight_piece(request, i);

		if (pin_in_flight_fills(request)) {
			PIN_ASAN_UNPOISON(piece.iov_base, piece.iov_len);
		}
	}
#else
	(void)request;
#endif
}

/* A system call in place of a ring is about to fill it. */
static inline void pin_in_flight_fill(void *address, uint64_t bytes)
{
#ifdef PIN_ASAN
	PIN_ASAN_UNPOISON(address, pin_in_flight_told(bytes));
#else
	(void)address;
	(void)bytes;
#endif
}

#endif
