/* SPDX-License-Identifier: MIT */
/*
 * Character classes of expressions, as sets of bytes.
 *
 * Files are bytes in any encoding, so a class matches a byte: `[^"]`, `\S` and
 * `.` one byte of a character beyond ASCII. A class that names such characters
 * (`[“”]`) has their UTF-8 forms as alternatives, `extras`.
 */
#ifndef PINION_TOOLS_SCAN_REGEX_CLASS_H
#define PINION_TOOLS_SCAN_REGEX_CLASS_H

#include "tools/scan/rule_filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	REGEX_EXTRAS_MAX = 64,
	REGEX_UTF8_MAX = 4,
};

struct regex_set {
	uint64_t bits[4];
	uint32_t extras[REGEX_EXTRAS_MAX]; /* characters from 0x80 on */
	uint32_t extra_count;
};

static inline bool regex_set_has(const struct regex_set *set, unsigned byte)
{
	return (set->bits[byte / 64] >> (byte % 64) & 1) != 0;
}

void regex_set_add_range(struct regex_set *set, unsigned first, unsigned last);
void regex_set_add_set(struct regex_set *set, const struct regex_set *other);
void regex_set_negate(struct regex_set *set);
/* Adds the other case of each ASCII letter. */
void regex_set_fold(struct regex_set *set);

/*
 * The set of `\d`, `\W` and the like; false: `letter` names none in this
 * dialect.
 */
bool regex_set_of_letter(enum rule_dialect dialect, char letter, struct regex_set *out_set);

/*
 * The character of the escape at `*at`, after its backslash; moves *at past
 * it. NULL, or the reason why there is none.
 */
const char *regex_escape(
	enum rule_dialect dialect, const char **at, const char *end, uint32_t *out_character);

/* The character in UTF-8 at `*at`, or one byte where it is not; moves *at. */
uint32_t regex_character(const char **at, const char *end);

/* Its UTF-8 form; returns its length. */
size_t regex_utf8(uint32_t character, uint8_t out_bytes[REGEX_UTF8_MAX]);

/*
 * Parses the class after the `[` at `*at`; moves *at past its `]`. NULL, or the
 * reason why it cannot be.
 */
const char *regex_class_parse(enum rule_dialect dialect, bool folds, const char **at,
	const char *end, struct regex_set *out_set);

#endif
