/* SPDX-License-Identifier: MIT */
/*
 * The configuration: one table says for each field its range, default and
 * environment variable; defaults, checks and environment.c all follow it.
 *
 * pinion_runtime_create() passes the caller's struct through
 * pin_config_accept(), which also completes structs of older programs.
 *
 * Invariant: the library works on its own copy, in which every field is in
 * range; the caller's struct may go after the call.
 */
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/heap.h"
#include "runtime/io/registered_files.h"
#include "runtime/observe/trace.h"
#include "runtime/policy/lanes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The structs as first released; smaller ones were never valid. */
#define CONFIG_BYTES_MIN offsetof(struct pinion_config, log_record)
#define TUNING_BYTES_MIN sizeof(struct pinion_tuning)
_Static_assert(CONFIG_BYTES_MIN == 112, "released size");
_Static_assert(offsetof(struct pinion_config, is_driven) == 128, "released size");
_Static_assert(sizeof(struct pinion_config) == 136, "released size");
_Static_assert(sizeof(struct pinion_tuning) == 344, "released size");

#define ROW(part, member, variable, standard, min, max, multiple, words, is_set, is_size) \
	{ \
#member, variable, PIN_CONFIG_IN_##part, offsetof(struct pinion_##part, member), \
			sizeof(((struct pinion_##part *)0)->member), standard, min, max, multiple, \
			words, is_set, is_size \
	}
#define FIELD(part, member, variable, standard, min, max, multiple, words) \
	ROW(part, member, variable, standard, min, max, multiple, words, false, false)
#define SET(part, member, variable, bits, words) \
	ROW(part, member, variable, 0, 0, (1u << (bits)) - 1, 1, words, true, false)
#define NUMBER(part, member, variable, standard, min, max) \
	FIELD(part, member, variable, standard, min, max, 1, NULL)
#define SIZE(part, member, variable, standard, min, max, multiple) \
	ROW(part, member, variable, standard, min, max, multiple, NULL, false, true)

enum {
	BUFFER_BYTES_MAX = 256 << 20,
	/* A worker's loop needs a part of it. */
	STACK_BYTES_MIN = 64 << 10,
	STACK_BYTES_MAX = 1 << 30,
	/* PINION_ADMISSION_TASKS */
	MAX_TASKS = (1 << 20) - 1,
	/* Large buffers of a worker, and those that all workers divide. */
	BUFFERS_EACH = 28,
	BUFFERS_DIVIDED = 32,
	/* Of these as many as stay within a part of the machine's memory. */
	MEMORY_SHARE = 64,
	BUFFERS_MIN = 4,
	DEPTH_MAX = (1 << 20) - 1,
	METRICS_PATH_BYTES = 4000,
};

#define ARENAS_BYTES_MAX (UINT64_C(512) << 20)
#define DEPTH_BYTES_MAX (UINT64_C(1) << 40)
#define INJECTOR_TASKS_MAX (UINT64_C(1) << 40)
#define RATE_MAX (UINT64_C(1) << 62)

#define POOL_BYTES_MAX (UINT64_C(64) << 30)

/* Not in the table. */
const char pin_lanes_variable[] = "PINION_LANES";
const char pin_seed_variable[] = "PINION_SEED";
const char pin_metrics_variable[] = "PINION_METRICS_FILE";

static const uint64_t seed_standard = 0x853c49e6748fea9b;

static const char *const io_level_words[] = {
	"auto", "fallback", "ring", "ring-basic", "ring-coop", "ring-defer", "ring-message", NULL};
static const char *const io_feature_words[] = {"nothing",
#define WORD(name, word, kind, major, minor, probe) word,
	PIN_KERNEL_FEATURES(WORD)
#undef WORD
		NULL};
_Static_assert(PINION_IO_RING_MESSAGE == PIN_ARRAY_COUNT(io_level_words) - 2, "one for each level");
static const char *const bind_words[] = {"none", "core", "node", NULL};
static const char *const ring_sharing_words[] = {"own", "shared", NULL};
static const char *const polled_words[] = {"never", "auto", "always", NULL};
static const char *const queue_order_words[] = {"fifo", "lifo", NULL};
static const char *const wake_policy_words[] = {"near", "lowest", "rotate", NULL};
static const char *const io_priority_words[] = {
	"none", "be0", "be1", "be2", "be3", "be4", "be5", "be6", "be7", "idle", NULL};
_Static_assert(PINION_IO_PRIORITY_IDLE == PIN_ARRAY_COUNT(io_priority_words) - 2, "one for each");
static const char *const assist_words[] = {"off", "idle", NULL};
static const char *const fault_policy_words[] = {"isolate", "fail_fast", NULL};

/* All but both `size`, the seed, pointers and reserved ones. */
static const struct pin_config_field fields[] = {
	NUMBER(config, worker_count, "PINION_WORKER_COUNT", 0, 0, 4096),
	NUMBER(tuning, use_smt, "PINION_USE_SMT", 0, 0, 1),
	FIELD(config, bind_workers, "PINION_BIND_WORKERS", PINION_BIND_CORE, PINION_BIND_NONE,
		PINION_BIND_NODE, 1, bind_words),
	NUMBER(tuning, ring_entries, "PINION_RING_ENTRIES", 256, 8, 32768),
	NUMBER(tuning, ring_helper_count, "PINION_RING_HELPER_COUNT", 16, 1, 1024),
	NUMBER(tuning, budget_polls, "PINION_BUDGET_POLLS", 128, 1, 65535),
	NUMBER(tuning, budget_us, "PINION_BUDGET_US", 500, 1, 1000000),
	SIZE(config, buffer_bytes, "PINION_BUFFER_BYTES", 1 << 20, 4096, BUFFER_BYTES_MAX, 4096),
	NUMBER(config, buffer_count, "PINION_BUFFER_COUNT", 0, 0, 65536),
	SIZE(config, small_buffer_bytes, "PINION_SMALL_BUFFER_BYTES", 64 << 10, 4096,
		BUFFER_BYTES_MAX, 4096),
	NUMBER(config, small_buffer_count, "PINION_SMALL_BUFFER_COUNT", 48, 1, 65536),
	FIELD(config, io_level, "PINION_IO_LEVEL", PINION_IO_AUTO, PINION_IO_AUTO,
		PINION_IO_RING_MESSAGE, 1, io_level_words),
	FIELD(tuning, ring_sharing, "PINION_RING_SHARING", PINION_RING_OWN, PINION_RING_OWN,
		PINION_RING_SHARED, 1, ring_sharing_words),
	FIELD(tuning, queue_order, "PINION_QUEUE_ORDER", PINION_QUEUE_FIFO, PINION_QUEUE_FIFO,
		PINION_QUEUE_LIFO, 1, queue_order_words),
	NUMBER(tuning, queue_tasks, "PINION_QUEUE_TASKS", 256, 4, 65536),
	NUMBER(tuning, lifo_polls, "PINION_LIFO_POLLS", 3, 0, 65535),
	NUMBER(tuning, wake_batch_spawns, "PINION_WAKE_BATCH_SPAWNS", 32, 1, 65535),
	NUMBER(tuning, steal_tries, "PINION_STEAL_TRIES", 4, 1, 1024),
	NUMBER(tuning, spin_iters, "PINION_SPIN_ITERS", 200, 0, 65535),
	NUMBER(tuning, park_timeout_us, "PINION_PARK_TIMEOUT_US", 0, 0, 60000000),
	NUMBER(tuning, injector_target_us, "PINION_INJECTOR_TARGET_US", 1000, 1, 1000000),
	NUMBER(tuning, interval_min, "PINION_INTERVAL_MIN", 8, 1, 65535),
	NUMBER(tuning, interval_max, "PINION_INTERVAL_MAX", 255, 1, 65535),
	NUMBER(tuning, ewma_alpha_permille, "PINION_EWMA_ALPHA_PERMILLE", 100, 1, 999),
	NUMBER(tuning, task_ns, "PINION_TASK_NS", 50000, 1, 1000000000),
	FIELD(tuning, wake_policy, "PINION_WAKE_POLICY", PINION_WAKE_NEAR, PINION_WAKE_NEAR,
		PINION_WAKE_ROTATE, 1, wake_policy_words),
	FIELD(tuning, fault_policy, "PINION_FAULT_POLICY", PINION_FAULT_ISOLATE,
		PINION_FAULT_ISOLATE, PINION_FAULT_FAIL_FAST, 1, fault_policy_words),
	SIZE(config, pool_bytes, "PINION_POOL_BYTES", 0, 0, POOL_BYTES_MAX, 4096),
	NUMBER(tuning, watchdog_us, "PINION_WATCHDOG_US", 10000, 0, 60000000),
	SET(tuning, io_without, "PINION_IO_WITHOUT", PIN_FEATURE_COUNT, io_feature_words),
	NUMBER(tuning, lane_floor, "PINION_LANE_FLOOR", 16, 0, 65535),
	NUMBER(tuning, low_max_wait_ms, "PINION_LOW_MAX_WAIT_MS", 0, 0, 86400000),
	FIELD(tuning, assist, "PINION_ASSIST", PINION_ASSIST_OFF, PINION_ASSIST_OFF,
		PINION_ASSIST_IDLE, 1, assist_words),
	NUMBER(tuning, assist_reserve, "PINION_ASSIST_RESERVE", 1, 0, 4096),
	NUMBER(tuning, high_warn_depth, "PINION_HIGH_WARN_DEPTH", 100, 0, UINT32_MAX),
	NUMBER(tuning, normal_warn_depth, "PINION_NORMAL_WARN_DEPTH", 0, 0, UINT32_MAX),
	NUMBER(tuning, low_warn_depth, "PINION_LOW_WARN_DEPTH", 0, 0, UINT32_MAX),
	FIELD(tuning, polled, "PINION_POLLED", PINION_POLLED_NEVER, PINION_POLLED_NEVER,
		PINION_POLLED_ALWAYS, 1, polled_words),
	NUMBER(tuning, tick_interval_ms, "PINION_TICK_INTERVAL_MS", 1000, 1, 3600000),
	NUMBER(tuning, registered_files, "PINION_REGISTERED_FILES", 256, 0, 32768),
	SIZE(tuning, stack_bytes, "PINION_STACK_BYTES", 0, 0, STACK_BYTES_MAX, 4096),
	NUMBER(tuning, thread_pool_max, "PINION_THREAD_POOL_MAX", 0, 0, 1024),
	NUMBER(tuning, job_log, "PINION_JOB_LOG", 0, 0, 1),
	NUMBER(tuning, max_tasks_high, "PINION_MAX_TASKS_HIGH", 0, 0, MAX_TASKS),
	NUMBER(tuning, max_tasks_normal, "PINION_MAX_TASKS_NORMAL", 0, 0, MAX_TASKS),
	NUMBER(tuning, max_tasks_low, "PINION_MAX_TASKS_LOW", 0, 0, MAX_TASKS),
	NUMBER(tuning, max_tasks_total, "PINION_MAX_TASKS_TOTAL", 0, 0, 3 * MAX_TASKS),
	NUMBER(tuning, depth_count, "PINION_DEPTH_COUNT", 0, 0, DEPTH_MAX),
	NUMBER(tuning, depth_min, "PINION_DEPTH_MIN", 8, 1, 65536),
	NUMBER(tuning, depth_count_max, "PINION_DEPTH_COUNT_MAX", 1024, 1, DEPTH_MAX),
	NUMBER(tuning, depth_rotational, "PINION_DEPTH_ROTATIONAL", 4, 0, 65536),
	SIZE(tuning, depth_bytes, "PINION_DEPTH_BYTES", 0, 0, DEPTH_BYTES_MAX, 1),
	SIZE(tuning, depth_bytes_max, "PINION_DEPTH_BYTES_MAX", 64 << 20, 64 << 10, DEPTH_BYTES_MAX,
		1),
	SIZE(tuning, bytes_per_second, "PINION_BYTES_PER_SECOND", 0, 0, RATE_MAX, 1),
	NUMBER(tuning, requests_per_second, "PINION_REQUESTS_PER_SECOND", 0, 0, RATE_MAX),
	NUMBER(tuning, stall_ms, "PINION_STALL_MS", 100, 0, 86400000),
	NUMBER(tuning, injector_batch_min, "PINION_INJECTOR_BATCH_MIN", 4, 1, 65536),
	NUMBER(tuning, injector_batch_max, "PINION_INJECTOR_BATCH_MAX", 64, 1, 65536),
	NUMBER(tuning, injector_tasks, "PINION_INJECTOR_TASKS", 65536, 0, INJECTOR_TASKS_MAX),
	NUMBER(tuning, searchers_percent, "PINION_SEARCHERS_PERCENT", 50, 1, 100),
	NUMBER(tuning, wake_worth_us, "PINION_WAKE_WORTH_US", 20, 0, 1000000),
	NUMBER(tuning, spawn_wake_us, "PINION_SPAWN_WAKE_US", 100, 0, 1000000),
	NUMBER(tuning, class_nice, "PINION_CLASS_NICE", 0, 0, PIN_NICE_IDLE),
	FIELD(tuning, io_priority_high, "PINION_IO_PRIORITY_HIGH", PINION_IO_PRIORITY_NONE,
		PINION_IO_PRIORITY_NONE, PINION_IO_PRIORITY_IDLE, 1, io_priority_words),
	FIELD(tuning, io_priority_low, "PINION_IO_PRIORITY_LOW", PINION_IO_PRIORITY_BE7,
		PINION_IO_PRIORITY_NONE, PINION_IO_PRIORITY_IDLE, 1, io_priority_words),
	NUMBER(tuning, cq_stall_us, "PINION_CQ_STALL_US", 0, 0, UINT64_C(86400000000)),
	NUMBER(tuning, cpu_latency_us, "PINION_CPU_LATENCY_US", PINION_CPU_LATENCY_ANY, 0,
		PINION_CPU_LATENCY_ANY),
	NUMBER(tuning, buffer_rest_ms, "PINION_BUFFER_REST_MS", 1000, 0, 86400000),
	NUMBER(tuning, metrics_page, "PINION_METRICS_PAGE", 1, 0, 1),
	NUMBER(tuning, trace_events, "PINION_TRACE_EVENTS", 0, 0, PIN_TRACE_EVENTS_MAX),
	NUMBER(config, log_dropped, NULL, 0, 0, UINT64_MAX),
	NUMBER(config, is_driven, NULL, 0, 0, 1),
};

/* What more than a range some fields have to keep. */
static const struct {
	const char *name;
	bool is_power; /* of two, or 0 */
	uint32_t least;
} rules[] = {
	{"ring_entries", true, 0},
	{"queue_tasks", true, 0},
	{"registered_files", true, PIN_FILE_SLOTS_MIN},
	{"trace_events", true, PIN_TRACE_EVENTS_MIN},
	{"stack_bytes", false, STACK_BYTES_MIN},
};

static __attribute__((unused)) bool is_sound(const struct pin_config_field *field)
{
	size_t end = field->part == PIN_CONFIG_IN_config ? sizeof(struct pinion_config)
							 : sizeof(struct pinion_tuning);

	return field->offset + field->bytes <= end && field->min <= field->standard &&
		field->standard <= field->max && field->multiple > 0 &&
		field->standard % field->multiple == 0 &&
		!(field->is_set && field->words == NULL) &&
		!(field->is_size && field->words != NULL);
}

static uint8_t *member_of(
	const struct pin_config_parts *parts, const struct pin_config_field *field)
{
	PIN_DCHECK(is_sound(field));
	return field->part == PIN_CONFIG_IN_config ? (uint8_t *)parts->config + field->offset
						   : (uint8_t *)parts->tuning + field->offset;
}

static uint64_t read_field(
	const struct pin_config_parts *parts, const struct pin_config_field *field)
{
	uint64_t wide;
	uint32_t narrow;

	PIN_DCHECK(field->bytes == sizeof(wide) || field->bytes == sizeof(narrow));
	if (field->bytes == sizeof(wide)) {
		memcpy(&wide, member_of(parts, field), sizeof(wide));
		return wide;
	}
	memcpy(&narrow, member_of(parts, field), sizeof(narrow));
	return narrow;
}

void pin_config_write_field(
	const struct pin_config_parts *parts, const struct pin_config_field *field, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;

	PIN_DCHECK(field->bytes == sizeof(value) || value <= UINT32_MAX);
	if (field->bytes == sizeof(value)) {
		memcpy(member_of(parts, field), &value, sizeof(value));
	} else {
		memcpy(member_of(parts, field), &narrow, sizeof(narrow));
	}
}

const struct pin_config_field *pin_config_fields(size_t *out_count)
{
	*out_count = PIN_ARRAY_COUNT(fields);
	return fields;
}

static void write_defaults(const struct pin_config_parts *parts, enum pin_config_part part)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(fields); i++) {
		if (fields[i].part == part) {
			pin_config_write_field(parts, &fields[i], fields[i].standard);
			PIN_DCHECK(read_field(parts, &fields[i]) == fields[i].standard);
		}
	}
}

const char *pinion_log_component_name(uint32_t component)
{
	return pin_log_component_name(component);
}

void pinion_config_init_sized(struct pinion_config *config, uint32_t size)
{
	struct pinion_config full = {.size = size};

	write_defaults(&(struct pin_config_parts){.config = &full}, PIN_CONFIG_IN_config);
	pin_sized_give(config, size, &full, sizeof(full));
}

void pinion_tuning_init_sized(struct pinion_tuning *tuning, uint32_t size)
{
	struct pinion_tuning full = {.size = size, .seed = seed_standard};

	write_defaults(&(struct pin_config_parts){.tuning = &full}, PIN_CONFIG_IN_tuning);
	pin_sized_give(tuning, size, &full, sizeof(full));
}

static int check_rules(
	const struct pin_log *log, const char *name, uint64_t value, const char *source)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(rules); i++) {
		if (value == 0 || strcmp(rules[i].name, name) != 0) {
			continue;
		}
		if (rules[i].is_power && (value & (value - 1)) != 0) {
			pin_log(log, PINION_LOG_ERROR, "%s: %llu is not a power of two", source,
				(unsigned long long)value);
			return -EINVAL;
		}
		if (value < rules[i].least) {
			pin_log(log, PINION_LOG_ERROR, "%s: %llu is neither 0 nor %u or more",
				source, (unsigned long long)value, rules[i].least);
			return -EINVAL;
		}
	}
	if (value == 1 && strcmp(name, "lane_floor") == 0) {
		pin_log(log, PINION_LOG_ERROR,
			"%s: 1 would be all of the tasks: 0 is strict, 2 every other one", source);
		return -EINVAL;
	}
	return 0;
}

