/* SPDX-License-Identifier: MIT */
/*
 * All pages as one text for Prometheus, such as node_exporter's textfile
 * collector reads.
 */
#ifndef PINION_TOOLS_TOP_OPENMETRICS_H
#define PINION_TOOLS_TOP_OPENMETRICS_H

#include "tools/output_text.h"
#include "tools/top/watch.h"

#include <stdbool.h>

void top_openmetrics_append(struct output_text *text, const struct top_watch *watch);

/*
 * Writes that text to pinion.prom in a folder: to another file first, which is
 * renamed, so that no reader finds half of it. False: it failed, with a line if
 * the call before did not.
 */
bool top_openmetrics_write(const struct top_watch *watch, const char *folder);

#endif
