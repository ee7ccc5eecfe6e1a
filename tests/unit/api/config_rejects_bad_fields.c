/* SPDX-License-Identifier: MIT */
/*
 * Goal: the defaults are accepted, every value just outside a field's range is
 * -EINVAL with a message that names the field, and structs of other sizes are
 * treated as promised; the scheduler's defaults are those decided on. AS-2,
 * AS-8, AS-13, AS-14, AS-15, AS-16, AS-27, AS-30, AS-33, AS-34, AS-36, C1, C2,
 * C5, EX-9, EX-10, EX-11, EX-12, EX-13, EX-14, EX-31.
 * Method: a table of ranges, both ends of each and the values beyond, and a
 * table of other values, good and bad; each set alone in a struct of defaults.
 */
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/host/kernel.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"

#include <errno.h>

struct both {
	struct pinion_config config;
	struct pinion_tuning tuning;
};

struct field {
	const char *name;
	size_t offset;
	size_t bytes;
};

struct range {
	struct field field;
	uint64_t min;
	uint64_t max;
};

struct value {
	struct field field;
	uint64_t value;
	int expected;
};

#define FIELD(part, field) \
	{ \
#field, offsetof(struct both, part.field), sizeof(((struct both *)0)->part.field) \
	}
#define RANGE(part, field, min, max) \
	{ \
		FIELD(part, field), min, max \
	}
#define VALUE(part, field, value, expected) \
	{ \
		FIELD(part, field), value, expected \
	}

static const struct range ranges[] = {
	RANGE(config, worker_count, 0, 4096),
	RANGE(config, is_driven, 0, 1),
	RANGE(config, reserved, 0, 0),
	RANGE(tuning, use_smt, 0, 1),
	RANGE(config, bind_workers, PINION_BIND_NONE, PINION_BIND_NODE),
	RANGE(tuning, ring_helper_count, 1, 1024),
	RANGE(tuning, budget_polls, 1, 65535),
	RANGE(tuning, budget_us, 1, 1000000),
	RANGE(config, buffer_count, 0, 65536),
	RANGE(config, small_buffer_count, 1, 65536),
	RANGE(config, io_level, PINION_IO_AUTO, PINION_IO_RING_MESSAGE),
	RANGE(tuning, low_max_wait_ms, 0, 86400000),
	RANGE(tuning, assist, PINION_ASSIST_OFF, PINION_ASSIST_IDLE),
	RANGE(tuning, assist_reserve, 0, 4096),
	RANGE(tuning, high_warn_depth, 0, UINT32_MAX),
	RANGE(tuning, polled, PINION_POLLED_NEVER, PINION_POLLED_ALWAYS),
	RANGE(tuning, ring_sharing, PINION_RING_OWN, PINION_RING_SHARED),
	RANGE(tuning, queue_order, PINION_QUEUE_FIFO, PINION_QUEUE_LIFO),
	RANGE(tuning, lifo_polls, 0, 65535),
	RANGE(tuning, wake_batch_spawns, 1, 65535),
	RANGE(tuning, steal_tries, 1, 1024),
	RANGE(tuning, io_priority_high, PINION_IO_PRIORITY_NONE, PINION_IO_PRIORITY_IDLE),
	RANGE(tuning, io_priority_low, PINION_IO_PRIORITY_NONE, PINION_IO_PRIORITY_IDLE),
	RANGE(tuning, stall_ms, 0, 86400000),
	RANGE(tuning, cq_stall_us, 0, UINT64_C(86400000000)),
	RANGE(tuning, cpu_latency_us, 0, UINT64_C(2000000000)),
	RANGE(tuning, spin_iters, 0, 65535),
	RANGE(tuning, park_timeout_us, 0, 60000000),
	RANGE(tuning, injector_target_us, 1, 1000000),
	RANGE(tuning, searchers_percent, 1, 100),
	RANGE(tuning, wake_worth_us, 0, 1000000),
	RANGE(tuning, spawn_wake_us, 0, 1000000),
	RANGE(tuning, injector_tasks, 0, UINT64_C(1) << 40),
	RANGE(tuning, class_nice, 0, 20),
	RANGE(tuning, ewma_alpha_permille, 1, 999),
	RANGE(tuning, task_ns, 1, 1000000000),
	RANGE(tuning, wake_policy, PINION_WAKE_NEAR, PINION_WAKE_ROTATE),
	RANGE(tuning, fault_policy, PINION_FAULT_ISOLATE, PINION_FAULT_FAIL_FAST),
	RANGE(tuning, tick_interval_ms, 1, 3600000),
	RANGE(tuning, thread_pool_max, 0, 1024),
	RANGE(tuning, job_log, 0, 1),
	RANGE(tuning, max_tasks_high, 0, 1048575),
	RANGE(tuning, max_tasks_normal, 0, 1048575),
	RANGE(tuning, max_tasks_low, 0, 1048575),
	RANGE(tuning, max_tasks_total, 0, 3145725),
};

