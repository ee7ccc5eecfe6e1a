/* SPDX-License-Identifier: MIT */
/*
 * Goal: each worker runs on a CPU of its own, one of those that this process
 * may use, and the pages of its arena are on that CPU's node, or, where that
 * has no memory, on the nearest that has some: at least 99 in 100. A pool's
 * buffers too; a buffer given back on another node goes home. Victims and
 * sleepers to wake come from its own node first. W2, W12, W21, C8, C20, BP-5,
 * BP-12, BP-13, G14.
 * Method: what the kernel says in /sys and by move_pages(2) is read here and
 * compared with what the runtime made of it by way of hwloc. A machine of one
 * node passes most of it; `make check-vm` runs it on several, and has in
 * TEST_NODES how many nodes with CPUs have to be seen, and in TEST_WORKERS how
 * many workers; PINION_USE_SMT=1: one on each thread of a core. Skips where a
 * node is full.
 */
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"
#include "tests/support/users.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <sched.h>

enum {
	NODES_MAX = 64,
	CPUS_MAX = 1024,
	WORKERS_MAX = CPUS_MAX,
	POOL_LOCAL = 4,
	BUFFER_BYTES = 64 << 10,
	LOCAL_PERMILLE_MIN = 990,
};

/* ---- what the kernel says ---- */

static uint32_t cpu_nodes[CPUS_MAX];	/* that a CPU belongs to */
static bool node_has_memory[NODES_MAX]; /* that we may use */
static uint32_t distances[NODES_MAX][NODES_MAX];
static uint32_t node_count; /* the highest number and one */

static bool read_line(char *line, size_t size, uint32_t node, const char *name)
{
	char path[96];
	FILE *stream;
	bool is_read;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/%s", node, name);
	stream = fopen(path, "re");
	if (stream == NULL) {
		return false;
	}
	is_read = fgets(line, (int)size, stream) != NULL;
	fclose(stream);
	return is_read;
}

/* "0-3,8" as the kernel writes it. */
static void read_cpus(uint32_t node)
{
	char line[1024];
	char *at = line;

	if (!read_line(line, sizeof(line), node, "cpulist")) {
		return;
	}
	while (*at >= '0' && *at <= '9') {
		unsigned long first = strtoul(at, &at, 10);
		unsigned long last = *at == '-' ? strtoul(at + 1, &at, 10) : first;

		for (unsigned long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++) {
			cpu_nodes[cpu] = node;
		}
		at += *at == ',' ? 1 : 0;
	}
}

static void read_nodes(void)
{
	char line[1024];

	struct bitmask *allowed = numa_get_mems_allowed();

	for (uint32_t node = 0; node < NODES_MAX; node++) {
		uint32_t other = 0;
		unsigned long kibibytes = 0;
		char *at = line;

		if (!read_line(line, sizeof(line), node, "distance")) {
			continue;
		}
		node_count = node + 1;
		for (char *end; other < NODES_MAX; other++, at = end) {
			distances[node][other] = (uint32_t)strtoul(at, &end, 10);
			if (end == at) {
				break;
			}
		}
		read_cpus(node);
		if (read_line(line, sizeof(line), node, "meminfo") &&
			sscanf(line, "Node %*u MemTotal: %lu", &kibibytes) == 1) {
			node_has_memory[node] =
				kibibytes > 0 && numa_bitmask_isbitset(allowed, node) != 0;
		}
	}
	numa_bitmask_free(allowed);
}

/* The nearest with memory; of equally near ones any is right. */
static bool is_best_node(uint32_t cpu, uint32_t node)
{
	uint32_t own = cpu_nodes[cpu];

	if (node_count == 0) {
		return node == 0; /* a kernel without NUMA */
	}
	if (node_has_memory[own]) {
		return node == own;
	}
	for (uint32_t other = 0; other < node_count; other++) {
		if (node_has_memory[other] && distances[own][other] < distances[own][node]) {
			return false;
		}
	}
	return node_has_memory[node];
}

/* Of the pages of some memory those on a node, in thousandths. */
static uint32_t permille_on(const uint8_t *memory, size_t bytes, uint32_t node)
{
	size_t page_count = bytes / PIN_PAGE_BYTES;
	void **pages = calloc(page_count, sizeof(*pages));
	int *nodes = calloc(page_count, sizeof(*nodes));
	size_t count = 0;

	expect_ready("memory", pages != NULL && nodes != NULL);
	for (size_t i = 0; i < page_count; i++) {
		pages[i] = (void *)(uintptr_t)(memory + i * PIN_PAGE_BYTES);
	}
	if (move_pages(0, page_count, pages, NULL, nodes, 0) < 0) {
		printf("move_pages(2) does not say where pages are: %s\n", strerror(errno));
		exit(EXPECT_SKIPPED);
	}
	for (size_t i = 0; i < page_count; i++) {
		count += nodes[i] == (int)node ? 1 : 0;
	}
	free(pages);
	free(nodes);
	return (uint32_t)(count * 1000 / page_count);
}

