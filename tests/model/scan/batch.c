/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that has started the files of a batch touches nothing of their
 * scan once none of their slots is with it: another worker may have ended the
 * last of them, and pinion_scan_destroy() may have freed the scan.
 * Method: the real scan/scan*.c and scan/slot.c on the model's heap, which
 * knows freed memory. Files are open at once; their readers end where they are
 * started, or in a task that any worker takes.
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
#include <pinion/walk.h>
#include <stdlib.h>
#include <string.h>

#define opendir(path) ((DIR *)NULL) /* how many files are open is of no interest */

#include "runtime/scan/scan.c"
#include "runtime/scan/scan_cancel.c"
#include "runtime/scan/scan_create.c"
#include "runtime/scan/scan_progress.c"
#include "tests/model/scan/no_reads.h"
#include "tests/model/scan/no_walk.h"

/* SKIP: the last file's slot is gathered, too, where no other is. */
#define pin_slots_may_gather(gathered, next) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_slots_may_gather") || \
		pin_slots_may_gather(gathered, next))
#include "runtime/scan/slot.c"

enum { BATCH_HERE = 2 };

/* What a file of the batch is to be, by its place. */
static const char *ends; /* 'h': where it is started; 'o': on any worker */
static struct pinion_task endings[BATCH_HERE];
static struct pin_reader *readers[BATCH_HERE];
static uint32_t reader_count;
static uint32_t report_count;

/* ---- doubles ---- */

int pin_file_check_kind(const char *path, uint32_t *out_mode)
{
	(void)out_mode;
	model_fail("%s is looked at", path);
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
	(void)path;
	(void)flags;
	(void)resolve;
	return 3;
}

int pin_beneath_open(int directory_fd, const char *path, int flags)
{
	(void)directory_fd;
	return pin_open_long(path, flags);
}

int pin_beneath_error(int error)
{
	return error;
}

int pin_file_adopt(struct pinion_file *file, int fd, uint32_t direct, uint64_t assumed_bytes_max,
	struct pin_device_cache *cache)
{
	(void)assumed_bytes_max;
	(void)direct;
	(void)cache;
	*file = (struct pinion_file){
		.fd = fd,
		.offset_align_bytes = 1,
		.size_bytes = 1,
		.way = PINION_WAY_CACHED,
	};
	return 0;
}

void pinion_file_close(struct pinion_file *file)
{
	file->fd = -1;
}

static int end_reader(struct pinion_task *task)
{
	struct pin_reader *reader = readers[task - endings];

	reader->done(reader);
	return 0;
}

void pin_reader_start(struct pin_reader *reader)
{
	uint32_t index = reader_count++;

	MODEL_CHECK(index < BATCH_HERE);
	if (ends[index] == 'h') {
		reader->done(reader);
		return;
	}
	readers[index] = reader;
	endings[index] = (struct pinion_task){.run = end_reader};
	MODEL_CHECK(pin_worker_spawn_shared(pin_worker_current(), &endings[index]) == 0);
}

/* ---- cases ---- */

static void count_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	MODEL_CHECK(outcome == PINION_SCAN_DONE && error == 0);
	report_count++;
}

static struct pinion_scan *begin_scan(struct pinion_runtime *runtime)
{
	static const struct pinion_scan_ops ops = {
		.window = ignore_window,
		.report = count_report,
	};
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	pinion_scan_config_init(&config);
	config.files_in_flight = BATCH_HERE;
	config.windows_in_flight = 1;
	MODEL_CHECK(pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	/* As after files that were in the page cache. */
	for (uint32_t i = 0; i < pinion_runtime_worker_count(runtime); i++) {
		pin_store_relaxed_u32(&scan->workers[i].finds_cached, 1);
	}
	return scan;
}

static void run(const char *file_ends)
{
	struct pinion_runtime *runtime;
	struct pinion_scan *scan;
	int rc = 0;

	ends = file_ends;
	reader_count = 0;
	report_count = 0;
	model_quiet_begin();
	runtime = model_runtime_begin(2, PIN_DOORBELL_MESSAGE, model_settle);
	scan = begin_scan(runtime);
	model_quiet_end();
	acquire_slots(scan, BATCH_HERE);
	take_stock(scan, BATCH_HERE);
	scan->batch_max = BATCH_HERE;
	for (uint32_t i = 0; rc == 0 && i < BATCH_HERE; i++) {
		rc = pin_scan_add(scan, "file", strlen("file"), NULL, PIN_SLOT_EXAMINED);
	}
	pin_scan_send_batch(scan);
	MODEL_CHECK(rc == 0 && scan->batch.count == 0);
	pinion_scan_destroy(scan);
	MODEL_CHECK(report_count == BATCH_HERE);
	model_runtime_end(runtime);
}

static void run_both_here(void)
{
	run("hh");
}

static void run_first_here(void)
{
	run("ho");
}

static void run_last_here(void)
{
	run("oh");
}

static void run_both_elsewhere(void)
{
	run("oo");
}

static const struct model_mutant mutants[] = {
	{"a worker gathers beyond its last slot",
		{MODEL_SKIP, "start_batch", "pin_slots_may_gather"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"both_here", run_both_here, 1, 1, 0, NULL, NULL},
	{"first_here", run_first_here, 1, 1, 0, NULL, NULL},
	{"last_here", run_last_here, 1, 1, 0, NULL, NULL},
	{"both_elsewhere", run_both_elsewhere, 1, 1, 0, mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("scan_batch", cases, PIN_ARRAY_COUNT(cases));
}
