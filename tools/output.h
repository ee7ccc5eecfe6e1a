/* SPDX-License-Identifier: MIT */
/*
 * Standard output, written in whole lines from any thread, byte-exact, with
 * every failure noticed: a full disk or a closed pipe is an error, not silence.
 */
#ifndef PINION_TOOLS_OUTPUT_H
#define PINION_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* Ignores SIGPIPE, so that a closed pipe shows up as a failed write. */
void output_init(void);

/*
 * Appends whole lines. Safe from several threads; lines of one call stay
 * together. Returns false once any write has failed; the first failure is
 * reported on stderr by output_finish() and the caller should stop.
 */
bool output_write(const char *text, size_t length);

/* True while no write has failed. */
bool output_ok(void);

/* Flushes; on failure reports it once and returns false. */
bool output_finish(void);

/* A growable run of bytes for building lines. Zero-initialise. */
struct output_text {
	char *bytes;
	size_t length;
	size_t capacity;
	bool failed; /* out of memory; the contents are incomplete */
};

void output_text_append(struct output_text *text, const void *bytes, size_t length);
void output_text_string(struct output_text *text, const char *string);
void output_text_decimal(struct output_text *text, unsigned long long number);
/* A JSON string with its quotes; or {"bytes":"BASE64"} when it is not UTF-8. */
void output_text_json(struct output_text *text, const char *bytes, size_t length);
void output_text_free(struct output_text *text);

/* Length of the well-formed UTF-8 character at `bytes`, or 0. */
size_t output_utf8_length(const char *bytes, size_t length);

#endif
