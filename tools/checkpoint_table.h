/* SPDX-License-Identifier: MIT */
/*
 * The records of earlier runs by path: a command adds those of its logs, in
 * their order, and finds for each file where the last record of its path is.
 * The table holds hashes and places, and no paths: the caller reads the record
 * and compares. It is filled by one thread, and then any thread may visit it.
 */
#ifndef PINION_TOOLS_CHECKPOINT_TABLE_H
#define PINION_TOOLS_CHECKPOINT_TABLE_H

#include <pinion/checkpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct checkpoint_entry {
	uint64_t hash;	 /* of the path */
	uint64_t place;	 /* of its record: checkpoint_entry_log(), _offset() */
	uint64_t length; /* 0: the entry is free; its top bit: the run has seen it */
};

/* Zero-initialise; free the entries. */
struct checkpoint_table {
	struct checkpoint_entry *entries;
	size_t capacity; /* a power of two */
	size_t count;
};

/* Of any record: one of no file is passed over. False: no memory. */
bool checkpoint_table_add(struct checkpoint_table *table, uint32_t log,
	const struct pinion_checkpoint_record *record);

/*
 * The length of the path's record, 0: earlier runs have none. From then on the
 * run has seen it. Any thread.
 */
uint64_t checkpoint_table_visit(struct checkpoint_table *table, const char *path, size_t path_bytes,
	const struct checkpoint_entry **out_entry);

/* The log that the record is in, as it was added; and where in it. */
uint32_t checkpoint_entry_log(const struct checkpoint_entry *entry);
uint64_t checkpoint_entry_offset(const struct checkpoint_entry *entry);

bool checkpoint_entry_is_visited(const struct checkpoint_entry *entry);

#endif
