/* SPDX-License-Identifier: MIT */
/*
 * Shared libraries that are loaded when they are first asked for: with the
 * libraries that they need they would add some ms to the start of every
 * command.
 */
#ifndef PINION_TOOLS_SCAN_LIBRARY_H
#define PINION_TOOLS_SCAN_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct library_function {
	const char *name;
	void *place; /* a pointer to it is stored there */
};

/*
 * Loads the library of that name for the rest of the process, and finds all
 * functions in it. False: *out_reason says why not; nothing is loaded then.
 */
bool library_load(const char *name, const struct library_function *functions, size_t count,
	const char **out_reason);

#endif
