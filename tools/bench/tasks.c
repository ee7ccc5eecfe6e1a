/* SPDX-License-Identifier: MIT */
/*
 * Words to wait on, and a runtime of one worker.
 */
#include "tools/bench/tasks.h"

#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <linux/futex.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_NS = 100 * 1000 * 1000 };

static void futex_wait(const uint32_t *word, uint32_t value)
{
	struct timespec limit = {.tv_nsec = WAIT_NS};

	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
}

static void futex_wake(const uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

uint32_t bench_word_read(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void bench_word_raise(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	futex_wake(word);
}

int bench_word_wait(const uint32_t *word, uint32_t value)
{
	while (bench_word_read(word) == value) {
		if (signals_interrupted()) {
			return -ECANCELED;
		}
		futex_wait(word, value);
	}
	return 0;
}

int bench_start_worker(const struct bench *bench, struct bench_setting *out_setting,
	struct pinion_runtime **out_runtime)
{
	struct pinion_config config = bench->options->runtime;
	int rc;

	config.worker_count = 1;
	rc = pinion_runtime_create(&config, out_runtime);
	if (rc != 0) {
		report_line("cannot start: %s", report_reason(rc));
		return rc;
	}
	pinion_runtime_facts(*out_runtime, &out_setting->facts, sizeof(out_setting->facts));
	snprintf(out_setting->text, sizeof(out_setting->text), "1 worker");
	return 0;
}

int bench_spawn_task(struct pinion_runtime *runtime, struct pinion_task *task)
{
	int rc = pinion_spawn(runtime, task);

	if (rc != 0) {
		report_line("cannot spawn: %s", report_reason(rc));
	}
	return rc;
}
