/* SPDX-License-Identifier: MIT */
/*
 * Goal: completions that wait in a worker's ring for `cq_stall_us`, while it is
 * awake and reaps none, are reported once and counted with the time they
 * waited, not a nanosecond earlier; also those that the kernel holds back until
 * it is asked. One reaped, a park, or a ring that owes nothing at a check
 * begins anew, and a worker that sleeps, has no ring or is not watched is never
 * reported. A worker in a long task is reported with its task. So are those in
 * its secondary ring, and requests in flight on its polled ring while it does
 * not ask. W39.
 * Method: a worker without a thread, whose ring's queue is made of three words,
 * on a clock that is set by hand; then real rings: a task holds its worker
 * while the byte that ends its read is written, and goes on only when that was
 * counted. A stall that is never seen hangs the test and trips its watchdog.
 */
#include "runtime/task/entry.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/stall.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum {
	LIMIT_US = 5000,
	ROUNDS = 3,
	LIMIT_SECONDS = 60,
};

#define LIMIT_NS (UINT64_C(1000) * LIMIT_US)

/* ---- by hand ---- */

static uint64_t clock_ns;
static unsigned head;
static unsigned tail;
static unsigned flags;
static struct pin_shared shared;
static struct pin_worker worker;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static const struct pin_host host = {.now_ns = now_ns};

static void start(uint64_t limit_us)
{
	shared = (struct pin_shared){
		.host = &host,
		.log = {.fn = runtimes_note},
		.tuning.cq_stall_us = limit_us,
		.worker_count = 1,
		.workers = &worker,
	};
	memset(&worker, 0, sizeof(worker));
	worker.shared = &shared;
	worker.ring.is_initialised = true;
	pin_parker_init(&worker.parker);
	pin_store_relaxed_u32(&worker.is_stepping, 1);
	pin_worker_self = &worker;
	pin_remote_reap_open(&worker);
	pin_worker_self = NULL;
	head = 7;
	tail = 7;
	flags = 0;
	worker.ring.has_task_flag = true;
	worker.ring.uring.cq.khead = &head;
	worker.ring.uring.cq.ktail = &tail;
	worker.ring.uring.sq.kflags = &flags;
	clock_ns = UINT64_C(1000) * 1000 * 1000 * 1000;
	runtimes_log[0] = '\0';
}

static uint32_t count_lines(void)
{
	uint32_t count = 0;

	for (const char *at = runtimes_log; (at = strstr(at, "completions wait")) != NULL; at++) {
		count++;
	}
	return count;
}

/*
 * A check comes that much later, and there are that many stalls, and that long
 * in all.
 */
static void expect_stalls(const char *what, uint64_t later_ns, uint64_t count, uint64_t long_ns)
{
	clock_ns += later_ns;
	shared.stalls.ring_look_ns = 0; /* whenever it was to be */
	(void)pin_stall_look(&shared, true);
	expect_number(what, (long long)count,
		(long long)pin_load_relaxed_u64(&shared.stalls.counts[PIN_STALL_OF_RING]));
	expect_number(what, (long long)long_ns, (long long)pin_meter_read(&shared.stalls.ring_ns));
	expect_number(what, (long long)count, count_lines());
}

static void check_limit(void)
{
	uint64_t look_ns;

	start(LIMIT_US);
	expect_stalls("nothing waits", 0, 0, 0);
	expect_stalls("nothing waits", 100 * LIMIT_NS, 0, 0);
	tail++;
	expect_stalls("seen", 100 * LIMIT_NS, 0, 0);
	expect_stalls("not yet", LIMIT_NS - 1, 0, 0);
	expect_stalls("now", 1, 1, LIMIT_NS);
	expect_stalls("once", 10, 1, LIMIT_NS + 10);
	tail++;
	expect_stalls("more come", LIMIT_NS, 1, 2 * LIMIT_NS + 10);
	head++;
	expect_stalls("one is reaped", 5, 1, 2 * LIMIT_NS + 10);
	expect_stalls("the other is not", LIMIT_NS - 1, 1, 2 * LIMIT_NS + 10);
	expect_stalls("another stall", 1, 2, 3 * LIMIT_NS + 10);
	expect_true("limit", strstr(runtimes_log, "more than 5000 us") != NULL);
	/* Twice in the limit, and nothing in between. */
	shared.stalls.ring_look_ns = 0;
	look_ns = pin_stall_look(&shared, true);
	expect_number("next check", (long long)(LIMIT_NS / 2), (long long)(look_ns - clock_ns));
	expect_number("same look", (long long)look_ns, (long long)pin_stall_look(&shared, true));
}

