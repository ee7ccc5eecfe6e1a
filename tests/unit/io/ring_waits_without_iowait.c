/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that sleeps in its ring with a read pending does not show as
 * waiting for a disk: where the kernel has a flag for that each wait sets it
 * (IORING_ENTER_NO_IOWAIT), and where it has not, or is not to be, none does,
 * since such a kernel refuses the flag. C10, W14.
 * Method: a copy of the host whose ring_enter notes the flags and writes the
 * byte that the read of a pipe waits for; with the kernel as it is and with a
 * kernel that lacks the feature.
 */
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"

enum { LIMIT_SECONDS = 30, READS = 20 };

static int ends[2];
static uint32_t wait_count;
static uint32_t quiet_count; /* waits with the flag */
static uint32_t stray_count; /* enters with the flag that do not wait */
static bool has_written;     /* since the last read was made */

static int enter(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags, void *argument,
	size_t argument_bytes)
{
	bool is_quiet = (flags & IORING_ENTER_NO_IOWAIT) != 0;

	if (min_complete > 0) {
		wait_count++;
		quiet_count += is_quiet ? 1 : 0;
		/* A wait that a debugger interrupts is made again. */
		expect_ready("write", has_written || write(ends[1], "x", 1) == 1);
		has_written = true;
	} else {
		stray_count += is_quiet ? 1 : 0;
	}
	return pin_host_linux.ring_enter(
		fd, to_submit, min_complete, flags, argument, argument_bytes);
}

static void read_late(struct pin_ring *ring)
{
	struct rings_delivered delivered = {0};
	struct io_uring_sqe *sqe = rings_entry(ring);
	char byte;

	io_uring_prep_read(sqe, ends[0], &byte, 1, 0);
	sqe->user_data = 8;
	has_written = false;
	rings_await(ring, &delivered, 1);
	expect_number("its byte", 1, delivered.last_result);
}

static void check(const char *what, bool can_be_told)
{
	struct pin_host host = pin_host_linux;
	struct pin_ring ring;

	wait_count = 0;
	quiet_count = 0;
	stray_count = 0;
	host.ring_enter = enter;
	rings_set_feature(PINION_IO_NO_IOWAIT, can_be_told);
	expect_ready("pipe", pipe(ends) == 0);
	expect_ready("ring", rings_init(&ring, &host, 64) == 0);
	for (uint32_t i = 0; i < READS; i++) {
		read_late(&ring);
	}
	expect_true(what, wait_count >= READS);
	expect_number(what, can_be_told ? wait_count : 0, quiet_count);
	expect_number(what, 0, stray_count);
	rings_end(&ring);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	bool can_be_told;

	runtimes_watchdog(LIMIT_SECONDS);
	rings_require();
	can_be_told = pin_kernel_has(&rings_kernel, PINION_IO_NO_IOWAIT);
	if (can_be_told) {
		check("waits with the flag", true);
	} else {
		printf("this kernel counts all such waits as iowait\n");
	}
	check("waits of an older kernel", false);
	return expect_status();
}
