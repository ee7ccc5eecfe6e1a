/* SPDX-License-Identifier: MIT */
/*
 * The rules of one directory's ignore files: lines of gitignore(5), in their
 * order; the last match decides.
 *
 * A line is sorted out once, into what kind of pattern it is, so that asking
 * for a name is a comparison for most: `name`, `*.suffix` and `path/to/name`
 * need no wildcards looked at. Texts are kept as they were read, rules say
 * where in them their patterns are.
 *
 * Used by the thread that walks; knows nothing of files.
 */
#ifndef PIN_SCAN_GITIGNORE_H
#define PIN_SCAN_GITIGNORE_H

#include "runtime/host/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * Elsewhere: what a line of an ignore file means is gitignore.h's.
 * Source: gitignore(5), and git 2.39 itself.
 */

/* `path` is relative, not empty, and has no slash at its end. */
bool pin_glob_matches(
	const char *pattern, size_t pattern_bytes, const char *path, size_t path_bytes);

#endif
