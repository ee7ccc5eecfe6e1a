/* SPDX-License-Identifier: MIT */
/*
 * Opens the logs of shards and compares what they say of their runs.
 */
#include "tools/merge/shards.h"

#include "tools/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const fact_names[CHECKPOINT_FACTS] = CHECKPOINT_FACT_NAMES;

/* As long as a value that is shown. */
enum { VALUE_SHOWN = 120 };

static const char *fact_of(const struct pinion_checkpoint *log, int index)
{
	const char *value = pinion_checkpoint_fact_value(log, fact_names[index]);

	return value == NULL ? CHECKPOINT_NONE : value;
}

/* All facts but the shard are those of the first log. */
static bool is_of_the_run(
	const struct shards *shards, const struct pinion_checkpoint *log, const char *path)
{
	for (int i = 0; i < CHECKPOINT_FACTS - 1; i++) {
		const char *first = fact_of(shards->first, i);
		const char *value = fact_of(log, i);

		if (strcmp(first, value) != 0) {
			report_line("%s is of another run than %s, with %s %.*s, and not %.*s",
				path, shards->first_path, fact_names[i], VALUE_SHOWN, value,
				VALUE_SHOWN, first);
			return false;
		}
	}
	return true;
}

static bool make_room(struct shards *shards, uint32_t count)
{
	if (shards->count == 0) {
		shards->items = calloc(count, sizeof(*shards->items));
		shards->count = shards->items == NULL ? 0 : count;
	}
	return shards->items != NULL;
}

static bool is_one_file(const char *left, const char *right)
{
	struct stat one;
	struct stat other;

	return stat(left, &one) == 0 && stat(right, &other) == 0 && one.st_dev == other.st_dev &&
		one.st_ino == other.st_ino;
}

/* Two logs are of one shard. */
static void report_twice(const char *path, const char *other, const struct sharding *sharding)
{
	if (strcmp(path, other) == 0) {
		report_line("%s is named twice: name the log of each shard once", path);
	} else if (is_one_file(path, other)) {
		report_line("%s and %s are one file: name the log of each shard once", other, path);
	} else if (sharding->count == 1) {
		report_line("%s is of a whole run, and so is %s", path, other);
	} else {
		report_line("%s is shard %u/%u, and so is %s", path, sharding->index,
			sharding->count, other);
	}
}

/* Which shard the log is of. False: of none of these, which is reported. */
static bool place(struct shards *shards, const struct pinion_checkpoint *log, const char *path,
	struct sharding *out_sharding)
{
	const char *value = fact_of(log, CHECKPOINT_FACTS - 1);

	*out_sharding = (struct sharding){0, 1};
	if (strcmp(value, CHECKPOINT_NONE) != 0 && !sharding_read(value, out_sharding)) {
		report_line("%s: its shard is %.*s, which is none", path, VALUE_SHOWN, value);
		return false;
	}
	if (!make_room(shards, out_sharding->count)) {
		report_path(path, report_reason(ENOMEM));
		return false;
	}
	if (out_sharding->count != shards->count) {
		report_line("%s is shard %u/%u, and %s is one of %u", path, out_sharding->index,
			out_sharding->count, shards->first_path, shards->count);
		return false;
	}
	if (shards->items[out_sharding->index].path != NULL) {
		report_twice(path, shards->items[out_sharding->index].path, out_sharding);
		return false;
	}
	return true;
}

/* The last end of a run. False: the log cannot be read, which is reported. */
static bool find_end(struct shard *shard)
{
	struct pinion_checkpoint_info info;
	struct pinion_checkpoint_record record;
	int rc;

	while ((rc = pinion_checkpoint_next(shard->log, &record)) == 1) {
		if (record.type == CHECKPOINT_RECORD_END &&
			record.length_bytes >= sizeof(shard->end)) {
			memcpy(&shard->end, record.bytes, sizeof(shard->end));
			shard->has_end = true;
		}
	}
	if (rc < 0) {
		report_path(shard->path, report_reason(rc));
	}
	pinion_checkpoint_get_info(shard->log, &info, sizeof(info));
	shard->is_complete = info.is_complete != 0 && shard->has_end;
	return rc == 0;
}

