/* SPDX-License-Identifier: MIT */
/*
 * Goal: each PINION_* variable sets its field and no other; bad values are
 * -EINVAL, leave the field, and the message names the variable.
 * Method: a table of variable and value, each alone in the environment.
 */
#include "runtime/api/internal.h"
#include "runtime/host/kernel.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"

#include <errno.h>

struct both {
	struct pinion_config config;
	struct pinion_tuning tuning;
};

struct variable {
	const char *name;
	const char *text;
	size_t offset;
	size_t bytes;
	uint64_t expected; /* BAD: refused */
};

#define BAD UINT64_MAX
#define ROW(name, text, member, expected) \
	{ \
		name, text, offsetof(struct both, member), sizeof(((struct both *)0)->member), \
			expected \
	}
#define VARIABLE(name, text, field, expected) ROW(name, text, config.field, expected)
#define TUNING(name, text, field, expected) ROW(name, text, tuning.field, expected)

static const struct variable variables[] = {
	VARIABLE("PINION_WORKER_COUNT", "0", worker_count, 0),
	VARIABLE("PINION_WORKER_COUNT", "7", worker_count, 7),
	VARIABLE("PINION_WORKER_COUNT", "4096", worker_count, 4096),
	VARIABLE("PINION_WORKER_COUNT", "4097", worker_count, BAD),
	VARIABLE("PINION_WORKER_COUNT", "-1", worker_count, BAD),
	VARIABLE("PINION_WORKER_COUNT", " -1", worker_count, BAD),
	VARIABLE("PINION_WORKER_COUNT", "4294967297", worker_count, BAD),
	VARIABLE("PINION_WORKER_COUNT", "18446744073709551617", worker_count, BAD),
	VARIABLE("PINION_WORKER_COUNT", "4x", worker_count, BAD),
	VARIABLE("PINION_WORKER_COUNT", "4 ", worker_count, BAD),
	VARIABLE("PINION_WORKER_COUNT", "many", worker_count, BAD),
	VARIABLE("PINION_BIND_WORKERS", "none", bind_workers, PINION_BIND_NONE),
	VARIABLE("PINION_BIND_WORKERS", "core", bind_workers, PINION_BIND_CORE),
	VARIABLE("PINION_BIND_WORKERS", "node", bind_workers, PINION_BIND_NODE),
	VARIABLE("PINION_BIND_WORKERS", "1", bind_workers, BAD),
	VARIABLE("PINION_BIND_WORKERS", "pu", bind_workers, BAD),
	VARIABLE("PINION_IO_LEVEL", "auto", io_level, PINION_IO_AUTO),
	VARIABLE("PINION_IO_LEVEL", "fallback", io_level, PINION_IO_FALLBACK),
	VARIABLE("PINION_IO_LEVEL", "ring", io_level, PINION_IO_RING),
	VARIABLE("PINION_IO_LEVEL", "ring-basic", io_level, PINION_IO_RING_BASIC),
	VARIABLE("PINION_IO_LEVEL", "ring-coop", io_level, PINION_IO_RING_COOP),
	VARIABLE("PINION_IO_LEVEL", "ring-defer", io_level, PINION_IO_RING_DEFER),
	VARIABLE("PINION_IO_LEVEL", "ring-message", io_level, PINION_IO_RING_MESSAGE),
	VARIABLE("PINION_IO_LEVEL", "ring-", io_level, BAD),
	VARIABLE("PINION_IO_LEVEL", "Ring", io_level, BAD),
	VARIABLE("PINION_IO_LEVEL", "1", io_level, BAD),
	VARIABLE("PINION_IO_LEVEL", "uring", io_level, BAD),
	TUNING("PINION_LANE_FLOOR", "0", lane_floor, 0),
	TUNING("PINION_LANE_FLOOR", "65536", lane_floor, BAD),
	TUNING("PINION_LOW_MAX_WAIT_MS", "5000", low_max_wait_ms, 5000),
	TUNING("PINION_LOW_MAX_WAIT_MS", "86400001", low_max_wait_ms, BAD),
	TUNING("PINION_ASSIST", "off", assist, PINION_ASSIST_OFF),
	TUNING("PINION_ASSIST", "idle", assist, PINION_ASSIST_IDLE),
	TUNING("PINION_ASSIST", "always", assist, BAD),
	TUNING("PINION_ASSIST_RESERVE", "2", assist_reserve, 2),
	TUNING("PINION_ASSIST_RESERVE", "4097", assist_reserve, BAD),
	TUNING("PINION_HIGH_WARN_DEPTH", "0", high_warn_depth, 0),
	TUNING("PINION_HIGH_WARN_DEPTH", "4294967296", high_warn_depth, BAD),
	TUNING("PINION_NORMAL_WARN_DEPTH", "7", normal_warn_depth, 7),
	TUNING("PINION_NORMAL_WARN_DEPTH", "x", normal_warn_depth, BAD),
	TUNING("PINION_LOW_WARN_DEPTH", "7", low_warn_depth, 7),
	TUNING("PINION_LOW_WARN_DEPTH", "-7", low_warn_depth, BAD),
	TUNING("PINION_USE_SMT", "0", use_smt, 0),
	TUNING("PINION_USE_SMT", "1", use_smt, 1),
	TUNING("PINION_USE_SMT", "2", use_smt, BAD),
	TUNING("PINION_USE_SMT", "fifo", use_smt, BAD),
	TUNING("PINION_RING_HELPER_COUNT", "1", ring_helper_count, 1),
	TUNING("PINION_RING_HELPER_COUNT", "1024", ring_helper_count, 1024),
	TUNING("PINION_RING_HELPER_COUNT", "0", ring_helper_count, BAD),
	TUNING("PINION_RING_HELPER_COUNT", "1025", ring_helper_count, BAD),
	TUNING("PINION_RING_HELPER_COUNT", "fifo", ring_helper_count, BAD),
	TUNING("PINION_BUDGET_POLLS", "1", budget_polls, 1),
	TUNING("PINION_BUDGET_POLLS", "65535", budget_polls, 65535),
	TUNING("PINION_BUDGET_POLLS", "0", budget_polls, BAD),
	TUNING("PINION_BUDGET_POLLS", "65536", budget_polls, BAD),
	TUNING("PINION_BUDGET_POLLS", "fifo", budget_polls, BAD),
	TUNING("PINION_BUDGET_US", "1", budget_us, 1),
	TUNING("PINION_BUDGET_US", "1000000", budget_us, 1000000),
	TUNING("PINION_BUDGET_US", "0", budget_us, BAD),
	TUNING("PINION_BUDGET_US", "1000001", budget_us, BAD),
	TUNING("PINION_BUDGET_US", "fifo", budget_us, BAD),
	TUNING("PINION_LIFO_POLLS", "0", lifo_polls, 0),
	TUNING("PINION_LIFO_POLLS", "65535", lifo_polls, 65535),
	TUNING("PINION_LIFO_POLLS", "65536", lifo_polls, BAD),
	TUNING("PINION_LIFO_POLLS", "fifo", lifo_polls, BAD),
	TUNING("PINION_WAKE_BATCH_SPAWNS", "1", wake_batch_spawns, 1),
	TUNING("PINION_WAKE_BATCH_SPAWNS", "65535", wake_batch_spawns, 65535),
	TUNING("PINION_WAKE_BATCH_SPAWNS", "0", wake_batch_spawns, BAD),
	TUNING("PINION_WAKE_BATCH_SPAWNS", "65536", wake_batch_spawns, BAD),
	TUNING("PINION_WAKE_BATCH_SPAWNS", "fifo", wake_batch_spawns, BAD),
	TUNING("PINION_STEAL_TRIES", "1", steal_tries, 1),
	TUNING("PINION_STEAL_TRIES", "1024", steal_tries, 1024),
	TUNING("PINION_STEAL_TRIES", "0", steal_tries, BAD),
	TUNING("PINION_STEAL_TRIES", "1025", steal_tries, BAD),
	TUNING("PINION_STEAL_TRIES", "fifo", steal_tries, BAD),
	TUNING("PINION_SPIN_ITERS", "0", spin_iters, 0),
	TUNING("PINION_SPIN_ITERS", "65535", spin_iters, 65535),
	TUNING("PINION_SPIN_ITERS", "65536", spin_iters, BAD),
	TUNING("PINION_SPIN_ITERS", "fifo", spin_iters, BAD),
	TUNING("PINION_PARK_TIMEOUT_US", "0", park_timeout_us, 0),
	TUNING("PINION_PARK_TIMEOUT_US", "60000000", park_timeout_us, 60000000),
	TUNING("PINION_PARK_TIMEOUT_US", "60000001", park_timeout_us, BAD),
	TUNING("PINION_PARK_TIMEOUT_US", "fifo", park_timeout_us, BAD),
	TUNING("PINION_INJECTOR_TARGET_US", "1", injector_target_us, 1),
	TUNING("PINION_INJECTOR_TARGET_US", "1000000", injector_target_us, 1000000),
	TUNING("PINION_INJECTOR_TARGET_US", "0", injector_target_us, BAD),
	TUNING("PINION_INJECTOR_TARGET_US", "1000001", injector_target_us, BAD),
	TUNING("PINION_INJECTOR_TARGET_US", "fifo", injector_target_us, BAD),
	TUNING("PINION_INTERVAL_MIN", "1", interval_min, 1),
	TUNING("PINION_INTERVAL_MIN", "65535", interval_min, 65535),
	TUNING("PINION_INTERVAL_MIN", "0", interval_min, BAD),
	TUNING("PINION_INTERVAL_MIN", "65536", interval_min, BAD),
	TUNING("PINION_INTERVAL_MIN", "fifo", interval_min, BAD),
	TUNING("PINION_INTERVAL_MAX", "1", interval_max, 1),
	TUNING("PINION_INTERVAL_MAX", "65535", interval_max, 65535),
	TUNING("PINION_INTERVAL_MAX", "0", interval_max, BAD),
	TUNING("PINION_INTERVAL_MAX", "65536", interval_max, BAD),
	TUNING("PINION_INTERVAL_MAX", "fifo", interval_max, BAD),
	TUNING("PINION_INJECTOR_BATCH_MIN", "1", injector_batch_min, 1),
	TUNING("PINION_INJECTOR_BATCH_MIN", "65536", injector_batch_min, 65536),
	TUNING("PINION_INJECTOR_BATCH_MIN", "0", injector_batch_min, BAD),
	TUNING("PINION_INJECTOR_BATCH_MIN", "65537", injector_batch_min, BAD),
	TUNING("PINION_INJECTOR_BATCH_MIN", "fifo", injector_batch_min, BAD),
	TUNING("PINION_INJECTOR_BATCH_MAX", "1", injector_batch_max, 1),
	TUNING("PINION_INJECTOR_BATCH_MAX", "65536", injector_batch_max, 65536),
	TUNING("PINION_INJECTOR_BATCH_MAX", "0", injector_batch_max, BAD),
	TUNING("PINION_INJECTOR_BATCH_MAX", "65537", injector_batch_max, BAD),
	TUNING("PINION_INJECTOR_BATCH_MAX", "fifo", injector_batch_max, BAD),
	TUNING("PINION_SEARCHERS_PERCENT", "1", searchers_percent, 1),
	TUNING("PINION_SEARCHERS_PERCENT", "0", searchers_percent, BAD),
	TUNING("PINION_SEARCHERS_PERCENT", "101", searchers_percent, BAD),
	TUNING("PINION_WAKE_WORTH_US", "0", wake_worth_us, 0),
	TUNING("PINION_WAKE_WORTH_US", "1000001", wake_worth_us, BAD),
	TUNING("PINION_SPAWN_WAKE_US", "0", spawn_wake_us, 0),
	TUNING("PINION_SPAWN_WAKE_US", "1000001", spawn_wake_us, BAD),
	TUNING("PINION_INJECTOR_TASKS", "0", injector_tasks, 0),
	TUNING("PINION_INJECTOR_TASKS", "1099511627776", injector_tasks, UINT64_C(1) << 40),
	TUNING("PINION_INJECTOR_TASKS", "1099511627777", injector_tasks, BAD),
	TUNING("PINION_CLASS_NICE", "20", class_nice, 20),
	TUNING("PINION_CLASS_NICE", "21", class_nice, BAD),
	TUNING("PINION_EWMA_ALPHA_PERMILLE", "1", ewma_alpha_permille, 1),
	TUNING("PINION_EWMA_ALPHA_PERMILLE", "999", ewma_alpha_permille, 999),
	TUNING("PINION_EWMA_ALPHA_PERMILLE", "0", ewma_alpha_permille, BAD),
	TUNING("PINION_EWMA_ALPHA_PERMILLE", "1000", ewma_alpha_permille, BAD),
	TUNING("PINION_EWMA_ALPHA_PERMILLE", "fifo", ewma_alpha_permille, BAD),
	TUNING("PINION_TASK_NS", "1", task_ns, 1),
	TUNING("PINION_TASK_NS", "1000000000", task_ns, 1000000000),
	TUNING("PINION_TASK_NS", "0", task_ns, BAD),
	TUNING("PINION_TASK_NS", "1000000001", task_ns, BAD),
	TUNING("PINION_TASK_NS", "fifo", task_ns, BAD),
	TUNING("PINION_QUEUE_TASKS", "4", queue_tasks, 4),
	TUNING("PINION_QUEUE_TASKS", "65536", queue_tasks, 65536),
	TUNING("PINION_QUEUE_TASKS", "3", queue_tasks, BAD),
	TUNING("PINION_QUEUE_TASKS", "65537", queue_tasks, BAD),
	TUNING("PINION_QUEUE_TASKS", "fifo", queue_tasks, BAD),
	TUNING("PINION_QUEUE_ORDER", "fifo", queue_order, PINION_QUEUE_FIFO),
	TUNING("PINION_QUEUE_ORDER", "lifo", queue_order, PINION_QUEUE_LIFO),
	TUNING("PINION_QUEUE_ORDER", "1", queue_order, BAD),
	TUNING("PINION_QUEUE_ORDER", "FIFO", queue_order, BAD),
	TUNING("PINION_QUEUE_ORDER", "fifo ", queue_order, BAD),
	TUNING("PINION_QUEUE_ORDER", "ring", queue_order, BAD),
	TUNING("PINION_WAKE_POLICY", "near", wake_policy, PINION_WAKE_NEAR),
	TUNING("PINION_WAKE_POLICY", "lowest", wake_policy, PINION_WAKE_LOWEST),
	TUNING("PINION_WAKE_POLICY", "rotate", wake_policy, PINION_WAKE_ROTATE),
	TUNING("PINION_WAKE_POLICY", "1", wake_policy, BAD),
	TUNING("PINION_WAKE_POLICY", "NEAR", wake_policy, BAD),
	TUNING("PINION_WAKE_POLICY", "near ", wake_policy, BAD),
	TUNING("PINION_WAKE_POLICY", "ring", wake_policy, BAD),
	TUNING("PINION_FAULT_POLICY", "isolate", fault_policy, PINION_FAULT_ISOLATE),
	TUNING("PINION_FAULT_POLICY", "fail_fast", fault_policy, PINION_FAULT_FAIL_FAST),
	TUNING("PINION_FAULT_POLICY", "1", fault_policy, BAD),
	TUNING("PINION_FAULT_POLICY", "ISOLATE", fault_policy, BAD),
	TUNING("PINION_FAULT_POLICY", "isolate ", fault_policy, BAD),
	TUNING("PINION_FAULT_POLICY", "ring", fault_policy, BAD),
	TUNING("PINION_RING_SHARING", "own", ring_sharing, PINION_RING_OWN),
	TUNING("PINION_RING_SHARING", "shared", ring_sharing, PINION_RING_SHARED),
	TUNING("PINION_RING_SHARING", "1", ring_sharing, BAD),
	TUNING("PINION_RING_SHARING", "shared ", ring_sharing, BAD),
	VARIABLE("PINION_POOL_BYTES", "0", pool_bytes, 0),
	VARIABLE("PINION_POOL_BYTES", "4096", pool_bytes, 4096),
	VARIABLE("PINION_POOL_BYTES", "8589934592", pool_bytes, UINT64_C(8) << 30),
	VARIABLE("PINION_POOL_BYTES", "68719476736", pool_bytes, UINT64_C(64) << 30),
	VARIABLE("PINION_POOL_BYTES", "68719480832", pool_bytes, BAD),
	VARIABLE("PINION_POOL_BYTES", "4097", pool_bytes, BAD),
	VARIABLE("PINION_POOL_BYTES", "1G", pool_bytes, UINT64_C(1) << 30),
	VARIABLE("PINION_POOL_BYTES", "1GB", pool_bytes, BAD),
	VARIABLE("PINION_BUFFER_BYTES", "2m", buffer_bytes, 2 << 20),
	VARIABLE("PINION_SMALL_BUFFER_BYTES", "32KiB", small_buffer_bytes, 32 << 10),
	VARIABLE("PINION_BUFFER_COUNT", "2K", buffer_count, BAD),
	TUNING("PINION_DEPTH_BYTES", "3MB", depth_bytes, 3000000),
	TUNING("PINION_DEPTH_BYTES_MAX", "1M", depth_bytes_max, 1 << 20),
	TUNING("PINION_BYTES_PER_SECOND", "10MB", bytes_per_second, 10000000),
	TUNING("PINION_BYTES_PER_SECOND", "64k", bytes_per_second, 65536),
	TUNING("PINION_BYTES_PER_SECOND", "0", bytes_per_second, 0),
	TUNING("PINION_BYTES_PER_SECOND", "4194304T", bytes_per_second, UINT64_C(1) << 62),
	TUNING("PINION_BYTES_PER_SECOND", "4194305T", bytes_per_second, BAD),
	TUNING("PINION_BYTES_PER_SECOND", "99999999999T", bytes_per_second, BAD),
	TUNING("PINION_BYTES_PER_SECOND", "10 MB", bytes_per_second, BAD),
	TUNING("PINION_BYTES_PER_SECOND", "10MBs", bytes_per_second, BAD),
	TUNING("PINION_BYTES_PER_SECOND", "-1", bytes_per_second, BAD),
	TUNING("PINION_REQUESTS_PER_SECOND", "1K", requests_per_second, BAD),
	TUNING("PINION_REGISTERED_FILES", "0", registered_files, 0),
	TUNING("PINION_REGISTERED_FILES", "1024", registered_files, 1024),
	TUNING("PINION_REGISTERED_FILES", "32769", registered_files, BAD),
	TUNING("PINION_IO_PRIORITY_HIGH", "none", io_priority_high, PINION_IO_PRIORITY_NONE),
	TUNING("PINION_IO_PRIORITY_HIGH", "be0", io_priority_high, PINION_IO_PRIORITY_BE0),
	TUNING("PINION_IO_PRIORITY_HIGH", "be7", io_priority_high, PINION_IO_PRIORITY_BE7),
	TUNING("PINION_IO_PRIORITY_HIGH", "idle", io_priority_high, PINION_IO_PRIORITY_IDLE),
	TUNING("PINION_IO_PRIORITY_HIGH", "rt0", io_priority_high, BAD),
	TUNING("PINION_IO_PRIORITY_LOW", "none", io_priority_low, PINION_IO_PRIORITY_NONE),
	TUNING("PINION_IO_PRIORITY_LOW", "be0", io_priority_low, PINION_IO_PRIORITY_BE0),
	TUNING("PINION_IO_PRIORITY_LOW", "be7", io_priority_low, PINION_IO_PRIORITY_BE7),
	TUNING("PINION_IO_PRIORITY_LOW", "idle", io_priority_low, PINION_IO_PRIORITY_IDLE),
	TUNING("PINION_IO_PRIORITY_LOW", "rt0", io_priority_low, BAD),
	TUNING("PINION_STALL_MS", "86400000", stall_ms, 86400000),
	TUNING("PINION_STALL_MS", "86400001", stall_ms, BAD),
	TUNING("PINION_CQ_STALL_US", "86400000000", cq_stall_us, UINT64_C(86400000000)),
	TUNING("PINION_CQ_STALL_US", "86400000001", cq_stall_us, BAD),
	TUNING("PINION_CPU_LATENCY_US", "0", cpu_latency_us, 0),
	TUNING("PINION_CPU_LATENCY_US", "2000000000", cpu_latency_us, PINION_CPU_LATENCY_ANY),
	TUNING("PINION_CPU_LATENCY_US", "2000000001", cpu_latency_us, BAD),
	TUNING("PINION_JOB_LOG", "1", job_log, 1),
	TUNING("PINION_JOB_LOG", "2", job_log, BAD),
	TUNING("PINION_MAX_TASKS_HIGH", "7", max_tasks_high, 7),
	TUNING("PINION_MAX_TASKS_HIGH", "1048576", max_tasks_high, BAD),
	TUNING("PINION_MAX_TASKS_NORMAL", "8", max_tasks_normal, 8),
	TUNING("PINION_MAX_TASKS_NORMAL", "x", max_tasks_normal, BAD),
	TUNING("PINION_MAX_TASKS_LOW", "9", max_tasks_low, 9),
	TUNING("PINION_MAX_TASKS_LOW", "-1", max_tasks_low, BAD),
	TUNING("PINION_MAX_TASKS_TOTAL", "10", max_tasks_total, 10),
	TUNING("PINION_MAX_TASKS_TOTAL", "3145726", max_tasks_total, BAD),
	TUNING("PINION_THREAD_POOL_MAX", "1024", thread_pool_max, 1024),
	TUNING("PINION_THREAD_POOL_MAX", "1025", thread_pool_max, BAD),
	TUNING("PINION_STACK_BYTES", "0", stack_bytes, 0),
	TUNING("PINION_STACK_BYTES", "8388608", stack_bytes, 8 << 20),
	TUNING("PINION_STACK_BYTES", "1073745920", stack_bytes, BAD),
	TUNING("PINION_STACK_BYTES", "8M", stack_bytes, 8 << 20),
	TUNING("PINION_TICK_INTERVAL_MS", "1", tick_interval_ms, 1),
	TUNING("PINION_TICK_INTERVAL_MS", "3600000", tick_interval_ms, 3600000),
	TUNING("PINION_TICK_INTERVAL_MS", "0", tick_interval_ms, BAD),
	TUNING("PINION_TICK_INTERVAL_MS", "3600001", tick_interval_ms, BAD),
	TUNING("PINION_TICK_INTERVAL_MS", "1s", tick_interval_ms, BAD),
	TUNING("PINION_IO_WITHOUT", "nothing", io_without, 0),
#define FEATURE(name, word, kind, major, minor, probe) \
	TUNING("PINION_IO_WITHOUT", word, io_without, PINION_IO_##name),
	PIN_KERNEL_FEATURES(FEATURE)
#undef FEATURE
		TUNING("PINION_IO_WITHOUT", "no-iowait,ext-arg,nothing", io_without,
			PINION_IO_NO_IOWAIT | PINION_IO_EXT_ARG),
	TUNING("PINION_IO_WITHOUT", "no-iowait,", io_without, BAD),
	TUNING("PINION_IO_WITHOUT", ",no-iowait", io_without, BAD),
	TUNING("PINION_IO_WITHOUT", "no-iowait ext-arg", io_without, BAD),
	TUNING("PINION_IO_WITHOUT", "no-iowai", io_without, BAD),
	TUNING("PINION_IO_WITHOUT", "1", io_without, BAD),
};

static void clear(void)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		unsetenv(variables[i].name);
	}
}

