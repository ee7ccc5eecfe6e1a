/* SPDX-License-Identifier: MIT */
/*
 * Goal: a long task that keeps a cursor and yields as its policy says shares
 * its worker: others run between its stretches, and it does all its units
 * (EX-55).
 * Method: two such tasks on one worker; each notes its turn. A third task
 * spawns both, so that both are there before the first begins. How exactly a
 * worker orders its tasks is not this test's: a few turns in a row are fair.
 */
#include "tests/support/runtimes.h"

#include "runtime/base/base.h"

enum {
	UNITS = 640,
	TURNS_MAX = 2 * UNITS + 2,
	IN_A_ROW_MAX = 4,
};

struct job {
	struct pinion_task task;
	struct pinion_yield yield;
	uint32_t next;
	char name;
};

static struct pinion_runtime *runtime;
static struct job jobs[2];
static char turns[TURNS_MAX];
static uint32_t turn_count;

static int run_job(struct pinion_task *task)
{
	struct job *job = PIN_CONTAINER_OF(task, struct job, task);

	turns[turn_count++] = job->name;
	while (job->next < UNITS) {
		job->next++;
		if (pinion_yield_due(&job->yield, 1)) {
			return pinion_task_respawn(runtime, &job->task);
		}
	}
	return 0;
}

static int spawn_both(struct pinion_task *task)
{
	(void)task;
	for (size_t i = 0; i < PIN_ARRAY_COUNT(jobs); i++) {
		if (pinion_task_spawn(runtime, &jobs[i].task) != 0) {
			abort();
		}
	}
	return 0;
}

static uint32_t longest_row(void)
{
	uint32_t longest = 0;
	uint32_t row = 0;

	for (uint32_t i = 0; i < turn_count; i++) {
		row = i > 0 && turns[i] == turns[i - 1] ? row + 1 : 1;
		longest = row > longest ? row : longest;
	}
	return longest;
}

static void check(uint32_t kind, uint64_t limit, uint32_t expected_turns)
{
	struct pinion_task starter = {.run = spawn_both};

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	turn_count = 0;
	for (size_t i = 0; i < PIN_ARRAY_COUNT(jobs); i++) {
		jobs[i] = (struct job){.task.run = run_job, .name = (char)('a' + i)};
		expect_number("init", 0, pinion_yield_init(&jobs[i].yield, kind, limit));
	}
	expect_number("spawn", 0, pinion_task_spawn(runtime, &starter));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("turns", expected_turns, turn_count);
	expect_true("no job has many turns in a row", longest_row() <= IN_A_ROW_MAX);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(jobs); i++) {
		expect_number("units done", UNITS, jobs[i].next);
	}
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(60);
	/* One turn more than yields: the last finds nothing left to do. */
	check(PINION_YIELD_NEVER, 0, 2);
	check(PINION_YIELD_EVERY_N, 0, 2 * (UNITS / 64 + 1));
	check(PINION_YIELD_UNITS, 80, 2 * (UNITS / 80 + 1));
	check(PINION_YIELD_ALWAYS, 0, TURNS_MAX);
	return expect_status();
}
