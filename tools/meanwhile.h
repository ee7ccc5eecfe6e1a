/* SPDX-License-Identifier: MIT */
/*
 * One thing done on a thread of its own while the caller does another: for a
 * start that consists of several which need nothing of each other.
 */
#ifndef PINION_TOOLS_MEANWHILE_H
#define PINION_TOOLS_MEANWHILE_H

#include <pthread.h>
#include <stdbool.h>

struct meanwhile {
	int (*run)(void *arg);
	void *arg;
	pthread_t thread;
	bool has_thread;
	int result;
};

/* Its thread blocks the signals that the caller blocks. */
void meanwhile_begin(struct meanwhile *meanwhile, int (*run)(void *arg), void *arg);

/* What it returned. Where no thread was to be had it is run now. */
int meanwhile_end(struct meanwhile *meanwhile);

#endif
