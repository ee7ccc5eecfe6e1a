/* SPDX-License-Identifier: MIT */
/*
 * What the values of a metrics page mean, in a line each: the HELP of
 * Prometheus' text format.
 */
#ifndef PINION_TOOLS_TOP_MEANINGS_H
#define PINION_TOOLS_TOP_MEANINGS_H

#include <pinion/metrics.h>

/* Of a value that this version does not know: where to look. */
const char *top_meaning_of(const struct pinion_metrics_field *field);

#endif
