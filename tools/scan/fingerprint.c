/* SPDX-License-Identifier: MIT */
/*
 * Baselines are read string by string. A fingerprint is the string that follows
 * the string "fingerprint" and a colon: so no name or content within another
 * string can pass for a fingerprint.
 */
#include "tools/scan/fingerprint.h"

#include "tools/input.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Longer strings are neither names nor fingerprints. */
	STRING_BYTES_MAX = 64,
	CAPACITY_FIRST = 64,
};

static const char name_of_prints[] = "pinion/v1";

void fingerprint_make(const char *rule_id, const char *path, size_t path_bytes, uint64_t length,
	const struct evidence_place *place, struct fingerprint *out_print)
{
	uint8_t size[8];
	uint8_t digest[SHA256_BYTES];
	struct sha256 hash;

	while (path_bytes >= 2 && path[0] == '.' && path[1] == '/') {
		path += 2;
		path_bytes -= 2;
	}
	for (size_t i = 0; i < sizeof(size); i++) {
		size[i] = (uint8_t)(length >> (56 - 8 * i));
	}
	sha256_init(&hash);
	sha256_add(&hash, name_of_prints, sizeof(name_of_prints));
	sha256_add(&hash, rule_id, strlen(rule_id) + 1);
	sha256_add(&hash, path, path_bytes);
	sha256_add(&hash, "", 1);
	sha256_add(&hash, size, sizeof(size));
	if (place->has_digest) {
		sha256_add(&hash, place->digest, sizeof(place->digest));
	}
	sha256_finish(&hash, digest);
	memcpy(out_print->bytes, digest, sizeof(out_print->bytes));
}

void fingerprint_write(const struct fingerprint *print, char out_text[FINGERPRINT_CHARS + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < FINGERPRINT_BYTES; i++) {
		out_text[2 * i] = digits[print->bytes[i] >> 4];
		out_text[2 * i + 1] = digits[print->bytes[i] & 15];
	}
	out_text[FINGERPRINT_CHARS] = '\0';
}

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9') {
		return digit - '0';
	}
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool fingerprint_parse(const char *text, size_t length, struct fingerprint *out_print)
{
	for (size_t i = 0; length == FINGERPRINT_CHARS && i < FINGERPRINT_BYTES; i++) {
		int high = digit_value(text[2 * i]);
		int low = digit_value(text[2 * i + 1]);

		if (high < 0 || low < 0) {
			return false;
		}
		out_print->bytes[i] = (uint8_t)(high << 4 | low);
	}
	return length == FINGERPRINT_CHARS;
}

/* ---- the strings of a JSON text ---- */

struct json_strings {
	bool is_inside;
	bool is_escaped;
	bool has_name;	/* the last string was the name, */
	bool has_colon; /* and a colon came after it */
	bool has_any;	/* anything but white space */
	bool is_json;	/* it began as an object or an array */
	char text[STRING_BYTES_MAX];
	size_t length; /* may be more than there is room for */
};

static int add(struct baseline *baseline, const struct fingerprint *print)
{
	if (baseline->count == baseline->capacity) {
		size_t capacity = baseline->capacity == 0 ? CAPACITY_FIRST : 2 * baseline->capacity;
		struct fingerprint *items =
			realloc(baseline->items, capacity * sizeof(*baseline->items));

		if (items == NULL) {
			return -ENOMEM;
		}
		baseline->items = items;
		baseline->capacity = capacity;
	}
	baseline->items[baseline->count++] = *print;
	return 0;
}

static bool is_name(const struct json_strings *strings)
{
	static const char *const names[] = {"fingerprint", name_of_prints};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strings->length == strlen(names[i]) &&
			memcmp(strings->text, names[i], strings->length) == 0) {
			return true;
		}
	}
	return false;
}

static int end_string(struct json_strings *strings, struct baseline *baseline)
{
	struct fingerprint print;
	int error = 0;

	strings->is_inside = false;
	if (strings->has_name && strings->has_colon) {
		if (fingerprint_parse(strings->text, strings->length, &print)) {
			error = add(baseline, &print);
		}
		strings->has_name = false;
	} else {
		strings->has_name = is_name(strings);
	}
	strings->has_colon = false;
	return error;
}

static void add_byte(struct json_strings *strings, char byte)
{
	if (strings->length < sizeof(strings->text)) {
		strings->text[strings->length] = byte;
	}
	strings->length++;
}

static int take_byte(struct json_strings *strings, char byte, struct baseline *baseline)
{
	if (strings->is_inside) {
		if (strings->is_escaped || byte == '\\') {
			strings->is_escaped = !strings->is_escaped;
			add_byte(strings, byte);
		} else if (byte == '"') {
			return end_string(strings, baseline);
		} else {
			add_byte(strings, byte);
		}
		return 0;
	}
	if (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t') {
		return 0;
	}
	if (!strings->has_any) {
		strings->has_any = true;
		strings->is_json = byte == '{' || byte == '[';
	}
	if (byte == '"') {
		strings->is_inside = true;
		strings->length = 0;
	} else if (byte == ':') {
		strings->has_colon = true;
	} else {
		strings->has_name = false;
	}
	return 0;
}

static int read_strings(int fd, struct json_strings *strings, struct baseline *baseline)
{
	char bytes[1024];
	ssize_t count;

	while ((count = input_read(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < count; i++) {
			int error = take_byte(strings, bytes[i], baseline);

			if (error != 0) {
				return error;
			}
		}
		if (strings->has_any && !strings->is_json) {
			return -EBADMSG;
		}
	}
	return (int)count;
}

static int compare(const void *left, const void *right)
{
	return memcmp(left, right, FINGERPRINT_BYTES);
}

bool baseline_load(struct baseline *baseline, const char *path)
{
	struct json_strings strings = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int error = fd < 0 ? -errno : read_strings(fd, &strings, baseline);

	if (fd >= 0) {
		close(fd);
	}
	if (error == -EBADMSG || (error == 0 && strings.is_inside)) {
		report_path(path, "is no baseline: what --format=json or sarif has written is one");
		return false;
	}
	if (error != 0) {
		report_path(path, error == -EISDIR ? "is a directory" : report_reason(error));
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
