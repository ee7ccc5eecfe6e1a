/* SPDX-License-Identifier: MIT */
/*
 * Goal: each message is received once, those of one sender in their order, no
 * thread waits while its wait could end, and a close ends every wait; a loop
 * that sleeps on the descriptor neither. BP-30, C13, G11.
 * Method: more messages than room, sent and received by threads that wait, by a
 * thread that only tries, by a worker, and by a thread that sleeps until a
 * descriptor is readable, or has become so.
 */
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/event_model.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <string.h>

/* SKIP: one of the queues is passed by, or both are served once only. */
#define pin_waiters_pop_served(waiters, out_served) \
	(model_is_spoilt(MODEL_SKIP, __func__, #waiters) \
			? false \
			: (pin_waiters_pop_served)(waiters, out_served) && \
				!model_is_spoilt(MODEL_SKIP, __func__, "again"))
/* SKIP: as if it had been called in vain. */
#define pin_ready_fd_raise(fd, host) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_ready_fd_raise") \
			? (void)0 \
			: (pin_ready_fd_raise)(fd, host))
/* EARLY: by its value before the lock was had. */
#define pin_ready_fd_claim(ready_fd) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_ready_fd_claim") ? -1 \
			: model_is_spoilt(MODEL_EARLY, __func__, "pin_ready_fd_claim") && \
				looks[model_thread_current()].was_signalled \
			? -1 \
			: (pin_ready_fd_claim)(ready_fd))
/* LATE: when the lock has been let go. */
#define pin_ready_fd_reset(ready_fd, host) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_ready_fd_reset") ? (void)0 \
			: model_is_spoilt(MODEL_LATE, __func__, "pin_ready_fd_reset") \
			? dim_later() \
			: (pin_ready_fd_reset)(ready_fd, host))
#define pin_waiters_lock(waiters) (look_early(), (pin_waiters_lock)(waiters))
#define pin_waiters_unlock(waiters) ((pin_waiters_unlock)(waiters), dim_late())

/* What each thread has seen, or left for later. */
static struct {
	bool was_signalled;
	bool is_to_dim;
} looks[MODEL_THREADS_MAX];

static void look_early(void);
static void dim_later(void);
static void dim_late(void);

#include "runtime/task/channel.c"

enum { MESSAGES_MAX = 4 };

static struct pinion_channel channel;
static uint32_t room[2];
static uint32_t sent[2]; /* by each sender */
static uint32_t received[MESSAGES_MAX];
static uint32_t received_count;
static int last_rc;

static struct pin_channel *inside(void)
{
	return (struct pin_channel *)(void *)channel.private_;
}

static void look_early(void)
{
	looks[model_thread_current()].was_signalled = inside()->ready_fd.is_signalled;
}

static void dim_later(void)
{
	looks[model_thread_current()].is_to_dim = true;
}

static void dim_late(void)
{
	if (looks[model_thread_current()].is_to_dim) {
		looks[model_thread_current()].is_to_dim = false;
		(pin_ready_fd_reset)(&inside()->ready_fd, &pin_host_linux);
	}
}

static void begin_with(uint32_t capacity)
{
	received_count = 0;
	last_rc = 0;
	memset(sent, 0, sizeof(sent));
	memset(looks, 0, sizeof(looks));
	MODEL_CHECK(pinion_channel_init(&channel, NULL, room, sizeof(room[0]), capacity) == 0);
}

