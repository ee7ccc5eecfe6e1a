/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint log while it is open: its file, and the frames that wait to be
 * written.
 *
 * Appenders fill `pending` under the lock. The writer takes all of it, writes
 * and syncs without the lock, and appends the SYNC that vouches for it.
 *
 * Invariant: the file has whole frames up to `written_bytes`; a write that
 * fails is cut off again, and none follows.
 */
#ifndef PIN_CHECKPOINT_CHECKPOINT_H
#define PIN_CHECKPOINT_CHECKPOINT_H

#include "runtime/base/log.h"
#include "runtime/checkpoint/frame.h"

#include <pinion/checkpoint.h>
#include <pthread.h>

struct pin_checkpoint_batch {
	uint8_t *bytes;
	size_t length;
	size_t capacity;
};

struct pinion_checkpoint {
	/* [const] after the open. */
	char *path;
	int fd;
	uint32_t flags;
	uint64_t sync_ns;
	uint64_t sync_bytes;
	struct pin_log log;
	uint8_t *header; /* payload of the frame HEADER */
	size_t header_bytes;
	struct pin_frame_survey survey; /* as it was opened */
	uint64_t epoch;
	uint64_t salvaged_bytes;
	bool has_thread;
	pthread_t thread;

	/* The caller's of pinion_checkpoint_next(). */
	struct pin_frame_reader reader;
	uint32_t gaps_passed;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t has_work;
	pthread_cond_t has_progress;
	struct pin_checkpoint_batch pending;
	uint64_t next_sequence;
	uint64_t record_count;
	uint32_t digest;
	uint64_t work_bytes;	   /* since the last sync */
	uint64_t unsynced_bytes;   /* of frames other than SYNC, since then */
	uint64_t appended_bytes;   /* of the file, those in `pending` included */
	uint64_t sync_asked_bytes; /* a caller waits for these to be durable */
	uint64_t durable_bytes;
	int error; /* sticky */
	bool is_ending;
	bool is_idle; /* the writer waits without a time */

	/* The writer's, without the lock. */
	struct pin_checkpoint_batch writing;
	uint64_t written_bytes;
	uint64_t writeback_bytes; /* the disk has been asked to write these */
};

/* Says why the log cannot be opened; returns `error`. */
int pin_checkpoint_refuse(const struct pinion_checkpoint *checkpoint, int error, const char *format,
	...) __attribute__((format(printf, 3, 4)));

/* ---- facts ---- */

/* Makes the payload of HEADER. -EINVAL: it would be too long. -ENOMEM. */
int pin_checkpoint_make_header(
	struct pinion_checkpoint *checkpoint, const struct pinion_checkpoint_config *config);

/*
 * Compares it with that of the file, or adopts that for a log that is only
 * read. -ESTALE: it is of another run. -EBADMSG, -EPROTONOSUPPORT.
 */
int pin_checkpoint_check_header(struct pinion_checkpoint *checkpoint);

/* ---- writing ---- */

/* The thread of the log. */
void *pin_checkpoint_write(void *checkpoint);

/*
 * Adds a frame to `pending`, under the lock or before there is a writer; all
 * parts together have `length` bytes. -ENOMEM: nothing has changed.
 */
int pin_checkpoint_add(struct pinion_checkpoint *checkpoint, uint32_t type,
	const struct iovec *parts, uint32_t part_count, size_t length);

/* After an append, under the lock: wakes the writer if there is a reason. */
void pin_checkpoint_wake(struct pinion_checkpoint *checkpoint);

/* Writes and syncs `pending`, before there is a writer. */
int pin_checkpoint_flush(struct pinion_checkpoint *checkpoint);

#endif
