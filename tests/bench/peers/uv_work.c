/* SPDX-License-Identifier: MIT */
/*
 * libuv's own queue for work: uv_queue_work(), which the thread of a loop calls
 * and a thread of its pool, of which there is one here, runs. Each submission
 * is one run; its return to the loop afterwards is not timed.
 */
#include "tests/bench/peers/peer.h"

#include <uv.h>

static uv_loop_t loop;
static uv_work_t requests[PEER_STORM_TASKS];
static uint32_t request_count;
static struct peer_burst burst;

static void queue(uv_work_cb run)
{
	peer_check(uv_queue_work(&loop, &requests[request_count++], run, NULL) == 0,
		"uv_queue_work failed");
}

static void run_open(uv_work_t *request)
{
	(void)request;
	peer_burst_open(&burst);
}

static void run_task(uv_work_t *request)
{
	(void)request;
	peer_burst_task(&burst);
}

static void push_open(void)
{
	queue(run_open);
}

static void push_tasks(void)
{
	for (int i = 0; i < PEER_INJECT_STRIDE; i++) {
		queue(run_task);
	}
}

static void run_storm_task(uv_work_t *request)
{
	(void)request;
	peer_storm_task(&burst);
}

static void push_storm_task(void)
{
	queue(run_storm_task);
}

static void start(void)
{
	static int is_there;

	if (!is_there) {
		peer_check(setenv("UV_THREADPOOL_SIZE", "1", 1) == 0 && uv_loop_init(&loop) == 0,
			"cannot start a loop");
		is_there = 1;
	}
	request_count = 0;
}

static double inject(int worker_count)
{
	double figure;

	(void)worker_count;
	start();
	figure = peer_burst_run(&burst, push_open, push_tasks);
	uv_run(&loop, UV_RUN_DEFAULT);
	return figure;
}

static double inject_burst(int worker_count)
{
	double figure;

	(void)worker_count;
	start();
	figure = peer_storm_run(&burst, push_storm_task);
	uv_run(&loop, UV_RUN_DEFAULT);
	return figure;
}

int main(int argc, char **argv)
{
	static const struct peer_subject subjects[] = {
		{"inject", inject, "ns"},
		{"inject_burst", inject_burst, "ns"},
		{NULL, NULL, NULL},
	};
	char name[64];

	snprintf(name, sizeof(name), "libuv %s, uv_queue_work", uv_version_string());
	return peer_main(argc, argv, name, subjects);
}
