/* SPDX-License-Identifier: MIT */
/*
 * Which limit keeps a thread from being created.
 *
 * pthread_create(3) says EAGAIN for all of them: the address space of the
 * process (its stack does not fit), the cgroup's number of tasks, the user's
 * number of processes, and the system's. The first of these found to be reached
 * is the cause; the user's number cannot be seen from here, so it is the cause
 * when it is limited and neither of the two before it is reached.
 *
 * Called on any thread, after a failure only: it reads files. Keeps no state.
 *
 * Source: setrlimit(2), proc(5), cgroups(7), pthread_create(3).
 */
#ifndef PIN_HOST_THREAD_LIMIT_H
#define PIN_HOST_THREAD_LIMIT_H

#include <stddef.h>

/*
 * Writes why a thread with a stack of `stack_bytes`, 0: the default, was
 * refused with `error`, and what to raise. 192 bytes hold every line.
 *
 * Units: `error` is a negative errno.
 */
void pin_threadlimit_hint(int error, size_t stack_bytes, char *out, size_t size);

/* The same for a machine whose files lie below `root`; for tests. */
void pin_threadlimit_hint_at(
	const char *root, int error, size_t stack_bytes, char *out, size_t size);

#endif
