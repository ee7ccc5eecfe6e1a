/* SPDX-License-Identifier: MIT */
/*
 * The runtimes, pools and scans of this process that were created and not yet
 * destroyed.
 *
 * A second destroy, or one of a pointer that came from elsewhere, is found by
 * the address alone: nothing of freed memory is read. A runtime finds what was
 * made from it and still lives. Only create and destroy come here.
 *
 * An address that was given to a new object of the same kind is that object.
 */
#ifndef PIN_HOST_PROCESS_LIVE_H
#define PIN_HOST_PROCESS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
