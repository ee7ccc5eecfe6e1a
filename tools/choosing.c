/* SPDX-License-Identifier: MIT */
/*
 * The options that leave files out, and their values.
 *
 * Called by the parser of a command, on the first thread.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strptime */
#endif
#include "tools/choosing.h"

#include "tools/options.h"
#include "tools/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)
/* So that no sum overflows. */
#define AGE_MAX INT64_C(1000000000)

static bool add_line(char **lines, const char *name, const char *line)
{
	size_t before = *lines == NULL ? 0 : strlen(*lines);
	size_t bytes = strlen(line);
	char *grown;

	if (bytes == 0 || strchr(line, '\n') != NULL) {
		report_line("--%s: a pattern is one line that is not empty", name);
		return false;
	}
	grown = realloc(*lines, before + bytes + 2);
	if (grown == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	memcpy(grown + before, line, bytes);
	memcpy(grown + before + bytes, "\n", 2);
	*lines = grown;
	return true;
}

/* 7d: that long ago. */
static bool parse_age(const char *value, int64_t *out_ns)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
	char *end;
	long long count;

	if (value[0] < '0' || value[0] > '9') {
		return false;
	}
	errno = 0;
	count = strtoll(value, &end, 10);
	if (errno != 0 || count > AGE_MAX || end[0] == '\0' || end[1] != '\0') {
		return false;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].unit == *end) {
			int64_t seconds = (int64_t)time(NULL) - count * units[i].seconds;

			/* Before 1970: all, but 0 would be no bound. */
			*out_ns = seconds > 0 && seconds < INT64_MAX / NS_PER_S ? seconds * NS_PER_S
										: 1;
			return true;
		}
	}
	return false;
}

/* In the local time zone. */
static bool parse_date(const char *value, int64_t *out_ns)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct tm date = {.tm_isdst = -1};
		const char *end = strptime(value, formats[i], &date);
		time_t seconds;

		if (end == NULL || *end != '\0') {
			continue;
		}
		seconds = mktime(&date);
		if (seconds == (time_t)-1 || (int64_t)seconds >= INT64_MAX / NS_PER_S ||
			(int64_t)seconds <= INT64_MIN / NS_PER_S) {
			return false;
		}
		*out_ns = seconds == 0 ? 1 : (int64_t)seconds * NS_PER_S;
		return true;
	}
	return false;
}

static bool parse_time(const char *name, const char *value, int64_t *out_ns)
{
	if (parse_age(value, out_ns) || parse_date(value, out_ns)) {
		return true;
	}
	report_line("--%s: %s is no time: give a date, 2026-11-27 or 2026-11-27T08:30:00, or an "
		    "age, such as 7d, 12h, 30m",
		name, value);
	return false;
}

static bool parse_links(struct pinion_walk_filter *filter, const char *value)
{
	static const char *const words[] = {"all", "once", NULL};
	int index = options_choice("hard-links", value, words);

	filter->hard_links_once = index == 1 ? 1 : 0;
	return index >= 0;
}

static bool is(const char *name, const char *wanted)
{
	return strcmp(name, wanted) == 0;
}

bool choosing_parse(struct choosing *choosing, const char *name, const char *value)
{
	struct pinion_walk_filter *filter = &choosing->filter;

	if (filter->size == 0) {
		pinion_walk_filter_init(filter);
	}
	if (is(name, "shard") || is(name, "shard-from-env")) {
		return sharding_parse(&choosing->sharding, value, is(name, "shard-from-env"));
	}
	choosing->is_about_trees = true;
	if (is(name, "one-file-system")) {
		filter->one_file_system = 1;
		return true;
	}
	if (is(name, "no-hidden")) {
		filter->skip_hidden = 1;
		return true;
	}
	if (is(name, "exclude")) {
		return add_line(&choosing->exclude, name, value);
	}
	if (is(name, "include")) {
		return add_line(&choosing->include, name, value);
	}
	if (is(name, "min-size")) {
		return options_size(name, value, 0, INT64_MAX, &filter->bytes_min);
	}
	if (is(name, "max-filesize")) {
		return options_size(name, value, 1, INT64_MAX, &filter->bytes_max);
	}
	if (is(name, "newer-than")) {
		return parse_time(name, value, &filter->modified_from_ns);
	}
	if (is(name, "older-than")) {
		return parse_time(name, value, &filter->modified_to_ns);
	}
	return parse_links(filter, value);
}

/* Which of a file's names comes first may differ from run to run. */
bool choosing_check(const struct choosing *choosing)
{
	if (choosing->sharding.count > 1 && choosing->filter.hard_links_once != 0) {
		report_line("--hard-links=once does not go with --shard: names of one file may be "
			    "in several shards");
		return false;
	}
	return true;
}

const struct pinion_walk_filter *choosing_filter(struct choosing *choosing)
{
	struct pinion_walk_filter *filter = &choosing->filter;

	filter->exclude = choosing->exclude;
	filter->include = choosing->include;
	filter->shard_index = choosing->sharding.index;
	filter->shard_count = choosing->sharding.count;
	return filter->size == 0 ? NULL : filter;
}

void choosing_fini(struct choosing *choosing)
{
	free(choosing->exclude);
	free(choosing->include);
	*choosing = (struct choosing){.exclude = NULL};
}