int pin_config_check_field(const struct pin_log *log, const struct pin_config_field *field,
	uint64_t value, const char *source)
{
	PIN_DCHECK(is_sound(field));
	if (value < field->min || value > field->max) {
		pin_log(log, PINION_LOG_ERROR, "%s: %llu is out of range, it must be %llu to %llu",
			source, (unsigned long long)value, (unsigned long long)field->min,
			(unsigned long long)field->max);
		return -EINVAL;
	}
	if (value % field->multiple != 0) {
		pin_log(log, PINION_LOG_ERROR, "%s: %llu is not a multiple of %llu", source,
			(unsigned long long)value, (unsigned long long)field->multiple);
		return -EINVAL;
	}
	return check_rules(log, field->name, value, source);
}

/* A relative path would depend on where the process is when it is read. */
int pin_config_check_path(const struct pin_log *log, const char *path, const char *source)
{
	if (path == NULL || (path[0] == '/' && strlen(path) < METRICS_PATH_BYTES)) {
		return 0;
	}
	pin_log(log, PINION_LOG_ERROR, "%s: \"%.*s\" is not an absolute path of less than %d bytes",
		source, PIN_CONFIG_TEXT_SHOWN, path, METRICS_PATH_BYTES);
	return -EINVAL;
}

/*
 * The rules that concern more than one field. Either may be at fault: the lines
 * name the variables of both.
 */
