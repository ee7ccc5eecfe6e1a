/* SPDX-License-Identifier: MIT */
/*
 * What a tool says on stderr: one line per trouble, whatever bytes a path has,
 * never interleaved with another thread's line.
 */
#ifndef PINION_TOOLS_REPORT_H
#define PINION_TOOLS_REPORT_H

#include "tools/output_text.h"

#include <pinion/config.h>
#include <pinion/scan.h>
#include <stdbool.h>
#include <stddef.h>

/* Before all others. False: PINION_LOG has no such form, which is reported. */
bool report_init(void);

/* "pinion COMMAND: " starts every line from now on. */
void report_name_command(const char *command_name);

/*
 * One line, formatted, with the prefix and a newline. Hidden characters
 * (output_text.h) and invalid UTF-8 in it come out escaped, so that it stays
 * one line and acts on no terminal.
 */
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, of a line that is no error: JSON and the journal have a level. */
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Shown where PINION_LOG has debug messages of the component `scan`. */
void report_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * "PATH: REASON", the path with hidden characters, backslash and invalid UTF-8
 * escaped as \n, \t, \\ and \xHH so that it stays one line.
 */
void report_path(const char *path, const char *reason);

/* A line for programs, as it is; frees it. */
void report_raw(struct output_text *line);

/* Whether stderr takes a line now, so that a line need not wait. */
bool report_is_possible(void);

/*
 * For the calling thread from now on: a line that stderr does not take within a
 * second is dropped.
 */
void report_drop_late_lines(void);

/*
 * A line on a terminal that the next one replaces; empty: none. Other lines, of
 * stderr and of standard output, come in its place, and it is drawn again when
 * there is a new one. Does nothing while another thread writes.
 */
void report_status(const char *text);

/* Removes it, before something else writes to the terminal. */
void report_lift_status(void);

/* Words for an errno (negative or positive) a scan reported for a path. */
const char *report_reason(int error);

/*
 * That a command cannot start, and why: a limit on addresses, where there is
 * one, as the likely reason for a lack of memory or threads.
 */
void report_no_start(int error);

/* Words for a range of a file that could not be read. */
void report_gap_reason(const struct pinion_gap *gap, char *out_reason, size_t bytes);

/* The line of these words. */
void report_gap(const char *path, const struct pinion_gap *gap);

/* As above, for a command that ends a file there. */
void report_unread_byte(const char *path, const struct pinion_gap *gap);

/* The value of --file-timeout, to name it where a file has failed by it. */
void report_note_file_timeout(uint64_t timeout_ns);

/* That the holes of a file took longer; those up to `offset` are done. */
void report_hole_timeout(const struct pinion_scan_file *file, uint64_t offset);

/* Words for the error of a path that failed, or is a special file. */
const char *report_outcome_words(const struct pinion_scan_file *file, int error);

/* The line for a path whose outcome is not DONE; silent for plain symlinks. */
void report_outcome(
	const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error);

/* Its messages come as lines: errors and warnings, or as PINION_LOG says. */
void report_log_of(struct pinion_config *config);

/* A pinion_log_fn for readers of others' metrics and traces, as above. */
void report_log(void *arg, enum pinion_log_level level, const char *message);

/* The same for checkpoints, of component api, as the library has it. */
void report_checkpoint_log(void *arg, enum pinion_log_level level, const char *message);

/*
 * The closing line of counts. It is printed whenever this is called: the
 * caller does so only when asked (--stats) or when not all is done.
 */
void report_totals(const struct pinion_scan_stats *totals);

#endif
