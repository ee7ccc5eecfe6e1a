/* SPDX-License-Identifier: MIT */
/*
 * Opens a checkpoint log, reads its records, takes new ones, closes it.
 *
 * Called by the run that owns the log; workers append.
 *
 * Invariant: a log that cannot be gone on with is left as it was.
 */
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/shared_page.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	LINE_BYTES = 400,
	/* In a second. */
	LOCK_TRIES = 100,
	/* Appenders wait while more is pending. */
	PENDING_BYTES_MAX = 64 << 20,
	FLAGS = PINION_CHECKPOINT_RESUME | PINION_CHECKPOINT_SALVAGE | PINION_CHECKPOINT_READ,
};

#define SYNC_NS_STANDARD UINT64_C(1000000000)
#define SYNC_NS_MAX (UINT64_C(1) << 62)
#define SYNC_BYTES_STANDARD (UINT64_C(1) << 30)

void pinion_checkpoint_config_init_sized(struct pinion_checkpoint_config *config, uint32_t size)
{
	struct pinion_checkpoint_config full = {
		.size = size,
		.sync_ns = SYNC_NS_STANDARD,
		.sync_bytes = SYNC_BYTES_STANDARD,
	};

	pin_sized_give(config, size, &full, sizeof(full));
}

int pin_checkpoint_refuse(
	const struct pinion_checkpoint *checkpoint, int error, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	PIN_DCHECK(error < 0);
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	pin_log(&checkpoint->log, PINION_LOG_ERROR, "checkpoint %s: %s", checkpoint->path, line);
	return error;
}

/* ---- the file that is there ---- */

/* Whether the file is what a crash may leave of a log that was just made. */
static bool is_unborn(const struct pinion_checkpoint *checkpoint)
{
	size_t bytes = pin_frame_bytes(checkpoint->header_bytes);
	uint8_t *expected = malloc(bytes);
	uint8_t *there = malloc(bytes);
	struct iovec part = {checkpoint->header, checkpoint->header_bytes};
	ssize_t count = -1;
	bool is_it = false;

	if (expected != NULL && there != NULL) {
		pin_frame_write(expected, PIN_FRAME_HEADER, 0, &part, 1);
		count = pread(checkpoint->fd, there, bytes, 0);
		is_it = count == 0 ||
			(count > 0 && count < (ssize_t)bytes &&
				memcmp(expected, there, (size_t)count) == 0);
	}
	free(expected);
	free(there);
	return is_it;
}

static int check_gaps(struct pinion_checkpoint *checkpoint)
{
	for (uint32_t i = 0; i < checkpoint->survey.gap_count; i++) {
		const struct pin_frame_gap *gap = &checkpoint->survey.gaps[i];

		if (checkpoint->survey.gap_is_known[i]) {
			continue;
		}
		if ((checkpoint->flags & PINION_CHECKPOINT_SALVAGE) == 0) {
			return pin_checkpoint_refuse(checkpoint, -EBADMSG,
				"it is damaged at offset %llu, up to %llu: what these records say "
				"is lost: salvage the others, or remove it to begin anew",
				(unsigned long long)gap->from, (unsigned long long)gap->to);
		}
		checkpoint->salvaged_bytes += gap->to - gap->from;
		pin_log(&checkpoint->log, PINION_LOG_WARN,
			"checkpoint %s: the records from offset %llu to %llu are damaged, and "
			"passed by",
			checkpoint->path, (unsigned long long)gap->from,
			(unsigned long long)gap->to);
	}
	return 0;
}

/* As is_unborn(), of a log whose facts are not known: it is only read. */
static bool ends_in_header(const struct pinion_checkpoint *checkpoint)
{
	struct pin_frame frame = {.mark = PIN_FRAME_MARK};
	uint32_t mark = PIN_FRAME_MARK;
	ssize_t count = pread(checkpoint->fd, &frame, sizeof(frame), 0);
	struct stat status;

	if (count < (ssize_t)sizeof(frame)) {
		return count >= 0 && memcmp(&frame.mark, &mark, sizeof(mark)) == 0;
	}
	return frame.mark == PIN_FRAME_MARK && frame.type == PIN_FRAME_HEADER &&
		frame.sequence == 0 && frame.length <= PINION_CHECKPOINT_FACT_BYTES_MAX &&
		fstat(checkpoint->fd, &status) == 0 &&
		(uint64_t)status.st_size < pin_frame_bytes(frame.length);
}