static void begin(void)
{
	begin_with(1);
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

/* Messages sent before the close are received, and no thread waits for ever. */
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

/* ---- in a loop that sleeps on the descriptor ---- */

static int readable_fd;
static uint32_t edges_seen;

static bool has_new_edge(const void *arg)
{
	(void)arg;
	return model_event_edges(readable_fd) != edges_seen;
}

static void poll_begin(uint32_t capacity)
{
	model_events_begin();
	edges_seen = 0;
	begin_with(capacity);
}

static void poll_open(void)
{
	int again = -1;

	MODEL_CHECK(pinion_channel_pollable(&channel, &readable_fd) == 0);
	MODEL_CHECK(pinion_channel_pollable(&channel, &again) == 0 && again == readable_fd);
}

static void poll_wait(bool is_by_edges)
{
	if (is_by_edges) {
		model_await("an edge", has_new_edge, NULL);
		edges_seen = model_event_edges(readable_fd);
	} else {
		model_await("a readable descriptor", model_event_is_readable, &readable_fd);
	}
}

/* One message, or what else the channel says. */
static int poll_receive(void)
{
	uint32_t message = 0;
	int rc = pinion_channel_try_receive(&channel, &message);

	if (rc == 0) {
		MODEL_CHECK(note(message));
	}
	return rc;
}

/* All there is, at first and each time it is readable, until `count` came. */
static void poll_all(uint32_t count, bool is_by_edges)
{
	for (;;) {
		while (poll_receive() == 0) {
		}
		if (received_count == count) {
			return;
		}
		poll_wait(is_by_edges);
	}
}

/* No thread uses it any more: at most one more check is in vain. */
static void poll_end(void)
{
	if (model_event_is_readable(&readable_fd)) {
		MODEL_CHECK(poll_receive() == -EAGAIN);
	}
	MODEL_CHECK(!model_event_is_readable(&readable_fd) && !inside()->ready_fd.is_signalled);
	pinion_channel_fini(&channel);
	model_events_end();
}

static void try_send_one(void *arg)
{
	uint32_t sender = (uint32_t)(uintptr_t)arg;
	uint32_t message = sender * 10;

	MODEL_CHECK(pinion_channel_try_send(&channel, &message) == 0);
	sent[sender]++;
}

static void poll_two_senders(bool is_by_edges)
{
	uint32_t senders[2];

	poll_begin(2);
	poll_open();
	for (uint32_t i = 0; i < 2; i++) {
		senders[i] = model_thread_start("sender", try_send_one, (void *)(uintptr_t)i);
	}
	poll_all(2, is_by_edges);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(senders[i]);
	}
	poll_end();
}

static void run_polled(void)
{
	poll_two_senders(false);
}

static void run_polled_by_edges(void)
{
	poll_two_senders(true);
}

/*
 * Only one message each time it is readable, from a sender that waits for room.
 */
static void run_polled_one_by_one(void)
{
	uint32_t sender;

	poll_begin(1);
	poll_open();
	sender = model_thread_start("sender", send_two, NULL);
	while (received_count < 2) {
		poll_wait(false);
		(void)poll_receive();
	}
	model_thread_join(sender);
	poll_end();
}

static void run_polled_late(void)
{
	uint32_t sender;

	poll_begin(1);
	sender = model_thread_start("sender", try_send_one, NULL);
	poll_open();
	poll_all(1, false);
	model_thread_join(sender);
	poll_end();
}

static void send_and_close(void *arg)
{
	try_send_one(arg);
	MODEL_CHECK(pinion_channel_close(&channel) == 0);
}

static void run_polled_closed(void)
{
	uint32_t sender;
	int rc;

	poll_begin(1);
	poll_open();
	sender = model_thread_start("sender", send_and_close, NULL);
	do {
		poll_wait(true);
		do {
			rc = poll_receive();
		} while (rc == 0);
	} while (rc == -EAGAIN);
	MODEL_CHECK(rc == -EPIPE && received_count == 1);
	model_thread_join(sender);
	MODEL_CHECK(model_event_is_readable(&readable_fd));
	pinion_channel_fini(&channel);
	model_events_end();
}

/* Ended when all was received, whose sender may be about to raise. */
static void run_polled_ended(void)
{
	uint32_t sender;

	poll_begin(1);
	poll_open();
	sender = model_thread_start("sender", try_send_one, NULL);
	while (poll_receive() != 0) {
		model_yield();
	}
	pinion_channel_fini(&channel);
	model_thread_join(sender);
	model_events_end();
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
		int rc = pinion_channel_receive_async(runtime, &channel, &message_here, &wait_here);

		MODEL_CHECK(rc == 0);
	}
	return 0;
}

static void begin_wait(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(
		pinion_channel_receive_async(runtime, &channel, &message_here, &wait_here) == 0);
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
	MODEL_CHECK(pinion_task_spawn(runtime, &starter.request.task) == 0);
	send_two(NULL);
	model_await("both messages", has_received, NULL);
	model_runtime_end(runtime);
}

/*
 * A sender that is no thread waits beside a message. One receiver takes that
 * and has yet to serve the sender when another begins to wait: the room is for
 * the sender, and the message that fills it for that receiver.
 */
static int end_send(struct pinion_task *task)
{
	(void)task;
	MODEL_CHECK(wait_here.result == 0);
	return 0;
}

