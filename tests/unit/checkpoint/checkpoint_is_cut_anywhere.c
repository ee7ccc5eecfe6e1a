/* SPDX-License-Identifier: MIT */
/*
 * Goal: a log that is cut at any byte, or has any byte changed, is resumed with
 * whole records from its start, or refused where durable records are lost; then
 * salvage gives all the others. Once it goes on, all is as it should be. EX-51.
 * Method: a log of some records with SYNCs between them, by two runs; each cut
 * and each changed byte of it. The disk is not waited for.
 */
#include "tests/support/checkpoints.h"

#include <errno.h>

enum {
	RECORDS = 7,
	FIRST_RUN = 3,
	LOG_BYTES_MAX = 4096,
	SYNC_BYTES = 32,
	BEGIN_BYTES = 48 + SYNC_BYTES,
	GAPS_BYTES = 2 * 40, /* of two notes */
};

static uint8_t whole[LOG_BYTES_MAX];
static size_t whole_bytes;
static uint32_t sync_count;

int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);

int __wrap_fdatasync(int fd)
{
	(void)fd;
	__atomic_add_fetch(&sync_count, 1, __ATOMIC_RELAXED);
	return 0;
}

int __wrap_fsync(int fd)
{
	(void)fd;
	return 0;
}

static void put(const uint8_t *bytes, size_t length)
{
	int fd = open("log", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	expect_ready("log", fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
	close(fd);
}

static size_t get(uint8_t out_bytes[LOG_BYTES_MAX])
{
	int fd = open("log", O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, out_bytes, LOG_BYTES_MAX);

	expect_ready("log", length > 0 && length < LOG_BYTES_MAX);
	close(fd);
	return (size_t)length;
}

static int resume(uint32_t flags, struct pinion_checkpoint **out)
{
	struct pinion_checkpoint_config config =
		checkpoints_config(PINION_CHECKPOINT_RESUME | flags);

	return pinion_checkpoint_open("log", &config, out);
}

/* All records from `first` on, some of which are durable before the next. */
static void append(struct pinion_checkpoint *checkpoint, uint32_t first, uint32_t until)
{
	for (uint32_t i = first; i < until; i++) {
		expect_number("append", 0, checkpoints_append(checkpoint, i));
		if (i % 2 == 1) {
			expect_number("sync", 0, pinion_checkpoint_sync(checkpoint));
		}
	}
}

/* Reads the log: how many records, from the first on, all whole. */
static uint32_t count_first(struct pinion_checkpoint *checkpoint)
{
	struct pinion_checkpoint_record record;
	uint32_t count = 0;
	int rc;

	while ((rc = pinion_checkpoint_next(checkpoint, &record)) == 1) {
		expect_true("record", checkpoints_is(&record, count));
		count++;
	}
	expect_number("end", 0, rc);
	return count;
}

static void make_whole(void)
{
	struct pinion_checkpoint *checkpoint = NULL;
	struct pinion_checkpoint_info info;

	expect_number("open", 0, resume(0, &checkpoint));
	append(checkpoint, 0, FIRST_RUN);
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	expect_number("open", 0, resume(0, &checkpoint));
	expect_number("first", FIRST_RUN, count_first(checkpoint));
	append(checkpoint, FIRST_RUN, RECORDS);
	pinion_checkpoint_get_info(checkpoint, &info, sizeof(info));
	expect_number("epoch", 2, (long long)info.epoch);
	expect_number("complete", 0, info.is_complete);
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 1));
	whole_bytes = get(whole);
}

/* After the cut the rest is done again: then the log has everything. */
static void check_cut(size_t length)
{
	struct pinion_checkpoint *checkpoint = NULL;
	struct pinion_checkpoint_info info;
	uint32_t count;

	put(whole, length);
	if (!expect_number("cut", 0, resume(0, &checkpoint))) {
		printf("at %zu: %s\n", length, checkpoints_line);
		return;
	}
	pinion_checkpoint_get_info(checkpoint, &info, sizeof(info));
	count = count_first(checkpoint);
	expect_number("count", count, (long long)info.record_count);
	/* The last SYNC, which vouches for END, is no part of the work. */
	expect_number("complete", length >= whole_bytes - SYNC_BYTES, info.is_complete);
	for (uint32_t i = count; i < RECORDS; i++) {
		expect_number("append", 0, checkpoints_append(checkpoint, i));
	}
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 1));
	expect_number("again", 0, resume(0, &checkpoint));
	pinion_checkpoint_get_info(checkpoint, &info, sizeof(info));
	expect_number("all", RECORDS, count_first(checkpoint));
	expect_number("complete now", 1, info.is_complete);
	expect_number("nothing cut", 0, (long long)info.cut_bytes);
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
}

