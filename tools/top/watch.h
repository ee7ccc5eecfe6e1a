/* SPDX-License-Identifier: MIT */
/*
 * The processes and files that pinion top was asked for, and the pages found
 * so far. Each page that cannot be read gives one line, once.
 */
#ifndef PINION_TOOLS_TOP_WATCH_H
#define PINION_TOOLS_TOP_WATCH_H

#include "tools/output_text.h"
#include "tools/top/page.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The file that an operand named, the last time. */
struct top_file {
	bool is_file;
	bool is_page; /* it was shown, so the operand is no name of a process */
	dev_t device;
	ino_t inode;
};

/* Processes that have had their line. */
struct top_noted {
	struct top_process *processes;
	size_t count;
};

/* Zero-initialise but for the operands. */
struct top_watch {
	char **operands; /* none: every process of this user */
	int operand_count;
	struct top_file *files; /* of each operand */
	struct top_page *pages;
	size_t count;
	struct top_noted refused; /* one of its pages was */
	struct top_noted crowded; /* it has more runtimes than are shown */
	bool holds_lines;	  /* from the second search on, for the call below */
	struct output_text held;
	bool had_trouble;
	bool had_page;
	bool is_old;	      /* from the second search on */
	uint32_t pauses_left; /* of this search, for pages that are not filled yet */
};

/* Looks for pages that are not known yet, files too. False: no memory. */
bool top_watch_find(struct top_watch *watch);

/* Takes a snapshot of each page; those that are lost are let go. */
void top_watch_read(struct top_watch *watch);

/* Lets go of the pages whose process or runtime has ended. */
void top_watch_drop_ended(struct top_watch *watch);

/*
 * Lets go of those that ended more than ten minutes ago, and of all but the
 * latest 32; not of a file that an operand names.
 */
void top_watch_drop_old(struct top_watch *watch);

/* Prints the lines that were held back. */
void top_watch_print_held(struct top_watch *watch);

void top_watch_fini(struct top_watch *watch);

#endif
