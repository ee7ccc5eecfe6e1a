/* SPDX-License-Identifier: MIT */
/*
 * Goal: a channel's descriptor is readable while a receive has something to
 * say, for loops that are level-triggered and for those that are
 * edge-triggered; a send while it is readable makes no system call; a close
 * wakes; several channels wake one loop, each for itself; results of tasks,
 * waits and groups arrive there; each error is seen. G11, BP-30.
 * Method: epoll, asked without waiting; the count of the eventfd from
 * /proc/self/fdinfo; no descriptor left by RLIMIT_NOFILE. Then a loop that
 * sleeps, and a runtime that sends.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum {
	CAPACITY = 4,
	CHANNELS = 3,
	TASKS = 100,
	LIMIT_SECONDS = 60,
};

struct line {
	struct pinion_channel channel;
	uint32_t messages[CAPACITY];
	int fd;
};

static struct line lines[CHANNELS];
static int loop;

static void begin(struct line *line, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = line};

	expect_number("init", 0,
		pinion_channel_init(
			&line->channel, NULL, line->messages, sizeof(line->messages[0]), CAPACITY));
	line->fd = -1;
	expect_number("pollable", 0, pinion_channel_pollable(&line->channel, &line->fd));
	expect_ready("epoll_ctl", epoll_ctl(loop, EPOLL_CTL_ADD, line->fd, &event) == 0);
}

static void end(struct line *line)
{
	pinion_channel_fini(&line->channel);
	expect_number("it is closed", -1, fcntl(line->fd, F_GETFD));
	/* Nothing is left to do. */
	pinion_channel_fini(&line->channel);
}

static void put(struct line *line, uint32_t number)
{
	expect_number("send", 0, pinion_channel_try_send(&line->channel, &number));
}

static int receive(struct line *line)
{
	uint32_t number = 0;
	int rc = pinion_channel_try_receive(&line->channel, &number);

	return rc == 0 ? (int)number : rc;
}

/* How many of them epoll says are readable now. */
static int events_now(void)
{
	struct epoll_event events[CHANNELS];

	return epoll_wait(loop, events, CHANNELS, 0);
}

/* How often it was written since it was last read. */
static long long tokens_in(const struct line *line)
{
	char path[64];
	char text[128];
	long long count = -1;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", line->fd);
	stream = fopen(path, "re");
	expect_ready(path, stream != NULL);
	while (fgets(text, sizeof(text), stream) != NULL) {
		if (strncmp(text, "eventfd-count:", 14) == 0) {
			count = strtoll(text + 14, NULL, 16);
		}
	}
	fclose(stream);
	return count;
}

static void check_levels(void)
{
	struct line *line = &lines[0];
	int again = -1;

	begin(line, EPOLLIN);
	expect_number("asked again", 0, pinion_channel_pollable(&line->channel, &again));
	expect_number("the same", line->fd, again);
	expect_number("closed on exec", FD_CLOEXEC, fcntl(line->fd, F_GETFD));
	expect_number("empty", 0, events_now());
	expect_number("empty", -EAGAIN, receive(line));
	for (uint32_t round = 0; round < 3; round++) {
		put(line, 1);
		expect_number("one is there", 1, events_now());
		expect_number("and still", 1, events_now());
		put(line, 2);
		put(line, 3);
		expect_number("written once for three", 1, tokens_in(line));
		expect_number("first", 1, receive(line));
		expect_number("more is there", 1, events_now());
		expect_number("second", 2, receive(line));
		expect_number("third", 3, receive(line));
		expect_number("no check was in vain", 1, events_now());
		put(line, 4);
		expect_number("no need to write", 1, tokens_in(line));
		expect_number("fourth", 4, receive(line));
		expect_number("in vain", -EAGAIN, receive(line));
		expect_number("reset", 0, events_now());
		expect_number("read", 0, tokens_in(line));
	}
	end(line);
}

