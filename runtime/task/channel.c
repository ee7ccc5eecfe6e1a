/* SPDX-License-Identifier: MIT */
/*
 * Channels: messages copied in and out under one lock, and the senders,
 * receivers and event loops that wait.
 *
 * Any thread sends and receives. A send gives its message to the oldest waiting
 * receiver, a receive makes room for the oldest waiting sender.
 *
 * Invariant: messages leave in the order in which they entered, also when they
 * pass through waiters.
 */
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"

#include <errno.h>
#include <string.h>

static struct pin_channel *own(struct pinion_channel *channel)
{
	return (struct pin_channel *)(void *)channel->private_;
}

/* ---- under the lock ---- */

static __attribute__((unused)) bool is_sound(const struct pin_channel *channel)
{
	return channel->oldest < channel->capacity && channel->count <= channel->capacity &&
		channel->message_bytes > 0 && channel->receivers.lock == channel->senders.lock;
}

static uint8_t *message_at(const struct pin_channel *channel, uint64_t index)
{
	PIN_DCHECK(index < 2 * (uint64_t)channel->capacity);
	return channel->messages + index % channel->capacity * channel->message_bytes;
}

/* True: it is over, and the first word says how: 0 or an errno. */
static bool take_room(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	struct pin_channel *channel = arg;

	PIN_DCHECK(is_sound(channel) && demand != 0);
	out_value->words[0] = channel->is_closed ? EPIPE : 0;
	if (channel->is_closed) {
		return true;
	}
	PIN_CHECK(channel->count <= channel->capacity);
	if (channel->count == channel->capacity) {
		return false;
	}
	memcpy(message_at(channel, (uint64_t)channel->oldest + channel->count),
		(const void *)(uintptr_t)demand, channel->message_bytes);
	channel->count++;
	PIN_DCHECK(is_sound(channel));
	return true;
}

static bool take_message(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	struct pin_channel *channel = arg;

	PIN_DCHECK(is_sound(channel) && demand != 0);
	out_value->words[0] = channel->count == 0 ? EPIPE : 0;
	if (channel->count == 0) {
		if (!channel->is_closed) {
			pin_ready_fd_reset(&channel->ready_fd, channel->senders.host);
		}
		return channel->is_closed;
	}
	memcpy((void *)(uintptr_t)demand, message_at(channel, channel->oldest),
		channel->message_bytes);
	channel->oldest = channel->oldest + 1 == channel->capacity ? 0 : channel->oldest + 1;
	channel->count--;
	PIN_DCHECK(is_sound(channel));
	return true;
}

/* Whether a receiver would get an answer at once. */
static bool answers(const struct pin_channel *channel)
{
	return channel->count > 0 || channel->is_closed;
}

/* Serves both, as long as either gives to the other; lets go of the lock. */
static void settle_unlock(struct pin_channel *channel)
{
	const struct pin_host *host = channel->senders.host;
	struct pin_waiters_served served = {0};
	int signalled_fd = -1;

	while (pin_waiters_pop_served(&channel->receivers, &served) ||
		pin_waiters_pop_served(&channel->senders, &served)) {
	}
	PIN_DCHECK(is_sound(channel));
	/* No receiver waits beside a message, no sender beside room. */
	PIN_DCHECK(channel->receivers.oldest == NULL || !answers(channel));
	PIN_DCHECK(channel->senders.oldest == NULL || channel->count == channel->capacity);
	if (pin_ready_fd_is_open(&channel->ready_fd) && answers(channel)) {
		signalled_fd = pin_ready_fd_claim(&channel->ready_fd);
	}
	pin_waiters_unlock(&channel->senders);
	pin_waiters_tell(host, &served);
	if (signalled_fd >= 0) {
		pin_ready_fd_raise(signalled_fd, host);
	}
}

/* After a wait has begun, which serves its own queue only. */
static void settle(struct pin_channel *channel)
{
	pin_waiters_lock(&channel->senders);
	settle_unlock(channel);
}

/* ---- the ways of sending and receiving ---- */

/* One of the ends, and the message in question. */
struct channel_end {
	struct pin_waiters *waiters;
	uint64_t message;
};

static struct channel_end sender_of(struct pinion_channel *channel, const void *message)
{
	return (struct channel_end){&own(channel)->senders, (uintptr_t)message};
}

static struct channel_end receiver_of(struct pinion_channel *channel, void *message)
{
	return (struct channel_end){&own(channel)->receivers, (uintptr_t)message};
}

static int try_end(struct pin_channel *channel, const struct channel_end *end)
{
	struct pin_waiters_value value;
	bool is_over;

	pin_waiters_lock(end->waiters);
	is_over = end->waiters->oldest == NULL && end->waiters->take(channel, end->message, &value);
	settle_unlock(channel);
	PIN_DCHECK(!is_over || value.words[0] == 0 || value.words[0] == EPIPE);
	return is_over ? -(int)value.words[0] : -EAGAIN;
}

static int wait_end(
	struct pin_channel *channel, const struct channel_end *end, uint64_t deadline_ns)
{
	struct pin_waiter waiter;
	int rc;

	pin_waiter_init(&waiter, end->message, NULL);
	rc = pin_runtime_wait(channel->runtime, end->waiters, &waiter, deadline_ns);
	settle(channel);
	PIN_DCHECK(rc != 0 || waiter.value.words[0] == 0 || waiter.value.words[0] == EPIPE);
	return rc == 0 ? -(int)waiter.value.words[0] : rc;
}

