/* SPDX-License-Identifier: MIT */
/*
 * Goal: an embedder's memory is used as it is and comes back once, also when
 * the creation fails half-way; memory that is not aligned, or none, is refused
 * with a line that says so; what the callback returns is returned. G6, BP-49.
 * Method: a callback that cuts arenas from one piece of memory and counts, and
 * misbehaves for one worker.
 */
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"

#include <errno.h>
#include <sys/mman.h>

enum {
	WORKERS = 3,
	PIECE_BYTES = 4 << 20,
	/* Large buffers, small ones, the pools, a page for headroom. */
	NEEDED_BYTES = (4 * 64 + 8 * 4 + 8 + 4) << 10,
};

struct giver {
	uint8_t *memory;
	uint32_t odd_worker; /* gets this … */
	int result;
	size_t offset;
	bool gives_nothing;
	uint32_t is_out[WORKERS]; /* one writer each */
	uint32_t given[WORKERS];
	size_t bytes[WORKERS];
};

static int give(
	void *arg, uint32_t worker_index, uint32_t node_index, size_t bytes, void **out_memory)
{
	struct giver *giver = arg;
	uint8_t *memory = giver->memory + (size_t)worker_index * PIECE_BYTES;

	(void)node_index;
	expect_true("bytes", bytes % 4096 == 0 && bytes < PIECE_BYTES);
	if (worker_index == giver->odd_worker) {
		if (giver->result != 0) {
			return giver->result;
		}
		memory = giver->gives_nothing ? NULL : memory + giver->offset;
	}
	*out_memory = memory;
	giver->bytes[worker_index] = bytes;
	giver->given[worker_index]++;
	giver->is_out[worker_index] = memory != NULL;
	return 0;
}

static void take(void *arg, uint32_t worker_index, void *memory, size_t bytes)
{
	struct giver *giver = arg;

	expect_true("the given memory", memory >= (void *)giver->memory);
	expect_number("bytes", (long long)giver->bytes[worker_index], (long long)bytes);
	expect_number("once", 1, giver->is_out[worker_index]);
	giver->is_out[worker_index] = 0;
}

static int create(struct giver *giver, bool has_unmap, struct pinion_runtime **out_runtime)
{
	struct pinion_config config;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	config.pool_bytes = 8192;
	runtimes_tuning.arena_map = give;
	runtimes_tuning.arena_unmap = has_unmap ? take : NULL;
	runtimes_tuning.arena_arg = giver;
	memset(giver->is_out, 0, sizeof(giver->is_out));
	memset(giver->given, 0, sizeof(giver->given));
	return pinion_runtime_create(&config, out_runtime);
}

static void expect_all_back(const struct giver *giver)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		expect_number("out", 0, giver->is_out[i]);
		expect_true("given once at most", giver->given[i] <= 1);
	}
}

static void check_use(struct giver *giver, bool has_unmap)
{
	struct pinion_runtime *runtime;

	giver->odd_worker = UINT32_MAX;
	if (!expect_number("create", 0, create(giver, has_unmap, &runtime))) {
		return;
	}
	for (uint32_t i = 0; i < WORKERS; i++) {
		const struct pin_arena *arena = &runtime->shared.workers[i].arena;

		expect_true("the memory given",
			arena->memory == giver->memory + (size_t)i * PIECE_BYTES);
		expect_number("no more than needed", NEEDED_BYTES, (long long)arena->bytes);
		expect_true("buffers are in it",
			runtime->shared.workers[i].buffers.regions[0].memory == arena->memory);
		for (size_t at = arena->bytes; at < PIECE_BYTES; at += 4096) {
			expect_number("beyond it", 0x5a, arena->memory[at]);
		}
	}
	/* Of rings there may be something, and of what all have locked. */
	expect_true("nothing to complain of",
		strstr(runtimes_log, "arena_map") == NULL &&
			strstr(runtimes_log, "buffers are on") == NULL);
	pinion_runtime_destroy(runtime);
	if (has_unmap) {
		expect_all_back(giver);
	} else {
		for (uint32_t i = 0; i < WORKERS; i++) {
			expect_number("left", 1, giver->is_out[i]);
			/* Would end the test if it were gone. */
			giver->memory[(size_t)i * PIECE_BYTES] = 1;
		}
	}
}

static void check_refused(struct giver *giver, const char *what, int expected, const char *line)
{
	struct pinion_runtime *runtime = NULL;

	for (uint32_t i = 0; i < WORKERS; i++) {
		giver->odd_worker = i;
		expect_number(what, expected, create(giver, true, &runtime));
		expect_true("nothing is written", runtime == NULL);
		expect_all_back(giver);
		if (strstr(runtimes_log, line) == NULL) {
			printf("%s: expected a line with \"%s\", got \"%s\"\n", what, line,
				runtimes_log);
			expect_failure_count++;
		}
	}
}

int main(void)
{
	struct giver giver = {0};
	struct pinion_runtime *runtime;
	struct pinion_config config;

	giver.memory = mmap(NULL, WORKERS * PIECE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect_ready("mmap", giver.memory != MAP_FAILED);
	memset(giver.memory, 0x5a, WORKERS * PIECE_BYTES);
	check_use(&giver, true);
	check_use(&giver, false);

	giver.offset = 512;
	check_refused(&giver, "aligned to 512", -EINVAL, "not aligned to 4096");
	giver.offset = 4096 + 1;
	check_refused(&giver, "aligned to 1", -EINVAL, "not aligned to 4096");
	giver.offset = 0;
	giver.gives_nothing = true;
	check_refused(&giver, "none", -EINVAL, "not aligned to 4096");
	giver.gives_nothing = false;
	giver.result = -ENXIO;
	check_refused(&giver, "an error", -ENXIO, "arena_map gives worker");
	giver.result = 1;
	check_refused(&giver, "no error, no success", -EINVAL, "arena_map gives worker");

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.arena_unmap = take;
	expect_number("unmap alone", -EINVAL, pinion_runtime_create(&config, &runtime));
	expect_true("is named", strstr(runtimes_log, "arena_unmap") != NULL);
	munmap(giver.memory, WORKERS * PIECE_BYTES);
	return expect_status();
}