/* What else is refused, or taken: multiples, powers of two, other fields. */
static const struct value values[] = {
	VALUE(config, io_level, PINION_IO_RING, 0),
	VALUE(tuning, injector_tasks, 1, 0),
	VALUE(tuning, ring_entries, 8, 0),
	VALUE(tuning, ring_entries, 32768, 0),
	VALUE(tuning, ring_entries, 4, -EINVAL),
	VALUE(tuning, ring_entries, 65536, -EINVAL),
	VALUE(tuning, ring_entries, 100, -EINVAL),
	VALUE(config, buffer_bytes, 256 << 20, 0),
	VALUE(config, buffer_bytes, 0, -EINVAL),
	VALUE(config, buffer_bytes, 65536 + 512, -EINVAL),
	VALUE(config, buffer_bytes, (256 << 20) + 4096, -EINVAL),
	VALUE(config, small_buffer_bytes, 4096, 0),
	VALUE(config, small_buffer_bytes, 0, -EINVAL),
	VALUE(config, small_buffer_bytes, 4097, -EINVAL),
	VALUE(config, small_buffer_bytes, 2 << 20, -EINVAL), /* more than a large one */
	VALUE(tuning, lane_floor, 0, 0),
	VALUE(tuning, lane_floor, 2, 0),
	VALUE(tuning, lane_floor, 1, -EINVAL),
	VALUE(tuning, lane_floor, 65535, 0),
	VALUE(tuning, lane_floor, 65536, -EINVAL),
	VALUE(tuning, queue_tasks, 4, 0),
	VALUE(tuning, queue_tasks, 65536, 0),
	VALUE(tuning, queue_tasks, 0, -EINVAL),
	VALUE(tuning, queue_tasks, 2, -EINVAL),
	VALUE(tuning, queue_tasks, 100, -EINVAL),
	VALUE(tuning, queue_tasks, 131072, -EINVAL),
	VALUE(tuning, interval_min, 1, 0),
	VALUE(tuning, interval_min, 255, 0),
	VALUE(tuning, interval_min, 0, -EINVAL),
	VALUE(tuning, interval_min, 256, -EINVAL), /* more than interval_max */
	VALUE(tuning, interval_min, 65536, -EINVAL),
	VALUE(tuning, interval_max, 8, 0),
	VALUE(tuning, interval_max, 65535, 0),
	VALUE(tuning, interval_max, 7, -EINVAL), /* less than interval_min */
	VALUE(tuning, interval_max, 0, -EINVAL),
	VALUE(tuning, interval_max, 65536, -EINVAL),
	VALUE(tuning, injector_batch_min, 1, 0),
	VALUE(tuning, injector_batch_min, 64, 0),
	VALUE(tuning, injector_batch_min, 0, -EINVAL),
	VALUE(tuning, injector_batch_min, 65, -EINVAL), /* more than injector_batch_max */
	VALUE(tuning, injector_batch_min, 65537, -EINVAL),
	VALUE(tuning, injector_batch_max, 4, 0),
	VALUE(tuning, injector_batch_max, 65536, 0),
	VALUE(tuning, injector_batch_max, 3, -EINVAL), /* less than injector_batch_min */
	VALUE(tuning, injector_batch_max, 0, -EINVAL),
	VALUE(tuning, injector_batch_max, 65537, -EINVAL),
	VALUE(config, pool_bytes, UINT64_C(64) << 30, 0),
	VALUE(config, pool_bytes, (UINT64_C(64) << 30) + 4096, -EINVAL),
	VALUE(config, pool_bytes, (UINT64_C(1) << 40) + 4096, -EINVAL),
	VALUE(config, pool_bytes, 2048, -EINVAL),
	VALUE(tuning, io_without, PINION_IO_NO_IOWAIT | PINION_IO_EXT_ARG, 0),
	VALUE(tuning, io_without, PIN_FEATURES_ALL + 1, -EINVAL),
	VALUE(tuning, registered_files, 0, 0),
	VALUE(tuning, registered_files, 8, 0),
	VALUE(tuning, registered_files, 32768, 0),
	VALUE(tuning, registered_files, 4, -EINVAL),
	VALUE(tuning, registered_files, 12, -EINVAL),
	VALUE(tuning, registered_files, 65536, -EINVAL),
	VALUE(tuning, stack_bytes, 64 << 10, 0),
	VALUE(tuning, stack_bytes, 1 << 30, 0),
	VALUE(tuning, stack_bytes, 60 << 10, -EINVAL),
	VALUE(tuning, stack_bytes, (64 << 10) + 512, -EINVAL),
	VALUE(tuning, stack_bytes, (1 << 30) + 4096, -EINVAL),
};

