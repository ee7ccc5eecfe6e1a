/* SPDX-License-Identifier: MIT */
/*
 * Whether a runtime was created in this process or in one it was forked from.
 *
 * A child has none of its parent's workers, so every call that would need them
 * is refused there. A counter that fork(2) itself moves in the child costs one
 * load to look at; asking for the process id would cost a system call.
 */
#ifndef PIN_HOST_PROCESS_H
#define PIN_HOST_PROCESS_H

#include "runtime/base/atomic.h"
#include "runtime/host/topology.h"

#include <stdbool.h>
#include <stdint.h>

/* Hidden: each spawn from outside reads it. */
#pragma GCC visibility push(hidden)
extern struct pin_atomic_u32 pin_forked_count; /* [W:a child after fork R:any] */
#pragma GCC visibility pop

/*
 * Keeps the count from now on; `in_child` is called in each child as well, once
 * however often it is given. Any thread.
 */
void pin_forked_watch(void (*in_child)(void));

/*
 * Between the two calls, which are short, no thread of this process forks, and
 * none watches: so a child finds all of a change or nothing. Any thread.
 */
void pin_fork_block(void);
void pin_fork_unblock(void);

static inline uint32_t pin_forked_now(void)
{
	return pin_load_relaxed_u32(&pin_forked_count);
}

/* ---- process live ---- */

/*
 * The runtimes, pools and scans of this process that were created and not yet
 * destroyed.
 *
 * A second destroy, or one of a pointer that came from elsewhere, is found by
 * the address alone: nothing of freed memory is read. A runtime finds its pools
 * and scans that still live. Only create and destroy come here.
 *
 * An address that was given to a new object of the same kind is that object.
 */

enum pin_live_kind {
	PIN_LIVE_RUNTIME,
	PIN_LIVE_POOL,
	PIN_LIVE_SCAN,
};

/* In each such object; the lock of process_live.c protects it. */
struct pin_live {
	struct pin_live *next;
	enum pin_live_kind kind;
	const void *object; /* what the caller was given */
	const void *owner;  /* the runtime it was made from, or NULL */
};

/* What of a runtime still lives. */
struct pin_live_found {
	const char *kind;      /* "pool" */
	const char *destroyer; /* "pinion_pool_destroy" */
	const void *object;    /* the one created last */
	uint32_t others_count;
};

void pin_live_add(
	struct pin_live *live, enum pin_live_kind kind, const void *object, const void *owner);

/*
 * Aborts, in words, if there is no such object: before a destroy reads any of
 * it.
 */
void pin_live_check(enum pin_live_kind kind, const void *object);

/* As pin_live_check(); from here on the object is no longer there. */
void pin_live_remove(enum pin_live_kind kind, const void *object);

/* False: nothing. */
bool pin_live_find(const void *owner, struct pin_live_found *out_found);

/* ---- process CPU claims ---- */

/*
 * CPU claims: the CPUs that runtimes of this process have bound workers to.
 *
 * Each runtime takes the best places of the machine, and so two of them, with
 * fewer workers than there are cores, would take the same ones and leave the
 * rest empty. So what others have taken comes last.
 *
 * Workers are counted by core, in one table for all runtimes that live. Two
 * that are created at the same time may not see each other, and then share
 * cores: nothing worse, so nothing is locked. A child starts with an empty
 * table, as it has none of its parent's workers.
 *
 * Any thread. What depends on the machine alone is host/topology.h's.
 */

/* The least taken first, otherwise in the order they have. */
void pin_cpu_claims_sort(struct pin_cpu_place *places, uint32_t count);

/* A worker is bound there, or no longer. */
void pin_cpu_claims_take(const struct pin_cpu_place *place);
void pin_cpu_claims_leave(const struct pin_cpu_place *place);

/* In a child: none are taken. */
void pin_cpu_claims_forget(void);

#endif
