/* SPDX-License-Identifier: MIT */
/*
 * The fatal report: one line on stderr by write(2) alone, since the heap or a
 * stdio lock may be what is broken. The only place where the library prints.
 */
#include "runtime/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void pin_check_failed(const char *file, int line, const char *expression)
{
	char message[512];
	int length = snprintf(message, sizeof(message), "pinion: %s:%d: broken invariant: %s\n",
		file, line, expression);

	if (length > (int)sizeof(message) - 1) {
		length = (int)sizeof(message) - 1;
	}
	if (length > 0 && write(STDERR_FILENO, message, (size_t)length) < 0) {
		/*
		 * Nowhere left to complain; the abort below speaks for itself.
		 */
	}
	abort();
}