static void check_value(const struct field *field, uint64_t value, int expected)
{
	struct both given;
	struct both accepted;
	char what[64];

	pinion_config_init(&given.config);
	pinion_tuning_init(&given.tuning);
	given.config.tuning = &given.tuning;
	given.config.log = runtimes_note;
	runtimes_log[0] = '\0';
	/* Little end first, as on every machine this runs on. */
	memcpy((uint8_t *)&given + field->offset, &value, field->bytes);
	snprintf(what, sizeof(what), "%s = %llu", field->name, (unsigned long long)value);
	expect_number(what, expected,
		pin_config_accept(&accepted.config, &accepted.tuning, &given.config));
	if (expected == 0) {
		expect_text(what, "", runtimes_log);
	} else if (strstr(runtimes_log, field->name) == NULL) {
		printf("%s: expected a message that names it, got \"%s\"\n", what, runtimes_log);
		expect_failure_count++;
	}
}

static void check_range(const struct range *range)
{
	uint64_t most = range->field.bytes == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;

	check_value(&range->field, range->min, 0);
	check_value(&range->field, range->max, 0);
	if (range->min > 0) {
		check_value(&range->field, range->min - 1, -EINVAL);
	}
	if (range->max < most) {
		check_value(&range->field, range->max + 1, -EINVAL);
		check_value(&range->field, most, -EINVAL);
	}
}

static void check_values(void)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(ranges); i++) {
		check_range(&ranges[i]);
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(values); i++) {
		check_value(&values[i].field, values[i].value, values[i].expected);
	}
}

