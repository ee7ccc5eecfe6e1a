/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a log that reports a record as written only when it is on the disk: a
 * batch of writes, then one fdatasync for all of them, repeatedly.
 *
 * Try:   examples/durable_log /tmp/log
 *
 * Requests in flight have no order among each other, so the sync is submitted
 * when the last write of its batch has ended, and the next batch after it.
 */
#include <pinion/pinion.h>
#include <stdio.h>
#include <string.h>

enum { RECORD_BYTES = 128, RECORDS_MAX = 64, SYNCS = 20 };

static const int batch_sizes[] = {1, 8, RECORDS_MAX};

struct record {
	struct pinion_request request; /* first, so that its task leads back here */
	char bytes[RECORD_BYTES];
};

static struct log {
	struct pinion_request sync; /* first, as above */
	struct pinion_task start;
	struct pinion_runtime *runtime;
	struct pinion_file file;
	struct record records[RECORDS_MAX];
	uint64_t end_offset;
	int batch_size;
	int writes_left;
	int syncs_left;
	int error;
} log_state;

static void submit(struct pinion_request *request)
{
	int rc = pinion_request_submit(log_state.runtime, request);

	log_state.error = rc < 0 ? rc : log_state.error;
}

static int on_written(struct pinion_task *task)
{
	struct record *record = (struct record *)task;
	struct log *log = &log_state;

	/* A write is done whole or not at all. */
	log->error = record->request.result < 0 ? (int)record->request.result : log->error;
	log->writes_left--;
	if (log->writes_left == 0 && log->error == 0) {
		submit(&log->sync);
	}
	return 0;
}

static void write_batch(struct log *log)
{
	log->writes_left = log->batch_size;
	for (int i = 0; i < log->batch_size; i++) {
		struct record *record = &log->records[i];

		memset(record->bytes, '.', RECORD_BYTES);
		snprintf(record->bytes, RECORD_BYTES, "record %llu",
			(unsigned long long)(log->end_offset / RECORD_BYTES));
		record->bytes[strlen(record->bytes)] = '.';
		record->bytes[RECORD_BYTES - 1] = '\n';
		record->request = (struct pinion_request){.task.run = on_written,
			.op = PINION_OP_WRITE,
			.file = &log->file,
			.bytes = (uint8_t *)record->bytes,
			.offset_bytes = log->end_offset,
			.length_bytes = RECORD_BYTES};
		log->end_offset += RECORD_BYTES;
		submit(&record->request);
	}
}

static int on_synced(struct pinion_task *task)
{
	struct log *log = (struct log *)task;

	log->error = log->sync.result < 0 ? (int)log->sync.result : log->error;
	/* Here the batch may be acknowledged. */
	log->syncs_left--;
	if (log->syncs_left > 0 && log->error == 0) {
		write_batch(log);
	}
	return 0;
}

static int on_start(struct pinion_task *task)
{
	(void)task;
	write_batch(&log_state);
	return 0;
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "durable_log: %s: %s\n", what, strerror(-error));
	return 1;
}

/* A runtime has one life, so each size gets its own. */
static int run(struct log *log, int batch_size)
{
	struct pinion_config config;
	uint64_t start_ns;
	int rc;

	pinion_config_init(&config);
	config.worker_count = 1;
	rc = pinion_runtime_create(&config, &log->runtime);
	if (rc < 0) {
		return rc;
	}
	log->batch_size = batch_size;
	log->syncs_left = SYNCS;
	log->start.run = on_start;
	start_ns = pinion_clock_now_ns();
	rc = pinion_task_spawn(log->runtime, &log->start);
	pinion_runtime_drain(log->runtime);
	printf("%4d records, %2d a sync: %8.1f us a record\n", SYNCS * batch_size, batch_size,
		(double)(pinion_clock_now_ns() - start_ns) / 1e3 / (SYNCS * batch_size));
	pinion_runtime_destroy(log->runtime);
	return rc < 0 ? rc : log->error;
}

int main(int argc, char **argv)
{
	struct log *log = &log_state;
	struct pinion_file_options options;
	int rc;

	if (argc != 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: durable_log FILE\n");
		return 2;
	}
	pinion_file_options_init(&options);
	options.flags = PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_TRUNCATE;
	options.direct = PINION_DIRECT_NEVER; /* records are not aligned */
	rc = pinion_file_open_with(&log->file, argv[1], &options);
	if (rc < 0) {
		return fail(argv[1], rc);
	}
	log->sync = (struct pinion_request){
		.task.run = on_synced, .op = PINION_OP_FDATASYNC, .file = &log->file};
	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = run(log, batch_sizes[i]);
	}
	pinion_file_close(&log->file);
	return rc < 0 ? fail(argv[1], rc) : 0;
}
