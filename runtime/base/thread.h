/* SPDX-License-Identifier: MIT */
/*
 * Per-thread state that no hot path reads.
 *
 * Thread-local variables of the initial-exec model cost no call, but a library
 * that is loaded late gets their room from a small reserve that all libraries
 * and all namespaces of dlmopen(3) share (some 1.5 KiB in glibc). So only the
 * two that hot paths read are such variables, pin_worker_self and pin_recent;
 * everything else is one record, found through one key.
 *
 * pin_worker_main() provides a worker's record, which an embedder's allocator
 * has allocated. Any other thread makes its own by its first call of
 * pin_thread_own(), and the key's destructor frees it. Other destructors of the
 * same thread may run before or after it and still use the record, unless they
 * come in the last of the PTHREAD_DESTRUCTOR_ITERATIONS rounds.
 */
#ifndef PIN_BASE_THREAD_H
#define PIN_BASE_THREAD_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	PIN_THREAD_ATTACHMENTS = 8,
};

/* A cache in a pool; `number` 0: the slot is free. See api/pool.c. */
struct pin_thread_attachment {
	uint64_t number;
	uint32_t cache;
};

/* [own] by the thread; a new one is all zeroes. */
struct pin_thread {
	struct pin_worker *worker_in_hook; /* worker/worker.h; NULL: not in a hook */
	struct pin_guard *guard;	   /* host/unwind.h, the innermost that runs */
	/* What the thread could use before it was bound; empty: not known. */
	cpu_set_t unbound_cpus;
	/*
	 * io/ring.h: its I/O priority, and whether entries changed that.
	 */
	int priority_before;
	int priority_now;
	bool priority_is_changed;
	struct pin_thread_attachment attachments[PIN_THREAD_ATTACHMENTS];
	uint32_t destructor_rounds;
};

/*
 * The calling thread's record, NULL before the first call of the one below.
 * Async-signal-safe.
 */
struct pin_thread *pin_thread_find(void);

/*
 * Makes the caller's zeroed record the record of the calling thread, until the
 * thread takes it back. Does nothing where the thread has one. -ENOMEM: see
 * below.
 */
int pin_thread_provide(struct pin_thread *thread);
void pin_thread_take_back(struct pin_thread *thread);

/*
 * The calling thread's record, made where it has none. NULL: no memory, or no
 * key of the process is left.
 */
struct pin_thread *pin_thread_own(void);

#endif