/* Ends a wait that is not yet a stall. */
static void park(void)
{
	pin_meter_add(&worker.meter.parks_ring, 1);
}

static void reap(void)
{
	head++;
	tail++;
}

static void check_sign(const char *what, void (*give)(void))
{
	start(LIMIT_US);
	tail++;
	for (int i = 0; i < 10; i++) {
		expect_stalls(what, LIMIT_NS - 1, 0, 0);
		give();
	}
	expect_stalls(what, LIMIT_NS, 0, 0);
	expect_stalls(what, LIMIT_NS, 1, LIMIT_NS);
}

/* The kernel holds them back: there is a flag and nothing else. */
static void check_deferred(void)
{
	start(LIMIT_US);
	flags = IORING_SQ_TASKRUN;
	expect_stalls("held back", 0, 0, 0);
	expect_stalls("for long", LIMIT_NS, 1, LIMIT_NS);
	flags = 0;
	expect_stalls("over", LIMIT_NS, 1, LIMIT_NS);
	flags = IORING_SQ_TASKRUN;
	expect_stalls("again", LIMIT_NS, 1, LIMIT_NS);
	expect_stalls("for long", LIMIT_NS, 2, 2 * LIMIT_NS);
}

/* ---- the rings beside the first ---- */

static unsigned secondary_submitted;
static unsigned secondary_head;
static unsigned secondary_tail;

static void start_secondary(struct pin_ring *ring)
{
	start(LIMIT_US);
	secondary_submitted = 3;
	secondary_head = 3;
	secondary_tail = 3;
	ring->uring.cq.khead = &secondary_head;
	ring->uring.cq.ktail = &secondary_tail;
	ring->uring.sq.khead = &secondary_submitted;
	ring->uring.sq.kflags = &flags;
}

static void check_sqe128(void)
{
	start_secondary(&worker.sqe128);
	worker.sqe128.is_sqe128 = true;
	secondary_tail++;
	expect_stalls("not open yet", 0, 0, 0);
	expect_stalls("not open yet", LIMIT_NS, 0, 0);
	pin_store_release_u32(&worker.sqe128_is_open, 1);
	expect_stalls("seen", 0, 0, 0);
	expect_stalls("not yet", LIMIT_NS - 1, 0, 0);
	expect_stalls("now", 1, 1, LIMIT_NS);
	secondary_head++;
	secondary_tail++;
	expect_stalls("one is reaped", 0, 1, LIMIT_NS);
	expect_stalls("the next waits", LIMIT_NS, 2, 2 * LIMIT_NS);
	secondary_head++;
	expect_stalls("none", 100 * LIMIT_NS, 2, 2 * LIMIT_NS);
	/* Both together are one stall. */
	secondary_tail++;
	tail++;
	expect_stalls("in two rings", 0, 2, 2 * LIMIT_NS);
	expect_stalls("for long", LIMIT_NS, 3, 3 * LIMIT_NS);
}

static void check_polled(void)
{
	start_secondary(&worker.polled);
	worker.polled.is_polled = true;
	worker.has_polled = true;
	expect_stalls("nothing in flight", 0, 0, 0);
	expect_stalls("nothing in flight", LIMIT_NS, 0, 0);
	secondary_submitted++;
	expect_stalls("in flight", 0, 0, 0);
	for (int i = 0; i < 10; i++) {
		pin_meter_add(&worker.meter.ring_enters, 1);
		expect_stalls("asked", LIMIT_NS, 0, 0);
	}
	expect_stalls("not yet", LIMIT_NS - 1, 0, 0);
	expect_stalls("not asked for long", 1, 1, LIMIT_NS);
	secondary_tail++;
	secondary_head++;
	expect_stalls("reaped", 100 * LIMIT_NS, 1, LIMIT_NS);
}

