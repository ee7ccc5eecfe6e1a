/* SPDX-License-Identifier: MIT */
/*
 * Goal: the page of a worker that sleeps says how many requests it has in
 * flight now, also where it has published nothing since: one while it sleeps in
 * its ring, none once it sleeps on its futex. AS-38.
 * Method: a read of a pipe, and its end, in quick turns; the page is copied
 * again after it has shown where the worker is.
 */
#include "tests/support/pending.h"
#include "tests/support/runtimes.h"

#include <unistd.h>

enum { LIMIT_SECONDS = 60, ROUNDS = 50 };

static struct pinion_metrics *metrics;
static struct pending_read reads[ROUNDS];

static void note(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	puts(message);
}

static uint64_t value_of(const char *name)
{
	int field = pinion_metrics_find(metrics, name, PINION_METRICS_WORKER, UINT32_MAX);
	uint64_t value = UINT64_MAX;

	expect_true(name, field >= 0);
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
	expect_number(name, 0, pinion_metrics_read(metrics, (uint32_t)field, 0, &value));
	return value;
}

static void await_place(enum pinion_worker_place place)
{
	while (value_of("place") != place) {
	}
}

int main(void)
{
	struct pinion_file file;
	struct pinion_runtime *runtime;
	int ends[2];

	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("pipe", pipe(ends) == 0);
	runtime = runtimes_start(1, PINION_IO_AUTO);
	if (runtimes_info(runtime).uses_ring == 0) {
		puts("no io_uring: no worker sleeps in a ring");
		return EXPECT_SKIPPED;
	}
	file = runtimes_plain_file(ends[0]);
	expect_number("open", 0, pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics));
	for (int i = 0; i < ROUNDS; i++) {
		pending_begin(&reads[i], runtime, 0, &file);
		await_place(PINION_WORKER_PARKED_RING);
		expect_number("in its ring", 1, (long long)value_of("requests_in_flight"));
		expect_ready("write", write(ends[1], "x", 1) == 1);
		await_place(PINION_WORKER_PARKED_FUTEX);
		expect_number("on its futex", 0, (long long)value_of("requests_in_flight"));
	}
	pinion_metrics_close(metrics);
	pinion_runtime_destroy(runtime);
	close(ends[0]);
	close(ends[1]);
	return expect_status();
}
