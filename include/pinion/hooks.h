/* SPDX-License-Identifier: MIT */
/*
 * Functions that a runtime calls: for the memory of its workers, and on each
 * worker when it starts, before it sleeps, at intervals, and when it ends.
 */
#ifndef PINION_HOOKS_H
#define PINION_HOOKS_H

#include <pinion/version.h>
#include <stddef.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/*
 * Gives one worker the memory for its arena, instead of a mapping of the
 * library's: for programs that have reserved huge pages, or share memory with a
 * device.
 *
 * Shape: at least `bytes`, a multiple of 4096, at an address that is a multiple
 * of 4096, too (better: of 2 MiB), readable and writable. Its contents are
 * overwritten. `node_index` is the NUMA node nearest to the worker, the OS's
 * index.
 * Owns: the memory is the runtime's until `arena_unmap`. It is used as it is:
 * not placed, not advised. A program that forks should keep it out of children
 * (MADV_DONTFORK), or a child's copy can make the parent's reads go astray.
 * Context: once for each worker, on its thread, several at once, inside of
 * pinion_runtime_create(); may block.
 * Errors: a negative errno fails the creation, which returns it.
 * Since: 0.1
 */
typedef int (*pinion_arena_map_fn)(
	void *arg, uint32_t worker_index, uint32_t node_index, size_t bytes, void **out_memory);

/*
 * Takes such memory back: after the runtime's last use of it, in
 * pinion_runtime_destroy(), or when the creation fails after all.
 *
 * Context: the thread that destroys or creates, or the worker's.
 * Since: 0.1
 */
typedef void (*pinion_arena_unmap_fn)(void *arg, uint32_t worker_index, void *memory, size_t bytes);

/*
 * Makes a worker's own state, its context: called once on each worker's thread,
 * bound and with its arena in place, before it runs any task. Memory first
 * touched here is on the worker's node.
 *
 * Owns: `*out_context` is NULL before; the value that the hook sets is passed
 * to the other hooks and returned by pinion_worker_context(). The program frees
 * it in `before_stop`.
 * Context: inside of pinion_runtime_create(), several workers at once; may
 * block and allocate. It has to return.
 * Errors: a negative errno fails the creation, which returns it; `before_stop`
 * is then called on those workers where this has succeeded.
 * Since: 0.1
 */
typedef int (*pinion_after_start_fn)(void *arg, uint32_t worker_index, void **out_context);

/*
 * A hook on the worker's own thread; `context` is the context that
 * `after_start` made, or NULL.
 *
 * Context: between tasks, never two at once on a worker. It holds up the worker
 * as a task does, and may end by pinion_task_panic(), which is logged. Its
 * calls on the runtime count as those of an outside thread: its spawns are for
 * any worker, and refused with -ESHUTDOWN once the runtime is drained or
 * stopped, so in `before_stop` always.
 * Since: 0.1
 */
typedef void (*pinion_worker_hook_fn)(void *arg, uint32_t worker_index, void *context);

PINION_END_DECLS

#endif
