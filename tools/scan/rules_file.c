/* SPDX-License-Identifier: MIT */
/*
 * Rules files: one `ID<TAB>REGEX` a line. Reports every bad line in one run, so
 * that a user mends the file in one go.
 */
#include "tools/scan/rules.h"
#include "tools/input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	ID_BYTES_MAX = 128,
	/* Of a file where nothing is said; /dev/zero has no end. */
	FILE_BYTES_MAX = 64 << 20,
	/* For each byte of patterns that may be in it: ids and comments. */
	FILE_BYTES_SHARE = 4,
};

/* Text and JSON output contain ids unescaped, hence this alphabet. */
static bool is_id_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || (byte != '\0' && strchr("._-:/@+", byte) != NULL);
}

static bool is_id(const char *id, size_t length)
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
	if (!is_id(line, (size_t)(tab - line))) {
		return "an id is 1 to 128 letters, digits and any of . _ - : / @ +";
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

int rules_add_file(struct rules *rules, const char *file, rules_complain_fn complain)
{
	struct input_lines lines;
	uint32_t line_number = 0;
	uint64_t bytes_max;
	int error = 0;
	int status = input_lines_init(&lines, file, '\n');

	if (status < 0) {
		return status;
	}
	lines.bytes_max = FILE_BYTES_MAX;
	if (rules->bytes_max * FILE_BYTES_SHARE > FILE_BYTES_MAX) {
		lines.bytes_max = rules->bytes_max * FILE_BYTES_SHARE;
	}
	for (;;) {
		char limit_reason[RULES_REASON_BYTES];
		char *line;
		size_t length;
		uint32_t count_before = rules->count;
		const char *reason;

		status = input_lines_next(&lines, &line, &length);
		if (status == 0 || (status < 0 && status != -E2BIG)) {
			break;
		}
		line_number++;
		reason = status == -E2BIG ? "line longer than 1 MiB"
					  : add_line(rules, line, length, limit_reason);
		if (reason != NULL) {
			complain(file, line_number, reason);
			error = -EINVAL;
		}
		if (reason == limit_reason) {
			break;
		}
		if (rules->count > count_before) {
			rules->items[count_before].file = file;
			rules->items[count_before].line = line_number;
		}
	}
	bytes_max = lines.bytes_max;
	input_lines_fini(&lines);
	if (status == -EFBIG) {
		char reason[RULES_REASON_BYTES];

		snprintf(reason, sizeof(reason), "the file is larger than %llu MiB",
			(unsigned long long)(bytes_max >> 20));
		complain(file, line_number + 1, reason);
		return -EINVAL;
	}
	return status < 0 ? status : error;
}
