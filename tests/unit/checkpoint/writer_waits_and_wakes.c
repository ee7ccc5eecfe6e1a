/* SPDX-License-Identifier: MIT */
/*
 * Goal: the writer of a checkpoint log sleeps while there is nothing to sync,
 * and until the next sync otherwise; an append wakes it then. It syncs when the
 * time, the work or a caller asks for it, and no more often; it takes memory
 * twice for any number of records. The disk is asked to begin with each MiB,
 * and with no less. Short writes and interrupted calls go on,
 * and a record that finds no memory is refused alone. EX-51.
 * Method: the disk's calls, realloc(3) and the waits are the test's, which
 * counts them; the writer's sleep is awaited, by the count of its waits.
 */
#include "tests/support/checkpoints.h"

#include "runtime/checkpoint/frame.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/types.h>

enum {
	BATCH_BYTES = 256 << 10,
	SYNC_BYTES = 32, /* of a frame SYNC */
	HEADER_BYTES = 24,
	RECORDS = 100,
};

/* Longer than a test; as a deadline it is a time of centuries. */
#define NEVER_NS (UINT64_C(1) << 60)
#define NS_PER_SECOND UINT64_C(1000000000)

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_cond_timedwait(
	pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until);
int __wrap_pthread_cond_timedwait(
	pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until);
ssize_t __real_pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset);
int __wrap_fdatasync(int fd);
int __wrap_sync_file_range(int fd, off_t offset, off_t bytes, unsigned int flags);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static _Thread_local bool is_main;
/* Of the writer, raised before each wait, under the log's lock. */
static uint32_t idle_waits;
static uint32_t timed_waits;
static int64_t waits_until_s;
static uint32_t sync_calls;
static uint32_t write_calls;
static uint32_t range_calls;
static int64_t range_offset;
static int64_t range_bytes;
static uint32_t realloc_calls;
static size_t realloc_bytes;
/* How many calls yet are short, interrupted or refused. */
static uint32_t short_writes;
static uint32_t interrupts;
static uint32_t refusals;

static void raise_count(uint32_t *count)
{
	__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
}

static uint32_t count_of(const uint32_t *count)
{
	return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

/* Whether one of that number of calls is left; takes it. */
static bool takes_one(uint32_t *left)
{
	return count_of(left) > 0 && __atomic_sub_fetch(left, 1, __ATOMIC_SEQ_CST) < UINT32_MAX;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	if (!is_main) {
		raise_count(&idle_waits);
	}
	return __real_pthread_cond_wait(cond, lock);
}

int __wrap_pthread_cond_timedwait(
	pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
	__atomic_store_n(&waits_until_s, (int64_t)until->tv_sec, __ATOMIC_SEQ_CST);
	raise_count(&timed_waits);
	return __real_pthread_cond_timedwait(cond, lock, until);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	raise_count(&write_calls);
	if (takes_one(&short_writes)) {
		length = 1;
		errno = EIO; /* of an earlier call */
	}
	return __real_pwrite(fd, bytes, length, offset);
}

int __wrap_fdatasync(int fd)
{
	(void)fd;
	raise_count(&sync_calls);
	errno = EINTR;
	return takes_one(&interrupts) ? -1 : 0;
}

int __wrap_sync_file_range(int fd, off_t offset, off_t bytes, unsigned int flags)
{
	(void)fd;
	(void)flags;
	__atomic_store_n(&range_offset, (int64_t)offset, __ATOMIC_SEQ_CST);
	__atomic_store_n(&range_bytes, (int64_t)bytes, __ATOMIC_SEQ_CST);
	raise_count(&range_calls);
	return 0;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	raise_count(&realloc_calls);
	realloc_bytes = bytes;
	return takes_one(&refusals) ? NULL : __real_realloc(memory, bytes);
}

static struct pinion_checkpoint *open_log(uint64_t sync_ns, uint64_t sync_bytes)
{
	struct pinion_checkpoint_config config = checkpoints_config(0);
	struct pinion_checkpoint *checkpoint = NULL;

	config.sync_ns = sync_ns;
	config.sync_bytes = sync_bytes;
	expect_number("open", 0, pinion_checkpoint_open("log", &config, &checkpoint));
	return checkpoint;
}

static void await_more(const uint32_t *count, uint32_t than)
{
	while (count_of(count) <= than) {
		sched_yield();
	}
}

static uint64_t durable_of(const struct pinion_checkpoint *checkpoint)
{
	struct pinion_checkpoint_info info;

	pinion_checkpoint_get_info(checkpoint, &info, sizeof(info));
	return info.durable_bytes;
}

static long long file_bytes(void)
{
	int fd = open("log", O_RDONLY | O_CLOEXEC);
	off_t bytes = lseek(fd, 0, SEEK_END);

	close(fd);
	return (long long)bytes;
}

/* Each record finds the writer asleep, and is durable after the time alone. */
static void check_idle(void)
{
	struct pinion_checkpoint *checkpoint = open_log(1000000, UINT64_MAX);

	await_more(&idle_waits, 0);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t idle = count_of(&idle_waits);
		uint64_t durable = durable_of(checkpoint);

		expect_number("append", 0, checkpoints_append(checkpoint, i));
		await_more(&idle_waits, idle);
		expect_true("durable", durable_of(checkpoint) > durable);
	}
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	expect_ready("unlink", unlink("log") == 0);
}

