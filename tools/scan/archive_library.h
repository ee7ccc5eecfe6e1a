/* SPDX-License-Identifier: MIT */
/*
 * libarchive, loaded when it is first asked for (library.h).
 */
#ifndef PINION_TOOLS_SCAN_ARCHIVE_LIBRARY_H
#define PINION_TOOLS_SCAN_ARCHIVE_LIBRARY_H

#include <stdbool.h>

#if defined(HAVE_LIBARCHIVE)
#include <archive.h>
#include <archive_entry.h>

#define ARCHIVE_LIBRARY_FUNCTIONS(X) \
	X(archive_entry_filetype) \
	X(archive_entry_hardlink) \
	X(archive_entry_is_encrypted) \
	X(archive_entry_pathname) \
	X(archive_errno) \
	X(archive_error_string) \
	X(archive_filter_code) \
	X(archive_format) \
	X(archive_read_data_block) \
	X(archive_read_free) \
	X(archive_read_new) \
	X(archive_read_next_header) \
	X(archive_read_open1) \
	X(archive_read_set_callback_data) \
	X(archive_read_set_read_callback) \
	X(archive_read_set_seek_callback) \
	X(archive_read_set_skip_callback) \
	X(archive_read_support_filter_bzip2) \
	X(archive_read_support_filter_compress) \
	X(archive_read_support_filter_gzip) \
	X(archive_read_support_filter_lz4) \
	X(archive_read_support_filter_lzip) \
	X(archive_read_support_filter_rpm) \
	X(archive_read_support_filter_xz) \
	X(archive_read_support_filter_zstd) \
	X(archive_read_support_format_7zip) \
	X(archive_read_support_format_ar) \
	X(archive_read_support_format_cpio) \
	X(archive_read_support_format_empty) \
	X(archive_read_support_format_raw) \
	X(archive_read_support_format_tar) \
	X(archive_read_support_format_zip) \
	X(archive_version_string)

struct archive_library {
#define ARCHIVE_LIBRARY_MEMBER(name) __typeof__(&(name)) name;
	ARCHIVE_LIBRARY_FUNCTIONS(ARCHIVE_LIBRARY_MEMBER)
#undef ARCHIVE_LIBRARY_MEMBER
};

/* After archive_library_load() returned true. */
extern struct archive_library archive_library;

/*
 * For all that is unpacked, or for compressed files alone; to be freed. Any
 * thread. NULL: no memory.
 */
struct archive *archive_library_reader(bool is_raw);
#endif

/* Once, on the main thread. False: it cannot be had, *out_reason says why. */
bool archive_library_load(const char **out_reason);

#endif
