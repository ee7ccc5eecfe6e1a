/* SPDX-License-Identifier: MIT */
/*
 * Goal: for all senders, and however a loop checks the descriptors of channels,
 * each message arrives once and those of one sender in their order, no loop
 * sleeps beside a message or a close, and none is kept awake by a descriptor
 * that has nothing. G11, BP-30.
 * Method: threads, and tasks of a runtime, send into channels that are small,
 * each sender into all of them in turn; one loop of epoll receives, of each
 * channel by levels or by edges, all there is or, by levels, some of it; it
 * looks at others unasked as well. A close ends each. Ended channels are made
 * anew at once, so that their descriptors have numbers of others. Looks in vain
 * are counted against the messages.
 */
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <sys/epoll.h>

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	MESSAGES = 300,
#else
	MESSAGES = 2000,
#endif
	ROUNDS = 20,
	CHANNELS = 3,
	THREADS = 2,
	TASKS = 2,
	SENDERS = THREADS + TASKS,
	CAPACITY_MAX = 4,
	LIMIT_SECONDS = 110,
};

struct message {
	uint32_t sender;
	uint32_t number;
};

struct line {
	struct pinion_channel channel;
	struct message messages[CAPACITY_MAX];
	int fd;
	bool is_by_edges;
	bool is_over;
	uint32_t next[SENDERS]; /* the least that may come of each */
};

struct sender {
	struct pinion_task task;
	struct pinion_wait wait;
	struct message message;
	pthread_t thread;
	uint32_t number;
	uint32_t sent;
};

static struct pinion_runtime *runtime;
static struct line lines[CHANNELS];
static struct sender senders[SENDERS];
static struct pin_atomic_u32 sender_count;
static struct random_source draw;
static uint32_t message_count;
static uint64_t received;
static uint64_t in_vain;

/* ---- sending ---- */

static void end_sender(void)
{
	if (pin_fetch_sub_acq_rel_u32(&sender_count, 1) == 1) {
		for (uint32_t i = 0; i < CHANNELS; i++) {
			expect_number("close", 0, pinion_channel_close(&lines[i].channel));
		}
	}
}

static struct line *next_line(struct sender *sender)
{
	sender->message = (struct message){.sender = sender->number, .number = sender->sent};
	sender->sent++;
	return &lines[(sender->number + sender->sent) % CHANNELS];
}

static void *send_all(void *arg)
{
	struct sender *sender = arg;

	while (sender->sent < message_count) {
		struct line *line = next_line(sender);

		expect_number("send", 0,
			pinion_channel_send_wait(&line->channel, &sender->message, UINT64_MAX));
	}
	end_sender();
	return NULL;
}

static int send_next(struct pinion_task *task)
{
	struct sender *sender = PIN_CONTAINER_OF(task, struct sender, wait.task);
	struct line *line;

	if (sender->wait.result != 0) {
		return sender->wait.result;
	}
	if (sender->sent == message_count) {
		end_sender();
		return 0;
	}
	line = next_line(sender);
	return pinion_channel_send_async(runtime, &line->channel, &sender->message, &sender->wait);
}

static int send_first(struct pinion_task *task)
{
	struct sender *sender = PIN_CONTAINER_OF(task, struct sender, task);

	sender->wait = (struct pinion_wait){.task.run = send_next, .deadline_ns = UINT64_MAX};
	return send_next(&sender->wait.task);
}

/* ---- receiving ---- */

static bool receive(struct line *line)
{
	struct message message;
	int rc = pinion_channel_try_receive(&line->channel, &message);

	if (rc != 0) {
		expect_true("only these", rc == -EAGAIN || rc == -EPIPE);
		line->is_over = rc == -EPIPE;
		return false;
	}
	if (!expect_true("a sender", message.sender < SENDERS) ||
		!expect_true("in order", message.number >= line->next[message.sender])) {
		return false;
	}
	line->next[message.sender] = message.number + 1;
	received++;
	return true;
}

