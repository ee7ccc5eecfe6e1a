/* SPDX-License-Identifier: MIT */
/*
 * Connects a worker's ring with its table of registered files, and informs the
 * worker of files that other threads have closed.
 *
 * The worker sets the table up with its ring. The table
 * (io/registered_files.h) is the worker's alone, so a thread that closes a file
 * elsewhere leaves a message in its inbox, one for any number of files, and
 * ends its sleep.
 *
 *     closing thread                     the worker
 *     the record is closed               takes the message
 *     has_closed_files: 0 -> 1           has_closed_files -> 0
 *       if it was 0: message, wake       looks which records are closed
 *
 * [FILES-1] a closing thread that finds 1 relies on the message under way: the
 * exchange to 0 reads the value of its exchange to 1, so the check comes after
 * its close; a later one finds 0 and posts anew. Without that a file could stay
 * open.
 *
 * A worker that leaves its runtime gives up all its files, and a message for it
 * goes to the fallback worker (loop/retire.c). The fallback worker takes the
 * flag off, and sends the message on if another thread is there: its files may
 * have relied on it.
 */
#include "runtime/base/check.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"

#include <string.h>

/* Any thread, in a record's lock; the worker ends after that, if at all. */
static void tell(void *arg)
{
	struct pin_worker *worker = arg;
	struct pin_worker *self = pin_worker_current();

	if (pin_exchange_acq_rel_u32(&worker->has_closed_files, 1) != 0) { /* [FILES-1] */
		return;
	}
	PIN_DCHECK(pin_task_kind(&worker->files_message) == PIN_TASK_FILES);
	pin_inbox_push(&worker->inbox, pin_task_link(&worker->files_message));
	pin_wake_worker(worker, self != NULL && self->shared == worker->shared ? self : NULL);
}

/*
 * Without registered files reads cost a little more and nothing else changes,
 * so a refusal is one line of the log.
 */
void pin_files_start(struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;
	bool has_files = pin_kernel_has(&shared->kernel, PINION_IO_REGISTERED_FILES) &&
		!worker->ring.is_fallback;
	struct pin_file_table_options options = {
		.host = shared->host,
		.ring_fd = worker->ring.uring.ring_fd,
		.slot_count = has_files ? shared->tuning.registered_files : 0,
		.tell = tell,
		.arg = worker,
		.log = &shared->log,
	};
	int rc;

	PIN_DCHECK(worker->ring.is_initialised && worker->ring.files == NULL);
	pin_task_set_kind(&worker->files_message, PIN_TASK_FILES);
	rc = pin_file_table_init(&worker->files, &options);
	if (rc < 0) {
		pin_log(&shared->log, PINION_LOG_INFO,
			"worker %u registers no files with io_uring: %s (reads cost a little more "
			"CPU, nothing else changes)",
			worker->index, strerror(-rc));
	} else if (worker->files.slot_count > 0) {
		worker->ring.files = &worker->files;
	}
}

/*
 * The message to a worker that has left, and its files: a new worker in its
 * slot, if there is one, may rely on it.
 */
static void take_for_other(struct pin_worker *owner)
{
	(void)pin_exchange_acq_rel_u32(&owner->has_closed_files, 0); /* [FILES-1] */
	if (pin_load_acquire_u32(&owner->service) != PIN_SERVICE_OUT) {
		tell(owner);
	}
}

void pin_files_take(struct pin_worker *worker, struct pinion_task *message)
{
	struct pin_worker *owner = pin_files_owner_of(message);
	bool is_done;

	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(owner == worker || worker == worker->shared->fallback);
	if (PIN_UNLIKELY(owner != worker)) {
		take_for_other(owner);
		return;
	}
	(void)pin_exchange_acq_rel_u32(&worker->has_closed_files, 0); /* [FILES-1] */
	pin_remote_reap_enter(worker);
	is_done = pin_file_table_sweep(&worker->files, pin_ring_submitted(&worker->ring));
	pin_remote_reap_leave(worker);
	if (!is_done) {
		/* Again in the next loop, when gathered entries are sent. */
		tell(worker);
	}
}

void pin_files_end(struct pin_worker *worker)
{
	pin_file_table_fini(&worker->files);
	worker->ring.files = NULL;
}
