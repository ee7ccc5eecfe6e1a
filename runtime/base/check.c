/* SPDX-License-Identifier: MIT */
/*
 * The fatal report: one line on stderr by write(2) alone, since the heap or a
 * stdio lock may be the broken part. The only place where the library prints.
 */
#include "runtime/base/check.h"
#include "runtime/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void write_and_abort(const char *message, size_t bytes)
{
	if (write(STDERR_FILENO, message, bytes) < 0) {
		/*
		 * Nowhere left to complain; the abort below speaks for itself.
		 */
	}
	abort();
}

_Noreturn void pin_check_failed(const char *file, int line, const char *expression)
{
	char message[512];
	int length = snprintf(message, sizeof(message), "pinion: %s:%d: broken invariant: %s\n",
		file, line, expression);

	if (length > (int)sizeof(message) - 1) {
		length = (int)sizeof(message) - 1;
	}
	write_and_abort(message, length > 0 ? (size_t)length : 0);
}

_Noreturn void pin_check_misused(const struct pin_log *log, const char *format, ...)
{
	static const char prefix[] = "pinion: ";
	char line[sizeof(prefix) - 1 + 512];
	char *message = line + sizeof(prefix) - 1;
	size_t bytes;
	va_list arguments;

	memcpy(line, prefix, sizeof(prefix) - 1);
	va_start(arguments, format);
	vsnprintf(message, 512, format, arguments);
	va_end(arguments);
	if (log != NULL) {
		pin_log_send(log, PINION_LOG_ERROR, PINION_LOG_API, message);
	}
	bytes = strlen(line);
	PIN_CHECK(bytes < sizeof(line));
	line[bytes] = '\n'; /* in place of the NUL */
	write_and_abort(line, bytes + 1);
}
