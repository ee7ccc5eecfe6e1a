/* SPDX-License-Identifier: MIT */
/*
 * Goal: docs/man/pinion_config.md says of each PINION_* variable what the
 * library does: its range, its words, its default; and names them all.
 * AS-13, AS-14, AS-15, EX-9, EX-11, EX-12, EX-14.
 * Method: reads the rows of its tables. Both ends of a range and each word are
 * accepted, values just beyond are not, and the default leaves the struct as
 * pinion_config_init() made it. The names are those in runtime/api/config.c.
 */
#include "tests/support/expect.h"

#include <errno.h>
#include <inttypes.h>
#include <pinion/config.h>
#include <stdint.h>

enum { ROWS_MAX = 96, NAME_BYTES = 64, PAGE_BYTES = 1 << 20 };

struct row {
	char variable[NAME_BYTES];
	char values[512];
	char standard[NAME_BYTES];
};

static struct row rows[ROWS_MAX];
static size_t row_count;
static char text[PAGE_BYTES];

static void read_text(const char *path)
{
	const char *top = getenv("top_srcdir");
	char whole[1024];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", top == NULL ? "." : top, path);
	file = fopen(whole, "r");
	expect_ready(whole, file != NULL);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
}

static void read_rows(void)
{
	read_text("docs/man/pinion_config.md");
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		struct row *row = &rows[row_count];
		int found = sscanf(line, "| `%63[A-Z_]` | `%*[a-z_.]` | %511[^|] | %63[^ |]",
			row->variable, row->values, row->standard);

		if (strncmp(line, "| `PINION_", strlen("| `PINION_")) == 0) {
			expect_number(line, 3, found);
			expect_ready("a place for one more row", ++row_count < ROWS_MAX);
		}
	}
}

/* Of a runtime configured by this variable alone. */
static int set(const struct row *row, const char *value, struct pinion_config *out_config,
	struct pinion_tuning *out_tuning)
{
	int rc;

	pinion_config_init(out_config);
	pinion_tuning_init(out_tuning);
	setenv(row->variable, value, 1);
	rc = pinion_config_from_env(out_config, out_tuning);
	unsetenv(row->variable);
	out_config->tuning = NULL;
	return rc;
}

static void check_value(const struct row *row, const char *value, int expected)
{
	struct pinion_config config;
	struct pinion_tuning tuning;
	char what[160];

	snprintf(what, sizeof(what), "%s=%s", row->variable, value);
	expect_number(what, expected, set(row, value, &config, &tuning));
}

static void check_range(const struct row *row, uint64_t min, uint64_t max)
{
	char value[32];

	snprintf(value, sizeof(value), "%" PRIu64, min);
	check_value(row, value, 0);
	snprintf(value, sizeof(value), "%" PRIu64, max);
	check_value(row, value, 0);
	if (min > 0) {
		snprintf(value, sizeof(value), "%" PRIu64, min - 1);
		check_value(row, value, -EINVAL);
	}
	if (max < UINT64_MAX) {
		snprintf(value, sizeof(value), "%" PRIu64, max + 1);
		check_value(row, value, -EINVAL);
	}
}

static void check_words(const struct row *row)
{
	char words[sizeof(row->values)];

	memcpy(words, row->values, sizeof(words));
	for (char *word = strtok(words, "`, "); word != NULL; word = strtok(NULL, "`, ")) {
		check_value(row, word, 0);
	}
	check_value(row, "no such word", -EINVAL);
}

static void check_default(const struct row *row)
{
	struct pinion_config plain;
	struct pinion_tuning plain_tuning;
	struct pinion_config config;
	struct pinion_tuning tuning;
	char value[NAME_BYTES] = "";
	char what[160];

	sscanf(row->standard, "%*[`]%63[^`]", value);
	snprintf(what, sizeof(what), "%s: the default is %s", row->variable, row->standard);
	pinion_config_init(&plain);
	pinion_tuning_init(&plain_tuning);
	expect_number(
		what, 0, set(row, value[0] == '\0' ? row->standard : value, &config, &tuning));
	expect_number(what, 0, memcmp(&plain, &config, sizeof(plain)));
	expect_number(what, 0, memcmp(&plain_tuning, &tuning, sizeof(tuning)));
}

static void check_name(const char *name, size_t bytes)
{
	for (size_t i = 0; i < row_count; i++) {
		if (strlen(rows[i].variable) == bytes &&
			memcmp(rows[i].variable, name, bytes) == 0) {
			return;
		}
	}
	printf("%.*s: expected a row in the page, got none\n", (int)bytes, name);
	expect_failure_count++;
}

static void check_names(void)
{
	size_t found = 0;

	read_text("runtime/api/config.c");
	for (char *at = strstr(text, "\"PINION_"); at != NULL; at = strstr(at, "\"PINION_")) {
		size_t bytes = strspn(++at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");

		if (at[bytes] == '"') {
			found++;
			check_name(at, bytes);
		}
	}
	expect_number(
		"variables in the page and in the source", (long long)found, (long long)row_count);
}

int main(void)
{
	read_rows();
	for (size_t i = 0; i < row_count; i++) {
		unsetenv(rows[i].variable);
	}
	for (size_t i = 0; i < row_count; i++) {
		uint64_t min;
		uint64_t max;

		if (sscanf(rows[i].values, "%" SCNu64 " … %" SCNu64, &min, &max) == 2) {
			check_range(&rows[i], min, max);
		} else {
			check_words(&rows[i]);
		}
		check_default(&rows[i]);
	}
	check_names();
	return expect_status();
}