static void begin_send(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_channel_send_async(runtime, &channel, &message_here, &wait_here) == 0);
}

static void receive_and_note(void *arg)
{
	(void)arg;
	receive(1);
}

static void run_room_for_both(void)
{
	uint32_t receivers[2];

	begin();
	message_here = 10;
	wait_here = (struct pinion_wait){.task.run = end_send, .deadline_ns = UINT64_MAX};
	model_task_init(&starter, begin_send);
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	model_quiet_begin();
	try_send_one(NULL);
	MODEL_CHECK(pinion_task_spawn(runtime, &starter.request.task) == 0);
	model_settle();
	model_quiet_end();
	for (uint32_t i = 0; i < 2; i++) {
		receivers[i] = model_thread_start("receiver", receive_and_note, NULL);
	}
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(receivers[i]);
	}
	MODEL_CHECK(received_count == 2 && pinion_channel_count(&channel) == 0);
	model_runtime_end(runtime);
}

static const struct model_mutant room_mutants[] = {
	{"both are served once only", {MODEL_SKIP, "settle_unlock", "again"}},
	{.name = NULL},
};

static const struct model_mutant mutants[] = {
	{"a message, but its receiver is not notified",
		{MODEL_SKIP, "settle_unlock", "&channel->receivers"}},
	{"room, but its sender is not notified",
		{MODEL_SKIP, "settle_unlock", "&channel->senders"}},
	{.name = NULL},
};

static const struct model_mutant receiver_mutants[] = {
	{"a receiver is not notified", {MODEL_SKIP, "settle_unlock", "&channel->receivers"}},
	{.name = NULL},
};

static const struct model_mutant sender_mutants[] = {
	{"a sender is not notified", {MODEL_SKIP, "settle_unlock", "&channel->senders"}},
	{.name = NULL},
};

static const struct model_mutant polled_mutants[] = {
	{"a message, but it is not signalled", {MODEL_SKIP, "settle_unlock", "pin_ready_fd_claim"}},
	{"signalled, but without a token", {MODEL_SKIP, "settle_unlock", "pin_ready_fd_raise"}},
	{"a sender looks before it has sent", {MODEL_EARLY, "settle_unlock", "pin_ready_fd_claim"}},
	{"reset without another look", {MODEL_LATE, "take_message", "pin_ready_fd_reset"}},
	{"reset, its token still to come", {MODEL_SKIP, "model_event_clear", "look"}},
	{"it is never reset", {MODEL_SKIP, "take_message", "pin_ready_fd_reset"}},
	{.name = NULL},
};

static const struct model_mutant late_mutants[] = {
	{"earlier messages do not signal", {MODEL_SKIP, "settle_unlock", "pin_ready_fd_claim"}},
	{.name = NULL},
};

static const struct model_mutant one_by_one_mutants[] = {
	{"reset without another look", {MODEL_LATE, "take_message", "pin_ready_fd_reset"}},
	{"room, but its sender is not notified",
		{MODEL_SKIP, "settle_unlock", "&channel->senders"}},
	{.name = NULL},
};

static const struct model_mutant ended_mutants[] = {
	{"its token is not waited for", {MODEL_SKIP, "model_event_clear", "look"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"pair", run_pair, 3, 1, 1, mutants, NULL},
	{"two_senders", run_two_senders, 2, 1, 0, mutants, NULL},
	{"tried", run_tried, 3, 2, 0, receiver_mutants, NULL},
	{"closed", run_closed, 3, 1, 0, sender_mutants, NULL},
	{"closed_on_receiver", run_closed_on_receiver, 3, 2, 0, receiver_mutants, NULL},
	{"room_for_both", run_room_for_both, 2, 1, 0, room_mutants, NULL},
	{"awaited", run_awaited, 2, 1, 0, mutants, NULL},
	{"polled", run_polled, 3, 1, 0, polled_mutants, NULL},
	{"polled_by_edges", run_polled_by_edges, 3, 1, 0, polled_mutants, NULL},
	{"polled_one_by_one", run_polled_one_by_one, 3, 1, 0, one_by_one_mutants, NULL},
	{"polled_late", run_polled_late, 3, 2, 0, late_mutants, NULL},
	{"polled_closed", run_polled_closed, 3, 2, 0, late_mutants, NULL},
	{"polled_ended", run_polled_ended, 3, 2, 0, ended_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("channel", cases, PIN_ARRAY_COUNT(cases));
}
