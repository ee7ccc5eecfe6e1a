/* SPDX-License-Identifier: MIT */
/*
 * Goal: checksums are CRC32C, in one part or in many, by the instruction and by
 * the table, of any length from any address on.
 * Method: the vectors of RFC 3720, B.4, each split of a text, and random bytes
 * by both.
 */
#include "runtime/base/crc32c.c"

#include "tests/support/expect.h"

int main(void)
{
	static const uint8_t zeros[32];
	static const char digits[] = "123456789";
	uint8_t bytes[32];
	uint8_t many[128];

	expect_number("zeros", 0x8a9136aa, pin_crc32c(0, zeros, sizeof(zeros)));
	memset(bytes, 0xff, sizeof(bytes));
	expect_number("ones", 0x62a8ab43, pin_crc32c(0, bytes, sizeof(bytes)));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)i;
	}
	expect_number("up", 0x46dd794e, pin_crc32c(0, bytes, sizeof(bytes)));
	expect_number("digits", 0xe3069283, pin_crc32c(0, digits, 9));
	expect_number("table", 0xe3069283, ~by_table(~0u, (const uint8_t *)digits, 9));
	for (size_t cut = 0; cut <= 9; cut++) {
		expect_number("parts", 0xe3069283,
			pin_crc32c(pin_crc32c(0, digits, cut), digits + cut, 9 - cut));
	}
	for (size_t i = 0; i < sizeof(many); i++) {
		many[i] = (uint8_t)(i * i + 7 * i);
	}
	for (size_t from = 0; from < 8; from++) {
		for (size_t length = 0; length <= sizeof(many) - from; length++) {
			expect_number("as the table", ~by_table(~5u, many + from, length),
				pin_crc32c(5, many + from, length));
		}
	}
	return expect_status();
}