static int check_tuning(const struct pin_log *log, const struct pinion_tuning *tuning)
{
	if (tuning->interval_min > tuning->interval_max) {
		pin_log(log, PINION_LOG_ERROR,
			"interval_min: %u is more than interval_max, %u (PINION_INTERVAL_MIN, "
			"PINION_INTERVAL_MAX)",
			tuning->interval_min, tuning->interval_max);
		return -EINVAL;
	}
	if (tuning->injector_batch_min > tuning->injector_batch_max) {
		pin_log(log, PINION_LOG_ERROR,
			"injector_batch_min: %u is more than injector_batch_max, %u "
			"(PINION_INJECTOR_BATCH_MIN, PINION_INJECTOR_BATCH_MAX)",
			tuning->injector_batch_min, tuning->injector_batch_max);
		return -EINVAL;
	}
	if (!pin_heap_is_whole(tuning->allocator)) {
		pin_log(log, PINION_LOG_ERROR, "allocator: one of its functions is missing");
		return -EINVAL;
	}
	if (tuning->arena_map == NULL && tuning->arena_unmap != NULL) {
		pin_log(log, PINION_LOG_ERROR, "arena_unmap: given without arena_map");
		return -EINVAL;
	}
	return pin_config_check_path(log, tuning->metrics_file, "metrics_file");
}