static void init(struct both *both)
{
	runtimes_config(&both->config, 3, PINION_IO_AUTO);
	both->tuning = runtimes_tuning;
	both->config.tuning = &both->tuning;
}

static void check(const struct variable *variable)
{
	struct both wanted;
	struct both both;
	char what[96];

	init(&both);
	/* A value no variable below says, so that each is seen to write. */
	memset((uint8_t *)&both + variable->offset, 0x5a, variable->bytes);
	wanted = both;
	snprintf(what, sizeof(what), "%s=%s", variable->name, variable->text);
	clear();
	setenv(variable->name, variable->text, 1);
	if (variable->expected != BAD) {
		/* Little end first, as on every machine this runs on. */
		memcpy((uint8_t *)&wanted + variable->offset, &variable->expected, variable->bytes);
		expect_number(what, 0, pinion_config_from_env(&both.config, &both.tuning));
	} else {
		expect_number(what, -EINVAL, pinion_config_from_env(&both.config, &both.tuning));
		if (strstr(runtimes_log, variable->name) == NULL) {
			printf("%s: expected a message that names it, got \"%s\"\n", what,
				runtimes_log);
			expect_failure_count++;
		}
	}
	if (memcmp(&both, &wanted, sizeof(both)) != 0) {
		printf("%s: expected no other field to change, got one\n", what);
		expect_failure_count++;
	}
}

