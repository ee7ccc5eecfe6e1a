/* SPDX-License-Identifier: MIT */
/*
 * Goal: a program that has one thread when it is loaded may fence all threads
 * from then on, so that no runtime waits at its start until the kernel grants
 * that.
 * Method: the call, which fails with EPERM unless it was asked for.
 */
#include "runtime/host/host.h"
#include "tests/support/expect.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	if (known < 0 || (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
		printf("skipped: no membarrier(2) here\n");
		return 77;
	}
	expect_true("the library is there", pin_host_linux.fence_all != NULL);
	errno = 0;
	expect_number("a fence of all threads", 0,
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
	expect_number("errno", 0, errno);
	return expect_status();
}
