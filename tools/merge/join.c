/* SPDX-License-Identifier: MIT */
/*
 * Paths of all logs are sorted in memory; what each came to is read from its
 * log when it is written.
 */
#include "tools/merge/join.h"

#include "tools/growing.h"
#include "tools/output.h"
#include "tools/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PATHS_BLOCK_BYTES = 1 << 20 };

struct part {
	const char *path; /* not ended by a zero */
	uint32_t path_bytes;
	uint32_t shard;
	uint64_t offset; /* of the record's bytes in the log; later ones are larger */
	uint64_t length; /* 0: the path is gone */
};

/* Memory of paths, which stays where it is. */
struct block {
	struct block *next;
	size_t used;
	char bytes[];
};

struct parts {
	struct part *items;
	size_t count;
	size_t capacity;
	struct block *blocks;
};

static const char *keep_path(struct parts *parts, const uint8_t *path, size_t bytes)
{
	size_t capacity = bytes > PATHS_BLOCK_BYTES ? bytes : PATHS_BLOCK_BYTES;
	struct block *block = parts->blocks;

	if (block == NULL || bytes > PATHS_BLOCK_BYTES || PATHS_BLOCK_BYTES - block->used < bytes) {
		block = malloc(sizeof(*block) + capacity);
		if (block == NULL) {
			return NULL;
		}
		*block = (struct block){.next = parts->blocks};
		parts->blocks = block;
	}
	memcpy(block->bytes + block->used, path, bytes);
	block->used += bytes;
	return block->bytes + block->used - bytes;
}

static struct part *grow(struct parts *parts)
{
	struct part *items =
		growing_make_room(parts->items, parts->count, &parts->capacity, sizeof(*items));

	if (items == NULL) {
		return NULL;
	}
	parts->items = items;
	return &parts->items[parts->count++];
}

/* Other types of records are none of its business. */
static int add(struct parts *parts, uint32_t shard, const struct pinion_checkpoint_record *record)
{
	struct checkpoint_file head = {.path_bytes = record->length_bytes};
	const uint8_t *path = record->bytes;
	struct part *part;

	if (record->type == CHECKPOINT_RECORD_FILE) {
		if (record->length_bytes < sizeof(head)) {
			return -EBADMSG;
		}
		memcpy(&head, record->bytes, sizeof(head));
		path += sizeof(head);
		if (head.path_bytes > record->length_bytes - sizeof(head) ||
			head.text_bytes != record->length_bytes - sizeof(head) - head.path_bytes) {
			return -EBADMSG;
		}
	} else if (record->type != CHECKPOINT_RECORD_GONE) {
		return 0;
	}
	part = grow(parts);
	if (part == NULL) {
		return -ENOMEM;
	}
	*part = (struct part){
		.path = keep_path(parts, path, (size_t)head.path_bytes),
		.path_bytes = (uint32_t)head.path_bytes,
		.shard = shard,
		.offset = record->offset_bytes,
		.length = record->type == CHECKPOINT_RECORD_FILE ? record->length_bytes : 0,
	};
	return part->path == NULL ? -ENOMEM : 0;
}

/* A log that is open has given its records once already. */
static int read_parts(const struct shards *shards, struct parts *parts)
{
	for (uint32_t i = 0; i < shards->count; i++) {
		struct pinion_checkpoint_record record;
		struct pinion_checkpoint *log = shards->items[i].log;
		int rc = 0;

		pinion_checkpoint_rewind(log);
		while (rc == 0 && (rc = pinion_checkpoint_next(log, &record)) == 1) {
			rc = add(parts, i, &record);
		}
		if (rc < 0) {
			report_path(shards->items[i].path, report_reason(rc));
			return rc;
		}
	}
	return 0;
}

static int compare_paths(const struct part *left, const struct part *right)
{
	size_t bytes = left->path_bytes < right->path_bytes ? left->path_bytes : right->path_bytes;
	int order = memcmp(left->path, right->path, bytes);

	if (order != 0) {
		return order;
	}
	return (left->path_bytes > right->path_bytes) - (left->path_bytes < right->path_bytes);
}

/* By path, shard, and age. */
static int compare(const void *left_item, const void *right_item)
{
	const struct part *left = left_item;
	const struct part *right = right_item;
	int order = compare_paths(left, right);

	if (order != 0) {
		return order;
	}
	order = (left->shard > right->shard) - (left->shard < right->shard);
	return order != 0 ? order : (left->offset > right->offset) - (left->offset < right->offset);
}

/* Leaves of each path the last record of each shard, if it is not gone. */
static void thin_out(struct parts *parts)
{
	size_t kept = 0;

	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->items[i];
		bool is_last = i + 1 == parts->count || part[1].shard != part->shard ||
			compare_paths(part, part + 1) != 0;

		if (is_last && part->length > 0) {
			parts->items[kept++] = *part;
		}
	}
	parts->count = kept;
}

