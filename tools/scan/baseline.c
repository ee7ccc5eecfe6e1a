/* SPDX-License-Identifier: MIT */
/*
 * A baseline is read byte by byte, in memory for its fingerprints alone. Its
 * objects have to be lines of --format=json or documents of SARIF: a file that
 * is neither would leave out nothing, and so is refused rather than heeded.
 *
 * Invariant: a fingerprint is the value of a name at its place. So no text
 * within a string passes for a fingerprint. Escapes and words are not checked,
 * as no place depends on them.
 */
#include "tools/scan/baseline.h"

#include "tools/growing.h"
#include "tools/input.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Longer strings are neither names nor fingerprints. */
	STRING_BYTES_MAX = 64,
	/* SARIF has 8; one bit each. */
	DEPTH_MAX = 64,
	/* Of a SARIF document: {"runs": [{"results": [{ */
	DEPTH_OF_RESULT = 5,
	BLOCK_BYTES = 2048,
	REASON_BYTES = 160,
};

/* Some four million findings. */
static const uint64_t file_bytes_max = (uint64_t)1 << 30;
static const uint64_t ns_per_ms = 1000000;
static const uint64_t ns_per_s = 1000000000;

/* The tokens that may come next. */
enum json_next {
	NEXT_VALUE,
	NEXT_FIRST_VALUE, /* or the end of its array */
	NEXT_NAME,
	NEXT_FIRST_NAME, /* or the end of its object */
	NEXT_COLON,
	NEXT_COMMA, /* or the end */
};

/* Names that matter, at their places. */
enum json_name {
	NAME_OTHER,
	NAME_PRINT,
	NAME_RUNS,
};

struct json_reader {
	struct baseline *baseline;
	uint64_t offset;
	uint64_t objects; /* a bit for each level: an object, no array */
	unsigned depth;
	unsigned mark_bytes; /* of the byte order mark, that were seen */
	enum json_next next;
	enum json_name name; /* whose value comes next */
	bool is_inside;	     /* a string */
	bool is_escaped;
	bool is_word;	  /* a number, true, false or null goes on */
	bool is_known;	  /* the outermost object is of a baseline */
	bool has_results; /* of SARIF */
	char text[STRING_BYTES_MAX];
	size_t length; /* may be more than there is room for */
	char reason[REASON_BYTES];
};

static int refuse(struct json_reader *reader, const char *reason)
{
	snprintf(reader->reason, sizeof(reader->reason), "is no baseline: %s at byte %llu", reason,
		(unsigned long long)reader->offset);
	return -EBADMSG;
}

static int refuse_json(struct json_reader *reader)
{
	return refuse(reader, "no JSON");
}

static int refuse_print(struct json_reader *reader)
{
	return refuse(reader, "a fingerprint that is not 32 hexadecimal digits");
}

static int add(struct baseline *baseline, const struct fingerprint *print)
{
	struct fingerprint *items = growing_make_room(
		baseline->items, baseline->count, &baseline->capacity, sizeof(*items));

	if (items == NULL) {
		return -ENOMEM;
	}
	baseline->items = items;
	baseline->items[baseline->count++] = *print;
	return 0;
}

/* ---- names and strings ---- */

static bool is_text(const struct json_reader *reader, const char *text)
{
	return reader->length == strlen(text) && memcmp(reader->text, text, reader->length) == 0;
}

static void end_name(struct json_reader *reader)
{
	bool is_line = reader->depth == 1;

	reader->next = NEXT_COLON;
	reader->name = NAME_OTHER;
	if (is_text(reader, is_line ? "fingerprint" : FINGERPRINT_NAME)) {
		reader->name = NAME_PRINT;
	} else if (is_line && is_text(reader, "runs")) {
		reader->name = NAME_RUNS;
	} else if (is_line && (is_text(reader, "unread_start") || is_text(reader, "limit"))) {
		reader->is_known = true;
	} else if (reader->depth == DEPTH_OF_RESULT && is_text(reader, "ruleId")) {
		reader->has_results = true;
	}
}

