/* SPDX-License-Identifier: MIT */
/*
 * The log of a command: how it begins and ends, and what its records have.
 */
#include "tools/checkpointing.h"

#include "tools/checkpoint_table.h"
#include "tools/distribution.h"
#include "tools/mpi/rank_logs.h"
#include "tools/report.h"
#include "tools/scan/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	/* Output of a part that makes the next one an interval later. */
	PART_TEXT_BYTES = 1 << 20,
	NS_PER_SECOND = 1000 * 1000 * 1000,
	/* The coarsest that times of changes are on local file systems. */
	FRESH_NS = NS_PER_SECOND,
	/* Names of roots in a log's facts. */
	ROOTS_BYTES_MAX = 64 << 10,
};

struct checkpointing {
	struct pinion_checkpoint *log;
	struct rank_logs earlier;      /* of ranks; else none */
	struct checkpoint_table table; /* read-only once begun */
	uint64_t interval_ns;
	uint64_t found_count; /* [W:any R:any] */
	struct stat status;   /* of the log's file, 0: not known */
	uint64_t added_count; /* [W:any R:any] */
	uint64_t lost_count;  /* [W:any R:any] files without a record: no memory */
};

static struct pinion_checkpoint *log_at(const struct checkpointing *own, uint32_t log)
{
	return log == 0 ? own->log : own->earlier.logs[log - 1];
}

/* Reads all of its record. */
static int read_entry(const struct checkpointing *own, const struct checkpoint_entry *entry,
	uint8_t *bytes, size_t length)
{
	return pinion_checkpoint_read(log_at(own, checkpoint_entry_log(entry)),
		checkpoint_entry_offset(entry), bytes, length);
}

/* Those of earlier runs before its own. */
static int read_table(struct checkpointing *own)
{
	struct pinion_checkpoint_record record;
	int rc = 0;

	for (uint32_t i = 1; i <= own->earlier.count + 1 && rc == 0; i++) {
		uint32_t log = i <= own->earlier.count ? i : 0;

		if (log_at(own, log) == NULL) {
			continue;
		}
		while ((rc = pinion_checkpoint_next(log_at(own, log), &record)) == 1) {
			if (!checkpoint_table_add(&own->table, log, &record)) {
				return -ENOMEM;
			}
		}
	}
	return rc;
}

/* ---- begin and end ---- */

/*
 * Trees by name and inode: another tree of the same name is another root. A
 * file that is named may be another one: it is done again then, as any file.
 */
static void add_root(struct output_text *text, const char *path)
{
	struct stat status;

	output_text_string(text, text->length == 0 ? "" : " ");
	output_text_string(text, path);
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		output_text_format(text, " (inode %llu)", (unsigned long long)status.st_ino);
	}
}

/* Where there are many they are a digest, since facts have a limit. */
static void add_roots(struct output_text *text, char *const *paths, int path_count)
{
	static const size_t shown = 8;
	uint8_t digest[SHA256_BYTES];
	struct sha256 hash;

	for (int i = 0; i < path_count; i++) {
		add_root(text, paths[i]);
	}
	if (text->length <= ROOTS_BYTES_MAX || text->failed) {
		return;
	}
	sha256_init(&hash);
	sha256_add(&hash, text->bytes, text->length);
	sha256_finish(&hash, digest);
	text->length = 0;
	output_text_format(text, "%d paths of digest ", path_count);
	for (size_t i = 0; i < shown; i++) {
		output_text_format(text, "%02x", digest[i]);
	}
}

/* Of a text that ends in a zero. */
static const char *value_of(const struct output_text *text)
{
	return text->bytes[0] == '\0' ? CHECKPOINT_NONE : text->bytes;
}

/* A rank's log is new, and what earlier runs have done is in theirs. */
static int open_rank_log(struct checkpointing *own, const struct checkpointing_options *options,
	struct pinion_checkpoint_config *config)
{
	char *path;
	int rc = rank_logs_open(&own->earlier, options->file, distribution->rank == 0,
		config->flags, config->facts, config->fact_count);

