/* SPDX-License-Identifier: MIT */
/*
 * An engine that checks what a scan hands it: the bytes against what the file
 * was made of, the windows against each other, the order of the calls. Files
 * are named by their number.
 */
#ifndef PIN_TESTS_SUPPORT_SCANS_H
#define PIN_TESTS_SUPPORT_SCANS_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <pinion/scan.h>

enum {
	SCANS_FILES_MAX = 1024,
	SCANS_WINDOWS_MAX = 1024,
};

/* A file, and its outcome. */
struct scans_file {
	const uint8_t *bytes; /* NULL: contents are not compared */
	uint64_t size;
	struct pin_atomic_u32 opens;
	struct pin_atomic_u32 closes;
	struct pin_atomic_u32 reports;
	struct pin_atomic_u32 windows;
	struct pin_atomic_u64 new_bytes;
	enum pinion_scan_outcome outcome;
	int error;
};

/* The engine's memory per file in flight. */
struct scans_user {
	uint64_t starts[SCANS_WINDOWS_MAX];
	uint64_t ends[SCANS_WINDOWS_MAX];
	struct pin_atomic_u32 active;
	struct pin_atomic_u32 last_count;
	struct pin_atomic_u32 next_index;
};

static struct scans_file scans_files[SCANS_FILES_MAX];
static uint32_t scans_overlap;
static bool scans_in_order;
static const char *scans_setting = ""; /* printed with each failure */
static pthread_mutex_t scans_lock = PTHREAD_MUTEX_INITIALIZER;
/* Called first in each window; what it returns below 0 is returned. */
static int (*scans_window_hook)(const struct pinion_scan_file *, const struct pinion_window *);

static inline bool scans_expect(
	const struct pinion_scan_file *file, const char *what, long long expected, long long got)
{
	if (expected != got) {
		pthread_mutex_lock(&scans_lock);
		printf("%s: file %s: %s: expected %lld, got %lld\n", scans_setting, file->path,
			what, expected, got);
		expect_failure_count++;
		pthread_mutex_unlock(&scans_lock);
	}
	return expected == got;
}

/* NULL for a path that is not the number of one of ours. */
static inline struct scans_file *scans_file_of(const struct pinion_scan_file *file)
{
	char *end;
	unsigned long number = strtoul(file->path, &end, 10);

	return *end == '\0' && end != file->path && number < SCANS_FILES_MAX ? &scans_files[number]
									     : NULL;
}

static inline int scans_open(void *arg, struct pinion_scan_file *file)
{
	struct scans_file *known = scans_file_of(file);
	const struct scans_user *user = file->user;

	(void)arg;
	scans_expect(
		file, "user memory is zeroed", 0, (long long)(user->starts[0] | user->ends[0]));
	scans_expect(file, "user memory is aligned", 0, (long long)((uintptr_t)user % 64));
	if (known != NULL) {
		pin_fetch_add_acq_rel_u32(&known->opens, 1);
	}
	return 0;
}

static inline void scans_check_bytes(const struct pinion_scan_file *file,
	const struct scans_file *known, const struct pinion_window *window)
{
	uint64_t base = window->base_offset_bytes;

	if (known->bytes == NULL) {
		return;
	}
	if (!scans_expect(file, "it ends within the file", 1,
		    base + window->length_bytes <= known->size)) {
		return;
	}
	if (window->is_hole) {
		for (uint64_t i = base; i < base + window->length_bytes; i++) {
			if (!scans_expect(file, "byte of a hole", 0, known->bytes[i])) {
				break;
			}
		}
	} else if (window->length_bytes > 0) {
		scans_expect(file, "bytes differ", 0,
			memcmp(window->bytes, known->bytes + base, window->length_bytes) != 0);
	}
}

static inline int scans_window(
	void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct scans_file *known = scans_file_of(file);
	struct scans_user *user = file->user;
	uint64_t start = window->base_offset_bytes + window->prefix_bytes;
	uint64_t end = window->base_offset_bytes + window->length_bytes;
	uint32_t active = pin_fetch_add_acq_rel_u32(&user->active, 1);
	int rc = scans_window_hook == NULL ? 0 : scans_window_hook(file, window);

	(void)arg;
	if (scans_in_order) {
		scans_expect(file, "windows at the same time", 0, active);
		scans_expect(file, "index in order", (long long)window->index,
			pin_fetch_add_acq_rel_u32(&user->next_index, 1));
	}
	if (known != NULL &&
		scans_expect(file, "few enough windows", 1, window->index < SCANS_WINDOWS_MAX)) {
		pin_fetch_add_acq_rel_u32(&known->windows, 1);
		scans_expect(file, "seen before", 0, (long long)user->ends[window->index]);
		user->starts[window->index] = start;
		user->ends[window->index] = end;
		if (!window->is_hole) {
			scans_expect(file, "prefix",
				(long long)(scans_overlap < start ? scans_overlap : start),
				(long long)window->prefix_bytes);
		}
		scans_check_bytes(file, known, window);
		pin_fetch_add_acq_rel_u64(&known->new_bytes, end - start);
	}
	if (window->is_last) {
		pin_fetch_add_acq_rel_u32(&user->last_count, 1);
	}
	pin_fetch_sub_acq_rel_u32(&user->active, 1);
	return rc;
}

