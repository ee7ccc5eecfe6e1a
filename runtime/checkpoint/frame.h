/* SPDX-License-Identifier: MIT */
/*
 * The format of a checkpoint log: frames, one for each record, and a reader
 * that finds what a crash or a bad disk has left of them.
 *
 * A file is a row of frames: a header of 24 bytes in the byte order of the
 * machine, the payload, and zeros up to the next multiple of 8. The checksum is
 * of everything after it, up to the end of the zeros. Sequence numbers count
 * from 0. The first frame is HEADER: the version of the format, then the facts
 * as pairs of strings, each ended by a zero.
 *
 * The writer appends SYNC when earlier bytes have become durable: how many. So
 * a bad frame is damage where a SYNC vouches for bytes after its start, and
 * else the torn end of a crash, whatever blocks after it the disk had written.
 */
#ifndef PIN_CHECKPOINT_FRAME_H
#define PIN_CHECKPOINT_FRAME_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/crc32c.h"

#include <pinion/checkpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

enum {
	PIN_CHECKPOINT_VERSION = 1,
	PIN_FRAME_MARK = 0x434b5031, /* "1PKC" as little-endian bytes */
	PIN_FRAME_ALIGN = 8,
	/* A log with more damaged ranges is refused. */
	PIN_FRAME_GAPS_MAX = 64,
};

/* Types of frames that the log itself writes; below are the callers'. */
enum pin_frame_type {
	PIN_FRAME_HEADER = 1 << 16,
	PIN_FRAME_OPEN,	    /* a run begins to write: struct pin_frame_open */
	PIN_FRAME_SYNC,	    /* the bytes before this are durable: u64 */
	PIN_FRAME_SALVAGED, /* a damaged range is passed by: struct pin_frame_gap */
	PIN_FRAME_END,	    /* the run has done everything: struct pin_frame_end */
};

struct pin_frame {
	uint32_t mark;
	uint32_t crc;
	uint32_t type;
	uint32_t length; /* of the payload, in bytes */
	uint64_t sequence;
};

/* The checksum is of what follows it. */
enum { PIN_FRAME_CRC_FROM = offsetof(struct pin_frame, type) };

struct pin_frame_open {
	uint64_t epoch; /* counts up from 1 */
	uint64_t pid;
	uint64_t time_ns; /* since 1970, for people */
};

struct pin_frame_gap {
	uint64_t from; /* offsets in the file */
	uint64_t to;
};

struct pin_frame_end {
	uint64_t record_count; /* of callers, in the file */
	uint32_t digest;       /* CRC32C over the checksums of these */
	uint32_t reserved;
};

/* Bytes of a whole frame with that payload. */
static inline size_t pin_frame_bytes(size_t payload_bytes)
{
	return sizeof(struct pin_frame) + pin_round_up(payload_bytes, PIN_FRAME_ALIGN);
}

/*
 * Writes a frame of pin_frame_bytes() at `out`, whose parts have `length` bytes
 * together. Returns its checksum. Inline: it is most of what a record costs.
 */
static inline uint32_t pin_frame_fill(uint8_t *out, uint32_t type, uint64_t sequence,
	const struct iovec *parts, uint32_t part_count, size_t length)
{
	struct pin_frame frame = {
		.mark = PIN_FRAME_MARK,
		.type = type,
		.length = (uint32_t)length,
		.sequence = sequence,
	};
	uint8_t *end = out + sizeof(frame);
	size_t bytes = pin_frame_bytes(length);
	uint64_t zeros = 0;

	PIN_CHECK(length <= PINION_CHECKPOINT_RECORD_MAX);
	/* The last word, which the payload covers but for its padding. */
	memcpy(out + bytes - sizeof(zeros), &zeros, sizeof(zeros));
	for (uint32_t i = 0; i < part_count; i++) {
		if (parts[i].iov_len > 0) {
			memcpy(end, parts[i].iov_base, parts[i].iov_len);
		}
		end += parts[i].iov_len;
	}
	PIN_DCHECK(end == out + sizeof(frame) + length);
	memcpy(out, &frame, sizeof(frame));
	frame.crc = pin_crc32c(0, out + PIN_FRAME_CRC_FROM, bytes - PIN_FRAME_CRC_FROM);
	memcpy(out + offsetof(struct pin_frame, crc), &frame.crc, sizeof(frame.crc));
	return frame.crc;
}

/* The same of parts whose length is not known. */
uint32_t pin_frame_write(uint8_t *out, uint32_t type, uint64_t sequence, const struct iovec *parts,
	uint32_t part_count);

/* ---- reading ---- */

/* A buffered reader of frames from any offset. Zero-initialise, set `fd`. */
struct pin_frame_reader {
	int fd;
	uint64_t offset; /* of the next frame */
	uint8_t *buffer;
	size_t capacity;
	uint64_t buffer_offset; /* of its first byte in the file */
	size_t buffered;
};

void pin_frame_reader_fini(struct pin_frame_reader *reader);

/*
 * Reads the frame at `reader->offset` and moves on. The payload is the
 * reader's until the next call. Returns 1; 0: the file ends there; -EBADMSG: no
 * whole frame is there, and the reader has not moved; -ENOMEM, or an error of
 * pread(2).
 */
int pin_frame_next(
	struct pin_frame_reader *reader, struct pin_frame *out_frame, const uint8_t **out_payload);

/* What the frames up to some place have said. */
struct pin_frame_state {
	uint64_t end_offset;	/* after the last frame */
	uint64_t next_sequence; /* of a frame to come */
	uint64_t record_count;	/* callers' */
	uint64_t epoch;		/* of the last run; 0: none */
	uint32_t digest;	/* of the callers' records */
	bool is_complete;	/* END is the last frame but for SYNC */
};

/* What a file has, as pin_frame_survey() finds it. */
struct pin_frame_survey {
	struct pin_frame_state state; /* of all frames that count */
	uint64_t file_bytes;	      /* more than `end_offset`: a torn end */
	/* Damaged ranges; those that no SALVAGED frame names are new. */
	struct pin_frame_gap gaps[PIN_FRAME_GAPS_MAX];
	bool gap_is_known[PIN_FRAME_GAPS_MAX];
	uint32_t gap_count;
};

/*
 * Reads a whole file. -EOVERFLOW: it has more damaged ranges than fit; others
 * as of pin_frame_next().
 */
int pin_frame_survey(int fd, struct pin_frame_survey *out_survey);

#endif