/* docs/decisions/ gives the reasons for those that are not obvious. */
static void check_defaults(void)
{
	struct pinion_config config;
	struct pinion_tuning tuning;

	memset(&config, 0xff, sizeof(config));
	pinion_config_init(&config);
	memset(&tuning, 0xff, sizeof(tuning));
	pinion_tuning_init(&tuning);
	expect_number("worker_count: one for each core", 0, config.worker_count);
	expect_true("seed", tuning.seed == UINT64_C(0x853c49e6748fea9b));
	expect_number("steal_tries", 4, tuning.steal_tries);
	expect_number("spin_iters", 200, tuning.spin_iters);
	expect_number("park_timeout_us: none", 0, tuning.park_timeout_us);
	expect_number("bind_workers", 1, config.bind_workers);
	expect_number("wake_batch_spawns", 32, tuning.wake_batch_spawns);
	expect_number("queue_tasks", 256, tuning.queue_tasks);
	expect_number("queue_order", PINION_QUEUE_FIFO, tuning.queue_order);
	expect_number("lifo_polls", 3, tuning.lifo_polls);
	expect_number("budget_polls", 128, tuning.budget_polls);
	expect_number("budget_us", 500, tuning.budget_us);
	expect_number("injector_target_us", 1000, tuning.injector_target_us);
	expect_number("interval_min", 8, tuning.interval_min);
	expect_number("interval_max", 255, tuning.interval_max);
	expect_number("ewma_alpha_permille", 100, tuning.ewma_alpha_permille);
	expect_number("task_ns", 50000, tuning.task_ns);
	expect_number("injector_batch_min", 4, tuning.injector_batch_min);
	expect_number("injector_batch_max", 64, tuning.injector_batch_max);
	expect_number("injector_tasks", 65536, (long long)tuning.injector_tasks);
	expect_number("searchers_percent", 50, tuning.searchers_percent);
	expect_number("lane_floor", 16, tuning.lane_floor);
	expect_number("tick_interval_ms", 1000, tuning.tick_interval_ms);
}

/* A program that was compiled against a newer, longer struct. */
struct newer {
	struct pinion_config known;
	uint8_t tail[24];
};

static void check_sizes(void)
{
	struct pinion_config accepted = {.size = 1};
	struct pinion_tuning tuning;
	struct pinion_config config;
	struct newer newer;

	memset(&newer, 0xff, sizeof(newer));
	pinion_config_init_sized(&newer.known, sizeof(newer));
	expect_number("size as given", sizeof(newer), newer.known.size);
	expect_number("zero tail", 0, pin_config_accept(&accepted, &tuning, &newer.known));
	expect_number("size as accepted", sizeof(struct pinion_config), accepted.size);
	newer.tail[sizeof(newer.tail) - 1] = 1;
	accepted.size = 1;
	expect_number("unknown tail", -E2BIG, pin_config_accept(&accepted, &tuning, &newer.known));
	expect_number("output of a refused one", 1, accepted.size);

	/* Of a program that knows no `log_record`: what it has there is not. */
	pinion_config_init(&config);
	config.size = offsetof(struct pinion_config, log_record);
	config.log_record = (pinion_log_record_fn)(uintptr_t)1;
	config.log_dropped = 1;
	expect_number("an older program's", 0, pin_config_accept(&accepted, &tuning, &config));
	expect_true("its defaults", accepted.log_record == NULL && accepted.log_dropped == 0);
	pinion_config_init(&config);
	config.size = (uint32_t)offsetof(struct pinion_config, log_record) - 8;
	expect_number("smaller than any release", -EINVAL,
		pin_config_accept(&accepted, &tuning, &config));
	config.size = 0;
	expect_number("never initialised", -EINVAL, pin_config_accept(&accepted, &tuning, &config));
	expect_number("NULL", -EINVAL, pin_config_accept(&accepted, &tuning, NULL));

	/* Initialising a shorter one writes no byte beyond it. */
	memset(&config, 0x5a, sizeof(config));
	pinion_config_init_sized(&config, 16);
	expect_number("size of a shorter one", 16, config.size);
	expect_number("first byte beyond it", 0x5a, ((uint8_t *)&config)[16]);
}

int main(void)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;
	struct pinion_config accepted;
	struct pinion_tuning tuning;

	pinion_config_init(&config);
	expect_number("size", sizeof(config), config.size);
	expect_number("defaults", 0, pin_config_accept(&accepted, &tuning, &config));
	expect_number("copied as it is", 0, memcmp(&accepted, &config, sizeof(config)));
	check_defaults();
	check_values();
	check_sizes();

	/* And pinion_runtime_create passes it all on. */
	runtimes_config(&config, 4097, PINION_IO_AUTO);
	expect_number("create", -EINVAL, pinion_runtime_create(&config, &runtime));
	expect_true("create wrote nothing", runtime == NULL);
	expect_true("create names the field", strstr(runtimes_log, "worker_count") != NULL);
	return expect_status();
}