static void check_cuts(void)
{
	for (size_t length = whole_bytes + 1; length-- > 0;) {
		check_cut(length);
	}
}

/* Which records are there, each at most once, in their order. */
static uint32_t count_some(struct pinion_checkpoint *checkpoint)
{
	struct pinion_checkpoint_record record;
	uint32_t number = 0;
	uint32_t count = 0;

	while (pinion_checkpoint_next(checkpoint, &record) == 1) {
		while (number < RECORDS && !checkpoints_is(&record, number)) {
			number++;
		}
		expect_true("a record of ours", number < RECORDS);
		number++;
		count++;
	}
	return count;
}

static uint32_t damaged; /* bytes whose change was refused */

static void check_change(size_t at)
{
	struct pinion_checkpoint *checkpoint = NULL;
	struct pinion_checkpoint_info info;
	static uint8_t bytes[LOG_BYTES_MAX];
	int rc;

	memcpy(bytes, whole, whole_bytes);
	bytes[at] ^= 0x10;
	put(bytes, whole_bytes);
	rc = resume(0, &checkpoint);
	if (rc == 0) {
		/* The torn end: SYNC vouched for nothing after the change. */
		expect_true("only the end", at > whole_bytes / 2);
		(void)count_first(checkpoint);
		pinion_checkpoint_close(checkpoint, 0);
		return;
	}
	expect_number("damage", -EBADMSG, rc);
	damaged++;
	expect_number("refused, so the same", (long long)whole_bytes, (long long)get(bytes));
	rc = resume(PINION_CHECKPOINT_SALVAGE, &checkpoint);
	if (rc != 0) {
		expect_true("the header alone", strstr(checkpoints_line, "its start is damaged"));
		return;
	}
	pinion_checkpoint_get_info(checkpoint, &info, sizeof(info));
	expect_true("all but one", count_some(checkpoint) >= RECORDS - 1);
	expect_true("salvaged", info.salvaged_bytes > 0);
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	/* From then on it is known. */
	expect_number("known", 0, resume(0, &checkpoint));
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
}

/* Two records are damaged; all others are read, now and once that is known. */
static void check_two_changes(void)
{
	struct pinion_checkpoint *checkpoint = NULL;
	struct pinion_checkpoint_record record;
	static uint8_t bytes[LOG_BYTES_MAX];
	size_t length;

	put(whole, whole_bytes);
	memcpy(bytes, whole, whole_bytes);
	expect_number("open", 0, resume(0, &checkpoint));
	for (uint32_t i = 0; pinion_checkpoint_next(checkpoint, &record) == 1; i++) {
		bytes[record.offset_bytes] ^= i == 1 || i == 4 ? 0x10 : 0;
	}
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	put(bytes, whole_bytes);
	expect_number("two", 0, resume(PINION_CHECKPOINT_SALVAGE, &checkpoint));
	expect_number("the others", RECORDS - 2, count_some(checkpoint));
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	length = get(bytes);
	for (int i = 0; i < 2; i++) {
		expect_number("known", 0, resume(0, &checkpoint));
		expect_number("the same", RECORDS - 2, count_some(checkpoint));
		expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	}
	/* A begin and two gaps, then begins alone; each with a SYNC. */
	expect_number("salvaged", BEGIN_BYTES + GAPS_BYTES, (long long)(length - whole_bytes));
	expect_number("begins", 2 * BEGIN_BYTES, (long long)(get(bytes) - length));
}

int main(void)
{
	scratch_enter("checkpoint_is_cut_anywhere");
	make_whole();
	expect_true("some SYNCs", sync_count >= RECORDS / 2);
	check_cuts();
	for (size_t at = 0; at < whole_bytes; at++) {
		check_change(at);
	}
	expect_true("most are damage", damaged > whole_bytes / 2);
	check_two_changes();
	scratch_leave();
	return expect_status();
}
