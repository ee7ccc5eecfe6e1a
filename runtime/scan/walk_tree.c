/* SPDX-License-Identifier: MIT */
/*
 * The directories of a walk that wait to be listed, and those above them.
 *
 * Called by the threads that walk, one at a time unless said otherwise; see
 * walk_tree.h for the nodes and their users.
 */
#include "runtime/scan/walk_tree.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"

#include <errno.h>
#include <string.h>

static size_t directory_bytes(size_t name_bytes)
{
	return sizeof(struct pin_directory) + name_bytes;
}

/* A root given as "/" or "dir/" brings its slash along. */
static size_t slash_bytes(const struct pin_directory *parent)
{
	return parent->depth == 0 && parent->name_bytes > 0 &&
			parent->name[parent->name_bytes - 1] == '/'
		? 0
		: 1;
}

struct pin_directory *pin_directory_create(const struct pin_walk *walk,
	struct pin_directory *parent, const char *name, size_t name_bytes)
{
	struct pin_directory *directory =
		pin_heap_zeroed(walk->host, PIN_HEAP_ALIGN, directory_bytes(name_bytes), 1);

	PIN_DCHECK(parent == NULL || (name_bytes > 0 && memchr(name, '/', name_bytes) == NULL));
	if (directory == NULL) {
		return NULL;
	}
	pin_store_relaxed_u32(&directory->users, 1);
	directory->parent = parent;
	directory->path_bytes = name_bytes;
	directory->name_bytes = name_bytes;
	memcpy(directory->name, name, name_bytes);
	if (parent != NULL) {
		uint32_t before = pin_fetch_add_relaxed_u32(&parent->users, 1);

		PIN_CHECK(before > 0); /* it has a name that waits */
		directory->depth = parent->depth + 1;
		directory->path_bytes += parent->path_bytes + slash_bytes(parent);
		directory->ignore = parent->ignore;
	}
	return directory;
}

void pin_directory_release(const struct pin_walk *walk, struct pin_directory *directory)
{
	while (directory != NULL && pin_fetch_sub_acq_rel_u32(&directory->users, 1) == 1) {
		struct pin_directory *parent = directory->parent;

		PIN_CHECK(directory->first == NULL);
		if (directory->owns_ignore) {
			pin_ignore_level_free(walk->host, directory->ignore);
		}
		pin_heap_release(walk->host, directory, PIN_HEAP_ALIGN,
			directory_bytes(directory->name_bytes), 1);
		directory = parent;
	}
}

/* ---- names that wait ---- */

struct pin_names *pin_names_create(
	const struct pin_walk *walk, const void *text, size_t bytes, size_t count)
{
	struct pin_names *names =
		pin_heap_allocate(walk->host, PIN_HEAP_ALIGN, sizeof(*names) + bytes, 1);

	PIN_CHECK(count > 0 && bytes >= 2 * count);
	if (names != NULL) {
		*names = (struct pin_names){.count = count, .bytes = bytes};
		memcpy(names->text, text, bytes);
		PIN_CHECK(names->text[bytes - 1] == '\0');
	}
	return names;
}

static void names_free(const struct pin_walk *walk, struct pin_names *names)
{
	pin_heap_release(walk->host, names, PIN_HEAP_ALIGN, sizeof(*names) + names->bytes, 1);
}

/* A directory is on the stack while names wait with it. */
void pin_walk_add_names(
	struct pin_walk *walk, struct pin_directory *directory, struct pin_names *names)
{
	PIN_CHECK(names->next == NULL && names->position == 0);
	if (directory->first != NULL) {
		directory->last->next = names;
	} else {
		pin_fetch_add_relaxed_u32(&directory->users, 1);
		directory->next = walk->top;
		walk->top = directory;
		directory->first = names;
	}
	directory->last = names;
	walk->waiting_count += names->count;
	walk->waiting_bytes += names->bytes;
}

/* The directory on top has given its last name. */
static void pop(struct pin_walk *walk)
{
	struct pin_directory *directory = walk->top;

	PIN_CHECK(directory->first == NULL);
	walk->top = directory->next;
	directory->next = NULL;
	pin_directory_release(walk, directory);
}

/* Past the first name that waits in the directory on top. */
static void pass_name(struct pin_walk *walk, size_t name_bytes)
{
	struct pin_directory *directory = walk->top;
	struct pin_names *names = directory->first;

	PIN_CHECK(names->count > 0);
	names->position += name_bytes + 1;
	names->count--;
	walk->waiting_count--;
	walk->waiting_bytes -= name_bytes + 1;
	PIN_CHECK((names->count == 0) == (names->position == names->bytes));
	if (names->count == 0) {
		directory->first = names->next;
		names_free(walk, names);
	}
	if (directory->first == NULL) {
		pop(walk);
	}
}

int pin_walk_take_directory(struct pin_walk *walk, struct pin_directory **out_directory)
{
	struct pin_directory *directory;
	const char *name;
	size_t name_bytes;

	*out_directory = NULL;
	if (walk->top == NULL) {
		return 0;
	}
	name = walk->top->first->text + walk->top->first->position;
	name_bytes = strlen(name);
	directory = pin_directory_create(walk, walk->top, name, name_bytes);
	if (directory == NULL) {
		return -ENOMEM;
	}
	pass_name(walk, name_bytes);
	*out_directory = directory;
	return 0;
}

void pin_walk_drop_names(struct pin_walk *walk)
{
	while (walk->top != NULL) {
		struct pin_directory *directory = walk->top;

		while (directory->first != NULL) {
			struct pin_names *names = directory->first;

			directory->first = names->next;
			names_free(walk, names);
		}
		pop(walk);
	}
	walk->waiting_count = 0;
	walk->waiting_bytes = 0;
}
