/* SPDX-License-Identifier: MIT */
/*
 * Distances between words (Damerau and Levenshtein's, restricted), and which
 * are small.
 */
#include "tools/spelling.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Longer words are compared no further: none of ours is that long. */
enum { WORD_LETTERS_MAX = 63 };

static uint32_t minimum(uint32_t left, uint32_t right)
{
	return left < right ? left : right;
}

uint32_t spelling_distance(const char *left, const char *right)
{
	uint32_t rows[3][WORD_LETTERS_MAX + 1];
	uint32_t *above2 = rows[0];
	uint32_t *above = rows[1];
	uint32_t *row = rows[2];
	size_t left_length = strlen(left);
	size_t right_length = strlen(right);

	if (left_length > WORD_LETTERS_MAX || right_length > WORD_LETTERS_MAX) {
		return UINT32_MAX;
	}
	for (uint32_t j = 0; j <= right_length; j++) {
		row[j] = j;
	}
	for (uint32_t i = 1; i <= left_length; i++) {
		uint32_t *oldest = above2;

		above2 = above;
		above = row;
		row = oldest;
		row[0] = i;
		for (uint32_t j = 1; j <= right_length; j++) {
			uint32_t replaced = above[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);

			row[j] = minimum(replaced, minimum(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && left[i - 1] == right[j - 2] &&
				left[i - 2] == right[j - 1]) {
				row[j] = minimum(row[j], above2[j - 2] + 1);
			}
		}
	}
	return row[right_length];
}

/* The longer a word, the more mistakes leave it recognisable. */
static bool is_near(uint32_t distance, const char *word)
{
	return distance <= 1 + strlen(word) / 4;
}

void spelling_offer(struct spelling *spelling, const char *known)
{
	uint32_t distance = spelling_distance(spelling->word, known);

	if (is_near(distance, known) &&
		(spelling->nearest == NULL || distance < spelling->distance)) {
		spelling->nearest = known;
		spelling->distance = distance;
	}
}
