/* SPDX-License-Identifier: MIT */
/*
 * Goal: a thread pool has the seed's classes and sizes: by default, preset and
 * by environment, each within its range; and runs jobs of all lanes without a
 * ring. WP-1, WP-3, WP-12, WP-27, WP-28, WP-29, WP-31, WP-32, W44. Method:
 * tables of sizes; a check of the workers of a thread pool; a job in each lane.
 */
#include "runtime/worker/state.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pinion/thread_pool.h>

enum {
	JOBS = 300,
	LIMIT_SECONDS = 60,
};

static void expect_sizes(const char *what, const struct pinion_thread_pool_sizes *sizes,
	uint32_t high, uint32_t medium, uint32_t low)
{
	char expected[64];
	char got[64];

	snprintf(expected, sizeof(expected), "%u %u %u", high, medium, low);
	snprintf(got, sizeof(got), "%u %u %u", sizes->high, sizes->medium, sizes->low);
	expect_text(what, expected, got);
}

static void check_presets(void)
{
	static const struct {
		uint32_t preset;
		uint32_t cpu_count;
		uint32_t high, medium, low;
	} rows[] = {
		{PINION_THREAD_POOL_CONSERVATIVE, 1, 1, 1, 1},
		{PINION_THREAD_POOL_CONSERVATIVE, 7, 1, 1, 1},
		{PINION_THREAD_POOL_CONSERVATIVE, 16, 1, 4, 4},
		{PINION_THREAD_POOL_BALANCED, 1, 1, 2, 1},
		{PINION_THREAD_POOL_BALANCED, 64, 1, 2, 1},
		{PINION_THREAD_POOL_AGGRESSIVE, 1, 2, 2, 1},
		{PINION_THREAD_POOL_AGGRESSIVE, 4, 2, 2, 2},
		{PINION_THREAD_POOL_AGGRESSIVE, 16, 2, 8, 8},
	};
	struct pinion_thread_pool_sizes sizes = {7, 7, 7};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(rows); i++) {
		expect_number("preset", 0,
			pinion_thread_pool_sizes_init(&sizes, rows[i].preset, rows[i].cpu_count));
		expect_sizes("sizes", &sizes, rows[i].high, rows[i].medium, rows[i].low);
	}
	expect_number("this machine", 0,
		pinion_thread_pool_sizes_init(&sizes, PINION_THREAD_POOL_AGGRESSIVE, 0));
	expect_true("has CPUs", sizes.medium >= 2 && sizes.low >= 1);
	expect_number("no preset", -EINVAL, pinion_thread_pool_sizes_init(&sizes, 3, 4));
}

static void check_bad_environment(const char *name, const char *value)
{
	struct pinion_thread_pool_sizes sizes = {5, 6, 7};
	char words[128];

	runtimes_log[0] = '\0';
	setenv(name, value, 1);
	expect_number(
		value, -EINVAL, pinion_thread_pool_sizes_from_env(&sizes, runtimes_note, NULL));
	snprintf(words, sizeof(words), "%s: \"%s\" is not a number of workers from %d to 1024\n",
		name, value, strstr(name, "LOW") != NULL ? 1 : 0);
	expect_text("the message", words, runtimes_log);
	expect_sizes("left as they were", &sizes, 5, 6, 7);
	expect_number(
		"without a log", -EINVAL, pinion_thread_pool_sizes_from_env(&sizes, NULL, NULL));
	unsetenv(name);
}

static void check_environment(void)
{
	struct pinion_thread_pool_sizes sizes = {5, 6, 7};

	expect_number("nothing set", 0, pinion_thread_pool_sizes_from_env(&sizes, NULL, NULL));
	expect_sizes("nothing set", &sizes, 5, 6, 7);
	setenv("WORKER_POOL_HIGH", "2", 1);
	setenv("WORKER_POOL_MEDIUM", "4", 1);
	setenv("WORKER_POOL_LOW", "1024", 1);
	expect_number("the seed's", 0, pinion_thread_pool_sizes_from_env(&sizes, NULL, NULL));
	expect_sizes("the seed's names", &sizes, 2, 4, 1024);
	setenv("PINION_THREAD_POOL_HIGH", "0", 1);
	setenv("PINION_THREAD_POOL_MEDIUM", "0", 1);
	setenv("PINION_THREAD_POOL_LOW", "1", 1);
	expect_number("ours", 0, pinion_thread_pool_sizes_from_env(&sizes, NULL, NULL));
	expect_sizes("our names come first", &sizes, 0, 0, 1);
	unsetenv("PINION_THREAD_POOL_HIGH");
	unsetenv("PINION_THREAD_POOL_MEDIUM");
	unsetenv("PINION_THREAD_POOL_LOW");
	unsetenv("WORKER_POOL_HIGH");
	unsetenv("WORKER_POOL_MEDIUM");
	unsetenv("WORKER_POOL_LOW");
	check_bad_environment("PINION_THREAD_POOL_HIGH", "1025");
	check_bad_environment("PINION_THREAD_POOL_MEDIUM", "-1");
	check_bad_environment("PINION_THREAD_POOL_LOW", "0");
	check_bad_environment("WORKER_POOL_HIGH", "two");
	check_bad_environment("WORKER_POOL_MEDIUM", " 2");
	check_bad_environment("WORKER_POOL_LOW", "99999999999999999999");
}

