/* SPDX-License-Identifier: MIT */
/*
 * Goal: an amount of bytes has the largest unit that leaves no zero before the
 * point, kB at least and GB at most, also where rounding makes it 1.
 * Method: amounts on both sides of each change of units.
 */
#include "tests/support/expect.h"
#include "tools/amount.h"

static void check(double bytes, const char *expected)
{
	char text[AMOUNT_TEXT_BYTES];

	expect_text("amount", expected, amount_write(text, bytes));
}

int main(void)
{
	check(0, "0.000 kB");
	check(1, "0.001 kB");
	check(0.4, "0.000 kB");
	check(999, "0.999 kB");
	check(1000, "1.000 kB");
	check(1024, "1.024 kB");
	check(999999, "999.999 kB");
	check(999999.4, "999.999 kB");
	check(999999.6, "1.000 MB");
	check(1000000, "1.000 MB");
	check(134217728, "134.218 MB");
	check(999999499, "999.999 MB");
	check(999999600, "1.000 GB");
	check(1e9, "1.000 GB");
	check(1234567890123, "1234.568 GB");
	check(18446744073709551615.0, "18446744073.710 GB");
	return expect_status();
}
