/* SPDX-License-Identifier: MIT */
/*
 * A guard keeps a thread alive when what it calls does not return.
 *
 * A job may end otherwise than by returning: it is unwound on purpose, it calls
 * pthread_exit(), it lets a C++ exception out. Each way leads back to the loop
 * that runs jobs, on the same thread: a ring belongs to the thread that made
 * it, and dies with it and all that is in flight there, so no other thread
 * could take its place.
 *
 * The point to come back to is set once, when the loop begins; a job costs
 * nothing. On the way back the frames between are unwound, so that what they
 * have for such a case is done: cleanup attributes, destructors, handlers
 * pushed by pthread_cleanup_push().
 *
 *     unwound    a forced unwind from here; stops at the guard's frame
 *     exit       glibc's forced unwind; the guard has pushed a handler, which
 *                is entered in the guard's frame and does not go on
 *     exception  the guard's frame has a personality that says it catches all
 *
 * Limits: a thread that ends by the bare system call is gone. After a
 * pthread_exit() glibc treats the thread as about to end: it ignores
 * pthread_cancel(), and leaves the thread out when the process changes its user
 * by setuid(2) and its kin.
 *
 * Source: Itanium C++ ABI, "Exception Handling"; docs/decisions/workers.md, "A
 * job that ends its thread ends alone".
 */
#ifndef PIN_HOST_UNWIND_H
#define PIN_HOST_UNWIND_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <unwind.h>

enum pin_unwind_result {
	PIN_UNWIND_RETURNED = 0, /* the body has returned */
	PIN_UNWIND_UNWOUND,	 /* by pin_guard_unwind() */
	PIN_UNWIND_EXIT,	 /* it called pthread_exit() */
	PIN_UNWIND_EXCEPTION,	 /* it let a C++ exception out */
};

/* [own] of the thread that runs it */
struct pin_guard {
	jmp_buf point;
	void *frame; /* NULL: not running */
	struct _Unwind_Exception unwinding;
};

/*
 * Calls body(arg) and returns how it ended. May be called again at once, but
 * not within a guard's call on the same thread.
 */
enum pin_unwind_result pin_guard_run(struct pin_guard *guard, void (*body)(void *arg), void *arg);

static inline bool pin_guard_is_running(const struct pin_guard *guard)
{
	return guard->frame != NULL;
}

/* Inside of a running guard's call: unwinds up to it. */
_Noreturn void pin_guard_unwind(struct pin_guard *guard);

#endif