static struct pin_atomic_u32 found;
static char classes[64];

static int look(struct pinion_task *task)
{
	static const char *const names[] = {"", "H", "?", "HM", "?", "?", "?", "HML"};
	const struct pin_shared *shared = pin_worker_current()->shared;

	(void)task;
	classes[0] = '\0';
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		strcat(classes, names[shared->workers[i].worker_class->order.mask]);
		strcat(classes, " ");
	}
	tasks_signal(&found);
	return 0;
}

static void expect_classes(const struct pinion_thread_pool_sizes *sizes, const char *expected)
{
	struct pinion_task task = {.run = look};
	struct pinion_runtime *thread_pool = NULL;
	struct pinion_runtime_info facts;

	expect_number("create", 0, pinion_thread_pool_create(NULL, sizes, &thread_pool));
	expect_number("spawn", 0, pinion_task_spawn(thread_pool, &task));
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	expect_text("classes", expected, classes);
	pinion_runtime_get_info(thread_pool, &facts, sizeof(facts));
	expect_number("rings", 0, facts.uses_ring);
	expect_number("bound", 0, facts.workers_bound);
	pinion_runtime_destroy(thread_pool);
}

static struct pin_atomic_u32 done;

static int count(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_seq_cst_u32(&done, 1);
	return 0;
}

static void check_jobs(void)
{
	static struct pinion_task jobs[JOBS];
	struct pinion_runtime *thread_pool = NULL;
	struct pinion_lane_stats metrics;
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	expect_number("strict", 0, runtimes_tuning.lane_floor);
	expect_number("a deep high lane", 100, runtimes_tuning.high_warn_depth);
	expect_number("a deep normal lane", 100, runtimes_tuning.normal_warn_depth);
	expect_number("a deep low lane", 100, runtimes_tuning.low_warn_depth);
	expect_number("create", 0, pinion_thread_pool_create(&config, NULL, &thread_pool));
	for (uint32_t i = 0; i < JOBS; i++) {
		jobs[i] = (struct pinion_task){
			.run = count, .flags = pinion_lane_flags((enum pinion_lane)(i % 3))};
		expect_number("spawn", 0, pinion_task_spawn(thread_pool, &jobs[i]));
	}
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	expect_number("jobs", JOBS, pin_load_acquire_u32(&done));
	expect_number("metrics", 0,
		pinion_runtime_get_lane_stats(thread_pool, &metrics, sizeof(metrics)));
	expect_number("completed", JOBS, (long long)metrics.jobs_completed);
	expect_number("of high", JOBS / 3, (long long)metrics.high_jobs_run);
	expect_number("of low", JOBS / 3, (long long)metrics.low_jobs_run);
	pinion_runtime_destroy(thread_pool);
}

static void check_refused(void)
{
	struct {
		struct pinion_config config;
		uint64_t unknown;
	} newer;
	struct pinion_thread_pool_sizes no_low = {1, 1, 0};
	struct pinion_thread_pool_sizes too_many = {1025, 1, 1};
	struct pinion_runtime *thread_pool = NULL;
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.log = runtimes_note;
	runtimes_log[0] = '\0';
	expect_number("no low", -EINVAL, pinion_thread_pool_create(&config, &no_low, &thread_pool));
	expect_true("the message names field and value",
		strstr(runtimes_log, "sizes.low=0 of a thread pool is not from 1 to 1024") != NULL);
	runtimes_log[0] = '\0';
	expect_number("too many, logged", -EINVAL,
		pinion_thread_pool_create(&config, &too_many, &thread_pool));
	expect_true("one message, of that field",
		strstr(runtimes_log, "sizes.high=1025 of a thread pool is not from 0 to 1024") !=
				NULL &&
			strstr(runtimes_log, "sizes.low") == NULL);
	expect_number(
		"too many", -EINVAL, pinion_thread_pool_create(NULL, &too_many, &thread_pool));
	config.size = 8;
	expect_number("size", -EINVAL, pinion_thread_pool_create(&config, NULL, &thread_pool));
	pinion_thread_pool_config_init(&newer.config);
	newer.config.tuning = runtimes_thread_pool_tuning();
	newer.config.size = sizeof(newer);
	newer.unknown = 1;
	expect_number("unknown tail", -E2BIG,
		pinion_thread_pool_create(&newer.config, NULL, &thread_pool));
	expect_true("nothing was made", thread_pool == NULL);
}

int main(void)
{
	struct pinion_thread_pool_sizes few = {0, 0, 2};
	struct pinion_thread_pool_sizes some = {2, 0, 1};

	runtimes_watchdog(LIMIT_SECONDS);
	check_presets();
	check_environment();
	expect_classes(NULL, "H HM HM HML ");
	expect_classes(&few, "HML HML ");
	expect_classes(&some, "H H HML ");
	check_jobs();
	check_refused();
	return expect_status();
}
