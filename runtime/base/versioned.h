/* SPDX-License-Identifier: MIT */
/*
 * Structs of callers who may have been compiled against another version of the
 * library: they say how many bytes they know, and structs only ever grow.
 */
#ifndef PIN_BASE_VERSIONED_H
#define PIN_BASE_VERSIONED_H

#include "runtime/base/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool pin_sized_is_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] != 0) {
			return false;
		}
	}
	return true;
}

/*
 * Takes over a struct of which we know `known` bytes and the caller `size`:
 * what the caller does not know stays as it is in `out`. -E2BIG: what we do not
 * know is set, and `out` is left.
 */
static inline int pin_sized_take(void *out, size_t known, const void *given, size_t size)
{
	PIN_DCHECK(out != given); /* the copy must not overlap */
	if (size > known && !pin_sized_is_zero((const uint8_t *)given + known, size - known)) {
		return -E2BIG;
	}
	memcpy(out, given, size < known ? size : known);
	return 0;
}

/*
 * Fills a struct of which the caller knows `size` bytes with one of which we
 * know `known`; what we do not know becomes zero.
 */
static inline void pin_sized_give(void *out, size_t size, const void *given, size_t known)
{
	PIN_DCHECK(out != given);
	memset(out, 0, size);
	memcpy(out, given, size < known ? size : known);
}

#endif
