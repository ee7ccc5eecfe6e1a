/* SPDX-License-Identifier: MIT */
/*
 * A channel: a bounded queue of messages of one size, for any number of senders
 * and receivers, tasks as well as threads. Who finds it full waits for room,
 * who finds it empty for a message, each in the order of their coming. A loop
 * that sleeps elsewhere, in epoll, libuv, GLib or Qt, watches its descriptor.
 */
#ifndef PINION_CHANNEL_H
#define PINION_CHANNEL_H

#include <pinion/wait.h>
#include <stddef.h>

PINION_BEGIN_DECLS

/*
 * Shape: 256 bytes, embeddable; pinion_channel_init() sets all of it. Only one
 * that was asked for a descriptor has to be ended by pinion_channel_fini().
 * Owns: the caller's memory, with that of the messages. Both must stay in place
 * until every call has returned and every wait is over.
 * Since: 0.1
 */
struct pinion_channel {
	uint64_t private_[32];
};

/*
 * Makes it an open and empty one, for `capacity` messages of `message_bytes`
 * each, in the memory at `messages`. `runtime` is the one whose tasks are at
 * the other end, or NULL: its own workers are refused the calls that would
 * block them.
 *
 * Shape: `messages` has capacity * message_bytes bytes, without alignment.
 * Context: any thread, while nobody else uses it.
 * Errors: -EINVAL: one of them is 0, or NULL, or their product too large.
 * Since: 0.1
 */
PINION_API int pinion_channel_init(struct pinion_channel *channel, struct pinion_runtime *runtime,
	void *messages, size_t message_bytes, uint32_t capacity);

/*
 * Sends a copy of `message`, or receives the oldest into `out_message`, if that
 * can be had at once. Messages of one sender arrive in their order. What was
 * written before a send is seen behind the receive.
 *
 * Context: any thread; never allocates; may wait for another thread that is
 * just using the same channel. At most one system call per waiter served.
 * Errors: -EAGAIN: full, or empty, or others wait already. -EPIPE: closed; for
 * a receiver: and empty.
 * Since: 0.1
 */
PINION_API int pinion_channel_try_send(struct pinion_channel *channel, const void *message);
PINION_API int pinion_channel_try_receive(struct pinion_channel *channel, void *out_message);

/*
 * Likewise, but sleeps for room, or for a message, at most until `deadline_ns`,
 * as in struct pinion_wait.
 *
 * Context: as pinion_future_wait().
 * Errors: -ETIME. -EPIPE: as above; who waits for room when it is closed has
 * not sent. -EDEADLK: a worker thread of any runtime, and it cannot be had at
 * once. -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_channel_send_wait(
	struct pinion_channel *channel, const void *message, uint64_t deadline_ns);
PINION_API int pinion_channel_receive_wait(
	struct pinion_channel *channel, void *out_message, uint64_t deadline_ns);

/*
 * Begins to wait for that in a task: `wait->task` runs when the message is sent
 * or received, with a result of 0, or -EPIPE. See pinion_wait(3).
 *
 * Owns: the memory of the message stays in place until then.
 * Context: a task on a worker of `runtime`, which need not be the channel's.
 * Errors: -EPERM: not on such a worker. -EBUSY: the wait is under way already.
 * -EINVAL: no `run`, flags, or `reserved` is not 0. -ESHUTDOWN, -ECHILD: as
 * pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_channel_send_async(struct pinion_runtime *runtime,
	struct pinion_channel *channel, const void *message, struct pinion_wait *wait);
PINION_API int pinion_channel_receive_async(struct pinion_runtime *runtime,
	struct pinion_channel *channel, void *out_message, struct pinion_wait *wait);

/*
 * Ends sending: from now on, and for those who wait for room, it is -EPIPE.
 * Receivers get what is in it, then -EPIPE as well.
 *
 * Context: any thread; as pinion_channel_try_send().
 * Errors: -EALREADY: it is closed.
 * Since: 0.1
 */
PINION_API int pinion_channel_close(struct pinion_channel *channel);

/*
 * How many messages are in it, 0 … capacity; others may change that at once.
 *
 * Context: any thread; as pinion_channel_try_send().
 * Since: 0.1
 */
PINION_API uint32_t pinion_channel_count(struct pinion_channel *channel);

/*
 * Gives a descriptor for a loop that waits for other things as well: readable
 * (POLLIN, EPOLLIN) from when a message is in the channel, or it is closed. It
 * stays readable until a receive has found the channel empty: pinion_channel_
 * try_receive() with -EAGAIN. So receive until then, or, where each look is
 * level-triggered, as often as you like. Each time it becomes readable is one
 * edge for EPOLLET. A look may find nothing; nobody is woken in vain for ever.
 *
 * Who sends while it is readable makes no system call for it, and nobody does,
 * nor pays for it otherwise, in a channel that was never asked.
 *
 * Owns: the descriptor is the channel's, the same each time: it is not to be
 * read, written or closed. It goes with pinion_channel_fini(); take it out of
 * the loop before. Closed on exec; a child of fork(2) has a copy of the channel
 * that must not use it.
 * Context: any thread; a system call the first time.
 * Errors: -EMFILE, -ENFILE, -ENOMEM, -ENODEV: as eventfd(2); the channel works
 * on without.
 * Since: 0.1
 */
PINION_API int pinion_channel_pollable(struct pinion_channel *channel, int *out_fd);

/*
 * Ends it: closes its descriptor. What is in it is lost. NULL, zeroed memory
 * and one without a descriptor are left as they are.
 *
 * Context: any thread, when every call that uses it has returned and every wait
 * is over. It waits, though, for who has sent what was received, and is about
 * to make the descriptor readable. If somebody waits nevertheless, the log hook
 * of its runtime gets an error message.
 * Since: 0.1
 */
PINION_API void pinion_channel_fini(struct pinion_channel *channel);

PINION_END_DECLS

#endif
