/* SPDX-License-Identifier: MIT */
/*
 * Goal: calls of a scan's `progress` neither overlap nor miss what an earlier
 * call wrote: [PROGRESS-1].
 * Method: the real scan/scan_progress.c, for which the next call is always due;
 * two threads show their progress twice each. The callback counts its calls in
 * a word that it reads and writes without an order of its own.
 */
#include "runtime/scan/scan.h"
#include "tests/model/explorer.h"

#define pinion_runtime_worker_count(runtime) ((void)(runtime), UINT32_C(0))
#include "runtime/scan/scan_progress.c"

enum { THREADS = 2, SHOWN = 2, NOW_NS = 1 };

static struct pin_scan_totals totals[THREADS];
static struct pinion_scan scan;
static struct pin_atomic_u64 seen_calls;
static uint64_t calls; /* as all threads would see it */
static bool is_called;

static uint64_t now_ns(void)
{
	return NOW_NS;
}

static const struct pin_host host = {.now_ns = now_ns};

static void count_call(void *arg, const struct pinion_scan_stats *stats)
{
	uint64_t seen;

	(void)arg;
	(void)stats;
	MODEL_CHECK(!is_called);
	is_called = true;
	seen = pin_load_relaxed_u64(&seen_calls);
	MODEL_CHECK(seen == calls);
	pin_store_relaxed_u64(&seen_calls, seen + 1);
	calls++;
	is_called = false;
}

static void show(void *arg)
{
	for (uint32_t i = 0; i < SHOWN; i++) {
		pin_scan_show_progress(&scan, arg);
	}
}

static void run(void)
{
	uint32_t other;

	scan = (struct pinion_scan){
		.host = &host, .config = {.progress = count_call, .progress_ns = 0}};
	memset(totals, 0, sizeof(totals));
	pin_store_relaxed_u64(&scan.progress_due_ns, NOW_NS);
	pin_store_relaxed_u64(&seen_calls, 0);
	calls = 0;
	is_called = false;
	other = model_thread_start("other", show, &totals[1]);
	show(&totals[0]);
	model_thread_join(other);
	/* A thread that came while another called it has gone without. */
	MODEL_CHECK(calls >= SHOWN && calls <= THREADS * SHOWN);
}

static const struct model_mutant mutants[] = {
	{"two threads call it at once", {MODEL_TORN, "pin_scan_show_progress", NULL}},
	{"an earlier call is not seen", {MODEL_RELAXED, "pin_scan_show_progress", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"progress", run, 2, 1, 0, mutants, NULL},
};

int main(void)
{
	return model_main("progress", cases, PIN_ARRAY_COUNT(cases));
}
