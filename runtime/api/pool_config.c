/* SPDX-License-Identifier: MIT */
/*
 * One table says what each field may be.
 */
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/base/versioned.h"
#include "runtime/host/heap.h"

#include <errno.h>
#include <stdio.h>

/* The struct as it was first; those who know only that get defaults. */
#define CONFIG_BYTES_MIN offsetof(struct pinion_pool_config, allocator)
_Static_assert(CONFIG_BYTES_MIN == 48, "first size");
_Static_assert(sizeof(struct pinion_pool_config) == 56, "released as 0.1");

enum {
	FLAGS = PINION_POOL_ZERO | PINION_POOL_GUARD,
	BYTES_MAX = 256 << 20,
	HEADROOM_MAX = 16 << 20,
	CACHES_MAX = 4096,
	LOCAL_MAX = 65536,
	BUFFERS_MAX = 1 << 24,
};

struct field {
	const char *name;
	size_t offset;
	uint32_t standard;
	uint32_t min;
	uint32_t max;
	uint32_t multiple;
};

#define FIELD(member, standard, min, max, multiple) \
	{ \
#member, offsetof(struct pinion_pool_config, member), standard, min, max, multiple \
	}

static const struct field fields[] = {
	FIELD(worker_count, 0, 0, CACHES_MAX, 1),
	FIELD(thread_count, 4, 0, CACHES_MAX, 1),
	FIELD(local_count, 4, 1, LOCAL_MAX, 1),
	FIELD(buffer_count, 0, 0, BUFFERS_MAX, 1),
	FIELD(buffer_bytes, 64 << 10, PIN_PAGE_BYTES, BYTES_MAX, PIN_PAGE_BYTES),
	FIELD(headroom_bytes, PIN_PAGE_BYTES, 0, HEADROOM_MAX, PIN_PAGE_BYTES),
	FIELD(flags, 0, 0, FLAGS, 1),
};

static uint32_t *field_of(struct pinion_pool_config *config, const struct field *field)
{
	return (uint32_t *)(void *)((uint8_t *)config + field->offset);
}

void pinion_pool_config_init_sized(struct pinion_pool_config *config, uint32_t size)
{
	struct pinion_pool_config standard = {.size = size};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(fields); i++) {
		*field_of(&standard, &fields[i]) = fields[i].standard;
	}
	pin_sized_give(config, size, &standard, sizeof(standard));
}

static int refuse(const struct pin_log *log, const char *name, uint64_t value, const char *wanted)
{
	pin_log(log, PINION_LOG_ERROR, "pool: %s is %llu, %s", name, (unsigned long long)value,
		wanted);
	return -EINVAL;
}

static int check_fields(struct pinion_pool_config *config, const struct pin_log *log)
{
	char wanted[96];

	for (size_t i = 0; i < PIN_ARRAY_COUNT(fields); i++) {
		uint32_t value = *field_of(config, &fields[i]);

		if (value < fields[i].min || value > fields[i].max ||
			value % fields[i].multiple != 0) {
			snprintf(wanted, sizeof(wanted), "not %u to %u, a multiple of %u",
				fields[i].min, fields[i].max, fields[i].multiple);
			return refuse(log, fields[i].name, value, wanted);
		}
	}
	return 0;
}

static int check_allocator(const struct pinion_pool_config *config, const struct pin_log *log)
{
	if (!pin_heap_is_whole(config->allocator)) {
		pin_log(log, PINION_LOG_ERROR, "pool: allocator lacks one of its functions");
		return -EINVAL;
	}
	return 0;
}

static int check_counts(
	struct pinion_pool_config *config, uint32_t runtime_workers, const struct pin_log *log)
{
	uint32_t capacity;

