/* SPDX-License-Identifier: MIT */
/*
 * The wake set by epoll and a timerfd.
 *
 * loop/driven.c and io/sync_wait.c call it, on the worker's thread.
 */
#include "runtime/host/wake_set.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLPRI == POLLPRI &&
		EPOLLERR == POLLERR && EPOLLHUP == POLLHUP && EPOLLRDHUP == POLLRDHUP,
	"events of poll are those of epoll");

static int change(const struct pin_wake_set *set, int operation, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	PIN_DCHECK(set->fd >= 0);
	return epoll_ctl(set->fd, operation, fd, &event) < 0 ? -errno : 0;
}

int pin_wake_set_open(struct pin_wake_set *set)
{
	int rc;

	pin_wake_set_init(set);
	set->fd = epoll_create1(EPOLL_CLOEXEC);
	if (set->fd < 0) {
		return -errno;
	}
	set->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	rc = set->timer_fd < 0 ? -errno : change(set, EPOLL_CTL_ADD, set->timer_fd, EPOLLIN);
	if (rc < 0) {
		pin_wake_set_close(set);
	}
	return rc;
}

void pin_wake_set_close(struct pin_wake_set *set)
{
	if (set->timer_fd >= 0) {
		close(set->timer_fd);
	}
	if (set->fd >= 0) {
		close(set->fd);
	}
	pin_wake_set_init(set);
}

int pin_wake_set_add(const struct pin_wake_set *set, int fd, uint32_t events)
{
	int rc = change(set, EPOLL_CTL_ADD, fd, events);

	return rc == -EEXIST ? change(set, EPOLL_CTL_MOD, fd, events) : rc;
}

void pin_wake_set_remove(const struct pin_wake_set *set, int fd)
{
	(void)change(set, EPOLL_CTL_DEL, fd, 0);
}

void pin_wake_set_arm(struct pin_wake_set *set, uint64_t deadline_ns)
{
	struct itimerspec when = {.it_value = {0}};
	int rc;

	if (deadline_ns == set->timer_ns) {
		return;
	}
	set->timer_ns = deadline_ns;
	if (deadline_ns != PIN_NO_DEADLINE) {
		/* All zeroes would disarm it. */
		uint64_t at_ns = deadline_ns > 0 ? deadline_ns : 1;

		when.it_value.tv_sec = (time_t)(at_ns / 1000000000u);
		when.it_value.tv_nsec = (long)(at_ns % 1000000000u);
	}
	/* It also makes a timer that has expired unreadable. */
	rc = timerfd_settime(set->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	PIN_CHECK(rc == 0); /* else its deadlines would be slept through */
}

bool pin_wake_set_wait(
	const struct pin_wake_set *set, const struct pin_host *host, uint64_t deadline_ns)
{
	struct pollfd descriptor = {.fd = set->fd, .events = POLLIN};

	/* A completion that interrupts it has the kernel begin it again. */
	return host->descriptors_wait(&descriptor, 1, deadline_ns) > 0;
}
