/* SPDX-License-Identifier: MIT */
/*
 * A walk in the order of paths; see walk_sorted.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/scan/walk_sorted.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/scan/walk_list.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	NAMES_BYTES_STANDARD = 24 << 20,
	/* The first room. */
	ROOM_BYTES_FIRST = 64 << 10,
};

/* A name with its type; the next record follows. */
struct record {
	uint16_t name_bytes;
	uint16_t error; /* errno */
	uint8_t type;	/* bits of S_IFMT, shifted */
	uint8_t is_directory;
	char name[]; /* and a NUL */
};

enum { TYPE_SHIFT = 12 };

/* Records that are gathered, and their places, to be sorted. */
struct room {
	char *bytes;
	size_t used_bytes;
	size_t capacity;
	uint32_t *places;
	size_t count;
	size_t place_capacity;
	size_t bound; /* place of the last name that counts */
	bool has_bound;
};

struct level {
	struct level *above;
	struct pin_directory *directory; /* of which it is a user */
	struct pin_ignore_errors errors;
	/* Records in their order; those before `position` are done. */
	char *batch;
	size_t batch_bytes;
	size_t taken; /* the place of the last that was taken */
	size_t position;
	bool has_more;	     /* names after the batch, in the directory */
	struct record *last; /* the name before those; NULL: it is the first batch */
};

struct sorting {
	struct pin_walk *walk;
	struct pin_walker walker;
	struct room room;
	size_t names_bytes_max;
	size_t batches_bytes; /* of all levels */
	struct level *bottom; /* that the walk is in */
};

/* ---- records ---- */

static size_t record_bytes(size_t name_bytes)
{
	return pin_round_up(sizeof(struct record) + name_bytes + 1, alignof(struct record));
}

static size_t bytes_of(const struct record *record)
{
	return record_bytes(record->name_bytes);
}

/* The byte at the end of the shorter name. */
static int end_byte(const struct record *record, size_t at)
{
	if (at < record->name_bytes) {
		return (unsigned char)record->name[at];
	}
	return record->is_directory != 0 ? '/' : 0;
}

static int compare(const struct record *left, const struct record *right)
{
	size_t shorter =
		left->name_bytes < right->name_bytes ? left->name_bytes : right->name_bytes;
	int order = memcmp(left->name, right->name, shorter);

	return order != 0 ? order : end_byte(left, shorter) - end_byte(right, shorter);
}

static const struct record *record_at(const char *bytes, size_t place)
{
	return (const void *)(bytes + place);
}

static int compare_places(const void *left, const void *right, void *bytes)
{
	return compare(record_at(bytes, *(const uint32_t *)left),
		record_at(bytes, *(const uint32_t *)right));
}

/* ---- the room ---- */

static bool reserve_bytes(struct sorting *sorting, size_t bytes)
{
	struct room *room = &sorting->room;
	size_t capacity = room->capacity == 0 ? ROOM_BYTES_FIRST : 2 * room->capacity;
	char *grown;

	if (bytes <= room->capacity - room->used_bytes) {
		return true;
	}
	grown = pin_heap_resize(
		sorting->walk->host, room->bytes, room->capacity, room->used_bytes, capacity);
	if (grown == NULL) {
		return false;
	}
	room->bytes = grown;
	room->capacity = capacity;
	return reserve_bytes(sorting, bytes);
}

static bool reserve_place(struct sorting *sorting)
{
	struct room *room = &sorting->room;
	size_t capacity = room->place_capacity == 0 ? 1024 : 2 * room->place_capacity;
	uint32_t *grown;

	if (room->count < room->place_capacity) {
		return true;
	}
	grown = pin_heap_resize(sorting->walk->host, room->places,
		room->place_capacity * sizeof(*grown), room->count * sizeof(*grown),
		capacity * sizeof(*grown));
	if (grown == NULL) {
		return false;
	}
	room->places = grown;
	room->place_capacity = capacity;
	return true;
}