static int read_there(struct pinion_checkpoint *checkpoint)
{
	int rc = pin_frame_survey(checkpoint->fd, &checkpoint->survey);

	if (rc == -EOVERFLOW) {
		return pin_checkpoint_refuse(checkpoint, -EBADMSG,
			"it is damaged at more than %d places", PIN_FRAME_GAPS_MAX);
	}
	if (rc < 0) {
		return pin_checkpoint_refuse(checkpoint, rc, "cannot be read: %s", strerror(-rc));
	}
	rc = pin_checkpoint_check_header(checkpoint);
	return rc < 0 ? rc : check_gaps(checkpoint);
}

/* ---- the start ---- */

static int add_start(struct pinion_checkpoint *checkpoint)
{
	struct pin_frame_open open = {.epoch = ++checkpoint->epoch,
		.pid = (uint64_t)getpid(),
		.time_ns = pin_unix_now_ns()};
	struct iovec part = {checkpoint->header, checkpoint->header_bytes};
	int rc = 0;

	if (checkpoint->next_sequence == 0) {
		rc = pin_checkpoint_add(checkpoint, PIN_FRAME_HEADER, &part, 1, part.iov_len);
	}
	part = (struct iovec){&open, sizeof(open)};
	rc = rc < 0 ? rc : pin_checkpoint_add(checkpoint, PIN_FRAME_OPEN, &part, 1, part.iov_len);
	for (uint32_t i = 0; i < checkpoint->survey.gap_count && rc == 0; i++) {
		if (!checkpoint->survey.gap_is_known[i]) {
			part = (struct iovec){
				&checkpoint->survey.gaps[i], sizeof(struct pin_frame_gap)};
			rc = pin_checkpoint_add(
				checkpoint, PIN_FRAME_SALVAGED, &part, 1, part.iov_len);
		}
	}
	return rc;
}

/* The file's name is durable as well. */
static int sync_folder(const struct pinion_checkpoint *checkpoint)
{
	const char *slash = strrchr(checkpoint->path, '/');
	size_t length = slash == NULL ? 0 : (size_t)(slash - checkpoint->path) + 1;
	char *folder = length == 0 ? strdup(".") : strndup(checkpoint->path, length);
	int fd = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : 0;

	/* Some file systems sync no directories: EINVAL. */
	if (fd >= 0 && fsync(fd) != 0 && errno != EINVAL) {
		rc = -errno;
	}
	if (fd >= 0) {
		close(fd);
	}
	free(folder);
	return rc;
}

static int start_thread(struct pinion_checkpoint *checkpoint)
{
	sigset_t all;
	sigset_t before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&checkpoint->thread, NULL, pin_checkpoint_write, checkpoint);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	checkpoint->has_thread = rc == 0;
	return rc;
}

/* Cuts off what does not count, and begins to write. */
static int begin(struct pinion_checkpoint *checkpoint)
{
	const struct pin_frame_state *state = &checkpoint->survey.state;
	int rc = 0;

	if (checkpoint->survey.file_bytes > state->end_offset &&
		ftruncate(checkpoint->fd, (off_t)state->end_offset) != 0) {
		return pin_checkpoint_refuse(
			checkpoint, -errno, "its torn end cannot be cut: %s", strerror(errno));
	}
	checkpoint->next_sequence = state->next_sequence;
	checkpoint->record_count = state->record_count;
	checkpoint->digest = state->digest;
	checkpoint->epoch = state->epoch;
	checkpoint->written_bytes = state->end_offset;
	checkpoint->writeback_bytes = state->end_offset;
	checkpoint->appended_bytes = state->end_offset;
	rc = add_start(checkpoint);
	if (rc == 0) {
		pthread_mutex_lock(&checkpoint->lock);
		rc = pin_checkpoint_flush(checkpoint);
		pthread_mutex_unlock(&checkpoint->lock);
	}
	rc = rc < 0 ? rc : sync_folder(checkpoint);
	return rc < 0 ? rc : start_thread(checkpoint);
}

