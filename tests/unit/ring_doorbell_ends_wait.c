/* SPDX-License-Identifier: MIT */
/*
 * Goal: another thread's doorbell ends the owner's wait, the current one or
 * the next, with either kind of doorbell and on each set-up step, also after
 * everything in flight was cancelled.
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
	struct io_uring_sqe *sqe = pin_ring_entry(&ring);

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
	rings_kernel.has_send_msg_ring = has_message;
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

int main(void)
{
	bool has_message;

	runtimes_watchdog(LIMIT_SECONDS);
	rings_require();
	has_message = rings_kernel.has_send_msg_ring;
	for (int refusals = 0; check(false, refusals); refusals++) {
		if (has_message) {
			check(true, refusals);
		}
	}
	return expect_status();
}
