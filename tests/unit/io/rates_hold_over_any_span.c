/* SPDX-License-Identifier: MIT */
/*
 * Goal: a limiter grants in any span of time at most its rates' amount for that
 * span, and 10 ms, and a reservation for each worker; it grants not much less
 * either; rates may change at any time and hold from then on, also for
 * reservations made before. G2.
 * Method: a clock of our own; workers that want a random amount all the time,
 * and start when they are granted it; a running minimum checks every span
 * between two starts; PINION_SEED.
 */
#include "runtime/base/base.h"
#include "runtime/io/rate_limit.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

enum { WORKERS = 5, STARTS = 20000 };

#define SECOND_NS UINT64_C(1000000000)

static struct pin_host host;
static uint64_t clock_ns;
static struct random_source dice;

static uint64_t now_ns(void)
{
	return clock_ns;
}

struct model_worker {
	struct pin_allowance allowance;
	uint64_t amounts[PIN_LIMITED_KINDS];
	uint64_t due_ns;
};

static struct pin_limiter limiter;
static struct model_worker workers[WORKERS];

static void choose(struct model_worker *worker, uint64_t bytes_max)
{
	worker->amounts[PIN_LIMITED_BYTES] = 1 + random_below(&dice, bytes_max);
	worker->amounts[PIN_LIMITED_REQUESTS] = 1;
}

static void set(uint64_t bytes, uint64_t requests)
{
	const uint64_t rates[PIN_LIMITED_KINDS] = {
		[PIN_LIMITED_BYTES] = bytes, [PIN_LIMITED_REQUESTS] = requests};

	pin_limiter_set(&limiter, &host, rates);
}

/* The worker that may go first does; the clock moves there. */
static struct model_worker *start_next(void)
{
	struct model_worker *next = NULL;

	for (uint32_t i = 0; i < WORKERS; i++) {
		struct model_worker *worker = &workers[i];

		worker->due_ns =
			pin_limiter_due(&limiter, &host, &worker->allowance, worker->amounts);
		if (next == NULL || worker->due_ns < next->due_ns) {
			next = worker;
		}
	}
	if (next->due_ns > clock_ns) {
		clock_ns = next->due_ns;
		expect_number("due when it was said", 0,
			(long long)pin_limiter_due(
				&limiter, &host, &next->allowance, next->amounts));
	}
	pin_limiter_spend(&next->allowance, next->amounts);
	return next;
}

/* Of one kind: most that went beyond its rate, over all spans that end now. */
struct watch {
	double rate;
	double sum;
	double low; /* least of sum - rate * time */
	double worst;
};

static void note(struct watch *watch, uint64_t amount)
{
	double beyond = watch->sum - watch->rate * (double)clock_ns / 1e9;

	watch->low = beyond < watch->low ? beyond : watch->low;
	watch->sum += (double)amount;
	beyond += (double)amount - watch->low;
	watch->worst = beyond > watch->worst ? beyond : watch->worst;
}

static void run(uint64_t bytes_rate, uint64_t requests_rate, uint64_t bytes_max)
{
	struct watch bytes = {.rate = (double)bytes_rate, .low = 1e300};
	struct watch requests = {.rate = (double)requests_rate, .low = 1e300};
	uint64_t begin_ns = clock_ns;
	double seconds;
	double burst = 0.010 + (WORKERS + 1) * 0.001;
	double share_bytes;
	double share_requests;

	set(bytes_rate, requests_rate);
	for (uint32_t i = 0; i < WORKERS; i++) {
		choose(&workers[i], bytes_max);
	}
	for (uint32_t i = 0; i < STARTS; i++) {
		struct model_worker *worker = start_next();

		note(&bytes, worker->amounts[PIN_LIMITED_BYTES]);
		note(&requests, 1);
		choose(worker, bytes_max);
		if (random_below(&dice, 1000) == 0) {
			clock_ns += random_below(&dice, SECOND_NS / 10);
		}
	}
	seconds = (double)(clock_ns - begin_ns) / 1e9;
	if (bytes_rate != 0 &&
		bytes.worst > bytes.rate * burst + (double)(WORKERS + 1) * (double)bytes_max) {
		printf("%.0f bytes beyond %.0f per second\n", bytes.worst, bytes.rate);
		expect_failure_count++;
	}
	if (requests_rate != 0 && requests.worst > requests.rate * burst + WORKERS + 1) {
		printf("%.0f requests beyond %.0f per second\n", requests.worst, requests.rate);
		expect_failure_count++;
	}
	/* One of the two, at least, is used; pauses aside. */
	share_bytes = bytes_rate == 0 ? 0 : bytes.sum / bytes.rate;
	share_requests = requests_rate == 0 ? 0 : requests.sum / requests.rate;
	if ((share_bytes > share_requests ? share_bytes : share_requests) < 0.9 * seconds - 2.5) {
		printf("%.3f s and %.3f s of %.3f s are used\n", share_bytes, share_requests,
			seconds);
		expect_failure_count++;
	}
}

/* An hour's wait is void when the rate is another. */
static void check_change(void)
{
	set(1, 0);
	for (uint32_t i = 0; i < WORKERS; i++) {
		choose(&workers[i], 1 << 20);
		workers[i].amounts[PIN_LIMITED_BYTES] += 3600;
		(void)pin_limiter_due(&limiter, &host, &workers[i].allowance, workers[i].amounts);
	}
	expect_true("a low rate takes long",
		pin_limiter_due(&limiter, &host, &workers[1].allowance, workers[1].amounts) >=
			clock_ns + 3600 * SECOND_NS);
	set(1 << 30, 0);
	expect_true("a higher one does not",
		pin_limiter_due(&limiter, &host, &workers[1].allowance, workers[1].amounts) <=
			clock_ns + SECOND_NS / 100);
	set(0, 0);
	for (uint32_t i = 0; i < WORKERS; i++) {
		expect_number("none", 0,
			(long long)pin_limiter_due(
				&limiter, &host, &workers[i].allowance, workers[i].amounts));
	}
}

static void check_costs(void)
{
	struct pin_rate rate = {.per_second = 3};

	expect_number("1 of 3 in a second", 333333334, (long long)pin_rate_cost_ns(&rate, 1));
	expect_number("6 of 3", 2000000000, (long long)pin_rate_cost_ns(&rate, 6));
	rate.per_second = 1;
	expect_number("2 GiB of 1", (long long)((UINT64_C(1) << 31) - 1) * 1000000000,
		(long long)pin_rate_cost_ns(&rate, (UINT64_C(1) << 31) - 1));
	expect_number("more than fits", 1LL << 61, (long long)pin_rate_cost_ns(&rate, UINT64_MAX));
	rate.per_second = UINT64_C(1) << 62;
	expect_true("half of 2^62",
		pin_rate_cost_ns(&rate, UINT64_C(1) << 61) >= SECOND_NS / 2 &&
			pin_rate_cost_ns(&rate, UINT64_C(1) << 61) <= SECOND_NS / 2 + 2);
}

int main(void)
{
	random_begin(&dice);
	host = pin_host_linux;
	host.now_ns = now_ns;
	clock_ns = 1000 * SECOND_NS;
	check_costs();
	run(100 * 1000 * 1000, 0, 1 << 20);
	run(1000 * 1000, 0, 1 << 20);
	run(0, 500, 1 << 20);
	run(0, 200000, 4096);
	run(UINT64_C(4) << 30, 1000, 8 << 20);
	run(1000, 3, 4096);
	check_change();
	return expect_status();
}
