/* SPDX-License-Identifier: MIT */
/*
 * The file of a trace: written whole, or not at all.
 */
#ifndef PINION_TOOLS_TRACING_H
#define PINION_TOOLS_TRACING_H

#include <pinion/trace.h>
#include <stdbool.h>
#include <stdint.h>

/* Events of each worker that --trace keeps, unless the environment says. */
enum { TRACING_EVENTS_STANDARD = 65536 };

/*
 * Whether a file may be made at that path: its name is not too long, no link
 * without a file, and the folder is there and may be written. False: it may
 * not, which is reported.
 */
bool tracing_check(const char *path);

/* Whether the last tracing_check() found that file, which is to be replaced. */
bool tracing_has(uint64_t device, uint64_t inode);

/*
 * Writes the events of `trace`. A file of that name, or the one that a link
 * leads to, is replaced when the new one is whole; a device is written to, and
 * a pipe, if its reader comes within 1 s. A second signal ends the process, and
 * leaves no part of a file. False: reported.
 */
bool tracing_write(const char *path, struct pinion_trace *trace);

/* The same, of what a runtime of this process has in its rings. */
bool tracing_save(const char *path, const struct pinion_runtime *runtime);

/* A line if events are missing from it. */
void tracing_report_lost(const struct pinion_trace *trace);

#endif