	if (rc < 0) {
		return rc;
	}
	if (asprintf(&path, "%s.%u", options->file, distribution->rank) < 0) {
		return -ENOMEM;
	}
	config->flags = 0;
	rc = pinion_checkpoint_open(path, config, &own->log);
	(void)stat(path, &own->status);
	free(path);
	return rc;
}

static int open_log(struct checkpointing *own, const struct checkpointing_options *options,
	const char *command, const struct output_text *roots)
{
	static const char *const names[CHECKPOINT_FACTS] = CHECKPOINT_FACT_NAMES;
	char shard[32];
	const char *values[CHECKPOINT_FACTS] = {command, pinion_version(),
		value_of(&options->given), value_of(&options->contents), value_of(roots),
		CHECKPOINT_NONE};
	struct pinion_checkpoint_fact facts[CHECKPOINT_FACTS];
	struct pinion_checkpoint_config config;
	int rc;

	if (options->sharding.count > 0 || distribution != NULL) {
		snprintf(shard, sizeof(shard), "%u/%u",
			distribution != NULL ? distribution->rank : options->sharding.index,
			distribution != NULL ? distribution->count : options->sharding.count);
		values[CHECKPOINT_FACTS - 1] = shard;
	}
	for (int i = 0; i < CHECKPOINT_FACTS; i++) {
		facts[i] = (struct pinion_checkpoint_fact){names[i], values[i]};
	}

	pinion_checkpoint_config_init(&config);
	config.flags = (options->resumes ? PINION_CHECKPOINT_RESUME : 0u) |
		(options->salvages ? PINION_CHECKPOINT_SALVAGE : 0u);
	config.facts = facts;
	config.fact_count = CHECKPOINT_FACTS;
	config.log = report_checkpoint_log;
	/* Clocks are coarse: always is 0, and no nanosecond. */
	own->interval_ns = options->interval_ns == 1 ? 0
		: options->interval_ns > 0	     ? options->interval_ns
						     : config.sync_ns;
	if (options->interval_ns > 0) {
		config.sync_ns = options->interval_ns;
	}
	if (distribution != NULL) {
		return open_rank_log(own, options, &config);
	}
	rc = pinion_checkpoint_open(options->file, &config, &own->log);
	(void)stat(options->file, &own->status);
	return rc;
}

static void free_own(struct checkpointing *own)
{
	rank_logs_close(&own->earlier);
	free(own->table.entries);
	free(own);
}

bool checkpointing_begin(const struct checkpointing_options *options, const char *command,
	char *const *paths, int path_count, struct checkpointing **out_checkpointing)
{
	struct checkpointing *own;
	struct output_text roots = {0};
	int rc;

	*out_checkpointing = NULL;
	if (options->file == NULL) {
		if (distribution != NULL) {
			report_line("name a log by --checkpoint=LOG: each rank notes what it has "
				    "done in LOG.RANK, and `pinion merge` prints it");
		}
		return distribution == NULL;
	}
	if (distribution != NULL && !rank_logs_are_apart(options->file, paths, path_count)) {
		return false;
	}
	own = calloc(1, sizeof(*own));
	add_roots(&roots, paths, path_count);
	output_text_append(&roots, "", 1);
	output_text_append((struct output_text *)&options->given, "", 1);
	output_text_append((struct output_text *)&options->contents, "", 1);
	if (own == NULL || roots.failed || options->given.failed || options->contents.failed) {
		rc = -ENOMEM;
	} else {
		rc = open_log(own, options, command, &roots);
		rc = rc < 0 ? rc : read_table(own);
	}
	output_text_free(&roots);
	if (rc == 0) {
		*out_checkpointing = own;
		return true;
	}
	if (rc == -ENOMEM || (own != NULL && own->log != NULL)) {
		report_path(options->file, report_reason(rc));
	}
	if (own != NULL) {
		(void)pinion_checkpoint_close(own->log, 0);
		free_own(own);
	}
	return false;
}

