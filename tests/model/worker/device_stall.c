/* SPDX-License-Identifier: MIT */
/*
 * Goal: a device that completes nothing is named by one thread, its worker or
 * the watchdog, and goes on, in the log, only after it was named: [STALL-2],
 * [STALL-3].
 * Method: the real worker/device_stall.c. A watchdog looks, asks, and looks
 * again, while the worker answers, completes its request, or both; a log counts
 * the lines, in a word that has no order of its own.
 */
#include "runtime/worker/device_stall.h"
#include "runtime/worker/request.h"
#include "runtime/worker/stall_time.h"
#include "runtime/worker/worker.h"
#include "tests/model/explorer.h"

#include <string.h>
#include <sys/sysmacros.h>

enum { STALL_MS = 20, LOOKS = 3, WORKERS = 2 };

#define LOOK_NS (STALL_MS * UINT64_C(1000000) / PIN_STALL_LOOKS)
#define LONG_NS (STALL_MS * UINT64_C(1000000) * PIN_STALL_TIMES)

static struct pin_shared watched;
static struct pin_worker workers[WORKERS];
static struct pin_atomic_u32 named_lines;
static uint32_t named; /* as all threads would see it */
static uint32_t over;
static uint64_t clock_ns;

static void note_line(enum pinion_log_level level, const char *format, ...)
{
	(void)format;
	if (level == PINION_LOG_WARN) {
		named++;
		MODEL_CHECK(named == 1);
		pin_store_relaxed_u32(&named_lines, 1);
	} else {
		over++;
		MODEL_CHECK(over == 1 && named == 1);
		MODEL_CHECK(pin_load_relaxed_u32(&named_lines) == 1);
	}
}

/* Models have no log. */
#undef pin_log
#define pin_log(log, level, ...) ((void)(log), note_line(level, __VA_ARGS__))
#include "runtime/worker/device_stall.c"

static struct pinion_file file = {.fd = -1};
static struct pinion_request request; /* of the first worker */

static void look(uint64_t later_ns)
{
	struct pin_stall_look_times times;

	clock_ns += later_ns;
	times = (struct pin_stall_look_times){.now_ns = clock_ns};
	pin_device_stall_look(&watched, &times);
}

static void answer(void *arg)
{
	(void)arg;
	pin_device_stall_answer(&workers[0]);
}

static void complete_in(struct pin_worker *worker)
{
	struct pin_account *account = &worker->device_queue.accounts[0];

	pin_meter_add(&account->requests, 1);
	account->holding.used = 0;
	pin_device_stall_note_used(worker);
}

static void complete(void *arg)
{
	(void)arg;
	pin_request_list_remove(&pin_request_of(&request)->link);
	complete_in(&workers[0]);
}

static void answer_and_complete(void *arg)
{
	answer(arg);
	complete(arg);
}

static void complete_other(void *arg)
{
	(void)arg;
	complete_in(&workers[1]);
}

static void reset_worker(struct pin_worker *worker)
{
	struct pin_account *account = &worker->device_queue.accounts[0];
	struct pin_disk *disk = &watched.disks.disks[0];

	memset(worker, 0, sizeof(*worker));
	worker->shared = &watched;
	pin_parker_init(&worker->parker);
	pin_request_list_init(&worker->in_flight);
	account->device = disk->device;
	account->disk = disk;
	account->worker = worker;
	pin_store_release_u32(&account->disk_place, 1);
	account->holding.used = pin_credit_amount(1, 1);
	worker->device_queue.account_count = 1;
	pin_device_stall_note_used(worker);
}

static void reset(uint32_t worker_count)
{
	watched = (struct pin_shared){
		.tuning.stall_ms = STALL_MS, .worker_count = worker_count, .workers = workers};
	watched.disks.disks[0].device = makedev(8, 16);
	pin_store_release_u32(&watched.disks.count, 1);
	for (uint32_t i = 0; i < worker_count; i++) {
		reset_worker(&workers[i]);
	}
	request = (struct pinion_request){.file = &file};
	pin_request_of(&request)->cost.account_place = 1;
	pin_request_list_push(&workers[0].in_flight, &pin_request_of(&request)->link);
	pin_store_relaxed_u32(&named_lines, 0);
	named = 0;
	over = 0;
	clock_ns = 1;
}

/* From when the watchdog asks; `other`: what another worker does, or NULL. */
static void run(model_body_fn body, model_body_fn other, bool ends)
{
	uint32_t threads[WORKERS];

	reset(other == NULL ? 1 : WORKERS);
	look(0);
	look(LONG_NS);
	MODEL_CHECK(pin_load_relaxed_u32(&watched.stalls.asked) == 1 && named == 0);
	threads[0] = model_thread_start("worker", body, NULL);
	threads[1] = other == NULL ? threads[0] : model_thread_start("other", other, NULL);
	for (uint32_t i = 0; i < LOOKS; i++) {
		look(LOOK_NS);
	}
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	look(LOOK_NS);
	look(LOOK_NS);
	MODEL_CHECK(pin_load_relaxed_u32(&watched.stalls.asked) == 0);
	MODEL_CHECK(over == (ends ? named : 0));
	MODEL_CHECK(pin_load_relaxed_u32(&watched.stalls.devices_now) == named - over);
	MODEL_CHECK(pin_load_relaxed_u64(&watched.stalls.counts[PIN_STALL_OF_DEVICE]) == named);
}

static void run_answered(void)
{
	run(answer, NULL, false);
	MODEL_CHECK(named == 1);
}

static void run_completed(void)
{
	run(complete, NULL, true);
}

static void run_both(void)
{
	run(answer_and_complete, NULL, true);
}

/* Another worker's request completes while the device is being named. */
static void run_other(void)
{
	run(answer, complete_other, true);
}

static const struct model_mutant answered_mutants[] = {
	{"both name it", {MODEL_TORN, "take_question", NULL}},
	{.name = NULL},
};

static const struct model_mutant other_mutants[] = {
	{"it goes on before its line", {MODEL_RELAXED, "note_named", NULL}},
	{"the watchdog does not see its line", {MODEL_RELAXED, "end_stall", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"answered", run_answered, 2, 1, 0, answered_mutants, NULL},
	{"completed", run_completed, 2, 1, 0, NULL, NULL},
	{"both", run_both, 2, 1, 0, NULL, NULL},
	{"other", run_other, 2, 1, 0, other_mutants, NULL},
};

int main(void)
{
	return model_main("device_stall", cases, PIN_ARRAY_COUNT(cases));
}
