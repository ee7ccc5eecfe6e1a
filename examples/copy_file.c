/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: copying a file with reads and writes in flight, past the page cache
 * where the file system allows it, and what becomes of the last block there.
 *
 * Try:   examples/copy_file /usr/bin/gcc /tmp/copy
 *
 * One request goes back and forth: it reads a part, and when that is done it
 * writes the same memory, then reads the next. Several of them are under way.
 */
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 8, PART_BYTES = 256 << 10 };

struct copy;

struct part {
	struct pinion_request request; /* first, so that its task leads back here */
	struct copy *copy;
	struct pinion_buffer buffer;
};

struct copy {
	struct pinion_task start; /* first, as above */
	struct pinion_runtime *runtime;
	struct pinion_file from;
	struct pinion_file to;
	struct part parts[PARTS];
	uint64_t next_offset;
	int error;
};

static void submit(struct part *part, uint16_t op, struct pinion_file *file, uint64_t length)
{
	int rc;

	part->request.op = op;
	part->request.file = file;
	part->request.length_bytes = length;
	rc = pinion_request_submit(part->copy->runtime, &part->request);
	part->copy->error = rc < 0 ? rc : part->copy->error;
}

static void read_next(struct part *part)
{
	struct copy *copy = part->copy;

	if (copy->next_offset >= copy->from.size_bytes || copy->error != 0) {
		pinion_buffer_release(copy->runtime, &part->buffer);
		return;
	}
	part->request.offset_bytes = copy->next_offset;
	copy->next_offset += PART_BYTES;
	submit(part, PINION_OP_READ, &copy->from, PART_BYTES);
}

static int on_done(struct pinion_task *task)
{
	struct part *part = (struct part *)task;
	struct pinion_request *request = &part->request;
	struct copy *copy = part->copy;
	uint64_t align = copy->to.offset_align_bytes;

	copy->error = request->result < 0 ? (int)request->result : copy->error;
	if (copy->error != 0 || request->op == PINION_OP_WRITE || request->result == 0) {
		read_next(part);
		return 0;
	}
	/*
	 * The same range once more, whole blocks of it; what that is too much
	 * is cut when all is written.
	 */
	submit(part, PINION_OP_WRITE, &copy->to,
		((uint64_t)request->result + align - 1) / align * align);
	return 0;
}

static int on_start(struct pinion_task *task)
{
	struct copy *copy = (struct copy *)task;

	for (int i = 0; i < PARTS && copy->error == 0; i++) {
		struct part *part = &copy->parts[i];

		copy->error = pinion_buffer_acquire(copy->runtime, PART_BYTES, &part->buffer);
		if (copy->error == 0) {
			part->copy = copy;
			part->request.task.run = on_done;
			part->request.bytes = part->buffer.bytes;
			read_next(part);
		}
	}
	return copy->error;
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "copy_file: %s: %s\n", what, strerror(-error));
	return 1;
}

static int open_both(struct copy *copy, char **argv)
{
	struct pinion_file_options options;
	int rc = pinion_file_open(&copy->from, argv[1], PINION_DIRECT_AUTO);

	if (rc < 0) {
		return fail(argv[1], rc);
	}
	pinion_file_options_init(&options);
	options.flags = PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_TRUNCATE;
	options.direct = PINION_DIRECT_ALWAYS;
	rc = pinion_file_open_with(&copy->to, argv[2], &options);
	return rc < 0 ? fail(argv[2], rc) : 0;
}

int main(int argc, char **argv)
{
	static struct copy copy = {.start.run = on_start, .from.fd = -1, .to.fd = -1};
	struct pinion_config config;
	int rc;

	if (argc != 3 || argv[1][0] == '-') {
		fprintf(stderr, "usage: copy_file FROM TO\n");
		return 2;
	}
	if (open_both(&copy, argv) != 0) {
		return 1;
	}
	pinion_config_init(&config);
	config.worker_count = 1;
	rc = pinion_runtime_create(&config, &copy.runtime);
	if (rc < 0) {
		return fail("cannot start", rc);
	}
	rc = pinion_task_spawn(copy.runtime, &copy.start);
	pinion_runtime_drain(copy.runtime);
	pinion_runtime_destroy(copy.runtime);
	if (rc == 0 && copy.error == 0) {
		rc = pinion_file_resize(&copy.to, copy.from.size_bytes);
	}
	pinion_file_close(&copy.from);
	pinion_file_close(&copy.to);
	if (rc < 0 || copy.error < 0) {
		return fail(argv[2], rc < 0 ? rc : copy.error);
	}
	printf("%llu bytes copied, written %s\n", (unsigned long long)copy.from.size_bytes,
		copy.to.is_direct ? "past the page cache" : "through the page cache");
	return 0;
}
