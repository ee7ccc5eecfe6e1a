/* SPDX-License-Identifier: MIT */
/*
 * What the ignore files of a tree hide, asked while it is walked.
 *
 * Rules are in .gitignore, .ignore and .pinionignore of each directory, and in
 * .git/info/exclude of a repository; they are about entries below it. A
 * directory with rules has a level, which refers to the level above it, from
 * the walk's root or the top of the repository down. The deepest level that
 * says anything decides. A directory that has a `.git` begins anew: rules above
 * it do not apply in it.
 *
 * Where the root is inside a repository, the directories above it up to the
 * repository's own have levels too. Only a `.git` that belongs to the user of
 * the process, or to the owner of the root, makes a repository of a directory
 * above: else any user could hide files by a repository in /tmp.
 *
 * Ignore files come hostile as trees do: a link is not followed, a file that is
 * not regular is not opened, a file that is too large or holds NULs has no
 * rules and is an error of that path.
 *
 * Invariants: (1) a level does not change once it is made, so that any thread
 * may ask it; a directory's level outlives those below it. (2) the texts in
 * force in one directory are bounded, its levels' all together.
 *
 * Elsewhere: the meaning of a line, gitignore.c; the fate of hidden entries,
 * walk_list.c. The configuration of git, and what a repository tracks, are not
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
	PIN_IGNORE_FILES = 4,
};

/* Of a directory, from the weakest to the strongest. */
extern const char *const pin_ignore_names[PIN_IGNORE_FILES];

/* Of one directory. [const] once it is made. */
struct pin_ignore_level {
	const struct pin_ignore_level *above; /* NULL: none has rules */
	struct pin_ignore_rules rules;
	size_t names_start; /* in an absolute path, of names in this directory */
	size_t text_bytes;  /* of this level and all above it */
	bool is_top;	    /* those above do not apply */
};

/* Of one directory: 0, or why a file of it does not count. */
struct pin_ignore_errors {
	int of[PIN_IGNORE_FILES];
};

/* Of one walk; all zero: not yet begun. */
struct pin_ignore {
	const struct pin_host *host;	/* whose heap it is */
	struct pin_ignore_level *above; /* the root's parent's, or the next above it */
	char *root;			/* its absolute path with a slash after it */
	size_t root_bytes;		/* 0: that is not known */
	size_t above_bytes;		/* of it: the next directory above to be read */
};

/*
 * Finds the repository around a root directory, whose owner that is. Then the
 * directories above are to be read. -ENOMEM.
 */
int pin_ignore_begin(
	struct pin_ignore *ignore, const struct pin_host *host, const char *root, uid_t owner);

/*
 * Reads the next directory above the root, from the top down: 1, and its path
 * is the first `out_path_bytes` bytes of `root`; 0: all are read. -ENOMEM.
 */
int pin_ignore_read_above(
	struct pin_ignore *ignore, size_t *out_path_bytes, struct pin_ignore_errors *out_errors);

/*
 * Makes the level of a directory; `above` is that of the directory it is in.
 * *out_level is NULL where it needs none, and that above applies. -ENOMEM.
 */
int pin_ignore_read(const struct pin_host *host, const struct pin_ignore_level *above,
	int directory_fd, size_t names_start, struct pin_ignore_level **out_level,
	struct pin_ignore_errors *out_errors);

void pin_ignore_level_free(const struct pin_host *host, struct pin_ignore_level *level);

/*
 * Whether an entry is hidden, by the level of its directory; `path` is absolute
 * and ends in the entry's name. `.git` always is.
 */
bool pin_ignore_hides(const struct pin_ignore_level *level, const char *path, size_t path_bytes,
	size_t name_bytes, bool is_directory);

/* Whether that name is in `errors`, and so is reported already. */
bool pin_ignore_has_failed(const struct pin_ignore_errors *errors, const char *name);

void pin_ignore_fini(struct pin_ignore *ignore);

#endif
