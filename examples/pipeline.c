/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: three bounded stages, so that none runs ahead of the next. This
 * thread sends names of files, as far as a budget goes, through a channel;
 * another reads them into a pool's buffers; tasks count the lines. A file's
 * last task gives its unit of the budget back.
 *
 * Try:   find /usr/include -name "s*.h" -exec examples/pipeline {} +
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 2, UNDER_WAY = 8, IN_CHANNEL = 4, BUFFERS = 16, BUFFER_BYTES = 64 << 10 };

struct object {
	const char *path;
	unsigned uses; /* atomic: tasks that have not run, and the reader */
};

struct chunk {
	struct pinion_buffer_task task; /* first, so that it leads back here */
	struct object *object;
	size_t length;
};

static const uint64_t under_way[] = {UNDER_WAY}, one[] = {1};
static struct pinion_runtime *runtime;
static struct pinion_pool *pool;
static struct pinion_budget budget;
static struct pinion_channel channel;
static struct object *messages[IN_CHANNEL];
static struct chunk chunks[BUFFERS];		  /* of the buffer with that number */
static unsigned long long line_count, read_bytes; /* atomic */
static int failed_count;

static void let_go(struct object *object)
{
	if (__atomic_sub_fetch(&object->uses, 1, __ATOMIC_ACQ_REL) == 0) {
		pinion_budget_release(&budget, one);
	}
}

/* The third stage; its buffer goes back when it returns. */
static int count_lines(struct pinion_buffer_task *task, struct pinion_buffer *buffer)
{
	struct chunk *chunk = (struct chunk *)task;
	unsigned long long lines = 0;

	for (size_t i = 0; i < chunk->length; i++) {
		lines += buffer->bytes[i] == '\n';
	}
	__atomic_fetch_add(&line_count, lines, __ATOMIC_RELAXED);
	__atomic_fetch_add(&read_bytes, chunk->length, __ATOMIC_RELAXED);
	let_go(chunk->object);
	return 0;
}

/* One chunk: its length, 0 at the end, or an error. */
static ssize_t read_chunk(struct object *object, int fd)
{
	PINION_AUTO_BUFFER(buffer, pool);
	int rc = pinion_pool_acquire_wait(pool, UINT64_MAX, buffer);
	ssize_t got = rc < 0 ? rc : read(fd, buffer->bytes, BUFFER_BYTES);
	struct chunk *chunk;

	if (got <= 0) {
		return got == -1 ? -errno : got;
	}
	chunk = &chunks[buffer->index];
	chunk->object = object;
	chunk->length = (size_t)got;
	__atomic_add_fetch(&object->uses, 1, __ATOMIC_RELAXED);
	pinion_buffer_task_init(&chunk->task, pool, buffer, count_lines, NULL);
	rc = pinion_task_spawn(runtime, &chunk->task.task);
	if (rc == 0) {
		return got;
	}
	pinion_pool_release(pool, &chunk->task.buffer);
	let_go(object);
	return rc;
}

/* The second stage. */
static void *read_files(void *arg)
{
	struct object *object;

	while (pinion_channel_receive_wait(&channel, &object, UINT64_MAX) == 0) {
		int fd = open(object->path, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? -errno : 1;

		while (got > 0) {
			got = read_chunk(object, fd);
		}
		if (got < 0) {
			fprintf(stderr, "pipeline: %s: %s\n", object->path, strerror((int)-got));
			failed_count++;
		}
		if (fd >= 0) {
			close(fd);
		}
		let_go(object);
	}
	return arg;
}

static int create(void)
{
	struct pinion_pool_config pool_config;
	struct pinion_config config;
	int rc;

	pinion_config_init(&config);
	config.worker_count = WORKERS;
	config.pool_bytes = 4 << 20;
	pinion_pool_config_init(&pool_config);
	pool_config.buffer_count = BUFFERS;
	pool_config.buffer_bytes = BUFFER_BYTES;
	rc = pinion_runtime_create(&config, &runtime);
	rc = rc < 0 ? rc : pinion_pool_create(runtime, &pool_config, &pool);
	rc = rc < 0 ? rc : pinion_budget_init(&budget, runtime, under_way, 1);
	return rc < 0
		? rc
		: pinion_channel_init(&channel, runtime, messages, sizeof(messages[0]), IN_CHANNEL);
}

int main(int argc, char **argv)
{
	struct object *objects;
	struct object *object;
	pthread_t reader;
	int rc;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		puts("usage: pipeline FILE…");
		return 0;
	}
	object = objects = calloc((size_t)argc, sizeof(*objects));
	rc = objects == NULL ? -ENOMEM : create();
	if (rc < 0 || (rc = -pthread_create(&reader, NULL, read_files, NULL)) < 0) {
		fprintf(stderr, "pipeline: cannot start: %s\n", strerror(-rc));
		return 1;
	}
	/* The first stage. */
	for (int i = 1; i < argc; i++, object++) {
		*object = (struct object){.path = argv[i], .uses = 1};
		pinion_budget_acquire_wait(&budget, one, UINT64_MAX);
		pinion_channel_send_wait(&channel, &object, UINT64_MAX);
	}
	pinion_channel_close(&channel);
	pthread_join(reader, NULL);
	pinion_runtime_drain(runtime);
	printf("%d files, %llu bytes, %llu lines\n", argc - 1, read_bytes, line_count);
	pinion_pool_destroy(pool);
	pinion_runtime_destroy(runtime);
	free(objects);
	return failed_count == 0 ? 0 : 1;
}
