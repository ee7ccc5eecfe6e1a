/* SPDX-License-Identifier: MIT */
/*
 * A stack of choices, a random generator, a parsed text.
 */
#include "tests/model/choices.h"
#include "tests/model/snapshot.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHOICES_MAX = 1 << 14 };

enum mode { SEARCH, RANDOM, REPEAT };

struct choice {
	uint32_t number;
	uint32_t taken;
	uint32_t count;
};

static struct {
	enum mode mode;
	uint32_t asked;
	uint32_t position;
	uint32_t depth;
	uint64_t random;
	struct choice stack[CHOICES_MAX];
} choices;

void choices_exclude(void)
{
	snapshot_exclude(&choices, sizeof(choices));
}

void choices_search(void)
{
	choices.mode = SEARCH;
	choices.depth = 0;
}

void choices_random(uint64_t seed)
{
	choices.mode = RANDOM;
	choices.depth = 0;
	choices.random = seed * 2 + 1;
}

bool choices_repeat(const char *text)
{
	choices.mode = REPEAT;
	choices.depth = 0;
	while (*text != '\0' && choices.depth < CHOICES_MAX) {
		struct choice *choice = &choices.stack[choices.depth];
		int length = 0;

		if (sscanf(text, "%u:%u%n", &choice->number, &choice->taken, &length) != 2) {
			return false;
		}
		choices.depth++;
		text += length;
		text += *text == ',' ? 1 : 0;
	}
	return *text == '\0';
}

bool choices_are_repeated(void)
{
	return choices.mode == REPEAT;
}

bool choices_are_searched(void)
{
	return choices.mode == SEARCH;
}

void choices_begin(void)
{
	choices.asked = 0;
	choices.position = 0;
	if (choices.mode == RANDOM) {
		choices.depth = 0;
	}
}

bool choices_advance(void)
{
	if (choices.mode != SEARCH) {
		return choices.mode == RANDOM;
	}
	while (choices.depth > 0) {
		struct choice *last = &choices.stack[choices.depth - 1];

		if (last->taken + 1 < last->count) {
			last->taken++;
			return true;
		}
		choices.depth--;
	}
	return false;
}

static uint64_t draw(void)
{
	/* xorshift64*; any generator would do. */
	choices.random ^= choices.random >> 12;
	choices.random ^= choices.random << 25;
	choices.random ^= choices.random >> 27;
	return (choices.random * UINT64_C(2685821657736338717)) >> 32;
}

static uint32_t take_repeated(uint32_t count)
{
	const struct choice *choice = &choices.stack[choices.position];

	if (choices.position == choices.depth || choice->number != choices.asked) {
		return 0;
	}
	choices.position++;
	return choice->taken < count ? choice->taken : 0;
}

static uint32_t take_new(uint32_t count, uint32_t percent)
{
	struct choice *choice = &choices.stack[choices.depth];

	if (choices.depth == CHOICES_MAX) {
		return 0;
	}
	*choice = (struct choice){.number = choices.asked, .count = count};
	if (choices.mode == RANDOM && draw() % 100 < percent) {
		choice->taken = 1 + (uint32_t)(draw() % (count - 1));
	}
	choices.depth++;
	choices.position++;
	return choice->taken;
}

uint32_t choices_take(uint32_t count, uint32_t percent)
{
	const struct choice *choice = &choices.stack[choices.position];

	choices.asked++;
	if (choices.mode == REPEAT) {
		return take_repeated(count);
	}
	if (count <= 1) {
		return 0;
	}
	if (choices.position == choices.depth) {
		return take_new(count, percent);
	}
	if (choice->count != count || choice->number != choices.asked) {
		fprintf(stderr, "the case is not deterministic: choice %u of %u, before %u of %u\n",
			choices.asked, count, choice->number, choice->count);
		abort();
	}
	choices.position++;
	return choice->taken;
}

uint32_t choices_asked(void)
{
	return choices.asked;
}

uint32_t choices_made(void)
{
	return choices.position;
}

bool choices_are_new(void)
{
	return choices.mode == SEARCH && choices.position == choices.depth;
}

uint32_t choices_depth(void)
{
	return choices.depth;
}

void choices_resume(uint32_t made, uint32_t asked)
{
	choices.position = made;
	choices.asked = asked;
}

void choices_text(char *out, size_t size)
{
	size_t length = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < choices.depth && length < size; i++) {
		const struct choice *choice = &choices.stack[i];

		if (choice->taken > 0) {
			length += (size_t)snprintf(out + length, size - length, "%s%u:%u",
				length > 0 ? "," : "", choice->number, choice->taken);
		}
	}
}
