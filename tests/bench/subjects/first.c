/* SPDX-License-Identifier: MIT */
/*
 * The subjects `read_first`, `sum_first` and `read_first_cached`: how much of
 * large files a runtime has delivered 50 ms after its creation began.
 *
 * Each turn creates a runtime and a scan, and destroys both. The floor does the
 * same by as many threads: it starts them, gives each a buffer, and reads by
 * pread(2). Files are read again if they end sooner.
 */
#include "tools/bench/files.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PART_NS ((uint64_t)50 * 1000 * 1000)
#define MIB ((double)(1 << 20))

enum {
	/* The first 50 ms, and those after them. */
	PARTS = 2,
	WARM_BYTES = 1 << 20,
};

struct first_plan {
	uint32_t order;
	bool is_hashed;
	bool is_cached;
};

struct first_counts {
	uint64_t bytes[PARTS];
} BENCH_LINE_ALIGNED;

struct first {
	const struct first_plan *plan;
	struct bench *bench;
	const struct fileset *set; /* opened for O_DIRECT */
	struct fileset cached;	   /* the same files, opened without it */
	struct pinion_runtime *runtime;
	struct first_counts *counts;
	uint32_t worker_count;
	uint64_t start_ns;
	/* Only through __atomic builtins. */
	uint32_t has_failed;
	uint32_t has_begun;
	struct samples next; /* MiB of the second part, ours */
};

static const struct digest_algorithm *algorithm(void)
{
	return &digest_algorithms[DIGEST_XXH3_64];
}

/*
 * False: both parts are over. The first bytes count for the first part even if
 * they come late, so that a figure is never 0.
 */
static bool count(struct first *first, uint32_t worker_index, uint64_t bytes)
{
	uint64_t part = (bench_now_ns() - first->start_ns) / PART_NS;

	if (part > 0 && __atomic_exchange_n(&first->has_begun, 1, __ATOMIC_RELAXED) == 0) {
		part = 0;
	}
	if (part == 0) {
		__atomic_store_n(&first->has_begun, 1, __ATOMIC_RELAXED);
	}
	if (part < PARTS) {
		first->counts[worker_index].bytes[part] += bytes;
	}
	return part < PARTS;
}

static double sum_mib(const struct first *first, uint32_t part)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < first->worker_count; i++) {
		bytes += first->counts[i].bytes[part];
	}
	return (double)bytes / MIB;
}

/* ---- ours ---- */

static int first_open(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	return algorithm()->init(file->user);
}

static int first_window(
	void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct first *first = arg;

	if (first->plan->is_hashed) {
		int rc = algorithm()->update(file->user, window->bytes, window->length_bytes);

		if (rc != 0) {
			return rc;
		}
	}
	if (!count(first, (uint32_t)pinion_worker_index(first->runtime), window->length_bytes)) {
		return PINION_SCAN_ENOUGH;
	}
	return 0;
}

static void first_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct first *first = arg;

	if (outcome == PINION_SCAN_FAILED) {
		report_outcome(file, outcome, error);
		__atomic_store_n(&first->has_failed, 1, __ATOMIC_RELAXED);
	}
}

static bool is_over(const struct first *first)
{
	return bench_now_ns() - first->start_ns >= PARTS * PART_NS || signals_interrupted() ||
		__atomic_load_n(&first->has_failed, __ATOMIC_RELAXED) != 0;
}

static int scan_files(struct first *first)
{
	const struct pinion_scan_ops ops = {
		.open = first->plan->is_hashed ? first_open : NULL,
		.window = first_window,
		.report = first_report,
	};
	struct pinion_scan_config config;
	struct pinion_scan *scan;
	int rc;

	pinion_scan_config_init(&config);
	config.order = first->plan->order;
	config.direct = PINION_DIRECT_ALWAYS;
	if (first->plan->is_cached) {
		config.direct = PINION_DIRECT_NEVER;
	}
	config.files_in_flight = first->set->count;
	config.file_user_bytes = sizeof(struct digest_state);
	rc = pinion_scan_create(first->runtime, &config, &ops, first, &scan);
	if (rc != 0) {
		return rc;
	}
	for (uint32_t i = 0; rc == 0 && (i == 0 || !is_over(first)); i++) {
		rc = pinion_scan_add_file(scan, first->set->files[i % first->set->count].path);
	}
	pinion_scan_destroy(scan);
	return rc;
}

static int run_ours(struct first *first)
{
	int rc = pinion_runtime_create(&first->bench->options->runtime, &first->runtime);

	if (rc == 0) {
		rc = scan_files(first);
		pinion_runtime_destroy(first->runtime);
		first->runtime = NULL;
	}
	if (rc != 0) {
		report_line("cannot scan: %s", report_reason(rc));
	} else if (first->has_failed != 0) {
		rc = -EIO;
	}
	return rc;
}

/* ---- the floor ---- */

static int begin_part(void *arg, uint32_t thread_index)
{
	(void)arg;
	(void)thread_index;
	return 0;
}

static int add_bytes(void *arg, uint32_t thread_index, const uint8_t *bytes, size_t length,
	uint64_t offset_bytes)
{
	(void)bytes;
	(void)offset_bytes;
	return count(arg, thread_index, length) ? 0 : -ETIME;
}

static void end_part(void *arg, uint32_t thread_index)
{
	(void)arg;
	(void)thread_index;
}

