/* SPDX-License-Identifier: MIT */
/*
 * The log of a command: what its records have, and a table of those of earlier
 * runs by path.
 */
#include "tools/checkpointing.h"

#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/scan/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	TABLE_MIN = 1024,
	NS_PER_SECOND = 1000 * 1000 * 1000,
	/* The coarsest that times of changes are on local file systems. */
	FRESH_NS = NS_PER_SECOND,
	READ_BYTES = 64 << 10,
	INTERVAL_NS_MIN = 1000 * 1000,
	INTERVAL_SECONDS_MAX = 86400,
};

struct entry {
	uint64_t hash; /* of the path */
	uint64_t offset;
	uint64_t length; /* 0: the entry is free; with VISITED: this run has seen it */
};

#define VISITED (UINT64_C(1) << 63)

struct checkpointing {
	struct pinion_checkpoint *log;
	struct entry *entries; /* a power of two; read-only once begun */
	size_t capacity;
	size_t count;
	uint64_t found_count; /* [W:any R:any] */
	struct stat status;   /* of the log's file, 0: not known */
	uint64_t added_count; /* [W:any R:any] */
	uint64_t lost_count;  /* [W:any R:any] files without a record: no memory */
};

/* ---- options ---- */

/* Results do not depend on these. */
static const char *const neutral[] = {"workers", "window", "direct", "io", "bwlimit", "iops-limit",
	"ioprio", "nice", "psi-target", "latency-target", "limits-file", "stats", "trace",
	"no-cache", "max-compile-time", "checkpoint", "resume", "salvage", "checkpoint-interval",
	"shard", "shard-from-env", "output", "file-timeout", "color", "quiet"};

/* The content of these files counts, and not their names. */
static const char *const files[] = {"rules", "baseline"};

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0) {
			return true;
		}
	}
	return false;
}

bool checkpointing_parse(struct checkpointing_options *options, const char *name, const char *value)
{
	if (strcmp(name, "checkpoint") == 0) {
		options->file = value;
	} else if (strcmp(name, "checkpoint-interval") == 0) {
		return options_duration(name, value, INTERVAL_NS_MIN,
			(uint64_t)INTERVAL_SECONDS_MAX * NS_PER_SECOND, &options->interval_ns);
	} else if (strcmp(name, "resume") == 0) {
		options->resumes = true;
	} else {
		options->salvages = true;
	}
	return true;
}

/* A plain file's; others are only named, as they can be read once. */
static bool add_digest(struct output_text *text, const char *path)
{
	uint8_t digest[SHA256_BYTES];
	static const size_t shown = 8;
	char *bytes = malloc(READ_BYTES);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	struct sha256 hash;
	ssize_t count = fd < 0 || bytes == NULL ? -1 : 1;

	sha256_init(&hash);
	if (count > 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
		count = 0;
	}
	while (count > 0) {
		count = read(fd, bytes, READ_BYTES);
		sha256_add(&hash, bytes, count > 0 ? (size_t)count : 0);
	}
	sha256_finish(&hash, digest);
	for (size_t i = 0; i < shown; i++) {
		output_text_format(text, "%02x", digest[i]);
	}
	if (fd >= 0) {
		close(fd);
	}
	free(bytes);
	return count == 0;
}

bool checkpointing_note(
	struct checkpointing_options *options, const struct option_spec *spec, const char *value)
{
	if (is_one_of(spec->name, neutral, sizeof(neutral) / sizeof(neutral[0]))) {
		return true;
	}
	output_text_format(
		&options->given, "%s--%s", options->given.length == 0 ? "" : " ", spec->name);
	if (value == NULL) {
		return true;
	}
	if (!is_one_of(spec->name, files, sizeof(files) / sizeof(files[0]))) {
		output_text_string(&options->given, "=");
		output_text_string(&options->given, value);
		return true;
	}
	output_text_string(&options->contents, options->contents.length == 0 ? "" : " ");
	/* Where it cannot be read the command says so itself. */
	(void)add_digest(&options->contents, value);
	return true;
}

