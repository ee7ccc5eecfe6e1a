/* SPDX-License-Identifier: MIT */
/*
 * Goal: with PINION_BIND_NODE each worker may run on all CPUs of the node where
 * its memory is, of those that this process may use, and on no other; with
 * PINION_BIND_CORE on one, and unbound on all. Workers that come as a thread
 * pool grows do the same. C20, W21.
 * Method: each worker's answer of sched_getaffinity(2), against /sys and the
 * process's own mask, also when that is one CPU; on a machine imagined by hwloc
 * whose nodes are CPUs 0 and 1, if both may be used. `make check-vm` runs it on
 * machines with several nodes.
 */
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"

#include <numa.h>

enum { LIMIT_SECONDS = 60, WORKERS_MAX = 128 };

struct seen {
	struct pinion_task task;
	cpu_set_t cpus;
	bool is_known;
};

static cpu_set_t allowed;
static struct seen seen[WORKERS_MAX];

static int note_cpus(struct pinion_task *task)
{
	struct seen *own = (struct seen *)task;

	own->is_known = sched_getaffinity(0, sizeof(own->cpus), &own->cpus) == 0;
	return 0;
}

/* Of the node, as the kernel has it; without NUMA all there are. */
static void read_node(uint32_t node_index, cpu_set_t *out_cpus)
{
	char path[96];
	FILE *stream;
	unsigned first;

	*out_cpus = allowed;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node_index);
	stream = fopen(path, "re");
	if (stream == NULL) {
		return;
	}
	CPU_ZERO(out_cpus);
	while (fscanf(stream, "%u", &first) == 1) {
		unsigned last = first;

		if (fscanf(stream, "-%u", &last) != 1) {
			last = first;
		}
		for (unsigned cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++) {
			CPU_SET(cpu, out_cpus);
		}
		(void)fgetc(stream);
	}
	fclose(stream);
	CPU_AND(out_cpus, out_cpus, &allowed);
}

/* Those of nodes without memory may have it as their nearest one. */
static void expect_node(uint32_t node_index, const cpu_set_t *cpus)
{
	struct bitmask *with_memory = numa_get_mems_allowed();
	cpu_set_t of_node;

	read_node(node_index, &of_node);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		int own = numa_available() < 0 ? 0 : numa_node_of_cpu((int)cpu);

		if (CPU_ISSET(cpu, &of_node)) {
			expect_true("a CPU of its node", CPU_ISSET(cpu, cpus));
		} else if (CPU_ISSET(cpu, cpus)) {
			expect_true("none of another",
				own < 0 || !numa_bitmask_isbitset(with_memory, (unsigned)own) ||
					numa_node_size64(own, NULL) <= 0);
		}
	}
	numa_bitmask_free(with_memory);
}

static uint32_t count_bound(const struct pinion_runtime *runtime)
{
	struct pinion_runtime_info facts;

	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	return facts.workers_bound;
}

/* Has each worker report, then ends the runtime; how many there were. */
static uint32_t ask_all(struct pinion_runtime *runtime)
{
	uint32_t count = pinion_runtime_worker_count(runtime);

	expect_ready("not too many workers", count <= WORKERS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		seen[i] = (struct seen){.task.run = note_cpus};
		expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, i, &seen[i].task));
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	for (uint32_t i = 0; i < count; i++) {
		expect_true("told", seen[i].is_known);
	}
	return count;
}

static struct pinion_runtime *start(uint32_t worker_count, uint32_t bind_workers)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	config.bind_workers = bind_workers;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	return runtime;
}

static void check_node(void)
{
	struct pinion_runtime *runtime = start(0, PINION_BIND_NODE);
	uint32_t bound = count_bound(runtime);
	uint32_t count = ask_all(runtime);

	if (bound == 0) {
		printf("a CPU quota is in force, so no worker is bound\n");
	} else {
		expect_number("all are bound", count, bound);
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct pin_worker *worker = &runtime->shared.workers[i];

		if (bound > 0) {
			expect_node(worker->place.node_index, &seen[i].cpus);
			expect_true("its core among them",
				CPU_ISSET(worker->place.cpu_index, &seen[i].cpus));
		} else {
			expect_true("all", CPU_EQUAL(&allowed, &seen[i].cpus));
		}
	}
	pinion_runtime_destroy(runtime);
}

static void check_others(void)
{
	struct pinion_runtime *runtime = start(1, PINION_BIND_CORE);

	if (count_bound(runtime) == 1) {
		ask_all(runtime);
		expect_number("one CPU", 1, CPU_COUNT(&seen[0].cpus));
	}
	pinion_runtime_destroy(runtime);
	runtime = start(1, PINION_BIND_NONE);
	expect_number("no worker is bound", 0, count_bound(runtime));
	ask_all(runtime);
	expect_true("all that are allowed", CPU_EQUAL(&allowed, &seen[0].cpus));
	pinion_runtime_destroy(runtime);
}

static void check_thread_pool(void)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 1};
	struct pinion_runtime *thread_pool;
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.bind_workers = PINION_BIND_NODE;
	runtimes_tuning.thread_pool_max = 2;
	expect_number("create", 0, pinion_thread_pool_create(&config, &sizes, &thread_pool));
	if (count_bound(thread_pool) == 1) {
		uint32_t last = pinion_runtime_worker_count(thread_pool) - 1;

		sizes.low = 2;
		expect_number("resize", 0, pinion_thread_pool_resize(thread_pool, &sizes));
		expect_number("the new one too", 2, count_bound(thread_pool));
		ask_all(thread_pool);
		expect_node(thread_pool->shared.workers[last].place.node_index, &seen[last].cpus);
	}
	pinion_runtime_destroy(thread_pool);
}

static void check_imagined(void)
{
	struct pinion_runtime *runtime;

	if (!CPU_ISSET(0, &allowed) || !CPU_ISSET(1, &allowed)) {
		printf("not with CPUs 0 and 1 here\n");
		return;
	}
	setenv("HWLOC_SYNTHETIC", "node:2 core:1 pu:1", 1);
	runtime = start(2, PINION_BIND_NODE);
	unsetenv("HWLOC_SYNTHETIC");
	expect_number("both", 2, count_bound(runtime));
	ask_all(runtime);
	for (uint32_t i = 0; i < 2; i++) {
		expect_number("a CPU each", 1, CPU_COUNT(&seen[i].cpus));
		expect_true("that of its node", CPU_ISSET(i, &seen[i].cpus));
	}
	pinion_runtime_destroy(runtime);
}

static void check_one_allowed(void)
{
	unsigned cpu = 0;

	while (!CPU_ISSET(cpu, &allowed)) {
		cpu++;
	}
	CPU_ZERO(&allowed);
	CPU_SET(cpu, &allowed);
	expect_ready("one CPU", sched_setaffinity(0, sizeof(allowed), &allowed) == 0);
	check_node();
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("affinity", sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	check_node();
	check_others();
	check_thread_pool();
	check_imagined();
	check_one_allowed();
	return expect_status();
}
