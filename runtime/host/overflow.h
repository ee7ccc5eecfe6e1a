/* SPDX-License-Identifier: MIT */
/*
 * Noticing that a thread's stack has run over.
 *
 * Below each thread's stack lies a guard page; touching it raises SIGSEGV, with
 * no stack left to run a handler on. So a thread that is to be watched gets an
 * alternate one, and the process a handler that tells such a fault from others:
 * its address is in the calling thread's guard. All others, and all it is not
 * to deal with, go to the handler that was there before.
 *
 * The handler stays for the life of the process: by the time of the end
 * somebody else may have put another on top, which leads here.
 *
 * What is called in the handler is async-signal-safe: system calls, and
 * glibc's unwinder, which finds its tables without a lock (2.35).
 *
 * Limit: a frame larger than the guard may step over it; compilers' option
 * -fstack-clash-protection, a default of Debian's, is against that.
 */
#ifndef PIN_HOST_OVERFLOW_H
#define PIN_HOST_OVERFLOW_H

#include <stddef.h>
#include <stdint.h>

/* [own] of the thread it watches */
struct pin_overflow {
	uintptr_t low; /* of the guard; 0: not watched */
	uintptr_t high;
	void *stack; /* the alternate one */
	size_t stack_bytes;
	/* In the handler; if it returns, the earlier handler has its turn. */
	void (*hit)(void *arg);
	void *arg;
};

/* Watches the calling thread. A negative errno. */
int pin_overflow_begin(struct pin_overflow *overflow, void (*hit)(void *arg), void *arg);

/* The last call on that thread. Accepts one that is zero. */
void pin_overflow_end(struct pin_overflow *overflow);

/*
 * In the handler: one line on stderr that says whose stack it was, and in which
 * function, by program and offset.
 */
void pin_overflow_report(uint32_t worker_index, uintptr_t function);

#endif