/*
 * Each variable of a number takes its default as the table shows it, and not
 * with a space or a sign, which strtoull() would pass by.
 */
static void check_spelling(void)
{
	static const char *const before[] = {"", " ", "\t", "\n", "\v", "+", "-", " +"};
	uint32_t number_count = 0;
	size_t count;
	const struct pin_config_field *fields = pin_config_fields(&count);

	clear();
	for (size_t i = 0; i < count; i++) {
		if (fields[i].variable == NULL || fields[i].words != NULL) {
			continue;
		}
		number_count++;
		for (size_t j = 0; j < sizeof(before) / sizeof(before[0]); j++) {
			struct both both;
			char text[64];

			init(&both);
			snprintf(text, sizeof(text), "%s%llu", before[j],
				(unsigned long long)fields[i].standard);
			setenv(fields[i].variable, text, 1);
			if (pinion_config_from_env(&both.config, &both.tuning) !=
				(j == 0 ? 0 : -EINVAL)) {
				printf("%s=\"%s\": expected to be %s\n", fields[i].variable, text,
					j == 0 ? "taken" : "refused");
				expect_failure_count++;
			}
			unsetenv(fields[i].variable);
		}
	}
	expect_true("numbers", number_count > 40);
}

/* PINION_SEED is the one of 64 bits, and may be hexadecimal. EX-10. */
static void check_seed(const char *text, bool is_good, uint64_t expected)
{
	struct both both;
	struct both wanted;

	clear();
	init(&both);
	wanted = both;
	setenv("PINION_SEED", text, 1);
	expect_number(
		text, is_good ? 0 : -EINVAL, pinion_config_from_env(&both.config, &both.tuning));
	if (is_good) {
		wanted.tuning.seed = expected;
	} else {
		expect_true("the message names it", strstr(runtimes_log, "PINION_SEED") != NULL);
	}
	expect_number("no other field", 0, memcmp(&both, &wanted, sizeof(both)));
	unsetenv("PINION_SEED");
}

