/* SPDX-License-Identifier: MIT */
/*
 * Formatting, for those who ask.
 */
#include "runtime/base/base.h"
#include "runtime/io/file.h"

#include <stdarg.h>
#include <stdio.h>

PIN_APART int pin_refuse(struct pin_refusal *why, int error, const char *format, ...)
{
	va_list arguments;

	if (why != NULL) {
		va_start(arguments, format);
		vsnprintf(why->text, sizeof(why->text), format, arguments);
		va_end(arguments);
	}
	return error;
}