	if (runtime_workers == 0 && config->worker_count == 0) {
		return refuse(log, "worker_count", 0, "not at least 1, without a runtime");
	}
	if (runtime_workers != 0 && config->worker_count != 0 &&
		config->worker_count != runtime_workers) {
		return refuse(log, "worker_count", config->worker_count,
			"not 0 or the runtime's number of workers");
	}
	if (runtime_workers != 0) {
		config->worker_count = runtime_workers;
	}
	if (config->buffer_count == 0) {
		config->buffer_count =
			pinion_pool_recommend(config->worker_count, config->local_count, 0);
	}
	if (config->buffer_count > BUFFERS_MAX || config->buffer_count < config->worker_count) {
		return refuse(log, "buffer_count", config->buffer_count,
			"fewer than there are workers, or more than 16777216");
	}
	capacity = pinion_pool_config_local_capacity(config);
	if (config->buffer_count < capacity) {
		pin_log(log, PINION_LOG_WARN,
			"pool: buffer_count is %u, less than the %u that the caches of %u "
			"workers hold; some stay empty",
			config->buffer_count, capacity, config->worker_count);
	}
	return 0;
}

int pin_pool_config_accept(struct pinion_pool_config *out_config,
	const struct pinion_pool_config *given, uint32_t runtime_workers, const struct pin_log *log)
{
	size_t known = sizeof(*out_config);
	int rc;

	if (given->size < CONFIG_BYTES_MIN) {
		return refuse(log, "size", given->size,
			"less than any version; use pinion_pool_config_init()");
	}
	pinion_pool_config_init_sized(out_config, (uint32_t)known);
	rc = pin_sized_take(out_config, known, given, given->size);
	if (rc < 0) {
		pin_log(log, PINION_LOG_ERROR,
			"pool: the configuration has a field this library does not know");
		return rc;
	}
	out_config->size = (uint32_t)known;
	rc = check_fields(out_config, log);
	rc = rc != 0 ? rc : check_allocator(out_config, log);
	return rc != 0 ? rc : check_counts(out_config, runtime_workers, log);
}

/* ---- sizes ---- */

static uint32_t saturate(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

uint32_t pinion_pool_recommend(uint32_t worker_count, uint32_t local_count, uint32_t depth_count)
{
	uint64_t locals = (uint64_t)worker_count * local_count;
	uint64_t with_reserve = locals + locals / 4 + (locals % 4 != 0);
	uint64_t in_flight = (uint64_t)depth_count + 2ull * worker_count;
	uint64_t count = with_reserve > in_flight ? with_reserve : in_flight;

	if (worker_count == 0) {
		return 0;
	}
	return saturate((count + worker_count - 1) / worker_count * worker_count);
}

uint32_t pinion_pool_config_local_capacity(const struct pinion_pool_config *config)
{
	return saturate((uint64_t)config->worker_count * config->local_count);
}

/* As a pool without a runtime takes it; of no buffers if it is refused. */
static struct pinion_pool_config accept_quietly(const struct pinion_pool_config *config)
{
	struct pinion_pool_config accepted;
	struct pin_log quiet = {0};

	if (pin_pool_config_accept(&accepted, config, 0, &quiet) != 0) {
		accepted.buffer_count = 0;
	}
	return accepted;
}

uint64_t pinion_pool_config_peak_bytes(const struct pinion_pool_config *config)
{
	struct pinion_pool_config accepted = accept_quietly(config);

	return (uint64_t)accepted.buffer_count * accepted.buffer_bytes;
}

uint64_t pinion_pool_config_headroom_bytes_total(const struct pinion_pool_config *config)
{
	struct pinion_pool_config accepted = accept_quietly(config);

	return (uint64_t)accepted.buffer_count * accepted.headroom_bytes;
}

uint64_t pinion_pool_config_mapped_bytes_max(const struct pinion_pool_config *config)
{
	struct pinion_pool_config accepted = accept_quietly(config);

	return pin_round_up(
		accepted.buffer_count * pin_pool_config_stride(&accepted), PIN_HUGE_PAGE_BYTES);
}
