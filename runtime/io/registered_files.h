/* SPDX-License-Identifier: MIT */
/*
 * The files that a ring has registered, so that the kernel need not look up
 * and count their descriptors for each request.
 *
 * A table of as many slots as were registered with the ring, in sets of four; a
 * file's record (file_record.c) says which set is its own. A file is registered
 * when it has been used a few times on this ring: for a file that is read once
 * or twice that would only cost time. Where its set is full, or the kernel
 * refuses, it is used by its descriptor; so is every file that the library did
 * not open.
 *
 * A closed file's slot is given up by its owner, on a message. The kernel looks
 * into a slot when an entry is submitted, and from then on the request holds
 * the file itself; so a slot may be changed as soon as the last entry that
 * names it has been submitted, even while its requests are in flight.
 *
 * Used by the thread that may use the ring.
 *
 * Invariants: (1) a slot that is found holds the very file that its record
 * stands for. (2) a slot is changed only when no entry that names it is still
 * to be submitted. (3) each slot in use holds its record.
 *
 * Source: docs/decisions/rings.md, "Files are registered at their 16th read on
 * a ring".
 */
#ifndef PIN_IO_REGISTERED_FILES_H
#define PIN_IO_REGISTERED_FILES_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/host/host.h"

#include <pinion/file.h>
#include <stdbool.h>
#include <sys/types.h>

/* ---- file record ---- */

/*
 * State of one open file besides its descriptor: which rings have it
 * registered.
 *
 * A descriptor's number may belong to another file as soon as it is closed, so
 * rings identify files by their records, of which each open makes one. A ring
 * that registers a file holds its record; the closing thread sends a message to
 * the holders, each of which lets go on its own thread, as no other may touch
 * its ring. The last holder frees the record: the file may outlive the rings,
 * and rings their part in the file.
 *
 * Any thread, under the record's lock, which is taken when a file is registered
 * or closed and never for a request.
 *
 * Invariants: (1) after the close no ring begins to hold it. (2) a holder gets
 * one message, or begins after the close and is refused. (3) it is freed when
 * the file is closed and no ring holds it.
 *
 * [RECORD-1] close (release store of is_closed, under the lock) -> the holder's
 * check of it (acquire load): a notified holder sees which record it was.
 */

/* One ring's part in a file. */
struct pin_file_holder {
	struct pin_file_holder *next; /* [lock:record] */
	struct pin_file_holder *previous;
	/* [const] while it holds; in the record's lock, short, never blocks. */
	void (*tell)(void *arg);
	void *arg;
	const struct pin_log *log; /* of the holder; NULL: none */
};

struct pin_file_record {
	/* [const] */
	const struct pin_host *host;
	pid_t process; /* a child's copy has no holders, and gets none */
	/* [W:any R:any] */
	struct pin_lock lock;		 /* rank 7 */
	struct pin_atomic_u32 is_closed; /* [W:lock holder R:any] */
	struct pin_file_holder *holders; /* [lock:lock] */
};

/* NULL where memory is short; the file is then never registered. */
struct pin_file_record *pin_file_record_create(const struct pin_host *host);

/* The file is closed, or about to be. May free it. NULL is fine. */
void pin_file_record_close(struct pin_file_record *record);

/*
 * False: the file has been closed, or it is that of a parent process. `tell`
 * and `arg` are set.
 */
bool pin_file_record_hold(struct pin_file_record *record, struct pin_file_holder *holder);

/* The holder lets go; it gets no message any more. May free the record. */
void pin_file_record_leave(struct pin_file_record *record, struct pin_file_holder *holder);

static inline bool pin_file_record_is_closed(const struct pin_file_record *record)
{
	return pin_load_acquire_u32(&record->is_closed) != 0; /* [RECORD-1] */
}

/* That of an open file, or NULL. */
static inline struct pin_file_record *pin_file_record_of(const struct pinion_file *file)
{
	return (struct pin_file_record *)(uintptr_t)file->private_;
}

/* The file has been closed, or is about to be: it has no record any more. */
static inline void pin_file_forget(struct pinion_file *file)
{
	struct pin_file_record *record = pin_file_record_of(file);

	file->private_ = 0;
	pin_file_record_close(record);
}

/* ---- registered files ---- */