static int run_floor(struct first *first)
{
	const struct rawread_touch touch = {
		.arg = first, .begin = begin_part, .bytes = add_bytes, .end = end_part};
	struct rawread *rawread;
	uint64_t elapsed_ns;
	int rc = rawread_create(first->plan->is_cached ? &first->cached : first->set,
		first->worker_count, &rawread);

	if (rc != 0) {
		report_line("cannot start the raw loop: %s", report_reason(rc));
		return rc;
	}
	while (rc == 0) {
		rc = rawread_run(rawread, &touch, &elapsed_ns);
	}
	rawread_destroy(rawread);
	if (rc == -ETIME) {
		return 0;
	}
	if (rc != -ECANCELED) {
		report_line("the raw loop failed: %s", report_reason(rc));
	}
	return rc;
}

static int first_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct first *first = state;
	int rc;

	memset(first->counts, 0, first->worker_count * sizeof(*first->counts));
	first->has_begun = 0;
	first->start_ns = bench_now_ns();
	rc = side == BENCH_OURS ? run_ours(first) : run_floor(first);
	if (rc == 0 && signals_interrupted()) {
		rc = -ECANCELED;
	}
	if (rc == 0) {
		rc = samples_add(out_figures, sum_mib(first, 0));
	}
	if (rc == 0 && side == BENCH_OURS) {
		rc = samples_add(&first->next, sum_mib(first, 1));
	}
	return rc;
}

static uint32_t first_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct first *first = state;

	samples_sort(&first->next);
	further[0] = (struct bench_further){"next_mib", samples_quantile(&first->next, 0.5)};
	return 1;
}

/* ---- start and stop ---- */

static void first_stop(void *state)
{
	struct first *first = state;

	for (uint32_t i = 0; i < first->cached.count; i++) {
		close(first->cached.files[i].fd);
	}
	free(first->cached.files);
	samples_free(&first->next);
	free(first->counts);
	free(first);
}

static int warm(int fd)
{
	uint8_t *bytes = malloc(WARM_BYTES);
	ssize_t length = bytes == NULL ? -1 : 1;

	while (length > 0 && !signals_interrupted()) {
		length = read(fd, bytes, WARM_BYTES);
	}
	free(bytes);
	return length < 0 ? -EIO : 0;
}

/* Reads them into the page cache. */
static int open_cached(struct first *first)
{
	const struct fileset *set = first->set;
	int rc = 0;

	first->cached.files = bench_allocate(set->count * sizeof(*first->cached.files));
	if (first->cached.files == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; rc == 0 && i < set->count; i++) {
		struct fileset_file *file = &first->cached.files[i];

		*file = set->files[i];
		file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
		if (file->fd < 0) {
			report_path(file->path, report_reason(-errno));
			return -EIO;
		}
		first->cached.count++;
		first->cached.total_bytes += file->size_bytes;
		rc = warm(file->fd);
		if (rc != 0) {
			report_path(file->path, report_reason(rc));
		}
	}
	return rc;
}

/* A runtime like the measured ones shows the number of workers beforehand. */
static int settle(struct first *first, struct bench_setting *out_setting)
{
	struct pinion_runtime *runtime;
	int rc = pinion_runtime_create(&first->bench->options->runtime, &runtime);

	if (rc != 0) {
		report_line("cannot start: %s", report_reason(rc));
		return rc;
	}
	pinion_runtime_get_info(runtime, &out_setting->facts, sizeof(out_setting->facts));
	pinion_runtime_destroy(runtime);
	first->worker_count = out_setting->facts.worker_count;
	first->counts = bench_allocate(first->worker_count * sizeof(*first->counts));
	return first->counts == NULL ? -ENOMEM : 0;
}

static int first_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct first *first = bench_allocate(sizeof(*first));
	int rc;

	if (first == NULL) {
		return -ENOMEM;
	}
	first->plan = bench->subject->variant;
	first->bench = bench;
	rc = settle(first, out_setting);
	if (rc == 0) {
		rc = bench_provide_files(bench, first->worker_count);
	}
	if (rc == 0) {
		first->set = bench->files;
		rc = first->plan->is_cached ? open_cached(first) : 0;
	}
	if (rc == 0 && first->plan->is_hashed && !digest_is_built(algorithm())) {
		report_line("%s: skipped, XXH3 is not built in", bench->subject->name);
		rc = BENCH_SKIPPED;
	}
	if (rc != 0) {
		first_stop(first);
		return rc;
	}
	bench_setting_files(out_setting, bench->files);
	*out_state = first;
	return 0;
}

#define FIRST_SHARED \
	.unit = "MiB", .is_rate = true, .axes = BENCH_BY(BENCH_WORKERS), .start = first_start, \
	.run = first_run, .stop = first_stop, .further = first_further

const struct bench_subject bench_read_first = {
	.name = "read_first",
	.brief = "read past the page cache 50 ms after a runtime's creation began",
	.sides = {[BENCH_OURS] = "pinion_scan", [BENCH_FLOOR] = "pread-direct"},
	.variant = &(const struct first_plan){.order = PINION_SCAN_PARALLEL},
	FIRST_SHARED,
};

const struct bench_subject bench_sum_first = {
	.name = "sum_first",
	.brief = "hashed with XXH3 50 ms after a runtime's creation began",
	.sides = {[BENCH_OURS] = "pinion_scan+xxh3-64", [BENCH_FLOOR] = "pread-direct"},
	.variant = &(const struct first_plan){.order = PINION_SCAN_IN_ORDER, .is_hashed = true},
	FIRST_SHARED,
};

const struct bench_subject bench_read_first_cached = {
	.name = "read_first_cached",
	.brief = "read from the page cache 50 ms after a runtime's creation began",
	.sides = {[BENCH_OURS] = "pinion_scan", [BENCH_FLOOR] = "pread-cached"},
	.variant = &(const struct first_plan){.order = PINION_SCAN_PARALLEL, .is_cached = true},
	FIRST_SHARED,
};