static int32_t finish_end(void *target, const struct pin_waiters_value *value)
{
	(void)target;
	PIN_DCHECK(value->words[0] == 0 || value->words[0] == EPIPE);
	return -(int32_t)value->words[0];
}

static int await_end(struct pinion_runtime *runtime, struct pin_channel *channel,
	const struct channel_end *end, struct pinion_wait *wait)
{
	struct pin_wait_aim aim = {
		.waiters = end->waiters, .demand = end->message, .finish = finish_end};
	int rc = pin_runtime_await(runtime, wait, &aim);

	settle(channel);
	return rc;
}

int pinion_channel_init(struct pinion_channel *channel, struct pinion_runtime *runtime,
	void *messages, size_t message_bytes, uint32_t capacity)
{
	struct pin_channel *self = own(channel);

	if (messages == NULL || message_bytes == 0 || capacity == 0 ||
		message_bytes > SIZE_MAX / capacity) {
		return -EINVAL;
	}
	memset(channel, 0, sizeof(*channel));
	self->runtime = runtime;
	self->messages = messages;
	self->message_bytes = message_bytes;
	self->capacity = capacity;
	pin_ready_fd_init(&self->ready_fd);
	pin_waiters_init(&self->senders, &pin_host_linux, take_room, self, PIN_WAITERS_LOCKED);
	pin_waiters_init(&self->receivers, &pin_host_linux, take_message, self, PIN_WAITERS_LOCKED);
	pin_waiters_share_lock(&self->receivers, &self->senders);
	PIN_DCHECK(is_sound(self) && !answers(self));
	return 0;
}

int pinion_channel_try_send(struct pinion_channel *channel, const void *message)
{
	struct channel_end end = sender_of(channel, message);

	return try_end(own(channel), &end);
}

int pinion_channel_try_receive(struct pinion_channel *channel, void *out_message)
{
	struct channel_end end = receiver_of(channel, out_message);

	return try_end(own(channel), &end);
}

int pinion_channel_send_wait(
	struct pinion_channel *channel, const void *message, uint64_t deadline_ns)
{
	struct channel_end end = sender_of(channel, message);

	return wait_end(own(channel), &end, deadline_ns);
}

int pinion_channel_receive_wait(
	struct pinion_channel *channel, void *out_message, uint64_t deadline_ns)
{
	struct channel_end end = receiver_of(channel, out_message);

	return wait_end(own(channel), &end, deadline_ns);
}

int pinion_channel_send_async(struct pinion_runtime *runtime, struct pinion_channel *channel,
	const void *message, struct pinion_wait *wait)
{
	struct channel_end end = sender_of(channel, message);

	return await_end(runtime, own(channel), &end, wait);
}

int pinion_channel_receive_async(struct pinion_runtime *runtime, struct pinion_channel *channel,
	void *out_message, struct pinion_wait *wait)
{
	struct channel_end end = receiver_of(channel, out_message);

	return await_end(runtime, own(channel), &end, wait);
}

int pinion_channel_close(struct pinion_channel *channel)
{
	struct pin_channel *self = own(channel);
	bool was_closed;

	pin_waiters_lock(&self->senders);
	was_closed = self->is_closed;
	/* Nothing waits for a closed one: each wait is over at once. */
	PIN_DCHECK(!was_closed || self->senders.oldest == NULL);
	PIN_DCHECK(!was_closed || self->receivers.oldest == NULL);
	self->is_closed = true;
	settle_unlock(self);
	return was_closed ? -EALREADY : 0;
}

uint32_t pinion_channel_count(struct pinion_channel *channel)
{
	struct pin_channel *self = own(channel);
	uint32_t count;

	pin_waiters_lock(&self->senders);
	count = self->count;
	PIN_DCHECK(is_sound(self));
	pin_waiters_unlock(&self->senders);
	return count;
}

int pinion_channel_pollable(struct pinion_channel *channel, int *out_fd)
{
	struct pin_channel *self = own(channel);
	int fd;

	pin_waiters_lock(&self->senders);
	fd = pin_ready_fd_open(&self->ready_fd, self->senders.host);
	PIN_DCHECK((fd >= 0) == pin_ready_fd_is_open(&self->ready_fd));
	/* There may be something in it already. */
	settle_unlock(self);
	if (fd < 0) {
		return fd;
	}
	*out_fd = fd;
	return 0;
}

void pinion_channel_fini(struct pinion_channel *channel)
{
	struct pin_channel *self = channel == NULL ? NULL : own(channel);

	/* A zeroed one, never initialised, has no descriptor 0. */
	if (self != NULL && self->messages != NULL) {
		if (pin_waiters_any(&self->senders) || pin_waiters_any(&self->receivers)) {
			pin_log(pin_runtime_log(self->runtime), PINION_LOG_ERROR,
				"pinion_channel_fini() while a %s waits: call "
				"pinion_channel_close() and let the waits end first",
				pin_waiters_any(&self->senders) ? "sender" : "receiver");
		}
		pin_waiters_lock(&self->senders);
		pin_ready_fd_close(&self->ready_fd, self->senders.host);
		PIN_DCHECK(!pin_ready_fd_is_open(&self->ready_fd));
		pin_waiters_unlock(&self->senders);
	}
}
