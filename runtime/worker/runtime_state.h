/* SPDX-License-Identifier: MIT */
/*
 * What a runtime consists of, for the files that its public calls are in.
 */
#ifndef PIN_WORKER_RUNTIME_STATE_H
#define PIN_WORKER_RUNTIME_STATE_H

#include "runtime/host/host.h"
#include "runtime/host/process.h"
#include "runtime/worker/thread.h"

#include <pinion/runtime.h>

struct pinion_runtime {
	struct pin_shared shared;
	struct pin_lock life;	  /* whoever ends the runtime; rank 1, held while joining */
	bool is_joined;		  /* [lock:life] */
	uint32_t forked;	  /* [const] pin_forked_now() of its process */
	char fallback_cause[192]; /* [const] empty: there are rings */
	int latency_fd;		  /* [const] that asks for `cpu_latency_us`, or -1 */
	struct pin_host own_host; /* [const] with an allocator of the embedder's */
	struct pin_live live;
};

/* A child of the process that created it has none of its workers. */
static inline bool pin_runtime_is_foreign(const struct pinion_runtime *runtime)
{
	return PIN_UNLIKELY(runtime->forked != pin_forked_now());
}

/* The calling worker, if it is one of this runtime's, else NULL. */
static inline struct pin_worker *pin_runtime_own_worker(const struct pinion_runtime *runtime)
{
	struct pin_worker *worker = pin_worker_current();

	return worker != NULL && worker->shared == &runtime->shared ? worker : NULL;
}

/* Likewise, if the thread is one of its workers', in a hook too. */
static inline struct pin_worker *pin_runtime_own_thread(const struct pinion_runtime *runtime)
{
	struct pin_worker *worker = pin_worker_of_thread();

	return worker != NULL && worker->shared == &runtime->shared ? worker : NULL;
}

#endif
