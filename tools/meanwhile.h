/* SPDX-License-Identifier: MIT */
/*
 * One thing done on a thread of its own while the caller does another: for a
 * start that consists of several which need nothing of each other.
 */
#ifndef PINION_TOOLS_MEANWHILE_H
#define PINION_TOOLS_MEANWHILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct meanwhile {
	int (*run)(void *arg);
	void *arg;
	pthread_t thread;
	bool has_thread;
	bool has_returned;
	int result;
};

/* Its thread blocks the signals that the caller blocks. */
void meanwhile_begin(struct meanwhile *meanwhile, int (*run)(void *arg), void *arg);

/*
 * Waits for at most so long, and true when it has returned; then it is to be
 * ended as well. Where no thread was to be had it is run now.
 */
bool meanwhile_await(struct meanwhile *meanwhile, uint64_t limit_ns);

/* What it returned. Where no thread was to be had it is run now. */
int meanwhile_end(struct meanwhile *meanwhile);

#endif
