/* SPDX-License-Identifier: MIT */
/*
 * A thread to wake, and a check that it sleeps: a worker that has run a task,
 * or a bare thread that waits in a futex.
 */
#ifndef PINION_TOOLS_BENCH_SLEEPER_H
#define PINION_TOOLS_BENCH_SLEEPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sleeper {
	pid_t thread_id;
	int status_fd; /* of its /proc status, -1: not open yet */
	uint64_t woken_ns;
	uint32_t answers; /* raised at each wake, after `woken_ns` was set */
};

/* Sleeps in a futex until it is called, and answers. Zero-initialise. */
struct bare_sleeper {
	struct sleeper sleeper;
	pthread_t thread;
	bool has_thread;
	uint32_t calls; /* the futex */
	uint32_t is_ending;
};

void sleeper_init(struct sleeper *sleeper);
void sleeper_fini(struct sleeper *sleeper);

/* The first instruction of what it was woken for, on its own thread. */
void sleeper_answer(struct sleeper *sleeper);

/*
 * Until the kernel says that it sleeps, and a fixed short while after that.
 * After its answer it sleeps only at the place where the bench wakes it.
 * Returns 0, -ECANCELED or an error that is reported.
 */
int sleeper_wait_asleep(struct sleeper *sleeper);

/* Returns when it has answered once; 0 or an error that is reported. */
int bare_sleeper_start(struct bare_sleeper *bare);
void bare_sleeper_call(struct bare_sleeper *bare);
void bare_sleeper_stop(struct bare_sleeper *bare);

#endif
