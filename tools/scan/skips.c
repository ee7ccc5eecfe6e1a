/* SPDX-License-Identifier: MIT */
/*
 * The parts left out, searched from the last: most lookups are after it.
 */
#include "tools/scan/skips.h"

#include "tools/growing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int skips_add(struct skips *skips, uint64_t offset, uint64_t length)
{
	uint64_t before = skips->count > 0 ? skips->items[skips->count - 1].total : 0;
	struct skip *items =
		growing_make_room(skips->items, skips->count, &skips->capacity, sizeof(*items));

	if (items == NULL) {
		return -ENOMEM;
	}
	skips->items = items;
	skips->items[skips->count++] =
		(struct skip){.at = offset - before, .total = before + length};
	return 0;
}

uint64_t skips_place_start(const struct skips *skips, uint64_t at)
{
	size_t count = skips->count;

	while (count > 0 && skips->items[count - 1].at > at) {
		count--;
	}
	return at + (count > 0 ? skips->items[count - 1].total : 0);
}

uint64_t skips_place_end(const struct skips *skips, uint64_t at)
{
	/* Its last byte is just before `at`. */
	return at > 0 ? skips_place_start(skips, at - 1) + 1 : 0;
}

void skips_clear(struct skips *skips)
{
	skips->count = 0;
}

void skips_free(struct skips *skips)
{
	free(skips->items);
	memset(skips, 0, sizeof(*skips));
}
