/* SPDX-License-Identifier: MIT */
/*
 * Goal: never more units out than there are, of any kind, none lost; waiters
 * get them when they are given back, in order and all together; amounts that
 * vary strand no waiter; each error is seen. C13, W54, BP-30.
 * Method: threads and tasks acquire and release random amounts around a counter
 * of the units out; then two threads hand one unit to and fro through two
 * budgets, so that a lost wake hangs and trips the watchdog.
 */
#include "runtime/base/base.h"
#include "runtime/host/host.h"
#include "tests/support/child.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	KINDS = 2,
	THREADS = 4,
	TASKS = 8,
	ROUNDS = 5000,
	LIMIT_SECONDS = 100,
};

static const uint64_t totals[KINDS] = {3, 1000};

static struct pinion_runtime *runtime;
static struct pinion_runtime *other_runtime;
static struct pinion_budget budget;
static struct pinion_budget other;
static struct pin_atomic_u64 out[KINDS];
static struct pin_atomic_u32 excess;
static uint64_t seed;

static void begin(struct pinion_runtime *home)
{
	expect_number("init", 0, pinion_budget_init(&budget, home, totals, KINDS));
}

static void expect_available(const char *what, uint64_t first, uint64_t second)
{
	uint64_t available[KINDS];

	pinion_budget_available(&budget, available);
	expect_number(what, (long long)first, (long long)available[0]);
	expect_number(what, (long long)second, (long long)available[1]);
}

static void check_alone(void)
{
	const uint64_t some[KINDS] = {2, 400};
	const uint64_t part[KINDS] = {1, 0};
	const uint64_t rest[KINDS] = {1, 400};
	const uint64_t too_many[KINDS] = {4, 0};
	struct pinion_wait wait = {.task.run = tasks_hold_run};

	expect_number("no kinds", -EINVAL, pinion_budget_init(&budget, NULL, totals, 0));
	expect_number("kinds", -EINVAL,
		pinion_budget_init(&budget, NULL, totals, PINION_BUDGET_KINDS + 1));
	begin(NULL);
	expect_available("at first", 3, 1000);
	expect_number("never", -EINVAL, pinion_budget_try_acquire(&budget, too_many));
	expect_number("never", -EINVAL, pinion_budget_acquire_wait(&budget, too_many, 0));
	expect_number(
		"never", -EINVAL, pinion_budget_acquire_async(runtime, &budget, too_many, &wait));
	expect_number("acquire", 0, pinion_budget_try_acquire(&budget, some));
	expect_available("some", 1, 600);
	expect_number("too few of one", -EAGAIN, pinion_budget_try_acquire(&budget, some));
	expect_number("not now", -ETIME, pinion_budget_acquire_wait(&budget, some, 0));
	expect_number("not soon", -ETIME,
		pinion_budget_acquire_wait(&budget, some, pinion_clock_now_ns() + 1000000));
	expect_available("nothing taken", 1, 600);
	pinion_budget_release(&budget, part);
	expect_number("acquire", 0, pinion_budget_acquire_wait(&budget, some, UINT64_MAX));
	expect_available("most", 0, 200);
	pinion_budget_release(&budget, rest);
	pinion_budget_release(&budget, some);
	expect_available("at last", 3, 1000);
}

static int release_twice(void *arg)
{
	const uint64_t one[KINDS] = {1, 0};

	(void)arg;
	pinion_budget_release(&budget, one);
	return 0;
}

/* ---- on a worker ---- */

static struct pinion_wait wait_here;
static struct pin_atomic_u32 step;

static int run_over(struct pinion_task *task)
{
	(void)task;
	expect_number("result", 0, wait_here.result);
	tasks_signal(&step);
	return 0;
}

static int run_on_worker(struct pinion_task *task)
{
	(void)task;
	expect_number("no thread would release", -EDEADLK,
		pinion_budget_acquire_wait(&budget, totals, UINT64_MAX));
	expect_number("not this runtime", -EPERM,
		pinion_budget_acquire_async(other_runtime, &budget, totals, &wait_here));
	expect_number(
		"await", 0, pinion_budget_acquire_async(runtime, &budget, totals, &wait_here));
	expect_number(
		"twice", -EBUSY, pinion_budget_acquire_async(runtime, &budget, totals, &wait_here));
	tasks_signal(&step);
	return 0;
}

static void check_worker(void)
{
	static struct pinion_task task = {.run = run_on_worker};
	const uint64_t one[KINDS] = {1, 0};

	begin(runtime);
	wait_here = (struct pinion_wait){.task.run = run_over, .deadline_ns = UINT64_MAX};
	expect_number("acquire", 0, pinion_budget_try_acquire(&budget, one));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&step, 1);
	expect_number("not past who waits", -EAGAIN, pinion_budget_try_acquire(&budget, one));
	pinion_budget_release(&budget, one);
	tasks_await(&step, 2);
	expect_available("all is had", 0, 0);
	pinion_budget_release(&budget, totals);
}

