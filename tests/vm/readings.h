/* SPDX-License-Identifier: MIT */
/*
 * Reads of a range, piece by piece, many in flight at once; what each has
 * brought is for the test to judge. One thread, one set of them.
 */
#ifndef PIN_TESTS_VM_READINGS_H
#define PIN_TESTS_VM_READINGS_H

#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum { READINGS_MAX = 512 };

struct reading {
	struct pinion_request request;
	uint8_t *bytes;
};

/* Whether a request that has ended did so as it should. */
typedef void (*readings_check_fn)(const struct reading *reading);

static struct reading readings[READINGS_MAX];
static uint32_t readings_count; /* at most this number at once */
static struct pin_atomic_u32 readings_ended;

static inline int readings_note_end(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&readings_ended);
	return 0;
}

/* With memory for pieces of that size. */
static inline void readings_init(uint32_t count, size_t align_bytes, size_t piece_bytes_max)
{
	readings_count = count;
	for (uint32_t i = 0; i < count; i++) {
		readings[i].bytes = aligned_alloc(align_bytes, piece_bytes_max);
		expect_ready("memory", readings[i].bytes != NULL);
	}
}

/* The next that begin are awaited from here on. */
static inline void readings_begin(void)
{
	pin_store_relaxed_u32(&readings_ended, 0);
}

/* It is laid out, and left to the caller to change and submit. */
static inline struct pinion_request *readings_prepare(
	struct reading *reading, struct pinion_file *file, uint64_t offset, uint64_t length)
{
	reading->request = (struct pinion_request){
		.task.run = readings_note_end,
		.file = file,
		.bytes = reading->bytes,
		.offset_bytes = offset,
		.length_bytes = length,
	};
	return &reading->request;
}

static inline void readings_submit(struct pinion_runtime *runtime, struct reading *reading)
{
	expect_ready("submit", pinion_request_submit(runtime, &reading->request) == 0);
}

static inline void readings_await(uint32_t count)
{
	tasks_await(&readings_ended, count);
}

/* All of the range, `piece_bytes` at a time. */
static inline void readings_read_range(struct pinion_runtime *runtime, struct pinion_file *file,
	uint64_t offset, uint64_t end, uint64_t piece_bytes, readings_check_fn check)
{
	while (offset < end) {
		uint32_t count = 0;

		readings_begin();
		for (; count < readings_count && offset < end; count++) {
			readings_prepare(&readings[count], file, offset, piece_bytes);
			memset(readings[count].bytes, 0xa5, piece_bytes);
			readings_submit(runtime, &readings[count]);
			offset += piece_bytes;
		}
		readings_await(count);
		for (uint32_t i = 0; i < count; i++) {
			check(&readings[i]);
		}
	}
}

#endif
