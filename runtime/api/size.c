/* SPDX-License-Identifier: MIT */
/*
 * Sizes as users write them: 65536, 64K, 10MB.
 *
 * Variables of the environment (environment.c) and options of the commands are
 * read by this one function, so each takes the same spellings.
 */
#include "runtime/api/internal.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const char unit_letters[] = "KMGT";

static char upper(char letter)
{
	return letter >= 'a' && letter <= 'z' ? (char)(letter - ('a' - 'A')) : letter;
}

/* `word` is in capitals. */
static bool is_word(const char *text, const char *word)
{
	for (; *word != '\0' && upper(*text) == *word; word++) {
		text++;
	}
	return *word == '\0' && *text == '\0';
}

/* What a suffix multiplies by; 0: there is no such suffix. */
static uint64_t factor_of(const char *suffix)
{
	const char *letter = unit_letters;
	uint64_t unit = 1024;
	uint64_t factor;

	if (*suffix == '\0' || is_word(suffix, "B")) {
		return 1;
	}
	while (*letter != '\0' && *letter != upper(*suffix)) {
		letter++;
	}
	if (is_word(suffix + 1, "B")) {
		unit = 1000;
	} else if (suffix[1] != '\0' && !is_word(suffix + 1, "IB")) {
		return 0;
	}
	factor = *letter == '\0' ? 0 : unit;
	for (; factor != 0 && letter > unit_letters; letter--) {
		factor *= unit;
	}
	return factor;
}

int pinion_config_parse_size(const char *text, uint64_t *out_bytes)
{
	const char *at = text;
	bool is_huge = false;
	uint64_t number = 0;
	uint64_t factor;

	PIN_CHECK(text != NULL);
	for (; *at >= '0' && *at <= '9'; at++) {
		is_huge |= __builtin_mul_overflow(number, 10, &number);
		is_huge |= __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number);
	}
	factor = at == text ? 0 : factor_of(at);
	if (factor == 0) {
		return -EINVAL;
	}
	if (is_huge || __builtin_mul_overflow(number, factor, &number)) {
		return -ERANGE;
	}
	*out_bytes = number;
	return 0;
}
