/* SPDX-License-Identifier: MIT */
/*
 * Rules files: pinion's own, of one `ID<TAB>REGEX` a line, and the choice among
 * the kinds. Reports every bad line in one run, so that a user mends the file
 * in one go.
 */
#include "tools/scan/rules_reader.h"

#include "tools/scan/yara_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ID_BYTES_MAX = 128,
	LINE_BYTES_MAX = 1 << 20,
};

const char rules_id_reason[] = "an id is 1 to 128 letters, digits and any of . _ - : / @ +";

/* Text and JSON output contain ids unescaped, hence this alphabet. */
static bool is_id_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || (byte != '\0' && strchr("._-:/@+", byte) != NULL);
}

bool rules_is_id(const char *id, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (!is_id_byte(id[i])) {
			return false;
		}
	}
	return length > 0 && length <= ID_BYTES_MAX;
}

/*
 * Returns the error of a line, in `out_reason` if it exceeds a limit; NULL if
 * the line was added or is to be skipped.
 */
static const char *add_line(
	struct rules *rules, char *line, size_t length, char out_reason[RULES_REASON_BYTES])
{
	char *tab;
	int error;

	if (length > LINE_BYTES_MAX) {
		return "line longer than 1 MiB";
	}
	/* From an editor that ends lines in CR LF: no pattern wants that CR. */
	if (length > 0 && line[length - 1] == '\r') {
		line[--length] = '\0';
	}
	if (length == 0 || line[0] == '#') {
		return NULL;
	}
	if (memchr(line, '\0', length) != NULL) {
		return "holds a NUL byte (write it as \\x00)";
	}
	tab = memchr(line, '\t', length);
	if (tab == NULL) {
		return "no tab between id and pattern";
	}
	if (!rules_is_id(line, (size_t)(tab - line))) {
		return rules_id_reason;
	}
	*tab = '\0';
	length -= (size_t)(tab + 1 - line);
	error = rules_add(rules, line, tab + 1, length, false);
	if (error == -E2BIG) {
		rules_limit_reason(rules, length, out_reason);
		return out_reason;
	}
	return error != 0 ? "out of memory" : NULL;
}

int rules_read_lines(struct rules_reader *reader, const struct rules_source *source)
{
	struct rules *rules = reader->rules;
	uint32_t line_number = 0;
	int error = 0;

	for (size_t at = 0; at < source->length;) {
		char limit_reason[RULES_REASON_BYTES];
		char *line = source->bytes + at;
		char *newline = memchr(line, '\n', source->length - at);
		size_t length = newline == NULL ? source->length - at : (size_t)(newline - line);
		uint32_t count_before = rules->count;
		const char *reason;

		line[length] = '\0';
		line_number++;
		at += length + 1;
		reason = add_line(rules, line, length, limit_reason);
		if (reason != NULL) {
			reader->remark(RULES_REMARK_ERROR, source->file, line_number, reason);
			error = -EINVAL;
		}
		if (reason == limit_reason) {
			break;
		}
		if (rules->count > count_before) {
			rules->items[count_before].file = source->file;
			rules->items[count_before].line = line_number;
		}
	}
	return error;
}

int rules_reader_add(struct rules_reader *reader, const char *file)
{
	struct rules_source source = {.file = file};
	char reason[RULES_SOURCE_REASON_BYTES] = "";
	int error = rules_source_read(reader, &source, reason);

	if (error == -EINVAL && reason[0] != '\0') {
		reader->remark(RULES_REMARK_ERROR, file, 0, reason);
	}
	if (error == 0 && yara_rules_are_in(&source)) {
		error = yara_rules_keep(reader, &source);
	} else if (error == 0) {
		error = rules_source_is_toml(&source) ? rules_read_toml(reader, &source)
						      : rules_read_lines(reader, &source);
	}
	free(source.bytes);
	return error;
}
