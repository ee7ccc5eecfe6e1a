/* SPDX-License-Identifier: MIT */
/*
 * The workers' arenas as a whole: how large they may be, on which rings they
 * are registered, and what is said when the machine gives less than was asked.
 *
 * Before the workers start, the memory cgroup is looked at: touching more than
 * it leaves is not an error but an OOM kill, so large buffers are given up, or
 * the creation fails. Seven eighths of what is left are used: stacks, rings,
 * the embedder and the page cache live there too.
 *
 * When all arenas are there, they are registered once, on a ring of no other
 * use, and each worker's ring clones that table, where the kernel can (see
 * io/registered_buffers.h). For that the creator and the workers meet twice:
 * workers count themselves in `started_count` when they have their memory, the
 * creator registers and sets `has_registered`, they clone and count themselves
 * again. Elsewhere each worker registers its own arena as it starts.
 *
 * A crew may grow later, so its source stays until its end, and is only read:
 * a worker in the place of one that was there at the beginning clones from it.
 * One in a place that was empty then registers its own arena alone: its reads
 * into others' memory, and theirs into its memory, go the plain way and are
 * counted.
 *
 * [PROVISION-1] creator: fill registry and source, release has_registered;
 * worker: acquire it, then read them. Without it a worker would clone from a
 * ring, or look an address up in a table, that it sees half-made. The way back,
 * count after clone and close after count, is started_count's release and
 * acquire: else the source could go while a worker still clones from it.
 *
 * Then each shortage is told in one line, with the command that ends it, for
 * all workers together.
 *
 * All but pin_provision_join() run on the creator's thread.
 */
#ifndef PIN_WORKER_ARENA_SETUP_H
#define PIN_WORKER_ARENA_SETUP_H

#include "runtime/host/cgroup.h"
#include "runtime/worker/state.h"

/* Of each worker; `config` has been completed. */
size_t pin_provision_arena_bytes(const struct pinion_config *config);

/*
 * Lowers `config->buffer_count` until all arenas fit. -ENOMEM: not even one
 * large buffer each does. Both are told.
 */
int pin_provision_shrink(
	struct pinion_config *config, const struct pin_memlimit *limit, const struct pin_log *log);

/* The same for this machine and process. */
int pin_provision_fit(struct pin_shared *shared);

/* Whether arenas are to be registered for all; fixed before workers start. */
bool pin_provision_is_shared(const struct pin_shared *shared);

/*
 * Registers all arenas, as far as may be. Every worker has its memory and waits
 * in pin_provision_join().
 */
void pin_provision_register(struct pin_shared *shared);

/* On a worker: clones what was registered, else registers its own arena. */
void pin_provision_join(struct pin_worker *worker);

/* On a worker, in its stead: its own arena alone. */
void pin_provision_register_own(struct pin_worker *worker);

/*
 * On a worker, then: its polled ring is to know what its first one knows. Where
 * the kernel does not clone, that is charged a second time.
 */
void pin_provision_register_polled(struct pin_worker *worker);

/* When no worker will join any more: the ring they cloned from goes. */
void pin_provision_close(struct pin_shared *shared);

/* Says what is less than was asked for, each in one line. */
void pin_provision_report(const struct pin_shared *shared);

/* As far as registering goes; not what workers use. */
void pin_provision_fini(struct pin_shared *shared);

#endif
