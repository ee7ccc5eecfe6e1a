/* SPDX-License-Identifier: MIT */
/*
 * A file searched from its open to its close, as the library's scan calls it:
 * windows through the engine, what they yield through the findings.
 */
#ifndef PINION_TOOLS_SCAN_SEARCH_H
#define PINION_TOOLS_SCAN_SEARCH_H

#include "tools/checkpointing.h"
#include "tools/gaps.h"
#include "tools/scan/engine.h"
#include "tools/scan/evidence.h"
#include "tools/scan/findings.h"
#include "tools/scan/findings_limits.h"
#include "tools/scan/whole.h"

struct context; /* context.h */
struct source_facts;

/* Shared by all workers. Zero-initialise. */
struct search {
	struct engine *engine;
	struct findings findings;
	/* What files leave for the output; search_ask() sets it. */
	struct evidence_source evidence;
	/* Set after search_init(): the limit on the search of holes. */
	uint64_t hole_ns_max;	  /* of all holes of a file; 0: no limit */
	bool (*is_stopped)(void); /* NULL: nothing but that */
	/*
	 * Called after `bytes` more bytes of a hole, the last call perhaps for
	 * all of it; `arg` is that of search_window(). NULL: not called.
	 */
	void (*note_hole)(void *arg, uint64_t bytes);
};

/* What one worker uses. Zero-initialise. */
struct search_worker {
	struct engine_worker *engine;
	struct engine_yield yield;
};

/* With --checkpoint: the output of a file until it ends. */
struct search_kept {
	bool is_on;    /* lines wait here */
	bool is_found; /* by an earlier run */
	bool is_noted; /* stderr has lines about it */
	struct checkpointing_file file;
	struct output_text lines;
	uint64_t known_count; /* as in struct reporter_worker */
	uint64_t allowed_count;
	/* Of a file that an earlier run has searched up to here; 0: none. */
	uint64_t start_offset;
};

/* One file's, in the scan's memory. */
struct search_file {
	struct search_kept kept;
	struct engine_file engine;
	struct findings_file findings;
	struct evidence evidence;
	const struct rules *rules;
	struct whole whole_bytes;	  /* for YARA; until its last window */
	struct decoding *decoding;	  /* its text in other forms; NULL: none yet */
	const struct decoded *decoded;	  /* this is such a text; NULL: it is a file */
	struct search_file *whole;	  /* of which; NULL: of none */
	const struct source_facts *facts; /* of a source (source.h); NULL: a file */
	struct context *context;	  /* the reporter's; NULL: none yet */
	size_t hidden_count;		  /* the first of findings.held that it has already */
	/* Its own bytes are not searched: nothing is found in it. */
	bool is_taken;	/* [W:the first window's worker R:any] */
	bool is_binary; /* for that reason */
	bool is_packed; /* it is to be unpacked, and is open as packed_fd */
	int packed_fd;
	struct gaps gaps;
	bool has_gaps; /* after the close, which has reported them */
	/* Number of windows that a hole was searched as, less one. */
	uint64_t extra_windows;
	uint64_t hole_ns;	 /* spent in holes */
	bool is_sparse;		 /* zeros that are read may be a hole */
	uint64_t zeros_since_ns; /* [W:any R:any] nothing else came since; 0: it did */
	bool is_late;		 /* [W:any R:any] its holes took too long, at late_offset */
	uint64_t late_offset;	 /* an estimate of the end of the searched part */
	uint64_t shown_count;	 /* [W:lock of the findings R:any] findings in the output */
};

/* Reports on a file at its close, after its findings; each may be NULL. */
struct search_notes {
	/* The unread ranges, once. */
	void (*gaps)(void *arg, const struct pinion_gap *gaps, size_t count);
	/* Each rule that has reached a limit. */
	findings_limit_fn limit;
};

/* Errors: those of engine_create(). */
int search_init(struct search *search, const struct matcher_ops *matcher, const struct rules *rules,
	struct matcher_trouble *out_trouble);
/*
 * What findings are to be shown with; after search_init(), before the first
 * file.
 */
void search_ask(struct search *search, const struct evidence_needs *needs);
/* After all its workers. */
void search_fini(struct search *search);

int search_worker_init(struct search_worker *worker, const struct search *search);
void search_worker_fini(struct search_worker *worker);

/*
 * For the scan's callbacks of these names. A hole in which a rule without a
 * widest match may find something is searched as windows of zeros.
 *
 * A window gets PINION_SCAN_ENOUGH where every rule has reached a limit.
 *
 * Errors: besides those of the engine, -ETIME: hole_ns_max; -ECANCELED: it
 * is stopped.
 */
int search_open(const struct search *search, struct search_file *file);
int search_window(const struct search *search, struct search_worker *worker,
	struct search_file *file, const struct pinion_window *window, findings_show_fn show,
	void *arg);

/*
 * In place of all windows: what another engine found in the whole file, whose
 * bytes are those of `window`. Shown by search_close(). -ENOMEM.
 */
int search_take_whole(const struct search *search, struct search_file *file,
	const struct pinion_window *window, struct candidates *found);

int search_close(const struct search *search, struct search_worker *worker,
	struct search_file *file, findings_show_fn show, const struct search_notes *notes,
	void *arg);

#endif
