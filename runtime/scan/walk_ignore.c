/* SPDX-License-Identifier: MIT */
/*
 * Ignore files of a directory that a walker has opened: read, and those that
 * cannot be used visited.
 *
 * Called by walk_list.c, which asks them about entries.
 */
#include "runtime/base/check.h"
#include "runtime/scan/walk_list.h"

#include <string.h>

/* Visits those of the directory that failed. */
static int visit_ignore_errors(struct pin_walker *walker)
{
	const struct pin_ignore_errors *errors = &walker->listing->errors;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < PIN_IGNORE_FILES; i++) {
		if (errors->of[i] != 0) {
			rc = pin_walker_visit_error(walker, pin_ignore_names[i], errors->of[i]);
		}
	}
	return rc;
}

int pin_walker_set_match(struct pin_walker *walker)
{
	const struct pin_walk *walk = walker->walk;
	const struct pin_walk_path *path = &walker->path;
	int rc =
		pin_walk_path_set(walk, &walker->match, walk->ignore.root, walk->ignore.root_bytes);

	if (rc == 0 && path->length > walk->names_start) {
		size_t bytes = path->length - walk->names_start;
		struct pin_walk_path *match = &walker->match;

		rc = pin_walk_path_reserve(walk, match, match->length + bytes + 1);
		if (rc == 0) {
			memcpy(match->bytes + match->length, path->bytes + walk->names_start,
				bytes);
			match->length += bytes;
			match->bytes[match->length++] = '/';
			match->bytes[match->length] = '\0';
		}
	}
	return rc;
}

int pin_walker_read_ignores(struct pin_walker *walker)
{
	struct pin_directory *directory = walker->listing->directory;
	const struct pin_walk *walk = walker->walk;
	struct pin_ignore_level *level;
	int rc = pin_walker_set_match(walker);

	PIN_DCHECK(!directory->owns_ignore);
	if (directory->depth == 0) {
		directory->ignore = walk->ignore.above;
	}
	if (rc == 0) {
		rc = pin_ignore_read(walk->host, directory->ignore, walker->listing->fd,
			walker->match.length, &level, &walker->listing->errors);
	}
	if (rc != 0) {
		return rc;
	}
	if (level != NULL) {
		directory->ignore = level;
		directory->owns_ignore = true;
	}
	/* Those of the others were visited where all of it was listed. */
	return pin_walk_is_partial(walk, directory) ? 0 : visit_ignore_errors(walker);
}