bool checkpointing_check(const struct checkpointing_options *options)
{
	if (options->file == NULL &&
		(options->resumes || options->salvages || options->interval_ns > 0)) {
		report_line("--%s is about the log of --checkpoint=FILE, which is not given",
			options->resumes	    ? "resume"
				: options->salvages ? "salvage"
						    : "checkpoint-interval");
		return false;
	}
	if (options->salvages && !options->resumes) {
		report_line("--salvage is about a log that --resume goes on with");
		return false;
	}
	return true;
}

void checkpointing_options_fini(struct checkpointing_options *options)
{
	output_text_free(&options->given);
	output_text_free(&options->contents);
}

/* ---- the table ---- */

/* FNV-1a; the bytes of paths decide between those of one hash. */
static uint64_t hash_path(const char *path, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < length; i++) {
		hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
	}
	return hash;
}

static struct entry *find_entry(const struct checkpointing *own, uint64_t hash)
{
	size_t at = (size_t)hash & (own->capacity - 1);

	while (__atomic_load_n(&own->entries[at].length, __ATOMIC_RELAXED) != 0 &&
		own->entries[at].hash != hash) {
		at = (at + 1) & (own->capacity - 1);
	}
	return &own->entries[at];
}

static bool grow(struct checkpointing *own)
{
	struct checkpointing larger = {
		.capacity = own->capacity == 0 ? TABLE_MIN : 2 * own->capacity};

	larger.entries = calloc(larger.capacity, sizeof(*larger.entries));
	if (larger.entries == NULL) {
		return false;
	}
	for (size_t i = 0; i < own->capacity; i++) {
		if (own->entries[i].length != 0) {
			*find_entry(&larger, own->entries[i].hash) = own->entries[i];
		}
	}
	free(own->entries);
	own->entries = larger.entries;
	own->capacity = larger.capacity;
	return true;
}

/* Of a file, the path and its length; false: of none, or damaged. */
static bool path_of(
	const struct pinion_checkpoint_record *record, const char **out_path, size_t *out_length)
{
	struct checkpoint_file head;

	*out_path = (const char *)record->bytes;
	*out_length = record->length_bytes;
	if (record->type == CHECKPOINT_RECORD_GONE) {
		return true;
	}
	if (record->type != CHECKPOINT_RECORD_FILE || record->length_bytes < sizeof(head)) {
		return false;
	}
	memcpy(&head, record->bytes, sizeof(head));
	*out_path += sizeof(head);
	*out_length = (size_t)head.path_bytes;
	return head.path_bytes <= record->length_bytes - sizeof(head) &&
		head.text_bytes == record->length_bytes - sizeof(head) - head.path_bytes;
}

/* The last record of a path counts. */
static bool add_entry(struct checkpointing *own, const struct pinion_checkpoint_record *record)
{
	const char *path;
	struct entry *entry;
	uint64_t hash;
	size_t length;

	if (!path_of(record, &path, &length)) {
		return true;
	}
	if (own->count * 2 >= own->capacity && !grow(own)) {
		return false;
	}
	hash = hash_path(path, length);
	entry = find_entry(own, hash);
	own->count += entry->length == 0 ? 1 : 0;
	/* What is gone is as long as no file's record. */
	*entry = (struct entry){hash, record->offset_bytes,
		record->type == CHECKPOINT_RECORD_GONE ? 1 : record->length_bytes};
	return true;
}

static int read_table(struct checkpointing *own)
{
	struct pinion_checkpoint_record record;
	int rc;

	while ((rc = pinion_checkpoint_next(own->log, &record)) == 1) {
		if (!add_entry(own, &record)) {
			return -ENOMEM;
		}
	}
	return rc;
}

