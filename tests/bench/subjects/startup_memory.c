/* SPDX-License-Identifier: MIT */
/*
 * The samples, each a few times.
 */
#include "tests/bench/subjects/startup_memory.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <liburing.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((uint64_t)1 << 20)
#define REGISTERED_BYTES (64 * MIB)
#define HUGE_BYTES (2 * MIB)
#define ARENA_BYTES (1024 * MIB)

enum {
	TIMES = 5,
	/* The same amount is left to other programs. */
	SPARE_SHARE = 2,
};

/* A line "NAME: N kB" of such a file in /proc, in bytes; 0: there is none. */
static uint64_t read_kib(const char *path, const char *name)
{
	FILE *stream = fopen(path, "re");
	size_t length = strlen(name);
	uint64_t kib = 0;
	char line[256];

	if (stream == NULL) {
		return 0;
	}
	while (kib == 0 && fgets(line, sizeof(line), stream) != NULL) {
		if (strncmp(line, name, length) == 0 && line[length] == ':') {
			kib = strtoull(line + length + 1, NULL, 10);
		}
	}
	fclose(stream);
	return kib << 10;
}

static double median_of(struct samples *samples)
{
	double median;

	samples_sort(samples);
	median = samples_quantile(samples, 0.5);
	samples_free(samples);
	return median;
}

/* ---- registering ---- */

static int register_once(struct io_uring *uring, void *memory, struct samples *out_figures)
{
	struct iovec range = {.iov_base = memory, .iov_len = REGISTERED_BYTES};
	uint64_t start_ns = bench_now_ns();
	int rc = io_uring_register_buffers(uring, &range, 1);

	if (rc == 0) {
		rc = samples_add(out_figures, (double)(bench_now_ns() - start_ns) / 1e6);
		io_uring_unregister_buffers(uring);
	}
	return rc;
}

/* -ENOTSUP: the kernel gave small pages. */
static int register_memory(struct io_uring *uring, struct samples *out_figures)
{
	size_t bytes = REGISTERED_BYTES + HUGE_BYTES;
	uint64_t huge_before = read_kib("/proc/self/smaps_rollup", "AnonHugePages");
	uint8_t *mapping =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *memory;
	int rc = 0;

	if (mapping == MAP_FAILED) {
		return -errno;
	}
	memory = mapping + (HUGE_BYTES - (uintptr_t)mapping % HUGE_BYTES) % HUGE_BYTES;
	madvise(memory, REGISTERED_BYTES, MADV_HUGEPAGE);
	for (size_t at = 0; at < REGISTERED_BYTES; at += 4096) {
		memory[at] = 1;
	}
	if (read_kib("/proc/self/smaps_rollup", "AnonHugePages") < huge_before + REGISTERED_BYTES) {
		rc = -ENOTSUP;
	}
	for (int i = 0; rc == 0 && i < TIMES; i++) {
		rc = register_once(uring, memory, out_figures);
	}
	munmap(mapping, bytes);
	return rc;
}

static int measure_registering(struct samples *out_figures)
{
	struct io_uring uring;
	int rc = io_uring_queue_init(1, &uring, 0);

	if (rc == 0) {
		rc = register_memory(&uring, out_figures);
		io_uring_queue_exit(&uring);
	}
	return rc;
}

/* ---- at rest ---- */

static int rest_once(
	const struct pinion_config *config, struct samples *out_create, struct samples *out_rest)
{
	struct pinion_runtime *runtime;
	uint64_t start_ns = bench_now_ns();
	int rc = pinion_runtime_create(config, &runtime);
	uint64_t elapsed_ns = bench_now_ns() - start_ns;

	if (rc != 0) {
		return rc;
	}
	rc = samples_add(out_create, (double)elapsed_ns / 1e6);
	if (rc == 0) {
		rc = samples_add(out_rest, (double)(read_kib("/proc/self/status", "VmRSS") >> 10));
	}
	pinion_runtime_destroy(runtime);
	return rc;
}

static uint32_t measure_rest(
	const struct pinion_config *config, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct samples create = {0};
	struct samples rest = {0};
	int rc = 0;

	for (int i = 0; rc == 0 && i < TIMES; i++) {
		rc = rest_once(config, &create, &rest);
	}
	if (rc != 0) {
		report_line("create_ms is left out: %s", report_reason(rc));
		samples_free(&create);
		samples_free(&rest);
		return 0;
	}
	further[0] = (struct bench_further){"create_ms", median_of(&create)};
	further[1] = (struct bench_further){"rest_kib", median_of(&rest)};
	return 2;
}

/* ---- a gigabyte ---- */

static int start_once(const struct pinion_config *config, struct samples *out_figures)
{
	struct pinion_runtime_info facts;
	struct pinion_runtime *runtime;
	uint64_t start_ns = bench_now_ns();
	uint64_t elapsed_ns;
	int rc = pinion_runtime_create(config, &runtime);

	if (rc != 0) {
		return rc;
	}
	elapsed_ns = bench_now_ns() - start_ns;
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	pinion_runtime_destroy(runtime);
	if (facts.arena_bytes < ARENA_BYTES) {
		return -ENOMEM;
	}
	return samples_add(out_figures, (double)elapsed_ns / 1e6);
}

static int measure_start(
	const struct pinion_config *config, uint32_t worker_count, struct samples *out_figures)
{
	struct pinion_config large = *config;
	int rc = 0;

	if (read_kib("/proc/meminfo", "MemAvailable") < SPARE_SHARE * ARENA_BYTES) {
		return -ENOMEM;
	}
	large.pool_bytes = (ARENA_BYTES / worker_count + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	for (int i = 0; rc == 0 && i < TIMES; i++) {
		rc = start_once(&large, out_figures);
	}
	return rc;
}

uint32_t startup_memory_further(const struct pinion_config *config, uint32_t worker_count,
	struct bench_further further[BENCH_FURTHER_MAX])
{
	struct samples registering = {0};
	struct samples starting = {0};
	uint32_t count = measure_rest(config, further);
	int rc = measure_registering(&registering);

	if (rc == 0) {
		further[count++] =
			(struct bench_further){"register_64m_ms", median_of(&registering)};
	} else {
		report_line("register_64m_ms is left out: %s", report_reason(rc));
		samples_free(&registering);
	}
	rc = measure_start(config, worker_count, &starting);
	if (rc == 0) {
		further[count++] = (struct bench_further){"start_1g_ms", median_of(&starting)};
	} else {
		report_line("start_1g_ms is left out: %s", report_reason(rc));
		samples_free(&starting);
	}
	return count;
}
