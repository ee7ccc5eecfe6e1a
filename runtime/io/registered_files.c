/* SPDX-License-Identifier: MIT */
/*
 * A ring's table of registered files: in at the 16th use, out when the file is
 * closed.
 *
 * Used by the thread that may use the ring; a closing thread only sends a
 * message (worker/file_close.c).
 *
 * Invariant: a slot changes only when no gathered entry names it.
 */
#include "runtime/io/registered_files.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/host/kernel.h"

#include <errno.h>

static int reserve(struct pin_file_table *table)
{
	struct io_uring_rsrc_register slots = {
		.nr = table->slot_count,
		.flags = IORING_RSRC_REGISTER_SPARSE,
	};

	return table->host->ring_register(
		table->ring_fd, IORING_REGISTER_FILES2, &slots, sizeof(slots));
}

/* `fd`: what the slot is to hold, -1: nothing. */
static int put(struct pin_file_table *table, uint32_t index, int fd)
{
	struct io_uring_rsrc_update update = {
		.offset = index,
		.data = (uint64_t)(uintptr_t)&fd,
	};
	int rc = table->host->ring_register(
		table->ring_fd, IORING_REGISTER_FILES_UPDATE, &update, 1);

	PIN_CHECK(index < table->slot_count);
	PIN_CHECK(rc <= 1); /* one was given */
	if (rc < 0) {
		return rc;
	}
	return rc == 1 ? 0 : -EAGAIN;
}

/*
 * Without room for the table, or if the kernel refuses it, the ring works with
 * descriptors.
 */
int pin_file_table_init(struct pin_file_table *table, const struct pin_file_table_options *options)
{
	int rc = -EMFILE;

	PIN_CHECK(options->slot_count == 0 || pin_is_power_of_two(options->slot_count));
	*table = (struct pin_file_table){
		.host = options->host,
		.ring_fd = options->ring_fd,
		.tell = options->tell,
		.arg = options->arg,
		.log = options->log,
		.slot_count = options->slot_count,
	};
	if (table->slot_count == 0) {
		return 0;
	}
	/* The kernel takes no more than the process may have descriptors. */
	while (rc == -EMFILE && table->slot_count >= PIN_FILE_SLOTS_MIN) {
		rc = reserve(table);
		table->slot_count /= rc == -EMFILE ? 2 : 1;
	}
	if (rc == 0) {
		table->slots = pin_heap_zeroed(
			table->host, PIN_HEAP_ALIGN, table->slot_count, sizeof(*table->slots));
		rc = table->slots == NULL ? -ENOMEM : 0;
	}
	if (rc < 0) {
		table->slot_count = 0;
	}
	PIN_CHECK(table->slot_count % PIN_FILE_SET_SLOTS == 0);
	return rc;
}

/* Gives up all slots and leaves the records, on the ring's own thread. */
void pin_file_table_fini(struct pin_file_table *table)
{
	for (uint32_t i = 0; i < table->slot_count; i++) {
		struct pin_file_slot *slot = &table->slots[i];

		if (slot->record != NULL) {
			(void)put(table, i, -1);
			pin_file_record_leave(slot->record, &slot->holder);
			PIN_CHECK(table->used_count > 0);
			table->used_count--;
		}
	}
	pin_heap_release(table->host, table->slots, PIN_HEAP_ALIGN, table->slot_count,
		sizeof(*table->slots));
	table->slots = NULL;
	table->slot_count = 0;
	PIN_CHECK(table->used_count == 0);
}

/* True when it is free. */
static bool give_up(struct pin_file_table *table, struct pin_file_slot *slot, uint32_t head)
{
	struct pin_file_record *record = slot->record;

	PIN_CHECK(table->used_count > 0);
	PIN_DCHECK(record != NULL);
	PIN_DCHECK((size_t)(slot - table->slots) < table->slot_count);
	if (pin_file_slot_is_awaited(slot, head)) { /* invariant 2 */
		return false;
	}
	if (put(table, (uint32_t)(slot - table->slots), -1) < 0) {
		return false;
	}
	slot->record = NULL;
	table->used_count--;
	pin_file_record_leave(record, &slot->holder);
	return true;
}

bool pin_file_table_sweep(struct pin_file_table *table, uint32_t head)
{
	bool is_done = true;

	for (uint32_t i = 0; i < table->slot_count; i++) {
		struct pin_file_slot *slot = &table->slots[i];

		if (slot->record != NULL && pin_file_record_is_closed(slot->record)) {
			is_done &= give_up(table, slot, head);
		}
	}
	return is_done;
}

/*
 * Only within the file's own set of slots, so that a lookup compares four and
 * no more.
 */
static bool enter(struct pin_file_table *table, const struct pinion_file *file, uint32_t head)
{
	struct pin_file_record *record = pin_file_record_of(file);
	uint32_t index = pin_file_table_home(table, record);
	uint32_t end = index + PIN_FILE_SET_SLOTS;
	struct pin_file_slot *slot;

	PIN_DCHECK(end <= table->slot_count);
	while (index < end && table->slots[index].record != NULL) {
		index++;
	}
	if (index == end) {
		return false;
	}
	slot = &table->slots[index];
	slot->holder.tell = table->tell;
	slot->holder.arg = table->arg;
	slot->holder.log = table->log;
	if (!pin_file_record_hold(record, &slot->holder)) {
		return false;
	}
	if (put(table, index, file->fd) < 0) {
		pin_file_record_leave(record, &slot->holder);
		return false;
	}
	slot->record = record;
	slot->last_entry = head;
	PIN_DCHECK(!pin_file_slot_is_awaited(slot, head)); /* no entry names it yet */
	PIN_CHECK(table->used_count < table->slot_count);
	table->used_count++;
	return true;
}

/*
 * Counts uses in a small table of candidates, which files share by their
 * address: a collision only delays.
 */
bool pin_file_table_note(
	struct pin_file_table *table, const struct pinion_file *file, uint32_t head)
{
	const struct pin_file_record *record = pin_file_record_of(file);
	struct pin_file_candidate *candidate;
	bool is_in;

	if (record == NULL || table->slot_count == 0) {
		return false;
	}
	candidate = &table->candidates[((uintptr_t)record >> 4) % PIN_FILE_CANDIDATES];
	if (candidate->record != record) {
		/* Perhaps another's that is used often: it counts anew. */
		*candidate = (struct pin_file_candidate){record, PIN_FILE_USES_MIN};
	}
	PIN_DCHECK(candidate->uses_left > 0);
	candidate->uses_left--;
	if (PIN_LIKELY(candidate->uses_left > 0)) {
		return false;
	}
	is_in = enter(table, file, head);
	candidate->record = is_in ? NULL : record;
	candidate->uses_left = PIN_FILE_USES_REFUSED;
	return is_in;
}
