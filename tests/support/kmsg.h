/* SPDX-License-Identifier: MIT */
/*
 * /proc/kmsg: a file from which nothing comes until the kernel has a message,
 * once it was read dry. For root only.
 */
#ifndef PIN_TESTS_SUPPORT_KMSG_H
#define PIN_TESTS_SUPPORT_KMSG_H

#include "tests/support/expect.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define KMSG_PATH "/proc/kmsg"

/* A test that may not read it is skipped. */
static inline void kmsg_read_dry(void)
{
	static char bytes[4096];
	int fd = open(KMSG_PATH, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0) {
		printf("skipped: " KMSG_PATH ": %s\n", strerror(errno));
		exit(EXPECT_SKIPPED);
	}
	while (read(fd, bytes, sizeof(bytes)) > 0) {
	}
	close(fd);
}

#endif
