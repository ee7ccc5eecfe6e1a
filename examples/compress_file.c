/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: I/O, then work for the CPU, then I/O again. A runtime with a ring
 * reads a file, a thread pool compresses each part at the requested lane, and
 * the runtime writes the results in order. No completion waits for a
 * compression. Each part becomes a frame of its own; to zstd many frames are
 * one file.
 *
 * Try:   examples/compress_file /usr/bin/gcc /tmp/gcc.zst low
 */
#include <errno.h>
#include <pinion/pinion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

enum { PARTS = 8, PART_BYTES = 256 << 10, LEVEL = 3 };

struct part {
	struct pinion_request request; /* first, so that its task leads back here */
	struct pinion_call call;
	struct pinion_wait wait;
	uint8_t bytes[PART_BYTES] __attribute__((aligned(4096)));
	uint64_t number; /* of the part of the file */
	int frame_bytes; /* 0: not there yet */
	uint8_t frame[ZSTD_COMPRESSBOUND(PART_BYTES)];
};

/* All but compress() runs on that worker of `io` which has begun. */
static struct pinion_runtime *io;
static struct pinion_runtime *thread_pool;
static struct pinion_file from = {.fd = -1};
static struct pinion_file to = {.fd = -1};
static struct part parts[PARTS];
static uint64_t write_number; /* of the part that is written next */
static unsigned long long write_offset;
static int error;

static bool is_good(int rc)
{
	error = error == 0 && rc < 0 ? rc : error;
	return error == 0;
}

static void submit(struct part *part, uint16_t op, uint64_t offset, uint64_t length)
{
	part->request.op = op;
	part->request.file = op == PINION_OP_READ ? &from : &to;
	part->request.bytes = op == PINION_OP_READ ? part->bytes : part->frame;
	part->request.offset_bytes = offset;
	part->request.length_bytes = length;
	is_good(pinion_request_submit(io, &part->request));
}

/* Of an empty file there is one empty part. */
static void read_next(struct part *part)
{
	uint64_t offset = part->number * PART_BYTES;

	part->frame_bytes = 0;
	if (offset < from.size_bytes || part->number == 0) {
		submit(part, PINION_OP_READ, offset, PART_BYTES);
	}
}

static int compress(void *arg)
{
	struct part *part = arg;
	size_t count = ZSTD_compress(
		part->frame, sizeof(part->frame), part->bytes, (size_t)part->request.result, LEVEL);

	return ZSTD_isError(count) ? -EIO : (int)count;
}

/* Writes those whose turn it is, as far as they are there. */
static int on_compressed(struct pinion_task *task)
{
	struct part *part = (void *)((char *)task - offsetof(struct part, wait));

	part->frame_bytes = part->call.result;
	is_good(part->wait.result < 0 ? part->wait.result : part->frame_bytes);
	for (part = &parts[write_number % PARTS];
		part->number == write_number && part->frame_bytes > 0 && error == 0;
		part = &parts[++write_number % PARTS]) {
		submit(part, PINION_OP_WRITE, write_offset, (uint64_t)part->frame_bytes);
		write_offset += (unsigned long long)part->frame_bytes;
	}
	return error;
}

static int on_done(struct pinion_task *task)
{
	struct part *part = (void *)task;

	if (is_good((int)part->request.result) && part->request.op == PINION_OP_READ) {
		is_good(pinion_call_run_async(thread_pool, &part->call, io, &part->wait));
	} else if (error == 0) {
		part->number += PARTS;
		read_next(part);
	}
	return error;
}

static int on_start(struct pinion_task *task)
{
	for (struct part *part = parts; part < parts + PARTS && error == 0; part++) {
		part->number = (uint64_t)(part - parts);
		part->request.task.run = on_done;
		part->call.run = compress;
		part->call.arg = part;
		part->call.task.flags = task->flags; /* the lane */
		part->wait.task.run = on_compressed;
		part->wait.deadline_ns = UINT64_MAX;
		read_next(part);
	}
	return error;
}

int main(int argc, char **argv)
{
	const char *lane = argc > 3 ? argv[3] : "normal";
	struct pinion_file_options options;
	struct pinion_config config;
	struct pinion_task start = {.run = on_start};

	if (argc < 3 || argv[1][0] == '-') {
		fprintf(stderr, "usage: compress_file FROM TO [high|normal|low]\n");
		return 2;
	}
	start.flags = lane[0] == 'h' ? PINION_TASK_HIGH : lane[0] == 'l' ? PINION_TASK_LOW : 0;
	pinion_file_options_init(&options);
	options.flags = PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_TRUNCATE;
	pinion_config_init(&config);
	if (is_good(pinion_file_open(&from, argv[1], PINION_DIRECT_AUTO)) &&
		is_good(pinion_file_open_with(&to, argv[2], &options)) &&
		is_good(pinion_runtime_create(&config, &io)) &&
		is_good(pinion_thread_pool_create(NULL, NULL, &thread_pool))) {
		int rc = pinion_task_spawn(io, &start);

		pinion_runtime_drain(io);
		is_good(rc);
	}
	pinion_runtime_destroy(io);
	pinion_runtime_destroy(thread_pool);
	pinion_file_close(&from);
	pinion_file_close(&to);
	if (error != 0) {
		fprintf(stderr, "compress_file: %s to %s: %s\n", argv[1], argv[2],
			strerror(-error));
		return 1;
	}
	printf("%s has %llu bytes, compressed at %s\n", argv[2], write_offset, lane);
	return 0;
}
