/* SPDX-License-Identifier: MIT */
/*
 * The runtimes, pools and scans that exist in this process, so that a second
 * destruction reads no freed memory.
 *
 * Create and destroy add and remove under one lock. Each change is a single
 * store to a link, so a child that was forked meanwhile finds the list whole;
 * its lock is new.
 */
#include "runtime/host/process.h"
#include "runtime/base/check.h"
#include "runtime/host/host.h"

#include <stddef.h>

static struct pin_lock lock;	/* rank 7 */
static struct pin_live *newest; /* [lock:lock] */

static const char *const kinds[] = {
	[PIN_LIVE_RUNTIME] = "runtime",
	[PIN_LIVE_POOL] = "pool",
	[PIN_LIVE_SCAN] = "scan",
};

static const char *const destroyers[] = {
	[PIN_LIVE_RUNTIME] = "pinion_runtime_destroy",
	[PIN_LIVE_POOL] = "pinion_pool_destroy",
	[PIN_LIVE_SCAN] = "pinion_scan_destroy",
};

static void forget_lock(void)
{
	pin_store_relaxed_u32(&lock.word, 0);
}

/* The link to it, or to the end of the list. */
static struct pin_live **find(enum pin_live_kind kind, const void *object)
{
	struct pin_live **link = &newest;

	while (*link != NULL && ((*link)->object != object || (*link)->kind != kind)) {
		link = &(*link)->next;
	}
	return link;
}

static _Noreturn void report_unknown(enum pin_live_kind kind, const void *object)
{
	pin_check_misused(NULL,
		"%s() called twice, or with a pointer that is no %s: %p; call it once, "
		"with what %s_create gave",
		destroyers[kind], kinds[kind], object,
		kind == PIN_LIVE_RUNTIME	? "pinion_runtime"
			: kind == PIN_LIVE_POOL ? "pinion_pool"
						: "pinion_scan");
}

void pin_live_add(
	struct pin_live *live, enum pin_live_kind kind, const void *object, const void *owner)
{
	PIN_CHECK(kind < PIN_ARRAY_COUNT(kinds));
	pin_forked_watch(forget_lock);
	pin_lock_acquire(&lock, &pin_host_linux);
	PIN_DCHECK(*find(kind, object) == NULL); /* each address is one object */
	live->kind = kind;
	live->object = object;
	live->owner = owner;
	live->next = newest;
	newest = live;
	pin_lock_release(&lock, &pin_host_linux);
}

void pin_live_check(enum pin_live_kind kind, const void *object)
{
	bool is_there;

	pin_lock_acquire(&lock, &pin_host_linux);
	is_there = *find(kind, object) != NULL;
	pin_lock_release(&lock, &pin_host_linux);
	if (!is_there) {
		report_unknown(kind, object);
	}
}

/*
 * An object that is not listed was destroyed before: reported, and fatal,
 * before its memory is read.
 */
void pin_live_remove(enum pin_live_kind kind, const void *object)
{
	struct pin_live **link;
	bool is_there;

	pin_lock_acquire(&lock, &pin_host_linux);
	link = find(kind, object);
	is_there = *link != NULL;
	if (is_there) {
		*link = (*link)->next;
	}
	PIN_DCHECK(*find(kind, object) == NULL);
	pin_lock_release(&lock, &pin_host_linux);
	if (!is_there) {
		report_unknown(kind, object);
	}
}

/*
 * One object that still belongs to `owner`, and how many others there are, for
 * the message of -EBUSY.
 */
bool pin_live_find(const void *owner, struct pin_live_found *out_found)
{
	uint32_t count = 0;

	pin_lock_acquire(&lock, &pin_host_linux);
	for (const struct pin_live *live = newest; live != NULL; live = live->next) {
		PIN_CHECK(live->kind < PIN_ARRAY_COUNT(kinds));
		if (live->owner == owner) {
			if (count == 0) {
				out_found->kind = kinds[live->kind];
				out_found->destroyer = destroyers[live->kind];
				out_found->object = live->object;
			}
			out_found->others_count = count++;
		}
	}
	pin_lock_release(&lock, &pin_host_linux);
	return count > 0;
}
