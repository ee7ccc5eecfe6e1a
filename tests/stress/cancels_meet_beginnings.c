/* SPDX-License-Identifier: MIT */
/*
 * Goal: a cancel of a wait or a request may come while the call that begins it
 * has not returned, or has not been made: it ends it, or finds that there is
 * nothing to end; and a wait or request that has begun can be cancelled
 * afterwards, once. [WAIT-4], [REQUEST-1].
 * Method: tasks on real workers begin waits that are never served and timeouts
 * that do not come; meanwhile a thread cancels all of them, again and again,
 * until each cancel has succeeded once. A beginning that is missed for good
 * hangs and trips the watchdog; ThreadSanitizer sees what the two sides do to
 * the same memory. The structs are used anew in each round.
 */
#include "runtime/base/base.h"
#include "runtime/worker/wait.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"
#include "tests/support/units.h"

#include <errno.h>
#include <pinion/request.h>

enum {
	WORKERS = 2,
	PAIRS = 64,
	ROUNDS = 100,
	LIMIT_SECONDS = 100,
};

struct pair {
	struct pinion_task starter;
	struct pinion_wait wait;
	struct pinion_request request;
	/* The canceller's. */
	bool is_wait_cancelled;
	bool is_request_cancelled;
	struct pin_atomic_u32 wait_ends;
	struct pin_atomic_u32 request_ends;
};

static struct pinion_runtime *runtime;
static struct pin_waiters waiters;
static struct pair pairs[PAIRS];
static struct pin_atomic_u32 refused_count;
static struct pin_atomic_u32 wrong_count;

static int end_wait(struct pinion_task *task)
{
	struct pinion_wait *wait = PIN_CONTAINER_OF(task, struct pinion_wait, task);
	struct pair *pair = PIN_CONTAINER_OF(wait, struct pair, wait);

	pin_fetch_add_acq_rel_u32(&wrong_count, wait->result != -ECANCELED);
	tasks_signal(&pair->wait_ends);
	return 0;
}

static int end_request(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pair *pair = PIN_CONTAINER_OF(request, struct pair, request);

	pin_fetch_add_acq_rel_u32(&wrong_count, request->result != -ECANCELED);
	tasks_signal(&pair->request_ends);
	return 0;
}

static int begin_both(struct pinion_task *task)
{
	struct pair *pair = PIN_CONTAINER_OF(task, struct pair, starter);
	struct pin_wait_aim aim = {.waiters = &waiters, .demand = 1};
	int wait_rc = pin_wait_begin(pin_worker_current(), &pair->wait, &aim);
	int request_rc = pinion_request_submit(runtime, &pair->request);

	pin_fetch_add_acq_rel_u32(&refused_count, wait_rc != 0);
	pin_fetch_add_acq_rel_u32(&refused_count, request_rc != 0);
	return 0;
}

/* True once it has succeeded. */
static bool cancel_once(int rc)
{
	pin_fetch_add_acq_rel_u32(&wrong_count, rc != 0 && rc != -EALREADY);
	return rc == 0;
}

static bool cancel_pair(struct pair *pair)
{
	if (!pair->is_wait_cancelled) {
		pair->is_wait_cancelled = cancel_once(pinion_wait_cancel(runtime, &pair->wait));
	}
	if (!pair->is_request_cancelled) {
		pair->is_request_cancelled =
			cancel_once(pinion_request_cancel(runtime, &pair->request));
	}
	return pair->is_wait_cancelled && pair->is_request_cancelled;
}

static void *cancel_all(void *arg)
{
	uint32_t done;

	(void)arg;
	do {
		done = 0;
		for (uint32_t i = 0; i < PAIRS; i++) {
			done += cancel_pair(&pairs[i]) ? 1 : 0;
		}
	} while (done < PAIRS && pin_load_acquire_u32(&refused_count) == 0);
	return NULL;
}

static void run_round(void)
{
	pthread_t canceller;

	for (uint32_t i = 0; i < PAIRS; i++) {
		struct pair *pair = &pairs[i];

		pair->starter = (struct pinion_task){.run = begin_both};
		pair->wait.task.run = end_wait;
		pair->wait.deadline_ns = UINT64_MAX;
		pair->request.task.run = end_request;
		pair->request.op = PINION_OP_TIMEOUT;
		pair->request.deadline_ns = UINT64_MAX - 1;
		pair->is_wait_cancelled = false;
		pair->is_request_cancelled = false;
		pin_store_release_u32(&pair->wait_ends, 0);
		pin_store_release_u32(&pair->request_ends, 0);
	}
	expect_ready("thread", pthread_create(&canceller, NULL, cancel_all, NULL) == 0);
	for (uint32_t i = 0; i < PAIRS; i++) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &pairs[i].starter));
	}
	pthread_join(canceller, NULL);
	for (uint32_t i = 0; i < PAIRS; i++) {
		tasks_await(&pairs[i].wait_ends, 1);
		tasks_await(&pairs[i].request_ends, 1);
	}
}

int main(void)
{
	uint32_t count = tasks_iterations(ROUNDS);
	struct pinion_runtime_stats stats;

	runtimes_watchdog(count > ROUNDS ? 3600 : LIMIT_SECONDS);
	runtime = runtimes_start(WORKERS, PINION_IO_AUTO);
	pin_waiters_init(&waiters, &pin_host_linux, units_take, NULL, PIN_WAITERS_EVEN);
	for (uint32_t i = 0; i < count && expect_failure_count == 0; i++) {
		run_round();
		expect_number("refused", 0, pin_load_acquire_u32(&refused_count));
		expect_number("wrong", 0, pin_load_acquire_u32(&wrong_count));
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	stats = runtimes_counters(runtime);
	expect_number("cancelled requests", (long long)count * PAIRS,
		(long long)stats.requests_cancelled);
	expect_number("no waiter", 0, pin_load_acquire_u32(&waiters.count));
	pinion_runtime_destroy(runtime);
	return expect_status();
}