static int end_string(struct json_reader *reader)
{
	struct fingerprint print;

	reader->is_inside = false;
	if (reader->next == NEXT_NAME || reader->next == NEXT_FIRST_NAME) {
		end_name(reader);
		return 0;
	}
	reader->next = NEXT_COMMA;
	if (reader->name != NAME_PRINT) {
		return 0;
	}
	if (!fingerprint_parse(reader->text, reader->length, &print)) {
		return refuse_print(reader);
	}
	reader->name = NAME_OTHER;
	reader->is_known = reader->is_known || reader->depth == 1;
	return add(reader->baseline, &print);
}

static int take_string_byte(struct json_reader *reader, char byte)
{
	if ((unsigned char)byte < ' ') {
		return refuse_json(reader);
	}
	if (byte == '"' && !reader->is_escaped) {
		return end_string(reader);
	}
	reader->is_escaped = byte == '\\' && !reader->is_escaped;
	if (reader->length < sizeof(reader->text)) {
		reader->text[reader->length] = byte;
	}
	reader->length++;
	return 0;
}

/* ---- values ---- */

static bool is_in_object(const struct json_reader *reader)
{
	return reader->depth > 0 && (reader->objects >> (reader->depth - 1) & 1) != 0;
}

static int begin_level(struct json_reader *reader, bool is_object)
{
	uint64_t bit;

	if (reader->depth == 0) {
		reader->is_known = false;
	}
	if (reader->depth == DEPTH_MAX) {
		return refuse(reader, "more than 64 levels");
	}
	reader->is_known = reader->is_known || (reader->name == NAME_RUNS && !is_object);
	reader->name = NAME_OTHER;
	bit = (uint64_t)1 << reader->depth++;
	reader->objects = is_object ? reader->objects | bit : reader->objects & ~bit;
	reader->next = is_object ? NEXT_FIRST_NAME : NEXT_FIRST_VALUE;
	return 0;
}

static int end_level(struct json_reader *reader, bool is_object)
{
	if (reader->depth == 0 || is_in_object(reader) != is_object) {
		return refuse_json(reader);
	}
	reader->depth--;
	reader->next = reader->depth == 0 ? NEXT_VALUE : NEXT_COMMA;
	if (reader->depth == 0 && !reader->is_known) {
		return refuse(reader, "an object neither of --format=json nor of sarif ends");
	}
	return 0;
}

static int begin_value(struct json_reader *reader, char byte)
{
	if (reader->name == NAME_PRINT && byte != '"') {
		return refuse_print(reader);
	}
	/* Each line is an object, and so is SARIF. */
	if (reader->depth == 0 && byte != '{') {
		return refuse(reader, "no object");
	}
	if (byte == '{' || byte == '[') {
		return begin_level(reader, byte == '{');
	}
	reader->is_inside = byte == '"';
	reader->length = 0;
	if (byte == '"') {
		return 0;
	}
	reader->is_word = true;
	reader->next = NEXT_COMMA;
	return byte != '\0' && strchr("-0123456789tfn", byte) != NULL ? 0 : refuse_json(reader);
}

static int take_comma_or_end(struct json_reader *reader, char byte)
{
	if (byte == '}' || byte == ']') {
		return end_level(reader, byte == '}');
	}
	reader->next = is_in_object(reader) ? NEXT_NAME : NEXT_VALUE;
	return byte == ',' ? 0 : refuse_json(reader);
}

static int begin_name(struct json_reader *reader, char byte)
{
	reader->is_inside = true;
	reader->length = 0;
	return byte == '"' ? 0 : refuse_json(reader);
}

