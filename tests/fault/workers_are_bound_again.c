/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that may run beside its CPU, as after a hot-plug or by another
 * program, is bound again while it runs tasks, each time is counted, and the
 * log says so once a minute at most. While its CPU is gone the worker retries,
 * the log reports it once, and no worker counts as bound; when the CPU is back
 * it is bound, and the log says so if it reported the loss. Workers that are
 * not to be bound are left alone.
 * Method: what the kernel does then, by sched_setaffinity(2) on each worker's
 * thread; the linker puts this file before the library's own calls of that, so
 * that they fail as for a CPU that is offline. Tasks on each worker until the
 * count has come; then each worker's affinity, the count, and the lines.
 * TEST_HOTPLUG=yes, by root on a machine of its own (`make check-vm`): the last
 * worker's CPU goes offline and comes back, with no call in between.
 */
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <sys/syscall.h>

enum {
	LIMIT_SECONDS = 60,
	WORKERS_MAX = 4,
	TRIES = 3, /* of each worker, in vain */
};

struct visit {
	struct pinion_task task;
	struct pin_atomic_u32 entered;
	pid_t thread;
	int rc;
	cpu_set_t cpus;
};

static struct pinion_runtime *runtime;
static uint32_t worker_count;
static cpu_set_t allowed;
static cpu_set_t bound[WORKERS_MAX];
static pid_t threads[WORKERS_MAX];

static struct pin_atomic_u32 is_gone;
static struct pin_atomic_u32 refusals[WORKERS_MAX];

int __real_sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *set);

/* The library's calls are for the calling thread, which is a worker. */
int __wrap_sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *set)
{
	if (thread == 0 && pin_load_acquire_u32(&is_gone) != 0) {
		int index = pinion_worker_index(runtime);

		expect_ready("a worker", index >= 0);
		pin_fetch_add_seq_cst_u32(&refusals[index], 1);
		errno = EINVAL;
		return -1;
	}
	return __real_sched_setaffinity(thread, bytes, set);
}

static int look(struct pinion_task *task)
{
	struct visit *visit = PIN_CONTAINER_OF(task, struct visit, task);

	visit->thread = (pid_t)syscall(SYS_gettid);
	visit->rc = sched_getaffinity(0, sizeof(visit->cpus), &visit->cpus);
	tasks_signal(&visit->entered);
	return 0;
}

static struct visit visit_worker(uint32_t index)
{
	struct visit visit = {.task.run = look};

	expect_number("spawn", 0, pinion_task_spawn_on(runtime, index, &visit.task));
	tasks_await(&visit.entered, 1);
	expect_number("sched_getaffinity", 0, visit.rc);
	return visit;
}

static void visit_all(void)
{
	for (uint32_t i = 0; i < worker_count; i++) {
		(void)visit_worker(i);
	}
}

static uint32_t count_bound(void)
{
	struct pinion_runtime_info facts;

	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	return facts.workers_bound;
}

static uint64_t count_rebound(void)
{
	return runtimes_counters(runtime).workers_rebound;
}

static void start(uint32_t bind_workers)
{
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_FALLBACK);
	config.bind_workers = bind_workers;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	for (uint32_t i = 0; i < worker_count; i++) {
		struct visit visit = visit_worker(i);

		threads[i] = visit.thread;
		bound[i] = visit.cpus;
	}
}

static void set_all(const cpu_set_t *cpus)
{
	for (uint32_t i = 0; i < worker_count; i++) {
		expect_number(
			"sched_setaffinity", 0, sched_setaffinity(threads[i], sizeof(*cpus), cpus));
	}
}

static void check_affinity(const char *what)
{
	for (uint32_t i = 0; i < worker_count; i++) {
		struct visit visit = visit_worker(i);

		expect_true(what, CPU_EQUAL(&visit.cpus, &bound[i]));
	}
}

static uint32_t count_lines(const char *text)
{
	uint32_t count = 0;

	pthread_mutex_lock(&runtimes_log_lock);
	for (const char *at = runtimes_log; (at = strstr(at, text)) != NULL; at++) {
		count++;
	}
	pthread_mutex_unlock(&runtimes_log_lock);
	return count;
}

/* Each was widened once more; the workers find it, and count up to `count`. */
static void await_rebound(uint64_t count)
{
	while (count_rebound() < count) {
		visit_all();
	}
	check_affinity("on its own CPU again");
	expect_number("workers_rebound", (long long)count, (long long)count_rebound());
	expect_number("bound", worker_count, count_bound());
}

/* One CPU, which is another's: that of the worker after it. */
static void swap_all(void)
{
	for (uint32_t i = 0; i < worker_count; i++) {
		expect_number("sched_setaffinity", 0,
			sched_setaffinity(
				threads[i], sizeof(cpu_set_t), &bound[(i + 1) % worker_count]));
	}
}