enum {
	PIN_FILE_SET_SLOTS = 4,
	/* Less is not worth asking for. */
	PIN_FILE_SLOTS_MIN = 2 * PIN_FILE_SET_SLOTS,
	PIN_FILE_CANDIDATES = 64,
	/* Uses before it is registered. */
	PIN_FILE_USES_MIN = 16,
	/* After a refusal, this number more. */
	PIN_FILE_USES_REFUSED = 1024,
};

struct pin_file_slot {
	struct pin_file_record *record; /* NULL: free */
	uint32_t last_entry;		/* that names it: the queue's tail after it */
	struct pin_file_holder holder;
};

/*
 * A file that is not registered, and perhaps closed by now. If another file's
 * record has its address then, that file's count begins where this one's ended,
 * which does no harm.
 */
struct pin_file_candidate {
	const struct pin_file_record *record;
	uint32_t uses_left;
};

/* [own] the ring's */
struct pin_file_table {
	const struct pin_host *host;
	int ring_fd;
	uint32_t slot_count; /* a power of two, or 0: nothing is registered */
	uint32_t used_count;
	void (*tell)(void *arg);
	void *arg;
	const struct pin_log *log; /* may be NULL */
	struct pin_file_slot *slots;
	struct pin_file_candidate candidates[PIN_FILE_CANDIDATES];
};

struct pin_file_table_options {
	const struct pin_host *host;
	int ring_fd;
	uint32_t slot_count; /* a power of two, 0: none */
	/*
	 * Called by the thread that closes a file in the table; short, never
	 * blocks.
	 */
	void (*tell)(void *arg);
	void *arg;
	const struct pin_log *log; /* may be NULL */
};

/*
 * Reserves slots in the ring, fewer where the limit on descriptors is low. 0,
 * or why there are none; the table may be used all the same.
 */
int pin_file_table_init(struct pin_file_table *table, const struct pin_file_table_options *options);

/* Lets go of all files, when nothing is in flight any more. */
void pin_file_table_fini(struct pin_file_table *table);

/* The first of the set that the record's file belongs into. */
static inline uint32_t pin_file_table_home(
	const struct pin_file_table *table, const struct pin_file_record *record)
{
	/* Records are further apart than that; 2^64 over the golden ratio. */
	uint64_t hash = ((uint64_t)(uintptr_t)record >> 4) * 0x9e3779b97f4a7c15u;

	PIN_DCHECK(table->slot_count >= PIN_FILE_SET_SLOTS); /* a whole set */
	PIN_DCHECK(pin_is_power_of_two(table->slot_count));
	return (uint32_t)(hash >> 32) & (table->slot_count - 1) &
		~(uint32_t)(PIN_FILE_SET_SLOTS - 1);
}

/*
 * The slot of an open file, for an entry after which the submission queue's
 * tail is `tail`; or -1.
 */
static inline int pin_file_table_find(
	struct pin_file_table *table, const struct pin_file_record *record, uint32_t tail)
{
	struct pin_file_slot *set;
	uint32_t home;

	if (record == NULL || table->used_count == 0) {
		return -1;
	}
	home = pin_file_table_home(table, record);
	PIN_DCHECK(home + PIN_FILE_SET_SLOTS <= table->slot_count);
	set = &table->slots[home];
	for (uint32_t i = 0; i < PIN_FILE_SET_SLOTS; i++) {
		if (set[i].record == record) {
			set[i].last_entry = tail;
			return (int)(home + i);
		}
	}
	return -1;
}

/* An entry that names it is still to be submitted. Both numbers wrap. */
static inline bool pin_file_slot_is_awaited(const struct pin_file_slot *slot, uint32_t head)
{
	return (int32_t)(head - slot->last_entry) < 0;
}

/*
 * Counts a use of a file that was not found, and registers it when that pays:
 * true, and it will be found. `head` is the submission queue's: entries before
 * it have been submitted.
 */
bool pin_file_table_note(
	struct pin_file_table *table, const struct pinion_file *file, uint32_t head);

/*
 * Gives up the slots of closed files. False: some still have entries to be
 * submitted, or the kernel would not; to be called again.
 */
bool pin_file_table_sweep(struct pin_file_table *table, uint32_t head);

#endif