static inline int scans_close(void *arg, struct pinion_scan_file *file, int error)
{
	struct scans_file *known = scans_file_of(file);
	struct scans_user *user = file->user;

	(void)arg;
	scans_expect(
		file, "windows under way at the close", 0, pin_load_acquire_u32(&user->active));
	if (known == NULL) {
		return 0;
	}
	pin_fetch_add_acq_rel_u32(&known->closes, 1);
	if (error == 0) {
		uint32_t count = pin_load_acquire_u32(&known->windows);
		uint64_t position = 0;

		for (uint32_t i = 0; i < count && i < SCANS_WINDOWS_MAX; i++) {
			if (!scans_expect(file, "windows join", (long long)position,
				    (long long)user->starts[i])) {
				break;
			}
			position = user->ends[i];
		}
		scans_expect(file, "windows marked as the last", 1,
			pin_load_acquire_u32(&user->last_count));
	}
	return 0;
}

static inline void scans_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct scans_file *known = scans_file_of(file);

	(void)arg;
	scans_expect(file, "done and without an error go together", outcome == PINION_SCAN_DONE,
		error == 0);
	if (known == NULL) {
		return;
	}
	scans_expect(file, "earlier reports", 0, pin_fetch_add_acq_rel_u32(&known->reports, 1));
	scans_expect(file, "closes before the report", pin_load_acquire_u32(&known->opens),
		pin_load_acquire_u32(&known->closes));
	known->outcome = outcome;
	known->error = error;
}

static const struct pinion_scan_ops scans_ops = {
	.open = scans_open,
	.window = scans_window,
	.close = scans_close,
	.report = scans_report,
};

static inline void scans_config(struct pinion_scan_config *config)
{
	pinion_scan_config_init(config);
	config->file_user_bytes = sizeof(struct scans_user);
}

/* Clears the outcomes first. */
static inline struct pinion_scan *scans_create(
	struct pinion_runtime *runtime, const struct pinion_scan_config *config)
{
	struct pinion_scan *scan = NULL;
	int rc;

	for (size_t i = 0; i < SCANS_FILES_MAX; i++) {
		scans_files[i] = (struct scans_file){
			.bytes = scans_files[i].bytes, .size = scans_files[i].size};
	}
	scans_overlap = config->overlap_bytes;
	scans_in_order = config->order == PINION_SCAN_IN_ORDER;
	rc = pinion_scan_create(runtime, config, &scans_ops, NULL, &scan);
	if (rc != 0) {
		printf("%s: pinion_scan_create: expected 0, got %d\n", scans_setting, rc);
		exit(1);
	}
	return scan;
}

static inline void scans_add(struct pinion_scan *scan, uint32_t number)
{
	char path[16];

	snprintf(path, sizeof(path), "%u", number);
	expect_number("add", 0, pinion_scan_add_file(scan, path));
}

/* Makes file `number` of `size` bytes that differ from page to page. */
static inline void scans_make(uint32_t number, uint64_t size)
{
	uint8_t *bytes = malloc(size + 1);
	char path[16];
	int fd;

	expect_ready("malloc", bytes != NULL);
	for (uint64_t i = 0; i < size; i++) {
		bytes[i] = (uint8_t)((i * 2654435761u >> 11) ^ (i >> 12) ^ (number * 37));
	}
	snprintf(path, sizeof(path), "%u", number);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	expect_ready(path, fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
	scans_files[number].bytes = bytes;
	scans_files[number].size = size;
}

static inline void scans_forget(void)
{
	for (size_t i = 0; i < SCANS_FILES_MAX; i++) {
		free((void *)(uintptr_t)scans_files[i].bytes);
		scans_files[i] = (struct scans_file){0};
	}
}

/* File `number` came to this end. */
static inline void scans_expect_end(uint32_t number, enum pinion_scan_outcome outcome, int error)
{
	const struct scans_file *known = &scans_files[number];
	char what[96];

	snprintf(what, sizeof(what), "%.70s: file %u", scans_setting, number);
	expect_number(what, 1, pin_load_acquire_u32(&known->reports));
	expect_number(what, outcome, known->outcome);
	expect_number(what, error, known->error);
}

#endif
