/* SPDX-License-Identifier: MIT */
/*
 * The environment: reads a configuration from PINION_ variables, and warns once
 * in a process of those that no program reads, with the nearest name that is
 * read.
 *
 * Programs call pinion_config_from_env(); the library never reads a variable
 * by itself. Names are compared by how many letters differ, are missing or too
 * many, and by their beginnings.
 *
 * Invariant: a value from the environment passes the checks of its field, by
 * the table of config.c.
 */
#include "runtime/api/internal.h"
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/policy/lanes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* A longer name is compared by its beginning. */
	NAME_MAX_BYTES = 64,
	STEPS_A_LETTER = 2,
	STEPS_TO_BEGINNING = 3,
	WORDS_BYTES = 384, /* the list of words that a field may have */
};

/* Read apart from the table, or by others than pinion_config_from_env(). */
static const char *const others[] = {
	pin_lanes_variable, pin_metrics_variable, pin_seed_variable,
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

/* ---- names ---- */

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

static void look_at(struct nearest *nearest, const char *text, size_t length, const char *name)
{
	uint32_t away = steps(text, length, name);

	if (nearest->name == NULL || away < nearest->distance) {
		*nearest = (struct nearest){name, away};
	}
}

static struct nearest find_nearest(const char *text, size_t length)
{
	struct nearest nearest = {NULL, 0};
	size_t count;
	const struct pin_config_field *fields = pin_config_fields(&count);

	for (size_t i = 0; i < count; i++) {
		if (fields[i].variable != NULL) {
			look_at(&nearest, text, length, fields[i].variable);
		}
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(others); i++) {
		look_at(&nearest, text, length, others[i]);
	}
	PIN_DCHECK(nearest.name != NULL);
	return nearest;
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
static void warn_of_unread(const struct pin_log *log)
{
	/* Only one of several that come at once; nothing else hangs on it. */
	if (!pin_log_has_hook(log) || pin_exchange_acq_rel_u32(&has_warned, 1) != 0) {
		return;
	}
	for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
		size_t length = strcspn(*entry, "=");
		struct nearest nearest;

		if (!begins_with(*entry, prefix) || begins_with(*entry, models)) {
			continue;
		}
		nearest = find_nearest(*entry, length);
		if (nearest.distance != 0 && !is_internal(*entry, length)) {
			pin_log(log, PINION_LOG_WARN,
				"%.*s: no variable of that name is read; the nearest is %s",
				(int)least((uint32_t)length, NAME_MAX_BYTES), *entry, nearest.name);
		}
	}
}

/* ---- values ---- */

/*
 * `base` 0 accepts hexadecimal as well. No sign, no space: strtoull() would
 * take both.
 */
static bool parse_number(const char *text, int base, uint64_t *out_value)
{
	char *end;

	if (text[0] < '0' || text[0] > '9') {
		return false;
	}
	errno = 0;
	*out_value = strtoull(text, &end, base);
	return errno == 0 && *end == '\0';
}

static bool parse_word(
	const char *text, size_t length, const struct pin_config_field *field, uint64_t *out_index)
{
	for (size_t i = 0; field->words[i] != NULL; i++) {
		if (strlen(field->words[i]) == length &&
			memcmp(text, field->words[i], length) == 0) {
			*out_index = i;
			PIN_DCHECK(field->is_set || (i >= field->min && i <= field->max));
			return true;
		}
	}
	return false;
}

/* Words with commas between them. */
static bool parse_set(const char *text, const struct pin_config_field *field, uint64_t *out_value)
{
	uint64_t value = 0;

	PIN_DCHECK(field->is_set && field->words != NULL);
	for (;;) {
		size_t length = strcspn(text, ",");
		uint64_t index;

		if (!parse_word(text, length, field, &index)) {
			return false;
		}
		PIN_DCHECK(index <= 64); /* a bit each, after the empty set */
		value |= index == 0 ? 0 : UINT64_C(1) << (index - 1);
		if (text[length] == '\0') {
			*out_value = value;
			return true;
		}
		text += length + 1;
	}
}

static bool parse_value(const char *text, const struct pin_config_field *field, uint64_t *out_value)
{
	if (field->is_size) {
		return pinion_config_parse_size(text, out_value) == 0;
	}
	if (field->words == NULL) {
		return parse_number(text, 10, out_value);
	}
	if (field->is_set) {
		return parse_set(text, field, out_value);
	}
	return parse_word(text, strlen(text), field, out_value);
}

/* Each value that a field with words may have, on one line. */
static void list_words(const struct pin_config_field *field, char *text, size_t bytes)
{
	size_t length = 0;

	PIN_DCHECK(field->words != NULL && bytes > 0);
	for (size_t i = 0; field->words[i] != NULL; i++) {
		length += (size_t)snprintf(text + length, bytes - length, "%s%s",
			i == 0			? ""
				: field->is_set ? ","
						: ", ",
			field->words[i]);
		PIN_CHECK(length < bytes);
	}
}

/* A text of the environment that is no value, with those that are. */
static int refuse_text(
	const struct pin_log *log, const struct pin_config_field *field, const char *text)
{
	char words[WORDS_BYTES];

	if (field->words == NULL) {
		pin_log(log, PINION_LOG_ERROR,
			"%s: \"%.*s\" is not a value for %s: it takes a %s from %llu to %llu%s",
			field->variable, PIN_CONFIG_TEXT_SHOWN, text, field->name,
			field->is_size ? "size" : "number", (unsigned long long)field->min,
			(unsigned long long)field->max,
			field->is_size ? " (examples: 65536, 64K, 1M, 10MB)" : "");
		return -EINVAL;
	}
	list_words(field, words, sizeof(words));
	pin_log(log, PINION_LOG_ERROR, "%s: \"%.*s\" is not a value for %s: %s %s", field->variable,
		PIN_CONFIG_TEXT_SHOWN, text, field->name,
		field->is_set ? "it takes a list of" : "it takes one of", words);
	return -EINVAL;
}

/* The text stays where it is; that of the default is the default. */
static int read_lanes(struct pinion_config *config, const struct pin_log *log)
{
	const char *text = getenv(pin_lanes_variable);
	struct pin_lane_plan plan;
	const char *fault;

	if (text == NULL || text[0] == '\0') {
		return 0;
	}
	fault = pin_lane_plan_parse(&plan, text);
	if (fault != NULL) {
		return pin_config_refuse_lanes(log, text, fault, pin_lanes_variable);
	}
	config->lanes = strcmp(text, "hnl") == 0 ? NULL : text;
	return 0;
}

static void warn_of_unused(const struct pin_log *log, const char *variable)
{
	pin_log(log, PINION_LOG_WARN,
		"%s has no effect: this program does not read variables of struct pinion_tuning",
		variable);
}

/* The seed is no field of the table: any number of 64 bits is valid. */
static int read_seed(struct pinion_tuning *tuning, const struct pin_log *log)
{
	const char *text = getenv(pin_seed_variable);
	uint64_t seed;

	if (text == NULL || text[0] == '\0') {
		return 0;
	}
	if (tuning == NULL) {
		warn_of_unused(log, pin_seed_variable);
		return 0;
	}
	if (parse_number(text, 0, &seed)) {
		tuning->seed = seed;
		return 0;
	}
	pin_log(log, PINION_LOG_ERROR,
		"%s: \"%.*s\" is not a value for seed: it takes a number of 64 bits",
		pin_seed_variable, PIN_CONFIG_TEXT_SHOWN, text);
	return -EINVAL;
}

/* The text stays where it is. */
static int read_metrics_file(struct pinion_tuning *tuning, const struct pin_log *log)
{
	/* It names a file: not by the caller of a program with more rights. */
	const char *text = secure_getenv(pin_metrics_variable);
	int rc;

	if (text == NULL || text[0] == '\0') {
		return 0;
	}
	if (tuning == NULL) {
		warn_of_unused(log, pin_metrics_variable);
		return 0;
	}
	text = strcmp(text, "none") == 0 ? NULL : text;
	rc = pin_config_check_path(log, text, pin_metrics_variable);
	tuning->metrics_file = rc == 0 ? text : tuning->metrics_file;
	return rc;
}

/*
 * An empty variable counts as unset, so that a script can clear one. A variable
 * of the tuning without a tuning to write to is a warning.
 */
static int read_variable(const struct pin_config_parts *parts, const struct pin_config_field *field,
	const struct pin_log *log)
{
	const char *text = field->variable == NULL ? NULL : getenv(field->variable);
	uint64_t value;
	int rc;

	if (text == NULL || text[0] == '\0') {
		return 0;
	}
	if (field->part == PIN_CONFIG_IN_tuning && parts->tuning == NULL) {
		warn_of_unused(log, field->variable);
		return 0;
	}
	if (!parse_value(text, field, &value)) {
		return refuse_text(log, field, text);
	}
	rc = pin_config_check_field(log, field, value, field->variable);
	if (rc == 0) {
		pin_config_write_field(parts, field, value);
	}
	return rc;
}

/*
 * Warns of misspelt variables first, then reads the known ones; the first bad
 * value ends the call.
 */
int pinion_config_from_env(struct pinion_config *config, struct pinion_tuning *tuning)
{
	struct pin_log log = pin_config_log(config);
	struct pin_config_parts parts = {.config = config, .tuning = tuning};
	size_t count;
	const struct pin_config_field *fields = pin_config_fields(&count);
	int rc = 0;

	warn_of_unread(&log);
	if (tuning != NULL) {
		config->tuning = tuning;
	}
	for (size_t i = 0; i < count && rc == 0; i++) {
		rc = read_variable(&parts, &fields[i], &log);
	}
	rc = rc == 0 ? read_lanes(config, &log) : rc;
	rc = rc == 0 ? read_seed(tuning, &log) : rc;
	return rc == 0 ? read_metrics_file(tuning, &log) : rc;
}