static int check_config(const struct pin_log *log, const struct pinion_config *config)
{
	if (config->small_buffer_bytes > config->buffer_bytes) {
		pin_log(log, PINION_LOG_ERROR,
			"small_buffer_bytes: %u is more than buffer_bytes, %u "
			"(PINION_SMALL_BUFFER_BYTES, PINION_BUFFER_BYTES)",
			config->small_buffer_bytes, config->buffer_bytes);
		return -EINVAL;
	}
	if (config->reserved != 0) {
		pin_log(log, PINION_LOG_ERROR,
			"reserved: %u is not 0: call pinion_config_init() first", config->reserved);
		return -EINVAL;
	}
	return 0;
}

int pin_config_refuse_lanes(
	const struct pin_log *log, const char *text, const char *fault, const char *source)
{
	pin_log(log, PINION_LOG_ERROR,
		"%s: \"%.*s\": %s; classes are h, n, l and a number each, as in \"h:1,hn:2,hnl\"",
		source, PIN_CONFIG_TEXT_SHOWN, text, fault);
	return -EINVAL;
}

/*
 * Parses the text only to check it; the runtime parses it again when it knows
 * the number of workers.
 */
static int check_lanes(const struct pin_log *log, const struct pinion_config *config)
{
	struct pin_lane_plan plan;
	const char *fault = pin_lane_plan_parse(&plan, config->lanes);

	if (fault == NULL &&
		pin_lane_plan_complete(&plan, config->worker_count, config->worker_count) == 0) {
		fault = "it does not fit worker_count";
	}
	return fault == NULL ? 0 : pin_config_refuse_lanes(log, config->lanes, fault, "lanes");
}

