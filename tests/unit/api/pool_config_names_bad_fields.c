/* SPDX-License-Identifier: MIT */
/*
 * Goal: each field of a pool's configuration that is out of range is refused
 * with -EINVAL and a message that names it and its value; values at the edge of
 * its range are taken; too few buffers for all caches cause a warning; the
 * defaults are valid; a struct of another size is read as promised. BP-15,
 * BP-32, BP-33, BP-34, BP-35, BP-36, BP-T1, C18, W10.
 * Method: a table of values, one wrong field each, against create() and
 * peak_bytes(), which share their check.
 */
#include "tests/support/users.h"

enum {
	VERSION_BYTES = 48,
};

static enum pinion_log_level last_level;

static void note_level(void *arg, enum pinion_log_level level, const char *message)
{
	last_level = level;
	runtimes_note(arg, level, message);
}

struct value {
	const char *name;
	size_t offset;
	uint32_t value;
};

#define VALUE(field, value) \
	{ \
#field, offsetof(struct pinion_pool_config, field), value \
	}

static void set(struct pinion_pool_config *config, const struct value *value)
{
	users_config(config, 4, 2, 12);
	config->log = note_level;
	memcpy((uint8_t *)config + value->offset, &value->value, sizeof(value->value));
}

static void check_refused(void)
{
	static const struct value values[] = {
		VALUE(worker_count, 0),
		VALUE(worker_count, 4097),
		VALUE(worker_count, UINT32_MAX),
		VALUE(thread_count, 4097),
		VALUE(thread_count, UINT32_MAX),
		VALUE(local_count, 0),
		VALUE(local_count, 65537),
		VALUE(buffer_count, 3), /* fewer than workers */
		VALUE(buffer_count, 1),
		VALUE(buffer_count, (1 << 24) + 1),
		VALUE(buffer_bytes, 0),
		VALUE(buffer_bytes, 4095),
		VALUE(buffer_bytes, 4097),
		VALUE(buffer_bytes, 512),
		VALUE(buffer_bytes, (256 << 20) + 4096),
		VALUE(headroom_bytes, 1),
		VALUE(headroom_bytes, 512),
		VALUE(headroom_bytes, (16 << 20) + 4096),
		VALUE(flags, 8),
		VALUE(flags, UINT32_MAX),
		VALUE(size, 0),
		VALUE(size, VERSION_BYTES - 1),
	};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(values); i++) {
		struct pinion_pool *untouched = (struct pinion_pool *)(void *)&values;
		struct pinion_pool *pool = untouched;
		struct pinion_pool_config config;
		char words[96];

		set(&config, &values[i]);
		runtimes_log[0] = '\0';
		snprintf(words, sizeof(words), "pool: %s is %u, ", values[i].name, values[i].value);
		if (!expect_number(words, -EINVAL, pinion_pool_create(NULL, &config, &pool))) {
			pinion_pool_destroy(pool);
			continue;
		}
		expect_true("nothing is written", pool == untouched);
		users_expect_said(words);
		expect_number("level", PINION_LOG_ERROR, last_level);
		expect_number(words, 0, (long long)pinion_pool_config_peak_bytes(&config));
	}
}

static void check_taken(void)
{
	static const struct value values[] = {
		VALUE(worker_count, 1),
		VALUE(worker_count, 12),
		VALUE(thread_count, 0),
		VALUE(thread_count, 4096),
		VALUE(local_count, 1),
		VALUE(local_count, 65536),
		VALUE(buffer_count, 0),
		VALUE(buffer_count, 4),
		VALUE(buffer_count, 1 << 24),
		VALUE(buffer_bytes, 4096),
		VALUE(buffer_bytes, 256 << 20),
		VALUE(headroom_bytes, 0),
		VALUE(headroom_bytes, 16 << 20),
		VALUE(flags, PINION_POOL_ZERO | PINION_POOL_GUARD),
	};

	/* By their size alone: 256 MiB times 12 is not for a test. */
	for (size_t i = 0; i < PIN_ARRAY_COUNT(values); i++) {
		struct pinion_pool_config config;

		set(&config, &values[i]);
		if (pinion_pool_config_peak_bytes(&config) == 0) {
			expect_text("taken", values[i].name, "refused");
		}
	}
}

