/* SPDX-License-Identifier: MIT */
/*
 * One table says what each field may be; defaults, validation and environment
 * all follow it.
 */
#include "runtime/core/config.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The struct as first released; a smaller one was never valid. */
#define CONFIG_BYTES_MIN sizeof(struct pinion_config)
_Static_assert(sizeof(struct pinion_config) == 72, "released size");

struct field {
	const char *name;
	const char *variable; /* in the environment, or NULL */
	size_t offset;
	uint32_t standard;
	uint32_t min;
	uint32_t max;
	uint32_t multiple; /* of which the value must be one; 1: any */
};

#define FIELD(member, variable, standard, min, max, multiple) \
	{ \
#member, variable, offsetof(struct pinion_config, member), standard, min, max, \
			multiple \
	}

enum {
	BUFFER_BYTES_MAX = 256 << 20,
	/* Large buffers of a worker, and those that all workers divide. */
	BUFFERS_EACH = 28,
	BUFFERS_DIVIDED = 32,
};

static const struct field fields[] = {
	FIELD(worker_count, "PINION_WORKERS", 0, 0, 4096, 1),
	FIELD(use_smt, NULL, 0, 0, 1, 1),
	FIELD(bind_workers, "PINION_BIND", 1, 0, 1, 1),
	FIELD(ring_entries, NULL, 256, 8, 32768, 1),
	FIELD(ring_helper_count, NULL, 16, 1, 1024, 1),
	FIELD(budget_polls, NULL, 128, 1, 65535, 1),
	FIELD(budget_us, NULL, 500, 1, 1000000, 1),
	FIELD(buffer_bytes, NULL, 1 << 20, 4096, BUFFER_BYTES_MAX, 4096),
	FIELD(buffer_count, NULL, 0, 0, 65536, 1),
	FIELD(small_buffer_bytes, NULL, 64 << 10, 4096, BUFFER_BYTES_MAX, 4096),
	FIELD(small_buffer_count, NULL, 48, 1, 65536, 1),
	FIELD(io_level, "PINION_IO_LEVEL", PINION_IO_AUTO, PINION_IO_AUTO, PINION_IO_RING, 1),
	FIELD(reserved, NULL, 0, 0, 0, 1),
};

static const char *const io_level_names[] = {"auto", "fallback", "ring"};

static uint32_t read_field(const struct pinion_config *config, const struct field *field)
{
	uint32_t value;

	memcpy(&value, (const uint8_t *)config + field->offset, sizeof(value));
	return value;
}

static void write_field(struct pinion_config *config, const struct field *field, uint32_t value)
{
	memcpy((uint8_t *)config + field->offset, &value, sizeof(value));
}

void pinion_config_init_sized(struct pinion_config *config, uint32_t size)
{
	struct pinion_config full = {.size = size};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(fields); i++) {
		write_field(&full, &fields[i], fields[i].standard);
	}
	memset(config, 0, size);
	memcpy(config, &full, size < sizeof(full) ? size : sizeof(full));
}

static int check_field(
	const struct pin_log *log, const struct field *field, uint64_t value, const char *source)
{
	if (value < field->min || value > field->max) {
		pin_log(log, PINION_LOG_ERROR, "%s: %llu is out of range, it must be %u to %u",
			source, (unsigned long long)value, field->min, field->max);
		return -EINVAL;
	}
	if (value % field->multiple != 0) {
		pin_log(log, PINION_LOG_ERROR, "%s: %llu is not a multiple of %u", source,
			(unsigned long long)value, field->multiple);
		return -EINVAL;
	}
	return 0;
}

static int check_together(const struct pin_log *log, const struct pinion_config *config)
{
	if (!pin_is_power_of_two(config->ring_entries)) {
		pin_log(log, PINION_LOG_ERROR, "ring_entries: %u is not a power of two",
			config->ring_entries);
		return -EINVAL;
	}
	if (config->small_buffer_bytes > config->buffer_bytes) {
		pin_log(log, PINION_LOG_ERROR,
			"small_buffer_bytes: %u is more than buffer_bytes, %u",
			config->small_buffer_bytes, config->buffer_bytes);
		return -EINVAL;
	}
	return 0;
}

int pin_config_accept(struct pinion_config *out_config, const struct pinion_config *given)
{
	struct pinion_config config;
	struct pin_log log;
	int rc;

	if (given == NULL || given->size < CONFIG_BYTES_MIN) {
		return -EINVAL;
	}
	if (!pin_is_zero((const uint8_t *)given + sizeof(*given), given->size - sizeof(*given))) {
		return -E2BIG;
	}
	memcpy(&config, given, sizeof(config));
	config.size = sizeof(config);
	log = (struct pin_log){.fn = config.log, .arg = config.log_arg};
	for (size_t i = 0; i < PIN_ARRAY_COUNT(fields); i++) {
		rc = check_field(&log, &fields[i], read_field(&config, &fields[i]), fields[i].name);
		if (rc < 0) {
			return rc;
		}
	}
	rc = check_together(&log, &config);
	if (rc < 0) {
		return rc;
	}
	*out_config = config;
	return 0;
}

void pin_config_complete(struct pinion_config *config, uint32_t default_worker_count)
{
	if (config->worker_count == 0) {
		config->worker_count = default_worker_count;
	}
	if (config->buffer_count == 0) {
		config->buffer_count = BUFFERS_EACH + BUFFERS_DIVIDED / config->worker_count;
	}
}

static bool parse_value(const char *text, const struct field *field, uint64_t *out_value)
{
	char *end;

	if (field->offset == offsetof(struct pinion_config, io_level)) {
		for (size_t i = 0; i < PIN_ARRAY_COUNT(io_level_names); i++) {
			if (strcmp(text, io_level_names[i]) == 0) {
				*out_value = i;
				return true;
			}
		}
		return false;
	}
	errno = 0;
	*out_value = strtoull(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

int pinion_config_from_env(struct pinion_config *config)
{
	struct pin_log log = {.fn = config->log, .arg = config->log_arg};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(fields); i++) {
		const struct field *field = &fields[i];
		const char *text = field->variable == NULL ? NULL : getenv(field->variable);
		uint64_t value;
		int rc;

		if (text == NULL || text[0] == '\0') {
			continue;
		}
		if (!parse_value(text, field, &value)) {
			pin_log(&log, PINION_LOG_ERROR, "%s: \"%s\" is not a value for %s",
				field->variable, text, field->name);
			return -EINVAL;
		}
		rc = check_field(&log, field, value, field->variable);
		if (rc < 0) {
			return rc;
		}
		write_field(config, field, (uint32_t)value);
	}
	return 0;
}
