/* SPDX-License-Identifier: MIT */
/*
 * --output: standard output's place is taken by a file that has its name only
 * once it is whole. A command that is stopped or killed leaves an older file of
 * that name as it was.
 */
#ifndef PINION_TOOLS_OUTPUT_FILE_H
#define PINION_TOOLS_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * From now on output goes there. The file that a link leads to is replaced, a
 * link without a file is refused. A pipe's reader is waited for, some seconds.
 * False: reported.
 */
bool output_file_begin(const char *path);

/*
 * After output_finish(): gives the file its name and makes sure that it is on
 * the disk, or, where it is not to be kept, drops it. Without a begin it does
 * nothing. False: reported.
 */
bool output_file_end(bool is_kept);

/* Whether that file is replaced, or written. */
bool output_file_has(uint64_t device, uint64_t inode);

/* Whether both paths lead to the same file, or would make the same. */
bool output_file_is(const char *path, const char *other);

#endif
