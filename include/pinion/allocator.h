/* SPDX-License-Identifier: MIT */
/*
 * The embedder's own heap, for what a runtime or a pool allocates.
 */
#ifndef PINION_ALLOCATOR_H
#define PINION_ALLOCATOR_H

#include <pinion/version.h>
#include <stddef.h>

PINION_BEGIN_DECLS

/*
 * Allocates memory with any contents: the library zeroes it where needed.
 *
 * Shape: `bytes`, at least 1, at an address that is a multiple of `align`, a
 * power of two. NULL: there is none; the call that needed it fails with
 * -ENOMEM.
 * Context: any thread, workers and threads that have not begun or are about to
 * end among them, several at once. It may block, and must not call back into
 * the library.
 * Since: 0.1
 */
typedef void *(*pinion_allocate_fn)(void *arg, size_t align, size_t bytes);

/*
 * Releases memory, on any thread, with the `align` and `bytes` of its
 * allocation: as `operator delete` with a size and an alignment in C++ and
 * `GlobalAlloc::dealloc` in Rust want it. `memory` is never NULL.
 *
 * Context: as pinion_allocate_fn.
 * Since: 0.1
 */
typedef void (*pinion_release_fn)(void *arg, void *memory, size_t align, size_t bytes);

/*
 * Shape: both functions, or neither.
 * Owns: copied by the call that receives it; memory that `arg` refers to stays
 * until the runtime or the pool is destroyed.
 * Since: 0.1
 */
struct pinion_allocator {
	pinion_allocate_fn allocate;
	pinion_release_fn release;
	void *arg;
};

PINION_END_DECLS

#endif
