/* SPDX-License-Identifier: MIT */
/*
 * Tests the regular-expression library before it is trusted: some builds of it
 * lose matches in silence, above all at the borders of a block. A scanner that
 * misses a secret now and then is worse than none.
 */
#ifndef PINION_TOOLS_SCAN_SELFTEST_H
#define PINION_TOOLS_SCAN_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SELFTEST_TEXT_BYTES = 160,
	SELFTEST_PATTERNS_MAX = 8,
};

/* Where a pattern's matches end: true at [end]. */
struct selftest_ends {
	bool at[SELFTEST_TEXT_BYTES + 1];
};

/* The library under test; a seam so that a lossy one can be planted. */
struct selftest_ops {
	/* Returns NULL when the patterns cannot be compiled. */
	void *(*open)(const char *const *patterns, size_t count);
	void (*close)(void *subject);
	/*
	 * Searches the text in one block, or as a stream of two parts when
	 * 0 < `split` < `length`. Sets ends of each pattern; false: it failed.
	 */
	bool (*search)(void *subject, const char *text, size_t length, size_t split,
		struct selftest_ends *out_ends);
};

/*
 * Compares blocks and streams, split at every place, with a naive oracle.
 * Takes about 10 ms. Returns 0, or -EINVAL with what went wrong in `reason`.
 */
int selftest_run(const struct selftest_ops *ops, char *reason, size_t reason_bytes);

/*
 * The patterns that are searched for together, of the set of that number from
 * 0; returns how many, 0: there is no such set.
 */
size_t selftest_set(size_t index, const char *out_expressions[SELFTEST_PATTERNS_MAX]);

/*
 * Tests the library this program is linked with; 0 when it has none. `compiles`
 * says that the scan will compile rules. If it will not, the patterns of the
 * test as well are those compiled when the program was built, where there are
 * such.
 */
int selftest_library(bool compiles, char *reason, size_t reason_bytes);

/* The library itself; NULL when the program has none. */
const struct selftest_ops *selftest_library_ops(void);

#endif
