/* SPDX-License-Identifier: MIT */
/*
 * dlopen(3), and dlsym(3) for each function.
 */
#include "tools/scan/library.h"

#include <dlfcn.h>
#include <string.h>

bool library_load(const char *name, const struct library_function *functions, size_t count,
	const char **out_reason)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		*out_reason = dlerror();
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		void *function = dlsym(library, functions[i].name);

		if (function == NULL) {
			*out_reason = dlerror();
			dlclose(library);
			return false;
		}
		memcpy(functions[i].place, &function, sizeof(function));
	}
	return true;
}