/* The length of its record, 0: earlier runs have none. The run has seen it. */
static uint64_t visit(struct checkpointing *own, const struct pinion_scan_file *file,
	const struct entry **out_entry)
{
	struct entry *entry;

	if (own->count == 0) {
		return 0;
	}
	entry = find_entry(own, hash_path(file->path, file->path_bytes));
	*out_entry = entry;
	if (entry->length == 0) {
		return 0;
	}
	return __atomic_fetch_or(&entry->length, VISITED, __ATOMIC_RELAXED) & ~VISITED;
}

/* ---- begin and end ---- */

/* Roots by name and inode: another tree of the same name is another root. */
static void add_root(struct output_text *text, const char *path)
{
	struct stat status;

	output_text_string(text, text->length == 0 ? "" : " ");
	output_text_string(text, path);
	if (stat(path, &status) == 0) {
		output_text_format(text, " (inode %llu)", (unsigned long long)status.st_ino);
	} else {
		output_text_string(text, " (missing)");
	}
}

/* Of a text that ends in a zero. */
static const char *value_of(const struct output_text *text)
{
	return text->bytes[0] == '\0' ? CHECKPOINT_NONE : text->bytes;
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

	if (options->sharding.count > 0) {
		snprintf(shard, sizeof(shard), "%u/%u", options->sharding.index,
			options->sharding.count);
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
	config.log = report_log;
	if (options->interval_ns > 0) {
		config.sync_ns = options->interval_ns;
	}
	return pinion_checkpoint_open(options->file, &config, &own->log);
}

bool checkpointing_begin(const struct checkpointing_options *options, const char *command,
	char *const *paths, int path_count, struct checkpointing **out_checkpointing)
{
	struct checkpointing *own;
	struct output_text roots = {0};
	int rc;

	*out_checkpointing = NULL;
	if (options->file == NULL) {
		return true;
	}
	own = calloc(1, sizeof(*own));
	for (int i = 0; i < path_count; i++) {
		add_root(&roots, paths[i]);
	}
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
		(void)stat(options->file, &own->status);
		*out_checkpointing = own;
		return true;
	}
	if (rc == -ENOMEM || (own != NULL && own->log != NULL)) {
		report_path(options->file, report_reason(rc));
	}
	if (own != NULL) {
		(void)pinion_checkpoint_close(own->log, 0);
		free(own->entries);
		free(own);
	}
	return false;
}

bool checkpointing_has(const struct checkpointing *checkpointing, uint64_t device, uint64_t inode)
{
	return checkpointing != NULL && checkpointing->status.st_ino != 0 &&
		checkpointing->status.st_dev == device && checkpointing->status.st_ino == inode;
}

/* Appends that a path of an earlier run is gone. */
static int note_gone(struct checkpointing *own, const struct entry *entry)
{
	uint8_t *bytes = malloc((size_t)entry->length);
	struct checkpoint_file head;
	int rc = bytes == NULL
		? -ENOMEM
		: pinion_checkpoint_read(own->log, entry->offset, bytes, (size_t)entry->length);

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
static int note_end(struct checkpointing *own, const struct checkpointing_end *end)
{
	static const struct output_text nothing;
	const struct output_text *head = end->head == NULL ? &nothing : end->head;
	struct checkpoint_end last = {
		.totals = end->totals,
		.has_trouble = end->has_trouble,
		.form = end->form,
		.head_bytes = head->length,
	};
	struct iovec parts[] = {{&last, sizeof(last)}, {head->bytes, head->length}};
	int rc = head->failed ? -ENOMEM : 0;

	for (size_t i = 0; i < own->capacity && rc == 0; i++) {
		const struct entry *entry = &own->entries[i];

		if (entry->length >= sizeof(struct checkpoint_file) &&
			(entry->length & VISITED) == 0) {
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
		is_complete = is_covered(checkpointing, end);
		rc = is_complete ? note_end(checkpointing, end) : -ENOMEM;
		is_complete = rc == 0;
	}
	if (pinion_checkpoint_close(checkpointing->log, is_complete ? 1 : 0) != 0) {
		rc = -EIO; /* reported */
	}
	free(checkpointing->entries);
	free(checkpointing);
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
		report_note(
			"%llu files were done by earlier runs", (unsigned long long)found_count);
	}
}

/* ---- files ---- */

static int64_t time_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * NS_PER_SECOND + time->tv_nsec;
}

