/* SPDX-License-Identifier: MIT */
/*
 * Goal: with the window that --bwlimit chooses, what reads ask for in any
 * second is within 3 % of the rate, above and below, from 2 MB/s to 4 GB/s,
 * although workers start their reads some milliseconds late.
 * Method: the library's limiter on a clock of our own; workers that always want
 * another window, and are late by up to 4 ms; each second that begins or ends
 * with a read is added up. PINION_SEED.
 */
#include "runtime/io/rate_limit.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/limits.h"

enum { WORKERS_MAX = 8, READS_MAX = 1 << 17, SECONDS = 5 };

#define SECOND_NS UINT64_C(1000000000)
#define LATE_NS_MAX UINT64_C(4000000)

static struct pin_host host;
static struct pin_limiter limiter;
static uint64_t clock_ns;
static struct random_source dice;

static struct {
	struct pin_allowance allowance;
	uint64_t next_ns; /* when it asks again, or starts */
} workers[WORKERS_MAX];

static uint64_t starts_ns[READS_MAX];

static uint64_t now_ns(void)
{
	return clock_ns;
}

/* False: the read is granted for later; then the worker asks again. */
static bool ask(uint32_t index, uint64_t window_bytes)
{
	const uint64_t wanted[PIN_LIMITED_KINDS] = {
		[PIN_LIMITED_BYTES] = window_bytes, [PIN_LIMITED_REQUESTS] = 1};
	uint64_t due_ns = pin_limiter_due(&limiter, &host, &workers[index].allowance, wanted);

	if (due_ns != 0) {
		workers[index].next_ns = due_ns + random_below(&dice, LATE_NS_MAX);
		return false;
	}
	pin_limiter_spend(&workers[index].allowance, wanted);
	return true;
}

static uint32_t simulate(uint32_t worker_count, uint64_t window_bytes)
{
	uint64_t end_ns = clock_ns + SECONDS * SECOND_NS;
	uint32_t count = 0;

	for (;;) {
		uint32_t next = 0;

		for (uint32_t i = 1; i < worker_count; i++) {
			next = workers[i].next_ns < workers[next].next_ns ? i : next;
		}
		clock_ns = workers[next].next_ns > clock_ns ? workers[next].next_ns : clock_ns;
		if (clock_ns >= end_ns || count == READS_MAX) {
			return count;
		}
		if (ask(next, window_bytes)) {
			starts_ns[count++] = clock_ns;
		}
	}
}

static void check(uint64_t rate, uint32_t worker_count)
{
	const uint64_t rates[PIN_LIMITED_KINDS] = {[PIN_LIMITED_BYTES] = rate};
	struct limits limits = LIMITS_NONE;
	uint64_t window_bytes;
	uint64_t most = 0;
	uint64_t least = UINT64_MAX;
	uint32_t count;

	limits.bytes_per_second = rate;
	window_bytes = limits_window_bytes(&limits, worker_count, false);
	memset(workers, 0, sizeof(workers));
	pin_limiter_set(&limiter, &host, rates);
	count = simulate(worker_count, window_bytes);
	expect_true(
		"some seconds", count > 0 && starts_ns[count - 1] - starts_ns[0] > 2 * SECOND_NS);
	for (uint32_t first = 0, last = 0; last < count; last++) {
		uint64_t bytes;

		/* From just after the read before to just before the next. */
		while (starts_ns[last] - starts_ns[first] >= SECOND_NS) {
			first++;
		}
		if (first == 0) {
			continue;
		}
		bytes = (last - first + 1) * window_bytes;
		most = bytes > most ? bytes : most;
		least = bytes < least ? bytes : least;
	}
	if (!expect_true("within 3 %", most * 100 <= rate * 103 && least * 100 >= rate * 97)) {
		printf("%llu bytes a second, %u workers, windows of %llu: %llu to %llu\n",
			(unsigned long long)rate, worker_count, (unsigned long long)window_bytes,
			(unsigned long long)least, (unsigned long long)most);
	}
}

int main(void)
{
	static const uint64_t rates[] = {2000000, 10000000, 77000000, 500000000, 4000000000};

	host.now_ns = now_ns;
	clock_ns = SECOND_NS;
	random_begin(&dice);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		check(rates[i], 1);
		check(rates[i], 2);
		check(rates[i], WORKERS_MAX);
	}
	return expect_status();
}
