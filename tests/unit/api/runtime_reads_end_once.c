/* SPDX-License-Identifier: MIT */
/*
 * Goal: each read's task is entered exactly once, with the file's bytes or an
 * error, at every I/O level, also when the runtime is drained or stopped while
 * reads are in flight; buffers acquired are registered memory and bounded. A
 * read ends on the worker that submitted it. W22, W33.
 * Method: tasks that read a file in a chain, several at once per worker; for
 * the stop, reads of a pipe without a writer.
 */
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <semaphore.h>

enum {
	READERS = 8,
	READS_EACH = 100,
	BLOCK = 4096,
	BLOCKS = 64,
	PIPE_READS = 20,
	LIMIT_SECONDS = 60,
};

struct reader {
	struct pinion_request request;
	struct pinion_task start;
	struct pinion_buffer buffer;
	uint32_t number;
	uint32_t read_count;
	int worker_index;
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static uint8_t content[BLOCKS * BLOCK];
static struct reader readers[READERS];
static struct pin_atomic_u32 wrong_count;
static struct pin_atomic_u32 ended_count;

static void note_wrong(bool is_wrong)
{
	if (is_wrong) {
		pin_fetch_add_acq_rel_u32(&wrong_count, 1);
	}
}

static uint64_t block_of(const struct reader *reader)
{
	return (reader->number * 7 + reader->read_count * 13) % BLOCKS;
}

static int read_next(struct reader *reader)
{
	int rc;

	reader->request.file = &file;
	reader->request.bytes = reader->buffer.bytes;
	reader->request.offset_bytes = block_of(reader) * BLOCK;
	reader->request.length_bytes = BLOCK;
	reader->worker_index = pinion_worker_index(runtime);
	rc = pinion_request_submit(runtime, &reader->request);
	note_wrong(rc != 0);
	return rc;
}

static int has_read(struct pinion_task *task)
{
	struct reader *reader = PIN_CONTAINER_OF(task, struct reader, request.task);

	note_wrong(reader->request.result != BLOCK ||
		memcmp(reader->buffer.bytes, content + block_of(reader) * BLOCK, BLOCK) != 0);
	note_wrong(pinion_worker_index(runtime) != reader->worker_index);
	reader->read_count++;
	if (reader->read_count < READS_EACH) {
		return read_next(reader);
	}
	pinion_buffer_release(runtime, &reader->buffer);
	note_wrong(reader->buffer.bytes != NULL);
	pin_fetch_add_acq_rel_u32(&ended_count, 1);
	return 0;
}

static int start_reader(struct pinion_task *task)
{
	struct reader *reader = PIN_CONTAINER_OF(task, struct reader, start);
	int rc = pinion_buffer_acquire(runtime, BLOCK, &reader->buffer);

	if (rc == -EAGAIN) {
		return pinion_task_spawn(runtime, task);
	}
	note_wrong(rc != 0 || (uintptr_t)reader->buffer.bytes % 4096 != 0);
	return read_next(reader);
}

static void check_reads(uint32_t io_level, uint32_t direct)
{
	struct pinion_runtime_stats counters;
	struct pinion_runtime_info facts;
	struct pinion_buffer buffer;

	runtime = runtimes_start(2, io_level);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	expect_number("facts: workers", 2, facts.worker_count);
	if (io_level == PINION_IO_FALLBACK) {
		expect_number("facts: ring", 0, facts.uses_ring);
		expect_text("facts: doorbell", "none", facts.doorbell);
		expect_true("facts: cause", facts.fallback_cause != NULL);
	} else if (facts.uses_ring != 0) {
		expect_true("facts: doorbell", strcmp(facts.doorbell, "none") != 0);
		expect_true("facts: cause", facts.fallback_cause == NULL);
	}
	expect_number("buffer outside", -EPERM, pinion_buffer_acquire(runtime, 1, &buffer));
	expect_number("open", 0, pinion_file_open(&file, "file", direct));
	pin_store_release_u32(&ended_count, 0);
	for (uint32_t i = 0; i < READERS; i++) {
		readers[i] = (struct reader){
			.request.task.run = has_read,
			.start.run = start_reader,
			.number = i,
		};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &readers[i].start));
	}
	/* At once: drain waits for the reads and what they submit. */
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number(
		"readers that came to their end", READERS, pin_load_acquire_u32(&ended_count));
	expect_number("wrong results", 0, pin_load_acquire_u32(&wrong_count));
	counters = runtimes_counters(runtime);
	expect_number("submitted", READERS * READS_EACH, (long long)counters.requests_submitted);
	expect_number("completed", READERS * READS_EACH, (long long)counters.requests_completed);
	expect_number("bytes", READERS * READS_EACH * BLOCK, (long long)counters.read_bytes);
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
}

/* ---- stopped in mid-flight ---- */

static struct pinion_request pipe_requests[PIPE_READS];
static uint8_t pipe_bytes[PIPE_READS];
static sem_t all_submitted;

static int pipe_has_ended(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);

	note_wrong(request->result != -ECANCELED && request->result != 1);
	/*
	 * A cancelled read was stopped; the read that got its byte may be
	 * earlier.
	 */
	note_wrong(request->result < 0 && pinion_request_submit(runtime, request) != -ESHUTDOWN);
	pin_fetch_add_acq_rel_u32(&ended_count, 1);
	return 0;
}

static int submit_pipe_reads(struct pinion_task *task)
{
	(void)task;
	for (int i = 0; i < PIPE_READS; i++) {
		pipe_requests[i] = (struct pinion_request){
			.task.run = pipe_has_ended,
			.file = &file,
			.bytes = &pipe_bytes[i],
			.length_bytes = 1,
		};
		note_wrong(pinion_request_submit(runtime, &pipe_requests[i]) != 0);
	}
	sem_post(&all_submitted);
	return 0;
}

static void check_stop(bool destroy_only)
{
	struct pinion_task task = {.run = submit_pipe_reads};
	struct pinion_runtime_info facts;
	int ends[2];

	runtime = runtimes_start(2, PINION_IO_AUTO);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (facts.uses_ring == 0) {
		pinion_runtime_destroy(runtime);
		return;
	}
	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	pin_store_release_u32(&ended_count, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	while (sem_wait(&all_submitted) < 0) {
	}
	expect_ready("write", write(ends[1], "x", 1) == 1);
	if (!destroy_only) {
		expect_number("stop", 0, pinion_runtime_stop(runtime));
	}
	pinion_runtime_destroy(runtime);
	expect_number("reads ended by the stop", PIPE_READS, pin_load_acquire_u32(&ended_count));
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	int fd;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("runtime_reads_end_once");
	for (size_t i = 0; i < sizeof(content); i++) {
		content[i] = (uint8_t)(i * 31 + i / BLOCK);
	}
	fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	expect_ready("file", fd >= 0 && write(fd, content, sizeof(content)) == sizeof(content));
	expect_ready("fsync", fsync(fd) == 0);
	close(fd);
	expect_ready("semaphore", sem_init(&all_submitted, 0, 0) == 0);
	for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER; direct++) {
		check_reads(PINION_IO_AUTO, direct);
		check_reads(PINION_IO_FALLBACK, direct);
	}
	for (int i = 0; i < 20; i++) {
		check_stop(i % 2 == 0);
	}
	expect_number("wrong results", 0, pin_load_acquire_u32(&wrong_count));
	scratch_leave();
	return expect_status();
}
