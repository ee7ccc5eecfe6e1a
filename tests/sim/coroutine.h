/* SPDX-License-Identifier: MIT */
/*
 * Coroutines: several stacks on one thread, of which one runs until it hands
 * over to another. The caller decides on the next.
 */
#ifndef SIM_COROUTINE_H
#define SIM_COROUTINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

struct coroutine {
	ucontext_t beginning;
	jmp_buf jump; /* where it left off */
	bool has_begun;
};

/* `entry` never returns; it hands over for good instead. */
void coroutine_init(
	struct coroutine *coroutine, void *stack, size_t stack_bytes, void (*entry)(void));

/* Stands for the caller's own stack. */
void coroutine_init_own(struct coroutine *coroutine);

/* Leaves `from`, which is running, and goes on in `to`. */
void coroutine_switch(struct coroutine *from, struct coroutine *to);

#endif