static void sort_places(struct room *room)
{
	qsort_r(room->places, room->count, sizeof(*room->places), compare_places, room->bytes);
}

static int compare_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left;
	uint32_t b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

/* Keeps the first half of the names. */
static void halve(struct room *room)
{
	size_t bound;

	sort_places(room);
	room->count = (room->count + 1) / 2;
	bound = room->places[room->count - 1];
	qsort(room->places, room->count, sizeof(*room->places), compare_numbers);
	room->used_bytes = 0;
	for (size_t i = 0; i < room->count; i++) {
		const struct record *record = record_at(room->bytes, room->places[i]);
		size_t bytes = bytes_of(record);

		PIN_DCHECK(room->places[i] >= room->used_bytes);
		if (room->places[i] == bound) {
			room->bound = room->used_bytes;
		}
		memmove(room->bytes + room->used_bytes, record, bytes);
		room->places[i] = (uint32_t)room->used_bytes;
		room->used_bytes += bytes;
	}
	room->has_bound = true;
}

/* ---- a directory's next names ---- */

/* It counts if it is after those that were taken and before the bound. */
static int add_name(
	struct sorting *sorting, const struct level *level, const struct pin_walk_name *name)
{
	struct room *room = &sorting->room;
	size_t name_bytes = strlen(name->text);
	size_t bytes = record_bytes(name_bytes);
	struct record *record;

	PIN_CHECK(name_bytes <= UINT16_MAX);
	if (!reserve_bytes(sorting, bytes) || !reserve_place(sorting)) {
		return -ENOMEM;
	}
	record = (void *)(room->bytes + room->used_bytes);
	*record = (struct record){
		.name_bytes = (uint16_t)name_bytes,
		.error = (uint16_t)-name->error,
		.type = (uint8_t)(name->mode >> TYPE_SHIFT),
		.is_directory = name->is_directory ? 1 : 0,
	};
	memcpy(record->name, name->text, name_bytes + 1);
	if ((level->last != NULL && compare(record, level->last) <= 0) ||
		(room->has_bound && compare(record, record_at(room->bytes, room->bound)) >= 0)) {
		return 0;
	}
	room->places[room->count++] = (uint32_t)room->used_bytes;
	room->used_bytes += bytes;
	if (room->count > 1 &&
		room->used_bytes + room->count * sizeof(*room->places) > sorting->names_bytes_max) {
		halve(room);
	}
	return 0;
}

static void drop_batch(struct sorting *sorting, struct level *level)
{
	pin_heap_release(sorting->walk->host, level->batch, PIN_HEAP_ALIGN, level->batch_bytes, 1);
	sorting->batches_bytes -= level->batch_bytes;
	level->batch = NULL;
	level->batch_bytes = 0;
	level->position = 0;
}

static void drop_last(const struct sorting *sorting, struct level *level)
{
	if (level->last != NULL) {
		pin_heap_release(
			sorting->walk->host, level->last, PIN_HEAP_ALIGN, bytes_of(level->last), 1);
		level->last = NULL;
	}
}

/* Names after the last that was taken are read from the directory again. */
static int forget_batch(struct sorting *sorting, struct level *level)
{
	const struct record *taken = record_at(level->batch, level->taken);
	size_t bytes;

	if (level->batch == NULL) {
		return 0;
	}
	bytes = bytes_of(taken);
	drop_last(sorting, level);
	level->last = pin_heap_allocate(sorting->walk->host, PIN_HEAP_ALIGN, bytes, 1);
	if (level->last == NULL) {
		return -ENOMEM;
	}
	memcpy(level->last, taken, bytes);
	level->has_more = level->has_more || level->position < level->batch_bytes;
	drop_batch(sorting, level);
	return 0;
}

