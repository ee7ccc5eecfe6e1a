/* SPDX-License-Identifier: MIT */
/*
 * What is known of one open file besides its descriptor: which rings have it
 * registered.
 *
 * A descriptor's number may stand for another file as soon as it is closed, so
 * rings tell files apart by their records, of which each open makes one. A ring
 * that registers a file holds its record; who closes the file tells the
 * holders, each of which lets go on its own thread, as nobody else may touch
 * its ring. Who is last frees the record: the file may outlive the rings, and
 * rings their part in the file.
 *
 * Any thread, under the record's lock, which is taken when a file is registered
 * or closed and never for a request.
 *
 * Invariants: (1) after the close nobody begins to hold it. (2) a holder is
 * told once, or begins after the close and is refused. (3) it is freed when the
 * file is closed and nobody holds it.
 *
 * [RECORD-1] close (release store of is_closed, under the lock) -> the holder's
 * look at it (acquire load): who was told sees which record it was.
 */
#ifndef PIN_IO_FILE_RECORD_H
#define PIN_IO_FILE_RECORD_H

#include "runtime/base/log.h"
#include "runtime/host/lock.h"

#include <pinion/file.h>
#include <stdbool.h>
#include <sys/types.h>

/* One ring's part in a file. */
struct pin_file_holder {
	struct pin_file_holder *next; /* [lock:record] */
	struct pin_file_holder *previous;
	/* [const] while it holds; in the record's lock, short, never blocks. */
	void (*tell)(void *arg);
	void *arg;
	const struct pin_log *log; /* of whom holds it; NULL: none */
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

/* Who held it lets go; it is told nothing any more. May free the record. */
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

#endif
