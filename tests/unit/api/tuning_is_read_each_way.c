/* SPDX-License-Identifier: MIT */
/*
 * Goal: each field of a runtime's configuration has the value that it is given,
 * and no other changes, whether the struct says it or the environment; said in
 * neither way it has its default, and so has all of a tuning that is NULL.
 * Method: a table with the default and another value of each field, and a check
 * that it covers both structs. A runtime and a thread pool without a tuning.
 */
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/worker/state.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"

#include <ctype.h>
#include <pinion/thread_pool.h>

struct both {
	struct pinion_config config;
	struct pinion_tuning tuning;
};

struct knob {
	const char *name;
	size_t offset;
	size_t bytes;
	const char *variable;
	uint64_t standard;
	const char *text; /* in the environment, of `value` */
	uint64_t value;	  /* another one */
};

#define KNOB(part, field, variable, standard, text, value) \
	{ \
#field, offsetof(struct both, part.field), sizeof(((struct both *)0)->part.field), \
			variable, standard, text, value \
	}

static const struct knob knobs[] = {
	KNOB(config, worker_count, "PINION_WORKER_COUNT", 0, "1", 1),
	KNOB(tuning, use_smt, "PINION_USE_SMT", 0, "1", 1),
	KNOB(config, bind_workers, "PINION_BIND_WORKERS", PINION_BIND_CORE, "node",
		PINION_BIND_NODE),
	KNOB(tuning, ring_entries, "PINION_RING_ENTRIES", 256, "512", 512),
	KNOB(tuning, ring_helper_count, "PINION_RING_HELPER_COUNT", 16, "17", 17),
	KNOB(tuning, budget_polls, "PINION_BUDGET_POLLS", 128, "129", 129),
	KNOB(tuning, budget_us, "PINION_BUDGET_US", 500, "501", 501),
	KNOB(config, buffer_bytes, "PINION_BUFFER_BYTES", 1 << 20, "2097152", 2097152),
	KNOB(config, buffer_count, "PINION_BUFFER_COUNT", 0, "1", 1),
	KNOB(config, small_buffer_bytes, "PINION_SMALL_BUFFER_BYTES", 64 << 10, "131072", 131072),
	KNOB(config, small_buffer_count, "PINION_SMALL_BUFFER_COUNT", 48, "49", 49),
	KNOB(config, io_level, "PINION_IO_LEVEL", PINION_IO_AUTO, "fallback", PINION_IO_FALLBACK),
	KNOB(tuning, ring_sharing, "PINION_RING_SHARING", PINION_RING_OWN, "shared",
		PINION_RING_SHARED),
	KNOB(tuning, queue_order, "PINION_QUEUE_ORDER", PINION_QUEUE_FIFO, "lifo",
		PINION_QUEUE_LIFO),
	KNOB(tuning, queue_tasks, "PINION_QUEUE_TASKS", 256, "512", 512),
	KNOB(tuning, lifo_polls, "PINION_LIFO_POLLS", 3, "4", 4),
	KNOB(tuning, wake_batch_spawns, "PINION_WAKE_BATCH_SPAWNS", 32, "33", 33),
	KNOB(tuning, steal_tries, "PINION_STEAL_TRIES", 4, "5", 5),
	KNOB(tuning, spin_iters, "PINION_SPIN_ITERS", 200, "201", 201),
	KNOB(tuning, park_timeout_us, "PINION_PARK_TIMEOUT_US", 0, "1", 1),
	KNOB(tuning, injector_target_us, "PINION_INJECTOR_TARGET_US", 1000, "1001", 1001),
	KNOB(tuning, interval_min, "PINION_INTERVAL_MIN", 8, "9", 9),
	KNOB(tuning, interval_max, "PINION_INTERVAL_MAX", 255, "256", 256),
	KNOB(tuning, ewma_alpha_permille, "PINION_EWMA_ALPHA_PERMILLE", 100, "101", 101),
	KNOB(tuning, task_ns, "PINION_TASK_NS", 50000, "50001", 50001),
	KNOB(tuning, wake_policy, "PINION_WAKE_POLICY", PINION_WAKE_NEAR, "rotate",
		PINION_WAKE_ROTATE),
	KNOB(tuning, fault_policy, "PINION_FAULT_POLICY", PINION_FAULT_ISOLATE, "fail_fast",
		PINION_FAULT_FAIL_FAST),
	KNOB(config, pool_bytes, "PINION_POOL_BYTES", 0, "8192", 8192),
	KNOB(tuning, watchdog_us, "PINION_WATCHDOG_US", 10000, "10001", 10001),
	KNOB(tuning, io_without, "PINION_IO_WITHOUT", 0, "openat,no-iowait",
		PINION_IO_OPENAT | PINION_IO_NO_IOWAIT),
	KNOB(tuning, lane_floor, "PINION_LANE_FLOOR", 16, "17", 17),
	KNOB(tuning, low_max_wait_ms, "PINION_LOW_MAX_WAIT_MS", 0, "1", 1),
	KNOB(tuning, assist, "PINION_ASSIST", PINION_ASSIST_OFF, "idle", PINION_ASSIST_IDLE),
	KNOB(tuning, assist_reserve, "PINION_ASSIST_RESERVE", 1, "2", 2),
	KNOB(tuning, high_warn_depth, "PINION_HIGH_WARN_DEPTH", 100, "101", 101),
	KNOB(tuning, normal_warn_depth, "PINION_NORMAL_WARN_DEPTH", 0, "1", 1),
	KNOB(tuning, low_warn_depth, "PINION_LOW_WARN_DEPTH", 0, "1", 1),
	KNOB(tuning, polled, "PINION_POLLED", PINION_POLLED_NEVER, "always", PINION_POLLED_ALWAYS),
	KNOB(tuning, tick_interval_ms, "PINION_TICK_INTERVAL_MS", 1000, "1001", 1001),
	KNOB(tuning, registered_files, "PINION_REGISTERED_FILES", 256, "512", 512),
	KNOB(tuning, stack_bytes, "PINION_STACK_BYTES", 0, "131072", 131072),
	KNOB(tuning, thread_pool_max, "PINION_THREAD_POOL_MAX", 0, "1", 1),
	KNOB(tuning, job_log, "PINION_JOB_LOG", 0, "1", 1),
	KNOB(tuning, max_tasks_high, "PINION_MAX_TASKS_HIGH", 0, "1", 1),
	KNOB(tuning, max_tasks_normal, "PINION_MAX_TASKS_NORMAL", 0, "1", 1),
	KNOB(tuning, max_tasks_low, "PINION_MAX_TASKS_LOW", 0, "1", 1),
	KNOB(tuning, max_tasks_total, "PINION_MAX_TASKS_TOTAL", 0, "1", 1),
	KNOB(tuning, depth_count, "PINION_DEPTH_COUNT", 0, "1", 1),
	KNOB(tuning, depth_min, "PINION_DEPTH_MIN", 8, "9", 9),
	KNOB(tuning, depth_count_max, "PINION_DEPTH_COUNT_MAX", 1024, "1025", 1025),
	KNOB(tuning, depth_rotational, "PINION_DEPTH_ROTATIONAL", 4, "5", 5),
	KNOB(tuning, depth_bytes, "PINION_DEPTH_BYTES", 0, "1", 1),
	KNOB(tuning, depth_bytes_max, "PINION_DEPTH_BYTES_MAX", 64 << 20, "67108865", 67108865),
	KNOB(tuning, bytes_per_second, "PINION_BYTES_PER_SECOND", 0, "1", 1),
	KNOB(tuning, requests_per_second, "PINION_REQUESTS_PER_SECOND", 0, "1", 1),
	KNOB(tuning, stall_ms, "PINION_STALL_MS", 100, "1", 1),
	KNOB(tuning, injector_batch_min, "PINION_INJECTOR_BATCH_MIN", 4, "5", 5),
	KNOB(tuning, injector_batch_max, "PINION_INJECTOR_BATCH_MAX", 64, "65", 65),
	KNOB(tuning, injector_tasks, "PINION_INJECTOR_TASKS", 65536, "65537", 65537),
	KNOB(tuning, searchers_percent, "PINION_SEARCHERS_PERCENT", 50, "51", 51),
	KNOB(tuning, wake_worth_us, "PINION_WAKE_WORTH_US", 20, "21", 21),
	KNOB(tuning, spawn_wake_us, "PINION_SPAWN_WAKE_US", 100, "101", 101),
	KNOB(tuning, class_nice, "PINION_CLASS_NICE", 0, "1", 1),
	KNOB(tuning, io_priority_high, "PINION_IO_PRIORITY_HIGH", PINION_IO_PRIORITY_NONE, "be0",
		PINION_IO_PRIORITY_BE0),
	KNOB(tuning, io_priority_low, "PINION_IO_PRIORITY_LOW", PINION_IO_PRIORITY_BE7, "idle",
		PINION_IO_PRIORITY_IDLE),
	KNOB(tuning, cq_stall_us, "PINION_CQ_STALL_US", 0, "1", 1),
	KNOB(tuning, cpu_latency_us, "PINION_CPU_LATENCY_US", PINION_CPU_LATENCY_ANY, "5", 5),
	KNOB(tuning, buffer_rest_ms, "PINION_BUFFER_REST_MS", 1000, "7", 7),
	KNOB(tuning, metrics_page, "PINION_METRICS_PAGE", 1, "0", 0),
	KNOB(tuning, trace_events, "PINION_TRACE_EVENTS", 0, "32", 32),
	KNOB(tuning, seed, "PINION_SEED", UINT64_C(0x853c49e6748fea9b), "0x17", 0x17),
};

