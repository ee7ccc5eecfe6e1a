/* SPDX-License-Identifier: MIT */
/*
 * PINION_LOG: which messages of the library are shown, and in which form lines
 * come on stderr: as text, as JSON, and with priorities where stderr is a
 * stream of systemd's journal.
 */
#ifndef PINION_TOOLS_LOG_FORM_H
#define PINION_TOOLS_LOG_FORM_H

#include "tools/output_text.h"

#include <pinion/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_form {
	uint64_t dropped; /* as `log_dropped` of struct pinion_config */
	bool is_json;
	bool is_journal;
};

/*
 * Reads "LEVEL,COMPONENT=LEVEL,json", each part or none of it. False: a part is
 * wrong, as `mistake` says with the values that exist; nothing has changed.
 */
bool log_form_parse(const char *text, struct log_form *form, char *mistake, size_t mistake_bytes);

/* Whether a message of that component is to be shown. */
bool log_form_shows(const struct log_form *form, enum pinion_log_level level,
	enum pinion_log_component component);

/* Whether JOURNAL_STREAM's text, or NULL, names that file: systemd.exec(5). */
bool log_form_is_journal(const char *stream, int fd);

/* A line and whose it is. */
struct log_line {
	enum pinion_log_level level;
	const char *component; /* NULL: the command's own, which shows no level as text */
	const char *command;   /* or NULL */
	const char *message;   /* one line of UTF-8 */
	size_t message_length;
};

/* With the newline. */
void log_form_append(
	const struct log_form *form, const struct log_line *line, struct output_text *out);

#endif
