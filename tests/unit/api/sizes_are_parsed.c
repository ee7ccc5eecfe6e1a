/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_config_parse_size() reads each spelling of a size, in letters of
 * either case; other texts are -EINVAL and sizes beyond 64 bits -ERANGE, and
 * change nothing.
 */
#include "tests/support/expect.h"

#include <errno.h>
#include <pinion/config.h>

static void check(const char *text, int error, uint64_t expected)
{
	uint64_t bytes = 12345;

	expect_number(text, error, pinion_config_parse_size(text, &bytes));
	expect_number(text, (long long)(error == 0 ? expected : 12345), (long long)bytes);
}

static void check_good(void)
{
	check("0", 0, 0);
	check("65536", 0, 65536);
	check("007", 0, 7);
	check("64b", 0, 64);
	check("64B", 0, 64);
	check("2K", 0, 2048);
	check("2k", 0, 2048);
	check("2KiB", 0, 2048);
	check("2kib", 0, 2048);
	check("2KB", 0, 2000);
	check("2kb", 0, 2000);
	check("3M", 0, 3145728);
	check("10MB", 0, 10000000);
	check("3G", 0, 3221225472);
	check("3gb", 0, 3000000000);
	check("1T", 0, UINT64_C(1) << 40);
	check("1TiB", 0, UINT64_C(1) << 40);
	check("1TB", 0, 1000000000000);
	check("18446744073709551615", 0, UINT64_MAX);
	check("000000000000000000000018446744073709551615", 0, UINT64_MAX);
	check("16777215T", 0, UINT64_C(16777215) << 40);
}

static void check_bad(void)
{
	static const char *const bad[] = {"", "K", "-1", "+1", " 1", "1 ", "1 MB", "1.5M", "1X",
		"1i", "1KX", "1KBB", "1KiBs", "1BB", "1Bi", "1iB", "1P", "0x10", "10MBs"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		check(bad[i], -EINVAL, 0);
	}
	check("18446744073709551616", -ERANGE, 0);
	check("99999999999999999999999999", -ERANGE, 0);
	check("16777216T", -ERANGE, 0);
	check("18446744073709551615K", -ERANGE, 0);
	check("99999999999999999999X", -EINVAL, 0);
}

int main(void)
{
	check_good();
	check_bad();
	return expect_status();
}
