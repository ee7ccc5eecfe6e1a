/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a runtime that has no thread: its tasks run in the loop of libuv, for
 * which it is one descriptor to poll. The loop counts the lines of files, which
 * it reads as requests, and ends early when Ctrl-C comes.
 *
 * Try:   examples/driven_libuv /usr/include/s*.h
 */
#define _XOPEN_SOURCE 700
#include <pinion/pinion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

enum { READ_BYTES = 64 << 10, TASKS_MAX = 64, FILES_MAX = 256 };

struct object {
	struct pinion_request request;
	struct pinion_file file;
	uint8_t bytes[READ_BYTES] __attribute__((aligned(4096)));
};

static struct pinion_runtime *runtime;
static struct object objects[FILES_MAX];
static int left_count, failed_count;
static unsigned long long line_count;

/* A request has ended; its task is its first member. In the loop's thread. */
static int take_result(struct pinion_task *task)
{
	struct pinion_request *request = (struct pinion_request *)(void *)task;
	int is_read = request->op == PINION_OP_READ;
	int64_t got = request->result;

	if (got < 0) {
		fprintf(stderr, "driven_libuv: %s: %s\n", request->path, strerror((int)-got));
		failed_count++;
	}
	if (request->op == PINION_OP_CLOSE || (got < 0 && !is_read)) {
		left_count--;
		return 0;
	}
	for (int64_t i = 0; is_read && i < got; i++) {
		line_count += request->bytes[i] == '\n';
	}
	request->offset_bytes += is_read && got > 0 ? (uint64_t)got : 0;
	/* A read that is short has come to the end. */
	request->op = is_read && got < READ_BYTES ? PINION_OP_CLOSE : PINION_OP_READ;
	return pinion_request_submit(runtime, request);
}

/* All files at once: their opens wait until the loop runs. */
static int start(int count, char **paths)
{
	struct pinion_config config;
	int rc;

	pinion_config_init(&config);
	config.is_driven = 1; /* no thread: this one calls pinion_runtime_poll() */
	rc = pinion_runtime_create(&config, &runtime);
	for (int i = 0; rc == 0 && i < count; i++) {
		struct pinion_request *request = &objects[i].request;

		*request = (struct pinion_request){.task.run = take_result, .op = PINION_OP_OPEN};
		request->path = paths[i];
		request->file = &objects[i].file;
		request->bytes = objects[i].bytes;
		request->length_bytes = READ_BYTES;
		rc = pinion_request_submit(runtime, request);
		left_count += rc == 0;
	}
	return rc;
}

static void run_tasks(uv_poll_t *poll, int status, int events)
{
	/* Not all that there is: other handles have their turn. */
	int rc = status < 0 ? status : pinion_runtime_poll(runtime, TASKS_MAX, 0);

	(void)events;
	if (rc < 0 || left_count == 0) {
		uv_stop(poll->loop);
	}
}

static void interrupt(uv_signal_t *handle, int number)
{
	(void)number;
	uv_stop(handle->loop);
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	uv_signal_t interrupts;
	uv_poll_t poll;
	int rc;

	if (argc < 2 || argc - 1 > FILES_MAX || strcmp(argv[1], "--help") == 0) {
		fputs("usage: driven_libuv FILE…, at most 256\n", stderr);
		return 2;
	}
	rc = start(argc - 1, argv + 1);
	rc = rc < 0 ? rc : uv_poll_init(loop, &poll, pinion_runtime_fd(runtime));
	rc = rc < 0 ? rc : uv_poll_start(&poll, UV_READABLE, run_tasks);
	rc = rc < 0 ? rc : uv_signal_init(loop, &interrupts);
	rc = rc < 0 ? rc : uv_signal_start(&interrupts, interrupt, SIGINT);
	if (rc == 0) {
		uv_run(loop, UV_RUN_DEFAULT);
		/* Before the runtime closes its descriptor. */
		uv_poll_stop(&poll);
	}
	if (rc < 0) {
		fprintf(stderr, "driven_libuv: %s\n", strerror(-rc));
	}
	printf("%d files, %llu lines, %d failures, %d left\n", argc - 1 - left_count, line_count,
		failed_count, left_count);
	pinion_runtime_destroy(runtime);
	return rc == 0 && failed_count == 0 && left_count == 0 ? 0 : 1;
}