static void look_at(const struct pinion_scan_file *file, struct checkpointing_file *out_own)
{
	struct stat status;
	struct timespec now;

	*out_own = (struct checkpointing_file){.is_fresh = true};
	if (fstat(file->file.fd, &status) != 0) {
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	out_own->inode = status.st_ino;
	out_own->size_bytes = (uint64_t)status.st_size;
	out_own->modified_ns = time_ns(&status.st_mtim);
	out_own->changed_ns = time_ns(&status.st_ctim);
	/* Also where the clock was set back since. */
	out_own->is_fresh =
		!S_ISREG(status.st_mode) || time_ns(&now) - out_own->changed_ns < FRESH_NS;
}

static bool is_same(const struct checkpoint_file *head, const struct checkpointing_file *own)
{
	return head->is_done != 0 && !own->is_fresh && head->inode == own->inode &&
		head->size_bytes == own->size_bytes && head->modified_ns == own->modified_ns &&
		head->changed_ns == own->changed_ns;
}

int checkpointing_find(struct checkpointing *checkpointing, const struct pinion_scan_file *file,
	struct checkpointing_file *out_own, struct output_text *out_text,
	uint64_t out_counts[CHECKPOINT_COUNTS])
{
	const struct entry *entry = NULL;
	uint64_t length = visit(checkpointing, file, &entry);
	struct checkpoint_file head;
	uint8_t *bytes;
	int found = 0;

	look_at(file, out_own);
	if (length < sizeof(head)) {
		return 0;
	}
	bytes = malloc((size_t)length);
	if (bytes == NULL ||
		pinion_checkpoint_read(checkpointing->log, entry->offset, bytes, (size_t)length) <
			0) {
		free(bytes);
		return 0;
	}
	memcpy(&head, bytes, sizeof(head));
	if (is_same(&head, out_own) && head.path_bytes == file->path_bytes &&
		memcmp(bytes + sizeof(head), file->path, file->path_bytes) == 0) {
		output_text_append(
			out_text, bytes + sizeof(head) + head.path_bytes, (size_t)head.text_bytes);
		memcpy(out_counts, head.counts, sizeof(head.counts));
		found = out_text->failed ? 0 : 1;
	}
	free(bytes);
	if (found == 1) {
		__atomic_fetch_add(&checkpointing->found_count, 1, __ATOMIC_RELAXED);
	}
	return found;
}

bool checkpointing_add(struct checkpointing *checkpointing, const struct pinion_scan_file *file,
	const struct checkpointing_file *own, int error, const struct checkpointing_result *result,
	bool is_whole)
{
	struct checkpoint_file head = {
		.inode = own->inode,
		.size_bytes = own->size_bytes,
		.modified_ns = own->modified_ns,
		.changed_ns = own->changed_ns,
		.error = error,
		.is_done = error == 0 && is_whole && !own->is_fresh,
		.path_bytes = file->path_bytes,
		.text_bytes = result->length,
	};
	const struct entry *entry;
	struct iovec parts[] = {
		{&head, sizeof(head)},
		{(void *)(uintptr_t)file->path, file->path_bytes},
		{(void *)(uintptr_t)result->bytes, result->length},
	};
	int rc;

	memcpy(head.counts, result->counts, sizeof(head.counts));
	(void)visit(checkpointing, file, &entry);
	rc = pinion_checkpoint_append(
		checkpointing->log, CHECKPOINT_RECORD_FILE, parts, 3, own->size_bytes);
	__atomic_fetch_add(rc == 0 ? &checkpointing->added_count : &checkpointing->lost_count, 1,
		__ATOMIC_RELAXED);
	/* Without memory for its record the file is done again. */
	return rc == 0 || rc == -ENOMEM;
}