static bool take(struct shards *shards, struct pinion_checkpoint *log, const char *path)
{
	struct sharding sharding;

	if (shards->first == NULL) {
		shards->first = log;
		shards->first_path = path;
	}
	if (!is_of_the_run(shards, log, path) || !place(shards, log, path, &sharding)) {
		return false;
	}
	shards->items[sharding.index] = (struct shard){.path = path, .log = log};
	return find_end(&shards->items[sharding.index]);
}

static int open_log(const char *path, struct pinion_checkpoint **out_log)
{
	struct pinion_checkpoint_config config;

	pinion_checkpoint_config_init(&config);
	config.flags = PINION_CHECKPOINT_READ;
	config.log = report_checkpoint_log;
	return pinion_checkpoint_open(path, &config, out_log);
}

/* Whether one of the shards has it, or it is the first, which stays open. */
static bool is_kept(const struct shards *shards, const struct pinion_checkpoint *log)
{
	for (uint32_t i = 0; i < shards->count; i++) {
		if (shards->items[i].log == log) {
			return true;
		}
	}
	return shards->first == log;
}

void shards_add(struct shards *shards, const char *path, bool has_to_be)
{
	struct pinion_checkpoint *log = NULL;
	int rc;

	if (!has_to_be && access(path, F_OK) != 0 && errno == ENOENT) {
		return;
	}
	rc = open_log(path, &log);
	if (rc == -ENOMEM) {
		report_path(path, report_reason(rc));
	}
	if (rc != 0 || !take(shards, log, path)) {
		shards->has_trouble = true;
		if (log != NULL && !is_kept(shards, log)) {
			(void)pinion_checkpoint_close(log, 0);
		}
	}
}

void shards_fini(struct shards *shards)
{
	bool has_first = false;

	for (uint32_t i = 0; i < shards->count; i++) {
		has_first = has_first || shards->items[i].log == shards->first;
		(void)pinion_checkpoint_close(shards->items[i].log, 0);
	}
	if (!has_first) {
		(void)pinion_checkpoint_close(shards->first, 0);
	}
	free(shards->items);
}

void shards_missing(const struct shards *shards, struct output_text *text)
{
	uint32_t i = 0;

	while (i < shards->count) {
		uint32_t from = i;

		while (i < shards->count && !shards->items[i].is_complete) {
			i++;
		}
		if (i > from) {
			output_text_format(text, "%s%u", text->length == 0 ? "" : ",", from);
		}
		if (i > from + 1) {
			output_text_format(text, "-%u", i - 1);
		}
		i += i == from ? 1 : 0;
	}
}

static bool is_sum(const struct checkpoint_totals *totals)
{
	return totals->seen == totals->done + totals->failed + totals->skipped + totals->ignored;
}

/* What a shard has left to others, they have; directories are all shards'. */
static bool fits(const struct shards *shards)
{
	const struct checkpoint_totals *first = &shards->items[0].end.totals;
	uint64_t own_count = 0;

	for (uint32_t i = 0; i < shards->count; i++) {
		const struct checkpoint_totals *totals = &shards->items[i].end.totals;

		own_count += totals->done + totals->failed + totals->skipped;
		if (totals->failed > 0) {
			return true;
		}
	}
	for (uint32_t i = 0; i < shards->count; i++) {
		const struct checkpoint_totals *totals = &shards->items[i].end.totals;

		if (own_count - totals->done - totals->skipped != totals->other_shard ||
			totals->ignored - totals->other_shard !=
				first->ignored - first->other_shard) {
			return false;
		}
	}
	return true;
}

bool shards_check_totals(const struct shards *shards)
{
	for (uint32_t i = 0; i < shards->count; i++) {
		if (!is_sum(&shards->items[i].end.totals)) {
			report_line("%s: its counts of files do not add up: run it again",
				shards->items[i].path);
			return false;
		}
	}
	if (shards->count > 1 && !fits(shards)) {
		report_line(
			"the shards have not seen the same files: these changed in between, and "
			"some may be in none");
	}
	return true;
}
