/* SPDX-License-Identifier: MIT */
/*
 * The lines that say what a bench measured.
 */
#ifndef PINION_TOOLS_BENCH_LINES_H
#define PINION_TOOLS_BENCH_LINES_H

#include "tools/bench/subject.h"
#include "tools/output_text.h"

/* A line of `bench list`. */
void bench_lines_subject(struct output_text *text, const struct bench_subject *subject);

/* A few lines for people. */
void bench_lines_text(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results);

/* One line, an object; fields may be added to it and none may change. */
void bench_lines_json(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results);

/* A line of CSV; the first line of all names its columns. */
void bench_lines_csv_head(struct output_text *text);
void bench_lines_csv(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results);

#endif
