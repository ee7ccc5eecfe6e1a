/* SPDX-License-Identifier: MIT */
/*
 * A thread that calls one function.
 */
#include "tools/meanwhile.h"

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

int meanwhile_end(struct meanwhile *meanwhile)
{
	if (meanwhile->has_thread) {
		pthread_join(meanwhile->thread, NULL);
	} else {
		run_here(meanwhile);
	}
	return meanwhile->result;
}
