/* SPDX-License-Identifier: MIT */
/*
 * Bytes of a file that outlive its windows: those of candidates that are to be
 * confirmed, or shown, and SNIPPET_CONTEXT bytes on each side. Candidates that
 * overlap share them, so a window keeps at most its own bytes.
 */
#ifndef PINION_TOOLS_SCAN_SNIPPETS_H
#define PINION_TOOLS_SCAN_SNIPPETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As far as words that allow findings reach, evidence.h. */
enum { SNIPPET_CONTEXT = 4096 };

struct snippet {
	uint64_t start; /* in the file */
	uint8_t *bytes;
	size_t length;
	size_t capacity;
	bool has_end; /* its last byte is the file's */
};

/* By start; no two of them touch. Zero-initialise. */
struct snippets {
	struct snippet *items;
	size_t count;
	size_t capacity; /* items from `count` on may hold memory to use again */
};

/*
 * Adds bytes, which may overlap others: windows do, so those of a later window
 * may start before those of an earlier one. Returns 0 or -ENOMEM.
 */
int snippets_add(struct snippets *list, const struct snippet *bytes);

/* Adds all of `from`. */
int snippets_add_all(struct snippets *list, const struct snippets *from);

/* The snippet with the byte at `offset`, or NULL. */
const struct snippet *snippets_find(const struct snippets *list, uint64_t offset);

/* The index of the first snippet that ends at `offset` or further right. */
size_t snippets_first(const struct snippets *list, uint64_t offset);

/* Lets go of bytes before `offset`, as far as that is worth it. */
void snippets_drop(struct snippets *list, uint64_t offset);

/* Removes all, and keeps the memory. */
void snippets_clear(struct snippets *list);
void snippets_free(struct snippets *list);

#endif