/* The caller's tuning, or every default, as a struct of this library's size. */
static int take_tuning(struct pinion_tuning *out_tuning, const struct pinion_tuning *given)
{
	int rc;

	if (given == NULL) {
		pinion_tuning_init(out_tuning);
		PIN_DCHECK(out_tuning->size == sizeof(*out_tuning));
		return 0;
	}
	if (given->size < TUNING_BYTES_MIN) {
		return -EINVAL;
	}
	rc = pin_sized_take(out_tuning, sizeof(*out_tuning), given, given->size);
	out_tuning->size = sizeof(*out_tuning);
	return rc;
}

/*
 * The first mistake ends the call, with a message that names the field; the
 * outputs are written only if there is none.
 */
int pin_config_accept(struct pinion_config *out_config, struct pinion_tuning *out_tuning,
	const struct pinion_config *given)
{
	struct pinion_config config;
	struct pinion_tuning tuning;
	struct pin_config_parts parts = {.config = &config, .tuning = &tuning};
	struct pin_log log;
	int rc;

	if (given == NULL || given->size < CONFIG_BYTES_MIN) {
		return -EINVAL;
	}
	pinion_config_init(&config);
	rc = pin_sized_take(&config, sizeof(config), given, given->size);
	if (rc == 0) {
		rc = take_tuning(&tuning, config.tuning);
	}
	if (rc < 0) {
		return rc;
	}
	config.size = sizeof(config);
	config.tuning = NULL; /* the caller's, and no longer needed */
	log = pin_config_log(&config);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(fields); i++) {
		rc = pin_config_check_field(
			&log, &fields[i], read_field(&parts, &fields[i]), fields[i].name);
		if (rc < 0) {
			return rc;
		}
	}
	rc = check_tuning(&log, &tuning);
	rc = rc == 0 ? check_config(&log, &config) : rc;
	rc = rc == 0 ? check_lanes(&log, &config) : rc;
	if (rc < 0) {
		return rc;
	}
	/* Neither refers to memory of the caller's that may be gone later. */
	PIN_DCHECK(config.tuning == NULL && tuning.size == sizeof(tuning));
	PIN_DCHECK(tuning.interval_min > 0 && config.small_buffer_count > 0);
	*out_config = config;
	*out_tuning = tuning;
	return 0;
}

