/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: reading one file with four requests in flight, past the page cache
 * where that is the faster way, into registered memory of the worker.
 *
 * Try:   examples/read_file /usr/bin/gcc
 *
 * A request embeds a task: its completion is that task running, on the worker
 * that submitted it. So the counters below need no lock.
 */
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { READS = 4, READ_BYTES = 1 << 20 };

struct reader;

struct read {
	struct pinion_request request; /* first, so that its task leads back here */
	struct reader *reader;
	struct pinion_buffer buffer;
};

struct reader {
	struct pinion_task start; /* first, as above */
	struct pinion_runtime *runtime;
	struct pinion_file file;
	struct read reads[READS];
	uint64_t next_offset;
	uint64_t read_bytes;
	uint64_t line_count;
	int error;
};

/* Asks for the next part of the file, or gives the buffer back at its end. */
static void submit_next(struct read *read)
{
	struct reader *reader = read->reader;
	uint64_t left = reader->file.size_bytes - reader->next_offset;
	uint64_t align = reader->file.offset_align_bytes;
	uint64_t length = left < READ_BYTES ? left : READ_BYTES;

	if (length > 0 && reader->error == 0) {
		read->request.offset_bytes = reader->next_offset;
		/*
		 * O_DIRECT wants whole blocks; the result says how many bytes
		 * the file had.
		 */
		read->request.length_bytes = (uint32_t)((length + align - 1) / align * align);
		reader->next_offset += length;
		reader->error = pinion_request_submit(reader->runtime, &read->request);
		if (reader->error == 0) {
			return;
		}
	}
	pinion_buffer_release(reader->runtime, &read->buffer);
}

static int on_read(struct pinion_task *task)
{
	struct read *read = (struct read *)task;
	struct reader *reader = read->reader;
	int64_t got = read->request.result;

	if (got < 0) {
		reader->error = (int)got;
	}
	for (int64_t i = 0; i < got; i++) {
		reader->line_count += read->request.bytes[i] == '\n';
	}
	reader->read_bytes += got > 0 ? (uint64_t)got : 0;
	submit_next(read);
	return 0;
}

static int on_start(struct pinion_task *task)
{
	struct reader *reader = (struct reader *)task;

	for (int i = 0; i < READS && reader->error == 0; i++) {
		struct read *read = &reader->reads[i];

		reader->error = pinion_buffer_acquire(reader->runtime, READ_BYTES, &read->buffer);
		if (reader->error == 0) {
			read->reader = reader;
			read->request.task.run = on_read;
			read->request.file = &reader->file;
			read->request.bytes = read->buffer.bytes;
			submit_next(read);
		}
	}
	return reader->error;
}

static void print_log(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	if (level <= PINION_LOG_WARN) {
		fprintf(stderr, "read_file: %s\n", message);
	}
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "read_file: %s: %s\n", what, strerror(-error));
	return 1;
}

int main(int argc, char **argv)
{
	struct reader reader = {.start = {.run = on_start}};
	struct pinion_config config;
	int rc;

	if (argc != 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: read_file FILE\n");
		return 2;
	}
	rc = pinion_file_open(&reader.file, argv[1], PINION_DIRECT_AUTO);
	if (rc < 0) {
		return fail(argv[1], rc);
	}
	pinion_config_init(&config);
	config.log = print_log;
	config.worker_count = 1;
	rc = pinion_runtime_create(&config, &reader.runtime);
	if (rc < 0) {
		return fail("cannot start", rc);
	}
	rc = pinion_task_spawn(reader.runtime, &reader.start);
	/* Waits for the task, and for every read that came of it. */
	pinion_runtime_drain(reader.runtime);
	pinion_runtime_destroy(reader.runtime);
	pinion_file_close(&reader.file);
	if (rc < 0 || reader.error < 0) {
		return fail(argv[1], rc < 0 ? rc : reader.error);
	}
	printf("%s: %llu bytes, %llu lines, %s\n", argv[1], (unsigned long long)reader.read_bytes,
		(unsigned long long)reader.line_count,
		reader.file.is_direct ? "read past the page cache" : "read from the page cache");
	return 0;
}
