/* SPDX-License-Identifier: MIT */
/*
 * Thread pools: runtimes whose configuration follows from three numbers, the
 * workers of the high, medium and low class.
 *
 * A program creates one for jobs that compute or block. The numbers become the
 * `lanes` of an ordinary configuration; resize.c changes them later.
 *
 * Invariant: the class that serves all lanes keeps at least one worker, so
 * every job is run in the end.
 */
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/versioned.h"
#include "runtime/host/topology.h"

#include <errno.h>
#include <pinion/thread_pool.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	CLASSES = 3,
	SIZE_MAX_EACH = 1024,
	WARN_DEPTH = 100,
	/* The least an arena may have; no request reads into it. */
	BUFFER_BYTES = 4096,
};

static uint32_t at_least(uint32_t value, uint32_t least)
{
	return value > least ? value : least;
}

static int count_cpus(uint32_t *out_count)
{
	struct pin_topology topology;
	int rc = pin_topology_load(&topology, false);

	if (rc == 0) {
		PIN_DCHECK(topology.cpu_count > 0);
		*out_count = topology.cpu_count;
		pin_topology_fini(&topology);
	}
	return rc;
}

/* The presets of the documentation; "balanced" is the same on every machine. */
int pinion_thread_pool_sizes_init(
	struct pinion_thread_pool_sizes *out_sizes, uint32_t preset, uint32_t cpu_count)
{
	int rc = preset != PINION_THREAD_POOL_BALANCED && cpu_count == 0 ? count_cpus(&cpu_count)
									 : 0;

	if (rc != 0) {
		return rc;
	}
	switch (preset) {
	case PINION_THREAD_POOL_CONSERVATIVE:
		*out_sizes = (struct pinion_thread_pool_sizes){
			1, at_least(cpu_count / 4, 1), at_least(cpu_count / 4, 1)};
		return 0;
	case PINION_THREAD_POOL_BALANCED:
		*out_sizes = (struct pinion_thread_pool_sizes){1, 2, 1};
		return 0;
	case PINION_THREAD_POOL_AGGRESSIVE:
		*out_sizes = (struct pinion_thread_pool_sizes){
			2, at_least(cpu_count / 2, 2), at_least(cpu_count / 2, 1)};
		return 0;
	default:
		return -EINVAL;
	}
}

/* 0 when the variable is not set, 1 when it was read. */
static int read_size(
	const char *name, uint32_t least, uint32_t *out_size, const struct pin_log *log)
{
	const char *text = getenv(name);
	unsigned long value = 0;
	char *end;

	PIN_DCHECK(least <= SIZE_MAX_EACH);
	if (text == NULL || text[0] == '\0') {
		return 0;
	}
	/* No sign, no space: strtoul() would take both. */
	if (text[0] >= '0' && text[0] <= '9') {
		errno = 0;
		value = strtoul(text, &end, 10);
		if (errno == 0 && *end == '\0' && value >= least && value <= SIZE_MAX_EACH) {
			*out_size = (uint32_t)value;
			return 1;
		}
	}
	pin_log(log, PINION_LOG_ERROR, "%s: \"%s\" is not a number of workers from %u to %u", name,
		text, least, (unsigned)SIZE_MAX_EACH);
	return -EINVAL;
}

/* The second variable of a size is read where the first is not set. */
int pinion_thread_pool_sizes_from_env(
	struct pinion_thread_pool_sizes *sizes, pinion_log_fn log_fn, void *log_arg)
{
	static const char *const names[CLASSES][2] = {
		{"PINION_THREAD_POOL_HIGH", "WORKER_POOL_HIGH"},
		{"PINION_THREAD_POOL_MEDIUM", "WORKER_POOL_MEDIUM"},
		{"PINION_THREAD_POOL_LOW", "WORKER_POOL_LOW"},
	};
	struct pin_log log = {.fn = log_fn, .arg = log_arg};
	uint32_t values[CLASSES] = {sizes->high, sizes->medium, sizes->low};
	int saved_errno = errno;

	for (uint32_t i = 0; i < CLASSES; i++) {
		uint32_t least = i == CLASSES - 1 ? 1 : 0;
		int rc = read_size(names[i][0], least, &values[i], &log);

		if (rc == 0) {
			rc = read_size(names[i][1], least, &values[i], &log);
		}
		if (rc < 0) {
			errno = saved_errno;
			return rc;
		}
	}
	errno = saved_errno;
	*sizes = (struct pinion_thread_pool_sizes){values[0], values[1], values[2]};
	return 0;
}

