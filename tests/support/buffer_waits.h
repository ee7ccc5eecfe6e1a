/* SPDX-License-Identifier: MIT */
/*
 * A task that waits for a small buffer of its worker, and gives it back when it
 * has got it.
 */
#ifndef PIN_TESTS_SUPPORT_BUFFER_WAITS_H
#define PIN_TESTS_SUPPORT_BUFFER_WAITS_H

#include "runtime/worker/worker.h"
#include "tests/support/expect.h"

#include <errno.h>

static struct pinion_runtime *buffer_waits_runtime;
static struct pin_buffer_waiter buffer_waits_waiter;

static inline int buffer_waits_release(struct pinion_task *task)
{
	(void)task;
	pinion_buffer_release(buffer_waits_runtime, &buffer_waits_waiter.buffer);
	return 0;
}

/* In a task of the worker, which has no small buffer left. */
static inline struct pin_buffer_waiter *buffer_waits_begin(struct pinion_runtime *runtime)
{
	static struct pinion_task task;

	task = (struct pinion_task){.run = buffer_waits_release};
	buffer_waits_runtime = runtime;
	buffer_waits_waiter = (struct pin_buffer_waiter){.task = &task};
	expect_number("waits", -EAGAIN,
		pin_worker_buffer_await(pin_worker_current(), 1, &buffer_waits_waiter));
	return &buffer_waits_waiter;
}

#endif
