/* SPDX-License-Identifier: MIT */
/*
 * Files that a worker's ring has registered, and their end: the table
 * (io/registered_files.h) is the worker's alone, so who closes a file elsewhere
 * leaves a message in its inbox, one however many files that are, and ends its
 * sleep.
 *
 *     who closes                         the worker
 *     the record is closed               takes the message
 *     has_closed_files: 0 -> 1           has_closed_files -> 0
 *       if it was 0: message, wake       looks which records are closed
 *
 * [FILES-1] who finds 1 relies on the message under way: the exchange to 0
 * reads what its exchange to 1 wrote, so the look comes after its close; who
 * comes later finds 0 and posts anew. Without that a file could stay open.
 *
 * A worker that leaves its runtime gives up all its files, and a message for it
 * goes to the heir (retire.h). The heir takes the flag off, and sends the
 * message on if another thread is there: its files may have relied on it.
 */
#ifndef PIN_WORKER_FILE_CLOSE_H
#define PIN_WORKER_FILE_CLOSE_H

#include "runtime/worker/state.h"

/*
 * On the worker, once its ring is set up: has the ring keep files, as far as
 * configuration and kernel allow.
 */
void pin_files_start(struct pin_worker *worker);

static inline bool pin_files_is_message(const struct pinion_task *task)
{
	return task->private_kind == PIN_TASK_FILES;
}

/* Whose message it is. */
static inline struct pin_worker *pin_files_owner_of(struct pinion_task *message)
{
	return PIN_CONTAINER_OF(message, struct pin_worker, files_message);
}

/* On the worker, from its inbox; it may be that of one that has left. */
void pin_files_take(struct pin_worker *worker, struct pinion_task *message);

/* The worker's last look at its ring. Nobody sends it messages from then on. */
void pin_files_end(struct pin_worker *worker);

#endif
