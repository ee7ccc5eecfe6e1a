/* SPDX-License-Identifier: MIT */
/*
 * Results as a picture: an SVG that gnuplot draws. One panel for each subject:
 * how the samples of ours and of the floor are distributed or, where it was
 * measured at several points, their medians over these, with the middle half.
 */
#ifndef PINION_TOOLS_BENCH_PLOT_H
#define PINION_TOOLS_BENCH_PLOT_H

#include "tools/bench/subject.h"

struct bench_plot;

/*
 * Finds gnuplot and makes sure that the picture can be written, before anything
 * is measured. The end of the run replaces a file at `path`. 0 or a negative
 * errno that is reported.
 */
int bench_plot_create(const char *path, struct bench_plot **out_plot);

/* Takes what it needs of the results. NULL is accepted. 0 or -ENOMEM. */
int bench_plot_add(struct bench_plot *plot, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results);

/* Draws, if anything was added; 0 or a negative errno that is reported. */
int bench_plot_finish(struct bench_plot *plot);

/* Accepts NULL. Removes an unfinished picture. */
void bench_plot_destroy(struct bench_plot *plot);

#endif