/* Pointers, and what each struct has for itself. */
static const struct {
	size_t offset;
	size_t bytes;
} others[] = {
#define OTHER(member) \
	{ \
		offsetof(struct both, member), sizeof(((struct both *)0)->member) \
	}
	OTHER(config.size),
	OTHER(config.lanes),
	OTHER(config.log),
	OTHER(config.log_arg),
	OTHER(config.log_record),
	OTHER(config.log_dropped), /* no variable of the library sets it */
	OTHER(config.is_driven),   /* nor this: it is the program that has a loop */
	OTHER(config.reserved),
	OTHER(config.after_start),
	OTHER(config.before_park),
	OTHER(config.before_stop),
	OTHER(config.on_tick),
	OTHER(config.hook_arg),
	OTHER(config.tuning),
	OTHER(tuning.metrics_file),
	OTHER(tuning.size),
	OTHER(tuning.allocator),
	OTHER(tuning.arena_map),
	OTHER(tuning.arena_unmap),
	OTHER(tuning.arena_arg),
};

/* Little end first, as on every machine this runs on. */
static void set(struct both *both, const struct knob *knob, uint64_t value)
{
	memcpy((uint8_t *)both + knob->offset, &value, knob->bytes);
}

static void init(struct both *both)
{
	memset(both, 0, sizeof(*both));
	pinion_config_init(&both->config);
	pinion_tuning_init(&both->tuning);
}

