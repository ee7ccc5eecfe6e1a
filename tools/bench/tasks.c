/* SPDX-License-Identifier: MIT */
/*
 * Words to wait on, and runtimes for tasks.
 */
#include "tools/bench/tasks.h"

#include "tools/bench/place.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <linux/futex.h>
#include <pinion/pinion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

void *bench_allocate(size_t size)
{
	size_t whole = (size + BENCH_LINE_BYTES - 1) / BENCH_LINE_BYTES * BENCH_LINE_BYTES;
	void *memory = aligned_alloc(BENCH_LINE_BYTES, whole);

	if (memory == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return NULL;
	}
	return memset(memory, 0, whole);
}

int bench_start_workers(const struct bench *bench, uint32_t worker_count,
	struct bench_setting *out_setting, struct pinion_runtime **out_runtime)
{
	struct pinion_config config = bench->options->runtime;
	int rc;

	config.worker_count = worker_count;
	config.buffer_count = 1;
	config.small_buffer_count = 1;
	rc = pinion_runtime_create(&config, out_runtime);
	if (rc != 0) {
		report_line("cannot start: %s", report_reason(rc));
		return rc;
	}
	pinion_runtime_get_info(*out_runtime, &out_setting->facts, sizeof(out_setting->facts));
	/* Which is another number where one per core was asked for. */
	worker_count = out_setting->facts.worker_count;
	snprintf(out_setting->text, sizeof(out_setting->text), "%u worker%s", worker_count,
		worker_count == 1 ? "" : "s");
	return 0;
}

int bench_spawn_task(struct pinion_runtime *runtime, struct pinion_task *task)
{
	int rc = pinion_task_spawn(runtime, task);

	if (rc != 0) {
		report_line("cannot spawn: %s", report_reason(rc));
	}
	return rc;
}

int bench_run_turn(struct pinion_runtime *runtime, struct pinion_task *turn, const uint32_t *done)
{
	uint32_t before = bench_word_read(done);
	int rc = bench_spawn_task(runtime, turn);

	while (rc == 0 && bench_word_read(done) == before) {
		futex_wait(done, before);
	}
	return rc;
}

int bench_require_awake(const struct bench_subject *subject, const struct bench_setting *setting)
{
	if (setting->facts.cpu_latency_us != 0) {
		report_line("%s: skipped, idle CPUs cannot be asked to stay awake", subject->name);
		return BENCH_SKIPPED;
	}
	return 0;
}

int bench_require_cpus(const struct bench_subject *subject, uint32_t count)
{
	struct pinion_machine machine = {0};
	int rc = pinion_machine_probe(&machine, sizeof(machine));

	if (rc != 0) {
		report_line("cannot find out this machine's CPUs: %s", report_reason(rc));
		return rc;
	}
	if (machine.cpu_count < count) {
		report_line("%s: skipped, it needs %u CPUs and may use %u", subject->name, count,
			machine.cpu_count);
		return BENCH_SKIPPED;
	}
	return 0;
}

int bench_require_cores(const struct bench_subject *subject, uint32_t count)
{
	uint32_t core_count = bench_place_cores();

	if (core_count < count) {
		report_line("%s: skipped, it needs %u CPUs that are no hardware threads of one "
			    "core and may use %u",
			subject->name, count, core_count);
		return BENCH_SKIPPED;
	}
	return 0;
}

void bench_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void bench_setting_add(struct bench_setting *setting, const char *format, ...)
{
	size_t length = strlen(setting->text);
	va_list arguments;

	if (length > 0) {
		snprintf(setting->text + length, sizeof(setting->text) - length, ", ");
		length = strlen(setting->text);
	}
	va_start(arguments, format);
	vsnprintf(setting->text + length, sizeof(setting->text) - length, format, arguments);
	va_end(arguments);
}