bool checkpointing_has(const struct checkpointing *checkpointing, uint64_t device, uint64_t inode)
{
	return checkpointing != NULL && checkpointing->status.st_ino != 0 &&
		checkpointing->status.st_dev == device && checkpointing->status.st_ino == inode;
}

/* Appends that a path of an earlier run is gone. */
static int note_gone(struct checkpointing *own, const struct checkpoint_entry *entry)
{
	uint8_t *bytes = malloc((size_t)entry->length);
	struct checkpoint_file head;
	int rc = bytes == NULL ? -ENOMEM : read_entry(own, entry, bytes, (size_t)entry->length);

	if (rc == 0) {
		struct iovec part = {bytes + sizeof(head), 0};

		memcpy(&head, bytes, sizeof(head));
		part.iov_len = (size_t)head.path_bytes;
		rc = pinion_checkpoint_append(own->log, CHECKPOINT_RECORD_GONE, &part, 1, 0);
	}
	free(bytes);
	return rc;
}

/* What the log says is then what the output says. */
static int note_end(struct checkpointing *own, const struct checkpointing_end *end,
	const struct checkpoint_totals *totals)
{
	static const struct output_text nothing;
	const struct output_text *head = end->head == NULL ? &nothing : end->head;
	struct checkpoint_end last = {
		.totals = *totals,
		.has_trouble = end->has_trouble,
		.form = end->form,
		.head_bytes = head->length,
	};
	struct iovec parts[] = {{&last, sizeof(last)}, {head->bytes, head->length}};
	int rc = head->failed ? -ENOMEM : 0;

	for (size_t i = 0; i < own->table.capacity && rc == 0; i++) {
		const struct checkpoint_entry *entry = &own->table.entries[i];

		/* A log of this run alone has nothing that is gone. */
		if (checkpoint_entry_log(entry) == 0 &&
			entry->length >= sizeof(struct checkpoint_file) &&
			!checkpoint_entry_is_visited(entry)) {
			rc = note_gone(own, entry);
		}
	}
	return rc < 0 ? rc : pinion_checkpoint_append(own->log, CHECKPOINT_RECORD_END, parts, 2, 0);
}

/* Whether each file that has ended has a record. */
static bool is_covered(const struct checkpointing *own, const struct checkpointing_end *end)
{
	uint64_t noted_count = own->found_count + own->added_count;

	/* Files that are archives are noted by no record. */
	if (own->lost_count == 0 &&
		(noted_count == end->noted_count || end->form == CHECKPOINT_FORM_ARCHIVES)) {
		return true;
	}
	report_line("the log has %llu of %llu files%s: --resume does the others again",
		(unsigned long long)noted_count, (unsigned long long)end->noted_count,
		own->lost_count > 0 ? ", as memory ran out" : "");
	return false;
}

bool checkpointing_end(struct checkpointing *checkpointing, const struct checkpointing_end *end)
{
	bool is_complete = end != NULL;
	int rc = 0;

	if (checkpointing == NULL) {
		return true;
	}
	if (is_complete) {
		struct checkpoint_totals totals = end->totals;

		is_complete = is_covered(checkpointing, end) &&
			(distribution == NULL || distribution->end(&totals));
		rc = is_complete ? note_end(checkpointing, end, &totals) : -ENOMEM;
		is_complete = rc == 0;
	}
	if (pinion_checkpoint_close(checkpointing->log, is_complete ? 1 : 0) != 0) {
		rc = -EIO; /* reported */
	}
	if (rc == 0 && is_complete && distribution != NULL) {
		distribution->note_whole();
	}
	free_own(checkpointing);
	return rc == 0;
}

