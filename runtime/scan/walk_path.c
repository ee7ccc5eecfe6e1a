/* SPDX-License-Identifier: MIT */
/*
 * Paths of a walk: of any length, with room for a name at the end.
 *
 * Each belongs to one walker, or to the caller.
 */
#include "runtime/scan/walk_path.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"

#include <errno.h>
#include <string.h>

static PIN_APART int path_grow(
	const struct pin_walk *walk, struct pin_walk_path *path, size_t bytes)
{
	size_t capacity = path->capacity == 0 ? 512 : path->capacity;
	char *grown;

	PIN_DCHECK(bytes > path->capacity && bytes <= SIZE_MAX / 2);
	while (capacity < bytes) {
		capacity *= 2;
	}
	grown = pin_heap_resize(walk->host, path->bytes, path->capacity, path->length, capacity);
	if (grown == NULL) {
		return -ENOMEM;
	}
	path->bytes = grown;
	path->capacity = capacity;
	return 0;
}

int pin_walk_path_reserve(const struct pin_walk *walk, struct pin_walk_path *path, size_t length)
{
	return length < path->capacity ? 0 : path_grow(walk, path, length + 1);
}

int pin_walk_path_set(
	const struct pin_walk *walk, struct pin_walk_path *path, const char *text, size_t bytes)
{
	int rc = pin_walk_path_reserve(walk, path, bytes);

	if (rc == 0) {
		memcpy(path->bytes, text, bytes);
		path->bytes[bytes] = '\0';
		path->length = bytes;
	}
	return rc;
}

int pin_walk_path_add(const struct pin_walk *walk, struct pin_walk_path *path, const char *name,
	size_t name_bytes)
{
	size_t end = path->length;
	int rc = pin_walk_path_reserve(walk, path, end + 1 + name_bytes);

	if (rc != 0) {
		return rc;
	}
	/* A root given as "/" or "dir/" brings its slash along. */
	if (end > 0 && path->bytes[end - 1] != '/') {
		path->bytes[end++] = '/';
	}
	memcpy(path->bytes + end, name, name_bytes);
	path->length = end + name_bytes;
	PIN_DCHECK(path->length < path->capacity);
	path->bytes[path->length] = '\0';
	return 0;
}

/* Back to the directory being listed. */
void pin_walk_path_cut(struct pin_walk_path *path, size_t bytes)
{
	PIN_CHECK(bytes <= path->length);
	path->length = bytes;
	path->bytes[bytes] = '\0';
}

void pin_walk_path_free(const struct pin_walk *walk, struct pin_walk_path *path)
{
	pin_heap_release(walk->host, path->bytes, PIN_HEAP_ALIGN, path->capacity, 1);
	*path = (struct pin_walk_path){.bytes = NULL};
}

/* From its end to its beginning, as a node knows its parent. */
int pin_walk_path_of(const struct pin_walk *walk, struct pin_walk_path *path,
	const struct pin_directory *directory)
{
	int rc = pin_walk_path_reserve(walk, path, directory->path_bytes);

	if (rc != 0) {
		return rc;
	}
	path->length = directory->path_bytes;
	path->bytes[path->length] = '\0';
	for (; directory != NULL; directory = directory->parent) {
		size_t start = directory->path_bytes - directory->name_bytes;

		memcpy(path->bytes + start, directory->name, directory->name_bytes);
		if (directory->parent != NULL && start > directory->parent->path_bytes) {
			path->bytes[start - 1] = '/';
		}
	}
	return 0;
}
