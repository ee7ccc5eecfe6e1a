/* SPDX-License-Identifier: MIT */
/*
 * Goal: a request whose cancel found nothing in the kernel is asked for again
 * after 10 ms at first, after twice as long each time, and every 1.28 s from
 * the eighth time on. G2.
 * Method: one worker without a thread, on a clock that is set by hand, whose
 * ring has nothing to cancel. Each time the next deadline is compared.
 */
#include "runtime/worker/request.h"
#include "runtime/worker/state.h"
#include "tests/support/expect.h"

#include <errno.h>

enum {
	FIRST_NS = 10 * 1000 * 1000,
	DOUBLINGS = 7,
	TIMES = 10,
};

static uint64_t clock_ns;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static const struct pin_host host = {.now_ns = now_ns};
static struct pin_shared shared = {.host = &host};
static struct pin_worker worker = {.shared = &shared, .ring.is_fallback = true};

int main(void)
{
	struct pinion_request request = {.op = PINION_OP_READ};
	struct pin_request *private = pin_request_of(&request);

	pin_timers_init(&worker.deadlines, 0);
	private->ended_by = -ECANCELED;
	private->asked_again = 1;
	for (uint32_t i = 1; i <= TIMES; i++) {
		uint64_t pause_ns = (uint64_t)FIRST_NS << (i < DOUBLINGS ? i : DOUBLINGS);

		clock_ns += FIRST_NS;
		pin_requests_expire(&worker, &private->deadline);
		expect_number("asks next", (long long)(clock_ns + pause_ns),
			(long long)private->deadline.due_ns);
		expect_true("armed", pin_timers_cancel(&worker.deadlines, &private->deadline));
	}
	return expect_status();
}