static void check_warning(void)
{
	struct pinion_pool_config config;
	struct pinion_pool *pool;

	for (uint32_t count = 7; count <= 9; count++) {
		users_config(&config, 4, 2, count);
		config.log = note_level;
		runtimes_log[0] = '\0';
		pool = users_create(NULL, &config);
		if (count < 8) {
			expect_number("level", PINION_LOG_WARN, last_level);
			users_expect_said("buffer_count is 7, less than the 8 that the caches of 4 "
					  "workers hold");
		} else {
			expect_text("no warning", "", runtimes_log);
		}
		users_end(pool);
	}
}

/* Without a runtime one field has to be said, with one none. */
static void check_defaults(void)
{
	struct pinion_runtime *runtime;
	struct pinion_pool_config config;
	struct pinion_pool *pool;

	memset(&config, 0xff, sizeof(config));
	pinion_pool_config_init(&config);
	expect_number("size", sizeof(config), config.size);
	expect_number("worker_count", 0, config.worker_count);
	expect_number("thread_count", 4, config.thread_count);
	expect_number("local_count", 4, config.local_count);
	expect_number("buffer_count", 0, config.buffer_count);
	expect_number("buffer_bytes", 64 << 10, config.buffer_bytes);
	expect_number("headroom_bytes", 4096, config.headroom_bytes);
	expect_number("flags", 0, config.flags);
	expect_true("no log", config.log == NULL && config.log_arg == NULL);
	runtime = users_runtime(3, 2 << 20);
	runtimes_log[0] = '\0'; /* what the runtime had to say */
	pool = users_create(runtime, &config);
	expect_number("workers", 3, users_info(pool).worker_count);
	expect_number("buffers", pinion_pool_recommend(3, 4, 0), users_info(pool).buffer_count);
	expect_text("no warning", "", runtimes_log);
	users_end(pool);
	config.worker_count = 2;
	expect_number(
		"another number of workers", -EINVAL, pinion_pool_create(runtime, &config, &pool));
	users_expect_said("worker_count is 2, not 0 or the runtime's number of workers");
	config.worker_count = 3;
	users_end(users_create(runtime, &config));
	pinion_runtime_destroy(runtime);
	users_end(users_create(NULL, &config));
}

static void check_sizes(void)
{
	struct {
		struct pinion_pool_config known;
		uint64_t later;
	} newer;
	struct pinion_pool *pool = NULL;
	uint32_t words[4] = {~0u, ~0u, ~0u, ~0u};

	expect_number(
		"the first version", VERSION_BYTES, offsetof(struct pinion_pool_config, allocator));
	pinion_pool_config_init_sized((struct pinion_pool_config *)(void *)words, 12);
	expect_number("an old program's size", 12, words[0]);
	expect_number("what it knows is set", 4, words[2]);
	expect_number("what it does not know is left alone", ~0u, words[3]);

	memset(&newer, 0xff, sizeof(newer));
	pinion_pool_config_init_sized(&newer.known, VERSION_BYTES);
	newer.known.worker_count = 1;
	newer.known.log = note_level;
	expect_number("the first version's", 0, pinion_pool_create(NULL, &newer.known, &pool));
	users_end(pool);

	memset(&newer, 0xff, sizeof(newer));
	pinion_pool_config_init_sized(&newer.known, sizeof(newer));
	expect_number("what the library does not know is 0", 0, (long long)newer.later);
	newer.known.worker_count = 1;
	newer.known.log = note_level;
	expect_number("a newer struct", 0, pinion_pool_create(NULL, &newer.known, &pool));
	users_end(pool);
	newer.later = 1;
	runtimes_log[0] = '\0';
	expect_number("an unknown field", -E2BIG, pinion_pool_create(NULL, &newer.known, &pool));
	users_expect_said("has a field this library does not know");
}

int main(void)
{
	check_refused();
	check_taken();
	check_warning();
	check_defaults();
	check_sizes();
	return expect_status();
}
