/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_scan_cancel() ends a file whatever it is in: its open is not
 * submitted, or a worker's canceller finds it in flight: [CANCEL-1]. A file
 * that both miss would hang with its device, and the scan with it.
 * Method: the real scan/scan*.c and the opening half of the real scan/slot.c,
 * real workers, and a device that never ends anything by itself.
 */
#include "runtime/base/check.h"
#include "runtime/host/long_path.h"
#include "runtime/io/file.h"
#include "runtime/scan/scan.h"
#include "runtime/task/entry.h"
#include "runtime/worker/request.h"
#include "runtime/worker/wake.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pinion/walk.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define opendir(path) ((DIR *)NULL) /* how many files are open is of no interest */

/* SKIP: the canceller comes, and ends nothing. */
#define pin_requests_abandon_among(worker, memory, bytes) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_requests_abandon_among") \
			? (void)0 \
			: pin_requests_abandon_among(worker, memory, bytes))

/* LATE: the scan is marked when the cancellers have been sent. */
static bool is_late(const char *site)
{
	return model_is_spoilt(MODEL_LATE, site, "pin_cas_seq_cst_u32");
}

static int spawn_on(
	struct pinion_scan *scan, uint32_t index, struct pinion_task *task, const char *site)
{
	int rc = pinion_task_spawn_on(scan->runtime, index, task);

	if (is_late(site)) {
		pin_exchange_seq_cst_u32(&scan->is_cancelled, 1);
	}
	return rc;
}

#pragma push_macro("pin_cas_seq_cst_u32")
#undef pin_cas_seq_cst_u32
#define pin_cas_seq_cst_u32(atomic, expected, value) \
	(is_late(__func__) || model_cas_u32(atomic, expected, value, MODEL_ORDER_SEQ_CST, __func__))
#define pinion_task_spawn_on(runtime, index, task) spawn_on(scan, index, task, __func__)
#include "runtime/scan/scan.c"
#include "runtime/scan/scan_cancel.c"
#include "runtime/scan/scan_create.c"
#include "runtime/scan/scan_progress.c"
#include "tests/model/scan/no_reads.h"
#include "tests/model/scan/no_walk.h"
#undef pinion_task_spawn_on
#pragma pop_macro("pin_cas_seq_cst_u32")

/* SKIP: a file is opened whether the scan is cancelled or not. */
#define pin_scan_is_cancelled(scan) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_scan_is_cancelled") && \
		pin_scan_is_cancelled(scan))
#include "runtime/scan/slot.c"

static struct pinion_runtime *runtime;
static struct pinion_scan *scan_here;
static uint32_t report_count;

/* ---- doubles of what an open leads to, or is tried beside it ---- */

int pin_file_check_kind(const char *path, uint32_t *out_mode)
{
	(void)path;
	*out_mode = S_IFREG;
	return 0;
}

int pin_file_check_kind_beneath(int directory_fd, const char *path, uint32_t *out_mode)
{
	(void)directory_fd;
	return pin_file_check_kind(path, out_mode);
}

int pin_file_open_flags(bool follows)
{
	(void)follows;
	return 0;
}

int pin_open_long(const char *path, int flags)
{
	(void)flags;
	model_fail("%s is opened on the worker", path);
}

int pin_open_cached(int directory_fd, const char *path, int flags, uint64_t resolve)
{
	(void)directory_fd;
	(void)flags;
	(void)resolve;
	model_fail("%s is opened as if others had been in the page cache", path);
}

int pin_beneath_open(int directory_fd, const char *path, int flags)
{
	(void)directory_fd;
	(void)flags;
	model_fail("%s is opened on the worker", path);
}

int pin_beneath_error(int error)
{
	return error;
}

int pin_file_adopt(struct pinion_file *file, int fd, uint32_t direct, uint64_t assumed_bytes_max,
	struct pin_device_cache *cache)
{
	(void)assumed_bytes_max;
	(void)file;
	(void)fd;
	(void)direct;
	(void)cache;
	model_fail("an open has succeeded");
}

void pinion_file_close(struct pinion_file *file)
{
	MODEL_CHECK(file->fd == -1);
}

void pin_reader_start(struct pin_reader *reader)
{
	(void)reader;
}

/* ---- cases ---- */

static void count_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	MODEL_CHECK(outcome == PINION_SCAN_CANCELLED && error == -ECANCELED);
	report_count++;
}

static void begin_scan(uint32_t worker_count)
{
	static const struct pinion_scan_ops ops = {
		.window = ignore_window,
		.report = count_report,
	};
	struct pinion_scan_config config;

	report_count = 0;
	model_quiet_begin();
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, model_settle);
	pinion_scan_config_init(&config);
	config.files_in_flight = 1;
	config.windows_in_flight = 1;
	MODEL_CHECK(pinion_scan_create(runtime, &config, &ops, NULL, &scan_here) == 0);
	model_quiet_end();
}

static void run(uint32_t worker_count)
{
	begin_scan(worker_count);
	MODEL_CHECK(pinion_scan_add_file(scan_here, "file") == 0);
	pinion_scan_cancel(scan_here);
	pinion_scan_destroy(scan_here);
	MODEL_CHECK(report_count == 1);
	model_runtime_end(runtime);
}

static void run_one_worker(void)
{
	run(1);
}

static void run_two_workers(void)
{
	run(2);
}

static const struct model_mutant mutants[] = {
	{"an open does not look whether the scan is cancelled",
		{MODEL_SKIP, "start_file", "pin_scan_is_cancelled"}},
	{"the cancellers are sent first",
		{MODEL_LATE, "pinion_scan_cancel", "pin_cas_seq_cst_u32"}},
	{"a canceller ends nothing", {MODEL_SKIP, "end_requests", "pin_requests_abandon_among"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"one_worker", run_one_worker, 2, 1, 0, mutants, NULL},
	{"two_workers", run_two_workers, 1, 1, 0, mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("scan_cancel", cases, PIN_ARRAY_COUNT(cases));
}