/*
 * A thread pool computes and blocks: no rings, no binding to cores, and the
 * smallest arena.
 */
void pinion_thread_pool_config_init_sized(struct pinion_config *config, uint32_t size)
{
	struct pinion_config full;

	pinion_config_init(&full);
	full.size = size;
	full.io_level = PINION_IO_FALLBACK;
	full.bind_workers = 0;
	full.buffer_bytes = BUFFER_BYTES;
	full.buffer_count = 1;
	full.small_buffer_bytes = BUFFER_BYTES;
	full.small_buffer_count = 1;
	pin_sized_give(config, size, &full, sizeof(full));
}

void pinion_thread_pool_tuning_init_sized(struct pinion_tuning *tuning, uint32_t size)
{
	struct pinion_tuning full;

	pinion_tuning_init(&full);
	full.size = size;
	full.lane_floor = 0;
	/* Its jobs may compute for long, or block. */
	full.stall_ms = 0;
	full.high_warn_depth = WARN_DEPTH;
	full.normal_warn_depth = WARN_DEPTH;
	full.low_warn_depth = WARN_DEPTH;
	pin_sized_give(tuning, size, &full, sizeof(full));
}

static bool are_in_range(const struct pinion_thread_pool_sizes *sizes)
{
	return sizes->high <= SIZE_MAX_EACH && sizes->medium <= SIZE_MAX_EACH && sizes->low >= 1 &&
		sizes->low <= SIZE_MAX_EACH;
}

/* Names the first size that is out of range. */
static void log_range(const struct pin_log *log, const struct pinion_thread_pool_sizes *sizes)
{
	const struct {
		const char *name;
		uint32_t value;
		uint32_t least;
	} fields[CLASSES] = {
		{"high", sizes->high, 0},
		{"medium", sizes->medium, 0},
		{"low", sizes->low, 1},
	};

	PIN_DCHECK(!are_in_range(sizes));
	for (uint32_t i = 0; i < CLASSES; i++) {
		if (fields[i].value < fields[i].least || fields[i].value > SIZE_MAX_EACH) {
			pin_log(log, PINION_LOG_ERROR,
				"sizes.%s=%u of a thread pool is not from %u to %u workers",
				fields[i].name, fields[i].value, fields[i].least,
				(unsigned)SIZE_MAX_EACH);
		}
	}
}

/* By worker class: how many there are. */
static void read_classes(const struct pinion_thread_pool_sizes *sizes, uint32_t *out_counts)
{
	out_counts[0] = sizes->high;
	out_counts[1] = sizes->medium;
	out_counts[2] = sizes->low;
}

/*
 * As `lanes` of the configuration, without a class that can have no workers.
 * Of the others, how many begin.
 */
static void write_lanes(const struct pinion_thread_pool_sizes *sizes, uint32_t max, char *out,
	size_t size, uint32_t *out_serving)
{
	static const char *const orders[CLASSES] = {"h", "hm", "hml"};
	uint32_t counts[CLASSES];
	uint32_t class_count = 0;
	int length = 0;

	PIN_DCHECK(are_in_range(sizes) && max <= SIZE_MAX_EACH);
	read_classes(sizes, counts);
	for (uint32_t i = 0; i < CLASSES; i++) {
		uint32_t places = at_least(counts[i], max);

		if (places > 0) {
			length += snprintf(out + length, size - (size_t)length, "%s%s:%u",
				class_count > 0 ? "," : "", orders[i], places);
			PIN_CHECK((size_t)length < size);
			out_serving[class_count++] = counts[i];
		}
	}
	/* The last worker class always has a worker: it serves all lanes. */
	PIN_DCHECK(class_count > 0 && out_serving[class_count - 1] == sizes->low);
}

/*
 * Writes the sizes as text into `lanes`, so that ranges and messages are those
 * of every configuration.
 */
