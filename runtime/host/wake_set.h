/* SPDX-License-Identifier: MIT */
/*
 * A wake set: one descriptor of epoll(7) that is readable while one of the
 * descriptors in it is ready, or a time has come.
 *
 * A driven worker (loop/driven.c) has one, which the embedder's own loop sleeps
 * on. The worker's doorbell is in it, an eventfd that wakers raise and the
 * kernel, when a request completes; a timer for all that is due later; and
 * where there is no ring, what its polls wait for.
 *
 * All is level-triggered, and on the worker's thread.
 *
 * Source: epoll(7), timerfd_create(2).
 */
#ifndef PIN_HOST_WAKE_SET_H
#define PIN_HOST_WAKE_SET_H

#include "runtime/host/host.h"

#include <stdbool.h>
#include <stdint.h>

struct pin_wake_set {
	/* [own] */
	int fd;		   /* of epoll: the one to sleep on; -1: not open */
	int timer_fd;	   /* in it */
	uint64_t timer_ns; /* when that is due; PIN_NO_DEADLINE: never */
};

static inline void pin_wake_set_init(struct pin_wake_set *set)
{
	*set = (struct pin_wake_set){.fd = -1, .timer_fd = -1, .timer_ns = PIN_NO_DEADLINE};
}

/* Complete, or a negative errno and nothing. */
int pin_wake_set_open(struct pin_wake_set *set);

/* Also of one that is not open. */
void pin_wake_set_close(struct pin_wake_set *set);

/*
 * Wakes for these events, of poll(2), in place of others of that descriptor.
 * Errors of epoll_ctl(2); -EPERM: it is never waited for, such as a file.
 */
int pin_wake_set_add(const struct pin_wake_set *set, int fd, uint32_t events);

/* It may be closed by now, or not be in the set. */
void pin_wake_set_remove(const struct pin_wake_set *set, int fd);

/* Wakes at that time, and at no other. */
void pin_wake_set_arm(struct pin_wake_set *set, uint64_t deadline_ns);

/*
 * Sleeps until the set is readable. False: the deadline has come, or a signal.
 */
bool pin_wake_set_wait(
	const struct pin_wake_set *set, const struct pin_host *host, uint64_t deadline_ns);

#endif
