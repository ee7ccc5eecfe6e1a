/* SPDX-License-Identifier: MIT */
/*
 * A context for the first entry, plain jumps from then on.
 */
#undef _FORTIFY_SOURCE /* its longjmp refuses to change stacks */
#include "tests/sim/coroutine.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#endif

#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
/* Frames that were never left would else forbid their memory for ever. */
#define forget_frames(stack, bytes) ASAN_UNPOISON_MEMORY_REGION(stack, bytes)
#else
#define forget_frames(stack, bytes) ((void)0)
#endif

void coroutine_init(
	struct coroutine *coroutine, void *stack, size_t stack_bytes, void (*entry)(void))
{
	forget_frames(stack, stack_bytes);
	coroutine->has_begun = false;
	getcontext(&coroutine->beginning);
	coroutine->beginning.uc_stack.ss_sp = stack;
	coroutine->beginning.uc_stack.ss_size = stack_bytes;
	coroutine->beginning.uc_link = NULL;
	makecontext(&coroutine->beginning, entry, 0);
}

void coroutine_init_own(struct coroutine *coroutine)
{
	coroutine->has_begun = true;
}

/* A jump takes a tenth of swapcontext's time: no signal mask to save. */
void coroutine_switch(struct coroutine *from, struct coroutine *to)
{
	if (_setjmp(from->jump) != 0) {
		return;
	}
	if (to->has_begun) {
		_longjmp(to->jump, 1);
	}
	to->has_begun = true;
	setcontext(&to->beginning);
}
