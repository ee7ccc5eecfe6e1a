/* SPDX-License-Identifier: MIT */
/*
 * Ways back into a worker's guard: from pthread_exit(), an exception, or a
 * panic.
 *
 * loop/thread.c runs its loop inside pin_guard_run(); unwind.h explains why
 * this needs no setjmp for each task.
 *
 * Invariant: all frames of the task are unwound, with their cleanups, before
 * the guard is entered again.
 */
#include "runtime/host/unwind.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/thread.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* Of libstdc++ or libc++; NULL in a program that has neither. */
extern void *__cxa_begin_catch(void *exception) __attribute__((weak));
extern void __cxa_end_catch(void) __attribute__((weak));

_Unwind_Reason_Code pin_guard_personality(int version, _Unwind_Action actions,
	_Unwind_Exception_Class class, struct _Unwind_Exception *exception,
	struct _Unwind_Context *context);

static void dispose(struct _Unwind_Exception *exception)
{
	if (__cxa_begin_catch != NULL && __cxa_end_catch != NULL) {
		__cxa_begin_catch(exception);
		__cxa_end_catch();
	} else if (exception->exception_cleanup != NULL) {
		exception->exception_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, exception);
	}
}

/*
 * Asked by each unwinder about the frame of call_body(). An exception is
 * caught; all between has been unwound when the frame itself has its turn.
 */
__attribute__((used)) _Unwind_Reason_Code pin_guard_personality(int version, _Unwind_Action actions,
	_Unwind_Exception_Class class, struct _Unwind_Exception *exception,
	struct _Unwind_Context *context)
{
	/* The thread's innermost guard that runs. */
	struct pin_guard *guard = pin_thread_find()->guard;

	(void)version;
	(void)class;
	(void)context;
	if ((actions & _UA_FORCE_UNWIND) != 0) {
		return _URC_CONTINUE_UNWIND;
	}
	if ((actions & _UA_SEARCH_PHASE) != 0) {
		return _URC_HANDLER_FOUND;
	}
	if ((actions & _UA_HANDLER_FRAME) == 0) {
		return _URC_CONTINUE_UNWIND;
	}
	PIN_CHECK(pin_guard_is_running(guard));
	dispose(exception);
	_longjmp(guard->point, PIN_UNWIND_EXCEPTION);
}

/* A frame of its own, neither inlined nor left by a tail call. */
__attribute__((noinline)) static void call_body(
	struct pin_guard *guard, void (*body)(void *arg), void *arg)
{
	guard->frame = __builtin_dwarf_cfa();
	/* 0x1b: a relative address of four bytes, on all 64-bit targets. */
	__asm__ volatile(".cfi_personality 0x1b, pin_guard_personality");
	body(arg);
	__asm__ volatile("");
}

/* In the guard's frame, after a pthread_exit(). Never goes on with it. */
static void stay(void *arg)
{
	struct pin_guard *guard = arg;

	PIN_CHECK(pin_guard_is_running(guard));
	_longjmp(guard->point, PIN_UNWIND_EXIT);
}

/*
 * The handler is pushed anew each time: the job may have pushed others, whose
 * frames are gone.
 */
static void call_with_handler(struct pin_guard *guard, void (*body)(void *arg), void *arg)
{
	pthread_cleanup_push(stay, guard);
	call_body(guard, body, arg);
	pthread_cleanup_pop(0);
}

/* Sets the point of return once for all tasks that `body` will run. */
enum pin_unwind_result pin_guard_run(struct pin_guard *guard, void (*body)(void *arg), void *arg)
{
	struct pin_thread *thread = pin_thread_own();
	int unwind_result;

	PIN_CHECK(thread != NULL);
	PIN_CHECK(!pin_guard_is_running(guard));
	thread->guard = guard;
	/* A cancelled thread would leave in the middle of a protocol. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	unwind_result = _setjmp(guard->point);
	if (unwind_result == 0) {
		call_with_handler(guard, body, arg);
	}
	PIN_DCHECK(unwind_result >= PIN_UNWIND_RETURNED && unwind_result <= PIN_UNWIND_EXCEPTION);
	guard->frame = NULL;
	pin_thread_find()->guard = NULL;
	return (enum pin_unwind_result)unwind_result;
}

/*
 * In the caller of call_body(): the address that the unwinder gives for a frame
 * is that of its callee.
 */
static bool has_arrived(const struct pin_guard *guard, struct _Unwind_Context *context)
{
	return _Unwind_GetCFA(context) == (uintptr_t)guard->frame;
}

static _Unwind_Reason_Code stop_at_guard(int version, _Unwind_Action actions,
	_Unwind_Exception_Class class, struct _Unwind_Exception *exception,
	struct _Unwind_Context *context, void *arg)
{
	struct pin_guard *guard = arg;

	(void)version;
	(void)class;
	(void)exception;
	PIN_DCHECK((actions & _UA_FORCE_UNWIND) != 0);
	/* The end of the stack: a foreign frame cannot be unwound. */
	if ((actions & _UA_END_OF_STACK) != 0 || has_arrived(guard, context)) {
		_longjmp(guard->point, PIN_UNWIND_UNWOUND);
	}
	return _URC_NO_REASON;
}

_Noreturn void pin_guard_unwind(struct pin_guard *guard)
{
	PIN_CHECK(pin_guard_is_running(guard));
	guard->unwinding = (struct _Unwind_Exception){0};
	_Unwind_ForcedUnwind(&guard->unwinding, stop_at_guard, guard);
	/* It could not even begin. */
	_longjmp(guard->point, PIN_UNWIND_UNWOUND);
}
