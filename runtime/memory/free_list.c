/* SPDX-License-Identifier: MIT */
/*
 * Counting a free list.
 */
#include "runtime/memory/free_list.h"

uint32_t pin_freelist_count(const struct pin_freelist *list, const struct pin_entry *entries)
{
	for (;;) {
		uint64_t state = pin_freelist_state(list);
		uint32_t first = pin_freelist_first(state);
		uint32_t depth = 0;

		if (first != 0) {
			depth = pin_load_acquire_u32(&entries[first - 1].depth); /* [FREE-2] */
		}
		if (pin_freelist_state(list) == state) {
			return depth;
		}
	}
}
