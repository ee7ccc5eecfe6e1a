/* SPDX-License-Identifier: MIT */
/*
 * What the subjects about tasks share. Each is about one worker, so their
 * runtimes have one; the main thread waits on a word, without using CPU, until
 * the worker has done its turn.
 */
#ifndef PINION_TOOLS_BENCH_TASKS_H
#define PINION_TOOLS_BENCH_TASKS_H

#include "tools/bench/subject.h"

#include <pinion/task.h>
#include <stdint.h>

/* Words are futexes that only grow. What was written before a raise is seen. */
uint32_t bench_word_read(const uint32_t *word);

/* Adds one and wakes one thread that waits for it. */
void bench_word_raise(uint32_t *word);

/* Sleeps until the word is no longer `value`. -ECANCELED: a signal came. */
int bench_word_wait(const uint32_t *word, uint32_t value);

/* Both report what they return, 0 or a negative errno. */
int bench_start_worker(const struct bench *bench, struct bench_setting *out_setting,
	struct pinion_runtime **out_runtime);
int bench_spawn_task(struct pinion_runtime *runtime, struct pinion_task *task);

#endif
