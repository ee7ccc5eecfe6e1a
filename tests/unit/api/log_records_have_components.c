/* SPDX-License-Identifier: MIT */
/*
 * Goal: a runtime with `log_record` sends it each message with level and
 * component, and none to `log`; what `log_dropped` names is not sent; every
 * component has a name, and no other number has. WP-34.
 * Method: a task that fails, and a configuration that is refused.
 */
#include "tests/support/runtimes.h"

#include <errno.h>
#include <string.h>

static struct pinion_log_record last;
static char last_message[512];
static uint32_t record_count;
static uint32_t line_count; /* that went to `log` */

static void keep_record(void *arg, const struct pinion_log_record *record)
{
	expect_true("argument", arg == &last);
	last = *record;
	snprintf(last_message, sizeof(last_message), "%s", record->message);
	record_count++;
}

static void keep_line(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	(void)message;
	line_count++;
}

static int fail(struct pinion_task *task)
{
	(void)task;
	return -EIO;
}

static void run(uint64_t dropped)
{
	struct pinion_task task = {.run = fail};
	struct pinion_runtime *runtime;
	struct pinion_config config;

	record_count = 0;
	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.metrics_page = 0;
	config.log = keep_line;
	config.log_record = keep_record;
	config.log_arg = &last;
	config.log_dropped = dropped;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

static uint64_t limit_all(uint32_t level_count)
{
	uint64_t dropped = 0;

	for (uint32_t i = 0; i < PINION_LOG_COMPONENTS; i++) {
		dropped = pinion_log_limit(dropped, (enum pinion_log_component)i, level_count);
	}
	return dropped;
}

static void check_refusal(void)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;

	record_count = 0;
	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	config.log = keep_line;
	config.log_record = keep_record;
	config.log_arg = &last;
	runtimes_tuning.use_smt = 7;
	expect_number("refused", -EINVAL, pinion_runtime_create(&config, &runtime));
	expect_number("one record", 1, record_count);
	expect_number("component", PINION_LOG_API, last.component);
	expect_number("level", PINION_LOG_ERROR, last.level);
	expect_true(last_message, strncmp(last_message, "use_smt: ", strlen("use_smt: ")) == 0);
}

static void check_names(void)
{
	static const char *const names[PINION_LOG_COMPONENTS] = {
		"api", "host", "memory", "io", "observe", "worker", "task", "scan"};

	for (uint32_t i = 0; i < PINION_LOG_COMPONENTS; i++) {
		expect_true(names[i], strcmp(pinion_log_component_name(i), names[i]) == 0);
	}
	expect_true("no other", pinion_log_component_name(PINION_LOG_COMPONENTS) == NULL);
}

int main(void)
{
	run(limit_all(2));
	expect_number("one record", 1, record_count);
	expect_number("component", PINION_LOG_WORKER, last.component);
	expect_number("level", PINION_LOG_WARN, last.level);
	expect_true(last_message, strstr(last_message, "failed: ") != NULL);
	run(pinion_log_limit(limit_all(2), PINION_LOG_WORKER, 1));
	expect_number("of errors alone", 0, record_count);
	run(pinion_log_limit(limit_all(0), PINION_LOG_WORKER, 2));
	expect_number("of workers alone", 1, record_count);
	check_refusal();
	expect_number("none to the other hook", 0, line_count);
	check_names();
	return expect_status();
}
