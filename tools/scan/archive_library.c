/* SPDX-License-Identifier: MIT */
/*
 * The functions of libarchive, and readers made by them.
 */
#include "tools/scan/archive_library.h"

#if defined(HAVE_LIBARCHIVE)
#include "tools/scan/library.h"

#include <pthread.h>
#include <stddef.h>

struct archive_library archive_library;

bool archive_library_load(const char **out_reason)
{
	static bool is_loaded;
	static const struct library_function functions[] = {
#define ARCHIVE_LIBRARY_ROW(name) {#name, &archive_library.name},
		ARCHIVE_LIBRARY_FUNCTIONS(ARCHIVE_LIBRARY_ROW)
#undef ARCHIVE_LIBRARY_ROW
	};

	/* The name that the library has had since version 3. */
	is_loaded = is_loaded ||
		library_load("libarchive.so.13", functions,
			sizeof(functions) / sizeof(functions[0]), out_reason);
	return is_loaded;
}

typedef int (*support_fn)(struct archive *archive);

static support_fn filters[8];

/* Those that libarchive has itself, without another program. */
static void choose_filters(void)
{
	const struct archive_library *library = &archive_library;
	const support_fn wanted[] = {
		library->archive_read_support_filter_gzip,
		library->archive_read_support_filter_bzip2,
		library->archive_read_support_filter_xz,
		library->archive_read_support_filter_zstd,
		library->archive_read_support_filter_lz4,
		library->archive_read_support_filter_lzip,
		library->archive_read_support_filter_compress,
		library->archive_read_support_filter_rpm,
	};
	struct archive *archive = library->archive_read_new();
	size_t count = 0;

	for (size_t i = 0; archive != NULL && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (wanted[i](archive) == ARCHIVE_OK) {
			filters[count++] = wanted[i];
		}
	}
	library->archive_read_free(archive);
}

struct archive *archive_library_reader(bool is_raw)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct archive_library *library = &archive_library;
	struct archive *archive = library->archive_read_new();

	pthread_once(&once, choose_filters);
	if (archive == NULL) {
		return NULL;
	}
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]) && filters[i] != NULL; i++) {
		filters[i](archive);
	}
	library->archive_read_support_format_raw(archive);
	if (is_raw) {
		return archive;
	}
	library->archive_read_support_format_tar(archive);
	library->archive_read_support_format_zip(archive);
	library->archive_read_support_format_7zip(archive);
	library->archive_read_support_format_cpio(archive);
	library->archive_read_support_format_ar(archive);
	library->archive_read_support_format_empty(archive);
	return archive;
}
#else
bool archive_library_load(const char **out_reason)
{
	*out_reason = "this program was built without it: install libarchive-dev, and build again";
	return false;
}
#endif
