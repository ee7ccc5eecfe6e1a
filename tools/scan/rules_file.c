/* SPDX-License-Identifier: MIT */
/*
 * Rules files: one `ID<TAB>REGEX` a line. Every bad line is told of in one go,
 * so that a file is mended in one go.
 */
#include "tools/scan/rules.h"
#include "tools/input.h"

#include <errno.h>
#include <string.h>

enum {
	ID_BYTES_MAX = 128,
	/* A hundred times the largest collections; /dev/zero has no end. */
	FILE_BYTES_MAX = 64 << 20,
};

/* Ids stand unescaped in text and JSON output, hence this alphabet. */
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
 * Says what is wrong with a line, NULL when it was added or is to be skipped.
 */
static const char *add_line(struct rules *rules, char *line, size_t length)
{
	char *tab;

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
	if (rules_add(rules, line, tab + 1, length - (size_t)(tab + 1 - line), false) != 0) {
		return "out of memory";
	}
	return NULL;
}

int rules_add_file(struct rules *rules, const char *file, rules_complain_fn complain)
{
	struct input_lines lines;
	uint32_t line_number = 0;
	int error = 0;
	int status = input_lines_init(&lines, file, '\n');

	if (status < 0) {
		return status;
	}
	lines.bytes_max = FILE_BYTES_MAX;
	for (;;) {
		char *line;
		size_t length;
		uint32_t count_before = rules->count;
		const char *reason;

		status = input_lines_next(&lines, &line, &length);
		if (status == 0 || (status < 0 && status != -E2BIG)) {
			break;
		}
		line_number++;
		reason = status == -E2BIG ? "line too long" : add_line(rules, line, length);
		if (reason != NULL) {
			complain(file, line_number, reason);
			error = -EINVAL;
		}
		if (rules->count > count_before) {
			rules->items[count_before].file = file;
			rules->items[count_before].line = line_number;
		}
	}
	input_lines_fini(&lines);
	if (status == -EFBIG) {
		complain(file, line_number + 1, "the file is larger than 64 MiB");
		return -EINVAL;
	}
	return status < 0 ? status : error;
}
