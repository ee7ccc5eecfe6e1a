/* SPDX-License-Identifier: MIT */
/*
 * What a walk visited, as lines to be compared with what it should have.
 */
#ifndef PIN_TESTS_SUPPORT_VISITS_H
#define PIN_TESTS_SUPPORT_VISITS_H

#include "tests/support/expect.h"

#include <errno.h>
#include <pinion/walk.h>
#include <stdint.h>

/* Lines such as "FILE tree/a 0 0". */
struct visits {
	char **items;
	size_t count;
	size_t capacity;
};

static inline const char *visits_kind(enum pinion_walk_kind kind)
{
	switch (kind) {
	case PINION_WALK_FILE:
		return "FILE";
	case PINION_WALK_SYMLINK:
		return "SYMLINK";
	case PINION_WALK_SPECIAL:
		return "SPECIAL";
	case PINION_WALK_ERROR:
		return "ERROR";
	case PINION_WALK_IGNORED:
		return "IGNORED";
	default:
		return "?";
	}
}

static inline void visits_add(struct visits *visits, enum pinion_walk_kind kind, const char *path,
	int error, uint32_t mode)
{
	char *line = NULL;

	if (visits->count == visits->capacity) {
		visits->capacity = visits->capacity == 0 ? 64 : 2 * visits->capacity;
		visits->items = realloc(visits->items, visits->capacity * sizeof(char *));
		expect_ready("realloc", visits->items != NULL);
	}
	expect_ready("asprintf",
		asprintf(&line, "%s %s %d %o", visits_kind(kind), path, error, mode) >= 0);
	visits->items[visits->count++] = line;
}

static inline int visits_compare(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static inline void visits_fini(struct visits *visits)
{
	for (size_t i = 0; i < visits->count; i++) {
		free(visits->items[i]);
	}
	free(visits->items);
	*visits = (struct visits){.count = 0};
}

static inline int visits_note(void *arg, const struct pinion_walk_entry *entry)
{
	expect_number("path_bytes", (long long)strlen(entry->path), (long long)entry->path_bytes);
	visits_add(arg, entry->kind, entry->path, entry->error, entry->mode);
	return 0;
}

/* Walks `root` and compares; `expected` is emptied. NULL: no options. */
static inline void visits_check_with(const char *what, const char *root,
	const struct pinion_walk_config *config, struct visits *expected)
{
	struct visits got = {.count = 0};

	errno = 4711;
	expect_number(what, 0,
		config == NULL ? pinion_walk(root, visits_note, &got)
			       : pinion_walk_with(root, config, visits_note, &got));
	expect_number("errno after a walk", 4711, errno);
	expect_number(what, (long long)expected->count, (long long)got.count);
	if (expected->count > 1) {
		qsort(expected->items, expected->count, sizeof(char *), visits_compare);
	}
	if (got.count > 1) {
		qsort(got.items, got.count, sizeof(char *), visits_compare);
	}
	for (size_t i = 0; i < expected->count && i < got.count; i++) {
		if (!expect_text(what, expected->items[i], got.items[i])) {
			break;
		}
	}
	visits_fini(expected);
	visits_fini(&got);
}

static inline void visits_check(const char *what, const char *root, struct visits *expected)
{
	visits_check_with(what, root, NULL, expected);
}

#endif
