/* SPDX-License-Identifier: MIT */
/*
 * The records of STATE, and the table of files that they make.
 */
#include "tools/sum/scrub_state.h"

#include "tools/output_text.h"
#include "tools/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	RECORD_FILE = 1,  /* struct file_record, its path, its gaps */
	RECORD_GONE = 2,  /* a path */
	RECORD_BEGIN = 3, /* struct begin_record */
	RECORD_END = 4,	  /* struct end_record */

	FILES_MIN = 1024,
	TEXT_BYTES = 1 << 20,
	/* Records that do not count are left alone up to this number. */
	SPARE_RECORDS = 1024,
	FACTS = 4,
};

_Static_assert(sizeof(struct scrub_file) == 88, "a million files take some 100 MB");

static const char format_version[] = "1";

struct file_record {
	int64_t checked_ns;
	uint64_t size_bytes;
	int64_t modified_ns;
	int64_t changed_ns;
	uint8_t digest[DIGEST_BYTES_MAX];
	int32_t error;
	uint32_t flags; /* enum scrub_file_flags */
	uint64_t path_bytes;
	uint64_t gap_count;
};

struct begin_record {
	int64_t began_ns;
	uint64_t file_count;
	uint64_t due_count;
};

struct end_record {
	int64_t ended_ns;
};

/* Paths, one after the other, each ended by a zero. */
struct scrub_texts {
	struct scrub_texts *next;
	size_t length;
	size_t capacity;
	char bytes[];
};

/* ---- the table ---- */

static const char *keep_text(struct scrub_state *state, const char *text, size_t length)
{
	struct scrub_texts *texts = state->texts;
	char *kept;

	if (texts == NULL || texts->capacity - texts->length <= length) {
		size_t capacity = length < TEXT_BYTES ? TEXT_BYTES : length + 1;

		texts = malloc(sizeof(*texts) + capacity);
		if (texts == NULL) {
			return NULL;
		}
		*texts = (struct scrub_texts){.next = state->texts, .capacity = capacity};
		state->texts = texts;
	}
	kept = texts->bytes + texts->length;
	memcpy(kept, text, length);
	kept[length] = '\0';
	texts->length += length + 1;
	return kept;
}

/* FNV-1a. */
static uint64_t hash_path(const char *path, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < length; i++) {
		hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
	}
	return hash ^ hash >> 32;
}

/* Where a path is in the index, or would be. */
static size_t find_slot(const struct scrub_state *state, const char *path, size_t length)
{
	size_t slot = (size_t)hash_path(path, length) & (state->index_size - 1);

	while (state->index[slot] != 0) {
		const char *other = state->files[state->index[slot] - 1].path;

		if (strncmp(other, path, length) == 0 && other[length] == '\0') {
			break;
		}
		slot = (slot + 1) & (state->index_size - 1);
	}
	return slot;
}

/* The index stays at most half full. */
static bool grow(struct scrub_state *state)
{
	size_t capacity = state->capacity == 0 ? FILES_MIN : 2 * state->capacity;
	uint32_t *index = calloc(2 * capacity, sizeof(*index));
	struct scrub_file *files =
		capacity > UINT32_MAX / 2 ? NULL : realloc(state->files, capacity * sizeof(*files));

	if (files != NULL) {
		state->files = files;
	}
	if (index == NULL || files == NULL) {
		free(index);
		return false;
	}
	free(state->index);
	state->index = index;
	state->index_size = 2 * capacity;
	state->capacity = capacity;
	for (size_t i = 0; i < state->count; i++) {
		const char *path = files[i].path;

		index[find_slot(state, path, strlen(path))] = (uint32_t)(i + 1);
	}
	return true;
}

static struct scrub_file *find(const struct scrub_state *state, const char *path, size_t length)
{
	uint32_t number = state->index_size == 0 ? 0 : state->index[find_slot(state, path, length)];

	return number == 0 ? NULL : &state->files[number - 1];
}

struct scrub_file *scrub_state_find(const struct scrub_state *state, const char *path)
{
	struct scrub_file *file = find(state, path, strlen(path));

	return file == NULL || (file->flags & SCRUB_IS_GONE) != 0 ? NULL : file;
}

static struct scrub_file *add(struct scrub_state *state, const char *path, size_t length)
{
	struct scrub_file *file = find(state, path, length);
	const char *kept;

