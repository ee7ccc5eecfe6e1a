/* SPDX-License-Identifier: MIT */
/*
 * Goal: records that many threads append at once are all in the log, each once,
 * those of one thread in their order, while others sync; sequence numbers
 * count up. EX-51.
 * Method: threads that append numbered records of up to some KiB, and sync now
 * and then; the log is read again. Under ThreadSanitizer it shows races.
 */
#include "tests/support/checkpoints.h"

#include <errno.h>
#include <pthread.h>

enum {
	THREADS = 4,
	RECORDS = 2000,
	BYTES_MAX = 3000,
	SYNC_EACH = 500,
};

struct appender {
	struct pinion_checkpoint *checkpoint;
	pthread_t thread;
	uint32_t index;
};

static void *append_all(void *arg)
{
	static const uint8_t zeros[BYTES_MAX];
	struct appender *appender = arg;

	for (uint32_t i = 0; i < RECORDS; i++) {
		uint32_t key[2] = {appender->index, i};
		struct iovec parts[2] = {
			{key, sizeof(key)}, {(void *)(uintptr_t)zeros, i * 7 % BYTES_MAX}};

		if (pinion_checkpoint_append(appender->checkpoint, 1, parts, 2, 1) != 0) {
			return appender;
		}
		if (i % SYNC_EACH == 0 && pinion_checkpoint_sync(appender->checkpoint) != 0) {
			return appender;
		}
	}
	return NULL;
}

static void check_records(struct pinion_checkpoint *checkpoint)
{
	uint32_t next[THREADS] = {0};
	struct pinion_checkpoint_record record;
	uint64_t last_sequence = 0;
	int rc;

	while ((rc = pinion_checkpoint_next(checkpoint, &record)) == 1) {
		uint32_t key[2] = {THREADS, 0};
		uint32_t again[2] = {0};

		expect_true("sequence", record.sequence > last_sequence);
		last_sequence = record.sequence;
		memcpy(key, record.bytes, sizeof(key));
		expect_number("read", 0,
			pinion_checkpoint_read(
				checkpoint, record.offset_bytes, again, sizeof(again)));
		expect_number("the same", 0, memcmp(key, again, sizeof(key)));
		if (!expect_true("thread", key[0] < THREADS)) {
			return;
		}
		expect_number("in order", next[key[0]], key[1]);
		expect_number("length", (long long)(sizeof(key) + key[1] * 7 % BYTES_MAX),
			(long long)record.length_bytes);
		next[key[0]]++;
	}
	expect_number("end", 0, rc);
	expect_number("beyond the end", -EBADMSG,
		pinion_checkpoint_read(checkpoint, UINT64_C(1) << 40, &rc, sizeof(rc)));
	for (uint32_t i = 0; i < THREADS; i++) {
		expect_number("all", RECORDS, next[i]);
	}
}

int main(void)
{
	struct pinion_checkpoint_config config = checkpoints_config(0);
	struct pinion_checkpoint *checkpoint = NULL;
	struct appender appenders[THREADS];
	struct pinion_checkpoint_info info;
	void *failed;

	scratch_enter("checkpoint_takes_all_records");
	config.sync_bytes = RECORDS / 8;
	expect_number("open", 0, pinion_checkpoint_open("log", &config, &checkpoint));
	for (uint32_t i = 0; i < THREADS; i++) {
		appenders[i] = (struct appender){.checkpoint = checkpoint, .index = i};
		expect_ready("thread",
			pthread_create(&appenders[i].thread, NULL, append_all, &appenders[i]) == 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(appenders[i].thread, &failed);
		expect_true("appended", failed == NULL);
	}
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 1));
	config = checkpoints_config(PINION_CHECKPOINT_READ);
	expect_number("read", 0, pinion_checkpoint_open("log", &config, &checkpoint));
	pinion_checkpoint_get_info(checkpoint, &info, sizeof(info));
	expect_number("complete", 1, info.is_complete);
	expect_number("records", (long long)THREADS * RECORDS, (long long)info.record_count);
	check_records(checkpoint);
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	scratch_leave();
	return expect_status();
}
