/* SPDX-License-Identifier: MIT */
/*
 * Goal: credit is never handed out beyond its limit, exactly so for limits that
 * a user has set; every worker comes to its share, a large request is not
 * passed for ever by small ones, a lower limit is come down to, a worker with
 * credit of its own does not touch the shared word, nor does an only worker,
 * nor each end of a batch, and a leaving worker keeps none. G2.
 * Method: four workers on one thread, with random requests that wait in a line
 * of their own, held against plain sums; PINION_SEED.
 */
#include "runtime/base/base.h"
#include "runtime/io/device_credit.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

enum { WORKERS = 4, IN_DEVICE_MAX = 512, ROUNDS = 200000 };

struct model_worker {
	struct pin_holding holding;
	bool has_grant;
	uint64_t amounts[IN_DEVICE_MAX];
	uint32_t in_device;
	uint32_t wanted_pages; /* of the first that waits; 0: none does */
	uint32_t waiting_since;
	uint32_t started;
};

static struct pin_credit credit;
static struct model_worker workers[WORKERS];
static struct random_source dice;
static uint32_t now;
static uint32_t longest_wait;

static void granted(struct pin_holding *holding)
{
	PIN_CONTAINER_OF(holding, struct model_worker, holding)->has_grant = true;
}

static void begin_with(uint32_t worker_count, uint64_t count, uint64_t pages, bool is_exact)
{
	pin_credit_init(&credit, &pin_host_linux, worker_count);
	pin_credit_set(&credit, count, pages, is_exact);
	memset(workers, 0, sizeof(workers));
	for (uint32_t i = 0; i < WORKERS; i++) {
		pin_holding_init(&workers[i].holding, granted);
	}
	now = 0;
	longest_wait = 0;
}

static void begin(uint64_t count, uint64_t pages, bool is_exact)
{
	begin_with(WORKERS, count, pages, is_exact);
}

/* As worker/device_queue.c: starts a waiting request, else queues for it. */
static void look(struct model_worker *worker)
{
	uint64_t amount;

	if (worker->has_grant) {
		worker->has_grant = false;
		if (pin_credit_collect(&worker->holding) && worker->wanted_pages == 0) {
			pin_credit_leave(&credit, &worker->holding);
		}
	}
	if (worker->wanted_pages == 0) {
		return;
	}
	if (worker->in_device == IN_DEVICE_MAX ||
		!pin_credit_use(&credit, &worker->holding, worker->wanted_pages, &amount)) {
		pin_credit_await(&credit, &worker->holding, worker->wanted_pages);
		return;
	}
	worker->amounts[worker->in_device] = amount;
	worker->in_device++;
	worker->started++;
	if (now - worker->waiting_since > longest_wait) {
		longest_wait = now - worker->waiting_since;
	}
	worker->wanted_pages = 0;
	pin_credit_leave(&credit, &worker->holding);
}

static void want(struct model_worker *worker, uint32_t pages)
{
	if (worker->wanted_pages == 0) {
		worker->wanted_pages = pages;
		worker->waiting_since = now;
	}
	look(worker);
}

static void end_one(struct model_worker *worker)
{
	uint64_t amount;

	if (worker->in_device == 0) {
		return;
	}
	worker->in_device--;
	amount = worker->amounts[worker->in_device];
	pin_credit_end(&credit, &worker->holding, amount, worker->wanted_pages != 0);
	look(worker);
}

static uint64_t sum_used(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < WORKERS; i++) {
		sum += workers[i].holding.used;
	}
	return sum;
}

static void expect_sums(uint64_t limit)
{
	uint64_t used = sum_used();
	uint64_t taken = pin_load_relaxed_u64(&credit.taken);

	if (pin_credit_count(used) > pin_credit_count(limit) ||
		pin_credit_pages(used) > pin_credit_pages(limit) ||
		pin_credit_count(used) > pin_credit_count(taken) ||
		pin_credit_pages(used) > pin_credit_pages(taken)) {
		printf("round %u: %u requests and %u pages of %u and %u, %u and %u taken\n", now,
			pin_credit_count(used), pin_credit_pages(used), pin_credit_count(limit),
			pin_credit_pages(limit), pin_credit_count(taken), pin_credit_pages(taken));
		exit(1);
	}
}

