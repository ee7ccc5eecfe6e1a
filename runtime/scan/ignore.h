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
 * Elsewhere: the meaning of a line, gitignore.c; the fate of hidden entries,
 * walk.c. The configuration of git, and what a repository tracks, are not
 * looked at.
 */
#ifndef PIN_SCAN_IGNORE_H
#define PIN_SCAN_IGNORE_H

#include "runtime/host/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- the rules of one directory ---- */

/*
 * The rules of one directory's ignore files: lines of gitignore(5), in their
 * order; the last match decides.
 *
 * A line is sorted out once, into what kind of pattern it is, so that asking
 * for a name is a comparison for most: `name`, `*.suffix` and `path/to/name`
 * need no wildcards looked at. Texts are kept as they were read, rules say
 * where in them their patterns are.
 *
 * gitignore.c; used by the thread that walks; knows nothing of files.
 */

/* A longer line names no path that Linux takes at once: PATH_MAX. */
enum { PIN_IGNORE_LINE_BYTES_MAX = 4096 };

struct pin_ignore_rule;

/* All zero but for the host, whose heap it is: none. */
struct pin_ignore_rules {
	const struct pin_host *host;
	char *text;
	size_t text_bytes;
	size_t text_capacity;
	struct pin_ignore_rule *items;
	size_t count;
	size_t capacity;
};

enum pin_ignore_verdict {
	PIN_IGNORE_SILENT, /* no rule is about it */
	PIN_IGNORE_HIDES,
	PIN_IGNORE_SHOWS, /* by a line that begins with `!` */
};

/* A path below the directory whose rules these are. */
struct pin_ignore_path {
	const char *bytes;
	size_t path_bytes;
	size_t name_bytes; /* its last part */
	bool is_directory;
};

/*
 * Room for the text of one more file; NULL: no memory. All texts together are
 * below 4 GiB.
 */
char *pin_ignore_rules_reserve(struct pin_ignore_rules *rules, size_t bytes);

/*
 * Takes over `bytes` bytes which were written to the last reserved space.
 * -EILSEQ: they are no text, there is a NUL. -EFBIG: a line is too long.
 * -ENOMEM. Then none of it counts.
 */
int pin_ignore_rules_add(struct pin_ignore_rules *rules, size_t bytes);

enum pin_ignore_verdict pin_ignore_rules_decide(
	const struct pin_ignore_rules *rules, const struct pin_ignore_path *path);

/* Gives back reserved space that was not used. */
void pin_ignore_rules_trim(struct pin_ignore_rules *rules);

void pin_ignore_rules_fini(struct pin_ignore_rules *rules);

/* ---- globs ---- */

/*
 * The wildcards of gitignore(5) over a path.
 *
 *     ?     one byte of a name       [a-z]   one byte of these
 *     *     any of a name, or none   [!a]    one byte of a name, but these
 *     \c    c, whatever it is        **      between slashes, or at an end:
 *                                            any directories, or none
 *
 * Nothing but a slash, or two stars, goes across a slash. Between brackets
 * there may be ranges, classes such as [:alpha:] of ASCII, and a `]` in the
 * first place; a slash there matches nothing. A pattern with a bracket that is
 * not closed, or a backslash at its end, is valid and matches nothing.
 *
 * The time it takes is bounded: at most as many steps as the bytes of the
 * pattern, times those of the path, times its names. Tries start over from the
 * last star and the last two stars only: the part before these ends at the
 * earliest place already, and a later one could not help the rest.
 *
 * Two stars after other bytes of a name are one, as gitignore(5) says, unless
 * nothing before them is special: git takes that off first and then sees two
 * stars at a start, so that `ab` before them and a slash and `c` after them
 * match ab/d/c, abd/c and even abc. Here as there: what counts is what git
 * hides.
 *
 * Source: gitignore(5), and git 2.39 itself.
 */

/* `path` is relative, not empty, and has no slash at its end. */
bool pin_glob_matches(
	const char *pattern, size_t pattern_bytes, const char *path, size_t path_bytes);

/* ---- the rules of a tree ---- */

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
