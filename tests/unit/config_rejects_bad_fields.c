/* SPDX-License-Identifier: MIT */
/*
 * Goal: the defaults are accepted, every value just outside a field's range is
 * -EINVAL with a message that names the field, and structs of other sizes are
 * treated as promised. EX-9, EX-11, EX-12, EX-13, EX-14.
 * Method: a table of field, good and bad values, each set alone in a struct of
 * defaults.
 */
#include "runtime/core/config.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"

#include <errno.h>

struct value {
	const char *field;
	size_t offset;
	size_t bytes;
	uint64_t value;
	int expected;
};

#define VALUE(field, value, expected) \
	{ \
#field, offsetof(struct pinion_config, field), \
			sizeof(((struct pinion_config *)0)->field), value, expected \
	}

static const struct value values[] = {
	VALUE(worker_count, 0, 0),
	VALUE(worker_count, 4096, 0),
	VALUE(worker_count, 4097, -EINVAL),
	VALUE(use_smt, 1, 0),
	VALUE(use_smt, 2, -EINVAL),
	VALUE(bind_workers, 0, 0),
	VALUE(bind_workers, 2, -EINVAL),
	VALUE(ring_entries, 8, 0),
	VALUE(ring_entries, 32768, 0),
	VALUE(ring_entries, 4, -EINVAL),
	VALUE(ring_entries, 65536, -EINVAL),
	VALUE(ring_entries, 100, -EINVAL),
	VALUE(ring_helper_count, 1, 0),
	VALUE(ring_helper_count, 0, -EINVAL),
	VALUE(ring_helper_count, 1025, -EINVAL),
	VALUE(budget_polls, 65535, 0),
	VALUE(budget_polls, 0, -EINVAL),
	VALUE(budget_polls, 65536, -EINVAL),
	VALUE(budget_us, 1000000, 0),
	VALUE(budget_us, 0, -EINVAL),
	VALUE(budget_us, 1000001, -EINVAL),
	VALUE(buffer_bytes, 256 << 20, 0),
	VALUE(buffer_bytes, 0, -EINVAL),
	VALUE(buffer_bytes, 65536 + 512, -EINVAL),
	VALUE(buffer_bytes, (256 << 20) + 4096, -EINVAL),
	VALUE(buffer_count, 65536, 0),
	VALUE(buffer_count, 0, 0),
	VALUE(buffer_count, 65537, -EINVAL),
	VALUE(small_buffer_bytes, 4096, 0),
	VALUE(small_buffer_bytes, 0, -EINVAL),
	VALUE(small_buffer_bytes, 4097, -EINVAL),
	VALUE(small_buffer_bytes, 2 << 20, -EINVAL), /* more than a large one */
	VALUE(small_buffer_count, 1, 0),
	VALUE(small_buffer_count, 0, -EINVAL),
	VALUE(small_buffer_count, 65537, -EINVAL),
	VALUE(io_level, PINION_IO_RING, 0),
	VALUE(io_level, PINION_IO_RING_MESSAGE, 0),
	VALUE(io_level, PINION_IO_RING_MESSAGE + 1, -EINVAL),
	VALUE(lane_floor, 0, 0),
	VALUE(lane_floor, 2, 0),
	VALUE(lane_floor, 1, -EINVAL),
	VALUE(lane_floor, 65535, 0),
	VALUE(lane_floor, 65536, -EINVAL),
	VALUE(low_max_wait_ms, 86400000, 0),
	VALUE(low_max_wait_ms, 86400001, -EINVAL),
	VALUE(assist, PINION_ASSIST_IDLE, 0),
	VALUE(assist, 2, -EINVAL),
	VALUE(assist_reserve, 0, 0),
	VALUE(assist_reserve, 4096, 0),
	VALUE(assist_reserve, 4097, -EINVAL),
	VALUE(high_warn_depth, UINT32_MAX, 0),
	VALUE(polled, PINION_POLLED_ALWAYS, 0),
	VALUE(polled, PINION_POLLED_ALWAYS + 1, -EINVAL),
	VALUE(ring_sharing, PINION_RING_SHARED, 0),
	VALUE(ring_sharing, PINION_RING_SHARED + 1, -EINVAL),
	VALUE(queue_order, PINION_QUEUE_LIFO, 0),
	VALUE(queue_order, 2, -EINVAL),
	VALUE(queue_tasks, 4, 0),
	VALUE(queue_tasks, 65536, 0),
	VALUE(queue_tasks, 0, -EINVAL),
	VALUE(queue_tasks, 2, -EINVAL),
	VALUE(queue_tasks, 100, -EINVAL),
	VALUE(queue_tasks, 131072, -EINVAL),
	VALUE(lifo_polls, 0, 0),
	VALUE(lifo_polls, 65535, 0),
	VALUE(lifo_polls, 65536, -EINVAL),
	VALUE(hoard_spawns, 1, 0),
	VALUE(hoard_spawns, 65535, 0),
	VALUE(hoard_spawns, 0, -EINVAL),
	VALUE(hoard_spawns, 65536, -EINVAL),
	VALUE(steal_tries, 1, 0),
	VALUE(steal_tries, 1024, 0),
	VALUE(steal_tries, 0, -EINVAL),
	VALUE(steal_tries, 1025, -EINVAL),
	VALUE(io_priority_high, PINION_IO_PRIORITY_NONE, 0),
	VALUE(io_priority_high, PINION_IO_PRIORITY_IDLE, 0),
	VALUE(io_priority_high, PINION_IO_PRIORITY_IDLE + 1, -EINVAL),
	VALUE(io_priority_low, PINION_IO_PRIORITY_NONE, 0),
	VALUE(io_priority_low, PINION_IO_PRIORITY_IDLE, 0),
	VALUE(io_priority_low, PINION_IO_PRIORITY_IDLE + 1, -EINVAL),
	VALUE(stall_ms, 0, 0),
	VALUE(stall_ms, 86400000, 0),
	VALUE(stall_ms, 86400001, -EINVAL),
	VALUE(spin_iters, 0, 0),
	VALUE(spin_iters, 65535, 0),
	VALUE(spin_iters, 65536, -EINVAL),
	VALUE(park_timeout_us, 0, 0),
	VALUE(park_timeout_us, 60000000, 0),
	VALUE(park_timeout_us, 60000001, -EINVAL),
	VALUE(injector_target_us, 1, 0),
	VALUE(injector_target_us, 1000000, 0),
	VALUE(injector_target_us, 0, -EINVAL),
	VALUE(injector_target_us, 1000001, -EINVAL),
	VALUE(interval_min, 1, 0),
	VALUE(interval_min, 255, 0),
	VALUE(interval_min, 0, -EINVAL),
	VALUE(interval_min, 256, -EINVAL), /* more than interval_max */
	VALUE(interval_min, 65536, -EINVAL),
	VALUE(interval_max, 8, 0),
	VALUE(interval_max, 65535, 0),
	VALUE(interval_max, 7, -EINVAL), /* less than interval_min */
	VALUE(interval_max, 0, -EINVAL),
	VALUE(interval_max, 65536, -EINVAL),
	VALUE(injector_batch_min, 1, 0),
	VALUE(injector_batch_min, 64, 0),
	VALUE(injector_batch_min, 0, -EINVAL),
	VALUE(injector_batch_min, 65, -EINVAL), /* more than injector_batch_max */
	VALUE(injector_batch_min, 65537, -EINVAL),
	VALUE(injector_batch_max, 4, 0),
	VALUE(injector_batch_max, 65536, 0),
	VALUE(injector_batch_max, 3, -EINVAL), /* less than injector_batch_min */
	VALUE(injector_batch_max, 0, -EINVAL),
	VALUE(injector_batch_max, 65537, -EINVAL),
	VALUE(searchers_percent, 1, 0),
	VALUE(searchers_percent, 100, 0),
	VALUE(searchers_percent, 0, -EINVAL),
	VALUE(searchers_percent, 101, -EINVAL),
	VALUE(wake_worth_us, 0, 0),
	VALUE(wake_worth_us, 1000000, 0),
	VALUE(wake_worth_us, 1000001, -EINVAL),
	VALUE(injector_tasks, 0, 0),
	VALUE(injector_tasks, 1, 0),
	VALUE(injector_tasks, UINT64_C(1) << 40, 0),
	VALUE(injector_tasks, (UINT64_C(1) << 40) + 1, -EINVAL),
	VALUE(help_depth, 0, 0),
	VALUE(help_depth, 8, 0),
	VALUE(help_depth, 9, -EINVAL),
	VALUE(tier_nice, 0, 0),
	VALUE(tier_nice, 20, 0),
	VALUE(tier_nice, 21, -EINVAL),
	VALUE(ewma_alpha_permille, 1, 0),
	VALUE(ewma_alpha_permille, 999, 0),
	VALUE(ewma_alpha_permille, 0, -EINVAL),
	VALUE(ewma_alpha_permille, 1000, -EINVAL),
	VALUE(task_ns, 1, 0),
	VALUE(task_ns, 1000000000, 0),
	VALUE(task_ns, 0, -EINVAL),
	VALUE(task_ns, 1000000001, -EINVAL),
	VALUE(wake_policy, PINION_WAKE_ROTATE, 0),
	VALUE(wake_policy, 3, -EINVAL),
	VALUE(fault_policy, PINION_FAIL_FAST, 0),
	VALUE(fault_policy, 2, -EINVAL),
	VALUE(pool_bytes, UINT64_C(64) << 30, 0),
	VALUE(pool_bytes, (UINT64_C(64) << 30) + 4096, -EINVAL),
	VALUE(pool_bytes, (UINT64_C(1) << 40) + 4096, -EINVAL),
	VALUE(pool_bytes, 2048, -EINVAL),
	VALUE(io_without, PINION_IO_NO_IOWAIT | PINION_IO_EXT_ARG, 0),
	VALUE(io_without, PINION_IO_NO_SQARRAY << 1, -EINVAL),
	VALUE(tick_interval_ms, 1, 0),
	VALUE(tick_interval_ms, 3600000, 0),
	VALUE(tick_interval_ms, 0, -EINVAL),
	VALUE(tick_interval_ms, 3600001, -EINVAL),
	VALUE(registered_files, 0, 0),
	VALUE(registered_files, 8, 0),
	VALUE(registered_files, 32768, 0),
	VALUE(registered_files, 4, -EINVAL),
	VALUE(registered_files, 12, -EINVAL),
	VALUE(registered_files, 65536, -EINVAL),
	VALUE(overflow_policy, PINION_OVERFLOW_UNWIND, 0),
	VALUE(overflow_policy, PINION_OVERFLOW_UNWIND + 1, -EINVAL),
	VALUE(crew_max, 1024, 0),
	VALUE(crew_max, 1025, -EINVAL),
	VALUE(job_log, 1, 0),
	VALUE(job_log, 2, -EINVAL),
	VALUE(max_tasks_high, 1048575, 0),
	VALUE(max_tasks_high, 1048576, -EINVAL),
	VALUE(max_tasks_normal, 1048576, -EINVAL),
	VALUE(max_tasks_low, 1048576, -EINVAL),
	VALUE(max_tasks_total, 3145725, 0),
	VALUE(max_tasks_total, 3145726, -EINVAL),
	VALUE(stack_bytes, 64 << 10, 0),
	VALUE(stack_bytes, 1 << 30, 0),
	VALUE(stack_bytes, 60 << 10, -EINVAL),
	VALUE(stack_bytes, (64 << 10) + 512, -EINVAL),
	VALUE(stack_bytes, (1 << 30) + 4096, -EINVAL),
};

