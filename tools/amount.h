/* SPDX-License-Identifier: MIT */
/*
 * Amounts of bytes as text for people: three decimals of the largest unit, kB,
 * MB or GB (powers of 1000), that leaves no zero before the point. Smaller ones
 * are kB as well. JSON has bytes instead.
 */
#ifndef PINION_TOOLS_AMOUNT_H
#define PINION_TOOLS_AMOUNT_H

enum { AMOUNT_TEXT_BYTES = 32 };

/* Returns `out`, which has "1.250 MB". Also of bytes a second. */
const char *amount_write(char out[AMOUNT_TEXT_BYTES], double bytes);

#endif
