/* SPDX-License-Identifier: MIT */
/*
 * Goal: the reader of a checkpoint log returns each frame whole however few
 * bytes a read brings, and tells the file's end, a torn frame, a disk's error
 * and a lack of memory apart; it takes no memory for a length that the file
 * does not have. A survey ends at the first damage that no SYNC vouches for. A
 * header that is too short for a version, or cannot be read, is refused so.
 * EX-51.
 * Method: files of frames; pread(2) and the calls for memory are the test's,
 * which counts them, and lets one fail.
 */
#include "tests/support/checkpoints.h"

#include "runtime/checkpoint/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

enum {
	READ_BYTES = 1 << 20, /* at once */
	HEADER_BYTES = 24,
	SMALL = 100,
};

ssize_t __real_pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

static uint32_t read_calls;
static uint32_t realloc_calls;
static size_t read_max = SIZE_MAX; /* a read brings no more */
static uint32_t reads_left;	   /* before one fails; 0: none does */
static int read_error;
static uint32_t reallocs_left;
static uint32_t callocs_left;
static uint32_t mallocs_left;

static bool fails(uint32_t *left)
{
	return *left > 0 && --*left == 0;
}

ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset)
{
	read_calls++;
	if (fails(&reads_left)) {
		errno = read_error;
		return -1;
	}
	return __real_pread(fd, bytes, length < read_max ? length : read_max, offset);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	realloc_calls++;
	return fails(&reallocs_left) ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails(&callocs_left) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_malloc(size_t bytes)
{
	return fails(&mallocs_left) ? NULL : __real_malloc(bytes);
}

static uint8_t payload[READ_BYTES * 2];
static uint8_t file[READ_BYTES * 4];
static size_t file_used;

/* Adds a frame to the file that put() writes. */
static void add(uint32_t type, uint64_t sequence, const void *bytes, size_t length)
{
	struct iovec part = {(void *)(uintptr_t)bytes, length};

	pin_frame_write(file + file_used, type, sequence, &part, 1);
	file_used += pin_frame_bytes(length);
}

static int put(void)
{
	int fd = open("log", O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);

	expect_ready("log", fd >= 0 && write(fd, file, file_used) == (ssize_t)file_used);
	file_used = 0;
	read_calls = 0;
	realloc_calls = 0;
	return fd;
}

static void expect_next(const char *what, int expected, struct pin_frame_reader *reader,
	uint64_t sequence, size_t length)
{
	struct pin_frame frame;
	const uint8_t *bytes;
	int rc = pin_frame_next(reader, &frame, &bytes);

	if (!expect_number(what, expected, rc) || rc != 1) {
		return;
	}
	expect_number("sequence", (long long)sequence, (long long)frame.sequence);
	expect_number("length", (long long)length, frame.length);
	expect_number("payload", 0, memcmp(bytes, payload, length));
}

static void finish(struct pin_frame_reader *reader)
{
	pin_frame_reader_fini(reader);
	close(reader->fd);
}

/* One read brings many frames; a frame of just what a read asks for is one. */
static void check_reads(void)
{
	struct pin_frame_reader reader = {0};

	add(1, 0, payload, SMALL);
	add(1, 1, payload, 0);
	reader.fd = put();
	expect_next("first", 1, &reader, 0, SMALL);
	expect_next("second", 1, &reader, 1, 0);
	expect_number("one read", 1, read_calls);
	expect_next("the end", 0, &reader, 0, 0);
	finish(&reader);
	add(1, 0, payload, READ_BYTES - HEADER_BYTES);
	reader = (struct pin_frame_reader){.fd = put()};
	expect_next("as long as a read", 1, &reader, 0, READ_BYTES - HEADER_BYTES);
	expect_number("one read", 1, read_calls);
	finish(&reader);
	add(1, 0, payload, sizeof(payload));
	reader = (struct pin_frame_reader){.fd = put()};
	expect_next("longer", 1, &reader, 0, sizeof(payload));
	finish(&reader);
}

/* Reads bring 7 bytes, and one is interrupted. */
static void check_short_reads(void)
{
	struct pin_frame_reader reader = {0};

	add(1, 0, payload, SMALL);
	add(1, 1, payload, 2 * SMALL);
	reader.fd = put();
	read_max = 7;
	reads_left = 3;
	read_error = EINTR;
	expect_next("first", 1, &reader, 0, SMALL);
	expect_next("second", 1, &reader, 1, 2 * SMALL);
	expect_next("the end", 0, &reader, 0, 0);
	read_max = SIZE_MAX;
	finish(&reader);
}

static void check_torn(void)
{
	struct pin_frame_reader reader = {0};

	file[file_used++] = 0;
	reader.fd = put();
	expect_next("a byte", -EBADMSG, &reader, 0, 0);
	finish(&reader);
	/* Its length is of bytes that are not there. */
	add(1, 0, payload, sizeof(payload));
	file_used = pin_frame_bytes(sizeof(payload)) - 1;
	reader = (struct pin_frame_reader){.fd = put()};
	expect_next("a byte less", -EBADMSG, &reader, 0, 0);
	expect_number("no memory for it", 1, realloc_calls);
	expect_number("stays", 0, (long long)reader.offset);
	finish(&reader);
}

static void expect_read_error(const char *what, uint32_t nth)
{
	struct pin_frame_reader reader = {0};

	add(1, 0, payload, sizeof(payload));
	reader.fd = put();
	reads_left = nth;
	read_error = EIO;
	expect_next(what, -EIO, &reader, 0, 0);
	expect_next("again", 1, &reader, 0, sizeof(payload));
	finish(&reader);
}

static void check_errors(void)
{
	struct pin_frame_survey survey;
	struct pin_frame_reader reader = {0};

	expect_read_error("of the header", 1);
	expect_read_error("of the last byte", 2);
	expect_read_error("of the rest", 3);
	add(1, 0, payload, sizeof(payload));
	reader.fd = put();
	reallocs_left = 1;
	expect_next("no memory", -ENOMEM, &reader, 0, 0);
	reallocs_left = 2;
	expect_next("none for the rest", -ENOMEM, &reader, 0, 0);
	expect_next("again", 1, &reader, 0, sizeof(payload));
	reads_left = 1;
	expect_number("survey", -EIO, pin_frame_survey(reader.fd, &survey));
	callocs_left = 1;
	expect_number("survey without memory", -ENOMEM, pin_frame_survey(reader.fd, &survey));
	finish(&reader);
	expect_number("no file", -EBADF, pin_frame_survey(-1, &survey));
}

/* The second of three frames is damaged, and perhaps durable. */
static void survey_damage(uint64_t vouched, struct pin_frame_survey *out)
{
	size_t damaged;
	int fd;

	add(1, 0, payload, SMALL);
	damaged = file_used;
	add(1, 1, payload, SMALL);
	add(1, 2, payload, SMALL);
	add(PIN_FRAME_SYNC, 3, &vouched, sizeof(vouched));
	file[damaged + HEADER_BYTES] ^= 1;
	fd = put();
	memset(out, 0xff, sizeof(*out));
	expect_number("survey", 0, pin_frame_survey(fd, out));
	close(fd);
}

static void check_surveys(void)
{
	const long long each = (long long)pin_frame_bytes(SMALL);
	struct pin_frame_survey survey;
	int fd = put();

	memset(&survey, 0xff, sizeof(survey));
	expect_number("empty", 0, pin_frame_survey(fd, &survey));
	close(fd);
	expect_number("no bytes", 0, (long long)survey.file_bytes);
	expect_number("no end", 0, (long long)survey.state.end_offset);
	expect_number("no frame", 0, (long long)survey.state.next_sequence);
	expect_number("no gap", 0, survey.gap_count);
	expect_number("not complete", 0, survey.state.is_complete);

	/* Bytes before the damage are durable, none of it. */
	survey_damage((uint64_t)each, &survey);
	expect_number("torn end", 0, survey.gap_count);
	expect_number("ends before", each, (long long)survey.state.end_offset);
	expect_number("records", 1, (long long)survey.state.record_count);
	survey_damage((uint64_t)each + 1, &survey);
	expect_number("a gap", 1, survey.gap_count);
	expect_number("from", each, (long long)survey.gaps[0].from);
	expect_number("to", 2 * each, (long long)survey.gaps[0].to);
	expect_number("new", 0, survey.gap_is_known[0]);
	expect_number("records", 2, (long long)survey.state.record_count);
	expect_number("all", (long long)survey.file_bytes, (long long)survey.state.end_offset);
}

static void expect_open(const char *what, int expected, const char *line)
{
	struct pinion_checkpoint_config config = checkpoints_config(PINION_CHECKPOINT_READ);
	struct pinion_checkpoint *checkpoint = NULL;

	expect_number(what, expected, pinion_checkpoint_open("log", &config, &checkpoint));
	expect_text(what, line, checkpoints_line);
	pinion_checkpoint_close(checkpoint, 0);
}

static void check_headers(void)
{
	static const uint8_t part_of_one[3] = {PIN_CHECKPOINT_VERSION, 0, 0};
	const uint32_t version = PIN_CHECKPOINT_VERSION;
	uint32_t reads;

	/* With the zeros after it it would be the version. */
	add(PIN_FRAME_HEADER, 0, part_of_one, sizeof(part_of_one));
	close(put());
	expect_open("no version", -EPROTONOSUPPORT,
		"checkpoint log: it has version 0 of the format, this is 1");
	add(PIN_FRAME_HEADER, 0, &version, sizeof(version));
	close(put());
	mallocs_left = 2; /* for this run's facts, and for those of the file */
	expect_open("no memory", -ENOMEM, "");
	read_calls = 0;
	expect_open("the version alone", 0, "");
	/* The reads of the survey come first. */
	reads = read_calls;
	read_error = EIO;
	reads_left = reads;
	expect_open("header", -EIO, "checkpoint log: cannot be read: Input/output error");
	add(PIN_FRAME_HEADER, 1, &version, sizeof(version));
	close(put());
	expect_open("not the first", -EBADMSG,
		"checkpoint log: it is no checkpoint log, or its start is damaged");
	add(1, 0, &version, sizeof(version));
	close(put());
	expect_open("another type", -EBADMSG,
		"checkpoint log: it is no checkpoint log, or its start is damaged");
}

int main(void)
{
	for (size_t i = 0; i < sizeof(payload); i++) {
		payload[i] = (uint8_t)(i * 7 + i / 1000);
	}
	scratch_enter("frames_are_read");
	check_reads();
	check_short_reads();
	check_torn();
	check_errors();
	check_surveys();
	check_headers();
	scratch_leave();
	return expect_status();
}
