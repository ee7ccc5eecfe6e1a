/* SPDX-License-Identifier: MIT */
/*
 * What a channel consists of: a ring of messages and two queues of waiters, of
 * senders and of receivers, all under one lock.
 *
 * Invariant: when the lock is free, no sender waits while there is room and no
 * receiver while there is a message, nor anybody when it is closed. Whoever
 * takes a message out makes room and the other way round, so both queues are
 * served in turns until neither has anything to do: settle(). Only between a
 * wait's beginning, which serves one queue, and the call of settle() that
 * follows it on the same thread, this may be otherwise for a moment.
 *
 * What a waiter demands is an address: of its message, or where it goes.
 *
 * Who receives in a loop that waits in epoll has the beacon instead of a place
 * in the queue: settle() lights it for a message that nobody waits for, and for
 * the close; whoever finds no message, in whatever way, makes it dark.
 */
#ifndef PIN_TASK_CHANNEL_H
#define PIN_TASK_CHANNEL_H

#include "runtime/queue/ready_fd.h"
#include "runtime/worker/wait.h"

#include <pinion/channel.h>

struct pin_channel {
	struct pin_waiters senders;
	struct pin_waiters receivers;	/* with the lock of the senders */
	struct pinion_runtime *runtime; /* [const] may be NULL */
	uint8_t *messages;		/* [const], what is in them [lock:senders] */
	size_t message_bytes;		/* [const] */
	uint32_t capacity;		/* [const] */
	/* [lock:senders] */
	uint32_t oldest;
	uint32_t count;
	bool is_closed;
	struct pin_beacon beacon; /* lit while there is something to receive */
};

_Static_assert(sizeof(struct pin_channel) <= sizeof(struct pinion_channel), "fits");
_Static_assert(sizeof(struct pinion_channel) == 256, "released size");

#endif
