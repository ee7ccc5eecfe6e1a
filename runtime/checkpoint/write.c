/* SPDX-License-Identifier: MIT */
/*
 * The writer of a checkpoint log: writes what appenders have left, many records
 * at once, and makes it durable at intervals.
 *
 * A thread of the log's own, so that no worker waits for fdatasync(2).
 *
 * Invariant: a SYNC is appended only after its bytes are durable, and so
 * vouches for nothing that a crash can take.
 */
#include "runtime/base/check.h"
#include "runtime/base/crc32c.h"
#include "runtime/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	/* The writer is woken for this number of bytes, else by time. */
	BATCH_BYTES = 256 << 10,
	/* Some batches: the cost of a call is that of many pages. */
	WRITEBACK_BYTES = 1 << 20,
};

#define NS_PER_SECOND UINT64_C(1000000000)

static int reserve(struct pin_checkpoint_batch *batch, size_t bytes)
{
	size_t capacity = batch->capacity == 0 ? BATCH_BYTES : batch->capacity;
	uint8_t *memory;

	while (capacity < batch->length + bytes) {
		capacity *= 2;
	}
	if (capacity == batch->capacity) {
		return 0;
	}
	memory = realloc(batch->bytes, capacity);
	if (memory == NULL) {
		return -ENOMEM;
	}
	batch->bytes = memory;
	batch->capacity = capacity;
	return 0;
}

int pin_checkpoint_add(struct pinion_checkpoint *checkpoint, uint32_t type,
	const struct iovec *parts, uint32_t part_count, size_t length)
{
	struct pin_checkpoint_batch *batch = &checkpoint->pending;
	size_t bytes = pin_frame_bytes(length);
	uint32_t crc;

	if (bytes > batch->capacity - batch->length && reserve(batch, bytes) != 0) {
		return -ENOMEM;
	}
	crc = pin_frame_fill(batch->bytes + batch->length, type, checkpoint->next_sequence, parts,
		part_count, length);
	if (type < PIN_FRAME_HEADER) {
		checkpoint->record_count++;
		checkpoint->digest = pin_crc32c(checkpoint->digest, &crc, sizeof(crc));
	}
	batch->length += bytes;
	checkpoint->next_sequence++;
	checkpoint->appended_bytes += bytes;
	checkpoint->unsynced_bytes += type == PIN_FRAME_SYNC ? 0 : bytes;
	return 0;
}

/*
 * The writer waits without a time while nothing is there to be synced, and for
 * the next sync otherwise.
 */
void pin_checkpoint_wake(struct pinion_checkpoint *checkpoint)
{
	if (checkpoint->is_idle || checkpoint->pending.length >= BATCH_BYTES ||
		checkpoint->work_bytes >= checkpoint->sync_bytes) {
		checkpoint->is_idle = false;
		pthread_cond_signal(&checkpoint->has_work);
	}
}

/* ---- the file ---- */

/*
 * Another process that writes to the file has ignored the lock, or the file
 * system has none.
 */
static int check_size(const struct pinion_checkpoint *checkpoint)
{
	struct stat status;

	if (fstat(checkpoint->fd, &status) != 0) {
		return -errno;
	}
	return (uint64_t)status.st_size == checkpoint->written_bytes ? 0 : -EBUSY;
}

/* So that the next sync has less to wait for; a hint. */
static void start_writeback(struct pinion_checkpoint *checkpoint)
{
	uint64_t from = checkpoint->writeback_bytes;

	if (checkpoint->written_bytes - from >= WRITEBACK_BYTES) {
		checkpoint->writeback_bytes = checkpoint->written_bytes;
		(void)sync_file_range(checkpoint->fd, (off_t)from,
			(off_t)(checkpoint->written_bytes - from), SYNC_FILE_RANGE_WRITE);
	}
}

/* All of the batch, or, with the error of a write, none of it. */
static int write_batch(struct pinion_checkpoint *checkpoint)
{
	const struct pin_checkpoint_batch *batch = &checkpoint->writing;
	size_t done = 0;
	int rc = check_size(checkpoint);

	while (rc == 0 && done < batch->length) {
		ssize_t count = pwrite(checkpoint->fd, batch->bytes + done, batch->length - done,
			(off_t)(checkpoint->written_bytes + done));

		if (count > 0) {
			done += (size_t)count;
		} else if (count == 0 || errno != EINTR) {
			rc = count == 0 ? -EIO : -errno;
		}
	}
	if (rc == 0) {
		checkpoint->written_bytes += done;
		start_writeback(checkpoint);
	} else if (done > 0 && ftruncate(checkpoint->fd, (off_t)checkpoint->written_bytes) != 0) {
		/* The torn end is cut when the log is opened again. */
		pin_log(&checkpoint->log, PINION_LOG_WARN,
			"checkpoint %s: a torn end of %zu bytes stays until it is resumed: %s",
			checkpoint->path, done, strerror(errno));
	}
	return rc;
}

