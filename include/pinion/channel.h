/* SPDX-License-Identifier: MIT */
/*
 * A channel: a bounded queue of messages of one size, for any number of senders
 * and receivers, tasks as well as threads. A sender that finds it full waits
 * for room, and a receiver that finds it empty waits for a message; each side
 * is served in the order in which its waits began. A loop that sleeps
 * elsewhere, in epoll, libuv, GLib or Qt, watches the channel's descriptor.
 */
#ifndef PINION_CHANNEL_H
#define PINION_CHANNEL_H

#include <pinion/wait.h>
#include <stddef.h>

PINION_BEGIN_DECLS

/*
 * Shape: 256 bytes, embeddable; pinion_channel_init() sets all of it. Only a
 * channel whose descriptor was asked for has to be ended by
 * pinion_channel_fini().
 * Owns: the caller's memory, with that of the messages. Both must stay in place
 * until every call has returned and every wait is over.
 * Since: 0.1
 */
struct pinion_channel {
	uint64_t private_[32];
};

/*
 * Initialises an open and empty channel for `capacity` messages of
 * `message_bytes` each, in the memory at `messages`. `runtime` is the runtime
 * whose tasks are at the other end, or NULL; its workers get -EDEADLK from
 * calls that would block.
 *
 * Shape: `messages` has capacity * message_bytes bytes, without alignment.
 * Context: any thread, while no other call uses the channel.
 * Errors: -EINVAL: an argument is 0 or NULL, or the product is too large.
 * Since: 0.1
 */
PINION_API int pinion_channel_init(struct pinion_channel *channel, struct pinion_runtime *runtime,
	void *messages, size_t message_bytes, uint32_t capacity);

/*
 * Sends a copy of `message`, or receives the oldest message into `out_message`,
 * without waiting. Messages of one sender arrive in their order. Writes before
 * a send are visible after the receive.
 *
 * Context: any thread; never allocates; may wait for another thread that uses
 * the same channel at that moment. At most one system call for each waiter
 * served.
 * Errors: -EAGAIN: full, or empty, or others wait already. -EPIPE: closed; for
 * a receiver: and empty.
 * Since: 0.1
 */
PINION_API int pinion_channel_try_send(struct pinion_channel *channel, const void *message);
PINION_API int pinion_channel_try_receive(struct pinion_channel *channel, void *out_message);

/*
 * Sends or receives, and sleeps until there is room, or a message, at most
 * until `deadline_ns`, as in struct pinion_wait.
 *
 * Context: as pinion_future_wait().
 * Errors: -ETIME. -EPIPE: as pinion_channel_try_send(); a sender that waits for
 * room when the channel is closed has not sent. -EDEADLK: a worker thread of
 * any runtime, and the call would have to wait. -ECHILD: as
 * pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_channel_send_wait(
	struct pinion_channel *channel, const void *message, uint64_t deadline_ns);
PINION_API int pinion_channel_receive_wait(
	struct pinion_channel *channel, void *out_message, uint64_t deadline_ns);

/*
 * Sends or receives, and waits in a task: `wait->task` runs when the message is
 * sent or received, with a result of 0, or -EPIPE. See pinion_wait(3).
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
 * Ends sending: from now on a send returns -EPIPE, and so do the waits for
 * room. Receivers get the messages in the channel, then -EPIPE as well.
 *
 * Context: any thread; as pinion_channel_try_send().
 * Errors: -EALREADY: the channel is closed.
 * Since: 0.1
 */
PINION_API int pinion_channel_close(struct pinion_channel *channel);

/*
 * Returns how many messages are in the channel, 0 … capacity; other threads may
 * change that at once.
 *
 * Context: any thread; as pinion_channel_try_send().
 * Since: 0.1
 */
PINION_API uint32_t pinion_channel_count(struct pinion_channel *channel);

/*
 * Gives a descriptor for a loop that waits for other events as well: it becomes
 * readable (POLLIN, EPOLLIN) when a message is in the channel, or the channel
 * is closed. It stays readable until a receive has found the channel empty:
 * pinion_channel_try_receive() with -EAGAIN. So receive until then or, where
 * each poll is level-triggered, as often as you like. Each time it becomes
 * readable is one edge for EPOLLET. A poll may report it while the channel is
 * empty; that does not repeat for ever.
 *
 * A sender makes no system call while the descriptor is readable. A channel
 * whose descriptor no program asked for pays nothing.
 *
 * Owns: the descriptor is the channel's, the same each time: do not read, write
 * or close it. pinion_channel_fini() closes it; take it out of the loop before.
 * Closed on exec; a child of fork(2) has a copy of the channel that must not
 * use it.
 * Context: any thread; a system call the first time.
 * Errors: -EMFILE, -ENFILE, -ENOMEM, -ENODEV: as eventfd(2); the channel works
 * on without.
 * Since: 0.1
 */
PINION_API int pinion_channel_pollable(struct pinion_channel *channel, int *out_fd);

/*
 * Ends a channel: closes its descriptor. Messages in it are lost. NULL, zeroed
 * memory and a channel without a descriptor are left as they are.
 *
 * Context: any thread, when every call that uses the channel has returned and
 * every wait is over. The call waits, though, for senders whose messages were
 * received and that are about to make the descriptor readable. If a wait is
 * under way nevertheless, the log hook of its runtime gets an error message.
 * Since: 0.1
 */
PINION_API void pinion_channel_fini(struct pinion_channel *channel);

PINION_END_DECLS

#endif
