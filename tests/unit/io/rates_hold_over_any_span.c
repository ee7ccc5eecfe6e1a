/* SPDX-License-Identifier: MIT */
/*
 * Goal: a limiter grants in any span of time at most its rates' amount for that
 * span, and 10 ms, and a reservation for each worker; it grants not much less
 * either; rates may change at any time and hold from then on, also for
 * reservations made before; rates that are set again and again, to others or
 * the same, give and lose nothing. G2.
 * Method: a clock of our own; workers that want a random amount all the time,
 * and start when they are granted it; a running minimum checks every span
 * between two starts against the sum of the rates over it; PINION_SEED.
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

/*
 * The worker that may go first does; the clock moves there. NULL: not before
 * that time, when the clock is then.
 */
static struct model_worker *start_next(uint64_t until_ns)
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
	if (next->due_ns >= until_ns || clock_ns >= until_ns) {
		clock_ns = clock_ns > until_ns ? clock_ns : until_ns;
		return NULL;
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
	double allowed; /* by the rates until then */
	uint64_t then_ns;
	double sum;
	double low; /* least of sum - allowed */
	double worst;
};

static void pass(struct watch *watch)
{
	watch->allowed += watch->rate * (double)(clock_ns - watch->then_ns) / 1e9;
	watch->then_ns = clock_ns;
}

static void note(struct watch *watch, uint64_t amount)
{
	double beyond;

	pass(watch);
	beyond = watch->sum - watch->allowed;
	watch->low = beyond < watch->low ? beyond : watch->low;
	watch->sum += (double)amount;
	beyond += (double)amount - watch->low;
	watch->worst = beyond > watch->worst ? beyond : watch->worst;
}

static struct watch bytes;
static struct watch requests;

/* Of a half to all of these rates; of low ones 0 would be none. */
static void set_others(uint64_t bytes_rate, uint64_t requests_rate)
{
	uint64_t part = 4 + random_below(&dice, 5);

	pass(&bytes);
	pass(&requests);
	bytes_rate = (bytes_rate * part + 7) / 8;
	requests_rate = (requests_rate * part + 7) / 8;
	set(bytes_rate, requests_rate);
	bytes.rate = (double)bytes_rate;
	requests.rate = (double)requests_rate;
}

static void check_worst(
	const char *unit, const struct watch *watch, uint64_t rate, uint64_t amount_max)
{
	double most = (double)rate * (0.010 + (WORKERS + 1) * 0.001) +
		(double)(WORKERS + 1) * (double)amount_max;

	if (rate != 0 && watch->worst > most) {
		printf("%.0f %s beyond %llu per second\n", watch->worst, unit,
			(unsigned long long)rate);
		expect_failure_count++;
	}
}

/* One of the two, at least, is used; pauses aside. */
static void check_used(double seconds)
{
	double share_bytes = bytes.allowed == 0 ? 0 : bytes.sum / bytes.allowed;
	double share_requests = requests.allowed == 0 ? 0 : requests.sum / requests.allowed;

	if ((share_bytes > share_requests ? share_bytes : share_requests) * seconds <
		0.97 * seconds - 2.5) {
		printf("%.3f of the bytes and %.3f of the requests in %.3f s are used\n",
			share_bytes, share_requests, seconds);
		expect_failure_count++;
	}
}

/* `set_ns`: rates are set each time that it has passed; 0: never. */
static void run(uint64_t bytes_rate, uint64_t requests_rate, uint64_t bytes_max, uint64_t set_ns)
{
	uint64_t begin_ns = clock_ns;
	uint64_t next_set_ns = clock_ns + set_ns;

	set(bytes_rate, requests_rate);
	bytes = (struct watch){.rate = (double)bytes_rate, .then_ns = clock_ns, .low = 1e300};
	requests = (struct watch){.rate = (double)requests_rate, .then_ns = clock_ns, .low = 1e300};
	for (uint32_t i = 0; i < WORKERS; i++) {
		choose(&workers[i], bytes_max);
	}
	for (uint32_t i = 0; i < STARTS; i++) {
		struct model_worker *worker = start_next(set_ns == 0 ? UINT64_MAX : next_set_ns);

		if (worker == NULL) {
			set_others(bytes_rate, requests_rate);
			next_set_ns = clock_ns + set_ns;
			continue;
		}
		note(&bytes, worker->amounts[PIN_LIMITED_BYTES]);
		note(&requests, 1);
		choose(worker, bytes_max);
		if (random_below(&dice, 1000) == 0) {
			clock_ns += random_below(&dice, SECOND_NS / 10);
		}
	}
	pass(&bytes);
	pass(&requests);
	check_worst("bytes", &bytes, bytes_rate, bytes_max);
	check_worst("requests", &requests, requests_rate, 1);
	check_used((double)(clock_ns - begin_ns) / 1e9);
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
	for (uint32_t i = 0; i < 3; i++) {
		static const uint64_t sets_ns[] = {0, SECOND_NS / 10, SECOND_NS / 100};

		run(100 * 1000 * 1000, 0, 1 << 20, sets_ns[i]);
		run(1000 * 1000, 0, 1 << 20, sets_ns[i]);
		run(0, 500, 1 << 20, sets_ns[i]);
		run(0, 200000, 4096, sets_ns[i]);
		run(UINT64_C(4) << 30, 1000, 8 << 20, sets_ns[i]);
		run(1000, 3, 4096, sets_ns[i]);
	}
	check_change();
	return expect_status();
}
