/* SPDX-License-Identifier: MIT */
/*
 * A readiness descriptor: a descriptor that is readable while there is
 * something to be had, for threads that sleep in epoll or poll, for many things
 * at once.
 *
 * The messages are kept elsewhere, under their owner's lock, and no thread
 * makes a system call for each of them: the descriptor, an eventfd, is reset
 * not when the last one is taken, but when a take finds none. Until then a
 * giver finds it signalled and has nothing to do.
 *
 *     giver                             taker
 *     a  lock                           1  lock
 *     b  give                           2  find nothing
 *     c  if reset: signal it            3  if signalled: take token, reset
 *     d  unlock                         4  unlock
 *     e  if c did: put the token        5  sleep until it is readable
 *
 * A giver after 2 gives after 4, so at c it is reset, or signalled with its
 * token on the way. A giver that read it before b, or a taker that reset it
 * after 4, would leave the taker asleep beside a message. Step e is outside of
 * the lock because it wakes the taker, who wants that at once. So at 3 it may
 * be signalled without a token: then it stays so, and the token ends the next
 * sleep, for nothing at worst. If it were reset there, two tokens could come,
 * and one of them would stay for ever.
 *
 * Invariant: it is signalled while its one token is in the descriptor, or a
 * thread is between c and e.
 *
 * Progress: all but pin_ready_fd_close() wait-free, a system call at most.
 * Called under the owner's lock but for pin_ready_fd_raise(). The lock orders
 * the messages; the descriptor orders nothing.
 */
#ifndef PIN_QUEUE_READY_FD_H
#define PIN_QUEUE_READY_FD_H

#include "runtime/base/check.h"
#include "runtime/host/host.h"

#include <stdbool.h>

struct pin_ready_fd {
	int fd;		   /* [lock:owner] -1: none was asked for */
	bool is_signalled; /* [lock:owner] */
};

static inline void pin_ready_fd_init(struct pin_ready_fd *ready_fd)
{
	*ready_fd = (struct pin_ready_fd){.fd = -1};
}

/* Its descriptor, made now if there is none; or a negative errno. */
static inline int pin_ready_fd_open(struct pin_ready_fd *ready_fd, const struct pin_host *host)
{
	if (ready_fd->fd < 0) {
		int fd = host->event_create();

		if (fd < 0) {
			return fd;
		}
		ready_fd->fd = fd;
	}
	return ready_fd->fd;
}

/* Whether any caller asked for one; else there is nothing more to do. */
static inline bool pin_ready_fd_is_open(const struct pin_ready_fd *ready_fd)
{
	return ready_fd->fd >= 0;
}

/*
 * Step c, when there is something to be had: the descriptor that the caller has
 * to raise when it has let go of the lock, or -1. It is open.
 */
static inline int pin_ready_fd_claim(struct pin_ready_fd *ready_fd)
{
	PIN_DCHECK(pin_ready_fd_is_open(ready_fd));
	if (ready_fd->is_signalled) {
		return -1;
	}
	ready_fd->is_signalled = true;
	return ready_fd->fd;
}

/* Step e. Touches nothing that the lock protects. */
static inline void pin_ready_fd_raise(int fd, const struct pin_host *host)
{
	PIN_DCHECK(fd >= 0); /* as claimed */
	host->event_raise(fd);
}

/* Step 3: there is nothing to be had. It need not be open. */
static inline void pin_ready_fd_reset(struct pin_ready_fd *ready_fd, const struct pin_host *host)
{
	PIN_DCHECK(!ready_fd->is_signalled || pin_ready_fd_is_open(ready_fd));
	if (ready_fd->is_signalled && host->event_clear(ready_fd->fd)) {
		ready_fd->is_signalled = false;
	}
}

/* Waits for threads between c and e; no other may use it any more. */
static inline void pin_ready_fd_close(struct pin_ready_fd *ready_fd, const struct pin_host *host)
{
	if (ready_fd->fd < 0) {
		return;
	}
	/* Its token may be on the way, to a number soon another's. */
	while (ready_fd->is_signalled && !host->event_clear(ready_fd->fd)) {
		host->yield();
	}
	host->event_close(ready_fd->fd);
	pin_ready_fd_init(ready_fd);
}

#endif
