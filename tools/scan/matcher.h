/* SPDX-License-Identifier: MIT */
/*
 * What searches bytes for rules: Hyperscan, or literal_find.h for a lone
 * literal, and for several where the program is built without Hyperscan. One
 * table of functions each, so that the engine above is the same and tests can
 * hold one against the other.
 *
 * A rule is bounded when no match of it is longer than MATCHER_WIDTH_MAX.
 * Bounded rules are searched in independent blocks; the others need to see a
 * file from its start to its end, as a stream.
 */
#ifndef PINION_TOOLS_SCAN_MATCHER_H
#define PINION_TOOLS_SCAN_MATCHER_H

#include "tools/scan/candidates.h"
#include "tools/scan/newlines.h"
#include "tools/scan/rules.h"

/* So that an overlap fits the library's 1 MiB with room for a window. */
#define MATCHER_WIDTH_MAX ((1u << 20) - (64u << 10))

struct matcher;
struct matcher_worker; /* what one thread at a time uses */
struct matcher_stream; /* the state of a search in a file */

/*
 * A block: its bytes and the range of match ends it is asked for, relative
 * and inclusive. It is searched as though nothing were before or after it.
 */
struct matcher_block {
	const uint8_t *bytes;
	size_t length;
	size_t first_end;
	size_t last_end;
	uint64_t base_offset; /* of bytes[0] in the file */
	/* Rules that need not be searched for any more; NULL: none. */
	const struct rules_over *over;
	/*
	 * Newlines that a matcher counts on its way; it may leave it as it is.
	 * NULL: not asked for.
	 */
	struct newlines_part *newlines;
};

/*
 * Why something failed, in words; `rule` is UINT32_MAX when it is not about
 * one.
 */
struct matcher_trouble {
	uint32_t rule;
	char reason[256];
};

/*
 * Functions return 0 or a negative errno. Where there is an `out_trouble` it is
 * filled in with -EINVAL. What a search finds is appended to `found`, in any
 * order, each (rule, end) once. Of a bounded rule the ends beyond
 * rules_ends_max() may be left out, and those after its matches exceed
 * RULES_WORK_MAX, the last of both in order of ends. Of a stream's matches with
 * the same start only the longest may be there.
 */
struct matcher_ops {
	const char *name;
	/* Checks one rule on its own and sets its widths. */
	int (*measure)(struct rule *rule, struct matcher_trouble *out_trouble);
	/*
	 * Whether all rules are measured already, as the set was compiled
	 * before: rules_cache.h. NULL: nothing is kept.
	 */
	bool (*recall)(struct rules *rules);
	/* The rules are measured and stay in place until destroy. */
	int (*create)(const struct rules *rules, struct matcher **out_matcher,
		struct matcher_trouble *out_trouble);
	void (*destroy)(struct matcher *matcher);
	int (*worker_create)(struct matcher *matcher, struct matcher_worker **out_worker);
	void (*worker_destroy)(struct matcher_worker *worker);
	int (*search)(struct matcher_worker *worker, const struct matcher_block *block,
		struct candidates *found);
	/* The rest only where measure() calls a rule unbounded. */
	int (*stream_open)(struct matcher *matcher, struct matcher_stream **out_stream);
	int (*stream_feed)(struct matcher_worker *worker, struct matcher_stream *stream,
		const uint8_t *bytes, size_t length, struct candidates *found);
	/*
	 * `found` receives what matches only at the end; NULL: it does not
	 * count.
	 */
	int (*stream_close)(struct matcher_worker *worker, struct matcher_stream *stream,
		struct candidates *found);
};

/* The best one for any rules that this program was built with. */
const struct matcher_ops *matcher_default(void);

/* Always there; knows literals only. */
extern const struct matcher_ops matcher_literal;

#if defined(HAVE_HYPERSCAN)
extern const struct matcher_ops matcher_hyperscan;
#endif

void matcher_complain(struct matcher_trouble *trouble, uint32_t rule, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
