/* SPDX-License-Identifier: MIT */
/*
 * Tasks that keep workers busy.
 */
#include "tools/bench/load.h"

#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

/* Spins for a while and spawns itself. */
struct busy_task {
	struct pinion_task task;
	struct load *load;
	uint64_t random;
	uint64_t runs;
};

struct load_worker {
	struct pinion_task turn BENCH_LINE_ALIGNED; /* begins the tasks, or is the loop */
	struct load *load;
	uint64_t random;
	struct busy_task tasks[LOAD_TASKS];
};

_Static_assert(offsetof(struct load_worker, turn) == 0, "a cast leads back");
_Static_assert(offsetof(struct busy_task, task) == 0, "a cast leads back");

uint64_t load_random_below(uint64_t *state, uint64_t end)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % end;
}

void load_sleep_gap(uint64_t *random, uint64_t end_ns)
{
	struct timespec gap = {.tv_nsec = (long)load_random_below(random, end_ns)};

	(void)nanosleep(&gap, NULL);
}

static void be_busy(const struct load *load, uint64_t *random)
{
	uint64_t end_ns = bench_now_ns() + load->task_ns_min +
		load_random_below(random, load->task_ns_max - load->task_ns_min + 1);

	while (bench_now_ns() < end_ns) {
		bench_relax();
	}
}

static int do_work(const struct load *load, uint64_t *random)
{
	if (load->work != NULL) {
		return load->work(load->work_arg, random);
	}
	be_busy(load, random);
	return 0;
}

static bool is_over(const struct load *load)
{
	return __atomic_load_n(&load->is_over, __ATOMIC_ACQUIRE) != 0;
}

/* ---- on the workers ---- */

static int busy_run(struct pinion_task *task)
{
	struct busy_task *busy = (struct busy_task *)(void *)task;
	struct load *load = busy->load;
	int rc = do_work(load, &busy->random);
	bool goes_on = rc == 0 && !is_over(load);

	if (goes_on) {
		busy->runs++;
		rc = pinion_task_spawn(load->runtime, task);
	}
	if (rc != 0) {
		__atomic_store_n(&load->error, rc, __ATOMIC_RELEASE);
	}
	if (rc != 0 || !goes_on) {
		bench_word_raise(&load->ended);
	}
	return 0;
}

static int begin_tasks(struct pinion_task *task)
{
	struct load_worker *worker = (struct load_worker *)(void *)task;
	struct load *load = worker->load;

	for (int i = 0; i < LOAD_TASKS; i++) {
		int rc = pinion_task_spawn(load->runtime, &worker->tasks[i].task);

		if (rc != 0) {
			__atomic_store_n(&load->error, rc, __ATOMIC_RELEASE);
			bench_word_raise(&load->ended);
		}
	}
	bench_word_raise(&load->begun);
	return 0;
}

static int loop(struct pinion_task *task)
{
	struct load_worker *worker = (struct load_worker *)(void *)task;
	struct load *load = worker->load;
	int rc;

	bench_word_raise(&load->begun);
	while (!is_over(load)) {
		struct pinion_task *found;

		rc = do_work(load, &worker->random);
		if (rc != 0) {
			__atomic_store_n(&load->error, rc, __ATOMIC_RELEASE);
			break;
		}
		found = __atomic_load_n(&load->slot, __ATOMIC_RELAXED);
		if (found != NULL) {
			found = __atomic_exchange_n(&load->slot, NULL, __ATOMIC_ACQ_REL);
		}
		if (found != NULL) {
			(void)found->run(found);
		}
	}
	bench_word_raise(&load->ended);
	return 0;
}

/* ---- outside ---- */

static int await_count(const uint32_t *word, uint32_t count)
{
	uint32_t value;
	int rc = 0;

	while (rc == 0 && (value = bench_word_read(word)) < count) {
		rc = bench_word_wait(word, value);
	}
	return rc;
}

int load_begin(struct load *load, bool in_loops)
{
	__atomic_store_n(&load->is_over, 0, __ATOMIC_RELEASE);
	load->begun = 0;
	load->ended = 0;
	load->error = 0;
	load->slot = NULL;
	for (uint32_t i = 0; i < load->worker_count; i++) {
		struct load_worker *worker = &load->workers[i];
		int rc;

		worker->turn.run = in_loops ? loop : begin_tasks;
		rc = pinion_task_spawn_on(load->runtime, load->first_index + i, &worker->turn);
		if (rc != 0) {
			report_line("cannot spawn: %s", report_reason(rc));
			return rc;
		}
	}
	return await_count(&load->begun, load->worker_count);
}

void load_abandon(struct load *load)
{
	__atomic_store_n(&load->is_over, 1, __ATOMIC_RELEASE);
}

int load_end(struct load *load)
{
	bool in_loops = load->worker_count > 0 && load->workers[0].turn.run == loop;
	int rc;

	load_abandon(load);
	rc = await_count(&load->ended, load->worker_count * (in_loops ? 1 : LOAD_TASKS));
	if (rc == 0 && load->error != 0) {
		rc = load->error;
		report_line("the load ended early: %s", report_reason(rc));
	}
	return rc;
}

uint64_t load_runs(const struct load *load, bool is_low)
{
	uint64_t runs = 0;

	for (uint32_t i = 0; i < load->worker_count; i++) {
		for (int j = 0; j < LOAD_TASKS; j++) {
			const struct busy_task *busy = &load->workers[i].tasks[j];

			runs += ((busy->task.flags & PINION_TASK_LOW) != 0) == is_low ? busy->runs
										      : 0;
		}
	}
	return runs;
}

static void init_worker(struct load *load, uint32_t index)
{
	struct load_worker *worker = &load->workers[index];

	worker->load = load;
	worker->random = 88172645463325252u + index;
	for (uint32_t i = 0; i < LOAD_TASKS; i++) {
		worker->tasks[i].task.run = busy_run;
		worker->tasks[i].task.flags = i < load->low_count ? PINION_TASK_LOW : 0;
		worker->tasks[i].load = load;
		worker->tasks[i].random = worker->random + (i + 1) * 1000003u;
	}
}

int load_init(struct load *load, struct pinion_runtime *runtime)
{
	load->runtime = runtime;
	load->worker_count = pinion_runtime_worker_count(runtime) - load->first_index;
	load->workers = bench_allocate(load->worker_count * sizeof(*load->workers));
	if (load->workers == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < load->worker_count; i++) {
		init_worker(load, i);
	}
	return 0;
}

void load_fini(struct load *load)
{
	free(load->workers);
	load->workers = NULL;
}
