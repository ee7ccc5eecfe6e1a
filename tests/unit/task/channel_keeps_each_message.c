/* SPDX-License-Identifier: MIT */
/*
 * Goal: a channel delivers each message once, whole, those of one sender in
 * their order, holds no more than it may, and ends as documented when it is
 * closed; each error of its calls is seen. BP-30, C13, W54.
 * Method: one thread by itself, around the border of the ring; then threads and
 * tasks of two runtimes send and receive at once, by waiting, with and
 * without deadlines, and by awaiting.
 */
#include "runtime/base/base.h"
#include "runtime/host/host.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	CAPACITY = 3,
	SENDERS = 3, /* a thread, one with deadlines, a task */
	MESSAGES = 3000,
	LIMIT_SECONDS = 60,
};

/* Of a size that is no power of two, and checked as a whole. */
struct message {
	uint32_t sender;
	uint32_t number;
	uint32_t sum;
};

static struct pinion_runtime *runtime;
static struct pinion_runtime *other;
static struct pinion_channel channel;
static uint8_t memory[CAPACITY * sizeof(struct message)];

static struct message make(uint32_t sender, uint32_t number)
{
	return (struct message){.sender = sender, .number = number, .sum = sender + number};
}

static void begin(struct pinion_runtime *home)
{
	expect_number("init", 0,
		pinion_channel_init(&channel, home, memory, sizeof(struct message), CAPACITY));
}

static void check_alone(void)
{
	struct message message = make(1, 1);
	uint64_t soon_ns;

	expect_number("no memory", -EINVAL, pinion_channel_init(&channel, NULL, NULL, 1, 1));
	expect_number("no size", -EINVAL, pinion_channel_init(&channel, NULL, memory, 0, 1));
	expect_number("no capacity", -EINVAL, pinion_channel_init(&channel, NULL, memory, 1, 0));
	expect_number(
		"too large", -EINVAL, pinion_channel_init(&channel, NULL, memory, SIZE_MAX, 2));
	begin(NULL);
	expect_number("empty", -EAGAIN, pinion_channel_try_receive(&channel, &message));
	expect_number("empty", -ETIME, pinion_channel_receive_wait(&channel, &message, 0));
	for (uint32_t round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < CAPACITY; i++) {
			message = make(round, i);
			expect_number("send", 0, pinion_channel_try_send(&channel, &message));
			expect_number("count", i + 1, pinion_channel_count(&channel));
		}
		soon_ns = pinion_clock_now_ns() + 1000000;
		expect_number("full", -EAGAIN, pinion_channel_try_send(&channel, &message));
		expect_number(
			"full", -ETIME, pinion_channel_send_wait(&channel, &message, soon_ns));
		for (uint32_t i = 0; i < CAPACITY - round % 2; i++) {
			expect_number("receive", 0, pinion_channel_try_receive(&channel, &message));
			expect_number("number", i, message.number);
			expect_number("sum", round + i, message.sum);
		}
		if (round % 2 == 1) {
			expect_number(
				"rest", 0, pinion_channel_receive_wait(&channel, &message, 0));
		}
		message = make(0, 0);
		expect_number("send", 0, pinion_channel_send_wait(&channel, &message, 0));
		expect_number("receive", 0, pinion_channel_try_receive(&channel, &message));
	}
	expect_number("send", 0, pinion_channel_try_send(&channel, &message));
	expect_number("close", 0, pinion_channel_close(&channel));
	expect_number("close again", -EALREADY, pinion_channel_close(&channel));
	expect_number("send", -EPIPE, pinion_channel_try_send(&channel, &message));
	expect_number("send", -EPIPE, pinion_channel_send_wait(&channel, &message, UINT64_MAX));
	expect_number("the rest", 0, pinion_channel_try_receive(&channel, &message));
	expect_number("end", -EPIPE, pinion_channel_try_receive(&channel, &message));
	expect_number("end", -EPIPE, pinion_channel_receive_wait(&channel, &message, UINT64_MAX));
}

/* ---- on a worker ---- */

static struct pinion_wait wait;
static struct message waited;
static struct pin_atomic_u32 end_count;

static int run_over(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&end_count);
	return 0;
}

static int run_on_worker(struct pinion_task *task)
{
	(void)task;
	expect_number("no thread would send", -EDEADLK,
		pinion_channel_receive_wait(&channel, &waited, UINT64_MAX));
	expect_number("not this runtime", -EPERM,
		pinion_channel_receive_async(other, &channel, &waited, &wait));
	expect_number("await", 0, pinion_channel_receive_async(runtime, &channel, &waited, &wait));
	expect_number("others wait", -EAGAIN, pinion_channel_try_receive(&channel, &waited));
	expect_number(
		"twice", -EBUSY, pinion_channel_receive_async(runtime, &channel, &waited, &wait));
	tasks_signal(&end_count);
	return 0;
}

