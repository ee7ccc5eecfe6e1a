/* SPDX-License-Identifier: MIT */
/*
 * Goal: another thread's doorbell ends the owner's wait, the current one or the
 * next, with either kind of doorbell and on each set-up step, also after
 * everything in flight was cancelled. A wait with a deadline lasts until then,
 * and a deadline beyond the kernel's clock means the longest wait it can do.
 * AS-30.
 * Method: rounds of ring, wait, answer; a lost doorbell hangs and trips the
 * watchdog. A read of an empty pipe stays in flight as in a real park.
 */
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"

enum {
	ROUNDS = 1000,
	CANCEL_INTERVAL = 100,
	PIPE_USER_DATA = 8,
	LIMIT_SECONDS = 60,
};

static struct pin_ring ring;
static struct pin_atomic_u32 asked;
static struct pin_atomic_u32 answered;
static int refusals_left;

static int setup_after_refusals(
	struct io_uring *uring, uint32_t entries, struct io_uring_params *params)
{
	if (refusals_left > 0) {
		refusals_left--;
		return -EINVAL;
	}
	return pin_host_linux.ring_setup(uring, entries, params);
}

static void *ring_rounds(void *arg)
{
	(void)arg;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		pin_store_release_u32(&asked, i);
		pin_ring_doorbell(&ring);
		while (pin_load_acquire_u32(&answered) != i) {
			pin_host_linux.yield();
		}
	}
	return NULL;
}

static void submit_pipe_read(int fd, char *byte)
{
	struct io_uring_sqe *sqe = rings_entry(&ring);

	if (expect_true("an entry for the pipe", sqe != NULL)) {
		io_uring_prep_read(sqe, fd, byte, 1, 0);
		sqe->user_data = PIPE_USER_DATA;
	}
}

/* On the ring's own thread: pin_ring_wait, and nothing else, lets time pass. */
static void answer_rounds(int pipe_fd)
{
	struct rings_delivered delivered = {0};
	uint32_t cancelled = 0;
	char byte;

	submit_pipe_read(pipe_fd, &byte);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		for (;;) {
			pin_ring_poll(&ring, rings_deliver, &delivered);
			if (pin_load_acquire_u32(&asked) >= round) {
				break;
			}
			if (delivered.count > cancelled) {
				cancelled++;
				submit_pipe_read(pipe_fd, &byte);
			}
			pin_ring_prepare_wait(&ring);
			pin_ring_wait(&ring, PIN_NO_DEADLINE);
		}
		if (round % CANCEL_INTERVAL == 0) {
			pin_ring_cancel(&ring, PIPE_USER_DATA);
		}
		pin_store_release_u32(&answered, round);
	}
	pin_ring_cancel(&ring, PIPE_USER_DATA);
	while (ring.in_flight > 0) {
		pin_ring_poll(&ring, rings_deliver, &delivered);
	}
	/* Older kernels cannot cancel; then the pipe was never answered. */
	expect_number("reads that did not end as cancelled", 0,
		(long long)delivered.count - delivered.failed_count);
}

static bool check(bool has_message, int refusals)
{
	struct pin_host host = pin_host_linux;
	pthread_t other;
	int ends[2];
	int rc;

	host.ring_setup = setup_after_refusals;
	refusals_left = refusals;
	rings_set_feature(PINION_IO_SEND_MSG_RING, has_message);
	pin_store_release_u32(&asked, 0);
	pin_store_release_u32(&answered, 0);
	rc = rings_init(&ring, &host, 64);
	if (rc < 0) {
		expect_number("refused beyond the last step", rings_step_count(), refusals);
		return false;
	}
	expect_number("kind", has_message ? PIN_DOORBELL_MESSAGE : PIN_DOORBELL_EVENTFD,
		ring.doorbell_kind);
	expect_ready("pipe", pipe(ends) == 0);
	expect_ready("thread", pthread_create(&other, NULL, ring_rounds, NULL) == 0);
	answer_rounds(ends[0]);
	pthread_join(other, NULL);
	rings_end(&ring);
	close(ends[0]);
	close(ends[1]);
	return true;
}

/* ---- deadlines ---- */

static struct __kernel_timespec asked_wait;

/* Instead of waiting: as if the time were over. */
static int note_wait(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags,
	void *argument, size_t argument_bytes)
{
	const struct io_uring_getevents_arg *limit = argument;

	if ((flags & IORING_ENTER_EXT_ARG) == 0) {
		return pin_host_linux.ring_enter(
			fd, to_submit, min_complete, flags, argument, argument_bytes);
	}
	asked_wait = *(const struct __kernel_timespec *)(uintptr_t)limit->ts;
	return -ETIME;
}

static uint64_t fixed_now(void)
{
	return 1000;
}

static uint64_t wait_asked_for(uint64_t deadline_ns)
{
	pin_ring_wait(&ring, deadline_ns);
	expect_true("nanoseconds", asked_wait.tv_nsec >= 0 && asked_wait.tv_nsec < 1000000000);
	return (uint64_t)asked_wait.tv_sec * 1000000000 + (uint64_t)asked_wait.tv_nsec;
}

/* The kernel adds the time to what it is asked for, as a signed number. */
static void check_deadlines(void)
{
	static const uint64_t far[] = {INT64_MAX - 1, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 1};
	struct pin_host host = pin_host_linux;

	host.ring_enter = note_wait;
	host.now_ns = fixed_now;
	expect_ready("ring", rings_init(&ring, &host, 64) == 0);
	expect_number("past", 0, (long long)wait_asked_for(0));
	expect_number("now", 0, (long long)wait_asked_for(1000));
	expect_number("soon", 5000000123, (long long)wait_asked_for(5000001123));
	for (size_t i = 0; i < PIN_ARRAY_COUNT(far); i++) {
		uint64_t wait_ns = wait_asked_for(far[i]);

		expect_true("a far deadline is not passed by", wait_ns < INT64_MAX / 2);
		expect_true("and is far", wait_ns > UINT64_C(1) << 59);
	}
	rings_end(&ring);
}

int main(void)
{
	bool has_message;

	runtimes_watchdog(LIMIT_SECONDS);
	rings_require();
	check_deadlines();
	has_message = pin_kernel_has(&rings_kernel, PINION_IO_SEND_MSG_RING);
	for (int refusals = 0; check(false, refusals); refusals++) {
		if (has_message) {
			check(true, refusals);
		}
	}
	return expect_status();
}