static void check_values(void)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct value *value = &values[i];
		struct pinion_config config;
		struct pinion_config accepted;
		char what[64];

		pinion_config_init(&config);
		config.log = runtimes_note;
		runtimes_log[0] = '\0';
		/* Little end first, as on every machine this runs on. */
		memcpy((uint8_t *)&config + value->offset, &value->value, value->bytes);
		snprintf(what, sizeof(what), "%s = %llu", value->field,
			(unsigned long long)value->value);
		expect_number(what, value->expected, pin_config_accept(&accepted, &config));
		if (value->expected == 0) {
			expect_text(what, "", runtimes_log);
		} else if (strstr(runtimes_log, value->field) == NULL) {
			printf("%s: expected a message that names it, got \"%s\"\n", what,
				runtimes_log);
			expect_failure_count++;
		}
	}
}

/* A program that was compiled against a newer, longer struct. */
struct newer {
	struct pinion_config known;
	uint8_t tail[24];
};

static void check_sizes(void)
{
	struct pinion_config accepted = {.size = 1};
	struct pinion_config config;
	struct newer newer;

	memset(&newer, 0xff, sizeof(newer));
	pinion_config_init_sized(&newer.known, sizeof(newer));
	expect_number("size as given", sizeof(newer), newer.known.size);
	expect_number("zero tail", 0, pin_config_accept(&accepted, &newer.known));
	expect_number("size as accepted", sizeof(struct pinion_config), accepted.size);
	newer.tail[sizeof(newer.tail) - 1] = 1;
	accepted.size = 1;
	expect_number("unknown tail", -E2BIG, pin_config_accept(&accepted, &newer.known));
	expect_number("output of a refused one", 1, accepted.size);

	pinion_config_init(&config);
	config.size = sizeof(config) - 8;
	expect_number("smaller than any release", -EINVAL, pin_config_accept(&accepted, &config));
	config.size = 0;
	expect_number("never initialised", -EINVAL, pin_config_accept(&accepted, &config));
	expect_number("NULL", -EINVAL, pin_config_accept(&accepted, NULL));

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

	pinion_config_init(&config);
	expect_number("size", sizeof(config), config.size);
	expect_number("defaults", 0, pin_config_accept(&accepted, &config));
	expect_number("copied as it is", 0, memcmp(&accepted, &config, sizeof(config)));
	check_values();
	check_sizes();

	/* And pinion_runtime_create passes it all on. */
	runtimes_config(&config, 4097, PINION_IO_AUTO);
	expect_number("create", -EINVAL, pinion_runtime_create(&config, &runtime));
	expect_true("create wrote nothing", runtime == NULL);
	expect_true("create names the field", strstr(runtimes_log, "worker_count") != NULL);
	return expect_status();
}
