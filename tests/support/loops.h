/* SPDX-License-Identifier: MIT */
/*
 * Loop devices: a file as a block device.
 */
#ifndef PIN_TESTS_SUPPORT_LOOPS_H
#define PIN_TESTS_SUPPORT_LOOPS_H

#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LOOPS_TRIES = 100, LOOPS_PATH_BYTES = 32 };

/*
 * A descriptor of a new one over `backing_fd`, opened with `flags`; -1: there
 * is none to be had. It goes when its last descriptor is closed.
 */
static inline int loops_open(int backing_fd, int flags, char out_path[LOOPS_PATH_BYTES])
{
	struct loop_config config = {
		.fd = (uint32_t)backing_fd,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR |
			((flags & O_ACCMODE) == O_RDONLY ? LO_FLAGS_READ_ONLY : 0),
	};
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int fd = -1;

	/* Between the question and the answer another may take it. */
	for (int i = 0; i < LOOPS_TRIES && control >= 0 && fd < 0; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);

		snprintf(out_path, LOOPS_PATH_BYTES, "/dev/loop%d", number);
		fd = number < 0 ? -1 : open(out_path, flags | O_CLOEXEC);
		if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) != 0) {
			close(fd);
			fd = -1;
		}
	}
	if (control >= 0) {
		close(control);
	}
	return fd;
}

#endif