/*
 * What else runs here has its memory, so that the kernel gives that of another,
 * which is no fault of ours: memory is preferred to be there, never bound.
 */
static void skip_if_full(uint32_t node, size_t bytes)
{
	long long free_bytes = 0;

	if (expect_failure_count == 0 && numa_available() >= 0 &&
		numa_node_size64((int)node, &free_bytes) > 0 &&
		(unsigned long long)free_bytes < bytes) {
		printf("node %u has only %lld bytes left for an arena of %zu\n", node, free_bytes,
			bytes);
		exit(EXPECT_SKIPPED);
	}
}

/* ---- the workers ---- */

static struct pinion_runtime *runtime;
static uint32_t worker_count;

/* A task on one worker that does one thing there. */
struct visit {
	struct pinion_task task;
	void (*act)(struct visit *visit);
	struct pin_atomic_u32 is_over;
	uint32_t worker_index;
	cpu_set_t mask;
	int cpu;
	struct pinion_pool *pool;
	struct pinion_buffer buffer;
	int rc;
};

static int visit_run(struct pinion_task *task)
{
	struct visit *visit = PIN_CONTAINER_OF(task, struct visit, task);

	visit->act(visit);
	tasks_signal(&visit->is_over);
	return 0;
}

static void visit_worker(
	struct visit *visit, uint32_t worker_index, void (*act)(struct visit *visit))
{
	visit->task = (struct pinion_task){.run = visit_run};
	visit->worker_index = worker_index;
	visit->act = act;
	pin_store_relaxed_u32(&visit->is_over, 0);
	expect_ready("spawn", pinion_task_spawn_on(runtime, worker_index, &visit->task) == 0);
	tasks_await(&visit->is_over, 1);
}

static void look_at_cpu(struct visit *visit)
{
	visit->cpu = sched_getcpu();
	visit->rc = sched_getaffinity(0, sizeof(visit->mask), &visit->mask);
}

static void check_cpus(const cpu_set_t *allowed)
{
	cpu_set_t taken;

	CPU_ZERO(&taken);
	for (uint32_t i = 0; i < worker_count; i++) {
		const struct pin_worker *worker = &runtime->shared.workers[i];
		struct visit visit = {0};

		visit_worker(&visit, i, look_at_cpu);
		expect_number("sched_getaffinity", 0, visit.rc);
		expect_true("a worker is bound", pin_load_relaxed_u32(&worker->is_bound) != 0);
		expect_number("CPUs of a worker", 1, CPU_COUNT(&visit.mask));
		expect_true("it is its current one", CPU_ISSET((size_t)visit.cpu, &visit.mask));
		expect_number("its place", worker->place.cpu_index, visit.cpu);
		expect_true("it may be used", CPU_ISSET((size_t)visit.cpu, allowed));
		expect_true("by one worker", !CPU_ISSET((size_t)visit.cpu, &taken));
		if (!is_best_node((uint32_t)visit.cpu, worker->place.node_index)) {
			printf("CPU %d of node %u: node %u is not the nearest with memory\n",
				visit.cpu, cpu_nodes[visit.cpu], worker->place.node_index);
			expect_failure_count++;
		}
		CPU_SET((size_t)visit.cpu, &taken);
	}
}

static uint32_t check_arenas(void)
{
	uint32_t least = 1000;

	for (uint32_t i = 0; i < worker_count; i++) {
		const struct pin_worker *worker = &runtime->shared.workers[i];
		uint32_t permille = permille_on(
			worker->arena.memory, worker->arena.bytes, worker->place.node_index);

		if (permille < LOCAL_PERMILLE_MIN) {
			skip_if_full(worker->place.node_index, worker->arena.bytes);
			printf("worker %u: %u of 1000 pages are on node %u\n", i, permille,
				worker->place.node_index);
			expect_failure_count++;
		}
		least = permille < least ? permille : least;
	}
	return least;
}

/* Nearest first: L3 and node before others. */
static void check_victims(void)
{
	for (uint32_t i = 0; i < worker_count; i++) {
		struct pin_worker *worker = &runtime->shared.workers[i];
		uint32_t own = worker->place.node_index;
		bool has_left = false;
		uint32_t count = 0;
		struct pin_victims_round round;
		struct pin_random random;
		uint32_t victim;

		pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, i);
		pin_victims_begin(&round, &runtime->shared.victims, i, &random);
		for (; pin_victims_next(&round, &victim); count++) {
			bool is_near = runtime->shared.workers[victim].place.node_index == own;

			expect_true("none of the own node after others", !is_near || !has_left);
			has_left = has_left || !is_near;
		}
		expect_number("victims", worker_count - 1, count);
	}
}

/* ---- a pool's buffers ---- */

static void take(struct visit *visit)
{
	visit->rc = pinion_pool_try_acquire(visit->pool, &visit->buffer);
}

