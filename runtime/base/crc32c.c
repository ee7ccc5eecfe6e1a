/* SPDX-License-Identifier: MIT */
/*
 * CRC32C by the processor's instruction where it has one (x86-64 with SSE 4.2),
 * else by a table.
 *
 * Called for each record of a checkpoint log.
 */
#include "runtime/base/crc32c.h"
#include "runtime/base/check.h"

#include <string.h>

/* Of the polynomial 0x1edc6f41, its bits reversed. */
#define POLYNOMIAL 0x82f63b78u

static uint32_t table[256];

static uint32_t by_table(uint32_t state, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		state = (state >> 8) ^ table[(state ^ bytes[i]) & 0xff];
	}
	return state;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static inline uint64_t add_word(
	uint64_t state, const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return __builtin_ia32_crc32di(state, word);
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(
	uint32_t state, const uint8_t *bytes, size_t length)
{
	enum { WORD = sizeof(uint64_t) };
	uint64_t wide = state;
	uint32_t half;

	for (; length >= 4 * WORD; length -= 4 * WORD) {
		wide = add_word(wide, bytes);
		wide = add_word(wide, bytes + WORD);
		wide = add_word(wide, bytes + 2 * WORD);
		wide = add_word(wide, bytes + 3 * WORD);
		bytes += 4 * WORD;
	}
	for (; length >= WORD; length -= WORD) {
		wide = add_word(wide, bytes);
		bytes += WORD;
	}
	state = (uint32_t)wide;
	if (length >= sizeof(half)) {
		memcpy(&half, bytes, sizeof(half));
		state = __builtin_ia32_crc32si(state, half);
		bytes += sizeof(half);
		length -= sizeof(half);
	}
	for (; length > 0; length--) {
		state = __builtin_ia32_crc32qi(state, *bytes++);
	}
	return state;
}

#endif

static uint32_t (*update)(uint32_t state, const uint8_t *bytes, size_t length) = by_table;

/* Before constructors of programs, which may open a checkpoint. */
__attribute__((constructor(101))) static void choose(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (uint32_t bit = 0; bit < 8; bit++) {
			value = (value >> 1) ^ ((value & 1) != 0 ? POLYNOMIAL : 0);
		}
		table[i] = value;
	}
	PIN_CHECK(table[255] == 0xad7d5351u);
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("sse4.2")) {
		update = by_instruction;
	}
#endif
}

uint32_t pin_crc32c(uint32_t crc, const void *bytes, size_t length)
{
	return ~update(~crc, bytes, length);
}
