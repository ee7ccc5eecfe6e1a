/* SPDX-License-Identifier: MIT */
/*
 * A walk of a part of a tree, which others have left to it, and directories
 * that it leaves to others.
 *
 * In place of the list of a directory that is on the way to the part, or has
 * the part's names, the walker gets these names, as the kernel would list them.
 * So it looks at them as at all others.
 *
 * Called by walk_list.c.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/scan/walk_list.h"

#include <dirent.h>
#include <string.h>

/* The name of the way at that depth, and all after it. */
static const char *way_at(const struct pin_walk_part *part, size_t depth)
{
	const char *name = part->directory;

	for (size_t i = 0; i < depth; i++) {
		name = strchr(name, '/');
		PIN_CHECK(name != NULL);
		name++;
	}
	return name;
}

/* A name ends with a slash or a NUL. */
static size_t name_length(const char *name, size_t bytes)
{
	size_t length = strnlen(name, bytes);
	const char *slash = memchr(name, '/', length);

	return slash == NULL ? length : (size_t)(slash - name);
}

uint32_t pin_walk_part_read(const struct pin_walk *walk, struct pin_listing *listing)
{
	const struct pin_walk_part *part = walk->part;
	size_t depth = listing->directory->depth;
	bool is_way = depth < part->depth;
	const char *names = is_way ? way_at(part, depth) : part->names;
	size_t bytes = is_way ? name_length(names, strlen(names)) : part->names_bytes;
	uint32_t used = 0;

	while (listing->part_position < bytes) {
		const char *name = names + listing->part_position;
		size_t length = name_length(name, bytes - listing->part_position);
		size_t record_bytes = pin_round_up(
			offsetof(struct pin_list_entry, name) + length + 1, sizeof(uint64_t));
		struct pin_list_entry *entry = (void *)((char *)listing->list + used);

		if (record_bytes > PIN_WALK_LIST_BYTES - used) {
			break;
		}
		*entry = (struct pin_list_entry){
			.record_bytes = (uint16_t)record_bytes,
			.type = is_way ? DT_DIR : DT_UNKNOWN,
		};
		memcpy(entry->name, name, length);
		entry->name[length] = '\0';
		used += (uint32_t)record_bytes;
		listing->part_position += length + 1;
	}
	return used;
}

int pin_walker_share(
	struct pin_walker *walker, const struct pin_walk_found *found, bool *out_is_shared)
{
	const struct pin_walk *walk = walker->walk;
	size_t length = walker->path.length;
	int rc;

	*out_is_shared = false;
	if (pin_walk_is_partial(walk, walker->directory)) {
		return 0;
	}
	rc = pin_walk_path_add(walk, &walker->path, found->name, found->name_bytes);
	if (rc == 0) {
		*out_is_shared =
			walk->share(walk->share_arg, walker->path.bytes + walk->names_start,
				walker->path.length - walk->names_start, true);
	}
	pin_walk_path_cut(&walker->path, length);
	return rc;
}
