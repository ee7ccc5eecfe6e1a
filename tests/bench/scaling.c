/* SPDX-License-Identifier: MIT */
/*
 * What one operation costs as things become many: workers that are parked,
 * tasks that wait in a queue, timers that are armed. What does not depend on
 * the number shows the same time at each size; `make bench-scaling` prints it.
 *
 * One thread, on the structures themselves, since no machine at hand has 4096
 * CPUs: the cost of the code and of its memory, not of cores that compete.
 *
 * The sizes of a row take turns, so that what changes slowly divides out. A
 * figure is the time of OPERATIONS of them, a ratio is to the first size, with
 * the interval of the sign test (tools/bench/samples.h).
 */
#include "runtime/host/host.h"
#include "runtime/queue/deque.h"
#include "runtime/queue/idle_set.h"
#include "runtime/queue/injector.h"
#include "runtime/queue/timer_wheel.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/bench/samples.h"
#include "tools/bench/subject.h"

#include <pinion/machine.h>

enum {
	OPERATIONS = 4096,
	ROUNDS = 60,
	SIZES_MAX = 5,
	TIMERS_MAX = 100000,
	TASKS_MAX = 65536,
	TAKEN_AT_ONCE = 64,
};

static struct random_source source = {.state = 1};

/* Each does OPERATIONS of them at a size that `prepare` has set up. */
struct row {
	const char *name;
	uint32_t sizes[SIZES_MAX]; /* ends with 0 */
	void (*prepare)(uint32_t size);
	void (*run)(uint32_t size);
};

/* ---- parked workers ---- */

static struct pin_idle idle;

static void park_all(uint32_t size)
{
	pin_idle_init(&idle, size);
	for (uint32_t i = 0; i < size; i++) {
		pin_idle_publish(&idle, i);
	}
}

static void park_one(uint32_t size)
{
	pin_idle_init(&idle, size);
	pin_idle_publish(&idle, size - 1);
}

/* Wakes the lowest; it parks again. */
static void claim_lowest(uint32_t size)
{
	(void)size;
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		pin_idle_publish(&idle, pin_idle_claim(&idle));
	}
}

/* The workers of an L3 cache, of a node, and all, as a worker wakes. */
static void claim_near(uint32_t size)
{
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		uint32_t own = i * 61 % size;
		uint32_t own_l3 = own / 8 * 8;
		uint32_t own_node = own / 64 * 64;
		struct pin_range ranges[] = {
			{own_l3, own_l3 + 8 < size ? own_l3 + 8 : size},
			{own_node, own_node + 64 < size ? own_node + 64 : size},
			{0, size},
		};

		pin_idle_publish(&idle, pin_idle_claim_in(&idle, ranges, PIN_ARRAY_COUNT(ranges)));
	}
}

static void claim_rotating(uint32_t size)
{
	uint32_t last = 0;

	(void)size;
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		last = pin_idle_claim_from(&idle, last + 1);
		pin_idle_publish(&idle, last);
	}
}

/* ---- queues ---- */

static struct pin_link links[TASKS_MAX + OPERATIONS];
static struct pin_deque deque;
static struct pin_atomic_u64 slots[TASKS_MAX];
static struct pin_injector injector;

static void fill_deque(uint32_t size)
{
	pin_deque_init(&deque, slots, TASKS_MAX, PIN_DEQUE_FIFO);
	pin_deque_allow_reservation(&deque, &pin_host_linux);
	for (uint32_t i = 1; i < size; i++) {
		(void)pin_deque_push(&deque, &links[i]);
	}
}

static void push_pop(uint32_t size)
{
	struct pin_link *link = &links[0];

	(void)size;
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		(void)(pin_deque_push_known(&deque, link) || pin_deque_push(&deque, link));
		link = pin_deque_pop(&deque);
	}
}

static void fill_injector(uint32_t size)
{
	struct pin_list list = {0};

	pin_injector_init(&injector, &pin_host_linux);
	for (uint32_t i = 0; i < size; i++) {
		pin_list_push(&list, &links[i]);
	}
	pin_injector_push(&injector, &list);
}

