/* SPDX-License-Identifier: MIT */
/*
 * Assertions. PIN_CHECK is compiled always and costs O(1); PIN_DCHECK only with
 * --enable-checks and in sanitizer builds, and may walk a structure; PIN_KNOWN
 * in the same builds, and elsewhere the compiler relies on its condition. A
 * failed one prints one line, in which the expression names the invariant, and
 * aborts: going on would corrupt what the caller trusts us with.
 */
#ifndef PIN_BASE_CHECK_H
#define PIN_BASE_CHECK_H

#include "runtime/base/log.h"

_Noreturn void pin_check_failed(const char *file, int line, const char *expression);

/*
 * The caller of the library made a mistake that cannot be refused or undone:
 * says which, on which object, and how to mend it, in one line of at most 511
 * bytes; through the log hook, if `log` is not NULL and has one, then on
 * stderr. Aborts.
 */
_Noreturn void pin_check_misused(const struct pin_log *log, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define PIN_CHECK(condition) \
	(__builtin_expect(!!(condition), 1) ? (void)0 \
					    : pin_check_failed(__FILE__, __LINE__, #condition))

#ifdef PIN_ENABLE_DCHECK
#define PIN_DCHECK(condition) PIN_CHECK(condition)
#define PIN_KNOWN(condition) PIN_CHECK(condition)
#else
#define PIN_DCHECK(condition) ((void)sizeof(!(condition)))
#define PIN_KNOWN(condition) ((condition) ? (void)0 : __builtin_unreachable())
#endif

#endif
