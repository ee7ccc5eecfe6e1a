/* SPDX-License-Identifier: MIT */
/*
 * The findings of a file that another engine has searched as a whole, in place
 * of windows: each match is a finding, also one that overlaps others of its
 * rule. Limits hold as for other rules. The findings are held until
 * findings_finish() shows them.
 */
#ifndef PINION_TOOLS_SCAN_FINDINGS_WHOLE_H
#define PINION_TOOLS_SCAN_FINDINGS_WHOLE_H

#include "tools/scan/findings_file.h"

#include <pinion/scan.h>

/*
 * First, so that the caller knows of which matches it keeps more: sorts `found`
 * and drops what occurs twice or is beyond a limit. Takes the lock.
 *
 * Errors: -ENOMEM.
 */
int findings_whole_choose(
	const struct findings *findings, struct findings_file *file, struct candidates *found);

/*
 * Then holds what is left. The window has the whole file. Takes the lock.
 *
 * Errors: -ENOMEM.
 */
int findings_whole_hold(const struct findings *findings, struct findings_file *file,
	const struct pinion_window *window, const struct candidates *found);

#endif
