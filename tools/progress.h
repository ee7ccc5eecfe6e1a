/* SPDX-License-Identifier: MIT */
/*
 * How far a scan is: counted by each worker for itself, added up by a thread
 * that asks, for the line of SIGUSR1 and for a command that ends early.
 *
 * A worker's part has one writer, so that counting takes no locked instruction
 * and no cache line of others. All other threads share a part. A sum of them is
 * a snapshot, not an exact one.
 */
#ifndef PINION_TOOLS_PROGRESS_H
#define PINION_TOOLS_PROGRESS_H

#include <pinion/runtime.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
	uint64_t begun_files; /* opened, and to be closed */
	uint64_t ended_files; /* of those, closed */
	uint64_t bytes;
	uint64_t findings;
};

/*
 * Counts are shown from now on, with that of findings if there can be any. The
 * first call starts the elapsed time.
 */
void progress_begin(bool has_findings);

/* Adds to the part of the calling thread: a worker, or any other. */
void progress_add(struct pinion_runtime *runtime, const struct progress *more);

/* True after progress_begin(). Any thread. */
bool progress_read(struct progress *out_progress);

/*
 * "N files, N.NNN GB, N.NNN GB/s, N findings, N.N s" on stderr, with units that
 * fit (amount.h) and without the findings where there can be none. Any thread.
 */
void progress_report(void);

/*
 * On a terminal, from a second on, the same at the end of the screen, with the
 * time that is left where `total_bytes` is not 0; progress_show() draws it
 * again, progress_hide() ends that. One thread at a time.
 */
void progress_watch(uint64_t total_bytes);
void progress_show(void);
void progress_hide(void);

/* Between two calls of progress_show(); 0: there are to be none. Any thread. */
uint64_t progress_show_ms(void);

#endif
