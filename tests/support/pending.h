/* SPDX-License-Identifier: MIT */
/*
 * Reads that a worker of the test's choice has in flight for as long as the
 * test wants: of a pipe, until something is written to it or the runtime is
 * stopped. Meanwhile that worker sleeps in its ring.
 */
#ifndef PIN_TESTS_SUPPORT_PENDING_H
#define PIN_TESTS_SUPPORT_PENDING_H

#include "tests/support/tasks.h"

struct pending_read {
	struct tasks_hold starter;
	struct pinion_runtime *runtime;
	struct pinion_request request;
	uint8_t byte;
};

static inline int pending_ignore(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static inline void pending_start(struct tasks_hold *starter)
{
	struct pending_read *read = PIN_CONTAINER_OF(starter, struct pending_read, starter);

	expect_number("read", 0, pinion_request_submit(read->runtime, &read->request));
}

/* Returns when worker `worker_index` has submitted it. */
static inline void pending_begin(struct pending_read *read, struct pinion_runtime *runtime,
	uint32_t worker_index, struct pinion_file *file)
{
	*read = (struct pending_read){
		.starter.prepare = pending_start,
		.runtime = runtime,
		.request = {.task.run = pending_ignore,
			.file = file,
			.bytes = &read->byte,
			.length_bytes = 1},
	};
	tasks_hold_begin(&read->starter, runtime, worker_index);
	tasks_hold_end(&read->starter);
}

#endif
