/* SPDX-License-Identifier: MIT */
/*
 * From candidates to findings, the same ones in the same order for a file
 * whatever its windows were and in whatever order they came.
 *
 * Windows are taken in file order; an early one waits (early_windows.h). The
 * candidates of each rule are thinned out to its findings (findings_rule.h),
 * within the rule's limits (findings_limits.h), and findings are held until
 * none can come before them (findings_held.h). All of this depends on the bytes
 * alone. A file that another engine searches as a whole has no windows here
 * (findings_whole.h).
 *
 * Memory: the candidates and snippets of windows that wait, open ones, and
 * findings held back. A file without candidates allocates nothing.
 */
#ifndef PINION_TOOLS_SCAN_FINDINGS_H
#define PINION_TOOLS_SCAN_FINDINGS_H

#include "tools/scan/findings_file.h"
#include "tools/scan/findings_held.h"

/*
 * Hands in a window's yield, each window of the file once; its list is sorted
 * on the way. `show` is called on this thread, never at the same time for one
 * file.
 *
 * Errors: -ENOMEM: findings are missing, the file cannot be trusted.
 */
int findings_add(const struct findings *findings, struct findings_file *file,
	const struct pinion_window *window, struct engine_yield *yield, findings_show_fn show,
	void *arg);

/*
 * No more windows will come, even if some are missing: decides and shows the
 * rest.
 */
int findings_finish(const struct findings *findings, struct findings_file *file,
	findings_show_fn show, void *arg);

#endif
