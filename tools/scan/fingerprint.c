/* SPDX-License-Identifier: MIT */
/*
 * The hashed text begins with the name of this way to do it.
 */
#include "tools/scan/fingerprint.h"

#include <string.h>

static const char name_of_prints[] = FINGERPRINT_NAME;

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
	if (digit >= 'A' && digit <= 'F') {
		return digit - 'A' + 10;
	}
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool fingerprint_parse(const char *text, size_t length, struct fingerprint *out_print)
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
