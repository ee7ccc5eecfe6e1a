/* SPDX-License-Identifier: MIT */
/*
 * Goal: the fallback's queue holds as much as it may, also when completions
 * queue their requests anew while the queue is full; a poll carries out a part
 * of it only; a waiting request can be cancelled, and then is not done. G2.
 * Method: as many reads as there is credit, of files that have no size and so
 * are read on until nothing comes, which each short read submits again. Writing
 * past the queue shows under AddressSanitizer and as a wrong result.
 */
#include "runtime/io/request.h"
#include "tests/support/rings.h"

#include <fcntl.h>
#include <unistd.h>

enum {
	ENTRIES = 64,
	CANCELLED = 50,
	LENGTH = 65536,
	POLLS_MAX = 1000,
};

struct state {
	struct pin_ring *ring;
	uint32_t ready_count;
};

static int never_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void complete(void *arg, uint64_t user_data, int32_t result)
{
	struct state *state = arg;

	if (pin_request_complete(state->ring, user_data, result) != NULL) {
		state->ready_count++;
	}
}

int main(void)
{
	struct pin_ring_options options = {
		.entries = ENTRIES,
		.helper_count = 1,
		.is_fallback = true,
	};
	struct pinion_file file = {.memory_align_bytes = 1, .offset_align_bytes = 1};
	static struct pinion_request requests[ENTRIES];
	struct pin_ring ring;
	struct state state = {.ring = &ring};
	uint32_t first_count;
	uint8_t *bytes = malloc((size_t)ENTRIES * LENGTH);

	expect_ready("malloc", bytes != NULL);
	file.fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	expect_ready("/proc/self/status", file.fd >= 0);
	expect_ready("ring",
		pin_ring_init(&ring, &pin_host_linux, &rings_meter, &options, &rings_log) == 0);
	for (size_t i = 0; i < ENTRIES; i++) {
		requests[i].task.run = never_run;
		requests[i].file = &file;
		requests[i].bytes = bytes + i * LENGTH;
		requests[i].length_bytes = LENGTH;
		expect_true("submit", pin_request_submit(&ring, &requests[i]));
	}
	expect_true("no credit is left", rings_entry(&ring) == NULL);
	pin_request_of(&requests[CANCELLED])->ended_by = -ECANCELED;
	pin_request_abandon(&ring, &requests[CANCELLED]);
	first_count = pin_ring_poll(&ring, complete, &state);
	expect_true("a part at a time", first_count > 0 && first_count < ENTRIES / 2);
	for (int i = 0; i < POLLS_MAX && state.ready_count < ENTRIES; i++) {
		pin_ring_poll(&ring, complete, &state);
	}
	expect_number("completed", ENTRIES, state.ready_count);
	for (size_t i = 0; i < ENTRIES; i++) {
		if (i == CANCELLED) {
			expect_number("cancelled", -ECANCELED, requests[i].result);
			expect_number("not read", 0, (long long)requests[i].done_bytes);
			continue;
		}
		expect_true("each read something", requests[i].result > 0);
		expect_number("each the same", 0, memcmp(requests[i].bytes, "Name:", 5));
	}
	expect_number("in flight", 0, ring.in_flight);
	rings_end(&ring);
	free(bytes);
	close(file.fd);
	return expect_status();
}
