/* SPDX-License-Identifier: MIT */
/*
 * The library's version, and the marks every public header uses.
 */
#ifndef PINION_VERSION_H
#define PINION_VERSION_H

#define PINION_VERSION_MAJOR 0
#define PINION_VERSION_MINOR 1
#define PINION_VERSION_PATCH 0
#define PINION_VERSION_STRING "0.1.0"

#include <stddef.h>

#if defined(__GNUC__)
#define PINION_API __attribute__((visibility("default")))
#else
#define PINION_API
#endif

#ifdef __cplusplus
#define PINION_BEGIN_DECLS extern "C" {
#define PINION_END_DECLS }
#else
#define PINION_BEGIN_DECLS
#define PINION_END_DECLS
#endif

PINION_BEGIN_DECLS

/*
 * Names the version of the library that is loaded, which may be newer than
 * PINION_VERSION_STRING, the one this program was compiled against.
 *
 * Shape: "MAJOR.MINOR.PATCH", a static string.
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API const char *pinion_version(void);

/*
 * The size of a public struct, and below its alignment, as the loaded library
 * has them: callers in other languages, which include no header, allocate by
 * them and pass them as the `size` of a config struct.
 *
 * Shape: `name` is the struct's in C, as "pinion_task".
 * Errors: 0: the library has no public struct of that name, or an opaque one.
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API size_t pinion_struct_bytes(const char *name);

/* Shape, Errors, Context: as above. Since: 0.1 */
PINION_API size_t pinion_struct_align(const char *name);

PINION_END_DECLS

#endif
