/* SPDX-License-Identifier: MIT */
/*
 * What models of a scan have in place of the reader's results: no read fails,
 * no file changes. The model has a pin_reader_start() of its own. Included by
 * one source of a program.
 */
#ifndef PIN_MODEL_NO_READS_H
#define PIN_MODEL_NO_READS_H

#include "runtime/scan/file_reader.h"

int pin_reader_error(const struct pin_reader *reader)
{
	(void)reader;
	return 0;
}

bool pin_reader_file_changed(const struct pin_reader *reader)
{
	(void)reader;
	return false;
}

int pin_reader_gap_error(const struct pin_reader *reader)
{
	(void)reader;
	return 0;
}

#endif
