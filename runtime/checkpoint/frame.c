/* SPDX-License-Identifier: MIT */
/*
 * Writes frames of a checkpoint log, reads them, and surveys a whole file.
 *
 * Called by the log's owner at open, by its writer for each record.
 *
 * Invariant: no length of a file is trusted before the checksum of its frame.
 */
#include "runtime/checkpoint/frame.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/crc32c.h"

#include <errno.h>
#include <pinion/checkpoint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	READ_BYTES = 1 << 20,
};

_Static_assert(sizeof(struct pin_frame) == 24, "as the format says");

uint32_t pin_frame_write(uint8_t *out, uint32_t type, uint64_t sequence, const struct iovec *parts,
	uint32_t part_count)
{
	size_t length = 0;

	for (uint32_t i = 0; i < part_count; i++) {
		length += parts[i].iov_len;
	}
	return pin_frame_fill(out, type, sequence, parts, part_count, length);
}

/* ---- reading ---- */

void pin_frame_reader_fini(struct pin_frame_reader *reader)
{
	free(reader->buffer);
	reader->buffer = NULL;
	reader->capacity = 0;
	reader->buffered = 0;
}

static int grow(struct pin_frame_reader *reader, size_t bytes)
{
	size_t capacity = bytes > READ_BYTES ? bytes : READ_BYTES;
	uint8_t *buffer;

	if (reader->capacity >= bytes) {
		return 0;
	}
	buffer = realloc(reader->buffer, capacity);
	if (buffer == NULL) {
		return -ENOMEM;
	}
	reader->buffer = buffer;
	reader->capacity = capacity;
	return 0;
}

static ssize_t read_at(int fd, void *bytes, size_t length, uint64_t offset)
{
	ssize_t done;

	do {
		done = pread(fd, bytes, length, (off_t)offset);
	} while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}

/*
 * Makes `bytes` bytes at `offset` part of the buffer, or fewer at the file's
 * end. Returns how many there are, at most `bytes`.
 */
static ssize_t fill(struct pin_frame_reader *reader, uint64_t offset, size_t bytes)
{
	int rc = grow(reader, bytes);

	if (rc < 0) {
		return rc;
	}
	if (offset < reader->buffer_offset || offset > reader->buffer_offset + reader->buffered ||
		offset - reader->buffer_offset + bytes > reader->capacity) {
		size_t kept = 0;

		if (offset >= reader->buffer_offset &&
			offset < reader->buffer_offset + reader->buffered) {
			kept = (size_t)(reader->buffer_offset + reader->buffered - offset);
			memmove(reader->buffer, reader->buffer + (offset - reader->buffer_offset),
				kept);
		}
		reader->buffer_offset = offset;
		reader->buffered = kept;
	}
	while (offset + bytes > reader->buffer_offset + reader->buffered) {
		ssize_t done = read_at(reader->fd, reader->buffer + reader->buffered,
			reader->capacity - reader->buffered,
			reader->buffer_offset + reader->buffered);

		if (done < 0) {
			return done;
		}
		if (done == 0) {
			break;
		}
		reader->buffered += (size_t)done;
	}
	bytes = offset + bytes <= reader->buffer_offset + reader->buffered
		? bytes
		: (size_t)(reader->buffer_offset + reader->buffered - offset);
	return (ssize_t)bytes;
}

int pin_frame_next(
	struct pin_frame_reader *reader, struct pin_frame *out_frame, const uint8_t **out_payload)
{
	ssize_t there = fill(reader, reader->offset, sizeof(*out_frame));
	const uint8_t *at;
	size_t bytes;

	if (there <= 0) {
		return (int)there;
	}
	if (there < (ssize_t)sizeof(*out_frame)) {
		return -EBADMSG;
	}
	memcpy(out_frame, reader->buffer + (reader->offset - reader->buffer_offset),
		sizeof(*out_frame));
	if (out_frame->mark != PIN_FRAME_MARK || out_frame->length > PINION_CHECKPOINT_RECORD_MAX) {
		return -EBADMSG;
	}
	bytes = pin_frame_bytes(out_frame->length);
	if (bytes > READ_BYTES) {
		/* The file has to be as long, before memory is taken. */
		uint8_t last;

		there = read_at(reader->fd, &last, 1, reader->offset + bytes - 1);
		if (there <= 0) {
			return there < 0 ? (int)there : -EBADMSG;
		}
	}
	there = fill(reader, reader->offset, bytes);
	if (there < 0) {
		return (int)there;
	}
	at = reader->buffer + (reader->offset - reader->buffer_offset);
	if ((size_t)there < bytes ||
		pin_crc32c(0, at + PIN_FRAME_CRC_FROM, bytes - PIN_FRAME_CRC_FROM) !=
			out_frame->crc) {
		return -EBADMSG;
	}
	reader->offset += bytes;
	*out_payload = at + sizeof(*out_frame);
	return 1;
}

/* ---- a whole file ---- */

struct survey {
	struct pin_frame_survey *out;
	uint64_t vouched_bytes; /* durable, as frames SYNC say */
	struct pin_frame_gap salvaged[PIN_FRAME_GAPS_MAX];
	uint32_t salvaged_count;
	/* As of each gap, where the file may have to end. */
	struct pin_frame_state at_gap[PIN_FRAME_GAPS_MAX];
};