static int lock_file(struct pinion_checkpoint *checkpoint)
{
	static const struct timespec pause = {.tv_nsec = 1000000000 / LOCK_TRIES};
	int tries = 0;
	struct stat own;
	struct stat named;

	/* A process that was killed has the lock until it is gone. */
	while (flock(checkpoint->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		if (tries++ < LOCK_TRIES) {
			nanosleep(&pause, NULL);
			continue;
		}
		return pin_checkpoint_refuse(
			checkpoint, -EBUSY, "another process writes it: wait for its end");
	}
	if (fstat(checkpoint->fd, &own) != 0) {
		return pin_checkpoint_refuse(
			checkpoint, -errno, "cannot be read: %s", strerror(errno));
	}
	if (!S_ISREG(own.st_mode)) {
		return pin_checkpoint_refuse(checkpoint, -EBADMSG, "it is no plain file");
	}
	if (stat(checkpoint->path, &named) != 0 || own.st_dev != named.st_dev ||
		own.st_ino != named.st_ino) {
		return pin_checkpoint_refuse(
			checkpoint, -EBUSY, "another process has just replaced it");
	}
	return 0;
}

static int open_there(struct pinion_checkpoint *checkpoint)
{
	bool reads = (checkpoint->flags & PINION_CHECKPOINT_READ) != 0;
	int rc;

	/* The open of a pipe might wait for its other end. */
	checkpoint->fd = open(
		checkpoint->path, (reads ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (checkpoint->fd < 0) {
		return errno == ENOENT && !reads ? -ENOENT
						 : pin_checkpoint_refuse(checkpoint, -errno,
							   "cannot be opened: %s", strerror(errno));
	}
	if (reads && ends_in_header(checkpoint)) {
		pin_log(&checkpoint->log, PINION_LOG_WARN,
			"checkpoint %s: it has no records: its run was stopped as it began",
			checkpoint->path);
		return -ENODATA;
	}
	if (reads) {
		return read_there(checkpoint);
	}
	rc = lock_file(checkpoint);
	if (rc == 0 && is_unborn(checkpoint)) {
		checkpoint->survey.file_bytes = UINT64_MAX; /* whatever is there is cut off */
		return 0;
	}
	return rc < 0 ? rc : read_there(checkpoint);
}

static int make_file(struct pinion_checkpoint *checkpoint)
{
	checkpoint->fd = open(checkpoint->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (checkpoint->fd < 0) {
		return errno == EEXIST ? pin_checkpoint_refuse(checkpoint, -EEXIST,
						 "it is there already: resume it, or remove it "
						 "to begin anew")
				       : pin_checkpoint_refuse(checkpoint, -errno,
						 "cannot be made: %s", strerror(errno));
	}
	return lock_file(checkpoint);
}

static int open_file(struct pinion_checkpoint *checkpoint)
{
	bool is_new =
		(checkpoint->flags & (PINION_CHECKPOINT_RESUME | PINION_CHECKPOINT_READ)) == 0;
	int rc = is_new ? -ENOENT : open_there(checkpoint);

	if (rc == -ENOENT && (checkpoint->flags & PINION_CHECKPOINT_READ) == 0) {
		rc = make_file(checkpoint);
	}
	if (rc == 0 && (checkpoint->flags & PINION_CHECKPOINT_READ) == 0) {
		rc = begin(checkpoint);
	}
	return rc;
}

static int check_config(
	const struct pinion_checkpoint *checkpoint, const struct pinion_checkpoint_config *config)
{
	bool has_names = config->fact_count == 0 || config->facts != NULL;

	if ((config->flags & ~(uint32_t)FLAGS) != 0) {
		return pin_checkpoint_refuse(checkpoint, -EINVAL,
			"flags are %#x, of which %#x are known", config->flags, (unsigned)FLAGS);
	}
	if (config->fact_count > PINION_CHECKPOINT_FACTS_MAX || config->reserved != 0) {
		return pin_checkpoint_refuse(checkpoint, -EINVAL,
			"fact_count is %u, not 0 to %d, or reserved is set", config->fact_count,
			PINION_CHECKPOINT_FACTS_MAX);
	}
	if (config->sync_ns == 0 || config->sync_ns > SYNC_NS_MAX || config->sync_bytes == 0) {
		return pin_checkpoint_refuse(checkpoint, -EINVAL,
			"sync_ns is %llu, sync_bytes %llu: neither may be 0",
			(unsigned long long)config->sync_ns,
			(unsigned long long)config->sync_bytes);
	}
	for (uint32_t i = 0; i < config->fact_count && has_names; i++) {
		has_names = config->facts[i].name != NULL && config->facts[i].value != NULL;
	}
	return has_names
		? 0
		: pin_checkpoint_refuse(checkpoint, -EINVAL, "a fact has no name or no value");
}

static void free_all(struct pinion_checkpoint *checkpoint)
{
	if (checkpoint->fd >= 0) {
		close(checkpoint->fd);
	}
	pthread_mutex_destroy(&checkpoint->lock);
	pthread_cond_destroy(&checkpoint->has_work);
	pthread_cond_destroy(&checkpoint->has_progress);
	pin_frame_reader_fini(&checkpoint->reader);
	free(checkpoint->pending.bytes);
	free(checkpoint->writing.bytes);
	free(checkpoint->header);
	free(checkpoint->path);
	free(checkpoint);
}

static struct pinion_checkpoint *allocate(
	const char *path, const struct pinion_checkpoint_config *config)
{
	struct pinion_checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
	pthread_condattr_t attributes;

	if (checkpoint == NULL) {
		return NULL;
	}
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&checkpoint->lock, NULL);
	pthread_cond_init(&checkpoint->has_work, &attributes);
	pthread_cond_init(&checkpoint->has_progress, &attributes);
	pthread_condattr_destroy(&attributes);
	checkpoint->fd = -1;
	checkpoint->flags = config->flags;
	checkpoint->sync_ns = config->sync_ns;
	checkpoint->sync_bytes = config->sync_bytes;
	checkpoint->log = (struct pin_log){.fn = config->log, .arg = config->log_arg};
	pin_log_init(&checkpoint->log);
	checkpoint->path = strdup(path);
	if (checkpoint->path == NULL) {
		free_all(checkpoint);
		return NULL;
	}
	return checkpoint;
}

int pinion_checkpoint_open(const char *path, const struct pinion_checkpoint_config *config,
	struct pinion_checkpoint **out_checkpoint)
{
	struct pinion_checkpoint_config own;
	struct pinion_checkpoint *checkpoint;
	int rc;

	if (config->size < sizeof(own)) {
		return -EINVAL;
	}
	rc = pin_sized_take(&own, sizeof(own), config, config->size);
	if (rc < 0) {
		return rc;
	}
	checkpoint = allocate(path, &own);
	if (checkpoint == NULL) {
		return -ENOMEM;
	}
	rc = check_config(checkpoint, &own);
	rc = rc < 0 ? rc : pin_checkpoint_make_header(checkpoint, &own);
	rc = rc < 0 ? rc : open_file(checkpoint);
	if (rc < 0) {
		free_all(checkpoint);
		return rc;
	}
	checkpoint->reader.fd = checkpoint->fd;
	*out_checkpoint = checkpoint;
	return 0;
}

/* ---- reading ---- */

int pinion_checkpoint_next(
	struct pinion_checkpoint *checkpoint, struct pinion_checkpoint_record *out_record)
{
	const struct pin_frame_survey *survey = &checkpoint->survey;
	struct pin_frame_reader *reader = &checkpoint->reader;

	while (reader->offset < survey->state.end_offset) {
		struct pin_frame frame;
		const uint8_t *payload;
		int rc;

		if (checkpoint->gaps_passed < survey->gap_count &&
			reader->offset == survey->gaps[checkpoint->gaps_passed].from) {
			reader->offset = survey->gaps[checkpoint->gaps_passed++].to;
			continue;
		}
		rc = pin_frame_next(reader, &frame, &payload);
		if (rc <= 0) {
			return rc == 0 ? -EBADMSG : rc;
		}
		if (frame.type < PIN_FRAME_HEADER) {
			*out_record = (struct pinion_checkpoint_record){
				.type = frame.type,
				.sequence = frame.sequence,
				.bytes = payload,
				.length_bytes = frame.length,
				.offset_bytes = reader->offset - pin_frame_bytes(frame.length) +
					sizeof(frame),
			};
			return 1;
		}
	}
	pin_frame_reader_fini(reader);
	return 0;
}

void pinion_checkpoint_rewind(struct pinion_checkpoint *checkpoint)
{
	checkpoint->reader.offset = 0;
	checkpoint->gaps_passed = 0;
}

int pinion_checkpoint_read(const struct pinion_checkpoint *checkpoint, uint64_t offset_bytes,
	void *bytes, size_t length_bytes)
{
	size_t done = 0;

	while (done < length_bytes) {
		ssize_t count = pread(checkpoint->fd, (uint8_t *)bytes + done, length_bytes - done,
			(off_t)(offset_bytes + done));

		if (count == 0) {
			return -EBADMSG;
		}
		if (count < 0 && errno != EINTR) {
			return -errno;
		}
		done += count > 0 ? (size_t)count : 0;
	}
	return 0;
}

/* ---- writing ---- */

int pinion_checkpoint_append(struct pinion_checkpoint *checkpoint, uint32_t type,
	const struct iovec *parts, uint32_t part_count, uint64_t work_bytes)
{
	uint64_t length = 0;
	int rc;

	for (uint32_t i = 0; i < part_count; i++) {
		if (parts[i].iov_len > PINION_CHECKPOINT_RECORD_MAX) {
			return -EINVAL;
		}
		length += parts[i].iov_len;
	}
	if (type == 0 || type > PINION_CHECKPOINT_TYPE_MAX ||
		length > PINION_CHECKPOINT_RECORD_MAX) {
		return -EINVAL;
	}
	if ((checkpoint->flags & PINION_CHECKPOINT_READ) != 0) {
		return -EROFS;
	}
	pthread_mutex_lock(&checkpoint->lock);
	while (checkpoint->error == 0 && checkpoint->pending.length > PENDING_BYTES_MAX) {
		pthread_cond_wait(&checkpoint->has_progress, &checkpoint->lock);
	}
	rc = checkpoint->error;
	rc = rc < 0 ? rc : pin_checkpoint_add(checkpoint, type, parts, part_count, (size_t)length);
	if (rc == 0) {
		checkpoint->work_bytes += work_bytes;
		pin_checkpoint_wake(checkpoint);
	}
	pthread_mutex_unlock(&checkpoint->lock);
	return rc;
}

int pinion_checkpoint_sync(struct pinion_checkpoint *checkpoint)
{
	uint64_t until;
	int rc;

	if ((checkpoint->flags & PINION_CHECKPOINT_READ) != 0) {
		return -EROFS;
	}
	pthread_mutex_lock(&checkpoint->lock);
	until = checkpoint->appended_bytes;
	if (until > checkpoint->sync_asked_bytes) {
		checkpoint->sync_asked_bytes = until;
	}
	pthread_cond_signal(&checkpoint->has_work);
	while (checkpoint->error == 0 && checkpoint->durable_bytes < until) {
		pthread_cond_wait(&checkpoint->has_progress, &checkpoint->lock);
	}
	rc = checkpoint->error;
	pthread_mutex_unlock(&checkpoint->lock);
	return rc;
}

static int end(struct pinion_checkpoint *checkpoint, bool is_complete)
{
	int rc;

	pthread_mutex_lock(&checkpoint->lock);
	if (is_complete && checkpoint->error == 0) {
		struct pin_frame_end last = {
			.record_count = checkpoint->record_count, .digest = checkpoint->digest};
		struct iovec part = {&last, sizeof(last)};

		rc = pin_checkpoint_add(checkpoint, PIN_FRAME_END, &part, 1, part.iov_len);
		checkpoint->error = rc < 0 ? rc : checkpoint->error;
	}
	checkpoint->is_ending = true;
	pthread_cond_signal(&checkpoint->has_work);
	pthread_mutex_unlock(&checkpoint->lock);
	pthread_join(checkpoint->thread, NULL);
	return checkpoint->error;
}

int pinion_checkpoint_close(struct pinion_checkpoint *checkpoint, int is_complete)
{
	int rc = 0;

	if (checkpoint == NULL) {
		return 0;
	}
	if (checkpoint->has_thread) {
		rc = end(checkpoint, is_complete != 0);
	}
	free_all(checkpoint);
	return rc;
}

/* ---- what it is ---- */

void pinion_checkpoint_get_info(const struct pinion_checkpoint *checkpoint,
	struct pinion_checkpoint_info *out_info, size_t size)
{
	const struct pin_frame_survey *survey = &checkpoint->survey;
	struct pinion_checkpoint_info info = {
		.record_count = survey->state.record_count,
		.salvaged_bytes = checkpoint->salvaged_bytes,
		.epoch = checkpoint->epoch,
		.is_complete = survey->state.is_complete ? 1 : 0,
		.digest = survey->state.digest,
	};

	if (survey->file_bytes != UINT64_MAX && survey->file_bytes > survey->state.end_offset) {
		info.cut_bytes = survey->file_bytes - survey->state.end_offset;
	}
	pthread_mutex_lock((pthread_mutex_t *)&checkpoint->lock);
	info.durable_bytes = checkpoint->durable_bytes;
	pthread_mutex_unlock((pthread_mutex_t *)&checkpoint->lock);
	pin_sized_give(out_info, size, &info, sizeof(info));
}