static void look(struct line *line, int loop)
{
	/* By edges it has to be all. */
	uint64_t limit = line->is_by_edges ? UINT64_MAX : 1 + random_below(&draw, 2 * CAPACITY_MAX);
	uint64_t count = 0;

	while (count < limit && receive(line)) {
		count++;
	}
	in_vain += count == 0 ? 1 : 0;
	if (line->is_over) {
		expect_number("epoll_ctl", 0, epoll_ctl(loop, EPOLL_CTL_DEL, line->fd, NULL));
	}
}

static void receive_all(int loop)
{
	uint32_t open_count = CHANNELS;

	while (open_count > 0 && expect_failure_count == 0) {
		struct epoll_event event;
		struct line *line;

		/* The kernel may interrupt it for rings that were closed. */
		if (epoll_wait(loop, &event, 1, -1) != 1) {
			expect_ready("epoll_wait", errno == EINTR);
			continue;
		}
		line = event.data.ptr;
		look(line, loop);
		open_count -= line->is_over ? 1 : 0;
		line = &lines[random_below(&draw, CHANNELS)];
		if (random_below(&draw, 4) == 0 && !line->is_over) {
			look(line, loop);
			open_count -= line->is_over ? 1 : 0;
		}
	}
}

/* ---- a round ---- */

static void begin(struct line *line, int loop)
{
	uint32_t capacity = 1 + (uint32_t)random_below(&draw, CAPACITY_MAX);
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = line};

	memset(line, 0, sizeof(*line));
	line->is_by_edges = random_below(&draw, 2) == 0;
	event.events |= line->is_by_edges ? EPOLLET : 0;
	expect_number("init", 0,
		pinion_channel_init(
			&line->channel, NULL, line->messages, sizeof(line->messages[0]), capacity));
	expect_number("pollable", 0, pinion_channel_pollable(&line->channel, &line->fd));
	expect_number("epoll_ctl", 0, epoll_ctl(loop, EPOLL_CTL_ADD, line->fd, &event));
}

static void run_round(int loop)
{
	for (uint32_t i = 0; i < CHANNELS; i++) {
		begin(&lines[i], loop);
	}
	received = 0;
	in_vain = 0;
	pin_store_release_u32(&sender_count, SENDERS);
	runtime = runtimes_start(2, PINION_IO_AUTO);
	for (uint32_t i = 0; i < SENDERS; i++) {
		struct sender *sender = &senders[i];

		*sender = (struct sender){.task.run = send_first, .number = i};
		if (i < THREADS) {
			expect_ready("thread",
				pthread_create(&sender->thread, NULL, send_all, sender) == 0);
		} else {
			expect_number("spawn", 0, pinion_task_spawn(runtime, &sender->task));
		}
	}
	receive_all(loop);
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(senders[i].thread, NULL);
	}
	expect_number("join", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
	expect_number("received", (long long)SENDERS * message_count, (long long)received);
	/*
	 * Each message may cause one check in vain, as may each spontaneous
	 * check, of which there are fewer than checks; closes have their own.
	 */
	expect_true("it sleeps when there is nothing", in_vain <= 4 * received + 2 * CHANNELS);
	for (uint32_t i = 0; i < CHANNELS; i++) {
		pinion_channel_fini(&lines[i].channel);
	}
}

int main(void)
{
	uint32_t rounds = tasks_iterations(ROUNDS);
	int loop = epoll_create1(EPOLL_CLOEXEC);

	runtimes_watchdog(rounds == ROUNDS ? LIMIT_SECONDS : 0);
	random_begin(&draw);
	message_count = MESSAGES;
	expect_ready("epoll_create1", loop >= 0);
	for (uint32_t i = 0; i < rounds && expect_failure_count == 0; i++) {
		run_round(loop);
	}
	return expect_status();
}
