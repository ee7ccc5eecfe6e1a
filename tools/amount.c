/* SPDX-License-Identifier: MIT */
/*
 * The unit is that of the rounded number: 999.9996 kB is 1.000 MB.
 */
#include "tools/amount.h"

#include <stddef.h>
#include <stdio.h>

const char *amount_write(char out[AMOUNT_TEXT_BYTES], double bytes)
{
	static const char *const units[] = {"kB", "MB", "GB"};
	double number = bytes / 1e3;
	size_t unit = 0;

	while (number >= 999.9995 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		number /= 1e3;
		unit++;
	}
	snprintf(out, AMOUNT_TEXT_BYTES, "%.3f %s", number, units[unit]);
	return out;
}