static void check_seeds(void)
{
	struct pinion_tuning tuning;

	pinion_tuning_init(&tuning);
	expect_true("the default", tuning.seed == UINT64_C(0x853c49e6748fea9b));
	check_seed("0", true, 0);
	check_seed("17", true, 17);
	check_seed("0x853c49e6748fea9c", true, UINT64_C(0x853c49e6748fea9c));
	check_seed("0XFFFFFFFFFFFFFFFF", true, UINT64_MAX);
	check_seed("18446744073709551615", true, UINT64_MAX);
	check_seed("0x10000000000000000", false, 0);
	check_seed("18446744073709551616", false, 0);
	check_seed("853c", false, 0);
	check_seed("0x", false, 0);
	check_seed("-1", false, 0);
	check_seed("random", false, 0);
	check_seed("1 ", false, 0);
	check_seed(" 1", false, 0);
	check_seed("+1", false, 0);
	check_seed("\n0x1", false, 0);
}

int main(void)
{
	struct both both;
	struct both wanted;

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		check(&variables[i]);
	}
	check_spelling();
	check_seeds();
	clear();
	setenv("PINION_WORKER_COUNT", "", 1);
	setenv("PINION_NO_SUCH_FIELD", "9", 1);
	init(&both);
	wanted = both;
	expect_number("empty and unknown variables", 0,
		pinion_config_from_env(&both.config, &both.tuning));
	expect_number("and nothing changes", 0, memcmp(&both, &wanted, sizeof(both)));
	return expect_status();
}
