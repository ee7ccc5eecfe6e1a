/* SPDX-License-Identifier: MIT */
/*
 * Goal: when a CPU is taken away from workers while they run, by a cpuset that
 * changes or by a hot-plug, or given back, everything goes on: tasks for any
 * one worker run, requests end with their bytes, a drain ends. Workers that the
 * library has not bound stay where they were put; those that it has:
 * tests/fault/workers_are_bound_again. G9.
 * Hazard that others met: a cpuset that is rewritten under bound threads.
 * Method: what the kernel does then, by sched_setaffinity(2) on each thread of
 * this process: all of them on one CPU, on another, on all again; in between
 * tasks and reads, with rings and without. /proc says that they were moved.
 */
#include "tests/support/requests.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

enum {
	LIMIT_SECONDS = 60,
	WORKERS = 3,
	ROUNDS = 20,
	READ_BYTES = 4096,
	THREADS_MAX = 64,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static uint8_t bytes[READ_BYTES];

static pid_t moved[THREADS_MAX];
static uint32_t moved_count;

/*
 * A thread that ends meanwhile, or is the kernel's own for a ring, is left
 * alone.
 */
static void move(pid_t thread, const cpu_set_t *set)
{
	if (sched_setaffinity(thread, sizeof(*set), set) == 0) {
		expect_ready("few threads", moved_count < THREADS_MAX);
		moved[moved_count] = thread;
		moved_count++;
		return;
	}
	expect_ready("sched_setaffinity", errno == ESRCH || errno == EINVAL);
}

static void move_all(const cpu_set_t *set)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;

	expect_ready("/proc/self/task", folder != NULL);
	moved_count = 0;
	while ((entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] != '.') {
			move((pid_t)strtol(entry->d_name, NULL, 10), set);
		}
	}
	closedir(folder);
}

static void check_permits(const cpu_set_t *set)
{
	for (uint32_t i = 0; i < moved_count; i++) {
		cpu_set_t now;

		if (sched_getaffinity(moved[i], sizeof(now), &now) == 0) {
			expect_true("it stays where it was put", CPU_EQUAL(&now, set));
		} else {
			expect_ready("sched_getaffinity", errno == ESRCH);
		}
	}
}

static int run(struct pinion_task *task)
{
	struct requests_one *one = PIN_CONTAINER_OF(task, struct requests_one, request.task);

	one->request.result = pinion_worker_index(runtime);
	tasks_signal(&one->entered);
	return 0;
}

static void check_work(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct requests_one one = {.request = {.task.run = run}};

		expect_number(
			"spawn", 0, pinion_task_spawn_on(runtime, i % WORKERS, &one.request.task));
		tasks_await(&one.entered, 1);
		expect_number("its worker", i % WORKERS, one.request.result);
		bytes[READ_BYTES - 1] = 1;
		expect_number("read", READ_BYTES,
			requests_transfer(runtime, PINION_OP_READ, &file, bytes, 0, READ_BYTES));
		expect_number("its last byte", 0, bytes[READ_BYTES - 1]);
	}
}

static void check_on(const cpu_set_t *set)
{
	move_all(set);
	expect_true("workers are moved", moved_count > WORKERS);
	check_work();
	check_permits(set);
}

static void check_level(uint32_t io_level)
{
	struct pinion_config config;
	cpu_set_t all;

	expect_ready("sched_getaffinity", sched_getaffinity(0, sizeof(all), &all) == 0);
	runtimes_config(&config, WORKERS, io_level);
	config.bind_workers = PINION_BIND_NONE;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	check_work();
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &all)) {
			cpu_set_t one;

			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			check_on(&one);
		}
	}
	check_on(&all);
	runtimes_finish(runtime, (2 + (uint32_t)CPU_COUNT(&all)) * ROUNDS);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	file = runtimes_plain_file(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	check_level(PINION_IO_AUTO);
	check_level(PINION_IO_FALLBACK);
	close(file.fd);
	return expect_status();
}
