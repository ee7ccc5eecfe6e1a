/* SPDX-License-Identifier: MIT */
/*
 * Goal: a scan may be freed as soon as pinion_scan_destroy() has all slots
 * back, also while the worker that gave back the last is on its way out of
 * pin_scan_put_slots(): nothing of the scan is touched afterwards.
 * Method: the real scan/scan*.c on the model's heap, which knows freed memory.
 * Slots do no work here, threads just put them back, one by one or together;
 * with more files than slots the adding thread waits for them, too.
 */
#include "runtime/base/check.h"
#include "runtime/host/long_path.h"
#include "runtime/scan/scan.h"
#include "runtime/task/entry.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <dirent.h>
#include <pinion/walk.h>
#include <stdlib.h>
#include <string.h>

#define opendir(path) ((DIR *)NULL) /* how many files are open is of no interest */

static uint64_t units_at_once; /* that a thread gives back */

/* EARLY: they are given back before the lock. */
static bool is_early(const char *site)
{
	return model_is_spoilt(MODEL_EARLY, site, "pinion_budget_release");
}

#define pin_lock_release(lock, host) \
	do { \
		if (is_early(__func__)) { \
			(pinion_budget_release)(&scan->free_slots, &units_at_once); \
		} \
		(pin_lock_release)(lock, host); \
	} while (0)
#define pinion_budget_release(budget, amounts) \
	(is_early(__func__) ? (void)0 : (pinion_budget_release)(budget, amounts))

#include "runtime/scan/scan.c"
#include "runtime/scan/scan_cancel.c"
#include "runtime/scan/scan_create.c"
#include "runtime/scan/scan_progress.c"
#include "tests/model/scan/no_walk.h"

enum { FILES_MAX_HERE = 3 };

static struct pinion_runtime *runtime;
static struct pin_slot *started[FILES_MAX_HERE];
static uint32_t started_count;

/* ---- doubles of scan/slot.c and scan/walk.c ---- */

void pin_slots_start(const struct pin_slots *batch)
{
	for (struct pin_slot *slot = batch->first; slot != NULL; slot = slot->next) {
		started[started_count] = slot;
		started_count++;
	}
}

/* ---- cases ---- */

static void ignore_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	(void)outcome;
	(void)error;
}

static bool is_started(const void *arg)
{
	return *(struct pin_slot *const *)arg != NULL;
}

static void put_back(void *arg)
{
	struct pin_slot **from = arg;
	struct pin_slots slots = {0};

	for (uint64_t i = 0; i < units_at_once; i++) {
		model_await("a slot", is_started, &from[i]);
		pin_slots_push(&slots, from[i]);
	}
	pin_scan_put_slots(slots.first->scan, &slots);
}

static struct pinion_scan *begin(uint32_t slot_count)
{
	static const struct pinion_scan_ops ops = {
		.window = ignore_window,
		.report = ignore_report,
	};
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	memset(started, 0, sizeof(started));
	started_count = 0;
	model_quiet_begin();
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, model_settle);
	pinion_scan_config_init(&config);
	config.files_in_flight = slot_count;
	config.windows_in_flight = 1;
	MODEL_CHECK(pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	model_quiet_end();
	return scan;
}

static void run(uint32_t slot_count, uint32_t file_count, uint32_t at_once)
{
	struct pinion_scan *scan = begin(slot_count);

	units_at_once = at_once;
	for (uint32_t i = 0; i < file_count; i += at_once) {
		model_thread_start("finisher", put_back, &started[i]);
	}
	for (uint32_t i = 0; i < file_count; i++) {
		MODEL_CHECK(pinion_scan_add_file(scan, "file") == 0);
	}
	pinion_scan_destroy(scan);
	model_runtime_end(runtime);
}

static void run_one(void)
{
	run(1, 1, 1);
}

static void run_two(void)
{
	run(2, 2, 1);
}

static void run_more_files_than_slots(void)
{
	run(1, 2, 1);
}

static void run_two_at_once(void)
{
	run(2, 2, 2);
}

static void run_stock_is_left(void)
{
	run(4, 1, 1);
}

static const struct model_mutant mutants[] = {
	{"units are given back before the lock",
		{MODEL_EARLY, "pin_scan_put_slots", "pinion_budget_release"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"one", run_one, 3, 2, 1, mutants, NULL},
	{"two", run_two, 2, 1, 0, mutants, NULL},
	{"two_at_once", run_two_at_once, 2, 1, 0, mutants, NULL},
	{"stock_is_left", run_stock_is_left, 2, 1, 0, NULL, NULL},
	{"more_files_than_slots", run_more_files_than_slots, 2, 1, 0, mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("scan_slots", cases, PIN_ARRAY_COUNT(cases));
}
