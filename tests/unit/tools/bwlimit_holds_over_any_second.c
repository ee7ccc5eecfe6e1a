/* SPDX-License-Identifier: MIT */
/*
 * Goal: what reads ask for in any second is within 3 % of the rate, above and
 * below, from 2 MB/s to 4 GB/s and with any window, although workers start
 * their reads some milliseconds late: also in each second after a change to a
 * lower or a higher rate, and while the rate is set ten times a second to the
 * lower of two, as with a target.
 * Method: the library's limiter on a clock of our own; workers that always want
 * another window, ask for it in the parts that the limiter says, and are late
 * by up to 4 ms; each second that begins or ends with a read is added up.
 * PINION_SEED.
 */
#include "runtime/io/rate_limit.h"
#include "runtime/io/request.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/limits.h"

#include <pinion/tuning.h>

enum { WORKERS_MAX = 8, READS_MAX = 1 << 17, SECONDS = 5 };

#define SECOND_NS UINT64_C(1000000000)
#define LATE_NS_MAX UINT64_C(4000000)
#define WINDOW_BYTES (UINT64_C(1) << 20)

static struct pin_host host;
static struct pin_limiter limiter;
static uint64_t clock_ns;
static struct random_source dice;

static struct {
	struct pin_allowance allowance;
	uint64_t window_left; /* bytes */
	uint64_t next_ns;     /* when it asks again, or starts */
} workers[WORKERS_MAX];

static struct {
	uint64_t start_ns;
	uint64_t bytes;
} reads[READS_MAX];

static uint32_t read_count;

static uint64_t now_ns(void)
{
	return clock_ns;
}

/* As worker/device_queue.c cuts a request. */
static uint64_t next_part(uint32_t index)
{
	uint64_t most = pin_load_relaxed_u64(&limiter.part_bytes);
	uint64_t part = PIN_REQUEST_PART_BYTES;

	while (part > most && part > PIN_REQUEST_PART_BYTES_MIN) {
		part /= 2;
	}
	if (workers[index].window_left == 0) {
		workers[index].window_left = WINDOW_BYTES;
	}
	part -= (WINDOW_BYTES - workers[index].window_left) % part;
	return part < workers[index].window_left ? part : workers[index].window_left;
}

/* Nothing if the read is granted for later; then the worker asks again. */
static void ask(uint32_t index)
{
	const uint64_t wanted[PIN_LIMITED_KINDS] = {
		[PIN_LIMITED_BYTES] = next_part(index), [PIN_LIMITED_REQUESTS] = 1};
	uint64_t due_ns = pin_limiter_due(&limiter, &host, &workers[index].allowance, wanted);

	if (due_ns != 0) {
		workers[index].next_ns = due_ns + random_below(&dice, LATE_NS_MAX);
		return;
	}
	pin_limiter_spend(&workers[index].allowance, wanted);
	workers[index].window_left -= wanted[PIN_LIMITED_BYTES];
	reads[read_count].start_ns = clock_ns;
	reads[read_count].bytes = wanted[PIN_LIMITED_BYTES];
	read_count++;
}

static void simulate(uint32_t worker_count, uint64_t duration_ns)
{
	uint64_t end_ns = clock_ns + duration_ns;

	while (read_count < READS_MAX) {
		uint32_t next = 0;

		for (uint32_t i = 1; i < worker_count; i++) {
			next = workers[i].next_ns < workers[next].next_ns ? i : next;
		}
		if (workers[next].next_ns >= end_ns) {
			clock_ns = end_ns;
			return;
		}
		clock_ns = workers[next].next_ns > clock_ns ? workers[next].next_ns : clock_ns;
		ask(next);
	}
}

/* Has all workers check, as the library does. */
static void set(uint64_t bytes_per_second)
{
	const uint64_t rates[PIN_LIMITED_KINDS] = {[PIN_LIMITED_BYTES] = bytes_per_second};

	pin_limiter_set(&limiter, &host, rates);
	for (uint32_t i = 0; i < WORKERS_MAX; i++) {
		uint64_t looks_ns = clock_ns + random_below(&dice, LATE_NS_MAX);

		workers[i].next_ns = workers[i].next_ns < looks_ns ? workers[i].next_ns : looks_ns;
	}
}