/* What all arenas together take by default, at most. */
static uint64_t arenas_bytes_max(void)
{
	long page_count = sysconf(_SC_PHYS_PAGES);
	long page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t share;

	if (page_count <= 0 || page_bytes <= 0) {
		return ARENAS_BYTES_MAX;
	}
	share = (uint64_t)page_count * (uint64_t)page_bytes / MEMORY_SHARE;
	return share < ARENAS_BYTES_MAX ? share : ARENAS_BYTES_MAX;
}

static uint32_t default_buffers(const struct pinion_config *config)
{
	uint64_t count = BUFFERS_EACH + BUFFERS_DIVIDED / config->worker_count;
	uint64_t each = arenas_bytes_max() / config->worker_count;
	uint64_t small = (uint64_t)config->small_buffer_bytes * config->small_buffer_count;
	uint64_t fitting = each > small ? (each - small) / config->buffer_bytes : 0;

	count = fitting < count ? fitting : count;
	return count > BUFFERS_MIN ? (uint32_t)count : BUFFERS_MIN;
}

void pin_config_complete(struct pinion_config *config, uint32_t default_worker_count)
{
	if (config->worker_count == 0) {
		config->worker_count = default_worker_count;
	}
	PIN_CHECK(config->worker_count > 0);
	if (config->buffer_count == 0) {
		config->buffer_count = default_buffers(config);
	}
	PIN_CHECK(config->buffer_count > 0); /* a worker needs a buffer to read into */
}
