/* SPDX-License-Identifier: MIT */
/*
 * A walk in the order of paths, byte by byte, as `LC_ALL=C sort` has them.
 *
 * A directory's names are sorted as though directories ended in a slash; a
 * subdirectory is entered at its place among them. So paths come sorted as
 * whole texts: "a-b", "a/c", "ab".
 *
 *     level   a directory that is entered, and the next names of it, sorted
 *       |     ("batch"); those after them are in the directory only
 *     level   its subdirectory at the moment
 *
 * Memory is bounded, whatever the tree: of a directory with more names than a
 * batch has room for, the first ones are kept, and it is listed again for
 * those after them. When the batches of all levels together are too much, those
 * nearest to the root are dropped, and their directories are listed again when
 * the walk is back there. Each name comes at most once, as names only rise; of
 * names that are made meanwhile, those further on come as well.
 *
 * Beside the root, one directory is open at a time.
 *
 * Runs on the caller's thread.
 */
#ifndef PIN_SCAN_WALK_SORTED_H
#define PIN_SCAN_WALK_SORTED_H

#include "runtime/scan/walk_tree.h"

/*
 * From `root`, which is taken over. `names_bytes_max`: of a batch, and half of
 * that of all; 0: some MiB. Returns as pin_walk().
 */
int pin_walk_sorted(struct pin_walk *walk, struct pin_directory *root, size_t names_bytes_max);

#endif
