/* SPDX-License-Identifier: MIT */
/*
 * Opening a path of any length.
 *
 * The kernel takes PATH_MAX (4096) bytes at once, yet trees nest deeper: a tool
 * that refuses such names can be blinded by creating them. A long path is
 * opened in pieces, each relative to the directory the piece before it led to.
 *
 * Called from any thread, by the walk and by whoever opens files.
 */
#ifndef PIN_HOST_LONG_PATH_H
#define PIN_HOST_LONG_PATH_H

/*
 * open(2) without O_CREAT: returns a descriptor or a negative errno, and leaves
 * errno alone. Needs a second descriptor for a moment when the path is long.
 * -ENAMETOOLONG then means that a single name is too long.
 */
int pin_open_long(const char *path, int flags);

#endif
