/* SPDX-License-Identifier: MIT */
/*
 * A number in /dev/cpu_dma_latency, which is binary.
 */
#include "runtime/host/cpu_latency.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int pin_cpu_latency_ask(uint32_t latency_us)
{
	int32_t number = (int32_t)latency_us;
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	int error;

	if (fd < 0) {
		return -errno;
	}
	if (write(fd, &number, sizeof(number)) == (ssize_t)sizeof(number)) {
		return fd;
	}
	error = errno;
	close(fd);
	return -error;
}

void pin_cpu_latency_drop(int fd)
{
	close(fd);
}