	if (file != NULL) {
		if ((file->flags & SCRUB_IS_GONE) != 0) {
			*file = (struct scrub_file){.path = file->path};
			state->gone_count--;
		}
		return file;
	}
	if (state->count == state->capacity && !grow(state)) {
		return NULL;
	}
	kept = keep_text(state, path, length);
	if (kept == NULL) {
		return NULL;
	}
	file = &state->files[state->count];
	*file = (struct scrub_file){.path = kept};
	state->index[find_slot(state, path, length)] = (uint32_t)++state->count;
	return file;
}

struct scrub_file *scrub_state_add(struct scrub_state *state, const char *path)
{
	return add(state, path, strlen(path));
}

/* ---- reading ---- */

/* False: it is not as long as it says. */
static bool parse_file(const struct pinion_checkpoint_record *record, struct file_record *out)
{
	size_t left;

	if (record->length_bytes < sizeof(*out)) {
		return false;
	}
	memcpy(out, record->bytes, sizeof(*out));
	left = record->length_bytes - sizeof(*out);
	if (out->path_bytes == 0 || out->path_bytes > left ||
		memchr(record->bytes + sizeof(*out), '\0', (size_t)out->path_bytes) != NULL) {
		return false;
	}
	left -= (size_t)out->path_bytes;
	return left % sizeof(struct pinion_gap) == 0 &&
		left / sizeof(struct pinion_gap) == out->gap_count;
}

static int take_file(struct scrub_state *state, const struct pinion_checkpoint_record *record)
{
	struct file_record head;
	struct scrub_file *file;

	if (!parse_file(record, &head)) {
		return -EPROTONOSUPPORT;
	}
	file = add(state, (const char *)record->bytes + sizeof(head), (size_t)head.path_bytes);
	if (file == NULL) {
		return -ENOMEM;
	}
	*file = (struct scrub_file){
		.path = file->path,
		.order = record->offset_bytes,
		.checked_ns = head.checked_ns,
		.size_bytes = head.size_bytes,
		.modified_ns = head.modified_ns,
		.changed_ns = head.changed_ns,
		.error = head.error,
		.flags = head.flags & (SCRUB_HAS_DIGEST | SCRUB_IS_ROTTEN | SCRUB_IS_FRESH),
	};
	memcpy(file->digest, head.digest, sizeof(file->digest));
	state->run.checked_count++;
	return 0;
}

static int take_gone(struct scrub_state *state, const struct pinion_checkpoint_record *record)
{
	struct scrub_file *file;

	if (memchr(record->bytes, '\0', record->length_bytes) != NULL) {
		return -EPROTONOSUPPORT;
	}
	file = find(state, (const char *)record->bytes, record->length_bytes);
	if (file != NULL && (file->flags & SCRUB_IS_GONE) == 0) {
		file->flags |= SCRUB_IS_GONE;
		state->gone_count++;
	}
	return 0;
}

static int take(struct scrub_state *state, const struct pinion_checkpoint_record *record)
{
	struct begin_record begin;
	struct end_record end;

	state->record_count++;
	if (record->type == RECORD_FILE) {
		return take_file(state, record);
	}
	if (record->type == RECORD_GONE) {
		return take_gone(state, record);
	}
	if (record->type == RECORD_BEGIN && record->length_bytes == sizeof(begin)) {
		memcpy(&begin, record->bytes, sizeof(begin));
		state->run = (struct scrub_run){.began_ns = begin.began_ns,
			.file_count = begin.file_count,
			.due_count = begin.due_count};
		state->run_order = record->offset_bytes;
		return 0;
	}
	if (record->type == RECORD_END && record->length_bytes == sizeof(end)) {
		memcpy(&end, record->bytes, sizeof(end));
		state->run.ended_ns = end.ended_ns;
		return 0;
	}
	return -EPROTONOSUPPORT;
}

static int load(struct scrub_state *state, const char *path)
{
	struct pinion_checkpoint_record record;
	int rc;

	while ((rc = pinion_checkpoint_next(state->log, &record)) == 1) {
		rc = take(state, &record);
		if (rc == -EPROTONOSUPPORT) {
			report_line("%s: the record at offset %llu is none that this version "
				    "knows: use the version that has written it",
				path, (unsigned long long)record.offset_bytes);
		}
		if (rc < 0) {
			break;
		}
	}
	if (rc < 0 && rc != -EPROTONOSUPPORT) {
		report_path(path, report_reason(rc));
	}
	return rc;
}

/* ---- opening ---- */

