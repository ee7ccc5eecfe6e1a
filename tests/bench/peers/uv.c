/* SPDX-License-Identifier: MIT */
/*
 * libuv. Its loop is one thread, and its call for others is uv_async_send(): a
 * queue of one's own, with a lock, and a call that has the loop check it. For
 * long work it has a pool of threads, of which one is used here.
 */
#include "tests/bench/peers/peer.h"

#include <uv.h>

struct task {
	struct task *next;
	void (*run)(void);
};

static uv_loop_t loop;
static uv_async_t doorbell;
static uv_thread_t thread;
static uv_mutex_t lock;
static struct task *first;
static struct task **last = &first;
static struct task tasks[PEER_STORM_TASKS];
static uint32_t task_count;
static struct peer_burst burst;

static void drain(uv_async_t *handle)
{
	struct task *task;

	(void)handle;
	uv_mutex_lock(&lock);
	task = first;
	first = NULL;
	last = &first;
	uv_mutex_unlock(&lock);
	while (task != NULL) {
		struct task *next = task->next;

		task->run();
		task = next;
	}
}

static void push(void (*run)(void))
{
	struct task *task = &tasks[task_count++];

	task->run = run;
	task->next = NULL;
	uv_mutex_lock(&lock);
	*last = task;
	last = &task->next;
	uv_mutex_unlock(&lock);
	peer_check(uv_async_send(&doorbell) == 0, "uv_async_send failed");
}

static void run_open(void)
{
	peer_burst_open(&burst);
}

static void run_task(void)
{
	peer_burst_task(&burst);
}

static void push_open(void)
{
	push(run_open);
}

static void push_tasks(void)
{
	for (int i = 0; i < PEER_INJECT_STRIDE; i++) {
		push(run_task);
	}
}

static void run_storm_task(void)
{
	peer_storm_task(&burst);
}

static void push_storm_task(void)
{
	push(run_storm_task);
}

static void run_loop(void *arg)
{
	(void)arg;
	uv_run(&loop, UV_RUN_DEFAULT);
}

static void start_loop(void)
{
	static int is_running;

	if (!is_running) {
		peer_check(uv_loop_init(&loop) == 0 && uv_mutex_init(&lock) == 0 &&
				uv_async_init(&loop, &doorbell, drain) == 0 &&
				uv_thread_create(&thread, run_loop, NULL) == 0,
			"cannot start a loop");
		is_running = 1;
	}
	task_count = 0;
}

static double inject(int worker_count)
{
	(void)worker_count;
	start_loop();
	return peer_burst_run(&burst, push_open, push_tasks);
}

static double inject_burst(int worker_count)
{
	(void)worker_count;
	start_loop();
	return peer_storm_run(&burst, push_storm_task);
}

/* ---- calls to its pool of threads and back ---- */

static int trip_count;
static enum peer_place trip_place;

static void work(uv_work_t *request)
{
	(void)request;
	peer_place(trip_place, 1);
}

static void came_back(uv_work_t *request, int status)
{
	peer_check(status == 0, "a call failed");
	if (++trip_count < PEER_EXECUTE_TRIPS) {
		peer_check(uv_queue_work(request->loop, request, work, came_back) == 0,
			"uv_queue_work failed");
	}
}

static double execute_at(enum peer_place place)
{
	static uv_loop_t own_loop;
	static int is_there;
	uv_work_t request;
	uint64_t start_ns;

	trip_place = place;
	peer_place(place, 0);
	if (!is_there) {
		peer_check(
			setenv("UV_THREADPOOL_SIZE", "1", 1) == 0 && uv_loop_init(&own_loop) == 0,
			"cannot start a loop");
		is_there = 1;
	}
	trip_count = 0;
	start_ns = peer_now_ns();
	peer_check(
		uv_queue_work(&own_loop, &request, work, came_back) == 0, "uv_queue_work failed");
	uv_run(&own_loop, UV_RUN_DEFAULT);
	return (double)(peer_now_ns() - start_ns) / PEER_EXECUTE_TRIPS;
}

static double execute(int worker_count)
{
	(void)worker_count;
	return execute_at(PEER_APART);
}

static double execute_together(int worker_count)
{
	(void)worker_count;
	return execute_at(PEER_TOGETHER);
}

int main(int argc, char **argv)
{
	static const struct peer_subject subjects[] = {
		{"inject", inject, "ns"},
		{"inject_burst", inject_burst, "ns"},
		{"execute", execute, "us"},
		{"execute_together", execute_together, "us"},
		{NULL, NULL, NULL},
	};
	char name[64];

	snprintf(name, sizeof(name), "libuv %s", uv_version_string());
	return peer_main(argc, argv, name, subjects);
}