static void check_widened(void)
{
	start(PINION_BIND_CORE);
	expect_number("bound at first", worker_count, count_bound());
	set_all(&allowed);
	await_rebound(worker_count);
	expect_number("told", worker_count, count_lines("is bound to CPU "));
	expect_number("logged how", worker_count,
		count_lines(" again: it was allowed on others, since that was offline or a "
			    "program set its affinity; bind_workers=none leaves affinity to "
			    "others\n"));
	swap_all();
	await_rebound(2 * worker_count);
	expect_number("logged once a minute", worker_count, count_lines("is bound to CPU "));
	pinion_runtime_destroy(runtime);
}

static bool has_each_tried(void)
{
	for (uint32_t i = 0; i < worker_count; i++) {
		if (pin_load_acquire_u32(&refusals[i]) < TRIES) {
			return false;
		}
	}
	return true;
}

/* Their CPUs are gone, until each has tried a few times. */
static void lose_all(void)
{
	for (uint32_t i = 0; i < worker_count; i++) {
		pin_store_release_u32(&refusals[i], 0);
	}
	pin_store_release_u32(&is_gone, 1);
	set_all(&allowed);
	while (!has_each_tried()) {
		visit_all();
	}
	expect_number("none is bound", 0, count_bound());
}

static void check_gone(void)
{
	start(PINION_BIND_CORE);
	lose_all();
	expect_number("none was bound again", 0, (long long)count_rebound());
	expect_number("logged once each", worker_count, count_lines("cannot be bound to CPU "));
	expect_number("logged why", worker_count, count_lines(" again: Invalid argument; is that"));
	pin_store_release_u32(&is_gone, 0);
	await_rebound(worker_count);
	expect_number("logged that it is back", worker_count, count_lines("is bound to CPU "));
	expect_number("the loss not again", worker_count, count_lines("cannot be bound to CPU "));
	/* Within the minute: neither the second loss nor its end. */
	lose_all();
	pin_store_release_u32(&is_gone, 0);
	await_rebound(2 * worker_count);
	expect_number("one loss logged", worker_count, count_lines("cannot be bound to CPU "));
	expect_number("one return logged", worker_count, count_lines("is bound to CPU "));
	pinion_runtime_destroy(runtime);
}

static void check_unbound(void)
{
	start(PINION_BIND_NONE);
	CPU_ZERO(&bound[0]);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&bound[0]) == 0; cpu++) {
		if (CPU_ISSET(cpu, &allowed)) {
			CPU_SET(cpu, &bound[0]);
		}
	}
	for (uint32_t i = 1; i < worker_count; i++) {
		bound[i] = bound[0];
	}
	set_all(&bound[0]);
	check_affinity("as it was set");
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	for (uint32_t i = 0; i < worker_count; i++) {
		/* It would have looked some time. */
		expect_true("it never looks",
			runtime->shared.workers[i].binding.look_ns == PIN_NO_DEADLINE);
	}
	expect_number("bound", 0, count_bound());
	expect_number("workers_rebound", 0, (long long)count_rebound());
	pinion_runtime_destroy(runtime);
}

/* ---- a CPU that really goes ---- */

static void switch_cpu(size_t cpu, const char *state)
{
	char path[64];
	FILE *stream;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%zu/online", cpu);
	stream = fopen(path, "we");
	expect_ready(path, stream != NULL);
	fputs(state, stream);
	expect_ready(path, fclose(stream) == 0);
}

static void check_hotplug(void)
{
	size_t cpu = 0;

	start(PINION_BIND_CORE);
	expect_number("one CPU each", 1, CPU_COUNT(&bound[worker_count - 1]));
	while (!CPU_ISSET(cpu, &bound[worker_count - 1])) {
		cpu++;
	}
	switch_cpu(cpu, "0");
	while (count_bound() == worker_count) {
		visit_all();
	}
	expect_number("all but one", worker_count - 1, count_bound());
	switch_cpu(cpu, "1");
	while (count_bound() < worker_count) {
		visit_all();
	}
	check_affinity("on its own CPU again");
	expect_number("logged that it is gone", 1, count_lines("cannot be bound to CPU "));
	expect_number("logged that it is back", 1, count_lines("is bound to CPU "));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("sched_getaffinity", sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	worker_count = pin_min_u32((uint32_t)CPU_COUNT(&allowed), WORKERS_MAX);
	if (worker_count < 2) {
		printf("skipped: there is one CPU only\n");
		return EXPECT_SKIPPED;
	}
	start(PINION_BIND_CORE);
	if (count_bound() < worker_count) {
		printf("skipped: workers are not bound here: SMT, or a CPU quota\n");
		return EXPECT_SKIPPED;
	}
	pinion_runtime_destroy(runtime);
	check_widened();
	check_gone();
	check_unbound();
	if (getenv("TEST_HOTPLUG") != NULL) {
		check_hotplug();
	}
	return expect_status();
}
