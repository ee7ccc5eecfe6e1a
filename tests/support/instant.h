/* SPDX-License-Identifier: MIT */
/*
 * For tests of scans whose reads are over when they are submitted: a file in
 * the page cache that is said to be read past it, so that its reads go to the
 * ring and end there at once.
 */
#ifndef TESTS_SUPPORT_INSTANT_H
#define TESTS_SUPPORT_INSTANT_H

#include "runtime/scan/scan.h"
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <string.h>
#include <sys/uio.h>

#define INSTANT_WINDOW_BYTES (128u << 10)

/* Skips the test where no kernel call says which reads end at once. */
static inline void instant_require(void)
{
	rings_require();
	if (!pin_kernel_has(&rings_kernel, PINION_IO_DEFER_TASKRUN)) {
		printf("skipped: rings of this kernel, or of this level, defer no completions\n");
		exit(EXPECT_SKIPPED);
	}
}

static inline int instant_call_direct(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	file->file.is_direct = true;
	return 0;
}

static inline void instant_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	expect_number("outcome", PINION_SCAN_DONE, outcome);
	expect_number("error", 0, error);
}

static inline const struct pin_reader *instant_reader(struct pinion_scan_file *file)
{
	return &PIN_CONTAINER_OF(file, struct pin_slot, file)->reader;
}

/*
 * Makes "file" of that number of windows in the scratch folder; each is of one
 * byte, that of its number modulo 251. False: the file system there does not
 * read without waiting (tmpfs promises nothing, and its reads go to helper
 * threads).
 */
static inline bool instant_file(uint32_t window_count)
{
	static uint8_t bytes[INSTANT_WINDOW_BYTES];
	struct iovec vector = {bytes, 1};
	bool is_over_at_once;
	int fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	for (uint32_t i = 0; i < window_count; i++) {
		memset(bytes, (int)(i % 251), sizeof(bytes));
		expect_ready("write", write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
	}
	is_over_at_once = preadv2(fd, &vector, 1, 0, RWF_NOWAIT) == 1;
	close(fd);
	return is_over_at_once;
}

static inline struct pinion_runtime *instant_runtime(uint32_t worker_count)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	config.buffer_bytes = INSTANT_WINDOW_BYTES;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	return runtime;
}

/* Scans that file. */
static inline void instant_scan(
	struct pinion_runtime *runtime, const struct pinion_scan_ops *ops, uint32_t order)
{
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	pinion_scan_config_init(&config);
	config.order = order;
	config.direct = PINION_DIRECT_NEVER;
	config.window_bytes = INSTANT_WINDOW_BYTES;
	expect_ready("scan", pinion_scan_create(runtime, &config, ops, NULL, &scan) == 0);
	expect_number("add", 0, pinion_scan_add_file(scan, "file"));
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	pinion_scan_destroy(scan);
}

#endif
