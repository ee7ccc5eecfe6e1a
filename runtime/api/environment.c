/* SPDX-License-Identifier: MIT */
/*
 * Warns of PINION_ variables that no program reads, with the nearest name that
 * one does.
 *
 * pinion_config_from_env() calls it, once in a process. Names are compared by
 * how many letters differ, are missing or too many, and by their beginnings.
 */
#include "runtime/api/internal.h"
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum {
	/* A longer name is compared by its beginning. */
	NAME_MAX_BYTES = 64,
	STEPS_A_LETTER = 2,
	STEPS_TO_BEGINNING = 3,
};

/* Read by others than pinion_config_from_env(). */
static const char *const others[] = {
	"PINION_THREAD_POOL_HIGH",   /* api/thread_pool.c */
	"PINION_THREAD_POOL_LOW",    /* api/thread_pool.c */
	"PINION_THREAD_POOL_MEDIUM", /* api/thread_pool.c */
	"PINION_LOG",		     /* the command */
};

/* Never the nearest: users do not know them. */
static const char *const internal[] = {
	"PINION_CORPUS", /* the tests */
	"PINION_FAULT",	 /* the tests */
	"PINION_NO_APT", /* bootstrap */
};

static const char prefix[] = "PINION_";
static const char models[] = "PINION_MODEL_"; /* and whatever follows */

static struct pin_atomic_u32 has_warned; /* [W:any R:any] */

static bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* `row` has the distances of all beginnings of `name` from the text so far. */
static uint32_t distance(const char *text, size_t length, const char *name)
{
	uint32_t row[NAME_MAX_BYTES + 1];
	size_t columns = strnlen(name, NAME_MAX_BYTES);

	PIN_DCHECK(columns < PIN_ARRAY_COUNT(row));
	length = length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES;
	for (uint32_t j = 0; j <= columns; j++) {
		row[j] = j;
	}
	for (uint32_t i = 1; i <= length; i++) {
		uint32_t diagonal = row[0];

		row[0] = i;
		for (uint32_t j = 1; j <= columns; j++) {
			uint32_t replaced = diagonal + (text[i - 1] != name[j - 1]);

			diagonal = row[j];
			row[j] = least(replaced, least(row[j], row[j - 1]) + 1);
		}
	}
	/* No worse than each letter of the longer one replaced or added. */
	PIN_DCHECK(row[columns] <= (length > columns ? length : columns));
	return row[columns];
}

/*
 * A name that begins with the whole text is nearer than a name in which two
 * letters differ: PINION_IO means PINION_IO_LEVEL rather than PINION_LOG. The
 * same holds without a plural's S: PINION_WORKERS means PINION_WORKER_COUNT.
 */
static uint32_t steps(const char *text, size_t length, const char *name)
{
	uint32_t away = STEPS_A_LETTER * distance(text, length, name);
	size_t stem = length - (length > 0 && text[length - 1] == 'S');

	return strncmp(text, name, stem) == 0 ? least(away, STEPS_TO_BEGINNING) : away;
}

struct nearest {
	const char *name;
	uint32_t distance; /* 0: it is that one */
};

static void look_among(struct nearest *nearest, const char *text, size_t length,
	const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t away = steps(text, length, names[i]);

		if (nearest->name == NULL || away < nearest->distance) {
			*nearest = (struct nearest){names[i], away};
		}
	}
	PIN_DCHECK(nearest->name != NULL || count == 0);
}

static bool is_internal(const char *text, size_t length)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(internal); i++) {
		if (strlen(internal[i]) == length && strncmp(text, internal[i], length) == 0) {
			return true;
		}
	}
	return false;
}

/*
 * Only prints: a program may have variables of its own that begin in the same
 * way, so an unknown one is no error.
 */
void pin_environment_warn(const struct pin_log *log, const char *const *names, size_t count)
{
	/* Only one of several that come at once; nothing else hangs on it. */
	if (log->fn == NULL || pin_exchange_acq_rel_u32(&has_warned, 1) != 0) {
		return;
	}
	for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
		size_t length = strcspn(*entry, "=");
		struct nearest nearest = {NULL, 0};

		if (!begins_with(*entry, prefix) || begins_with(*entry, models)) {
			continue;
		}
		look_among(&nearest, *entry, length, names, count);
		look_among(&nearest, *entry, length, others, PIN_ARRAY_COUNT(others));
		PIN_DCHECK(nearest.name != NULL);
		if (nearest.distance != 0 && !is_internal(*entry, length)) {
			pin_log(log, PINION_LOG_WARN,
				"%.*s: no variable of that name is read; the nearest is %s",
				(int)least((uint32_t)length, NAME_MAX_BYTES), *entry, nearest.name);
		}
	}
}
