/* SPDX-License-Identifier: MIT */
/*
 * From candidates to findings, the same ones in the same order for a file
 * whatever its windows were and in whatever order they came.
 *
 * Windows are taken in file order; an early one waits. Each rule's candidates
 * are thinned out as `grep -o` does it: the leftmost first, of those that start
 * together the longest, and none that overlaps a finding of the same rule. A
 * candidate stays open until no later one can start further left or at the same
 * place, that is for the width of the rule's widest match.
 *
 * Findings are shown by start, end and rule. One is held back while an earlier
 * one may still come, again for about the widest match. A rule without a
 * widest match holds back everything until the file ends.
 *
 * Confirmed rules have their findings from clusters.h. Findings of rules that
 * require companions, and those companions, are decided at the end of the file
 * (companions.h), and hold back the findings after them.
 *
 * A limit of findings per rule and file (rules->findings_max): the first ones
 * are shown, and the rule is over in the file when there is one more. It is
 * over, too, with the match that makes its work more than RULES_WORK_MAX. A
 * rule without a widest match is over when its open candidates hold more
 * findings than the limit. Its open candidates are then decided as though the
 * file ended there, so that all of this depends on the bytes alone. Engines
 * leave a rule alone from then on.
 *
 * Memory: the candidates and snippets of windows that wait, open ones, and
 * findings held back. A file without candidates allocates nothing.
 */
#ifndef PINION_TOOLS_SCAN_FINDINGS_H
#define PINION_TOOLS_SCAN_FINDINGS_H

#include "tools/scan/companions.h"
#include "tools/scan/engine.h"
#include "tools/scan/finding.h"

#include <pthread.h>
#include <stdbool.h>

struct confirm_room; /* confirm.h */

/* Shared by all files of a scan; read-only. */
struct findings {
	const struct rules *rules;
	uint32_t widest; /* RULE_WIDTH_UNBOUNDED if any rule is */
	/*
	 * A finding is shown when the windows with that number of bytes after
	 * its end have come, or the file has ended.
	 */
	uint32_t hold_bytes;
	/*
	 * It is shown when, too, all findings that start among these bytes are
	 * known: they follow it in findings_file.held.
	 */
	bool holds_for_others;
};

/* State of a rule in a file. */
struct findings_rule {
	uint32_t rule;
	uint64_t taken_to;     /* end of the last finding */
	uint64_t taken_count;  /* findings */
	uint64_t shown_to;     /* of a confirmed rule: the end of the last kept one */
	uint64_t work;	       /* widths of all candidates so far */
	uint64_t searched_to;  /* once it is over: the end of its last candidate */
	size_t open_look;      /* number of open candidates at which the limit is checked next */
	bool is_over;	       /* no later candidate counts */
	bool is_cut;	       /* there was one more than may be shown */
	bool is_costly;	       /* it is over because matches took too many steps */
	uint64_t costly_count; /* matches that did */
	uint64_t costly_at;    /* the first of them starts there */
	uint64_t cut_at;       /* where is_cut: the one more starts there */
	bool knows_path;       /* of a confirmed rule: is_elsewhere is set */
	bool is_elsewhere;     /* it is not about files of this path */
	/* By start, one for each; of a confirmed rule: clusters.h. */
	struct candidates open;
};

struct findings_window;

/* One file's. All zero before findings_file_init(). */
struct findings_file {
	pthread_mutex_t lock; /* guards what follows */
	bool is_ready;
	bool has_ended;
	uint64_t next_index;
	uint64_t complete_to;
	struct findings_window *waiting; /* by index */
	struct findings_rule *rules;	 /* by rule; only those with candidates */
	size_t rule_count;
	size_t rule_capacity;
	struct finding_list held;  /* not yet shown */
	struct snippets snippets;  /* of open candidates */
	struct confirm_room *room; /* NULL: not needed yet */
	/* Set after the open, for rules that ask for it; NULL: all do. */
	const char *path;
	size_t path_bytes;
	const char *commit; /* set as the path is; NULL: it is of none */
	/* Set after the open, for companions; NULL: lines are not known. */
	companions_locate_fn locate;
	void *locate_arg;
	struct rules_over over;
};

/* A rule that has reached a limit in a file. */
struct findings_limit {
	uint32_t rule;
	bool is_dense; /* its matches were too much work, else too many findings */
	/*
	 * As many matches took too many steps, the first at `searched_to`, and
	 * are left out; 0: none did.
	 */
	uint64_t costly_count;
	bool is_over; /* nothing else is searched for */
	uint64_t count;
	uint64_t searched_to; /* or the end of the last finding, when there were too many */
};

typedef void (*findings_limit_fn)(void *arg, const struct findings_limit *limit);

/* Receives findings of one file in their final order, a few at a time. */
typedef void (*findings_show_fn)(void *arg, const struct finding *findings, size_t count);

void findings_init(struct findings *findings, const struct rules *rules);

void findings_file_init(struct findings_file *file);
void findings_file_fini(struct findings_file *file);

/*
 * Hands in a window's yield, each window of the file once; its list is sorted
 * on the way. `show` is called on this thread, never at the same time for one
 * file.
 *
 * Errors: -ENOMEM: findings are missing, the file cannot be trusted.
 */
int findings_add(const struct findings *findings, struct findings_file *file,
	const struct pinion_window *window, struct engine_yield *yield, findings_show_fn show,
	void *arg);

/*
 * Takes what another engine found in all of a file, which has no other windows,
 * in place of findings_add(): each match is a finding, also one that overlaps
 * others of its rule. First _choose, which sorts `found` and drops what occurs
 * twice or is beyond a limit; then _hold, for findings_finish() to show. Each
 * takes the lock.
 *
 * Errors: -ENOMEM.
 */
int findings_whole_choose(
	const struct findings *findings, struct findings_file *file, struct candidates *found);
int findings_whole_hold(const struct findings *findings, struct findings_file *file,
	const struct pinion_window *window, const struct candidates *found);

/*
 * No more windows will come, even if some are missing: decides and shows the
 * rest.
 */
int findings_finish(const struct findings *findings, struct findings_file *file,
	findings_show_fn show, void *arg);

/* No finding that starts before this will be shown any more. Under the lock. */
uint64_t findings_settled_to(const struct findings *findings, const struct findings_file *file);

/*
 * A limit may have ended a rule: no finding of it that starts before this is
 * missing. Under the lock.
 */
uint64_t findings_known_to(const struct rules *rules, const struct findings_file *file);

/* After that: each rule that has reached a limit, in their order. */
void findings_limits(const struct findings_file *file, findings_limit_fn show, void *arg);

#endif