/* The levels nearest to the root are needed last. */
static int bound_batches(struct sorting *sorting)
{
	while (sorting->batches_bytes > 2 * sorting->names_bytes_max) {
		struct level *first = NULL;
		int rc;

		for (struct level *level = sorting->bottom->above; level != NULL;
			level = level->above) {
			first = level->batch != NULL ? level : first;
		}
		if (first == NULL) {
			break;
		}
		rc = forget_batch(sorting, first);
		if (rc != 0) {
			return rc;
		}
	}
	return 0;
}

/* From the room, in order. */
static int fill_batch(struct sorting *sorting, struct level *level)
{
	struct room *room = &sorting->room;

	level->has_more = room->has_bound;
	level->taken = 0;
	level->position = 0;
	if (room->count == 0) {
		return 0;
	}
	sort_places(room);
	level->batch = pin_heap_allocate(sorting->walk->host, PIN_HEAP_ALIGN, room->used_bytes, 1);
	if (level->batch == NULL) {
		return -ENOMEM;
	}
	level->batch_bytes = room->used_bytes;
	sorting->batches_bytes += level->batch_bytes;
	for (size_t i = 0, end = 0; i < room->count; i++) {
		const struct record *record = record_at(room->bytes, room->places[i]);

		memcpy(level->batch + end, record, bytes_of(record));
		end += bytes_of(record);
	}
	return bound_batches(sorting);
}

/* The walker is at the start of the directory's list. */
static int gather(struct sorting *sorting, struct level *level)
{
	struct pin_walker *walker = &sorting->walker;
	enum pin_listing_state state;
	struct pin_walk_name name;
	int rc = 0;

	sorting->room.count = 0;
	sorting->room.used_bytes = 0;
	sorting->room.has_bound = false;
	do {
		state = pin_walker_read(walker);
		while (state == PIN_LISTING_READ && rc == 0 && pin_walker_next(walker, &name)) {
			rc = add_name(sorting, level, &name);
		}
		if (pin_walk_is_cancelled(sorting->walk)) {
			rc = -ECANCELED;
		}
	} while (state == PIN_LISTING_READ && rc == 0);
	if (state == PIN_LISTING_ENDED) {
		return walker->rc;
	}
	return rc == 0 ? fill_batch(sorting, level) : rc;
}

/* ---- levels ---- */

static bool has_names(const struct level *level)
{
	return level->position < level->batch_bytes || level->has_more;
}

/* The walker has opened it; takes over its user. */
static int push_level(struct sorting *sorting, struct pin_directory *directory)
{
	struct pin_walker *walker = &sorting->walker;
	struct level *level =
		pin_heap_zeroed(sorting->walk->host, PIN_HEAP_ALIGN, 1, sizeof(*level));

	if (level == NULL) {
		return -ENOMEM;
	}
	level->directory = directory;
	level->errors = walker->listing->errors;
	level->above = sorting->bottom;
	sorting->bottom = level;
	return gather(sorting, level);
}

static void pop_level(struct sorting *sorting)
{
	struct pin_walker *walker = &sorting->walker;
	struct level *level = sorting->bottom;

	if (walker->listing != NULL && walker->listing->directory == level->directory) {
		pin_walker_leave(walker);
	}
	drop_batch(sorting, level);
	drop_last(sorting, level);
	pin_directory_release(sorting->walk, level->directory);
	sorting->bottom = level->above;
	pin_heap_release(sorting->walk->host, level, PIN_HEAP_ALIGN, 1, sizeof(*level));
}

/* Takes the directory over, and leaves it open unless it was an error. */
static int enter(struct sorting *sorting, struct pin_directory *directory)
{
	struct pin_walker *walker = &sorting->walker;

	if (walker->listing != NULL) {
		pin_walker_leave(walker);
	}
	switch (pin_walker_open(walker, directory)) {
	case PIN_LISTING_READ:
		return push_level(sorting, directory);
	case PIN_LISTING_DONE:
		return 0;
	case PIN_LISTING_FULL:
	case PIN_LISTING_WANTING:
	case PIN_LISTING_ENDED:
		break;
	}
	return walker->rc;
}

