/* SPDX-License-Identifier: MIT */
/*
 * What a configuration has the runtime call: for the memory of its workers, and
 * on each worker when it starts, before it sleeps, at times, and when it ends.
 */
#ifndef PINION_HOOKS_H
#define PINION_HOOKS_H

#include <pinion/version.h>
#include <stddef.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/*
 * Gives one worker the memory for its arena, instead of a mapping of the
 * library's: for who has huge pages set aside, or shares memory with a device.
 *
 * Shape: at least `bytes`, a multiple of 4096, at an address that is one too
 * (of 2 MiB is better), readable and writable. What it holds is overwritten.
 * `node_index` is the NUMA node the worker is nearest to, the OS's index.
 * Owns: the memory is the runtime's until `arena_unmap`. It is used as it is:
 * not placed, not advised; who forks should have it kept out of children
 * (MADV_DONTFORK), or a child's copy can leave the parent reading into nothing.
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
 * Called once on each worker's own thread, bound and with its arena in place,
 * before it runs anything: makes what is the worker's own, its context. Memory
 * first touched here lies on the worker's node.
 *
 * Owns: `*out_context` is NULL before; whatever it is set to is handed to the
 * other hooks and by pinion_worker_context(). It is the caller's to free, in
 * `before_stop`.
 * Context: inside of pinion_runtime_create(), several workers at once; may
 * block and allocate. It has to return.
 * Errors: a negative errno fails the creation, which returns it; `before_stop`
 * is then called on those workers where this has succeeded.
 * Since: 0.1
 */
typedef int (*pinion_after_start_fn)(void *arg, uint32_t worker_index, void **out_context);

/*
 * A hook on the worker's own thread; `context` is what `after_start` made, or
 * NULL.
 *
 * Context: between tasks, never two at once on a worker. It holds up the worker
 * as a task does, and may end by pinion_task_panic(), which is logged. Its
 * calls on the runtime are those of an outside thread: what it spawns is for
 * any worker, and refused with -ESHUTDOWN once the runtime is drained or
 * stopped, so in `before_stop` always.
 * Since: 0.1
 */
typedef void (*pinion_worker_hook_fn)(void *arg, uint32_t worker_index, void *context);

PINION_END_DECLS

#endif
