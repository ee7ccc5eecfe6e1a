/* SPDX-License-Identifier: MIT */
/*
 * Stands in for libc's syscall() in the program that includes it, so that a
 * test sees, delays or refuses the io_uring and futex calls of the library's
 * Linux host. liburing's own set-up calls do not come this way.
 */
#ifndef PIN_TESTS_SUPPORT_SYSCALLS_H
#define PIN_TESTS_SUPPORT_SYSCALLS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * Asked before each call: true answers it with *out_result, with errno set by
 * the hook; false lets it through. NULL: all go through. Set it while there is
 * one thread.
 */
static bool (*syscalls_hook)(long number, const long *arguments, long *out_result);

/* Under a name of its own, because <unistd.h> declares it with "...". */
long syscalls_answer(long number, long a, long b, long c, long d, long e, long f) __asm__(
	"syscall");

/* The call itself, past the hook. */
static inline long syscalls_pass(long number, const long *arguments)
{
	static long (*next)(long, ...);

	if (next == NULL) {
		void *symbol = dlsym(RTLD_NEXT, "syscall");

		memcpy(&next, &symbol, sizeof(next));
	}
	return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		arguments[5]);
}

long syscalls_answer(long number, long a, long b, long c, long d, long e, long f)
{
	long arguments[] = {a, b, c, d, e, f};
	long result;

	if (syscalls_hook != NULL && syscalls_hook(number, arguments, &result)) {
		return result;
	}
	return syscalls_pass(number, arguments);
}

/* To be called first, while there is one thread. */
static inline void syscalls_begin(void)
{
	(void)syscalls_answer(0x7fffffff, 0, 0, 0, 0, 0, 0);
}

#endif
