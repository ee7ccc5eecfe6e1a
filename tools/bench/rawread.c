/* SPDX-License-Identifier: MIT */
/*
 * The pread loop. Threads are started first and let go together.
 */
#include "tools/bench/rawread.h"

#include "tools/bench/subject.h"
#include "tools/signals.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	READ_BYTES = 1 << 20,
	HUGE_BYTES = 2 << 20,
	MAPPING_BYTES = 2 * HUGE_BYTES, /* holds an aligned huge page */
};

enum gate { GATE_SHUT, GATE_OPEN, GATE_ABORT };

struct rawread_thread {
	struct rawread *rawread;
	uint32_t index;
	pthread_t thread;
	void *mapping;
	uint8_t *buffer;
	int error;
};

struct rawread {
	const struct fileset *set;
	const struct rawread_touch *touch;
	struct rawread_thread *threads;
	uint32_t thread_count;
	uint32_t parts_per_file;
	/* Threads take parts by adding one; only through __atomic builtins. */
	uint32_t next_part;
	pthread_mutex_t lock; /* of `gate` */
	pthread_cond_t moved;
	enum gate gate;
};

static int map_buffer(struct rawread_thread *thread)
{
	void *mapping = mmap(
		NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t skip;

	if (mapping == MAP_FAILED) {
		return -ENOMEM;
	}
	thread->mapping = mapping;
	skip = (HUGE_BYTES - (uintptr_t)mapping % HUGE_BYTES) % HUGE_BYTES;
	thread->buffer = (uint8_t *)mapping + skip;
	/* Without huge pages it is slower but no less right. */
	(void)madvise(thread->buffer, HUGE_BYTES, MADV_HUGEPAGE);
	memset(thread->buffer, 1, HUGE_BYTES);
	return 0;
}

int rawread_create(const struct fileset *set, uint32_t thread_count, struct rawread **out_rawread)
{
	struct rawread *rawread = calloc(1, sizeof(*rawread));
	int rc = 0;

	if (rawread == NULL) {
		return -ENOMEM;
	}
	rawread->set = set;
	pthread_mutex_init(&rawread->lock, NULL);
	pthread_cond_init(&rawread->moved, NULL);
	rawread->parts_per_file =
		set->count < thread_count ? (thread_count + set->count - 1) / set->count : 1;
	rawread->threads = calloc(thread_count, sizeof(*rawread->threads));
	rawread->thread_count = rawread->threads == NULL ? 0 : thread_count;
	if (rawread->threads == NULL) {
		rc = -ENOMEM;
	}
	for (uint32_t i = 0; rc == 0 && i < thread_count; i++) {
		rawread->threads[i].rawread = rawread;
		rawread->threads[i].index = i;
		rc = map_buffer(&rawread->threads[i]);
	}
	if (rc != 0) {
		rawread_destroy(rawread);
		return rc;
	}
	*out_rawread = rawread;
	return 0;
}

void rawread_destroy(struct rawread *rawread)
{
	if (rawread == NULL) {
		return;
	}
	for (uint32_t i = 0; i < rawread->thread_count; i++) {
		if (rawread->threads[i].mapping != NULL) {
			munmap(rawread->threads[i].mapping, MAPPING_BYTES);
		}
	}
	pthread_cond_destroy(&rawread->moved);
	pthread_mutex_destroy(&rawread->lock);
	free(rawread->threads);
	free(rawread);
}

/* Reads `length` bytes, or reports why there are fewer. */
static int read_block(int fd, uint8_t *buffer, size_t length, uint64_t offset)
{
	/* O_DIRECT takes whole blocks; the end of the file cuts the last. */
	ssize_t count = pread(fd, buffer, READ_BYTES, (off_t)offset);

	while (count < 0 && errno == EINTR) {
		count = pread(fd, buffer, READ_BYTES, (off_t)offset);
	}
	if (count < 0) {
		return -errno;
	}
	return (size_t)count < length ? -ESTALE : 0;
}

static int read_range(const struct rawread_thread *thread, const struct fileset_file *file,
	uint64_t start, uint64_t end)
{
	const struct rawread_touch *touch = thread->rawread->touch;
	int rc = 0;

	for (uint64_t offset = start; rc == 0 && offset < end; offset += READ_BYTES) {
		size_t length = end - offset < READ_BYTES ? (size_t)(end - offset) : READ_BYTES;

		rc = read_block(file->fd, thread->buffer, length, offset);
		if (rc == 0 && touch != NULL) {
			rc = touch->bytes(
				touch->arg, thread->index, thread->buffer, length, offset);
		}
		if (rc == 0 && signals_interrupted()) {
			rc = -ECANCELED;
		}
	}
	return rc;
}

static int read_part(const struct rawread_thread *thread, uint32_t part)
{
	const struct rawread *rawread = thread->rawread;
	const struct rawread_touch *touch = rawread->touch;
	const struct fileset_file *file = &rawread->set->files[part / rawread->parts_per_file];
	uint64_t index = part % rawread->parts_per_file;
	uint64_t blocks = (file->size_bytes + READ_BYTES - 1) / READ_BYTES;
	uint64_t start = blocks * index / rawread->parts_per_file * READ_BYTES;
	uint64_t end = blocks * (index + 1) / rawread->parts_per_file * READ_BYTES;
	int rc;

	if (end > file->size_bytes) {
		end = file->size_bytes;
	}
	if (start >= end) {
		return 0;
	}
	rc = touch != NULL ? touch->begin(touch->arg, thread->index) : 0;
	if (rc == 0) {
		rc = read_range(thread, file, start, end);
		if (touch != NULL) {
			touch->end(touch->arg, thread->index);
		}
	}
	return rc;
}

static bool pass_gate(struct rawread *rawread)
{
	bool is_open;

	pthread_mutex_lock(&rawread->lock);
	while (rawread->gate == GATE_SHUT) {
		pthread_cond_wait(&rawread->moved, &rawread->lock);
	}
	is_open = rawread->gate == GATE_OPEN;
	pthread_mutex_unlock(&rawread->lock);
	return is_open;
}

static void move_gate(struct rawread *rawread, enum gate gate)
{
	pthread_mutex_lock(&rawread->lock);
	rawread->gate = gate;
	pthread_cond_broadcast(&rawread->moved);
	pthread_mutex_unlock(&rawread->lock);
}

static void *thread_main(void *arg)
{
	struct rawread_thread *thread = arg;
	struct rawread *rawread = thread->rawread;
	uint32_t part_count = rawread->set->count * rawread->parts_per_file;

	thread->error = 0;
	if (!pass_gate(rawread)) {
		return NULL;
	}
	while (thread->error == 0) {
		uint32_t part = __atomic_fetch_add(&rawread->next_part, 1, __ATOMIC_RELAXED);

		if (part >= part_count) {
			break;
		}
		thread->error = read_part(thread, part);
	}
	return NULL;
}

int rawread_run(
	struct rawread *rawread, const struct rawread_touch *touch, uint64_t *out_elapsed_ns)
{
	uint32_t started = 0;
	uint64_t start_ns;
	int rc = 0;

	rawread->touch = touch;
	rawread->next_part = 0;
	rawread->gate = GATE_SHUT;
	while (rc == 0 && started < rawread->thread_count) {
		struct rawread_thread *thread = &rawread->threads[started];

		rc = -pthread_create(&thread->thread, NULL, thread_main, thread);
		started += rc == 0;
	}
	start_ns = bench_now_ns();
	move_gate(rawread, rc == 0 ? GATE_OPEN : GATE_ABORT);
	for (uint32_t i = 0; i < started; i++) {
		pthread_join(rawread->threads[i].thread, NULL);
		if (rc == 0) {
			rc = rawread->threads[i].error;
		}
	}
	*out_elapsed_ns = bench_now_ns() - start_ns;
	return rc;
}