/* Every default as the table has it. */
static void init_expected(struct both *both)
{
	memset(both, 0, sizeof(*both));
	both->config.size = sizeof(both->config);
	both->tuning.size = sizeof(both->tuning);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(knobs); i++) {
		set(both, &knobs[i], knobs[i].standard);
	}
}

static void check_equal(
	const char *name, const char *way, const struct both *expected, const struct both *got)
{
	for (size_t i = 0; i < sizeof(*got); i++) {
		if (((const uint8_t *)expected)[i] != ((const uint8_t *)got)[i]) {
			printf("%s %s: expected %u in byte %zu, got %u\n", name, way,
				((const uint8_t *)expected)[i], i, ((const uint8_t *)got)[i]);
			expect_failure_count++;
			return;
		}
	}
}

static void check_accepted(const char *name, const char *way, const struct both *expected,
	const struct pinion_config *given)
{
	struct both got;

	memset(&got, 0, sizeof(got));
	expect_number(name, 0, pin_config_accept(&got.config, &got.tuning, given));
	got.config.log = NULL;
	check_equal(name, way, expected, &got);
}

static void check_defaults(void)
{
	struct both expected;
	struct both both;

	init_expected(&expected);
	init(&both);
	check_equal("all", "as initialised", &expected, &both);
	check_accepted("all", "without a tuning", &expected, &both.config);
	both.config.tuning = &both.tuning;
	check_accepted("all", "with one of defaults", &expected, &both.config);
}

static void check_knob(const struct knob *knob)
{
	struct both expected;
	struct both both;

	init_expected(&expected);
	set(&expected, knob, knob->value);
	init(&both);
	set(&both, knob, knob->value);
	both.config.tuning = &both.tuning;
	both.config.log = runtimes_note;
	check_accepted(knob->name, "by its struct", &expected, &both.config);
	init(&both);
	both.config.log = runtimes_note;
	setenv(knob->variable, knob->text, 1);
	expect_number(knob->variable, 0, pinion_config_from_env(&both.config, &both.tuning));
	unsetenv(knob->variable);
	expect_true("it is used", both.config.tuning == &both.tuning);
	check_accepted(knob->name, "by the environment", &expected, &both.config);
	expect_text(knob->variable, "", runtimes_log);
}

