/* SPDX-License-Identifier: MIT */
/*
 * Standard output, written in whole lines from any thread, byte-exact, with
 * every failure noticed: a full disk or a closed pipe is an error, not silence.
 */
#ifndef PINION_TOOLS_OUTPUT_H
#define PINION_TOOLS_OUTPUT_H

#include "tools/output_text.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Ignores SIGPIPE and SIGXFSZ, so that a closed pipe and a limit on the size of
 * files show up as failed writes.
 */
void output_init(void);

/* Output goes there from now on; before the first. `name` is for messages. */
void output_redirect(int fd, const char *name);

/*
 * Appends whole lines. Safe from several threads; lines of one call stay
 * together. A terminal gets them escaped (output_text_escaped_lines()), so
 * that no name or content acts on it; anything else gets every byte. Returns
 * false once any write has failed; the first failure is reported on stderr by
 * output_finish() and the caller should stop.
 */
bool output_write(const char *text, size_t length);

/*
 * As above, but of text in which the caller has escaped all that is not its
 * own, such as colours between names.
 */
bool output_write_escaped(const char *text, size_t length);

/* True where standard output is a terminal, once output_init() was called. */
bool output_is_terminal(void);

/* True while no write has failed. */
bool output_ok(void);

/*
 * For a command that is ended while its threads still run: writes the buffer,
 * as long as standard output takes it. False: some of it is lost.
 */
bool output_abandon(void);

/* Why a file was not written; report_reason() is about those that are read. */
const char *output_reason(int error);

/* Flushes; on failure reports it once and returns false. */
bool output_finish(void);

/*
 * Writes all that a command has to say, frees it and finishes. Returns false
 * when it did not arrive whole; that is reported.
 */
bool output_print(struct output_text *text);

#endif