int pinion_thread_pool_create(const struct pinion_config *config,
	const struct pinion_thread_pool_sizes *sizes, struct pinion_runtime **out_runtime)
{
	struct pinion_thread_pool_sizes balanced = {1, 2, 1};
	struct pinion_config own;
	struct pinion_tuning tuning;
	uint32_t serving[CLASSES];
	uint32_t max;
	char lanes[64];
	int rc;

	if (sizes == NULL) {
		sizes = &balanced;
	}
	if (config != NULL && config->size < sizeof(own)) {
		return -EINVAL;
	}
	pinion_thread_pool_config_init(&own);
	if (config != NULL) {
		rc = pin_sized_take(&own, sizeof(own), config, config->size);
		if (rc < 0) {
			return rc;
		}
		own.size = sizeof(own);
	}
	if (!are_in_range(sizes)) {
		struct pin_log log = pin_config_log(&own);

		log_range(&log, sizes);
		return -EINVAL;
	}
	if (own.tuning == NULL) {
		pinion_thread_pool_tuning_init(&tuning);
		own.tuning = &tuning;
	}
	if (own.tuning->size < sizeof(tuning)) {
		return -EINVAL;
	}
	/* Sizes out of range are refused below, with its name. */
	max = own.tuning->thread_pool_max;
	write_lanes(sizes, max <= SIZE_MAX_EACH ? max : 0, lanes, sizeof(lanes), serving);
	own.lanes = lanes;
	own.worker_count = 0;
	return pin_runtime_create(&own, serving, out_runtime);
}

/* ---- resizing ---- */

/* Which of the three it is: the class with that number of lanes. */
static uint32_t number_of(const struct pin_worker_class *worker_class)
{
	PIN_CHECK(worker_class->order.count >= 1 && worker_class->order.count <= CLASSES);
	return worker_class->order.count - 1;
}

/* By worker class of the runtime. -ERANGE. */
static int fit(const struct pin_shared *shared, const struct pinion_thread_pool_sizes *sizes,
	uint32_t *out_counts)
{
	uint32_t counts[CLASSES];
	uint32_t left;

	PIN_DCHECK(are_in_range(sizes) && shared->class_count <= CLASSES);
	read_classes(sizes, counts);
	left = counts[0] + counts[1] + counts[2];
	for (uint32_t i = 0; i < shared->class_count; i++) {
		const struct pin_worker_class *worker_class = &shared->classes[i];

		out_counts[i] = counts[number_of(worker_class)];
		PIN_DCHECK(out_counts[i] <= left);
		left -= out_counts[i];
		if (out_counts[i] > worker_class->worker_count) {
			return -ERANGE;
		}
	}
	/* Of a worker class that there is not. */
	return left > 0 ? -ERANGE : 0;
}

/*
 * Checks everything that needs no lock; a runtime that is no thread pool, or
 * shares its rings, cannot be resized.
 */
int pinion_thread_pool_resize(
	struct pinion_runtime *thread_pool, const struct pinion_thread_pool_sizes *sizes)
{
	struct pin_shared *shared = &thread_pool->shared;
	uint32_t counts[PIN_WORKER_CLASSES_MAX];
	int rc;

	if (pin_runtime_is_foreign(thread_pool)) {
		return -ECHILD;
	}
	if (sizes == NULL) {
		return -EINVAL;
	}
	if (!are_in_range(sizes)) {
		log_range(&shared->log, sizes);
		return -EINVAL;
	}
	if (!shared->is_thread_pool || shared->tuning.ring_sharing == PINION_RING_SHARED) {
		return -EOPNOTSUPP;
	}
	if (pin_worker_of_thread() != NULL) {
		return -EDEADLK;
	}
	rc = fit(shared, sizes, counts);
	return rc < 0 ? rc : pin_runtime_resize(thread_pool, counts);
}

/*
 * The numbers of workers that serve now; during a resize these are between the
 * old and the new sizes.
 */
int pinion_thread_pool_get_sizes(
	const struct pinion_runtime *thread_pool, struct pinion_thread_pool_sizes *out_sizes)
{
	const struct pin_shared *shared = &thread_pool->shared;
	uint32_t counts[CLASSES] = {0};

	if (!shared->is_thread_pool) {
		return -EOPNOTSUPP;
	}
	for (uint32_t i = 0; i < shared->class_count; i++) {
		const struct pin_worker_class *worker_class = &shared->classes[i];

		/* Relaxed: a moment's reading. */
		counts[number_of(worker_class)] =
			pin_load_relaxed_u32(&worker_class->serving_count);
	}
	*out_sizes = (struct pinion_thread_pool_sizes){counts[0], counts[1], counts[2]};
	return 0;
}