void checkpointing_report(const struct checkpointing *checkpointing, bool is_stopped)
{
	uint64_t found_count = checkpointing == NULL
		? 0
		: __atomic_load_n(&checkpointing->found_count, __ATOMIC_RELAXED);

	if (is_stopped) {
		report_line(checkpointing == NULL
				? "stopped early by a signal"
				: "stopped early by a signal; --resume goes on from here");
	}
	if (found_count > 0) {
		report_note("%llu %s done by earlier runs", (unsigned long long)found_count,
			found_count == 1 ? "file was" : "files were");
	}
}

/* ---- files ---- */

/* Coarse: it is at most a tick late, and costs a fraction. */
static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void look_at(const struct pinion_scan_file *file, struct checkpointing_file *out_own)
{
	const struct pinion_file *opened = &file->file;

	*out_own = (struct checkpointing_file){
		.inode = opened->inode,
		.size_bytes = opened->size_bytes,
		.modified_ns = opened->modified_ns,
		.changed_ns = opened->changed_ns,
		/* Also where the clock was set back since. */
		.is_fresh = opened->changed_ns == 0 ||
			(int64_t)now_ns(CLOCK_REALTIME_COARSE) - opened->changed_ns < FRESH_NS,
		.part_ns = now_ns(CLOCK_MONOTONIC_COARSE),
	};
}

/* Its record counts: a part's, and one of a file that was done. */
static bool is_same(const struct checkpoint_file *head, const struct checkpointing_file *own)
{
	return !own->is_fresh && head->inode == own->inode && head->size_bytes == own->size_bytes &&
		head->modified_ns == own->modified_ns && head->changed_ns == own->changed_ns;
}

/* Of a record of that path, as the file is now. */
static enum checkpointing_outcome take(
	const uint8_t *bytes, size_t length, struct checkpointing_found *out)
{
	struct checkpoint_file head;
	const uint8_t *text;
	size_t left;

	memcpy(&head, bytes, sizeof(head));
	text = bytes + sizeof(head) + head.path_bytes;
	left = length - sizeof(head) - (size_t)(head.path_bytes + head.text_bytes);
	if (left < sizeof(out->offset) && head.is_done == 0) {
		return CHECKPOINTING_NOTHING;
	}
	output_text_append(&out->text, text, (size_t)head.text_bytes);
	memcpy(out->counts, head.counts, sizeof(head.counts));
	if (left >= sizeof(out->offset)) {
		memcpy(&out->offset, text + head.text_bytes, sizeof(out->offset));
		output_text_append(&out->state, text + head.text_bytes + sizeof(out->offset),
			left - sizeof(out->offset));
	}
	if (out->text.failed || out->state.failed) {
		return CHECKPOINTING_NOTHING;
	}
	return left >= sizeof(out->offset) ? CHECKPOINTING_PART : CHECKPOINTING_ALL;
}

/*
 * What an earlier run has of a file goes into the log of this one, which then
 * has all that a merge needs. False: no memory, or no log; the file is done.
 */
static bool keep(
	struct checkpointing *own, const struct checkpoint_entry *entry, void *bytes, size_t length)
{
	struct iovec part = {bytes, length};

	return checkpoint_entry_log(entry) == 0 ||
		pinion_checkpoint_append(own->log, CHECKPOINT_RECORD_FILE, &part, 1, 0) == 0;
}

enum checkpointing_outcome checkpointing_find(struct checkpointing *checkpointing,
	const struct pinion_scan_file *file, struct checkpointing_file *out_own,
	struct checkpointing_found *out_found)
{
	const struct checkpoint_entry *entry = NULL;
	uint64_t length =
		checkpoint_table_visit(&checkpointing->table, file->path, file->path_bytes, &entry);
	enum checkpointing_outcome outcome = CHECKPOINTING_NOTHING;
	struct checkpoint_file head;
	uint8_t *bytes;

