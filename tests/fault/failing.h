/* SPDX-License-Identifier: MIT */
/*
 * Calls of the library that fail when a test says so.
 *
 * The linker's --wrap puts failing.c between the library's objects and libc or
 * liburing: of one kind of call the n-th made since failing_arm() fails with
 * the error given, or that and all later ones. What the library allocates and
 * maps is counted, to be compared before and after. Calls inside libc, hwloc
 * and liburing themselves are not seen.
 */
#ifndef PIN_TESTS_FAULT_FAILING_H
#define PIN_TESTS_FAULT_FAILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum failing_kind {
	FAILING_NOTHING,
	FAILING_MEMORY,		 /* malloc and its kin */
	FAILING_MAP,		 /* mmap */
	FAILING_ADVICE,		 /* madvise, mbind, posix_fadvise */
	FAILING_THREAD,		 /* pthread_create */
	FAILING_BIND,		 /* sched_setaffinity, prctl, membarrier, unshare */
	FAILING_RING_PROBE,	 /* io_uring_setup of the probe */
	FAILING_RING_SETUP,	 /* of workers */
	FAILING_RING_BUFFERS,	 /* registering them */
	FAILING_RING_REGISTER,	 /* registering anything else, messages */
	FAILING_RING_DESCRIPTOR, /* registering the ring's own, and its helpers */
	FAILING_RING_ENTER,
	FAILING_FUTEX_WAIT,
	FAILING_DESCRIPTOR, /* open, openat, opendir, fopen, eventfd */
	FAILING_STATUS,	    /* stat and its kin, cachestat */
	FAILING_FLAGS,	    /* fcntl, lseek */
	FAILING_READ,	    /* pread, preadv2 */
	FAILING_LISTING,    /* getdents64, readdir */
};

/* While there is one thread. `error` is positive. */
void failing_arm(enum failing_kind kind, uint32_t nth, int error, bool is_lasting);
/*
 * One call, too. Their stacks distinguish calls, and each time the next
 * of a stack fails, after the first the second, until `limit` of it have; a
 * call that is made over and over fails often enough by that. Stacks are
 * remembered until they are forgotten.
 */
void failing_arm_stacks(enum failing_kind kind, int error, uint32_t limit);
void failing_forget_stacks(void);
/* Returns how many calls have failed since. */
uint32_t failing_disarm(void);

/* What the library holds, as far as it came by a call that is seen. */
size_t failing_live_count(void);
size_t failing_mapped_bytes(void);

/* Calls of malloc, calloc, aligned_alloc and realloc so far. */
size_t failing_block_calls(void);

#endif
