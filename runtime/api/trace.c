/* SPDX-License-Identifier: MIT */
/*
 * Opens the trace of a runtime of this process, for its embedder.
 *
 * Any thread calls it; observe/trace_reader.c has the other calls of trace.h.
 */
#include "runtime/api/internal.h"
#include "runtime/observe/trace_reader.h"

#include <errno.h>
#include <unistd.h>

int pinion_trace_open(const struct pinion_runtime *runtime, struct pinion_trace **out_trace)
{
	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (runtime->shared.trace == NULL) {
		return -ENOTSUP;
	}
	return pin_trace_open_words(runtime->shared.trace->words, (int)getpid(), out_trace);
}
