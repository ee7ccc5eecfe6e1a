/* SPDX-License-Identifier: MIT */
/*
 * Goal: each PINION_* variable sets its field and no other; bad values are
 * -EINVAL, leave the field, and the message names the variable.
 * Method: a table of variable and value, each alone in the environment.
 */
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"

#include <errno.h>

struct variable {
	const char *name;
	const char *text;
	size_t offset;
	uint32_t expected; /* BAD: refused */
};

#define BAD UINT32_MAX
#define VARIABLE(name, text, field, expected) \
	{ \
		name, text, offsetof(struct pinion_config, field), expected \
	}

static const struct variable variables[] = {
	VARIABLE("PINION_WORKERS", "0", worker_count, 0),
	VARIABLE("PINION_WORKERS", "7", worker_count, 7),
	VARIABLE("PINION_WORKERS", "4096", worker_count, 4096),
	VARIABLE("PINION_WORKERS", "4097", worker_count, BAD),
	VARIABLE("PINION_WORKERS", "-1", worker_count, BAD),
	VARIABLE("PINION_WORKERS", " -1", worker_count, BAD),
	VARIABLE("PINION_WORKERS", "4294967297", worker_count, BAD),
	VARIABLE("PINION_WORKERS", "18446744073709551617", worker_count, BAD),
	VARIABLE("PINION_WORKERS", "4x", worker_count, BAD),
	VARIABLE("PINION_WORKERS", "4 ", worker_count, BAD),
	VARIABLE("PINION_WORKERS", "many", worker_count, BAD),
	VARIABLE("PINION_BIND", "0", bind_workers, 0),
	VARIABLE("PINION_BIND", "1", bind_workers, 1),
	VARIABLE("PINION_BIND", "2", bind_workers, BAD),
	VARIABLE("PINION_BIND", "yes", bind_workers, BAD),
	VARIABLE("PINION_IO_LEVEL", "auto", io_level, PINION_IO_AUTO),
	VARIABLE("PINION_IO_LEVEL", "fallback", io_level, PINION_IO_FALLBACK),
	VARIABLE("PINION_IO_LEVEL", "ring", io_level, PINION_IO_RING),
	VARIABLE("PINION_IO_LEVEL", "Ring", io_level, BAD),
	VARIABLE("PINION_IO_LEVEL", "1", io_level, BAD),
	VARIABLE("PINION_IO_LEVEL", "uring", io_level, BAD),
};

static void clear(void)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		unsetenv(variables[i].name);
	}
}

static void check(const struct variable *variable)
{
	struct pinion_config wanted;
	struct pinion_config config;
	char what[96];

	runtimes_config(&config, 3, PINION_IO_AUTO);
	wanted = config;
	snprintf(what, sizeof(what), "%s=%s", variable->name, variable->text);
	clear();
	setenv(variable->name, variable->text, 1);
	if (variable->expected != BAD) {
		memcpy((uint8_t *)&wanted + variable->offset, &variable->expected,
			sizeof(variable->expected));
		expect_number(what, 0, pinion_config_from_env(&config));
	} else {
		expect_number(what, -EINVAL, pinion_config_from_env(&config));
		if (strstr(runtimes_log, variable->name) == NULL) {
			printf("%s: expected a message that names it, got \"%s\"\n", what,
				runtimes_log);
			expect_failure_count++;
		}
	}
	if (memcmp(&config, &wanted, sizeof(config)) != 0) {
		printf("%s: expected no other field to change, got one\n", what);
		expect_failure_count++;
	}
}

int main(void)
{
	struct pinion_config config;
	struct pinion_config wanted;

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		check(&variables[i]);
	}
	clear();
	setenv("PINION_WORKERS", "", 1);
	setenv("PINION_NO_SUCH_FIELD", "9", 1);
	runtimes_config(&config, 3, PINION_IO_AUTO);
	wanted = config;
	expect_number("empty and unknown variables", 0, pinion_config_from_env(&config));
	expect_number("and nothing changes", 0, memcmp(&config, &wanted, sizeof(config)));
	return expect_status();
}