static void begin(uint64_t bytes_per_second, uint32_t worker_count)
{
	memset(&limiter, 0, sizeof(limiter));
	memset(workers, 0, sizeof(workers));
	limiter.worker_count = worker_count;
	read_count = 0;
	set(bytes_per_second);
}

/* Of the reads from that time on. */
static void expect_rate(const char *what, uint64_t rate, uint64_t from_ns)
{
	uint64_t most = 0;
	uint64_t least = UINT64_MAX;
	uint64_t bytes = 0; /* from the first to before the last */
	uint32_t first = 0;

	while (first < read_count && reads[first].start_ns < from_ns) {
		first++;
	}
	expect_true("some seconds",
		first < read_count &&
			reads[read_count - 1].start_ns - reads[first].start_ns > 2 * SECOND_NS);
	for (uint32_t last = first; last < read_count; last++) {
		while (reads[last].start_ns - reads[first].start_ns > SECOND_NS) {
			bytes -= reads[first].bytes;
			first++;
		}
		if (reads[last].start_ns - from_ns > SECOND_NS) {
			/* From a second before it to just before it. */
			least = bytes < least ? bytes : least;
		}
		bytes += reads[last].bytes;
		most = bytes > most ? bytes : most;
	}
	if (!expect_true("within 3 %", most * 100 <= rate * 103 && least * 100 >= rate * 97)) {
		printf("%s: %llu bytes a second: %llu to %llu\n", what, (unsigned long long)rate,
			(unsigned long long)least, (unsigned long long)most);
	}
}

static void check_constant(uint64_t rate, uint32_t worker_count)
{
	begin(rate, worker_count);
	simulate(worker_count, SECONDS * SECOND_NS);
	expect_rate("constant", rate, reads[0].start_ns);
}

static void check_change(uint64_t from, uint64_t to, uint32_t worker_count)
{
	begin(from, worker_count);
	simulate(worker_count, SECOND_NS + SECOND_NS / 3);
	read_count = 0;
	set(to);
	simulate(worker_count, SECONDS * SECOND_NS);
	expect_rate(from > to ? "after a lower rate" : "after a higher rate", to,
		clock_ns - SECONDS * SECOND_NS);
}

/* As tools/throttle.c with a target that is kept: its pace climbs. */
static void check_target(uint64_t rate, uint32_t worker_count)
{
	static const struct pinion_tuning tuning;
	struct limits limits = LIMITS_NONE;
	uint64_t pace = 16000000;
	uint64_t from_ns = 0;

	limits.bytes_per_second = rate;
	limits.has_bytes = true;
	begin(pace < rate ? pace : rate, worker_count);
	for (uint32_t i = 0; i < 10 * SECONDS; i++) {
		struct pinion_limits rates;

		simulate(worker_count, SECOND_NS / 10);
		pace += pace / 8;
		limits_rates(&limits, &tuning, pace, &rates);
		set(rates.bytes_per_second);
		if (pace >= rate && from_ns == 0) {
			from_ns = clock_ns;
		}
	}
	expect_rate("with a target", rate, from_ns);
}

int main(void)
{
	static const uint64_t rates[] = {2000000, 10000000, 77000000, 500000000, 4000000000};
	static const uint32_t worker_counts[] = {1, 2, WORKERS_MAX};

	host = pin_host_linux;
	host.now_ns = now_ns;
	clock_ns = 1000 * SECOND_NS;
	random_begin(&dice);
	for (size_t i = 0; i < sizeof(worker_counts) / sizeof(worker_counts[0]); i++) {
		for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++) {
			check_constant(rates[k], worker_counts[i]);
		}
		check_change(500000000, 5000000, worker_counts[i]);
		check_change(500000000, 250000000, worker_counts[i]);
		check_change(5000000, 500000000, worker_counts[i]);
		check_target(5000000, worker_counts[i]);
		check_target(100000000, worker_counts[i]);
	}
	return expect_status();
}