	look_at(file, out_own);
	if (length < sizeof(head)) {
		return CHECKPOINTING_NOTHING;
	}
	bytes = malloc((size_t)length);
	if (bytes == NULL || read_entry(checkpointing, entry, bytes, (size_t)length) < 0) {
		free(bytes);
		return CHECKPOINTING_NOTHING;
	}
	memcpy(&head, bytes, sizeof(head));
	if (is_same(&head, out_own) && head.path_bytes == file->path_bytes &&
		memcmp(bytes + sizeof(head), file->path, file->path_bytes) == 0) {
		outcome = take(bytes, (size_t)length, out_found);
	}
	if (outcome == CHECKPOINTING_ALL && !keep(checkpointing, entry, bytes, (size_t)length)) {
		output_text_free(&out_found->text);
		*out_found = (struct checkpointing_found){.offset = 0};
		outcome = CHECKPOINTING_NOTHING;
	}
	free(bytes);
	if (outcome == CHECKPOINTING_ALL) {
		__atomic_fetch_add(&checkpointing->found_count, 1, __ATOMIC_RELAXED);
	}
	return outcome;
}

bool checkpointing_wants_part(const struct checkpointing *checkpointing,
	const struct checkpointing_file *own, size_t text_bytes)
{
	return !own->is_fresh &&
		now_ns(CLOCK_MONOTONIC_COARSE) - __atomic_load_n(&own->part_ns, __ATOMIC_RELAXED) >=
		checkpointing->interval_ns * (1 + text_bytes / PART_TEXT_BYTES);
}

static struct checkpoint_file make_head(const struct pinion_scan_file *file,
	const struct checkpointing_file *own, const struct checkpointing_result *result)
{
	struct checkpoint_file head = {
		.inode = own->inode,
		.size_bytes = own->size_bytes,
		.modified_ns = own->modified_ns,
		.changed_ns = own->changed_ns,
		.path_bytes = file->path_bytes,
		.text_bytes = result->length,
	};

	memcpy(head.counts, result->counts, sizeof(head.counts));
	return head;
}

void checkpointing_add_part(struct checkpointing *checkpointing,
	const struct pinion_scan_file *file, struct checkpointing_file *own,
	const struct checkpointing_result *result, uint64_t offset, const struct output_text *state)
{
	struct checkpoint_file head = make_head(file, own, result);
	struct iovec parts[] = {
		{&head, sizeof(head)},
		{(void *)(uintptr_t)file->path, file->path_bytes},
		{(void *)(uintptr_t)result->bytes, result->length},
		{&offset, sizeof(offset)},
		{state->bytes, state->length},
	};

	(void)pinion_checkpoint_append(checkpointing->log, CHECKPOINT_RECORD_PART, parts, 5, 0);
	__atomic_store_n(&own->part_ns, now_ns(CLOCK_MONOTONIC_COARSE), __ATOMIC_RELAXED);
}

bool checkpointing_add(struct checkpointing *checkpointing, const struct pinion_scan_file *file,
	const struct checkpointing_file *own, int error, const struct checkpointing_result *result,
	bool is_whole)
{
	struct checkpoint_file head = make_head(file, own, result);
	const struct checkpoint_entry *entry;
	struct iovec parts[] = {
		{&head, sizeof(head)},
		{(void *)(uintptr_t)file->path, file->path_bytes},
		{(void *)(uintptr_t)result->bytes, result->length},
	};
	int rc;

	head.error = error;
	head.is_done = error == 0 && is_whole && !own->is_fresh;
	(void)checkpoint_table_visit(&checkpointing->table, file->path, file->path_bytes, &entry);
	rc = pinion_checkpoint_append(
		checkpointing->log, CHECKPOINT_RECORD_FILE, parts, 3, own->size_bytes);
	__atomic_fetch_add(rc == 0 ? &checkpointing->added_count : &checkpointing->lost_count, 1,
		__ATOMIC_RELAXED);
	/* Without memory for its record the file is done again. */
	return rc == 0 || rc == -ENOMEM;
}