static int open_log(const struct scrub_state_config *config, const char *path, uint32_t flags,
	struct pinion_checkpoint **out_log)
{
	const struct pinion_checkpoint_fact facts[FACTS] = {
		{"command", "sum --scrub"},
		{"format", format_version},
		{"algorithm", config->algorithm},
		{"root", config->roots},
	};
	struct pinion_checkpoint_config own;

	pinion_checkpoint_config_init(&own);
	own.flags = flags;
	own.facts = config->is_read ? NULL : facts;
	own.fact_count = config->is_read ? 0 : FACTS;
	own.log = report_log;
	return pinion_checkpoint_open(path, &own, out_log);
}

static int open_and_load(struct scrub_state *state, const struct scrub_state_config *config)
{
	uint32_t flags = config->is_read ? PINION_CHECKPOINT_READ
					 : PINION_CHECKPOINT_RESUME |
			(config->salvages ? (uint32_t)PINION_CHECKPOINT_SALVAGE : 0u);
	const char *command;
	int rc = open_log(config, config->path, flags, &state->log);

	if (rc < 0) {
		state->log = NULL;
		if (rc == -ENOMEM) {
			report_path(config->path, report_reason(rc));
		}
		return rc;
	}
	command = pinion_checkpoint_fact_value(state->log, "command");
	if (command == NULL || strcmp(command, "sum --scrub") != 0) {
		report_path(config->path, "it is no state of --scrub, but another command's log");
		return -EBADMSG;
	}
	return load(state, config->path);
}

static void free_table(struct scrub_state *state)
{
	while (state->texts != NULL) {
		struct scrub_texts *next = state->texts->next;

		free(state->texts);
		state->texts = next;
	}
	free(state->files);
	free(state->index);
	*state = (struct scrub_state){.log = NULL};
}

/* Whether the record is one that counts. */
static bool is_live(const struct scrub_state *state, const struct pinion_checkpoint_record *record)
{
	const struct scrub_file *file;
	struct file_record head;

	if (record->type != RECORD_FILE) {
		return record->type != RECORD_GONE && record->offset_bytes >= state->run_order;
	}
	memcpy(&head, record->bytes, sizeof(head));
	file = find(state, (const char *)record->bytes + sizeof(head), (size_t)head.path_bytes);
	return file != NULL && file->order == record->offset_bytes &&
		(file->flags & SCRUB_IS_GONE) == 0;
}

/* In their order, which says what was checked first. */
static int copy_live(struct scrub_state *state, struct pinion_checkpoint *to)
{
	struct pinion_checkpoint_record record;
	int rc;

	pinion_checkpoint_rewind(state->log);
	while ((rc = pinion_checkpoint_next(state->log, &record)) == 1) {
		struct iovec part = {(void *)(uintptr_t)record.bytes, record.length_bytes};

		rc = is_live(state, &record)
			? pinion_checkpoint_append(to, record.type, &part, 1, 0)
			: 0;
		if (rc < 0) {
			return rc;
		}
	}
	return rc;
}

/* False: a file of that name is there which no run of --scrub has made. */
static bool remove_draft(const struct scrub_state_config *config, const char *path)
{
	struct scrub_state_config read = *config;
	struct pinion_checkpoint *log = NULL;
	const char *command;
	struct stat status;
	bool is_ours;

	if (lstat(path, &status) != 0 || (S_ISREG(status.st_mode) && status.st_size == 0)) {
		return unlink(path) == 0 || errno == ENOENT;
	}
	read.is_read = true;
	if (!S_ISREG(status.st_mode) || open_log(&read, path, PINION_CHECKPOINT_READ, &log) < 0) {
		return false;
	}
	command = pinion_checkpoint_fact_value(log, "command");
	is_ours = command != NULL && strcmp(command, "sum --scrub") == 0;
	(void)pinion_checkpoint_close(log, 0);
	return is_ours && unlink(path) == 0;
}

/*
 * Writes the log anew. Both it and the new one are locked until that has its
 * name, and the name becomes durable when it is opened again.
 */
