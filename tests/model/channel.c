/* SPDX-License-Identifier: MIT */
/*
 * Goal: each message that was sent is received once, those of one sender in
 * their order, nobody waits while there is what it waits for, and a close ends
 * every wait. BP-30, C13.
 * Method: more messages than room, sent and received by threads that wait, by
 * one that only tries, and by a worker.
 */
#include "runtime/core/channel.h"
#include "runtime/base/base.h"
#include "runtime/core/runtime.h"
#include "tests/model/explorer.h"
#include "tests/model/runtime_model.h"

#include <errno.h>
#include <string.h>

/* SKIP: one of the queues is passed by. */
#define pin_waiters_pop_served(waiters, out_served) \
	(model_is_spoilt(MODEL_SKIP, __func__, #waiters) \
			? false \
			: (pin_waiters_pop_served)(waiters, out_served))
#include "runtime/core/channel.c"

enum { MESSAGES_MAX = 4 };

static struct pinion_channel channel;
static uint32_t room[1];
static uint32_t sent[2]; /* by each sender */
static uint32_t received[MESSAGES_MAX];
static uint32_t received_count;
static int last_rc;

static void begin(void)
{
	received_count = 0;
	last_rc = 0;
	memset(sent, 0, sizeof(sent));
	MODEL_CHECK(pinion_channel_init(&channel, NULL, room, sizeof(room[0]), 1) == 0);
}

static void send_two(void *arg)
{
	uint32_t sender = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t message = sender * 10 + i;
		int rc = pinion_channel_send_wait(&channel, &message, PIN_NO_DEADLINE);

		MODEL_CHECK(rc == 0 || rc == -EPIPE);
		sent[sender] += rc == 0 ? 1 : 0;
	}
}

static bool note(uint32_t message)
{
	uint32_t before = message % 10;

	for (uint32_t i = 0; i < received_count; i++) {
		MODEL_CHECK(received[i] != message);
		before -= received[i] / 10 == message / 10 ? 1 : 0;
	}
	received[received_count] = message;
	received_count++;
	/* Those that this sender sent before are there. */
	return before == 0;
}

static void receive(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t message = 0;

		MODEL_CHECK(pinion_channel_receive_wait(&channel, &message, PIN_NO_DEADLINE) == 0);
		MODEL_CHECK(note(message));
	}
}

static void receive_one(void *arg)
{
	uint32_t message = 0;

	(void)arg;
	last_rc = pinion_channel_receive_wait(&channel, &message, PIN_NO_DEADLINE);
}

static void run_pair(void)
{
	uint32_t sender;

	begin();
	sender = model_thread_start("sender", send_two, NULL);
	receive(2);
	model_thread_join(sender);
	MODEL_CHECK(pinion_channel_count(&channel) == 0);
}

static void run_two_senders(void)
{
	uint32_t senders[2];

	begin();
	for (uint32_t i = 0; i < 2; i++) {
		senders[i] = model_thread_start("sender", send_two, (void *)(uintptr_t)i);
	}
	receive(4);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(senders[i]);
	}
	MODEL_CHECK(pinion_channel_count(&channel) == 0);
}

static void run_tried(void)
{
	uint32_t receiver;
	uint32_t message = 7;

	begin();
	receiver = model_thread_start("receiver", receive_one, NULL);
	MODEL_CHECK(pinion_channel_try_send(&channel, &message) == 0);
	model_thread_join(receiver);
	MODEL_CHECK(last_rc == 0 && pinion_channel_count(&channel) == 0);
}

/* What was sent before the close is received, and nobody waits for ever. */
static void run_closed(void)
{
	uint32_t sender;
	uint32_t message;

	begin();
	sender = model_thread_start("sender", send_two, NULL);
	MODEL_CHECK(pinion_channel_close(&channel) == 0);
	while (pinion_channel_receive_wait(&channel, &message, PIN_NO_DEADLINE) == 0) {
		MODEL_CHECK(note(message));
	}
	model_thread_join(sender);
	MODEL_CHECK(received_count == sent[0]);
	MODEL_CHECK(pinion_channel_close(&channel) == -EALREADY);
}

static void run_closed_on_receiver(void)
{
	uint32_t receiver;

	begin();
	receiver = model_thread_start("receiver", receive_one, NULL);
	MODEL_CHECK(pinion_channel_close(&channel) == 0);
	model_thread_join(receiver);
	MODEL_CHECK(last_rc == -EPIPE);
}

/* ---- on a worker ---- */

static struct pinion_runtime *runtime;
static struct model_task starter;
static struct pinion_wait wait_here;
static uint32_t message_here;

static int run_received(struct pinion_task *task)
{
	(void)task;
	MODEL_CHECK(wait_here.result == 0);
	MODEL_CHECK(note(message_here));
	if (received_count < 2) {
		int rc = pinion_channel_receive_await(runtime, &channel, &message_here, &wait_here);

		MODEL_CHECK(rc == 0);
	}
	return 0;
}

static void begin_wait(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(
		pinion_channel_receive_await(runtime, &channel, &message_here, &wait_here) == 0);
}

static bool has_received(const void *arg)
{
	(void)arg;
	return received_count == 2;
}

static void run_awaited(void)
{
	begin();
	wait_here = (struct pinion_wait){.task.run = run_received, .deadline_ns = UINT64_MAX};
	model_task_init(&starter, begin_wait);
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	MODEL_CHECK(pinion_spawn(runtime, &starter.request.task) == 0);
	send_two(NULL);
	model_await("both messages", has_received, NULL);
	model_runtime_end(runtime);
}

static const struct model_twin twins[] = {
	{"a message, but its receiver is not told",
		{MODEL_SKIP, "settle_unlock", "&channel->receivers"}},
	{"room, but its sender is not told", {MODEL_SKIP, "settle_unlock", "&channel->senders"}},
	{.name = NULL},
};

static const struct model_twin receiver_twins[] = {
	{"a receiver is not told", {MODEL_SKIP, "settle_unlock", "&channel->receivers"}},
	{.name = NULL},
};

static const struct model_twin sender_twins[] = {
	{"a sender is not told", {MODEL_SKIP, "settle_unlock", "&channel->senders"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"pair", run_pair, 3, 1, 1, twins, NULL},
	{"two_senders", run_two_senders, 2, 1, 0, twins, NULL},
	{"tried", run_tried, 3, 2, 0, receiver_twins, NULL},
	{"closed", run_closed, 3, 1, 0, sender_twins, NULL},
	{"closed_on_receiver", run_closed_on_receiver, 3, 2, 0, receiver_twins, NULL},
	{"awaited", run_awaited, 2, 1, 0, twins, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("channel", cases, PIN_ARRAY_COUNT(cases));
}
