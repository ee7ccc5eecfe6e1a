/* SPDX-License-Identifier: MIT */
/*
 * Whether the options of a scan fit together, asked once, after the last one:
 * the first combination that cannot mean anything is reported, and the scan
 * does not begin. Values of single options are checked where they are parsed
 * (command.c).
 */
#ifndef PINION_TOOLS_SCAN_OPTIONS_CHECK_H
#define PINION_TOOLS_SCAN_OPTIONS_CHECK_H

#include "tools/scan/run.h"

/* Sets those that follow from others. False: reported. */
bool scan_options_check(struct scan_options *options);

#endif
