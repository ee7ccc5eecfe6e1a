/* SPDX-License-Identifier: MIT */
/*
 * A record for each open file: which rings have it registered, and whether it
 * is closed.
 *
 * The opener makes it, each ring that registers the file is a holder, and the
 * last of them frees it: on any thread, under the record's lock.
 *
 * Invariant: a record outlives its descriptor, so a reused descriptor number
 * never names an old record.
 */
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/io/registered_files.h"

#include <unistd.h>

struct pin_file_record *pin_file_record_create(const struct pin_host *host)
{
	struct pin_file_record *record =
		pin_heap_allocate(host, PIN_HEAP_ALIGN, 1, sizeof(*record));

	if (record != NULL) {
		*record = (struct pin_file_record){.host = host, .process = getpid()};
	}
	return record;
}

static void release(struct pin_file_record *record)
{
	pin_heap_release(record->host, record, PIN_HEAP_ALIGN, 1, sizeof(*record));
}

/* Seen as long as a ring holds the record; then it is gone. */
static _Noreturn void report_closed_twice(struct pin_file_record *record)
{
	const struct pin_log *log = record->holders == NULL ? NULL : record->holders->log;

	/* The hook may close files. */
	pin_lock_release(&record->lock, record->host);
	pin_check_misused(log,
		"a pinion_file was closed twice, by a copy of the struct: close it once, by the "
		"struct that was opened, and copy none");
}

/*
 * Informs each ring that has the file registered; the record itself goes with
 * its last holder.
 */
void pin_file_record_close(struct pin_file_record *record)
{
	bool is_last;

	if (record == NULL) {
		return;
	}
	if (record->process != getpid()) {
		/*
		 * The lock may have been held when this child was made, and the
		 * holders are the parent's.
		 */
		release(record);
		return;
	}
	pin_lock_acquire(&record->lock, record->host);
	if (PIN_UNLIKELY(pin_load_relaxed_u32(&record->is_closed) != 0)) {
		report_closed_twice(record);
	}
	pin_store_release_u32(&record->is_closed, 1); /* [RECORD-1] */
	is_last = record->holders == NULL;
	for (struct pin_file_holder *holder = record->holders; holder != NULL;
		holder = holder->next) {
		PIN_CHECK(holder->next == NULL || holder->next->previous == holder);
		holder->tell(holder->arg);
	}
	pin_lock_release(&record->lock, record->host);
	if (is_last) {
		release(record);
	}
}

/*
 * False if the file was closed meanwhile, or in another process: then the
 * caller uses the descriptor.
 */
bool pin_file_record_hold(struct pin_file_record *record, struct pin_file_holder *holder)
{
	bool is_open;

	PIN_CHECK(holder->tell != NULL);
	if (record->process != getpid()) {
		return false; /* as above; and its close would not notify us */
	}
	pin_lock_acquire(&record->lock, record->host);
	is_open = pin_load_relaxed_u32(&record->is_closed) == 0;
	if (is_open) {
		PIN_CHECK(record->holders != holder); /* once per ring */
		holder->previous = NULL;
		holder->next = record->holders;
		if (holder->next != NULL) {
			PIN_CHECK(holder->next->previous == NULL);
			holder->next->previous = holder;
		}
		record->holders = holder;
	}
	pin_lock_release(&record->lock, record->host);
	return is_open;
}

/* The last holder of a closed file frees the record. */
void pin_file_record_leave(struct pin_file_record *record, struct pin_file_holder *holder)
{
	bool is_last;

	pin_lock_acquire(&record->lock, record->host);
	if (holder->next != NULL) {
		PIN_CHECK(holder->next->previous == holder);
		holder->next->previous = holder->previous;
	}
	if (holder->previous != NULL) {
		PIN_CHECK(holder->previous->next == holder);
		holder->previous->next = holder->next;
	} else {
		PIN_CHECK(record->holders == holder);
		record->holders = holder->next;
	}
	is_last = pin_load_relaxed_u32(&record->is_closed) != 0 && record->holders == NULL;
	pin_lock_release(&record->lock, record->host);
	if (is_last) {
		release(record);
	}
}
