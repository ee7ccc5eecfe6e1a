/* SPDX-License-Identifier: MIT */
/*
 * Goal: an open that hangs is ended by pinion_scan_cancel(), as CANCELLED, and
 * by `file_timeout_ns`, as FAILED with -ETIME; each once, and finish, destroy
 * and the end of the runtime return. Files beside it are read.
 * Method: tests/support/fuses.h, whose server answers no open of one file until
 * the kernel reports that the opener was interrupted. With a ring: without one
 * the worker itself hangs in open(2), which is documented.
 */
#include "tests/support/fuses.h"
#include "tests/support/scans.h"

enum {
	FILES = 2,
	HUNG = 0, /* the other one answers */
	SIZE = 5000,
	LIMIT_SECONDS = 60,
	TIMEOUT_NS = 200 * 1000 * 1000,
};

static uint8_t contents[SIZE];

/* ---- the server ---- */

static bool is_cached(uint32_t file)
{
	(void)file;
	return false;
}

static bool hangs_open(uint32_t file)
{
	return file == HUNG;
}

static void serve_read(uint64_t unique, uint32_t file, uint64_t offset, size_t length)
{
	(void)file;
	fuses_answer(unique, 0, contents + offset, length);
}

static const struct fuses served = {
	.file_count = FILES,
	.file_bytes = SIZE,
	.is_cached = is_cached,
	.hangs_open = hangs_open,
	.read = serve_read,
};

/* ---- the test ---- */

static void check(uint32_t workers, uint64_t timeout_ns)
{
	struct pinion_runtime *runtime = runtimes_start(workers, PINION_IO_RING);
	struct pinion_scan_config config;
	struct pinion_scan *scan;
	static char setting[64];

	snprintf(setting, sizeof(setting), "workers %u timeout %llu", workers,
		(unsigned long long)timeout_ns);
	scans_setting = setting;
	scans_config(&config);
	config.file_timeout_ns = timeout_ns;
	expect_ready("mnt", chdir("mnt") == 0);
	scan = scans_create(runtime, &config);
	scans_add(scan, HUNG);
	scans_add(scan, 1);
	/* The other is through: the hung one, added before it, was begun. */
	while (pin_load_acquire_u32(&scans_files[1].reports) == 0) {
		sched_yield();
	}
	if (timeout_ns == 0) {
		expect_number("the hung one is over", 0,
			pin_load_acquire_u32(&scans_files[HUNG].reports));
		pinion_scan_cancel(scan);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	expect_ready("..", chdir("..") == 0);
	scans_expect_end(1, PINION_SCAN_DONE, 0);
	expect_number("opened", 0, pin_load_acquire_u32(&scans_files[HUNG].opens));
	if (timeout_ns == 0) {
		scans_expect_end(HUNG, PINION_SCAN_CANCELLED, -ECANCELED);
	} else {
		scans_expect_end(HUNG, PINION_SCAN_FAILED, -ETIME);
	}
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;
	pid_t server;

	runtimes_watchdog(LIMIT_SECONDS);
	runtimes_config(&config, 1, PINION_IO_RING);
	if (pinion_runtime_create(&config, &runtime) < 0) {
		printf("skipped: no io_uring here\n");
		return EXPECT_SKIPPED;
	}
	pinion_runtime_destroy(runtime);
	if (!fuses_may_mount()) {
		return EXPECT_SKIPPED;
	}
	memset(contents, 'x', SIZE);
	for (size_t i = 0; i < FILES; i++) {
		scans_files[i].bytes = contents;
		scans_files[i].size = SIZE;
	}
	scratch_enter("hung_opens_end");
	expect_ready("mnt", mkdir("mnt", 0755) == 0);
	server = fuses_start(&served);
	for (uint32_t workers = 1; workers <= 3; workers += 2) {
		check(workers, 0);
		check(workers, TIMEOUT_NS);
	}
	fuses_end(server);
	scratch_leave();
	return expect_status();
}
