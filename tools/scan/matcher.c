/* SPDX-License-Identifier: MIT */
/*
 * Which matcher a program has, and how matchers put failures into words.
 */
#include "tools/scan/matcher.h"

#include <stdarg.h>
#include <stdio.h>

const struct matcher_ops *matcher_default(void)
{
#if defined(HAVE_HYPERSCAN)
	return &matcher_hyperscan;
#else
	return &matcher_literal;
#endif
}

void matcher_complain(struct matcher_trouble *trouble, uint32_t rule, const char *format, ...)
{
	va_list arguments;

	trouble->rule = rule;
	va_start(arguments, format);
	vsnprintf(trouble->reason, sizeof(trouble->reason), format, arguments);
	va_end(arguments);
}
