/* SPDX-License-Identifier: MIT */
/*
 * A thread that calls one function.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/meanwhile.h"

#include <time.h>

static void *run_here(void *arg)
{
	struct meanwhile *meanwhile = arg;

	meanwhile->result = meanwhile->run(meanwhile->arg);
	return NULL;
}

void meanwhile_begin(struct meanwhile *meanwhile, int (*run)(void *arg), void *arg)
{
	*meanwhile = (struct meanwhile){.run = run, .arg = arg};
	meanwhile->has_thread = pthread_create(&meanwhile->thread, NULL, run_here, meanwhile) == 0;
}

bool meanwhile_await(struct meanwhile *meanwhile, uint64_t limit_ns)
{
	struct timespec until;

	if (!meanwhile->has_thread) {
		run_here(meanwhile);
		meanwhile->has_returned = true;
		return true;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(limit_ns / 1000000000);
	until.tv_nsec += (long)(limit_ns % 1000000000);
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	meanwhile->has_returned = pthread_timedjoin_np(meanwhile->thread, NULL, &until) == 0;
	return meanwhile->has_returned;
}

int meanwhile_end(struct meanwhile *meanwhile)
{
	if (meanwhile->has_returned) {
		return meanwhile->result;
	}
	if (meanwhile->has_thread) {
		pthread_join(meanwhile->thread, NULL);
	} else {
		run_here(meanwhile);
	}
	return meanwhile->result;
}