/* A batch at a time, and back again, as two workers would. */
static void take_and_give(uint32_t size)
{
	(void)size;
	for (uint32_t i = 0; i < OPERATIONS; i += TAKEN_AT_ONCE) {
		struct pin_list list = {0};
		bool has_more;

		(void)pin_injector_pop(&injector, 1, TAKEN_AT_ONCE, &list, &has_more);
		pin_injector_push(&injector, &list);
	}
}

/* ---- timers ---- */

static struct pin_timers wheel;
static struct pin_timer armed[TIMERS_MAX];
static struct pin_timer batch[OPERATIONS];

static uint64_t some_deadline_ns(void)
{
	return 1 + random_below(&source, UINT64_C(3600000000000));
}

static void arm_timers(uint32_t size)
{
	memset(armed, 0, sizeof(armed));
	pin_timers_init(&wheel, 0);
	for (uint32_t i = 0; i < size; i++) {
		pin_timers_insert(&wheel, &armed[i], some_deadline_ns());
	}
}

static void insert_cancel(uint32_t size)
{
	(void)size;
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		pin_timers_insert(&wheel, &batch[i], some_deadline_ns());
	}
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		(void)pin_timers_cancel(&wheel, &batch[i]);
	}
}

/* ---- the table ---- */

static const struct row rows[] = {
	{"wake the lowest, all parked", {1, 64, 1024, 4096}, park_all, claim_lowest},
	{"wake a near one, all parked", {8, 64, 1024, 4096}, park_all, claim_near},
	{"wake the next round, all parked", {2, 64, 1024, 4096}, park_all, claim_rotating},
	{"wake the only one parked", {1, 64, 1024, 4096}, park_one, claim_lowest},
	{"deque, push and pop, with that many in it", {1, 64, 4096, 65535}, fill_deque, push_pop},
	{"injector, a task of 64 taken, with that many in it", {64, 1024, 65536}, fill_injector,
		take_and_give},
	{"timer, insert and cancel, with that many armed", {1, 1000, 100000}, arm_timers,
		insert_cancel},
};

static double measure_once(const struct row *row, uint32_t size)
{
	uint64_t start_ns;

	row->prepare(size);
	/* Not counted: whatever the preparation has left cold. */
	row->run(size);
	start_ns = bench_now_ns();
	row->run(size);
	return (double)(bench_now_ns() - start_ns) / OPERATIONS;
}

static void print_size(
	const struct row *row, uint32_t index, struct samples *samples, struct samples *ratios)
{
	struct samples_ratio ratio;

	samples_sort(samples);
	samples_sort(ratios);
	ratio = samples_conclude(ratios);
	printf("| %s | %u | %.1f | %.1f | %u | %.2f (%.2f … %.2f) |\n", index == 0 ? row->name : "",
		row->sizes[index], samples_quantile(samples, 0.5), samples_quantile(samples, 0.99),
		samples->count, ratio.ratio, ratio.low, ratio.high);
	samples_free(samples);
	samples_free(ratios);
}

static void measure_row(const struct row *row)
{
	struct samples samples[SIZES_MAX] = {0};
	struct samples ratios[SIZES_MAX] = {0};

	for (int round = 0; round < ROUNDS; round++) {
		double first = 0;

		for (uint32_t i = 0; i < SIZES_MAX && row->sizes[i] > 0; i++) {
			double figure = measure_once(row, row->sizes[i]);

			first = i == 0 ? figure : first;
			expect_ready("memory", samples_add(&samples[i], figure) == 0);
			expect_ready("memory", samples_add(&ratios[i], figure / first) == 0);
		}
	}
	for (uint32_t i = 0; i < SIZES_MAX && row->sizes[i] > 0; i++) {
		print_size(row, i, &samples[i], &ratios[i]);
	}
}

int main(void)
{
	struct pinion_machine machine = {0};

	(void)pinion_machine_probe(&machine, sizeof(machine));
	printf("%u CPUs, Linux %s; one thread, %d operations a figure\n\n", machine.cpu_count,
		machine.kernel_release, OPERATIONS);
	printf("| ns | size | median | p99 | n | to the first |\n|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < PIN_ARRAY_COUNT(rows); i++) {
		measure_row(&rows[i]);
	}
	return expect_status();
}
