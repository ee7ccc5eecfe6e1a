/* SPDX-License-Identifier: MIT */
/*
 * A number in /dev/cpu_dma_latency, which is binary.
 */
#include "runtime/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool pin_cpu_latency_is_heeded(const char *path)
{
	static const char none[] = "none\n";
	char name[sizeof(none)] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0) {
		return true;
	}
	length = read(fd, name, sizeof(name));
	close(fd);
	return length != (ssize_t)strlen(none) || memcmp(name, none, strlen(none)) != 0;
}

int pin_cpu_latency_ask(uint32_t latency_us)
{
	int32_t number = (int32_t)latency_us;
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	int error;

	if (fd < 0) {
		return -errno;
	}
	if (!pin_cpu_latency_is_heeded(PIN_CPU_IDLE_DRIVER)) {
		close(fd);
		return -EOPNOTSUPP;
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
