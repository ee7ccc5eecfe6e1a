/* SPDX-License-Identifier: MIT */
/*
 * What the subjects about tasks share. The main thread waits on a word, without
 * using CPU, until the workers have done its turn.
 */
#ifndef PINION_TOOLS_BENCH_TASKS_H
#define PINION_TOOLS_BENCH_TASKS_H

#include "tools/bench/subject.h"

#include <pinion/task.h>
#include <stdint.h>

/* What threads that write do not share. */
#define BENCH_LINE_BYTES 128
#define BENCH_LINE_ALIGNED __attribute__((aligned(BENCH_LINE_BYTES)))

/*
 * Words are futexes that only grow. A reader that sees the raise sees all
 * writes before it.
 */
uint32_t bench_word_read(const uint32_t *word);

/* Adds one and wakes one thread that waits for it. */
void bench_word_raise(uint32_t *word);

/* Sleeps until the word is no longer `value`. -ECANCELED: a signal came. */
int bench_word_wait(const uint32_t *word, uint32_t value);

/* Zeroed memory on cache lines of its own, for free(); NULL is reported. */
void *bench_allocate(size_t size);

/*
 * Starts `worker_count` workers with as little memory as possible, since tasks
 * need no buffers. Each of these reports what it returns, 0 or a negative
 * errno.
 */
int bench_start_workers(const struct bench *bench, uint32_t worker_count,
	struct bench_setting *out_setting, struct pinion_runtime **out_runtime);
int bench_spawn_task(struct pinion_runtime *runtime, struct pinion_task *task);

/*
 * Spawns `turn` and sleeps until it has raised the word, a signal or not, as
 * it writes what its subject reads. A turn sees signals itself, or is short.
 */
int bench_run_turn(struct pinion_runtime *runtime, struct pinion_task *turn, const uint32_t *done);

/* Fewer CPUs than that: says that the subject is skipped, and returns that. */
int bench_require_cpus(const struct bench_subject *subject, uint32_t count);

/* The same for cores. */
int bench_require_cores(const struct bench_subject *subject, uint32_t count);

/*
 * The same where idle CPUs cannot be asked to stay awake: for a subject that
 * has started with `cpu_latency_us` of 0, from which the floor benefits, too.
 */
int bench_require_awake(const struct bench_subject *subject, const struct bench_setting *setting);

/* Appends ", …" to the text of a setting. */
void bench_setting_add(struct bench_setting *setting, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A moment for the other hardware thread, or the thread that is waited for. */
void bench_relax(void);

#endif
