/* SPDX-License-Identifier: MIT */
/*
 * Goal: a reservation is a thousandth of a second's amount at least, else the
 * missing part; it may be used when all before it is spoken for and its own
 * time has passed; after a pause 10 ms are made up for, or a part. A set
 * changes the slope: amounts that have accrued stay, at any rate, reservations
 * that were usable are given back, others are void; a set to the same rate does
 * nothing. A cost is rounded up, at rates up to 2^62 per second.
 * Method: a clock of our own; numbers worked out by hand.
 */
#include "runtime/io/rate_limit.h"
#include "tests/support/expect.h"

#define MS UINT64_C(1000000)
#define START (1000 * MS)

static struct pin_host host;
static struct pin_limiter limiter;
static struct pin_allowance allowance;
static uint64_t clock_ns;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static void set(uint64_t bytes, uint64_t requests)
{
	const uint64_t rates[PIN_LIMITED_KINDS] = {
		[PIN_LIMITED_BYTES] = bytes, [PIN_LIMITED_REQUESTS] = requests};

	pin_limiter_set(&limiter, &host, rates);
}

static void begin(uint64_t bytes, uint64_t requests)
{
	memset(&limiter, 0, sizeof(limiter));
	memset(&allowance, 0, sizeof(allowance));
	clock_ns = START;
	set(bytes, requests);
}

/* When one request of those bytes may start, after START; 0: now. */
static uint64_t due(uint64_t bytes)
{
	const uint64_t wanted[PIN_LIMITED_KINDS] = {
		[PIN_LIMITED_BYTES] = bytes, [PIN_LIMITED_REQUESTS] = 1};
	uint64_t due_ns = pin_limiter_due(&limiter, &host, &allowance, wanted);

	return due_ns == 0 ? 0 : due_ns - START;
}

static void spend(uint64_t bytes)
{
	const uint64_t amounts[PIN_LIMITED_KINDS] = {
		[PIN_LIMITED_BYTES] = bytes, [PIN_LIMITED_REQUESTS] = 1};

	pin_limiter_spend(&allowance, amounts);
}

static void expect_left(const char *what, uint64_t bytes)
{
	expect_number(what, (long long)bytes, (long long)allowance.left[PIN_LIMITED_BYTES]);
}

/* 1000000 bytes a second: 1000 in a part, 1 ms. */
static void check_reservations(void)
{
	begin(1000000, 0);
	expect_number("on", 1, pin_load_relaxed_u32(&limiter.is_on));
	expect_number("at once", 0, (long long)due(1));
	expect_left("a part", 1000);
	expect_true("no limit of requests", allowance.left[PIN_LIMITED_REQUESTS] == UINT64_MAX);
	spend(400);
	expect_left("of it", 600);
	expect_number("what is left", 0, (long long)due(600));
	expect_left("nothing was reserved", 600);
	expect_number("400 are missing, a part is reserved", 0, (long long)due(1000));
	expect_left("what was left and a part", 1600);
	spend(1600);
	expect_left("none", 0);
	expect_number("the rest of 10 ms", 0, (long long)due(8000));
	spend(8000);
	expect_number("no more: a part's time", (long long)MS, (long long)due(1));
	expect_left("not usable", 0);
	expect_number("nothing was reserved", (long long)MS, (long long)due(1000));
	expect_number("one byte more, a part more", (long long)(2 * MS), (long long)due(1001));
	clock_ns = START + 2 * MS - 1;
	expect_number("not yet", (long long)(2 * MS), (long long)due(1001));
	expect_left("nothing yet", 0);
	clock_ns = START + 2 * MS;
	expect_number("now", 0, (long long)due(1001));
	expect_left("two parts", 2000);
	spend(1500);
	expect_number("more than a part", (long long)(6 * MS + MS / 2), (long long)due(5000));
	spend(6000);
	expect_left("not less than none", 0);
}

/* Another worker has the lock: what was reserved decides without it. */
static void check_lock(void)
{
	begin(1000000, 0);
	expect_number("at once", 0, (long long)due(1));
	pin_lock_acquire(&limiter.lock, &host);
	expect_number("a part of it", 0, (long long)due(999));
	expect_number("all of it", 0, (long long)due(1000));
	pin_lock_release(&limiter.lock, &host);
	spend(600);
	expect_number("10 ms at once", 0, (long long)due(9000));
	spend(8600);
	/* 9600 of the 10000 bytes of 10 ms are reserved, and now 1000 more. */
	expect_number("a part is to come", (long long)(3 * MS / 5), (long long)due(1000));
	pin_lock_acquire(&limiter.lock, &host);
	expect_number("all of both", (long long)(3 * MS / 5), (long long)due(1400));
	expect_number("what was left", 0, (long long)due(400));
	pin_lock_release(&limiter.lock, &host);
}

static void check_pause(void)
{
	begin(1000000, 0);
	expect_number("10 ms", 0, (long long)due(10000));
	spend(10000);
	expect_number("and no more", (long long)MS, (long long)due(1));
	clock_ns = START + 11 * MS;
	expect_number("made up for", 0, (long long)due(11000));
	spend(11000);
	expect_number("all of it", (long long)(12 * MS), (long long)due(1000));
	clock_ns = START + 1000 * MS;
	expect_number("it came meanwhile", 0, (long long)due(1000));
	spend(1000);
	expect_number("a long pause", 0, (long long)due(10000));
	spend(10000);
	expect_number("no more", (long long)(1001 * MS), (long long)due(1000));
	clock_ns = START + 9000 * MS;
	expect_number("it came meanwhile", 0, (long long)due(1000));
	spend(1000);
	expect_number("a second's at once", 0, (long long)due(1000000));
	spend(1000000);
	expect_number("paid for", (long long)(9001 * MS), (long long)due(1));
}

