/* SPDX-License-Identifier: MIT */
/*
 * The state of a file's search at a border of windows where nothing is pending:
 * no candidate is open, no finding held back, no window missing before it. A
 * search that begins there with this state finds what one from the start finds.
 *
 * There is none of a stream, of decoded text, of a file with unread ranges or
 * with rules that have reached a limit, and of rules that require companions.
 * Where candidates are dense a border may take some windows to come.
 *
 * Lines. A finding after the border may begin in the prefix of the next window,
 * on a line that begins before that. So the state has the lines of two bytes:
 * the first one after the border, and the first one of the prefix.
 */
#ifndef PINION_TOOLS_SCAN_SEARCH_PAUSE_H
#define PINION_TOOLS_SCAN_SEARCH_PAUSE_H

#include "tools/output_text.h"
#include "tools/scan/search.h"

/*
 * Appends the state after the windows that have come; false: something is
 * pending, or there is no memory. The lock of the findings is held.
 */
bool search_pause(const struct search *search, struct search_file *file, struct output_text *out,
	uint64_t *out_offset);

/*
 * Takes it over, after search_open(), for windows from that offset on. False:
 * it is none, or no memory, and the file is to be searched from its start.
 */
bool search_resume(const struct search *search, struct search_file *file, const void *bytes,
	size_t length, uint64_t offset);

#endif
