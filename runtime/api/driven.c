/* SPDX-License-Identifier: MIT */
/*
 * The public calls of a driven runtime: its descriptor, and the call that runs
 * its tasks on the owner's thread.
 *
 * runtime_create.c makes it, runtime.c ends it; loop/driven.c has its worker.
 *
 * Invariant: a call that is refused has not touched the worker.
 */
#include "runtime/base/check.h"
#include "runtime/loop/loop.h"
#include "runtime/task/entry.h"

#include <errno.h>
#include <pinion/runtime.h>

static int check(const struct pinion_runtime *runtime)
{
	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	return runtime->shared.config.is_driven == 0 ? -EINVAL : 0;
}

int pinion_runtime_fd(const struct pinion_runtime *runtime)
{
	int rc = check(runtime);

	return rc < 0 ? rc : runtime->shared.workers[0].driven.wake_set.fd;
}

/* As deadlines of waits are. */
static uint64_t deadline_of(const struct pin_host *host, int64_t timeout_ns)
{
	if (timeout_ns < 0) {
		return PIN_NO_DEADLINE;
	}
	return timeout_ns == 0 ? 0 : host->now_ns() + (uint64_t)timeout_ns;
}

/* The thread is the program's, and so is its errno. */
int pinion_runtime_poll(struct pinion_runtime *runtime, uint32_t max_tasks, int64_t timeout_ns)
{
	struct pin_worker *worker = &runtime->shared.workers[0];
	int saved_errno = errno;
	int rc = check(runtime);

	if (rc < 0) {
		return rc;
	}
	if (max_tasks == 0 || max_tasks > INT32_MAX) {
		return -EINVAL;
	}
	if (pin_worker_of_thread() != NULL) {
		return -EDEADLK;
	}
	if (!pin_driven_is_owner(worker)) {
		return -EPERM;
	}
	rc = pin_driven_poll(worker, max_tasks, deadline_of(runtime->shared.host, timeout_ns));
	errno = saved_errno;
	return rc;
}