static void check_requests(void)
{
	uint64_t epoch;

	begin(1000000, 2);
	epoch = pin_load_relaxed_u32(&limiter.epoch);
	expect_number("the first", 0, (long long)due(1));
	spend(1);
	/* The later of both. */
	expect_number("half a second", (long long)(500 * MS), (long long)due(1));
	set(1000000, 4);
	expect_number("a new epoch", (long long)epoch + 1,
		(long long)pin_load_relaxed_u32(&limiter.epoch));
	expect_number("a quarter", (long long)(250 * MS), (long long)due(1));
	expect_left("of the other rate, kept", 999);
	clock_ns = START + 100 * MS;
	set(1000000, 2);
	expect_number("0.4 of it have accrued", (long long)(400 * MS), (long long)due(1));
	set(0, 0);
	expect_number("off", 0, pin_load_relaxed_u32(&limiter.is_on));
	expect_number("at once", 0, (long long)due(UINT64_MAX / 2));
	set(0, 1);
	expect_number("requests alone", 1, pin_load_relaxed_u32(&limiter.is_on));
	expect_number("the first", 0, (long long)due(UINT64_MAX / 2));
	spend(1);
	expect_number("nothing is left of those without a rate", (long long)(1100 * MS),
		(long long)due(1));
}

static void check_sets(void)
{
	uint64_t epoch;

	begin(1000, 0);
	expect_number("the first", 0, (long long)due(100));
	spend(100);
	expect_number("the next", (long long)(100 * MS), (long long)due(100));
	epoch = pin_load_relaxed_u32(&limiter.epoch);
	clock_ns = START + 50 * MS;
	set(1000, 0);
	expect_number("the same", (long long)epoch, pin_load_relaxed_u32(&limiter.epoch));
	expect_number("is the same", (long long)(100 * MS), (long long)due(100));
	set(500, 0);
	expect_number("50 at half", (long long)(150 * MS), (long long)due(100));
	set(2000, 0);
	expect_number("50 at twice", (long long)(75 * MS), (long long)due(100));
	for (uint32_t i = 0; i < 100; i++) {
		set(500, 0);
		set(2000, 0);
	}
	expect_number("however often", (long long)(75 * MS), (long long)due(100));
}

static void check_give_back(void)
{
	begin(100000, 0);
	expect_number("usable", 0, (long long)due(1000));
	spend(940);
	set(50000, 0);
	/* 60 go back, 1.2 ms; a part is 50, 1 ms. */
	expect_number("at once", 0, (long long)due(1));
	expect_left("a part of the new rate", 50);
	spend(50);
	expect_number(
		"0.2 ms are left, but for a ns", (long long)(MS - MS / 5 + 1), (long long)due(1));
	begin(100000, 0);
	(void)due(1000);
	set(0, 0);
	set(50000, 0);
	expect_number("at once", 0, (long long)due(500));
	spend(500);
	expect_number("nothing goes back to a rate that is new", (long long)MS, (long long)due(1));
}

static void check_parts(void)
{
	begin(1000000, 0);
	expect_number("a 50th", 20000, (long long)pin_load_relaxed_u64(&limiter.part_bytes));
	limiter.worker_count = 4;
	set(10000, 0);
	expect_number("shared by four, and one more", 40,
		(long long)pin_load_relaxed_u64(&limiter.part_bytes));
	set(1, 0);
	expect_number("the least", 1, (long long)pin_load_relaxed_u64(&limiter.part_bytes));
	set(0, 5);
	expect_number("any", 0, (long long)pin_load_relaxed_u64(&limiter.part_bytes));
}

static void expect_cost(const char *what, uint64_t per_second, uint64_t amount, uint64_t cost_ns)
{
	const struct pin_rate rate = {.per_second = per_second};

	expect_number(what, (long long)cost_ns, (long long)pin_rate_cost_ns(&rate, amount));
}

static void check_costs(void)
{
	expect_cost("none", 7, 0, 0);
	expect_cost("rounded up", 7, 1, 142857143);
	expect_cost("even", 8, 1, 125000000);
	expect_cost("a second and a part", 8, 9, 1125000000);
	expect_cost("half of 2^40", UINT64_C(1) << 40, UINT64_C(1) << 39, 500000001);
	expect_cost("as long as it is", 1, UINT64_C(1) << 31, UINT64_C(1) << 61);
	/* Where a part of a second's bytes in ns just fits 64 bits. */
	for (uint64_t rate = UINT64_C(18446000000000); rate < UINT64_C(18446900000000);
		rate += 5000000) {
		const struct pin_rate much = {.per_second = rate};
		uint64_t cost_ns = pin_rate_cost_ns(&much, rate / 1000);

		if (cost_ns < MS - MS / 50 || cost_ns > MS + MS / 50) {
			printf("a thousandth of %llu bytes takes %llu ns\n",
				(unsigned long long)rate, (unsigned long long)cost_ns);
			expect_failure_count++;
			return;
		}
	}
}

int main(void)
{
	host = pin_host_linux;
	host.now_ns = now_ns;
	check_reservations();
	check_lock();
	check_pause();
	check_requests();
	check_sets();
	check_give_back();
	check_parts();
	check_costs();
	return expect_status();
}
