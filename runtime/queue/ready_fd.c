/* SPDX-License-Identifier: MIT */
/*
 * A beacon's beginning and end.
 */
#include "runtime/queue/ready_fd.h"

int pin_beacon_open(struct pin_beacon *beacon, const struct pin_host *host)
{
	if (beacon->fd < 0) {
		int fd = host->event_create();

		if (fd < 0) {
			return fd;
		}
		beacon->fd = fd;
	}
	return beacon->fd;
}

void pin_beacon_close(struct pin_beacon *beacon, const struct pin_host *host)
{
	if (beacon->fd < 0) {
		return;
	}
	/* Its token may be on the way, to a number soon another's. */
	while (beacon->is_lit && !host->event_clear(beacon->fd)) {
		host->yield();
	}
	host->event_close(beacon->fd);
	pin_beacon_init(beacon);
}
