/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a file that is replaced whole or not at all. Its parts, in memory in
 * several places, are written by one request to a new file, which is made
 * durable and then takes the old name: OPEN, WRITEV, FSYNC, CLOSE, RENAME. A
 * failure ends with UNLINK of the new file.
 *
 * Try:   examples/safe_write note "first line" "second line" && cat note
 *
 * Each request's task submits the next, on one worker, so no lock is needed.
 * For a name that survives a power failure, sync the directory as well.
 */
#include <pinion/pinion.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { PARTS_MAX = 512 };

static struct pinion_runtime *runtime;
static struct pinion_file file = {.fd = -1};
static struct pinion_file_options options;
static struct pinion_request request; /* one after the other */
static struct iovec vector[2 * PARTS_MAX];
static const char *name;
static char new_name[4096];
static int failure; /* the first */

static const uint16_t steps[] = {
	PINION_OP_OPEN, PINION_OP_WRITEV, PINION_OP_FSYNC, PINION_OP_CLOSE, PINION_OP_RENAME};
enum { STEPS = sizeof(steps) / sizeof(steps[0]) };
static int step;

static int submit(uint16_t op, pinion_task_fn run);

/* Nothing else can be done about a file that cannot be removed. */
static int on_removed(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static int on_step(struct pinion_task *task)
{
	(void)task;
	if (request.result < 0) {
		failure = (int)request.result;
	} else if (++step < STEPS) {
		failure = submit(steps[step], on_step);
	}
	if (failure != 0 && step > 0) {
		pinion_file_close(&file); /* accepts a closed one */
		return submit(PINION_OP_UNLINK, on_removed);
	}
	return 0;
}

/* A request reads the fields of its operation, and leaves the others alone. */
static int submit(uint16_t op, pinion_task_fn run)
{
	request.task.run = run;
	request.op = op;
	request.path = new_name;
	request.options = op == PINION_OP_OPEN ? &options : NULL;
	request.new_path = name;
	return pinion_request_submit(runtime, &request);
}

static void fill(int count, char **parts)
{
	request.file = &file;
	request.vector = vector;
	request.vector_count = 2 * (uint32_t)count;
	for (int i = 0; i < count; i++) {
		vector[2 * i] = (struct iovec){parts[i], strlen(parts[i])};
		vector[2 * i + 1] = (struct iovec){(void *)"\n", 1};
		request.length_bytes += vector[2 * i].iov_len + 1;
	}
	/* Through the cache: lines have no alignment. */
	pinion_file_options_init(&options);
	options.flags = PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_EXCLUSIVE;
	options.direct = PINION_DIRECT_NEVER;
}

int main(int argc, char **argv)
{
	struct pinion_config config;
	int rc;

	if (argc < 3 || argc > PARTS_MAX + 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: safe_write FILE LINE…\n");
		return 2;
	}
	name = argv[1];
	if (snprintf(new_name, sizeof(new_name), "%s.new", name) >= (int)sizeof(new_name)) {
		fprintf(stderr, "safe_write: the name is too long\n");
		return 2;
	}
	fill(argc - 2, argv + 2);
	pinion_config_init(&config);
	config.worker_count = 1;
	rc = pinion_runtime_create(&config, &runtime);
	if (rc < 0) {
		fprintf(stderr, "safe_write: cannot start: %s\n", strerror(-rc));
		return 1;
	}
	rc = submit(steps[0], on_step);
	pinion_runtime_drain(runtime);
	pinion_runtime_destroy(runtime);
	failure = rc < 0 ? rc : failure;
	if (failure < 0) {
		fprintf(stderr, "safe_write: %s: %s\n", step == 0 ? new_name : name,
			strerror(-failure));
		return 1;
	}
	printf("%s has %llu bytes\n", name, (unsigned long long)request.length_bytes);
	return 0;
}
