/* SPDX-License-Identifier: MIT */
/*
 * The real io/file_record.c, io/registered_files.c and worker/file_close.c, on
 * the model's heap, with steps that a mutant may leave out; and what the kernel
 * knows of files, a number in each slot of a ring.
 */
#include "runtime/base/check.h"
#include "runtime/io/registered_files.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RINGS_MAX = 4, SLOTS_MAX = 256 };

bool model_registers_files;

/* Descriptors, which are not 0 here. */
static int kept_files[RINGS_MAX][SLOTS_MAX];
static uint32_t kept_entries;

void model_files_begin(void)
{
	/* A mutant that was caught may have left some. */
	memset(kept_files, 0, sizeof(kept_files));
	kept_entries = 0;
	model_registers_files = true;
}

uint32_t model_file_slots(int fd)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < RINGS_MAX; i++) {
		for (uint32_t j = 0; j < SLOTS_MAX; j++) {
			count += kept_files[i][j] == fd ? 1 : 0;
		}
	}
	return count;
}

void model_file_slots_keep(uint32_t entry_count)
{
	kept_entries = entry_count;
}

static uint32_t submitted_count(int ring_fd)
{
	struct pin_worker *worker = pin_worker_current();

	MODEL_CHECK(worker != NULL && worker->ring.uring.ring_fd == ring_fd);
	return pin_ring_submitted(&worker->ring);
}

static int update(int ring_fd, const struct io_uring_rsrc_update *change)
{
	int fd = *(const int *)(uintptr_t)change->data;

	MODEL_CHECK(change->offset < SLOTS_MAX);
	MODEL_CHECK((fd == -1) != (kept_files[ring_fd][change->offset] == 0));
	MODEL_CHECK(fd != -1 || submitted_count(ring_fd) >= kept_entries);
	kept_files[ring_fd][change->offset] = fd == -1 ? 0 : fd;
	return 1;
}

int model_ring_register(int ring_fd, uint32_t opcode, const void *argument, uint32_t count)
{
	const struct io_uring_rsrc_register *table = argument;

	MODEL_CHECK(ring_fd >= 0 && ring_fd < RINGS_MAX);
	model_point();
	switch (opcode) {
	case IORING_REGISTER_FILES2:
		MODEL_CHECK(count == sizeof(*table) && table->nr <= SLOTS_MAX);
		memset(kept_files[ring_fd], 0, sizeof(kept_files[ring_fd]));
		kept_entries = 0;
		return 0;
	case IORING_REGISTER_FILES_UPDATE:
		return update(ring_fd, argument);
	default:
		model_fail("registering by opcode %u is not modelled", opcode);
	}
}

#define pin_lock_acquire(lock, host) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_lock_acquire") \
			? (void)0 \
			: (pin_lock_acquire)(lock, host))
#define pin_file_slot_is_awaited(slot, head) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_file_slot_is_awaited") && \
		(pin_file_slot_is_awaited)(slot, head))
#define pin_inbox_push(inbox, link) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_inbox_push") ? (void)0 \
								 : (pin_inbox_push)(inbox, link))
#define pin_wake_worker(target, waker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_worker") \
			? (void)0 \
			: (pin_wake_worker)(target, waker))
#define pin_file_record_leave(record, holder) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_file_record_leave") \
			? (void)0 \
			: (pin_file_record_leave)(record, holder))

/* SKIP: each message is taken for that of the worker that has it. */
#define pin_files_owner_of(message) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_files_owner_of") \
			? worker \
			: pin_files_owner_of(message))

#include "runtime/io/registered_files.c"
#include "runtime/worker/file_close.c"

#undef pin_file_record_leave

#include "runtime/io/file_record.c"