static void check_edges(void)
{
	struct line *line = &lines[0];

	begin(line, EPOLLIN | EPOLLET);
	expect_number("empty", 0, events_now());
	for (uint32_t round = 0; round < 3; round++) {
		put(line, 1);
		expect_number("an edge", 1, events_now());
		expect_number("only one", 0, events_now());
		put(line, 2);
		expect_number("it was readable already", 0, events_now());
		expect_number("first", 1, receive(line));
		expect_number("second", 2, receive(line));
		expect_number("in vain", -EAGAIN, receive(line));
		expect_number("no edge", 0, events_now());
	}
	expect_number("close", 0, pinion_channel_close(&line->channel));
	expect_number("an edge for the close", 1, events_now());
	expect_number("closed", -EPIPE, receive(line));
	end(line);
}

/* Messages there before the descriptor was asked for, and the close. */
static void check_late(void)
{
	struct line *line = &lines[0];
	struct epoll_event event = {.events = EPOLLIN};
	uint32_t number = 7;

	for (uint32_t is_closed = 0; is_closed < 2; is_closed++) {
		expect_number("init", 0,
			pinion_channel_init(&line->channel, NULL, line->messages,
				sizeof(line->messages[0]), CAPACITY));
		expect_number("send", 0, pinion_channel_try_send(&line->channel, &number));
		if (is_closed) {
			expect_number("receive", 7, receive(line));
			expect_number("close", 0, pinion_channel_close(&line->channel));
		}
		expect_number("pollable", 0, pinion_channel_pollable(&line->channel, &line->fd));
		expect_ready("epoll_ctl", epoll_ctl(loop, EPOLL_CTL_ADD, line->fd, &event) == 0);
		expect_number("readable", 1, events_now());
		expect_number("why", is_closed ? -EPIPE : 7, receive(line));
		expect_number("then", is_closed ? -EPIPE : -EAGAIN, receive(line));
		expect_number("stays so when closed", is_closed, events_now());
		end(line);
	}
}

/* A message that goes from hand to hand concerns no loop. */
static void *receive_waiting(void *arg)
{
	uint32_t number = 0;

	expect_number("receive", 0,
		pinion_channel_receive_wait(&((struct line *)arg)->channel, &number, UINT64_MAX));
	expect_number("number", 9, number);
	return NULL;
}

static void check_ways(void)
{
	struct line *line = &lines[0];
	uint32_t number = 1;
	pthread_t thread;

	begin(line, EPOLLIN);
	expect_number("send_wait", 0, pinion_channel_send_wait(&line->channel, &number, 0));
	expect_number("readable", 1, events_now());
	expect_number("receive", 0, pinion_channel_receive_wait(&line->channel, &number, 0));
	expect_number("in vain", -ETIME, pinion_channel_receive_wait(&line->channel, &number, 0));
	expect_number("reset, by whatever looked", 0, events_now());
	expect_ready("thread", pthread_create(&thread, NULL, receive_waiting, line) == 0);
	/* Into its hands if it waits already, else past the descriptor. */
	number = 9;
	expect_number(
		"send_wait", 0, pinion_channel_send_wait(&line->channel, &number, UINT64_MAX));
	pthread_join(thread, NULL);
	expect_number("nothing is there", -EAGAIN, receive(line));
	expect_number("reset", 0, events_now());
	end(line);
}

static void check_several(void)
{
	for (uint32_t i = 0; i < CHANNELS; i++) {
		begin(&lines[i], i % 2 == 0 ? EPOLLIN : EPOLLIN | EPOLLET);
	}
	for (uint32_t i = 0; i < CHANNELS; i++) {
		struct epoll_event event;

		put(&lines[i], i);
		expect_number("one of them", 1, epoll_wait(loop, &event, 1, 0));
		expect_true("that one", event.data.ptr == &lines[i]);
		expect_number("message", i, receive(&lines[i]));
		expect_number("in vain", -EAGAIN, receive(&lines[i]));
	}
	expect_number("none", 0, events_now());
	for (uint32_t i = 0; i < CHANNELS; i++) {
		put(&lines[i], i);
	}
	expect_number("all", CHANNELS, events_now());
	for (uint32_t i = 0; i < CHANNELS; i++) {
		end(&lines[i]);
	}
}

