/* SPDX-License-Identifier: MIT */
/*
 * Entries that a walker has found: visited, or put into its block.
 *
 * Called by walk_list.c; walk_caller.c visits the entries of blocks.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/scan/walk_list.h"

#include <errno.h>
#include <string.h>

int pin_walk_visit(const struct pin_walk *walk, const struct pin_walk_path *path,
	const struct pin_walk_sight *sight)
{
	bool is_below = walk->root_fd >= 0 && !walk->follows && path->length > walk->root_bytes;
	struct pinion_walk_entry entry = {
		.path = path->bytes,
		.path_bytes = path->length,
		.kind = (enum pinion_walk_kind)sight->kind,
		.error = sight->error,
		.mode = sight->mode,
		.reason = sight->reason,
		.root_fd = is_below ? walk->root_fd : -1,
		.beneath = is_below ? path->bytes + walk->names_start : NULL,
	};

	PIN_DCHECK(path->bytes[path->length] == '\0');
	PIN_DCHECK(!is_below || walk->names_start < path->length);
	PIN_DCHECK(sight->kind == PINION_WALK_ERROR ? sight->error < 0
						    : sight->error == 0 || sight->error == -ELOOP);
	return walk->visit(walk->arg, &entry);
}

static int visit_now(struct pin_walker *walker, const struct pin_walk_found *found)
{
	size_t length = walker->path.length;
	int rc = found->name_bytes == 0
		? 0
		: pin_walk_path_add(walker->walk, &walker->path, found->name, found->name_bytes);

	if (rc == 0) {
		rc = pin_walk_visit(walker->walk, &walker->path, &found->sight);
	}
	pin_walk_path_cut(&walker->path, length);
	return rc;
}

/* ---- blocks ---- */

static void put_record(struct pin_walk_block *block, const struct pin_walk_record *record,
	const void *name, size_t name_bytes)
{
	char *end = (char *)block->bytes + block->used_bytes;
	size_t bytes = pin_round_up(sizeof(*record) + name_bytes, sizeof(uint64_t));

	PIN_CHECK(bytes <= block->capacity_bytes - block->used_bytes);
	memcpy(end, record, sizeof(*record));
	if (name_bytes > 0) { /* else `name` may be NULL */
		memcpy(end + sizeof(*record), name, name_bytes);
	}
	block->used_bytes += (uint32_t)bytes;
}

/* There is room; the block becomes a user of the directory. */
static void put_found(struct pin_walker *walker, struct pin_directory *directory,
	const struct pin_walk_found *found)
{
	struct pin_walk_block *block = walker->block;
	struct pin_walk_record record = {
		.sight = found->sight,
		.name_bytes = (uint32_t)found->name_bytes,
	};

	PIN_CHECK(pin_walker_has_room(walker, found->name_bytes));
	if (block->directory != directory) {
		struct pin_walk_record of = {
			.sight.kind = PIN_WALK_DIRECTORY,
			.name_bytes = sizeof(directory),
		};

		pin_fetch_add_relaxed_u32(&directory->users, 1);
		put_record(block, &of, &directory, sizeof(directory));
		block->directory = directory;
	}
	put_record(block, &record, found->name, found->name_bytes);
}

int pin_walker_visit(struct pin_walker *walker, const struct pin_walk_found *found)
{
	if (walker->fills_blocks) {
		put_found(walker, walker->directory, found);
		return 0;
	}
	return visit_now(walker, found);
}
int pin_walker_visit_error(struct pin_walker *walker, const char *name, int error)
{
	return pin_walker_visit(walker,
		&(struct pin_walk_found){
			.name = name,
			.name_bytes = name == NULL ? 0 : strlen(name),
			.sight = {.kind = PINION_WALK_ERROR, .error = error},
		});
}