/* A record that nothing asks for is not synced; each call syncs once. */
static void check_asked(void)
{
	uint32_t idle = count_of(&idle_waits);
	struct pinion_checkpoint *checkpoint = open_log(NEVER_NS, UINT64_MAX);
	uint32_t syncs;

	await_more(&idle_waits, idle);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t timed = count_of(&timed_waits);

		syncs = count_of(&sync_calls);
		expect_number("append", 0, checkpoints_append(checkpoint, i));
		await_more(&timed_waits, timed);
		expect_number("no sync that nothing asks for", syncs, count_of(&sync_calls));
		expect_number("waits for the next sync", 1,
			__atomic_load_n(&waits_until_s, __ATOMIC_SEQ_CST) /
				(int64_t)(NEVER_NS / NS_PER_SECOND));
		idle = count_of(&idle_waits);
		expect_number("sync", 0, pinion_checkpoint_sync(checkpoint));
		await_more(&idle_waits, idle);
		expect_number("one sync", syncs + 1, count_of(&sync_calls));
	}
	expect_number("append", 0, checkpoints_append(checkpoint, 3));
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	expect_number("the end syncs", syncs + 2, count_of(&sync_calls));
	expect_ready("unlink", unlink("log") == 0);
}

/* At its amount of work a sync is due, and not a byte before. */
static void check_work(void)
{
	uint32_t idle = count_of(&idle_waits);
	struct pinion_checkpoint *checkpoint = open_log(NEVER_NS, 1000);
	uint32_t timed = count_of(&timed_waits);
	uint32_t syncs = count_of(&sync_calls);

	await_more(&idle_waits, idle);
	expect_number("append", 0, pinion_checkpoint_append(checkpoint, 1, NULL, 0, 999));
	await_more(&timed_waits, timed);
	expect_number("not yet", syncs, count_of(&sync_calls));
	idle = count_of(&idle_waits);
	expect_number("append", 0, pinion_checkpoint_append(checkpoint, 1, NULL, 0, 1));
	await_more(&idle_waits, idle);
	expect_number("now", syncs + 1, count_of(&sync_calls));
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	expect_ready("unlink", unlink("log") == 0);
}

/* A full batch is written without a sync, and no SYNC is appended for it. */
static void check_batch(void)
{
	static uint8_t zeros[BATCH_BYTES - HEADER_BYTES];
	struct iovec part = {zeros, sizeof(zeros)};
	struct pinion_checkpoint *checkpoint = open_log(NEVER_NS, UINT64_MAX);
	uint64_t begun = durable_of(checkpoint);
	uint32_t writes = count_of(&write_calls);
	uint32_t syncs = count_of(&sync_calls);
	uint32_t timed = count_of(&timed_waits);

	expect_number("append", 0, pinion_checkpoint_append(checkpoint, 1, &part, 1, 0));
	await_more(&write_calls, writes);
	await_more(&timed_waits, timed);
	expect_number("append", 0, checkpoints_append(checkpoint, 1));
	expect_number("no sync", syncs, count_of(&sync_calls));
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	expect_number("file",
		(long long)(begun + 2 * SYNC_BYTES + BATCH_BYTES + pin_frame_bytes(37)),
		file_bytes());
	expect_ready("unlink", unlink("log") == 0);
}