/* ---- many ---- */

static void choose(struct random_source *source, uint64_t *out_amounts)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		out_amounts[i] = random_below(source, totals[i] + 1);
	}
}

static void note_acquired(const uint64_t *amounts)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		if (pin_fetch_add_acq_rel_u64(&out[i], amounts[i]) + amounts[i] > totals[i]) {
			pin_fetch_add_acq_rel_u32(&excess, 1);
		}
	}
}

static void give_back(const uint64_t *amounts)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		pin_fetch_sub_acq_rel_u64(&out[i], amounts[i]);
	}
	pinion_budget_release(&budget, amounts);
}

static void *hold_rounds(void *arg)
{
	struct random_source source = {.state = seed + (uintptr_t)arg};

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t amounts[KINDS];
		uint64_t deadline_ns = random_below(&source, 2) == 0
			? UINT64_MAX
			: pinion_clock_now_ns() + random_below(&source, 50000);

		choose(&source, amounts);
		if (pinion_budget_acquire_wait(&budget, amounts, deadline_ns) != 0) {
			continue;
		}
		note_acquired(amounts);
		if (i % 16 == 0) {
			pin_host_linux.yield();
		}
		give_back(amounts);
	}
	return NULL;
}

struct holder {
	struct pinion_wait wait;
	struct pinion_task starter;
	struct random_source source;
	uint64_t amounts[KINDS];
	uint32_t rounds;
	bool is_waiting;
};

static struct holder holders[TASKS];

static int next_round(struct holder *holder)
{
	if (holder->is_waiting && holder->wait.result == 0) {
		note_acquired(holder->amounts);
		give_back(holder->amounts);
	}
	if (holder->rounds == ROUNDS) {
		return 0;
	}
	holder->rounds++;
	holder->is_waiting = true;
	choose(&holder->source, holder->amounts);
	holder->wait.deadline_ns = random_below(&holder->source, 2) == 0
		? UINT64_MAX
		: pinion_clock_now_ns() + random_below(&holder->source, 50000);
	return pinion_budget_acquire_async(runtime, &budget, holder->amounts, &holder->wait);
}

static int run_round(struct pinion_task *task)
{
	return next_round(PIN_CONTAINER_OF(task, struct holder, wait.task));
}

static int run_first(struct pinion_task *task)
{
	return next_round(PIN_CONTAINER_OF(task, struct holder, starter));
}

static void check_many(void)
{
	pthread_t threads[THREADS];

	begin(NULL);
	for (uint32_t i = 0; i < TASKS; i++) {
		holders[i].wait.task.run = run_round;
		holders[i].starter.run = run_first;
		holders[i].source.state = seed + 100 + i;
		expect_number("spawn", 0, pinion_task_spawn(runtime, &holders[i].starter));
	}
	for (uintptr_t i = 0; i < THREADS; i++) {
		expect_ready(
			"thread", pthread_create(&threads[i], NULL, hold_rounds, (void *)i) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("join", 0, pinion_runtime_join(runtime));
	for (uint32_t i = 0; i < TASKS; i++) {
		expect_number("rounds", ROUNDS, holders[i].rounds);
	}
	expect_number("times more was out than there is", 0, pin_load_acquire_u32(&excess));
	expect_available("all is back", totals[0], totals[1]);
}

/* ---- to and fro ---- */

static const uint64_t one = 1;

static void *pass_back(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		pinion_budget_acquire_wait(&budget, &one, UINT64_MAX);
		pinion_budget_release(&other, &one);
	}
	return NULL;
}

static void check_to_and_fro(void)
{
	pthread_t thread;

	expect_number("init", 0, pinion_budget_init(&budget, NULL, &one, 1));
	expect_number("init", 0, pinion_budget_init(&other, NULL, &one, 1));
	expect_number("acquire", 0, pinion_budget_try_acquire(&budget, &one));
	expect_number("acquire", 0, pinion_budget_try_acquire(&other, &one));
	expect_ready("thread", pthread_create(&thread, NULL, pass_back, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		pinion_budget_release(&budget, &one);
		pinion_budget_acquire_wait(&other, &one, UINT64_MAX);
	}
	pthread_join(thread, NULL);
}

int main(void)
{
	struct random_source source;

	runtimes_watchdog(LIMIT_SECONDS);
	seed = random_begin(&source);
	check_alone();
	child_expect_abort("released twice", release_twice, NULL,
		"pinion: pinion_budget_release() of 1 units of kind 0 "
		"where 0 are out: release each acquired unit once");
	runtime = runtimes_start(2, PINION_IO_AUTO);
	other_runtime = runtimes_start(1, PINION_IO_AUTO);
	check_worker();
	check_many();
	check_to_and_fro();
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(other_runtime);
	return expect_status();
}
