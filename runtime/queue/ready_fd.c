/* SPDX-License-Identifier: MIT */
/*
 * A readiness descriptor's beginning and end.
 */
#include "runtime/queue/ready_fd.h"

int pin_ready_fd_open(struct pin_ready_fd *ready_fd, const struct pin_host *host)
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

void pin_ready_fd_close(struct pin_ready_fd *ready_fd, const struct pin_host *host)
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
