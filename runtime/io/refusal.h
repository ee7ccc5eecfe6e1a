/* SPDX-License-Identifier: MIT */
/*
 * Why a request cannot be submitted, in words: which field, which value, what
 * it may be. Checks that refuse pass a place for the words along, NULL on the
 * hot path; a caller that was refused and has a log asks once more with one.
 */
#ifndef PIN_IO_REFUSAL_H
#define PIN_IO_REFUSAL_H

struct pin_refusal {
	char text[224];
};

/* Writes the words, unless `why` is NULL. Returns `error`. */
int pin_refuse(struct pin_refusal *why, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