static int rewrite(struct scrub_state *state, const struct scrub_state_config *config)
{
	struct output_text draft = {.bytes = NULL};
	char *path = realpath(config->path, NULL); /* the log, where STATE is a link */
	struct pinion_checkpoint *log = NULL;
	struct scrub_state fresh = {.log = NULL};
	int rc;

	output_text_format(&draft, "%s.new", path == NULL ? "" : path);
	output_text_append(&draft, "", 1);
	/* Of a killed run. If it stays, the log is as good, only longer. */
	if (path == NULL || draft.failed || !remove_draft(config, draft.bytes)) {
		output_text_free(&draft);
		free(path);
		return 0;
	}
	rc = open_log(config, draft.bytes, 0, &log);
	rc = rc < 0 ? rc : copy_live(state, log);
	if (log != NULL) {
		int error = pinion_checkpoint_close(log, 0);

		rc = rc < 0 ? rc : error;
	}
	if (rc < 0 || rename(draft.bytes, path) != 0) {
		(void)unlink(draft.bytes);
		output_text_free(&draft);
		free(path);
		return 0;
	}
	output_text_free(&draft);
	free(path);
	rc = open_and_load(&fresh, config);
	(void)pinion_checkpoint_close(state->log, 0);
	free_table(state);
	*state = fresh;
	return rc;
}

bool scrub_state_open(struct scrub_state *state, const struct scrub_state_config *config)
{
	int rc;

	*state = (struct scrub_state){.log = NULL};
	rc = open_and_load(state, config);
	if (rc == 0 && !config->is_read &&
		state->record_count >
			2 * (uint64_t)(state->count - state->gone_count) + SPARE_RECORDS) {
		rc = rewrite(state, config);
	}
	return rc == 0;
}

bool scrub_state_close(struct scrub_state *state)
{
	int rc = pinion_checkpoint_close(state->log, 0);

	free_table(state);
	return rc == 0;
}

/* ---- writing ---- */

int scrub_state_put(struct scrub_state *state, const struct scrub_file *file,
	const struct pinion_gap *gaps, size_t gap_count)
{
	struct file_record head = {
		.checked_ns = file->checked_ns,
		.size_bytes = file->size_bytes,
		.modified_ns = file->modified_ns,
		.changed_ns = file->changed_ns,
		.error = file->error,
		.flags = file->flags & (SCRUB_HAS_DIGEST | SCRUB_IS_ROTTEN | SCRUB_IS_FRESH),
		.path_bytes = strlen(file->path),
		.gap_count = gap_count,
	};
	struct iovec parts[] = {
		{&head, sizeof(head)},
		{(void *)(uintptr_t)file->path, (size_t)head.path_bytes},
		{(void *)(uintptr_t)gaps, gap_count * sizeof(*gaps)},
	};

	memcpy(head.digest, file->digest, sizeof(head.digest));
	return pinion_checkpoint_append(state->log, RECORD_FILE, parts, 3, file->size_bytes);
}

int scrub_state_put_gone(struct scrub_state *state, struct scrub_file *file)
{
	struct iovec part = {(void *)(uintptr_t)file->path, strlen(file->path)};

	file->flags |= SCRUB_IS_GONE;
	state->gone_count++;
	return pinion_checkpoint_append(state->log, RECORD_GONE, &part, 1, 0);
}

int scrub_state_put_begin(struct scrub_state *state, const struct scrub_run *run)
{
	struct begin_record begin = {run->began_ns, run->file_count, run->due_count};
	struct iovec part = {&begin, sizeof(begin)};

	return pinion_checkpoint_append(state->log, RECORD_BEGIN, &part, 1, 0);
}

int scrub_state_put_end(struct scrub_state *state, int64_t ended_ns)
{
	struct end_record end = {ended_ns};
	struct iovec part = {&end, sizeof(end)};

	return pinion_checkpoint_append(state->log, RECORD_END, &part, 1, 0);
}

struct pinion_gap *scrub_state_gaps(
	const struct scrub_state *state, const struct scrub_file *file, size_t *out_count)
{
	struct file_record head;
	struct pinion_gap *gaps = NULL;
	size_t bytes;

	*out_count = 0;
	if (file->order == 0 ||
		pinion_checkpoint_read(state->log, file->order, &head, sizeof(head)) < 0 ||
		head.gap_count == 0 ||
		head.gap_count > PINION_CHECKPOINT_RECORD_MAX / sizeof(*gaps)) {
		return NULL;
	}
	bytes = (size_t)head.gap_count * sizeof(*gaps);
	gaps = malloc(bytes);
	if (gaps == NULL ||
		pinion_checkpoint_read(state->log, file->order + sizeof(head) + head.path_bytes,
			gaps, bytes) < 0) {
		free(gaps);
		return NULL;
	}
	*out_count = (size_t)head.gap_count;
	return gaps;
}
