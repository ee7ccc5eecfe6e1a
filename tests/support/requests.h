/* SPDX-License-Identifier: MIT */
/*
 * Requests submitted from the test's own thread, which waits for their end.
 */
#ifndef PIN_TESTS_SUPPORT_REQUESTS_H
#define PIN_TESTS_SUPPORT_REQUESTS_H

#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

/* Counts entries of its task; a second entry is a failure at its end. */
struct requests_one {
	struct pinion_request request;
	struct pin_atomic_u32 entered;
};

static inline int requests_entered(struct pinion_task *task)
{
	struct requests_one *one = PIN_CONTAINER_OF(task, struct requests_one, request.task);

	tasks_signal(&one->entered);
	return 0;
}

static inline struct pinion_request *requests_begin(struct requests_one *one, uint16_t op)
{
	*one = (struct requests_one){.request = {.task.run = requests_entered, .op = op}};
	return &one->request;
}

static inline struct pinion_request *requests_begin_transfer(struct requests_one *one, uint16_t op,
	struct pinion_file *file, uint8_t *bytes, uint64_t offset_bytes, uint64_t length_bytes)
{
	struct pinion_request *request = requests_begin(one, op);

	request->file = file;
	request->bytes = bytes;
	request->offset_bytes = offset_bytes;
	request->length_bytes = length_bytes;
	return request;
}

static inline int64_t requests_await(struct requests_one *one)
{
	tasks_await(&one->entered, 1);
	return one->request.result;
}

/* Submits it and waits; its result, or what the submission returned. */
static inline int64_t requests_do(struct pinion_runtime *runtime, struct requests_one *one)
{
	int rc = pinion_request_submit(runtime, &one->request);

	return rc < 0 ? rc : requests_await(one);
}

/* A read or a write, waited for; what it has done is what it says. */
static inline int64_t requests_transfer(struct pinion_runtime *runtime, uint16_t op,
	struct pinion_file *file, uint8_t *bytes, uint64_t offset_bytes, uint64_t length_bytes)
{
	struct requests_one one;
	int64_t result;

	requests_begin_transfer(&one, op, file, bytes, offset_bytes, length_bytes);
	result = requests_do(runtime, &one);
	if (result > 0) {
		expect_number("done_bytes", result, (long long)one.request.done_bytes);
	}
	return result;
}

#endif
