/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a loop of your own, here one of epoll, for which pinion is one more
 * descriptor. It takes names of files from stdin as they come, has eight under
 * way at most, and counts their lines. Its one thread needs no lock, waits for
 * no disk, and sleeps unless stdin has a name or the channel a result.
 *
 * Try:   find /usr/include -name "s*.h" | examples/event_loop
 *
 * With libuv it is uv_poll_init(), with GLib g_unix_fd_add(), with Qt a
 * QSocketNotifier.
 */
#include <errno.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { FILES = 8, READ_BYTES = 64 << 10, PATH_BYTES = 4096 };

struct object {
	struct pinion_request request; /* first, so that its task leads back here */
	struct pinion_file file;
	char path[PATH_BYTES];
	uint8_t bytes[READ_BYTES] __attribute__((aligned(4096)));
};

static struct pinion_runtime *runtime;
static struct pinion_channel channel;
static struct object *results[FILES]; /* of as many as there are: it is never full */
static struct object objects[FILES], *idle[FILES];
static char input[PATH_BYTES];
static size_t input_bytes;
static int idle_count, file_count, failed_count;
static unsigned long long line_count;

/* On a worker: all that has to be done there. */
static int send_back(struct pinion_task *task)
{
	struct object *object = (struct object *)(void *)task;

	return pinion_channel_try_send(&channel, &object);
}

/* All that follows runs in the loop's thread. */
static void submit(struct object *object, uint16_t op)
{
	int rc;

	object->request.op = op;
	rc = pinion_request_submit(runtime, &object->request);
	if (rc < 0) {
		object->request.result = rc;
		send_back(&object->request.task);
	}
}

/* Its file was opened, read or closed. */
static void take_result(struct object *object)
{
	struct pinion_request *request = &object->request;
	int is_read = request->op == PINION_OP_READ;
	int64_t got = request->result;

	if (got < 0) {
		fprintf(stderr, "event_loop: %s: %s\n", object->path, strerror((int)-got));
		failed_count++;
	}
	if (request->op == PINION_OP_CLOSE || (got < 0 && !is_read)) {
		idle[idle_count++] = object;
		file_count++;
		return;
	}
	for (int64_t i = 0; is_read && i < got; i++) {
		line_count += request->bytes[i] == '\n';
	}
	request->offset_bytes += is_read && got > 0 ? (uint64_t)got : 0;
	/* A read that is short has come to the end. */
	submit(object, is_read && got < READ_BYTES ? PINION_OP_CLOSE : PINION_OP_READ);
}

/* As many of the names as there is room for. */
static void start_files(void)
{
	char *end;

	while (idle_count > 0 && (end = memchr(input, '\n', input_bytes)) != NULL) {
		struct object *object = idle[--idle_count];

		*end = '\0';
		memcpy(object->path, input, (size_t)(end + 1 - input));
		input_bytes -= (size_t)(end + 1 - input);
		memmove(input, end + 1, input_bytes);
		object->request = (struct pinion_request){.task.run = send_back,
			.path = object->path,
			.file = &object->file,
			.bytes = object->bytes,
			.length_bytes = READ_BYTES};
		submit(object, PINION_OP_OPEN);
	}
}

/* False: there are no more. */
static int take_names(void)
{
	ssize_t got = read(STDIN_FILENO, input + input_bytes, PATH_BYTES - input_bytes);

	input_bytes += got > 0 ? (size_t)got : 0;
	return got > 0;
}

static int watch(int loop, int operation, int fd, uint32_t what)
{
	struct epoll_event event = {.events = EPOLLIN | what, .data.fd = fd};

	return epoll_ctl(loop, operation, fd, &event) < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
	int loop = epoll_create1(EPOLL_CLOEXEC), fd = -1, has_names = 1;
	struct pinion_config config;
	struct epoll_event event;
	struct object *object;
	int rc;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		puts("usage: event_loop");
		return 0;
	}
	pinion_config_init(&config);
	config.worker_count = 1;
	rc = pinion_runtime_create(&config, &runtime);
	rc = rc < 0 ? rc : pinion_channel_init(&channel, NULL, results, sizeof(results[0]), FILES);
	rc = rc < 0 ? rc : pinion_channel_pollable(&channel, &fd);
	rc = rc < 0 ? rc : watch(loop, EPOLL_CTL_ADD, fd, 0);
	/* Not for a file: that is always readable. */
	rc = rc < 0 ? rc : watch(loop, EPOLL_CTL_ADD, STDIN_FILENO, EPOLLONESHOT);
	for (; idle_count < FILES; idle_count++) {
		idle[idle_count] = &objects[idle_count];
	}
	while (rc == 0 && (has_names || idle_count < FILES)) {
		int count = epoll_wait(loop, &event, 1, -1);

		rc = count < 0 && errno != EINTR ? -errno : 0;
		if (count == 1 && event.data.fd == STDIN_FILENO) {
			has_names = take_names();
		}
		/* Until -EAGAIN, or its descriptor stays readable. */
		while (pinion_channel_try_receive(&channel, &object) == 0) {
			take_result(object);
		}
		start_files();
		/* Names are asked for while there is room. */
		if (rc == 0 && has_names && idle_count > 0) {
			rc = watch(loop, EPOLL_CTL_MOD, STDIN_FILENO, EPOLLONESHOT);
		}
	}
	if (rc < 0) {
		/* What epoll says of a file, which is always readable. */
		fprintf(stderr, "event_loop: %s\n",
			rc == -EPERM ? "stdin has to be a pipe or a terminal" : strerror(-rc));
	}
	printf("%d files, %llu lines, %d failures\n", file_count, line_count, failed_count);
	pinion_runtime_destroy(runtime);
	pinion_channel_fini(&channel);
	return rc == 0 && failed_count == 0 ? 0 : 1;
}
