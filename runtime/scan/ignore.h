/* SPDX-License-Identifier: MIT */
/*
 * What the ignore files of a tree hide, asked while it is walked.
 *
 * Rules are in .gitignore and .ignore of each directory, and in
 * .git/info/exclude of a repository; they are about entries below it. The walk
 * enters directories from the top down and is in one at a time, so the rules
 * that count are a stack: one level for each directory from the top of the
 * repository, or from the walk's root, to where the walk is. The deepest level
 * that says anything decides. A directory that has a `.git` begins anew: rules
 * above it do not apply in it.
 *
 * Where the root is inside a repository, the directories above it up to the
 * repository's own are levels too. Only a `.git` that belongs to the user of
 * the process, or to the owner of the root, makes a repository of a directory
 * above: else any user could hide files with one in /tmp.
 *
 * Ignore files come hostile as trees do: a link is not followed, a file that is
 * not regular is not opened, a file that is too large or holds NULs has no
 * rules and is an error of that path.
 *
 * Belongs to one walk, and to its thread. Invariants: (1) levels[0 … count) are
 * those of the directory entered last and of all above it. (2) `path` holds
 * that directory's path up to the last level's names_start, absolute where it
 * is known.
 *
 * Elsewhere: the meaning of a line, gitignore.h; the fate of hidden entries,
 * walk.c. The configuration of git, and what a repository tracks, are not
 * looked at.
 */
#ifndef PIN_SCAN_IGNORE_H
#define PIN_SCAN_IGNORE_H

#include "runtime/scan/gitignore.h"

#include <sys/types.h>

enum {
	/* Of one file, and of all that count at the same time. */
	PIN_IGNORE_FILE_BYTES_MAX = 1 << 20,
	PIN_IGNORE_BYTES_MAX = 4 << 20,
	PIN_IGNORE_FILES = 3,
};

/* Of a directory, from the weakest to the strongest. */
extern const char *const pin_ignore_names[PIN_IGNORE_FILES];

struct pin_ignore_level {
	struct pin_ignore_rules rules;
	size_t names_start; /* in `path`, of names in this directory */
	bool is_top;
};

/* All zero: not yet begun. */
struct pin_ignore {
	const struct pin_host *host; /* whose heap it is */
	struct pin_ignore_level *levels;
	size_t count;
	size_t capacity;
	size_t above_count; /* levels above the root */
	size_t root_bytes;  /* of its absolute path; 0: that is not known */
	char *path;
	size_t path_capacity;
	size_t text_bytes; /* of all levels */
	/* Of the directory entered last: 0, or why a file does not count. */
	int errors[PIN_IGNORE_FILES];
};

/*
 * Finds the repository around a root directory, whose owner that is. Then the
 * levels above, 0 … above_count - 1, are to be entered.
 * -ENOMEM.
 */
int pin_ignore_begin(
	struct pin_ignore *ignore, const struct pin_host *host, const char *root, uid_t owner);

/*
 * Enters a directory above the root; its path is then the first
 * `out_path_bytes` bytes of `path`. -ENOMEM.
 */
int pin_ignore_enter_above(struct pin_ignore *ignore, size_t level, size_t *out_path_bytes);

/*
 * Enters the root, at depth 0, whose name does not matter, or a directory in
 * the one entered at depth - 1. -ENOMEM.
 */
int pin_ignore_enter(struct pin_ignore *ignore, int directory_fd, size_t depth, const char *name,
	size_t name_bytes);

/* Of an entry of the directory entered last; `.git` always is. */
bool pin_ignore_hides(
	struct pin_ignore *ignore, const char *name, size_t name_bytes, bool is_directory);

/* Whether that name is in `errors`, and so is reported already. */
bool pin_ignore_has_failed(const struct pin_ignore *ignore, const char *name);

void pin_ignore_fini(struct pin_ignore *ignore);

#endif
