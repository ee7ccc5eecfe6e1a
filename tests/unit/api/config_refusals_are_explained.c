/* SPDX-License-Identifier: MIT */
/*
 * Goal: a text of the environment that is no value is refused in words that
 * name the variable, the text, and what the field takes: its range, each word,
 * or the form of a list; a long text is cut and not the rest of the message. A
 * field that breaks a rule is refused with its value and the rule. An arena
 * that cannot be had names the fields that make it large.
 * Method: one mistake after the other, and the message compared.
 */
#include "runtime/memory/arena.h"
#include "tests/support/runtimes.h"

#include <errno.h>

enum { LIMIT_SECONDS = 60 };

static void expect_refused(const char *variable, const char *text, const char *words)
{
	struct pinion_config config;
	struct pinion_tuning tuning;

	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.log = runtimes_note;
	setenv(variable, text, 1);
	runtimes_log[0] = '\0';
	expect_number(variable, -EINVAL, pinion_config_from_env(&config, &tuning));
	expect_text(variable, words, runtimes_log);
	unsetenv(variable);
}

static void check_texts(void)
{
	static char text[4096];
	char words[512];

	expect_refused("PINION_WORKER_COUNT", "many",
		"PINION_WORKER_COUNT: \"many\" is not a value for worker_count: it takes a number "
		"from 0 to 4096\n");
	expect_refused("PINION_BYTES_PER_SECOND", "10 MB",
		"PINION_BYTES_PER_SECOND: \"10 MB\" is not a value for bytes_per_second: it takes "
		"a size from 0 to 4611686018427387904 (examples: 65536, 64K, 1M, 10MB)\n");
	expect_refused("PINION_BIND_WORKERS", "cpu",
		"PINION_BIND_WORKERS: \"cpu\" is not a value for bind_workers: it takes one of "
		"none, core, node\n");
	expect_refused("PINION_IO_WITHOUT", "openat,speed",
		"PINION_IO_WITHOUT: \"openat,speed\" is not a value for io_without: it takes a "
		"list of nothing,ext-arg,openat,registered-buffers,registered-ring,coop-taskrun,"
		"single-issuer,defer-taskrun,statx-dioalign,cachestat,clone-buffers,send-msg-ring,"
		"no-iowait,dontcache,registered-files,nvme-commands,no-sqarray,renameat,linkat,"
		"shutdown,socket\n");
	expect_refused("PINION_SEED", "0xg",
		"PINION_SEED: \"0xg\" is not a value for seed: it takes a number of 64 bits\n");
	expect_refused(
		"PINION_RING_ENTRIES", "100", "PINION_RING_ENTRIES: 100 is not a power of two\n");
	expect_refused("PINION_QUEUE_TASKS", "5", "PINION_QUEUE_TASKS: 5 is not a power of two\n");
	expect_refused("PINION_STACK_BYTES", "4096",
		"PINION_STACK_BYTES: 4096 is neither 0 nor 65536 or more\n");
	expect_refused(
		"PINION_TRACE_EVENTS", "15", "PINION_TRACE_EVENTS: 15 is not a power of two\n");
	expect_refused(
		"PINION_TRACE_EVENTS", "8", "PINION_TRACE_EVENTS: 8 is neither 0 nor 16 or more\n");
	expect_refused("PINION_REGISTERED_FILES", "4",
		"PINION_REGISTERED_FILES: 4 is neither 0 nor 8 or more\n");
	expect_refused("PINION_LANE_FLOOR", "1",
		"PINION_LANE_FLOOR: 1 would be all of the tasks: 0 is strict, 2 every other "
		"one\n");
	expect_refused("PINION_LANES", "hh",
		"PINION_LANES: \"hh\": a lane is named twice in one class; classes are h, n, l "
		"and a number each, as in \"h:1,hn:2,hnl\"\n");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	snprintf(words, sizeof(words),
		"PINION_QUEUE_ORDER: \"%.64s\" is not a value for queue_order: it takes one of "
		"fifo, lifo\n",
		text);
	expect_refused("PINION_QUEUE_ORDER", text, words);
}

static void check_lanes(void)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	config.lanes = "h:1,l";
	expect_number("lanes", -EINVAL, pinion_runtime_create(&config, &runtime));
	expect_text("lanes",
		"lanes: \"h:1,l\": a lane is served by no class; classes are h, n, l and a number "
		"each, as in \"h:1,hn:2,hnl\"\n",
		runtimes_log);
}

/* One number of an otherwise sound configuration. */
static void expect_rule(
	uint32_t *field, uint32_t value, struct pinion_config *config, const char *words)
{
	struct pinion_runtime *runtime = NULL;
	uint32_t before = *field;

	*field = value;
	runtimes_log[0] = '\0';
	expect_number(words, -EINVAL, pinion_runtime_create(config, &runtime));
	expect_text("rule", words, runtimes_log);
	*field = before;
}

static void check_rules(void)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	expect_rule(&config.worker_count, 4097, &config,
		"worker_count: 4097 is out of range, it must be 0 to 4096\n");
	expect_rule(&config.buffer_bytes, 65537, &config,
		"buffer_bytes: 65537 is not a multiple of 4096\n");
	expect_rule(&config.small_buffer_bytes, 69632, &config,
		"small_buffer_bytes: 69632 is more than buffer_bytes, 65536 "
		"(PINION_SMALL_BUFFER_BYTES, PINION_BUFFER_BYTES)\n");
	expect_rule(&runtimes_tuning.ring_entries, 100, &config,
		"ring_entries: 100 is not a power of two\n");
	expect_rule(&runtimes_tuning.queue_tasks, 48, &config,
		"queue_tasks: 48 is not a power of two\n");
	expect_rule(&runtimes_tuning.registered_files, 96, &config,
		"registered_files: 96 is not a power of two\n");
	expect_rule(&runtimes_tuning.registered_files, 4, &config,
		"registered_files: 4 is neither 0 nor 8 or more\n");
	expect_rule(&runtimes_tuning.interval_min, 256, &config,
		"interval_min: 256 is more than interval_max, 255 (PINION_INTERVAL_MIN, "
		"PINION_INTERVAL_MAX)\n");
	expect_rule(&runtimes_tuning.injector_batch_min, 65, &config,
		"injector_batch_min: 65 is more than injector_batch_max, 64 "
		"(PINION_INJECTOR_BATCH_MIN, PINION_INJECTOR_BATCH_MAX)\n");
	expect_rule(&runtimes_tuning.trace_events, 8, &config,
		"trace_events: 8 is neither 0 nor 16 or more\n");
	expect_rule(&runtimes_tuning.lane_floor, 1, &config,
		"lane_floor: 1 would be all of the tasks: 0 is strict, 2 every other one\n");
	runtimes_tuning.stack_bytes = 61440;
	expect_rule(&config.worker_count, 1, &config,
		"stack_bytes: 61440 is neither 0 nor 65536 or more\n");
}

/* A PiB is more than a process has addresses. */
static void check_arena(void)
{
	struct pin_arena_options options = {.bytes = (size_t)1 << 50};
	struct pin_log log = {.fn = runtimes_note};
	struct pin_arena arena;

	runtimes_log[0] = '\0';
	expect_number("arena", -ENOMEM, pin_arena_init(&arena, &pin_host_linux, &options, &log));
	expect_true("its fields",
		strstr(runtimes_log,
			"lower buffer_count, buffer_bytes or pool_bytes (PINION_BUFFER_COUNT, "
			"PINION_BUFFER_BYTES, PINION_POOL_BYTES)\n") != NULL);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_texts();
	check_lanes();
	check_rules();
	check_arena();
	return expect_status();
}