static int sync_file(struct pinion_checkpoint *checkpoint)
{
	int rc;

	do {
		rc = fdatasync(checkpoint->fd);
	} while (rc != 0 && errno == EINTR);
	checkpoint->writeback_bytes = checkpoint->written_bytes;
	return rc == 0 ? 0 : -errno;
}

static void say_error(const struct pinion_checkpoint *checkpoint, int error)
{
	pin_log(&checkpoint->log, PINION_LOG_ERROR,
		error == -EBUSY ? "checkpoint %s: another process has written to it: nothing is "
				  "recorded from offset %llu on (%s)"
				: "checkpoint %s: cannot be written: nothing is recorded from "
				  "offset %llu on: %s",
		checkpoint->path, (unsigned long long)checkpoint->written_bytes, strerror(-error));
}

/* ---- the thread ---- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* Whether bytes that wait are to become durable now. */
static bool is_sync_due(const struct pinion_checkpoint *checkpoint, uint64_t last_ns)
{
	if (checkpoint->sync_asked_bytes > checkpoint->durable_bytes) {
		return true;
	}
	return checkpoint->unsynced_bytes > 0 &&
		(checkpoint->is_ending || checkpoint->work_bytes >= checkpoint->sync_bytes ||
			now_ns() - last_ns >= checkpoint->sync_ns);
}

/* Waits, until the next sync at most. */
static void await_work(struct pinion_checkpoint *checkpoint, uint64_t last_ns)
{
	uint64_t until_ns = last_ns + checkpoint->sync_ns;
	struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SECOND),
		.tv_nsec = (long)(until_ns % NS_PER_SECOND)};

	if (checkpoint->unsynced_bytes == 0) {
		checkpoint->is_idle = true;
		pthread_cond_wait(&checkpoint->has_work, &checkpoint->lock);
	} else {
		pthread_cond_timedwait(&checkpoint->has_work, &checkpoint->lock, &until);
	}
}

/*
 * Writes all pending bytes, and syncs them if that is due. Under the lock,
 * which it gives up meanwhile.
 */
static void write_pending(struct pinion_checkpoint *checkpoint, bool has_to_sync)
{
	struct pin_checkpoint_batch batch = checkpoint->pending;
	uint64_t durable;
	int rc;

	checkpoint->pending = checkpoint->writing;
	checkpoint->pending.length = 0;
	checkpoint->writing = batch;
	if (has_to_sync) {
		checkpoint->work_bytes = 0;
		checkpoint->unsynced_bytes = 0;
	}
	pthread_mutex_unlock(&checkpoint->lock);
	rc = write_batch(checkpoint);
	if (rc == 0 && has_to_sync) {
		rc = sync_file(checkpoint);
	}
	durable = checkpoint->written_bytes;
	if (rc != 0) {
		say_error(checkpoint, rc);
	}
	pthread_mutex_lock(&checkpoint->lock);
	if (rc != 0) {
		checkpoint->error = rc;
	} else if (has_to_sync) {
		checkpoint->durable_bytes = durable;
	}
	pthread_cond_broadcast(&checkpoint->has_progress);
}

/* In the next batch; where there is no memory for it, a later one vouches. */
static void vouch(struct pinion_checkpoint *checkpoint)
{
	uint64_t durable = checkpoint->durable_bytes;
	struct iovec part = {&durable, sizeof(durable)};

	(void)pin_checkpoint_add(checkpoint, PIN_FRAME_SYNC, &part, 1, part.iov_len);
}

int pin_checkpoint_flush(struct pinion_checkpoint *checkpoint)
{
	write_pending(checkpoint, true);
	if (checkpoint->error == 0) {
		vouch(checkpoint);
	}
	return checkpoint->error;
}

void *pin_checkpoint_write(void *arg)
{
	struct pinion_checkpoint *checkpoint = arg;
	uint64_t last_ns = now_ns();

	pthread_mutex_lock(&checkpoint->lock);
	while (checkpoint->error == 0) {
		bool is_due = is_sync_due(checkpoint, last_ns);

		if (is_due || checkpoint->pending.length >= BATCH_BYTES) {
			write_pending(checkpoint, is_due);
			if (is_due && checkpoint->error == 0) {
				last_ns = now_ns();
				vouch(checkpoint);
			}
		} else if (checkpoint->is_ending) {
			if (checkpoint->pending.length == 0) {
				break;
			}
			write_pending(checkpoint, false);
		} else {
			await_work(checkpoint, last_ns);
		}
	}
	pthread_mutex_unlock(&checkpoint->lock);
	return NULL;
}
