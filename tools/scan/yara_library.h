/* SPDX-License-Identifier: MIT */
/*
 * libyara, loaded when it is first asked for (library.h). Its structures are
 * read by macros of its headers, so the library has to be of their version.
 */
#ifndef PINION_TOOLS_SCAN_YARA_LIBRARY_H
#define PINION_TOOLS_SCAN_YARA_LIBRARY_H

#include <stdbool.h>

#if defined(HAVE_YARA)
#include <yara.h>

#define YARA_LIBRARY_FUNCTIONS(X) \
	X(yr_compiler_add_file) \
	X(yr_compiler_create) \
	X(yr_compiler_define_boolean_variable) \
	X(yr_compiler_define_float_variable) \
	X(yr_compiler_define_integer_variable) \
	X(yr_compiler_define_string_variable) \
	X(yr_compiler_destroy) \
	X(yr_compiler_get_rules) \
	X(yr_compiler_set_callback) \
	X(yr_compiler_set_include_callback) \
	X(yr_finalize) \
	X(yr_initialize) \
	X(yr_rules_destroy) \
	X(yr_scanner_create) \
	X(yr_scanner_destroy) \
	X(yr_scanner_scan_mem) \
	X(yr_scanner_set_callback) \
	X(yr_scanner_set_flags) \
	X(yr_scanner_set_timeout) \
	X(yr_set_configuration)

struct yara_library {
#define YARA_LIBRARY_MEMBER(name) __typeof__(&(name)) name;
	YARA_LIBRARY_FUNCTIONS(YARA_LIBRARY_MEMBER)
#undef YARA_LIBRARY_MEMBER
};

/* After yara_library_load() returned true. */
extern struct yara_library yara_library;
#endif

/* On the main thread. False: it cannot be had, *out_reason says why. */
bool yara_library_load(const char **out_reason);

#endif
