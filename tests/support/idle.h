/* SPDX-License-Identifier: MIT */
/*
 * How many workers an idle set holds, for tests: exact while nothing changes.
 */
#ifndef PIN_TESTS_SUPPORT_IDLE_H
#define PIN_TESTS_SUPPORT_IDLE_H

#include "runtime/queue/idle_set.h"

static inline uint32_t idle_count(const struct pin_idle *idle)
{
	uint32_t count = 0;

	if (idle->worker_count <= 64) {
		return (uint32_t)__builtin_popcountll(pin_load_acquire_u64(&idle->top));
	}
	for (uint32_t i = 0; i < PIN_IDLE_GROUPS; i++) {
		for (uint32_t j = 0; j < PIN_IDLE_GROUP_WORDS; j++) {
			count += (uint32_t)__builtin_popcountll(
				pin_load_acquire_u64(&idle->groups[i].words[j]));
		}
	}
	return count;
}

#endif
