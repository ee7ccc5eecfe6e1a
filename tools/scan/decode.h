/* SPDX-License-Identifier: MIT */
/*
 * Text in other forms than its bytes: UTF-16, and base64 within lines. Each is
 * searched in addition to the bytes, as a source of its own under the same
 * path, and nothing in it is decoded once more.
 *
 * UTF-16: offsets are those in the file, lines and columns those of the text
 * as UTF-8. base64: all of these are those of the run.
 *
 * Windows of a file come in order. Findings in decoded text come between those
 * of the file's bytes.
 */
#ifndef PINION_TOOLS_SCAN_DECODE_H
#define PINION_TOOLS_SCAN_DECODE_H

#include <pinion/scan.h>
#include <stdbool.h>

struct scan_job;
struct scan_worker;
struct report_finding;
struct decoding;

struct decode_options {
	bool has_utf16;
	bool has_base64;
};

static inline bool decode_is_on(const struct decode_options *options)
{
	return options->has_utf16 || options->has_base64;
}

#define DECODE_SPEC \
	0, "decode", "[=HOW]", "search text in other forms, too: utf16, base64 or both", \
		"Without HOW both. UTF-16 with a mark, or by its zero bytes; base64 of 20 " \
		"characters and more within a line that is text."

/* The value of --decode. False: it is bad, which is reported. */
bool decode_options_parse(struct decode_options *options, const char *value);

/* How findings in decoded text are moved to their places in the file. */
struct decoded {
	const char *kind; /* the name of the form */
	void (*locate)(const struct decoded *decoded, struct report_finding *finding);
};

/* Each window of a file, after it was searched. As scan_job_window(). */
int decode_window(struct scan_job *job, struct scan_worker *worker, struct pinion_scan_file *file,
	const struct pinion_window *window);

/* Before the file's own close. */
int decode_close(
	struct scan_job *job, struct scan_worker *worker, struct pinion_scan_file *file, int error);

#endif