static void finish(void)
{
	for (uint32_t round = 0; round < 10 * IN_DEVICE_MAX; round++) {
		for (uint32_t i = 0; i < WORKERS; i++) {
			end_one(&workers[i]);
			look(&workers[i]);
		}
	}
	expect_number("credit in use at the end", 0, (long long)sum_used());
	for (uint32_t i = 0; i < WORKERS; i++) {
		expect_number("requests that wait at the end", 0, workers[i].wanted_pages);
	}
}

/* Everyone wants as much as there is; worker 0 wants large ones. */
static void run(uint64_t count, uint64_t pages, bool is_exact)
{
	uint64_t limit = pin_credit_amount((uint32_t)count, (uint32_t)pages);
	uint32_t large = pages < 512 ? (uint32_t)pages : 512;

	begin(count, pages, is_exact);
	for (now = 0; now < ROUNDS; now++) {
		uint32_t index = (uint32_t)random_below(&dice, WORKERS);

		if (random_below(&dice, 2) == 0) {
			want(&workers[index],
				index == 0 ? large : 1 + (uint32_t)random_below(&dice, 4));
		} else {
			end_one(&workers[index]);
		}
		expect_sums(limit);
	}
	for (uint32_t i = 0; i < WORKERS; i++) {
		expect_true("each worker starts requests", workers[i].started > ROUNDS / 2000);
	}
	expect_true("no worker waits for ever", longest_wait < ROUNDS / 10);
	finish();
}

/* Both parts are compared at once; they have to be as each by itself. */
static void check_covers(void)
{
	static const uint32_t counts[] = {
		0, 1, 2, 1000, PIN_CREDIT_COUNT_MAX - 1, PIN_CREDIT_COUNT_MAX};
	static const uint32_t pages[] = {
		0, 1, 2, 16384, PIN_CREDIT_PAGES_MAX - 1, PIN_CREDIT_PAGES_MAX};
	const size_t number = PIN_ARRAY_COUNT(counts) * PIN_ARRAY_COUNT(pages);

	for (size_t i = 0; i < number * number; i++) {
		size_t first = i / number;
		size_t second = i % number;
		uint32_t count = counts[first / PIN_ARRAY_COUNT(pages)];
		uint32_t sheets = pages[first % PIN_ARRAY_COUNT(pages)];
		uint32_t count_of_part = counts[second / PIN_ARRAY_COUNT(pages)];
		uint32_t sheets_of_part = pages[second % PIN_ARRAY_COUNT(pages)];
		uint64_t amount = PIN_CREDIT_WORKER + pin_credit_amount(count, sheets);
		uint64_t part = pin_credit_amount(count_of_part, sheets_of_part);
		/* As one more request is added to the used credit. */
		uint64_t more = part + pin_credit_amount(1, 1);

		expect_number("covers", count_of_part <= count && sheets_of_part <= sheets,
			pin_credit_covers(amount, part));
		expect_number("covers more", count_of_part < count && sheets_of_part < sheets,
			pin_credit_covers(amount, more));
	}
}

static void check_limits(void)
{
	static const uint64_t limits[][2] = {{1, 1}, {1, 1000}, {4, 4096}, {5, 8}, {16, 16},
		{64, 700}, {256, 4096}, {PIN_CREDIT_COUNT_MAX, PIN_CREDIT_PAGES_MAX}};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(limits); i++) {
		run(limits[i][0], limits[i][1], true);
		run(limits[i][0], limits[i][1], false);
	}
}

/* Credit of requests in the device is not called back, all other is. */
static void check_lowered(void)
{
	uint64_t taken;

	begin(256, 65536, false);
	for (now = 0; now < 4000; now++) {
		want(&workers[now % WORKERS], 1);
	}
	pin_credit_set(&credit, 16, 65536, false);
	pin_credit_serve(&credit);
	for (now = 0; now < 4000; now++) {
		end_one(&workers[now % WORKERS]);
		want(&workers[now % WORKERS], 1);
	}
	taken = pin_load_relaxed_u64(&credit.taken);
	expect_true("a lower limit is come down to", pin_credit_count(taken) <= 16);
	expect_true("and used", pin_credit_count(sum_used()) >= 10);
	finish();
}

/* A request for more than there was is served when there is. */
static void check_raised(void)
{
	begin(1, 1000, true);
	want(&workers[0], 1);
	want(&workers[1], 1);
	expect_number("started beyond the limit", 0, workers[1].started);
	pin_credit_set(&credit, 2, 1000, true);
	pin_credit_serve(&credit);
	look(&workers[1]);
	expect_number("started when it was raised", 1, workers[1].started);
	finish();
}