static void give(struct visit *visit)
{
	visit->rc = pinion_pool_release(visit->pool, &visit->buffer);
}

static uint32_t worker_elsewhere(uint32_t from)
{
	uint32_t own = runtime->shared.workers[from].place.node_index;

	for (uint32_t i = 0; i < worker_count; i++) {
		if (runtime->shared.workers[i].place.node_index != own) {
			return i;
		}
	}
	return from;
}

/* One more than is left in the worker's cache: the last comes from home. */
static void check_refill(struct pinion_pool *pool, uint32_t index, uint32_t node)
{
	struct visit visits[POOL_LOCAL] = {0};

	for (uint32_t i = 0; i < POOL_LOCAL; i++) {
		visits[i].pool = pool;
		visit_worker(&visits[i], index, take);
		expect_number("acquire", 0, visits[i].rc);
		expect_true("buffers at home are taken first",
			permille_on(visits[i].buffer.bytes, BUFFER_BYTES, node) >=
				LOCAL_PERMILLE_MIN);
	}
	for (uint32_t i = 0; i < POOL_LOCAL; i++) {
		visit_worker(&visits[i], index, give);
		expect_number("release", 0, visits[i].rc);
	}
}

/* Taken by one worker, given back by one of another node. */
static void check_buffer(struct pinion_pool *pool, uint32_t index)
{
	uint32_t node = runtime->shared.workers[index].place.node_index;
	uint32_t other = worker_elsewhere(index);
	uint32_t shared = users_shared(pool);
	uint32_t others = pinion_pool_available_local(pool, other);
	struct visit visit = {.pool = pool};
	const uint8_t *bytes;

	visit_worker(&visit, index, take);
	expect_number("acquire", 0, visit.rc);
	bytes = visit.buffer.bytes;
	expect_number(
		"from the own cache", POOL_LOCAL - 1, pinion_pool_available_local(pool, index));
	expect_true("a buffer's pages are on the worker's node",
		permille_on(bytes, BUFFER_BYTES, node) >= LOCAL_PERMILLE_MIN);
	visit_worker(&visit, other, give);
	expect_number("release", 0, visit.rc);
	if (other == index) {
		return; /* there is but one node */
	}
	/* At the latest when that worker has nothing else to do. */
	while (pinion_pool_available_local(pool, other) != others) {
		sched_yield();
	}
	expect_number(
		"not into the cache of another node, but home", shared + 1, users_shared(pool));
	check_refill(pool, index, node);
}

static void check_pool(void)
{
	struct pinion_pool_config config;
	struct pinion_pool *pool;
	uint32_t buffer_count = worker_count * POOL_LOCAL;

	pinion_pool_config_init(&config);
	config.local_count = POOL_LOCAL;
	config.buffer_count = buffer_count;
	config.buffer_bytes = BUFFER_BYTES;
	if (!expect_number("pool", 0, pinion_pool_create(runtime, &config, &pool))) {
		return;
	}
	for (uint32_t i = 0; i < worker_count; i++) {
		check_buffer(pool, i);
	}
	expect_number("all are back", buffer_count, users_free(pool));
	expect_number("destroy", 0, pinion_pool_destroy(pool));
}

static void expect_from_environment(const char *name, uint32_t got)
{
	const char *wanted = getenv(name);

	if (wanted != NULL) {
		expect_number(name, atoi(wanted), got);
	}
}

int main(void)
{
	struct pinion_config config;
	struct pinion_config told;
	uint32_t nodes_seen = 0;
	bool is_seen[NODES_MAX] = {false};
	uint32_t least;
	cpu_set_t allowed;
	struct pinion_tuning told_tuning;

	runtimes_watchdog(110);
	read_nodes();
	expect_ready("affinity", sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	runtimes_config(&config, 0, PINION_IO_AUTO);
	pinion_config_init(&told);
	pinion_tuning_init(&told_tuning);
	expect_ready("environment", pinion_config_from_env(&told, &told_tuning) == 0);
	runtimes_tuning.use_smt = told_tuning.use_smt;
	config.pool_bytes = 1 << 20;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	worker_count = pinion_runtime_worker_count(runtime);
	expect_ready("workers", worker_count <= WORKERS_MAX);
	for (uint32_t i = 0; i < worker_count; i++) {
		uint32_t node = cpu_nodes[runtime->shared.workers[i].place.cpu_index];

		nodes_seen += is_seen[node] ? 0 : 1;
		is_seen[node] = true;
	}
	check_cpus(&allowed);
	least = check_arenas();
	check_victims();
	check_pool();
	pinion_runtime_destroy(runtime);
	expect_from_environment("TEST_NODES", nodes_seen);
	expect_from_environment("TEST_WORKERS", worker_count);
	printf("%u workers on %u nodes, %u.%u %% of the pages of each or more on its own\n",
		worker_count, nodes_seen, least / 10, least % 10);
	return expect_status();
}
