/* SPDX-License-Identifier: MIT */
/*
 * Opening a path of any length.
 *
 * The kernel takes PATH_MAX (4096) bytes at once, yet trees nest deeper: a tool
 * that refuses such names can be blinded by creating them. A long path is
 * opened in pieces, each relative to the directory the piece before it led to.
 *
 * Called from any thread, by the walk and by opens of files.
 */
#ifndef PIN_HOST_LONG_PATH_H
#define PIN_HOST_LONG_PATH_H

#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * open(2) without O_CREAT: returns a descriptor or a negative errno, and leaves
 * errno alone. Needs a second descriptor for a moment when the path is long.
 * -ENAMETOOLONG then means that a single name is too long.
 */
int pin_open_long(const char *path, int flags);

/* ---- beneath ---- */

/*
 * Opens a path beneath an open directory.
 *
 * The owner of a tree can exchange a directory for a symbolic link at any
 * time, also between two system calls of the scan that reads the tree.
 * O_NOFOLLOW guards the last part of a path only: a link in front of it leads
 * out of the tree. Here no part is followed, so the descriptor that comes back
 * is of something that was in the tree.
 *
 * openat2(2) does that in one call. Where a seccomp filter or an old kernel
 * refuses openat2, and for paths that are too long for one call, the
 * directories in between are opened one after the other, each beneath its
 * parent. The process remembers a refusal: filters cannot be taken away again.
 *
 * Three things lead a path out of a directory: a symbolic link, a part "..",
 * and a slash in front. The kernel is asked to refuse the first; the other two
 * are refused here. RESOLVE_BENEATH is not asked for: it would check both once
 * more, and have each open take a lock of the whole kernel to see that its end
 * is still below its beginning (path_is_under()), which is 4 % of a scan of
 * small files in the page cache. That check fails only where the owner moves a
 * directory out of the tree during the call. Without it the descriptor is of
 * something in a directory that was in the tree when the kernel entered it,
 * which is also what the chain and the listing of an open directory promise.
 *
 * Mount points beneath the directory are entered.
 *
 * Called from any thread, by the walk, by its ignore files and by the scan.
 * Source: openat2(2), path_resolution(7), complete_walk() in the kernel's
 * fs/namei.c.
 */

/*
 * For openat2(2), where the caller submits it to a ring: only with a path that
 * passes pin_beneath_check(), as this flag alone lets ".." through.
 */
#define PIN_BENEATH_RESOLVE (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/*
 * 0, or -EXDEV for a path that does not stay beneath: it is absolute, or has a
 * part "..". pin_beneath_open() checks by itself, a ring's caller calls this.
 */
int pin_beneath_check(const char *path);

/*
 * open(2) without O_CREAT: returns a descriptor or a negative errno, and leaves
 * errno alone. A long path, and any path without openat2, needs a second
 * descriptor for a moment.
 *
 * -EXDEV: the path does not stay beneath the directory, or a part of it, the
 * last one included, is a symbolic link. -ENAMETOOLONG: a single name is too
 * long.
 */
int pin_beneath_open(int directory_fd, const char *path, int flags);

/*
 * openat2(2) of a path that needs no wait for the disk: the kernel has all of
 * its names in memory. `resolve` as in struct open_how; `directory_fd` may be
 * AT_FDCWD. A negative errno, -EAGAIN or another, says nothing about the file:
 * it is to be opened in another way. Leaves errno alone.
 */
int pin_open_cached(int directory_fd, const char *path, int flags, uint64_t resolve);

/*
 * Whether a path ends in a link that leads back to itself without leaving the
 * directory. False for a link that leads out of it, for a magic link of procfs
 * (proc(5), such as ns/mnt and exe), neither of which is followed, and where
 * openat2 is refused.
 */
bool pin_beneath_loops(int directory_fd, const char *path);

/*
 * What openat2(2) answered in a ring, -ELOOP for a link, in the words of
 * pin_beneath_open().
 */
int pin_beneath_error(int error);

#endif