static void check_own(void)
{
	uint64_t taken;
	uint64_t amount;

	begin(256, 65536, false);
	want(&workers[0], 1);
	taken = pin_load_relaxed_u64(&credit.taken);
	for (uint32_t i = 0; i < 1000; i++) {
		expect_true("own credit", pin_credit_use(&credit, &workers[0].holding, 1, &amount));
		pin_credit_end(&credit, &workers[0].holding, amount, false);
		expect_number("the part in use", (long long)taken,
			(long long)pin_load_relaxed_u64(&credit.taken));
	}
	end_one(&workers[0]);
}

static uint32_t taken_count(void)
{
	return pin_credit_count(pin_load_relaxed_u64(&credit.taken));
}

/* Starts that number at once, and all of them end. */
static void start_and_end(struct model_worker *worker, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		want(worker, 1);
	}
	for (uint32_t i = 0; i < count; i++) {
		end_one(worker);
	}
}

/*
 * No other worker could use the credit it has had; limits hold for it as for
 * others.
 */
static void check_alone(void)
{
	struct model_worker *worker = &workers[0];

	begin_with(1, 256, 65536, false);
	start_and_end(worker, 200);
	expect_true("what it has had is kept", taken_count() >= 200);
	pin_credit_set(&credit, 16, 65536, false);
	start_and_end(worker, 1);
	expect_true("a lower limit is come down to", taken_count() <= 16);
	start_and_end(worker, 16);
	for (uint32_t i = 0; i < 16; i++) {
		want(worker, 1);
	}
	pin_credit_set(&credit, 4, 65536, false);
	for (uint32_t i = 0; i < 1000; i++) {
		end_one(worker);
		want(worker, 1);
	}
	expect_true("also with each end", taken_count() <= 4 && worker->in_device <= 4);
	pin_credit_set(&credit, 2, 1000, true);
	finish();
	expect_number("of an exact limit nothing is kept", 0, taken_count());
}

/* A leaving worker keeps no credit that was unused, or granted too late. */
static void check_left(void)
{
	begin(256, 65536, false);
	want(&workers[0], 1);
	end_one(&workers[0]);
	expect_true("something is kept", pin_load_relaxed_u64(&credit.taken) != 0);
	expect_true("leaves", pin_credit_give_up(&credit, &workers[0].holding));
	expect_number("kept", 0, (long long)pin_load_relaxed_u64(&credit.taken));

	begin(1, 1000, true);
	want(&workers[0], 1);
	want(&workers[1], 1);
	end_one(&workers[0]);
	expect_true("granted, and not looked at", workers[1].has_grant);
	expect_true("stays", !pin_credit_give_up(&credit, &workers[1].holding));
	workers[1].wanted_pages = 0;
	look(&workers[1]);
	expect_true("leaves", pin_credit_give_up(&credit, &workers[1].holding));
	expect_number("kept", 0, (long long)pin_load_relaxed_u64(&credit.taken));
}

/* A batch that ends together, and begins together again. */
static void check_batches(void)
{
	enum { BATCH = 32, BATCHES = 10, WRITES_MAX = 12 * BATCHES };
	uint64_t amounts[BATCH];
	uint32_t writes = 0;

	begin(256, 1 << 20, false);
	for (uint32_t i = 0; i < 2 * BATCH * BATCHES; i++) {
		uint64_t before = pin_load_relaxed_u64(&credit.taken);
		uint32_t number = i % BATCH;

		if (i / BATCH % 2 == 0) {
			expect_true("started",
				pin_credit_use(&credit, &workers[0].holding, 1, &amounts[number]));
		} else {
			pin_credit_end(&credit, &workers[0].holding, amounts[number], false);
		}
		writes += pin_load_relaxed_u64(&credit.taken) != before;
	}
	printf("%d batches of %d: %u writes of the shared word\n", BATCHES, BATCH, writes);
	expect_true("returned credit is given in pieces", writes <= WRITES_MAX);
	pin_credit_leave(&credit, &workers[0].holding);
}

int main(void)
{
	random_begin(&dice);
	check_covers();
	check_limits();
	check_lowered();
	check_raised();
	check_own();
	check_alone();
	check_batches();
	check_left();
	return expect_status();
}