static void check_worker(void)
{
	struct pinion_task task = {.run = run_on_worker};
	struct message message = make(5, 6);

	pin_store_release_u32(&end_count, 0);
	begin(runtime);
	wait = (struct pinion_wait){.task.run = run_over, .deadline_ns = UINT64_MAX};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&end_count, 1);
	expect_number("send", 0, pinion_channel_try_send(&channel, &message));
	tasks_await(&end_count, 2);
	expect_number("result", 0, wait.result);
	expect_number("message", 11, waited.sum);
	expect_number("handed over", 0, pinion_channel_count(&channel));
	task.run = run_on_worker;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&end_count, 3);
	expect_number("close", 0, pinion_channel_close(&channel));
	tasks_await(&end_count, 4);
	expect_number("closed", -EPIPE, wait.result);
}

/* ---- all at once ---- */

static struct pin_atomic_u32 received_counts[SENDERS][MESSAGES];
static struct pin_atomic_u32 bad_count;
static struct pin_atomic_u32 sender_end_count;

static void note(const struct message *message, uint32_t *newest)
{
	if (message->sender >= SENDERS || message->number >= MESSAGES ||
		message->sum != message->sender + message->number ||
		pin_fetch_add_acq_rel_u32(&received_counts[message->sender][message->number], 1) !=
			0) {
		pin_fetch_add_acq_rel_u32(&bad_count, 1);
		return;
	}
	/* Each receiver sees those of one sender in their order. */
	if (newest[message->sender] > message->number) {
		pin_fetch_add_acq_rel_u32(&bad_count, 1);
	}
	newest[message->sender] = message->number;
}

static void end_sender(void)
{
	if (pin_fetch_add_acq_rel_u32(&sender_end_count, 1) == SENDERS - 1) {
		expect_number("close", 0, pinion_channel_close(&channel));
	}
}

static void *send_waiting(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct message message = make(0, i);

		if (pinion_channel_send_wait(&channel, &message, UINT64_MAX) != 0) {
			pin_fetch_add_acq_rel_u32(&bad_count, 1);
		}
	}
	end_sender();
	return NULL;
}

static void *send_in_time(void *arg)
{
	uint32_t i = 0;

	(void)arg;
	while (i < MESSAGES) {
		struct message message = make(1, i);
		int rc =
			pinion_channel_send_wait(&channel, &message, pinion_clock_now_ns() + 10000);

		if (rc == -ETIME) {
			continue;
		}
		if (rc != 0) {
			pin_fetch_add_acq_rel_u32(&bad_count, 1);
		}
		i++;
	}
	end_sender();
	return NULL;
}

static void *receive_waiting(void *arg)
{
	uint32_t newest[SENDERS] = {0};
	struct message message;

	(void)arg;
	while (pinion_channel_receive_wait(&channel, &message, UINT64_MAX) == 0) {
		note(&message, newest);
	}
	return NULL;
}

static struct pinion_wait send_wait;
static struct message sent;
static struct pinion_wait receive_wait;
static struct message received;

/* Entered by a spawn first, then after each message. */
static int send_next(struct pinion_task *task)
{
	static uint32_t next;

	(void)task;
	if (send_wait.result != 0) {
		pin_fetch_add_acq_rel_u32(&bad_count, 1);
	}
	if (next == MESSAGES) {
		end_sender();
		return 0;
	}
	sent = make(2, next);
	next++;
	return pinion_channel_send_async(runtime, &channel, &sent, &send_wait);
}

static uint32_t newest_of_task[SENDERS];

static int receive_next(struct pinion_task *task)
{
	(void)task;
	if (receive_wait.result == -EPIPE) {
		return 0;
	}
	note(&received, newest_of_task);
	return pinion_channel_receive_async(other, &channel, &received, &receive_wait);
}

static int receive_first(struct pinion_task *task)
{
	(void)task;
	return pinion_channel_receive_async(other, &channel, &received, &receive_wait);
}

static void check_all(void)
{
	static struct pinion_task first_send = {.run = send_next};
	static struct pinion_task first_receive = {.run = receive_first};
	pthread_t threads[SENDERS];

	begin(NULL);
	send_wait = (struct pinion_wait){.task.run = send_next, .deadline_ns = UINT64_MAX};
	receive_wait = (struct pinion_wait){.task.run = receive_next, .deadline_ns = UINT64_MAX};
	expect_ready("thread", pthread_create(&threads[0], NULL, send_waiting, NULL) == 0);
	expect_ready("thread", pthread_create(&threads[1], NULL, send_in_time, NULL) == 0);
	expect_ready("thread", pthread_create(&threads[2], NULL, receive_waiting, NULL) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &first_send));
	expect_number("spawn", 0, pinion_task_spawn(other, &first_receive));
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(threads); i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("join", 0, pinion_runtime_join(runtime));
	expect_number("join", 0, pinion_runtime_join(other));
	for (uint32_t i = 0; i < SENDERS; i++) {
		for (uint32_t j = 0; j < MESSAGES; j++) {
			if (pin_load_acquire_u32(&received_counts[i][j]) != 1) {
				pin_fetch_add_acq_rel_u32(&bad_count, 1);
			}
		}
	}
	expect_number("lost, wrong or out of order", 0, pin_load_acquire_u32(&bad_count));
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_alone();
	runtime = runtimes_start(2, PINION_IO_AUTO);
	other = runtimes_start(1, PINION_IO_AUTO);
	check_worker();
	check_all();
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(other);
	return expect_status();
}
