/* SPDX-License-Identifier: MIT */
/*
 * Shared by the commands that scan: the options about what to read and how, and
 * the report of the outcome.
 */
#ifndef PINION_TOOLS_SCANNING_H
#define PINION_TOOLS_SCANNING_H

#include "tools/checkpointing.h"
#include "tools/choosing.h"
#include "tools/limits.h"

#include <pinion/config.h>
#include <pinion/scan.h>
#include <stdbool.h>
#include <stdint.h>

/* Most of --workers. */
enum { SCANNING_WORKERS_MAX = 4096 };

struct scanning_options {
	const char **lists; /* --files-from, in order */
	uint32_t list_count;
	bool list_is_nul;      /* -0 */
	bool has_stats;	       /* --stats */
	uint32_t window_bytes; /* --window, 0: what fits the buffers */
	struct limits limits;
	const char *limits_file; /* NULL: none */
	const char *trace_file;	 /* NULL: none */
	struct pinion_config runtime;
	struct pinion_tuning tuning; /* that of `runtime` */
	struct pinion_scan_config scan;
	uint32_t unsorted; /* scan.walk_order without --sort */
	struct choosing choosing;
	struct checkpointing_options checkpointing;
};

/* Rows for a command's table of options, to be used between braces. */
#define SCANNING_SPEC_WORKERS 0, "workers", "N", "worker threads; default: one per core", NULL
#define SCANNING_SPEC_WINDOW 0, "window", "SIZE", "bytes per read, a multiple of 4K up to 64M", NULL
#define SCANNING_SPEC_DIRECT \
	0, "direct", "WHEN", "bypass the page cache: auto, always, never", \
		"auto reads cached files from the cache and others past it."
#define SCANNING_SPEC_IO 0, "io", "HOW", "auto, ring (io_uring or fail) or fallback (pread)", NULL
#define SCANNING_SPEC_GITIGNORE \
	0, "gitignore", NULL, "leave out what .gitignore, .ignore and .pinionignore hide", \
		"In directories, and .git itself; default: all files are read."
#define SCANNING_SPEC_FOLLOW \
	'L', "follow", NULL, "follow symbolic links below directories, out of them as well", \
		"Default: -P. A directory that leads back to itself is named."
#define SCANNING_SPEC_NO_FOLLOW 'P', "no-follow", NULL, "do not follow them", NULL
#define SCANNING_SPEC_SORT \
	0, "sort", "ORDER", "path: output in the order of paths; extent; none (default)", \
		"Of each PATH, byte by byte. Files are read many at once all the same; lines " \
		"that wait for an earlier file are in memory, and beyond 16 MiB in TMPDIR. " \
		"extent: files are read in their order on the disk, for disks with heads."
#define SCANNING_SPEC_FILE_TIMEOUT \
	0, "file-timeout", "SECONDS", "give a file up after SECONDS without a byte; default: 60", \
		"It fails by name, and the others are read. So does one whose holes take " \
		"that long, or a file of /proc and its like. 0: no limit."
#define SCANNING_SPEC_TRACE \
	0, "trace", "FILE", "write a picture of the run to FILE, for ui.perfetto.dev", \
		"JSON of the last 65536 events of each worker; PINION_TRACE_EVENTS=N: of N, a " \
		"power of two. FILE is replaced when the new one is whole."
#define SCANNING_SPEC_STATS 0, "stats", NULL, "counts and speed on stderr at the end", NULL

/* Defaults, then the environment. False: that is bad, which is reported. */
bool scanning_options_init(struct scanning_options *out_options);

/* Of options that are all zero too. */
void scanning_options_fini(struct scanning_options *options);

/*
 * Takes the value of one of these options by its name, without dashes: those of
 * the rows above, of choosing.h, of limits.h and its file, of checkpointing.h,
 * and files-from. False: it is bad, which is reported.
 */
bool scanning_parse(struct scanning_options *options, const char *name, const char *value);

/* A worker that waits for long is no news, unless the user has set a time. */
void scanning_allow_waits(struct scanning_options *options);

/*
 * After the last option. False: the file of --trace is the input of that name,
 * or one of those of all commands; which is reported.
 */
bool scanning_spares(const struct scanning_options *options, const char *path);
bool scanning_spares_inputs(
	const struct scanning_options *options, char *const *paths, int path_count);

/* Whether the runtime's metrics page has, or may get, that name. */
bool scanning_is_metrics(const struct scanning_options *options, const char *path);

/* Writes the file of --trace, if there is one. False: reported. */
bool scanning_save_trace(
	const struct scanning_options *options, const struct pinion_runtime *runtime);

/* Whether one of the lists is standard input. */
bool scanning_lists_stdin(const struct scanning_options *options);

/*
 * Named files that are small, or a few that are in the page cache, cannot fill
 * the default number of buffers: then the runtime gets fewer, as touching them
 * takes most of a short run's time. What leaves the cache meanwhile is read all
 * the same, with less of it in flight. Leaves alone a number that the user has
 * set, and paths of unknown size.
 */
void scanning_fit_buffers(const struct scanning_options *options, char *const *paths,
	int path_count, struct pinion_config *runtime);

/* Plain symbolic links and files that were stopped early are no trouble. */
bool scanning_is_trouble(enum pinion_scan_outcome outcome, int error);

double scanning_seconds_now(void);
uint64_t scanning_ns_now(void);

/* The second line of --stats, which begins with `first`. */
void scanning_report_speed(
	const char *first, const struct pinion_scan_stats *totals, double seconds);

/* A signal outranks trouble, and trouble outranks findings. */
int scanning_exit_status(bool has_trouble, bool has_found);

#endif
