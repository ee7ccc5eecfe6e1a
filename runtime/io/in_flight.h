/* SPDX-License-Identifier: MIT */
/*
 * Marks for sanitizers about memory that the kernel has: they do not see its
 * reads and writes. Elsewhere all this is nothing.
 *
 * AddressSanitizer: from submission to completion no code touches memory that a
 * read, or a statx, is to fill. Memory of a write may be read by others
 * meanwhile, for which it has no mark.
 *
 * ThreadSanitizer: the worker writes what a read fills, and reads what a write
 * takes, once at the submission and once at the completion. A thread that
 * touches it in between and has nothing that comes before the completion races
 * with that. A completion comes after its submission, whichever thread reaps
 * it.
 *
 * Of long transfers the first MiB is marked: their shadow would be as long.
 */
#ifndef PIN_IO_IN_FLIGHT_H
#define PIN_IO_IN_FLIGHT_H

#include "runtime/base/base.h"
#include "runtime/io/operation.h"

#include <pinion/request.h>

#if defined(__SANITIZE_THREAD__)
#define PIN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PIN_TSAN 1
#endif
#endif

#if defined(PIN_ASAN) || defined(PIN_TSAN)
#include <sys/stat.h>

enum {
	PIN_IN_FLIGHT_TOLD_BYTES = 1 << 20,
};

static inline size_t pin_in_flight_told(uint64_t bytes)
{
	return bytes < PIN_IN_FLIGHT_TOLD_BYTES ? (size_t)bytes : PIN_IN_FLIGHT_TOLD_BYTES;
}

/* Memory that the kernel writes to; NULL: none to mark. */
static inline void *pin_in_flight_filled(const struct pinion_request *request, size_t *out_bytes)
{
	if (pin_request_has(request, PIN_OP_READS)) {
		*out_bytes = pin_in_flight_told(request->length_bytes);
		return request->bytes;
	}
	*out_bytes = sizeof(struct statx);
	return pin_request_has(request, PIN_OP_LOOKS) ? request->status : NULL;
}
#endif

#ifdef PIN_TSAN
#include <sanitizer/tsan_interface.h>

/* Of its runtime, as compilers call them; no header has them. */
void __tsan_read_range(void *address, unsigned long bytes);
void __tsan_write_range(void *address, unsigned long bytes);

static inline void pin_in_flight_access(const struct pinion_request *request)
{
	size_t bytes;
	void *filled = pin_in_flight_filled(request, &bytes);

	if (filled != NULL) {
		__tsan_write_range(filled, bytes);
	} else if (pin_request_has(request, PIN_OP_MOVES)) {
		__tsan_read_range(request->bytes, pin_in_flight_told(request->length_bytes));
	}
}
#endif

/* From here on the kernel may have the request's memory. */
static inline void pin_in_flight_begin(const struct pinion_request *request)
{
#ifdef PIN_TSAN
	pin_in_flight_access(request);
	__tsan_release((void *)(uintptr_t)request);
#elif defined(PIN_ASAN)
	size_t bytes;
	void *filled = pin_in_flight_filled(request, &bytes);

	if (filled != NULL) {
		PIN_ASAN_POISON(filled, bytes);
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
	size_t bytes;
	void *filled = pin_in_flight_filled(request, &bytes);

	if (filled != NULL) {
		PIN_ASAN_UNPOISON(filled, bytes);
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
