/* SPDX-License-Identifier: MIT */
/*
 * Evidence: what the output shows of a finding's bytes. The bytes of a window
 * are gone when its findings are decided, so each window leaves an extract:
 * where the lines of its candidates begin, a digest and the first
 * bytes of each candidate, and where the words are that allow a finding.
 *
 * Line numbers. Each window counts its newlines; windows come in any order, and
 * their sums are formed as soon as those before are there. A window cannot see
 * where a line begins that is cut by its start: so each one leaves all starts
 * of lines that a later window's prefix may begin in.
 *
 * A rule without a longest match may start in an earlier window. Windows are in
 * order then, and the last EVIDENCE_CARRY bytes are kept. Of a longer match of
 * such a rule the start has no line, and it has no digest and no text. So
 * everything here depends on the bytes of the file alone.
 *
 * A finding is allowed by `pinion:allow` or `gitleaks:allow` on one of its
 * lines, its colon at most EVIDENCE_REACH bytes away; findings_file.hold keeps
 * findings back until these bytes have been seen.
 *
 * For lines around findings (context.h), each window leaves the bytes around
 * its candidates, and its first new ones, which may be those after an earlier
 * window's candidate.
 *
 * Context: windows are gathered by any worker. All else is done by a worker
 * that holds the lock of the file's findings, as it does while it shows some.
 */
#ifndef PINION_TOOLS_SCAN_EVIDENCE_H
#define PINION_TOOLS_SCAN_EVIDENCE_H

#include "tools/scan/engine.h"
#include "tools/scan/finding.h"
#include "tools/scan/rules.h"
#include "tools/scan/snippets.h"

#include <pinion/scan.h>

enum {
	EVIDENCE_CARRY = 64 * 1024,
	EVIDENCE_REACH = 4096,
	EVIDENCE_DIGEST_BYTES = 16,
	/* What windows have to overlap by, so that the words are seen whole. */
	EVIDENCE_OVERLAP = 16,
};

/* The parts that the output needs; none: files leave no evidence. */
struct evidence_needs {
	bool lines;
	bool digests;
	bool allows;
	uint32_t text_bytes; /* the most of a finding's first bytes */
	/* On each side of a finding, for lines around it. */
	uint32_t context_bytes;
};

static inline bool evidence_needed(const struct evidence_needs *needs)
{
	return needs->lines || needs->digests || needs->allows || needs->text_bytes > 0 ||
		needs->context_bytes > 0;
}

static inline bool evidence_counts_lines(const struct evidence_needs *needs)
{
	return needs->lines || needs->allows;
}

/*
 * What windows have to overlap by, where an engine needs `bytes`. The context
 * before a candidate is then in the window that finds it.
 */
static inline uint32_t evidence_overlap_bytes(const struct evidence_needs *needs, uint32_t bytes)
{
	uint32_t least = needs->allows ? EVIDENCE_OVERLAP : 0;

	return (bytes < least ? least : bytes) + needs->context_bytes;
}

struct evidence_window;
struct evidence;

void evidence_free(struct evidence *evidence);

/* One file's. All zero at first. */
struct evidence {
	struct evidence_window **windows; /* in the order of the file */
	size_t window_count;
	size_t window_capacity;
	/*
	 * Of those, the ones without a window missing before them: up to
	 * `resolved_to`, with that number of newlines, the last before
	 * `line_start`.
	 */
	size_t resolved_count;
	uint64_t resolved_to;
	uint64_t newlines;
	uint64_t line_start;
	/*
	 * Where windows are in order: the bytes before the next one, of the
	 * worker that gathers it.
	 */
	uint8_t *carry;
	size_t carry_length;
	uint64_t carry_line_start; /* of the line that its first byte is in */
	uint64_t context_to;	   /* the bytes up to here are context of a candidate */
};

/* How a file's evidence is gathered. */
struct evidence_source {
	struct evidence_needs needs;
	const struct rules *rules;
	uint32_t overlap_bytes; /* that windows have */
	bool in_order;
};

struct evidence_place {
	/* Each from 1, in bytes; 0: not known. The end is the byte after it. */
	uint64_t line;
	uint64_t column;
	uint64_t end_line;
	uint64_t end_column;
	const uint8_t *text; /* the first bytes; until evidence_forget() */
	size_t text_bytes;
	bool has_digest;
	uint8_t digest[EVIDENCE_DIGEST_BYTES]; /* SHA-256 of the finding's bytes */
	bool is_allowed;
};

static inline void evidence_fini(struct evidence *evidence)
{
	if (evidence->windows != NULL || evidence->carry != NULL) {
		evidence_free(evidence);
	}
}

/*
 * The evidence of a window, without the lock; evidence_add() takes it over. For
 * each window of the file, unless the file has one window without candidates,
 * and before the candidates are handed on.
 *
 * Errors: -ENOMEM.
 */
int evidence_gather(const struct evidence_source *source, struct evidence *evidence,
	const struct pinion_window *window, const struct engine_yield *yield,
	struct evidence_window **out_window);
int evidence_add(const struct evidence_source *source, struct evidence *evidence,
	struct evidence_window *window);

/* Of a finding of which all windows up to its end have been added. */
void evidence_find(struct evidence *evidence, const struct rules *rules,
	const struct finding *finding, struct evidence_place *out_place);

/*
 * The line of a byte, as far as windows have left it: its number, from 0, and
 * where it starts. False: it is not known any more, or not yet.
 */
bool evidence_find_line(const struct evidence *evidence, uint64_t offset, uint64_t *out_number,
	uint64_t *out_start);

/*
 * Adds to `out` those of the bytes [from, until) that windows have left as
 * context: of a finding all that are at most `context_bytes` away. Instead of a
 * hole there is one zero. Bytes before a finding of an unbounded rule are there
 * if it is at most EVIDENCE_CARRY - context_bytes long.
 *
 * Errors: -ENOMEM.
 */
int evidence_copy(
	const struct evidence *evidence, uint64_t from, uint64_t until, struct snippets *out);

/* No finding that starts before `offset` will be asked for. */
void evidence_forget(struct evidence *evidence, uint64_t offset);

#endif
