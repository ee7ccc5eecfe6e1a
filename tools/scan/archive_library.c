/* SPDX-License-Identifier: MIT */
/*
 * dlopen(3) by the name that the library has had since version 3.
 */
#include "tools/scan/archive_library.h"

#if defined(HAVE_LIBARCHIVE)
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static const char library_name[] = "libarchive.so.13";

struct archive_library archive_library;

bool archive_library_load(const char **out_reason)
{
	static void *library;
	static const struct {
		const char *name;
		void *place;
	} functions[] = {
#define ARCHIVE_LIBRARY_ROW(name) {#name, &archive_library.name},
		ARCHIVE_LIBRARY_FUNCTIONS(ARCHIVE_LIBRARY_ROW)
#undef ARCHIVE_LIBRARY_ROW
	};

	if (library != NULL) {
		return true;
	}
	library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		*out_reason = dlerror();
		return false;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);

		if (function == NULL) {
			*out_reason = dlerror();
			dlclose(library);
			library = NULL;
			return false;
		}
		memcpy(functions[i].place, &function, sizeof(function));
	}
	return true;
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