static void check_exhausted(void)
{
	struct line *line = &lines[0];
	struct pinion_channel never = {{0}};
	struct rlimit before;
	struct rlimit none;
	int fd = -5;

	expect_number("init", 0,
		pinion_channel_init(
			&line->channel, NULL, line->messages, sizeof(line->messages[0]), CAPACITY));
	expect_ready("getrlimit", getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = before;
	none.rlim_cur = 0;
	expect_ready("setrlimit", setrlimit(RLIMIT_NOFILE, &none) == 0);
	expect_number("no descriptor", -EMFILE, pinion_channel_pollable(&line->channel, &fd));
	expect_ready("setrlimit", setrlimit(RLIMIT_NOFILE, &before) == 0);
	expect_number("not written", -5, fd);
	put(line, 3);
	expect_number("it works without", 3, receive(line));
	expect_number("in vain", -EAGAIN, receive(line));
	/* Without a descriptor, never made, and none at all. */
	pinion_channel_fini(&line->channel);
	pinion_channel_fini(&never);
	pinion_channel_fini(NULL);
	expect_true("stdin is still open", fcntl(STDIN_FILENO, F_GETFD) >= 0);
	begin(line, EPOLLIN);
	end(line);
}

/* ---- from a runtime ---- */

static struct pinion_runtime *runtime;
static struct pinion_group_task tasks[TASKS];
static struct pinion_group group;
static struct pinion_wait group_wait;
static struct pinion_wait send_waits[TASKS];
static uint32_t numbers[TASKS];

static int has_sent(struct pinion_task *task)
{
	(void)task;
	return 0;
}

/* There are more of them than there is room. */
static int send_number(struct pinion_group_task *task)
{
	size_t index = (size_t)(task - tasks);

	numbers[index] = (uint32_t)index;
	send_waits[index] = (struct pinion_wait){.task.run = has_sent, .deadline_ns = UINT64_MAX};
	return pinion_channel_send_async(
		runtime, &lines[0].channel, &numbers[index], &send_waits[index]);
}

/* When all of a group are over: that is the end of sending, too. */
static int close_lines(struct pinion_task *task)
{
	(void)task;
	return pinion_channel_close(&lines[1].channel);
}

static int spawn_all(struct pinion_task *task)
{
	(void)task;
	group_wait = (struct pinion_wait){.task.run = close_lines, .deadline_ns = UINT64_MAX};
	for (size_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_group_task){.run = send_number};
		expect_number("spawn", 0, pinion_group_spawn(&group, &tasks[i]));
	}
	return pinion_group_wait_async(runtime, &group, &group_wait);
}

static void check_runtime(void)
{
	struct pinion_task starter = {.run = spawn_all};
	uint32_t counts[TASKS] = {0};
	uint32_t received = 0;
	bool is_over = false;

	runtime = runtimes_start(2, PINION_IO_AUTO);
	begin(&lines[0], EPOLLIN);
	begin(&lines[1], EPOLLIN);
	expect_number("group", 0, pinion_group_init(&group, runtime, 0));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &starter));
	while (received < TASKS || !is_over) {
		struct epoll_event event;
		int number;

		/* The kernel may interrupt it for rings that were closed. */
		if (epoll_wait(loop, &event, 1, -1) != 1) {
			expect_ready("epoll_wait", errno == EINTR);
			continue;
		}
		while (event.data.ptr == &lines[0] && (number = receive(&lines[0])) >= 0) {
			counts[number]++;
			received++;
		}
		if (event.data.ptr == &lines[1] && !is_over) {
			expect_number("closed", -EPIPE, receive(&lines[1]));
			epoll_ctl(loop, EPOLL_CTL_DEL, lines[1].fd, NULL);
			is_over = true;
		}
	}
	for (size_t i = 0; i < TASKS; i++) {
		expect_number("received", 1, counts[i]);
	}
	expect_number("join", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
	end(&lines[0]);
	end(&lines[1]);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	loop = epoll_create1(EPOLL_CLOEXEC);
	expect_ready("epoll_create1", loop >= 0);
	check_levels();
	check_edges();
	check_late();
	check_ways();
	check_several();
	check_exhausted();
	check_runtime();
	return expect_status();
}
