/* SPDX-License-Identifier: MIT */
/*
 * Goal: a stop and a drain with 10 000 requests in flight end: each callback is
 * entered once, cancelled by the stop, or with its byte in the drain, and
 * requests submitted after the stop are refused. C15, W17.
 * Method: reads of an empty pipe, by one worker or shared by four; in the end
 * the test writes as many bytes to it as there are reads. The counters of the
 * runtime say that all were in flight.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	REQUESTS = 10000,
	WORKERS_MAX = 4,
	LIMIT_SECONDS = 100,
};

struct item {
	struct pinion_request request;
	uint8_t byte;
	struct pin_atomic_u32 ends;
};

struct share {
	struct pinion_task task;
	struct item *first;
	uint32_t count;
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct item items[REQUESTS];
static struct share shares[WORKERS_MAX];
static struct pin_atomic_u32 submitted;
static struct pin_atomic_u32 refused;
static struct pin_atomic_u32 late_runs;

static int has_read(struct pinion_task *task)
{
	pin_fetch_add_acq_rel_u32(&PIN_CONTAINER_OF(task, struct item, request.task)->ends, 1);
	return 0;
}

static int submit_share(struct pinion_task *task)
{
	struct share *share = PIN_CONTAINER_OF(task, struct share, task);

	for (uint32_t i = 0; i < share->count; i++) {
		struct item *item = &share->first[i];
		int rc;

		item->request = (struct pinion_request){.task.run = has_read,
			.file = &file,
			.bytes = &item->byte,
			.length_bytes = 1};
		rc = pinion_request_submit(runtime, &item->request);
		if (rc != 0) {
			pin_store_release_u32(&refused, (uint32_t)-rc);
		}
	}
	tasks_signal(&submitted);
	return 0;
}

static bool start(uint32_t worker_count)
{
	struct pinion_runtime_info facts;
	struct pinion_config config;
	uint32_t each = REQUESTS / worker_count;

	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	/* Twice as many may be in flight as a submission queue holds. */
	runtimes_tuning.ring_entries = worker_count == 1 ? 8192 : 2048;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (facts.uses_ring == 0) {
		pinion_runtime_destroy(runtime);
		return false;
	}
	pin_store_release_u32(&submitted, 0);
	pin_store_release_u32(&refused, 0);
	for (size_t i = 0; i < REQUESTS; i++) {
		items[i] = (struct item){0};
	}
	for (uint32_t i = 0; i < worker_count; i++) {
		shares[i] = (struct share){
			.task.run = submit_share, .first = &items[i * each], .count = each};
		expect_number("spawn", 0, pinion_task_spawn_on(runtime, i, &shares[i].task));
	}
	tasks_await(&submitted, worker_count);
	expect_number("refused", 0, pin_load_acquire_u32(&refused));
	return true;
}

static void check_ends(const char *what, int32_t wanted)
{
	uint32_t other_results = 0;
	uint32_t other_ends = 0;

	for (size_t i = 0; i < REQUESTS; i++) {
		other_ends += pin_load_acquire_u32(&items[i].ends) != 1 ? 1 : 0;
		other_results += items[i].request.result != wanted ? 1 : 0;
	}
	expect_number("requests that did not end once", 0, other_ends);
	expect_number(what, 0, other_results);
	expect_number(
		"completed", REQUESTS, (long long)runtimes_counters(runtime).requests_completed);
}

static bool check_stop(uint32_t worker_count)
{
	int ends[2];

	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	if (!start(worker_count)) {
		return false;
	}
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	check_ends("requests not cancelled", -ECANCELED);
	pinion_runtime_destroy(runtime);
	close(ends[0]);
	close(ends[1]);
	return true;
}

static int count_late(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&late_runs);
	return 0;
}

static void *drain(void *arg)
{
	(void)arg;
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	return NULL;
}

static void check_drain(uint32_t worker_count)
{
	static const uint8_t written[REQUESTS];
	struct pinion_task late = {.run = count_late};
	pthread_t other;
	int ends[2];

	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	expect_true("rings as before", start(worker_count));
	pin_store_release_u32(&late_runs, 0);
	expect_ready("thread", pthread_create(&other, NULL, drain, NULL) == 0);
	/* Until the drain has begun. */
	for (uint32_t i = 1; pinion_task_spawn(runtime, &late) != -ESHUTDOWN; i++) {
		tasks_await(&late_runs, i);
	}
	for (size_t done = 0; done < sizeof(written);) {
		ssize_t rc = write(ends[1], written + done, sizeof(written) - done);

		expect_ready("write", rc > 0);
		done += (size_t)rc;
	}
	pthread_join(other, NULL);
	check_ends("requests without their byte", 1);
	pinion_runtime_destroy(runtime);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	for (uint32_t worker_count = 1; worker_count <= WORKERS_MAX; worker_count += 3) {
		if (!check_stop(worker_count)) {
			printf("skipped: no io_uring here\n");
			return EXPECT_SKIPPED;
		}
		check_drain(worker_count);
	}
	return expect_status();
}
