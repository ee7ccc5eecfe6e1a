/* SPDX-License-Identifier: MIT */
/*
 * The wildcards of gitignore(5) over a path.
 *
 *     ?     one byte of a name       [a-z]   one byte of these
 *     *     any of a name, or none   [!a]    one byte of a name, but these
 *     \c    c, whatever it is        **      between slashes, or at an end:
 *                                            any directories, or none
 *
 * Nothing but a slash, or two stars, goes across a slash. What is between
 * brackets may be ranges, classes such as [:alpha:] of ASCII, and a `]` in the
 * first place; a slash there stands for nothing. A pattern with a bracket that
 * is not closed, or a backslash at its end, is valid and matches nothing.
 *
 * The time it takes is bounded: at most as many steps as the bytes of the
 * pattern, times those of the path, times its names. Tries start over from the
 * last star and the last two stars only: what came before these ends at the
 * earliest place already, and a later one could not help what follows.
 *
 * Two stars behind other bytes of a name are one, as gitignore(5) says, unless
 * nothing that comes before is special: git takes that off first and then sees
 * two stars at a start, so that `ab` before them and a slash and `c` behind
 * match ab/d/c, abd/c and even abc. Here as there: what counts is what git
 * hides.
 *
 * Elsewhere: what a line of an ignore file means is gitignore.h's.
 * Source: gitignore(5), and git 2.39 itself.
 */
#ifndef PIN_SCAN_GITIGNORE_GLOB_H
#define PIN_SCAN_GITIGNORE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* `path` is relative, not empty, and has no slash at its end. */
bool pin_glob_matches(
	const char *pattern, size_t pattern_bytes, const char *path, size_t path_bytes);

#endif
