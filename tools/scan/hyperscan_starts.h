/* SPDX-License-Identifier: MIT */
/*
 * Where matches start. Hyperscan reports ends of matches fast; asked for their
 * starts as well it is slow, and refuses many patterns ("too large"). So ends
 * come first, and the starts of those few ends from here.
 *
 * Two ways. Rules up to 128 bytes wide are searched again around their
 * ends with HS_FLAG_SOM_LEFTMOST. For wider ones, and where that does not
 * compile, every place a match could start at is tried, leftmost first, with
 * the pattern anchored there: some 20 ns each, and as exact.
 *
 * Databases are compiled when a rule first needs them, which most never do;
 * those of the built-in rules are part of the program (hyperscan_shipped.h).
 */
#ifndef PINION_TOOLS_SCAN_HYPERSCAN_STARTS_H
#define PINION_TOOLS_SCAN_HYPERSCAN_STARTS_H

#include "tools/scan/hyperscan_expression.h"
#include "tools/scan/matcher.h"

#include <hs.h>
#include <pthread.h>

/* As in grep ^ and $ mean every line, and everything is bytes. */
#define HYPERSCAN_FLAGS HS_FLAG_MULTILINE

enum {
	/* About as many bytes as states Hyperscan can track starts for. */
	HYPERSCAN_SOM_WIDTH_MAX = 128,
};

struct hyperscan_lazy {
	hs_database_t *database; /* NULL: not yet, or it cannot be compiled */
	bool was_tried;
};

/* One rule's; shared by all workers. */
struct hyperscan_starts {
	char *expression;
	uint32_t min_width;
	uint32_t max_width;
	pthread_mutex_t lock; /* guards the making of what follows */
	struct hyperscan_lazy with_som;
	struct hyperscan_lazy anchored[HYPERSCAN_CONTEXT_COUNT];
};

/* Takes over a malloc'ed expression. Returns 0, or -ENOMEM when it is NULL. */
int hyperscan_starts_init(
	struct hyperscan_starts *starts, char *expression, uint32_t min_width, uint32_t max_width);

void hyperscan_starts_fini(struct hyperscan_starts *starts);

/*
 * Sets `start` of each item from its `end`; both relative to the block. Items
 * are sorted, their ends are true ones. `scratch` grows as needed. Items after
 * the sum of widths exceeds `work_max` may be left out, and *count is then
 * less.
 *
 * Errors: -ENOMEM; -EPROTO: the library contradicts itself about an end.
 */
int hyperscan_starts_find(struct hyperscan_starts *starts, hs_scratch_t **scratch,
	const struct matcher_block *block, uint64_t work_max, struct candidate *items,
	size_t *count);

#endif
