/* SPDX-License-Identifier: MIT */
/*
 * Goal: what `pinion top` says of a process has the threads by which the kernel
 * does requests that would block in a ring, and their CPU time. WP-33.
 * Method: a ring of this process has such threads open two FIFOs, which lasts
 * until somebody opens them for writing.
 */
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tools/top/process.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPENS = 2, LIMIT_SECONDS = 60 };

static struct top_threads threads;

static bool read_threads(void)
{
	return top_process_read_threads(getpid(), &threads);
}

int main(void)
{
	struct io_uring ring;
	static const char *const names[OPENS] = {"first", "second"};
	int error = io_uring_queue_init(OPENS, &ring, 0);

	if (error == -ENOSYS || error == -EPERM || !read_threads()) {
		printf("skipped: no io_uring, or no schedstat in /proc\n");
		return 77;
	}
	expect_ready("ring", error == 0);
	scratch_enter("io_wq_threads_are_counted");
	expect_number("none at first", 0, threads.io_wq_count);
	expect_number("no time", 0, (long long)threads.io_wq_cpu_ns);
	for (int i = 0; i < OPENS; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		expect_ready("FIFO", mkfifo(names[i], 0600) == 0);
		io_uring_prep_openat(sqe, AT_FDCWD, names[i], O_RDONLY | O_CLOEXEC, 0);
		sqe->flags |= IOSQE_ASYNC; /* else the ring opens it without waiting */
	}
	expect_number("submitted", OPENS, io_uring_submit(&ring));
	alarm(LIMIT_SECONDS); /* a kernel that starts fewer of them */
	do {
		sched_yield();
	} while (read_threads() && threads.io_wq_count < OPENS);
	expect_number("a thread for each", OPENS, threads.io_wq_count);
	expect_true("with their time", threads.io_wq_cpu_ns > 0);
	for (int i = 0; i < OPENS; i++) {
		struct io_uring_cqe *cqe;
		int fd = open(names[i], O_WRONLY | O_CLOEXEC);

		expect_true("opened", fd >= 0);
		expect_number("completed", 0, io_uring_wait_cqe(&ring, &cqe));
		expect_true("its other end", cqe->res >= 0);
		close(cqe->res);
		close(fd);
		io_uring_cqe_seen(&ring, cqe);
	}
	io_uring_queue_exit(&ring);
	scratch_leave();
	return expect_status();
}