/* ---- output ---- */

/* A record, as it is written; zero-initialise. */
struct text {
	uint8_t *bytes;
	size_t capacity;
	struct checkpoint_file head;
	const char *text;
};

static bool read_text(const struct shards *shards, const struct part *part, struct text *out)
{
	const struct shard *shard = &shards->items[part->shard];
	int rc = 0;

	if (out->capacity < part->length) {
		uint8_t *bytes = realloc(out->bytes, (size_t)part->length);

		rc = bytes == NULL ? -ENOMEM : 0;
		out->bytes = bytes == NULL ? out->bytes : bytes;
		out->capacity = bytes == NULL ? out->capacity : (size_t)part->length;
	}
	rc = rc < 0 ? rc
		    : pinion_checkpoint_read(
			      shard->log, part->offset, out->bytes, (size_t)part->length);
	if (rc < 0) {
		report_path(shard->path, report_reason(rc));
		return false;
	}
	memcpy(&out->head, out->bytes, sizeof(out->head));
	out->text = (const char *)out->bytes + sizeof(out->head) + part->path_bytes;
	return true;
}

static bool is_equal(const struct text *left, const struct text *right)
{
	return left->head.error == right->head.error &&
		left->head.text_bytes == right->head.text_bytes &&
		memcmp(left->text, right->text, (size_t)left->head.text_bytes) == 0;
}

/* Of a path that several shards have, as it was named in several ways. */
static bool check_equal(const struct shards *shards, const struct part *part, size_t count,
	const struct text *first)
{
	struct text other = {.bytes = NULL};
	bool is_good = true;

	for (size_t i = 1; i < count && is_good; i++) {
		is_good = read_text(shards, &part[i], &other);
		if (is_good && !is_equal(first, &other)) {
			struct output_text path = {0};

			output_text_append(&path, part->path, part->path_bytes);
			output_text_append(&path, "", 1);
			report_line("%s: %s and %s say different things about it: run them again",
				path.failed ? "a path" : path.bytes,
				shards->items[part->shard].path, shards->items[part[i].shard].path);
			output_text_free(&path);
			is_good = false;
		}
	}
	free(other.bytes);
	return is_good;
}

static void report_failed(const struct part *part, int error)
{
	struct output_text path = {0};

	output_text_append(&path, part->path, part->path_bytes);
	output_text_append(&path, "", 1);
	report_path(path.failed ? "a path" : path.bytes, report_reason(error));
	output_text_free(&path);
}

static bool write_parts(const struct shards *shards, const struct parts *parts, struct join *join)
{
	struct text text = {.bytes = NULL};
	bool is_good = true;

	for (size_t i = 0, count; i < parts->count && is_good; i += count) {
		const struct part *part = &parts->items[i];

		for (count = 1; i + count < parts->count; count++) {
			if (compare_paths(part, part + count) != 0) {
				break;
			}
		}
		is_good = read_text(shards, part, &text) && check_equal(shards, part, count, &text);
		if (!is_good) {
			break;
		}
		join->file_count++;
		join->finding_count += text.head.counts[0];
		if (text.head.error != 0) {
			join->failed_count++;
			report_failed(part, text.head.error);
		}
		is_good = output_write(text.text, (size_t)text.head.text_bytes);
	}
	free(text.bytes);
	return is_good;
}

/* What the output begins with: of the last end of the first shard. */
static bool write_head(const struct shards *shards)
{
	struct pinion_checkpoint_record record;
	struct pinion_checkpoint *log = shards->items[0].log;
	uint64_t head_bytes = shards->items[0].end.head_bytes;

	pinion_checkpoint_rewind(log);
	while (head_bytes > 0 && pinion_checkpoint_next(log, &record) == 1) {
		if (record.type == CHECKPOINT_RECORD_END &&
			record.length_bytes == sizeof(struct checkpoint_end) + head_bytes) {
			return output_write(
				(const char *)record.bytes + sizeof(struct checkpoint_end),
				(size_t)head_bytes);
		}
	}
	return head_bytes == 0;
}

static void free_parts(struct parts *parts)
{
	while (parts->blocks != NULL) {
		struct block *block = parts->blocks;

		parts->blocks = block->next;
		free(block);
	}
	free(parts->items);
}

bool join_write(const struct shards *shards, struct join *out_join)
{
	struct parts parts = {.count = 0};
	bool is_good = read_parts(shards, &parts) == 0;

	*out_join = (struct join){.file_count = 0};
	if (is_good && parts.count > 0) {
		qsort(parts.items, parts.count, sizeof(*parts.items), compare);
		thin_out(&parts);
	}
	is_good = is_good && write_head(shards) && write_parts(shards, &parts, out_join);
	free_parts(&parts);
	return is_good;
}
