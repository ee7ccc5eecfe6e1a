/* SPDX-License-Identifier: MIT */
/*
 * The holders of an open file, and its end.
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
		holder->tell(holder->arg);
	}
	pin_lock_release(&record->lock, record->host);
	if (is_last) {
		release(record);
	}
}

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
		holder->previous = NULL;
		holder->next = record->holders;
		if (holder->next != NULL) {
			holder->next->previous = holder;
		}
		record->holders = holder;
	}
	pin_lock_release(&record->lock, record->host);
	return is_open;
}

void pin_file_record_leave(struct pin_file_record *record, struct pin_file_holder *holder)
{
	bool is_last;

	pin_lock_acquire(&record->lock, record->host);
	if (holder->next != NULL) {
		holder->next->previous = holder->previous;
	}
	if (holder->previous != NULL) {
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