/* A variable that goes nowhere is a warning, and a bad value no error. */
static void check_unused(const struct knob *knob)
{
	struct pinion_config config;
	bool is_tuning = knob->offset >= offsetof(struct both, tuning);

	pinion_config_init(&config);
	config.log = runtimes_note;
	runtimes_log[0] = '\0';
	setenv(knob->variable, is_tuning ? "no value" : knob->text, 1);
	expect_number(knob->variable, 0, pinion_config_from_env(&config, NULL));
	unsetenv(knob->variable);
	expect_true("no tuning", config.tuning == NULL);
	if (is_tuning != (strstr(runtimes_log, "has no effect") != NULL) ||
		is_tuning != (strstr(runtimes_log, knob->variable) != NULL)) {
		printf("%s: %s warning, got \"%s\"\n", knob->variable,
			is_tuning ? "expected a" : "expected no", runtimes_log);
		expect_failure_count++;
	}
	runtimes_log[0] = '\0';
}

static void check_covered(void)
{
	uint8_t is_covered[sizeof(struct both)] = {0};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(knobs); i++) {
		memset(&is_covered[knobs[i].offset], 1, knobs[i].bytes);
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(others); i++) {
		memset(&is_covered[others[i].offset], 1, others[i].bytes);
	}
	for (size_t i = 0; i < sizeof(is_covered); i++) {
		if (is_covered[i] == 0) {
			printf("byte %zu: expected a row of the table, got none\n", i);
			expect_failure_count++;
		}
	}
}

/* Found without a table: PINION_ and the name in capitals. */
static void check_variables(void)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(knobs); i++) {
		char variable[64];
		size_t length =
			(size_t)snprintf(variable, sizeof(variable), "PINION_%s", knobs[i].name);

		for (size_t j = 0; j < length; j++) {
			variable[j] = (char)toupper((unsigned char)variable[j]);
		}
		expect_text(knobs[i].name, variable, knobs[i].variable);
	}
}

static void check_runtime(void)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_tuning standard;
	struct pinion_config config;

	pinion_tuning_init(&standard);
	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	config.tuning = NULL;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_ready("runtime", runtime != NULL);
	expect_number(
		"a runtime's", 0, memcmp(&standard, &runtime->shared.tuning, sizeof(standard)));
	pinion_runtime_destroy(runtime);
}

static void check_thread_pool(void)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_tuning tuning;
	struct pinion_tuning standard;
	struct pinion_config config;

	pinion_thread_pool_tuning_init(&tuning);
	pinion_tuning_init(&standard);
	standard.lane_floor = 0;
	standard.stall_ms = 0;
	standard.high_warn_depth = 100;
	standard.normal_warn_depth = 100;
	standard.low_warn_depth = 100;
	expect_number("as initialised", 0, memcmp(&standard, &tuning, sizeof(standard)));
	pinion_thread_pool_config_init(&config);
	expect_true("none", config.tuning == NULL);
	expect_number("create", 0, pinion_thread_pool_create(&config, NULL, &runtime));
	expect_ready("thread pool", runtime != NULL);
	expect_number(
		"a thread pool's", 0, memcmp(&standard, &runtime->shared.tuning, sizeof(standard)));
	pinion_runtime_destroy(runtime);
}

/* As for the configuration itself. */
static void check_sizes(void)
{
	struct {
		struct pinion_tuning known;
		uint64_t unknown;
	} newer = {.unknown = 1};
	struct pinion_config config;
	struct both accepted;

	pinion_config_init(&config);
	pinion_tuning_init_sized(&newer.known, sizeof(newer));
	config.tuning = &newer.known;
	expect_number("newer", 0, pin_config_accept(&accepted.config, &accepted.tuning, &config));
	expect_number("its size", sizeof(accepted.tuning), accepted.tuning.size);
	newer.unknown = 1;
	expect_number("newer, and used", -E2BIG,
		pin_config_accept(&accepted.config, &accepted.tuning, &config));
	newer.known.size = sizeof(newer.known) - 4;
	expect_number("shorter than any", -EINVAL,
		pin_config_accept(&accepted.config, &accepted.tuning, &config));
	newer.known.size = 0;
	expect_number("never initialised", -EINVAL,
		pin_config_accept(&accepted.config, &accepted.tuning, &config));
}

int main(void)
{
	unsetenv("PINION_LANES");
	for (size_t i = 0; i < PIN_ARRAY_COUNT(knobs); i++) {
		unsetenv(knobs[i].variable);
	}
	check_covered();
	check_variables();
	check_defaults();
	for (size_t i = 0; i < PIN_ARRAY_COUNT(knobs); i++) {
		check_knob(&knobs[i]);
		check_unused(&knobs[i]);
	}
	check_sizes();
	check_runtime();
	check_thread_pool();
	return expect_status();
}
