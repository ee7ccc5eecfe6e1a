/* SPDX-License-Identifier: MIT */
/*
 * Messages to the embedder: formatted on the stack, handed over as one line.
 */
#include "runtime/base/log.h"

#include <stdarg.h>
#include <stdio.h>

void pin_log(const struct pin_log *log, enum pinion_log_level level, const char *format, ...)
{
	char message[512];
	va_list arguments;

	if (log->fn == NULL) {
		return;
	}
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	log->fn(log->arg, level, message);
}
