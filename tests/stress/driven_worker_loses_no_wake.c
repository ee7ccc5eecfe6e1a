/* SPDX-License-Identifier: MIT */
/*
 * Goal: however threads that spawn, cancel and write meet the owner's calls and
 * its sleeps, every task of a driven runtime runs once, and the owner never
 * sleeps beside one: in calls that wait, and in a loop of epoll that runs all
 * there is, or some of it; with and without a ring. G11.
 * Method: threads spawn tasks in bursts and wait for each burst, so that the
 * owner falls asleep between them; a task sends a byte through a socket that a
 * request of the owner's receives; timers end meanwhile. No wait has a timeout:
 * a lost wake never ends. Calls in vain are counted against tasks.
 */
#include "tests/support/driven.h"
#include "tests/support/random.h"
#include "tests/support/requests.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	BURSTS = 300,
#else
	BURSTS = 3000,
#endif
	BURST_MAX = 4,
	THREADS = 2,
	LIMIT_SECONDS = 110,
	/* A doorbell that came late, a completion that was taken in. */
	VAIN_FACTOR = 4,
};

enum way {
	IN_CALLS,
	IN_EPOLL_ALL,
	IN_EPOLL_SOME,
	WAYS,
};

struct spawner {
	pthread_t thread;
	struct random_source draw;
	struct pinion_task tasks[BURST_MAX];
	struct pin_atomic_u32 ran;
};

static struct pinion_runtime *runtime;
static struct spawner spawners[THREADS];
static struct pin_atomic_u32 running; /* spawners */
static uint32_t burst_count;

/* The owner's: a byte there and back. */
static struct pinion_file near_end;
static int far_end;
static struct pinion_request receive;
static uint8_t byte;
static struct pinion_timer timer;
static uint64_t received;
static uint64_t expired;
static bool is_ending;

static int note_byte(struct pinion_task *task)
{
	(void)task;
	if (receive.result == 1) {
		received++;
	}
	return is_ending ? 0 : pinion_request_submit(runtime, &receive);
}

static int note_timer(struct pinion_task *task)
{
	(void)task;
	expired++;
	return is_ending ? 0 : pinion_timer_start(runtime, &timer, pinion_clock_now_ns() + 200000);
}

static int note_task(struct pinion_task *task)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		if (task >= spawners[i].tasks && task < spawners[i].tasks + BURST_MAX) {
			tasks_signal(&spawners[i].ran);
		}
	}
	return 0;
}

static void *spawn_all(void *arg)
{
	struct spawner *spawner = arg;
	uint32_t spawned = 0;

	for (uint32_t i = 0; i < burst_count; i++) {
		uint32_t count = 1 + (uint32_t)random_below(&spawner->draw, BURST_MAX);

		for (uint32_t j = 0; j < count; j++) {
			spawner->tasks[j] = (struct pinion_task){.run = note_task};
			expect_number("spawn", 0, pinion_task_spawn(runtime, &spawner->tasks[j]));
		}
		if (random_below(&spawner->draw, 4) == 0) {
			expect_number("a byte", 1, write(far_end, "x", 1));
		}
		spawned += count;
		tasks_await(&spawner->ran, spawned);
	}
	pin_fetch_sub_acq_rel_u32(&running, 1);
	/* The last of all wakes the owner, which may sleep for good else. */
	spawner->tasks[0] = (struct pinion_task){.run = note_task};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &spawner->tasks[0]));
	return NULL;
}

static int run_some(enum way way, struct random_source *draw)
{
	uint32_t max = way == IN_EPOLL_SOME ? 1 + (uint32_t)random_below(draw, 3) : DRIVEN_ALL;
	int ran = pinion_runtime_poll(runtime, max, way == IN_CALLS ? -1 : 0);

	expect_true("no error", ran >= 0);
	return ran;
}

static uint64_t loop(enum way way, struct random_source *draw)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	uint64_t in_vain = 0;

	expect_ready("epoll", set >= 0);
	expect_ready(
		"watch", epoll_ctl(set, EPOLL_CTL_ADD, pinion_runtime_fd(runtime), &event) == 0);
	while (pin_load_acquire_u32(&running) > 0) {
		if (way != IN_CALLS) {
			(void)epoll_wait(set, &event, 1, -1);
		}
		in_vain += run_some(way, draw) == 0;
	}
	close(set);
	return in_vain;
}

static void check(uint32_t io_level, enum way way, struct random_source *draw)
{
	uint64_t in_vain;
	uint64_t tasks;
	int fds[2];

	runtime = driven_start(io_level);
	expect_ready("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	near_end = (struct pinion_file){.fd = fds[0]};
	far_end = fds[1];
	received = expired = 0;
	is_ending = false;
	receive = (struct pinion_request){.task.run = note_byte,
		.op = PINION_OP_RECV,
		.file = &near_end,
		.bytes = &byte,
		.length_bytes = 1};
	timer = (struct pinion_timer){.task.run = note_timer};
	expect_number("receive", 0, pinion_request_submit(runtime, &receive));
	expect_number("timer", 0, pinion_timer_start(runtime, &timer, 1));
	pin_store_release_u32(&running, THREADS);
	for (uint32_t i = 0; i < THREADS; i++) {
		pin_store_release_u32(&spawners[i].ran, 0);
		spawners[i].draw.state = random_next(draw);
		expect_ready("thread",
			pthread_create(&spawners[i].thread, NULL, spawn_all, &spawners[i]) == 0);
	}
	in_vain = loop(way, draw);
	is_ending = true;
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(spawners[i].thread, NULL);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	tasks = runtimes_counters(runtime).tasks_run;
	if (in_vain > VAIN_FACTOR * tasks) {
		printf("%llu calls in vain, %llu tasks\n", (unsigned long long)in_vain,
			(unsigned long long)tasks);
		expect_failure_count++;
	}
	expect_true("bytes came", received > 0);
	expect_true("timers ended", expired > 0);
	expect_number("destroy", 0, pinion_runtime_destroy(runtime));
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	struct random_source draw;

	runtimes_watchdog(LIMIT_SECONDS);
	random_begin(&draw);
	burst_count = tasks_iterations(BURSTS);
	for (enum way way = IN_CALLS; way < WAYS; way++) {
		check(PINION_IO_AUTO, way, &draw);
		check(PINION_IO_FALLBACK, way, &draw);
	}
	return expect_status();
}
