/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a pool of buffers that workers and a thread of your own share. The
 * thread reads a file into buffers; tasks that own them count bytes and lines
 * on the workers, and each buffer goes back by itself when its task has run.
 *
 * Try:   examples/buffer_pool /usr/bin/gcc 4
 *
 * However large the file is, there are never more than 16 buffers: the thread
 * waits in pinion_pool_acquire_wait() until a worker gives one back.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFERS = 16, BUFFER_BYTES = 64 << 10, WORKERS_MAX = BUFFERS };

/* Each worker's own, on a cache line of its own. */
struct tally {
	uint64_t read_bytes, line_count, task_count, rest[5];
};

struct piece {
	struct pinion_buffer_task task; /* first, so that it leads back here */
	uint32_t length;
};

static struct pinion_runtime *runtime;
static struct tally tallies[WORKERS_MAX];

/* As a buffer has one user at a time, so has the piece of that number. */
static struct piece pieces[BUFFERS];

static int count(struct pinion_buffer_task *task, struct pinion_buffer *buffer)
{
	struct tally *tally = &tallies[pinion_worker_index(runtime)];
	uint32_t length = ((struct piece *)task)->length;

	for (uint32_t i = 0; i < length; i++) {
		tally->line_count += buffer->bytes[i] == '\n';
	}
	tally->read_bytes += length;
	tally->task_count++;
	return 0;
}

/* One piece of the file; 0 at its end, or an error. */
static int64_t feed(struct pinion_pool *pool, int fd, uint64_t offset)
{
	/* Goes back on each return below that leaves it here. */
	PINION_AUTO_BUFFER(buffer, pool);
	int rc = pinion_pool_acquire_wait(pool, UINT64_MAX, buffer);
	struct piece *piece;
	ssize_t got;

	if (rc < 0) {
		return rc;
	}
	got = pread(fd, buffer->bytes, BUFFER_BYTES, (off_t)offset);
	if (got <= 0) {
		return got < 0 ? -errno : 0;
	}
	piece = &pieces[buffer->index];
	piece->length = (uint32_t)got;
	pinion_buffer_task_init(&piece->task, pool, buffer, count, NULL);
	rc = pinion_task_spawn(runtime, &piece->task.task);
	if (rc < 0) {
		pinion_pool_release(pool, &piece->task.buffer);
		return rc;
	}
	return got;
}

static void print_log(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	if (level <= PINION_LOG_WARN) {
		fprintf(stderr, "buffer_pool: %s\n", message);
	}
}

static int fail(const char *what, int64_t error)
{
	fprintf(stderr, "buffer_pool: %s: %s\n", what, strerror((int)-error));
	return 1;
}

int main(int argc, char **argv)
{
	struct pinion_pool_config pool_config;
	struct pinion_pool_stats stats;
	struct pinion_config config;
	struct pinion_pool *pool;
	struct tally sum = {0};
	uint64_t offset = 0;
	int workers = argc == 3 ? atoi(argv[2]) : 2;
	int64_t got;
	int fd;
	int rc;

	if (argc < 2 || argc > 3 || argv[1][0] == '-' || workers < 1 || workers > WORKERS_MAX) {
		fprintf(stderr, "usage: buffer_pool FILE [WORKERS, at most 16]\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return fail(argv[1], -errno);
	}
	pinion_config_init(&config);
	config.log = print_log;
	config.worker_count = (uint32_t)workers;
	/* Each worker's share of the pool, and its headroom, fits into this. */
	config.pool_bytes = 4 << 20;
	rc = pinion_runtime_create(&config, &runtime);
	if (rc < 0) {
		return fail("cannot start", rc);
	}
	pinion_pool_config_init(&pool_config);
	pool_config.buffer_count = BUFFERS;
	pool_config.buffer_bytes = BUFFER_BYTES;
	pool_config.local_count = 1; /* few in caches, most for the first to come */
	rc = pinion_pool_create(runtime, &pool_config, &pool);
	if (rc < 0) {
		return fail("cannot make a pool", rc);
	}
	while ((got = feed(pool, fd, offset)) > 0) {
		offset += (uint64_t)got;
	}
	pinion_runtime_drain(runtime);
	for (uint32_t i = 0; i < WORKERS_MAX; i++) {
		sum.read_bytes += tallies[i].read_bytes;
		sum.line_count += tallies[i].line_count;
		sum.task_count += tallies[i].task_count;
	}
	pinion_pool_get_stats(pool, &stats, sizeof(stats));
	printf("%s: %llu bytes, %llu lines, %llu pieces in %u buffers, %u of them back\n", argv[1],
		(unsigned long long)sum.read_bytes, (unsigned long long)sum.line_count,
		(unsigned long long)sum.task_count, (unsigned)BUFFERS, (unsigned)stats.free_count);
	rc = pinion_pool_destroy(pool);
	pinion_runtime_destroy(runtime);
	close(fd);
	return got < 0 || rc < 0 ? fail(argv[1], got < 0 ? got : rc) : 0;
}
