/* SPDX-License-Identifier: MIT */
/*
 * Goal: a thread that makes and ends runtimes, or asks what the machine offers,
 * is not interrupted for it later: the kernel takes a ring down in its own time
 * and then has each thread that has used it come by, whose epoll_wait(2) ends
 * with EINTR though no signal came. G8, G11.
 * Method: after each of these the thread waits for an event that cannot come,
 * for longer than the kernel takes. Then for one ring of its own, made and
 * closed: if that does not interrupt it either, the kernel here does no such
 * thing, and the rest has shown nothing.
 */
#include "tests/support/runtimes.h"

#include <errno.h>
#include <liburing.h>
#include <sys/epoll.h>

enum {
	WAITS = 4,
	WAIT_MS = 50,
	RUNTIMES = 3,
	WORKERS = 2, /* which share a registration */
	LIMIT_SECONDS = 60,
};

static int loop;

/* How many of some waits were interrupted. */
static int count_interrupts(void)
{
	int count = 0;

	for (int i = 0; i < WAITS; i++) {
		struct epoll_event event;
		int rc = epoll_wait(loop, &event, 1, WAIT_MS);

		expect_true("nothing or EINTR", rc == 0 || (rc == -1 && errno == EINTR));
		count += rc != 0;
	}
	return count;
}

static void check_runtimes(uint32_t io_level)
{
	for (int i = 0; i < RUNTIMES; i++) {
		struct pinion_runtime *runtime = runtimes_start(WORKERS, io_level);

		expect_number("interrupted after the start", 0, count_interrupts());
		expect_number("drain", 0, pinion_runtime_drain(runtime));
		pinion_runtime_destroy(runtime);
		expect_number("interrupted after the end", 0, count_interrupts());
	}
}

static void check_machine(void)
{
	struct pinion_machine machine;

	expect_number("machine", 0, pinion_machine_probe(&machine, sizeof(machine)));
	expect_number("interrupted after the probe of the machine", 0, count_interrupts());
}

static bool is_interrupted_for_own_ring(void)
{
	struct io_uring ring;

	if (io_uring_queue_init(2, &ring, 0) != 0) {
		return false;
	}
	io_uring_queue_exit(&ring);
	return count_interrupts() > 0;
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	loop = epoll_create1(EPOLL_CLOEXEC);
	expect_ready("epoll", loop >= 0);
	check_runtimes(PINION_IO_AUTO);
	check_runtimes(PINION_IO_FALLBACK);
	check_machine();
	if (!is_interrupted_for_own_ring()) {
		printf("a closed ring interrupts no thread here: nothing was shown\n");
		return expect_failure_count > 0 ? expect_status() : EXPECT_SKIPPED;
	}
	return expect_status();
}
