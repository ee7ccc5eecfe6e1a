/* SPDX-License-Identifier: MIT */
/*
 * Open addressing, at most half full.
 */
#include "tools/checkpoint_table.h"

#include "tools/checkpoint_records.h"

#include <stdlib.h>
#include <string.h>

enum {
	TABLE_MIN = 1024,
	/* No log is as long; RANK_LOGS_MAX fits above. */
	LOG_SHIFT = 48,
};

/* In an entry's length. */
#define VISITED (UINT64_C(1) << 63)

/* FNV-1a; the bytes of paths decide between those of one hash. */
static uint64_t hash_path(const char *path, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < length; i++) {
		hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
	}
	return hash;
}

static struct checkpoint_entry *find_entry(const struct checkpoint_table *table, uint64_t hash)
{
	size_t at = (size_t)hash & (table->capacity - 1);

	while (__atomic_load_n(&table->entries[at].length, __ATOMIC_RELAXED) != 0 &&
		table->entries[at].hash != hash) {
		at = (at + 1) & (table->capacity - 1);
	}
	return &table->entries[at];
}

static bool grow(struct checkpoint_table *table)
{
	struct checkpoint_table larger = {
		.capacity = table->capacity == 0 ? TABLE_MIN : 2 * table->capacity};

	larger.entries = calloc(larger.capacity, sizeof(*larger.entries));
	if (larger.entries == NULL) {
		return false;
	}
	for (size_t i = 0; i < table->capacity; i++) {
		if (table->entries[i].length != 0) {
			*find_entry(&larger, table->entries[i].hash) = table->entries[i];
		}
	}
	free(table->entries);
	table->entries = larger.entries;
	table->capacity = larger.capacity;
	return true;
}

/* Of a file, the path and its length; false: of none, or damaged. */
static bool path_of(
	const struct pinion_checkpoint_record *record, const char **out_path, size_t *out_length)
{
	struct checkpoint_file head;
	uint64_t left;

	*out_path = (const char *)record->bytes;
	*out_length = record->length_bytes;
	if (record->type == CHECKPOINT_RECORD_GONE) {
		return true;
	}
	if ((record->type != CHECKPOINT_RECORD_FILE && record->type != CHECKPOINT_RECORD_PART) ||
		record->length_bytes < sizeof(head)) {
		return false;
	}
	memcpy(&head, record->bytes, sizeof(head));
	*out_path += sizeof(head);
	*out_length = (size_t)head.path_bytes;
	left = record->length_bytes - sizeof(head);
	if (head.path_bytes > left || head.text_bytes > left - head.path_bytes) {
		return false;
	}
	left -= head.path_bytes + head.text_bytes;
	return record->type == CHECKPOINT_RECORD_FILE ? left == 0 : left >= sizeof(uint64_t);
}

bool checkpoint_table_add(
	struct checkpoint_table *table, uint32_t log, const struct pinion_checkpoint_record *record)
{
	const char *path;
	struct checkpoint_entry *entry;
	uint64_t hash;
	size_t length;

	if (!path_of(record, &path, &length)) {
		return true;
	}
	if (table->count * 2 >= table->capacity && !grow(table)) {
		return false;
	}
	hash = hash_path(path, length);
	entry = find_entry(table, hash);
	table->count += entry->length == 0 ? 1 : 0;
	/* No record of a file is as short. */
	*entry = (struct checkpoint_entry){
		.hash = hash,
		.place = record->offset_bytes | (uint64_t)log << LOG_SHIFT,
		.length = record->type == CHECKPOINT_RECORD_GONE ? 1 : record->length_bytes,
	};
	return true;
}

uint64_t checkpoint_table_visit(struct checkpoint_table *table, const char *path, size_t path_bytes,
	const struct checkpoint_entry **out_entry)
{
	struct checkpoint_entry *entry;

	if (table->count == 0) {
		return 0;
	}
	entry = find_entry(table, hash_path(path, path_bytes));
	*out_entry = entry;
	if (entry->length == 0) {
		return 0;
	}
	return __atomic_fetch_or(&entry->length, VISITED, __ATOMIC_RELAXED) & ~VISITED;
}

uint32_t checkpoint_entry_log(const struct checkpoint_entry *entry)
{
	return (uint32_t)(entry->place >> LOG_SHIFT);
}

uint64_t checkpoint_entry_offset(const struct checkpoint_entry *entry)
{
	return entry->place & ((UINT64_C(1) << LOG_SHIFT) - 1);
}

bool checkpoint_entry_is_visited(const struct checkpoint_entry *entry)
{
	return (entry->length & VISITED) != 0;
}
