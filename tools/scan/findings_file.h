/* SPDX-License-Identifier: MIT */
/*
 * A file's state between its windows: for each rule the candidates that are
 * open and how far its findings reach, and the findings that are held back.
 * The parts of findings.h that decide and show work on it, and the engine reads
 * from it which rules are over. A rule's state is made with its first
 * candidate, so that a file without any allocates nothing.
 */
#ifndef PINION_TOOLS_SCAN_FINDINGS_FILE_H
#define PINION_TOOLS_SCAN_FINDINGS_FILE_H

#include "tools/scan/companions.h"
#include "tools/scan/early_windows.h"
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

/* One file's. All zero before findings_file_init(). */
struct findings_file {
	pthread_mutex_t lock; /* guards what follows */
	bool is_ready;
	bool has_ended;
	uint64_t next_index;
	uint64_t complete_to;
	struct early_window *waiting; /* before their turn */
	struct findings_rule *rules;  /* by rule; only those with candidates */
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

void findings_init(struct findings *findings, const struct rules *rules);

void findings_file_init(struct findings_file *file);
void findings_file_fini(struct findings_file *file);

/*
 * The state of a rule, made when it first has a candidate; valid until another
 * is made. NULL: no memory.
 */
struct findings_rule *findings_file_rule(struct findings_file *file, uint32_t rule);

#endif
