/* SPDX-License-Identifier: MIT */
/*
 * Opening files: what callers may ask for, what the kernel is told, and that
 * nothing is opened which it has an effect on.
 */
#ifndef PIN_IO_FILE_OPEN_H
#define PIN_IO_FILE_OPEN_H

#include "runtime/io/refusal.h"

#include <linux/openat2.h>
#include <pinion/file.h>
#include <stdbool.h>

/*
 * Fills *out from what the caller gave, NULL or another version's struct.
 * Errors as pinion_file_open_with(); `why` may be NULL.
 */
int pin_file_options_accept(struct pinion_file_options *out,
	const struct pinion_file_options *given, struct pin_refusal *why);

/* What openat2(2) is to be told; `options` were accepted. */
struct open_how pin_file_open_how(const struct pinion_file_options *options);

/* Flags with which a file that may turn out to be anything is opened. */
int pin_file_open_flags(bool follow_links);

/*
 * Looks at what a path leads to without opening it: 0 for a regular file, a
 * directory, a block device and an NVMe namespace, -ENOTSUP for anything else,
 * whose type bits are stored; other errors as stat(2).
 */
int pin_file_check_kind(const char *path, uint32_t *out_mode);

/* The same for a path beneath a directory (host/beneath.h). */
int pin_file_check_kind_beneath(int directory_fd, const char *path, uint32_t *out_mode);

#endif