/* Whether names are looked at in the open directory. */
static bool needs_directory(const struct pin_walk *walk, const struct level *level)
{
	return level->position == level->batch_bytes || walk->follows ||
		(walk->filter != NULL && walk->filter->examines) ||
		level->directory->path_bytes >= PATH_MAX / 2; /* loops are looked for there */
}

/*
 * Makes the walker be about the level, whose list it is at the start of where
 * its batch is done. A directory that cannot be opened again is an error, and
 * its other names are left out.
 */
static int come_back(struct sorting *sorting, struct level *level)
{
	struct pin_walker *walker = &sorting->walker;
	int rc = pin_walker_return(walker, level->directory, needs_directory(sorting->walk, level));

	if (walker->listing == NULL || rc == -ENOMEM) {
		return -ENOMEM;
	}
	walker->listing->errors = level->errors;
	if (rc != 0) {
		drop_batch(sorting, level);
		level->has_more = false;
		rc = pin_walker_visit_error(walker, NULL, rc);
	}
	return rc;
}

static int take_more(struct sorting *sorting, struct level *level)
{
	int rc = forget_batch(sorting, level);

	if (rc == 0 && sorting->walker.listing != NULL) {
		pin_walker_leave(&sorting->walker);
	}
	rc = rc == 0 ? come_back(sorting, level) : rc;
	return rc == 0 && level->has_more ? gather(sorting, level) : rc;
}

static int take_name(struct sorting *sorting, struct level *level)
{
	const struct record *record = record_at(level->batch, level->position);
	struct pin_walk_found found = {.name = record->name, .name_bytes = record->name_bytes};
	struct pin_walker *walker = &sorting->walker;
	struct pin_directory *directory;
	bool is_directory;
	int rc;

	level->taken = level->position;
	level->position += bytes_of(record);
	if (record->error != 0) {
		return pin_walker_visit_error(walker, record->name, -(int)record->error);
	}
	rc = pin_walker_look(walker, &found, (mode_t)record->type << TYPE_SHIFT, &is_directory);
	if (rc != 0 || !is_directory) {
		return rc;
	}
	directory = pin_directory_create(
		sorting->walk, level->directory, record->name, record->name_bytes);
	return directory == NULL ? -ENOMEM : enter(sorting, directory);
}

static int run(struct sorting *sorting)
{
	int rc = 0;

	while (rc == 0 && sorting->bottom != NULL) {
		struct level *level = sorting->bottom;

		if (!has_names(level)) {
			pop_level(sorting);
		} else if (level->position == level->batch_bytes) {
			rc = take_more(sorting, level);
		} else if (sorting->walker.listing == NULL) {
			rc = come_back(sorting, level);
		} else {
			rc = take_name(sorting, level);
		}
		if (rc == 0 && pin_walk_is_cancelled(sorting->walk)) {
			rc = -ECANCELED;
		}
	}
	return rc;
}

int pin_walk_sorted(struct pin_walk *walk, struct pin_directory *root, size_t names_bytes_max)
{
	struct sorting sorting = {
		.walk = walk,
		.walker.walk = walk,
		.names_bytes_max = names_bytes_max > 0 ? names_bytes_max : NAMES_BYTES_STANDARD,
	};
	int rc = enter(&sorting, root);

	rc = rc == 0 ? run(&sorting) : rc;
	while (sorting.bottom != NULL) {
		pop_level(&sorting);
	}
	PIN_CHECK(sorting.batches_bytes == 0);
	pin_walker_fini(&sorting.walker);
	pin_heap_release(walk->host, sorting.room.bytes, PIN_HEAP_ALIGN, sorting.room.capacity, 1);
	pin_heap_release(walk->host, sorting.room.places, PIN_HEAP_ALIGN,
		sorting.room.place_capacity, sizeof(*sorting.room.places));
	return rc;
}