/* Of a MiB in four batches, what the open has left first; then of the next. */
static void check_writeback(void)
{
	static uint8_t zeros[BATCH_BYTES - HEADER_BYTES];
	struct iovec part = {zeros, sizeof(zeros)};
	struct pinion_checkpoint *checkpoint = open_log(NEVER_NS, UINT64_MAX);
	int64_t from = (int64_t)durable_of(checkpoint);
	uint32_t ranges = count_of(&range_calls);

	for (uint32_t i = 1; i <= 8; i++) {
		uint32_t timed = count_of(&timed_waits);

		expect_number("append", 0, pinion_checkpoint_append(checkpoint, 1, &part, 1, 0));
		await_more(&timed_waits, timed);
		expect_number("each MiB", ranges + i / 4, count_of(&range_calls));
		if (i % 4 == 0) {
			int64_t bytes = (i == 4 ? SYNC_BYTES : 0) + 4 * BATCH_BYTES;

			expect_number("from", from, range_offset);
			expect_number("all since", bytes, range_bytes);
			from += bytes;
		}
	}
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	expect_number("the end syncs", ranges + 2, count_of(&range_calls));
	expect_ready("unlink", unlink("log") == 0);
}

/* Memory is taken for two batches, and doubled where a record does not fit. */
static void check_memory(void)
{
	static uint8_t zeros[BATCH_BYTES];
	struct iovec part = {zeros, BATCH_BYTES - HEADER_BYTES - SYNC_BYTES};
	struct pinion_checkpoint *checkpoint;
	uint32_t calls = count_of(&realloc_calls);

	checkpoint = open_log(NEVER_NS, UINT64_MAX);
	expect_number("append", 0, pinion_checkpoint_append(checkpoint, 1, &part, 1, 0));
	expect_number("a record that fills it", BATCH_BYTES, (long long)realloc_bytes);
	expect_number("sync", 0, pinion_checkpoint_sync(checkpoint));
	for (uint32_t i = 0; i < RECORDS; i++) {
		expect_number("append", 0, checkpoints_append(checkpoint, i));
		expect_number("sync", 0, pinion_checkpoint_sync(checkpoint));
	}
	expect_number("two batches", calls + 2, count_of(&realloc_calls));
	part.iov_len = BATCH_BYTES;
	__atomic_store_n(&refusals, 1, __ATOMIC_SEQ_CST);
	expect_number("no memory", -ENOMEM, pinion_checkpoint_append(checkpoint, 1, &part, 1, 0));
	expect_number("asked for", 2 * BATCH_BYTES, (long long)realloc_bytes);
	expect_number("goes on", 0, checkpoints_append(checkpoint, RECORDS));
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 1));
	expect_ready("unlink", unlink("log") == 0);
}

/* Whether the log has a record for each number below; whole, and complete. */
static void expect_records(uint32_t count)
{
	struct pinion_checkpoint_config config = checkpoints_config(PINION_CHECKPOINT_READ);
	struct pinion_checkpoint *checkpoint = NULL;
	struct pinion_checkpoint_record record;
	struct pinion_checkpoint_info info;

	expect_number("read", 0, pinion_checkpoint_open("log", &config, &checkpoint));
	pinion_checkpoint_get_info(checkpoint, &info, sizeof(info));
	expect_number("complete", 1, info.is_complete);
	for (uint32_t i = 0; i < count; i++) {
		expect_number("next", 1, pinion_checkpoint_next(checkpoint, &record));
		expect_true("record", checkpoints_is(&record, i));
	}
	expect_number("end", 0, pinion_checkpoint_next(checkpoint, &record));
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
}

static void check_calls(void)
{
	struct pinion_checkpoint *checkpoint = open_log(NEVER_NS, UINT64_MAX);
	uint32_t syncs;

	expect_number("append", 0, checkpoints_append(checkpoint, 0));
	__atomic_store_n(&short_writes, 2, __ATOMIC_SEQ_CST);
	expect_number("short writes", 0, pinion_checkpoint_sync(checkpoint));
	expect_number("both came", 0, count_of(&short_writes));
	expect_number("append", 0, checkpoints_append(checkpoint, 1));
	syncs = count_of(&sync_calls);
	__atomic_store_n(&interrupts, 1, __ATOMIC_SEQ_CST);
	expect_number("an interrupted sync", 0, pinion_checkpoint_sync(checkpoint));
	expect_number("is made again", syncs + 2, count_of(&sync_calls));
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 1));
	expect_records(2);
	expect_ready("unlink", unlink("log") == 0);
}

int main(void)
{
	is_main = true;
	scratch_enter("writer_waits_and_wakes");
	check_idle();
	check_asked();
	check_work();
	check_batch();
	check_writeback();
	check_memory();
	check_calls();
	scratch_leave();
	return expect_status();
}