/* Outside of strings and words. */
static int take_token(struct json_reader *reader, char byte)
{
	switch (reader->next) {
	case NEXT_VALUE:
		return begin_value(reader, byte);
	case NEXT_FIRST_VALUE:
		return byte == ']' ? end_level(reader, false) : begin_value(reader, byte);
	case NEXT_FIRST_NAME:
		return byte == '}' ? end_level(reader, true) : begin_name(reader, byte);
	case NEXT_NAME:
		return begin_name(reader, byte);
	case NEXT_COLON:
		reader->next = NEXT_VALUE;
		return byte == ':' ? 0 : refuse_json(reader);
	case NEXT_COMMA:
		return take_comma_or_end(reader, byte);
	}
	return refuse_json(reader);
}

static bool is_word_byte(char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || byte == 'E' ||
		byte == '+' || byte == '-' || byte == '.';
}

static int take_byte(struct json_reader *reader, char byte)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (reader->offset < 3 && reader->mark_bytes == reader->offset &&
		byte == mark[reader->offset]) {
		reader->mark_bytes++;
		return 0;
	}
	if (reader->mark_bytes % 3 != 0) {
		return refuse_json(reader);
	}
	if (reader->is_inside) {
		return take_string_byte(reader, byte);
	}
	reader->is_word = reader->is_word && is_word_byte(byte);
	if (reader->is_word || byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t') {
		return 0;
	}
	return take_token(reader, byte);
}

/* ---- files ---- */

static int end_file(struct json_reader *reader, size_t count_before)
{
	if (reader->depth > 0 || reader->mark_bytes % 3 != 0) {
		return refuse(reader, "an end before that of its JSON");
	}
	if (reader->has_results && reader->baseline->count == count_before) {
		snprintf(reader->reason, sizeof(reader->reason),
			"is no baseline: its results have no fingerprint " FINGERPRINT_NAME);
		return -EBADMSG;
	}
	return 0;
}

static int read_file(struct json_reader *reader, int fd, uint64_t silence_ns_max)
{
	size_t count_before = reader->baseline->count;
	char bytes[BLOCK_BYTES];
	ssize_t count;
	int error = 0;

	while ((count = input_read_within(fd, bytes, sizeof(bytes),
			(silence_ns_max + ns_per_ms - 1) / ns_per_ms)) > 0) {
		for (ssize_t i = 0; i < count && error == 0; i++, reader->offset++) {
			error = take_byte(reader, bytes[i]);
		}
		if (error == 0 && reader->offset > file_bytes_max) {
			error = refuse(reader, "more than 1 GiB");
		}
		if (error != 0) {
			return error;
		}
	}
	if (count == -ETIMEDOUT) {
		snprintf(reader->reason, sizeof(reader->reason),
			"no data for %.3g s (--file-timeout)",
			(double)silence_ns_max / (double)ns_per_s);
		return -EBADMSG;
	}
	return count == 0 ? end_file(reader, count_before) : (int)count;
}

static int compare(const void *left, const void *right)
{
	return memcmp(left, right, FINGERPRINT_BYTES);
}

bool baseline_load(struct baseline *baseline, const char *path, uint64_t silence_ns_max)
{
	struct json_reader reader = {.baseline = baseline};
	/* The read, not the open, awaits a FIFO's writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int error = fd < 0 ? -errno : read_file(&reader, fd, silence_ns_max);

	if (fd >= 0) {
		close(fd);
	}
	if (error != 0) {
		report_path(path,
			error == -EBADMSG	   ? reader.reason
				: error == -EISDIR ? "is a directory"
						   : report_reason(error));
		return false;
	}
	if (baseline->count > 0) {
		qsort(baseline->items, baseline->count, sizeof(baseline->items[0]), compare);
	}
	return true;
}

bool baseline_has(const struct baseline *baseline, const struct fingerprint *print)
{
	return baseline->count > 0 &&
		bsearch(print, baseline->items, baseline->count, sizeof(*print), compare) != NULL;
}

void baseline_free(struct baseline *baseline)
{
	free(baseline->items);
	*baseline = (struct baseline){0};
}
