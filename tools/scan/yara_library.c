/* SPDX-License-Identifier: MIT */
/*
 * The functions of libyara.
 */
#include "tools/scan/yara_library.h"

#if defined(HAVE_YARA)
#include "tools/scan/library.h"

/* Its name changes with its structures. */
#if YR_MAJOR_VERSION > 4 || (YR_MAJOR_VERSION == 4 && YR_MINOR_VERSION >= 3)
static const char library_name[] = "libyara.so.10";
#else
static const char library_name[] = "libyara.so.9";
#endif

struct yara_library yara_library;

bool yara_library_load(const char **out_reason)
{
	static bool is_loaded;
	static const struct library_function functions[] = {
#define YARA_LIBRARY_ROW(name) {#name, &yara_library.name},
		YARA_LIBRARY_FUNCTIONS(YARA_LIBRARY_ROW)
#undef YARA_LIBRARY_ROW
	};

	is_loaded = is_loaded ||
		library_load(library_name, functions, sizeof(functions) / sizeof(functions[0]),
			out_reason);
	return is_loaded;
}
#else
bool yara_library_load(const char **out_reason)
{
	*out_reason = "this program was built without it: install libyara-dev, and build again";
	return false;
}
#endif
