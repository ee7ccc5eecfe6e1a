/* SPDX-License-Identifier: MIT */
/*
 * Goal: a wake is never lost: before, between and after the steps of parking,
 * and a futex sleeper is woken; where it sleeps shows until a waker has come.
 * EX-7.
 * Method: the state machine with one thread and a host that counts wakes; then
 * rounds of a sleeper and a waker on the real host, where each waits for the
 * other, so that one lost wake hangs the test and trips its watchdog.
 */
#include "runtime/base/base.h"
#include "runtime/queue/parker.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"

enum {
	ROUNDS = 50000,
	LIMIT_SECONDS = 60,
};

static int wake_count;

static void count_wake(struct pin_atomic_u32 *word, uint32_t count)
{
	(void)word;
	expect_number("sleepers woken at once", 1, count);
	wake_count++;
}

static void check_steps(void)
{
	struct pin_host host = pin_host_linux;
	struct pin_parker parker;

	host.futex_wake = count_wake;
	pin_parker_init(&parker);

	/* Before: the token makes the next attempt fail, once. */
	expect_true("a runner has no doorbell", !pin_parker_notify(&parker, &host));
	expect_true("two wakes are one token", !pin_parker_notify(&parker, &host));
	expect_number("wakes of a runner", 0, wake_count);
	expect_true("the token is taken", !pin_parker_prepare(&parker, PIN_PARK_FUTEX));

	/*
	 * Between: a futex sleeper is woken, and does not sleep if it had not.
	 */
	expect_true("without a token", pin_parker_prepare(&parker, PIN_PARK_FUTEX));
	expect_true("a futex sleeper has no doorbell", !pin_parker_notify(&parker, &host));
	expect_number("wakes of a futex sleeper", 1, wake_count);
	expect_true("the second is free", !pin_parker_notify(&parker, &host));
	expect_number("wakes of one already notified", 1, wake_count);
	pin_parker_sleep(&parker, &host, PIN_NO_DEADLINE);
	expect_true("a futex has no doorbell to take back", !pin_parker_finish(&parker));

	/* In the ring: the doorbell is asked for once. */
	expect_true("the token went with the sleep", pin_parker_prepare(&parker, PIN_PARK_RING));
	expect_true("a ring sleeper needs its doorbell", pin_parker_notify(&parker, &host));
	expect_true("once only", !pin_parker_notify(&parker, &host));
	expect_number("futex wakes of a ring sleeper", 1, wake_count);
	expect_true("its doorbell was rung", pin_parker_finish(&parker));

	/* After: as before the first. */
	expect_true("a token after", !pin_parker_notify(&parker, &host));
	expect_true("is taken", !pin_parker_prepare(&parker, PIN_PARK_RING));
	expect_true("and gone", pin_parker_prepare(&parker, PIN_PARK_RING));
	expect_true("nobody rang it", !pin_parker_finish(&parker));
}

static void check_places(void)
{
	static const enum pin_park_state modes[] = {PIN_PARK_FUTEX, PIN_PARK_RING};
	struct pin_host host = pin_host_linux;
	struct pin_parker parker;

	host.futex_wake = count_wake;
	pin_parker_init(&parker);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(modes); i++) {
		expect_number("runs", PIN_RUNNING, pin_parker_place(&parker));
		expect_true("prepares", pin_parker_prepare(&parker, modes[i]));
		expect_number("sleeps", modes[i], pin_parker_place(&parker));
		expect_true("is parked", pin_parker_is_parked(&parker));
		(void)pin_parker_notify(&parker, &host);
		expect_number("a waker has come", PIN_RUNNING, pin_parker_place(&parker));
		expect_true("no other needs to", !pin_parker_is_parked(&parker));
		(void)pin_parker_finish(&parker);
	}
	(void)pin_parker_notify(&parker, &host);
	expect_number("runs, with a token", PIN_RUNNING, pin_parker_place(&parker));
}

static struct pin_parker shared_parker;
static struct pin_atomic_u32 asked;    /* rounds the waker has begun */
static struct pin_atomic_u32 answered; /* rounds the sleeper has seen */

static void *sleep_rounds(void *arg)
{
	uint32_t seen = 0;

	(void)arg;
	while (seen < ROUNDS) {
		if (pin_load_acquire_u32(&asked) != seen) {
			seen++;
			pin_store_release_u32(&answered, seen);
			continue;
		}
		if (!pin_parker_prepare(&shared_parker, PIN_PARK_FUTEX)) {
			continue;
		}
		pin_fence_seq_cst();
		if (pin_load_acquire_u32(&asked) == seen) {
			pin_parker_sleep(&shared_parker, &pin_host_linux, PIN_NO_DEADLINE);
		}
		pin_parker_finish(&shared_parker);
	}
	return NULL;
}

static void check_rounds(void)
{
	pthread_t sleeper;

	pin_parker_init(&shared_parker);
	expect_ready("thread", pthread_create(&sleeper, NULL, sleep_rounds, NULL) == 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		pin_store_release_u32(&asked, i);
		pin_fence_seq_cst();
		pin_parker_notify(&shared_parker, &pin_host_linux);
		while (pin_load_acquire_u32(&answered) != i) {
			pin_host_linux.yield();
		}
	}
	pthread_join(sleeper, NULL);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_steps();
	check_places();
	check_rounds();
	return expect_status();
}