static void check_absent(void)
{
	start(LIMIT_US);
	tail++;
	expect_true("parks", pin_parker_prepare(&worker.parker, PIN_PARK_RING));
	expect_stalls("asleep", 0, 0, 0);
	expect_stalls("asleep", 100 * LIMIT_NS, 0, 0);
	pin_parker_finish(&worker.parker);
	expect_stalls("awake", 100 * LIMIT_NS, 0, 0);
	expect_stalls("for long", LIMIT_NS, 1, LIMIT_NS);

	start(LIMIT_US);
	tail++;
	pin_store_release_u32(&worker.ring_is_open, 0);
	expect_stalls("no ring yet", 0, 0, 0);
	expect_stalls("no ring yet", 100 * LIMIT_NS, 0, 0);

	start(LIMIT_US);
	tail++;
	shared.is_fallback = true;
	expect_stalls("no io_uring", 0, 0, 0);
	expect_stalls("no io_uring", 100 * LIMIT_NS, 0, 0);
	expect_true("no check", pin_stall_look(&shared, true) == PIN_NO_DEADLINE);

	start(0);
	tail++;
	expect_stalls("not asked for", 0, 0, 0);
	expect_stalls("not asked for", 100 * LIMIT_NS, 0, 0);
	expect_true("no check", pin_stall_look(&shared, true) == PIN_NO_DEADLINE);
}

/* ---- real rings ---- */

static struct pinion_runtime *runtime;
static struct pinion_request request;
static struct pinion_file file;
static uint8_t byte;
static struct pin_atomic_u32 read_count;

static int note_read(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&read_count);
	return 0;
}

static void submit_read(struct tasks_hold *hold)
{
	(void)hold;
	request = (struct pinion_request){
		.task.run = note_read,
		.file = &file,
		.bytes = &byte,
		.length_bytes = 1,
	};
	expect_number("read", 0, pinion_request_submit(runtime, &request));
}

/* It sleeps in its ring, so the read is in flight. */
static void await_in_flight(void)
{
	while (!pin_parker_is_parked(&runtime->shared.workers[0].parker)) {
		pin_host_linux.yield();
	}
}

static void stall_once(int write_end, uint64_t count)
{
	struct tasks_hold reading = {.prepare = submit_read};
	struct tasks_hold hold = {0};

	tasks_hold_begin(&reading, runtime, 0);
	tasks_hold_end(&reading);
	await_in_flight();
	tasks_hold_begin(&hold, runtime, 0);
	expect_ready("write", write(write_end, "x", 1) == 1);
	while (runtimes_counters(runtime).cq_stalls < count) {
		pin_host_linux.yield();
	}
	expect_number("not reaped", (long long)count - 1, pin_load_acquire_u32(&read_count));
	tasks_hold_end(&hold);
	tasks_await(&read_count, (uint32_t)count);
}

/* False: there is no io_uring. */
static bool check_real(const char *what, uint32_t io_level)
{
	struct pinion_runtime_stats counters;
	struct pinion_runtime_info facts;
	char name[PIN_SYMBOL_BYTES];
	struct pinion_config config;
	int ends[2];

	printf("%s\n", what);
	runtimes_config(&config, 1, io_level);
	runtimes_tuning.cq_stall_us = LIMIT_US;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (facts.uses_ring == 0) {
		printf("no io_uring, so nothing waits in a ring: %s\n", facts.fallback_cause);
		pinion_runtime_destroy(runtime);
		return false;
	}
	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	pin_store_release_u32(&read_count, 0);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		stall_once(ends[1], i);
	}
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	counters = runtimes_counters(runtime);
	expect_number("each once", ROUNDS, (long long)counters.cq_stalls);
	expect_true("as long as that", counters.cq_stall_us >= ROUNDS * LIMIT_US);
	pinion_runtime_destroy(runtime);
	expect_number("told", ROUNDS, count_lines());
	pin_running_describe((pin_fault_fn)tasks_hold_run, name);
	expect_true("with the task", strstr(runtimes_log, name) != NULL);
	close(ends[0]);
	close(ends[1]);
	return true;
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_limit();
	check_sign("park", park);
	check_sign("reaped", reap);
	check_deferred();
	check_sqe128();
	check_polled();
	check_absent();
	if (check_real("as this kernel has them", PINION_IO_AUTO)) {
		check_real("completions appear by themselves", PINION_IO_RING_BASIC);
	}
	return expect_status();
}