/* Whether the run had done everything, and all its records are still there. */
static bool is_true_end(
	const struct pin_frame_state *state, const struct pin_frame *frame, const uint8_t *payload)
{
	struct pin_frame_end last;

	if (frame->type != PIN_FRAME_END || frame->length != sizeof(last)) {
		return false;
	}
	memcpy(&last, payload, sizeof(last));
	return last.record_count == state->record_count && last.digest == state->digest;
}

static void take(struct survey *survey, const struct pin_frame *frame, const uint8_t *payload)
{
	struct pin_frame_state *state = &survey->out->state;
	struct pin_frame_open open;
	uint64_t durable;

	state->next_sequence = frame->sequence + 1;
	if (frame->type < PIN_FRAME_HEADER) {
		state->record_count++;
		state->digest = pin_crc32c(state->digest, &frame->crc, sizeof(frame->crc));
	}
	if (frame->type == PIN_FRAME_SYNC && frame->length == sizeof(durable)) {
		memcpy(&durable, payload, sizeof(durable));
		survey->vouched_bytes =
			durable > survey->vouched_bytes ? durable : survey->vouched_bytes;
		return;
	}
	if (frame->type == PIN_FRAME_OPEN && frame->length == sizeof(open)) {
		memcpy(&open, payload, sizeof(open));
		state->epoch = open.epoch;
	}
	if (frame->type == PIN_FRAME_SALVAGED && frame->length == sizeof(struct pin_frame_gap) &&
		survey->salvaged_count < PIN_FRAME_GAPS_MAX) {
		memcpy(&survey->salvaged[survey->salvaged_count++], payload,
			sizeof(struct pin_frame_gap));
	}
	state->is_complete = is_true_end(state, frame, payload);
}

/* Moves the reader to the next whole frame that may come now. 0: none. */
static int find_frame(struct pin_frame_reader *reader, uint64_t next_sequence)
{
	for (;;) {
		uint64_t offset = reader->offset + PIN_FRAME_ALIGN;
		const uint8_t *payload;
		struct pin_frame frame;
		uint32_t mark;
		ssize_t there = fill(reader, offset, sizeof(mark));
		int rc = -EBADMSG;

		reader->offset = offset;
		if (there < (ssize_t)sizeof(mark)) {
			return there < 0 ? (int)there : 0;
		}
		memcpy(&mark, reader->buffer + (offset - reader->buffer_offset), sizeof(mark));
		if (mark == PIN_FRAME_MARK) {
			rc = pin_frame_next(reader, &frame, &payload);
			reader->offset = offset;
		}
		if (rc == 1 && frame.sequence >= next_sequence) {
			return 1;
		}
		if (rc < 0 && rc != -EBADMSG) {
			return rc;
		}
	}
}

/* Notes a gap up to the next whole frame. 0: there is none, the file ends. */
static int pass_by(struct survey *survey, struct pin_frame_reader *reader)
{
	struct pin_frame_survey *out = survey->out;
	uint64_t from = reader->offset;
	int rc = find_frame(reader, out->state.next_sequence);

	if (rc <= 0) {
		return rc;
	}
	if (out->gap_count == PIN_FRAME_GAPS_MAX) {
		return -EOVERFLOW;
	}
	survey->at_gap[out->gap_count] = out->state;
	out->gaps[out->gap_count++] = (struct pin_frame_gap){from, reader->offset};
	/* Numbers of the frames that are lost are passed by, too. */
	out->state.next_sequence = UINT64_MAX;
	return 1;
}

/* Whether the frame may come now: after a gap any number may. */
static bool is_next(const struct pin_frame_survey *out, const struct pin_frame *frame)
{
	return out->state.next_sequence == UINT64_MAX ||
		frame->sequence == out->state.next_sequence;
}

/*
 * A gap that no frame vouches for is the torn end: only frames before it
 * counts.
 */
static void decide_gaps(struct survey *survey)
{
	struct pin_frame_survey *out = survey->out;

	for (uint32_t i = 0; i < out->gap_count; i++) {
		const struct pin_frame_gap *gap = &out->gaps[i];

		if (gap->from >= survey->vouched_bytes) {
			out->state = survey->at_gap[i];
			out->gap_count = i;
			return;
		}
		for (uint32_t k = 0; k < survey->salvaged_count; k++) {
			if (survey->salvaged[k].from == gap->from &&
				survey->salvaged[k].to == gap->to) {
				out->gap_is_known[i] = true;
			}
		}
	}
}

int pin_frame_survey(int fd, struct pin_frame_survey *out_survey)
{
	struct pin_frame_reader reader = {.fd = fd};
	struct survey *survey = calloc(1, sizeof(*survey));
	struct stat status;
	int rc = 1;

	memset(out_survey, 0, sizeof(*out_survey));
	if (survey == NULL || fstat(fd, &status) != 0) {
		rc = survey == NULL ? -ENOMEM : -errno;
		free(survey);
		return rc;
	}
	survey->out = out_survey;
	out_survey->file_bytes = (uint64_t)status.st_size;
	while (rc > 0) {
		uint64_t offset = reader.offset;
		const uint8_t *payload;
		struct pin_frame frame;

		rc = pin_frame_next(&reader, &frame, &payload);
		if (rc == 1 && !is_next(out_survey, &frame)) {
			reader.offset = offset;
			rc = -EBADMSG;
		}
		if (rc == 1) {
			take(survey, &frame, payload);
			out_survey->state.end_offset = reader.offset;
		} else if (rc == -EBADMSG) {
			rc = pass_by(survey, &reader);
		}
	}
	if (rc == 0) {
		decide_gaps(survey);
	}
	pin_frame_reader_fini(&reader);
	free(survey);
	return rc;
}
