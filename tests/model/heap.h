/* SPDX-License-Identifier: MIT */
/*
 * A double of the heap, emptied before each execution. Freed memory stays known
 * as such: an atomic operation on it fails the case, and a plain read finds
 * poison.
 */
#ifndef MODEL_HEAP_H
#define MODEL_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keeps the state of this file out of snapshots; once, before all else. */
void heap_exclude(void);
/* Adds the heap to the snapshot that was begun. */
void heap_snapshot(void);

void heap_begin(void);

void *model_aligned_alloc(size_t align, size_t bytes);
void model_free(void *memory);
bool model_is_freed(const void *address);

#endif
