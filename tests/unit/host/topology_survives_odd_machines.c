/* SPDX-License-Identifier: MIT */
/*
 * Goal: every shape of machine yields usable places: one CPU, many nodes, CPUs
 * numbered oddly, nodes without CPUs or without memory; and whatever hwloc has
 * to complain of, nothing appears on stderr. Files that other threads have open
 * meanwhile stay what they are.
 * Method: machines imagined by hwloc, one as a sysfs tree written here; a
 * thread that opens and closes files, where ThreadSanitizer has nothing to say.
 */
#include "runtime/base/atomic.h"
#include "runtime/host/topology.h"
#include "tests/support/expect.h"
#include "tests/support/sanitized.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	LOADS_BESIDE = 12, /* each opens some dozens of files */
	OPEN_BESIDE = 8,
};

struct machine {
	const char *description;
	uint32_t cpu_count;
	uint32_t core_count;
	uint32_t node_count;
};

static const struct machine machines[] = {
	{"pu:1", 1, 1, 1},
	{"core:1 pu:1", 1, 1, 1},
	{"pu:4", 4, 4, 1},
	{"node:2 core:8 pu:1", 16, 16, 2},
	{"node:4 l3:1 core:16 pu:2", 128, 64, 4},
	{"pack:2 node:2 l3:2 core:4 pu:2", 64, 32, 4},
	{"pack:2 [numa] [numa] core:4 pu:1", 8, 8, 2},
	{"pack:2 l3:2 core:2 pu:2(indexes=3,1,7,5,11,9,15,13,2,0,6,4,10,8,14,12)", 16, 8, 1},
	{"node:2(indexes=5,3) core:2 pu:1(indexes=200,100,300,64)", 4, 4, 2},
	{"node:16 core:64 pu:2", 2048, 1024, 16},
};

/* True when no place shares its CPU, nor without SMT its core, with another. */
static bool places_differ(const struct pin_topology *topology, bool use_smt)
{
	for (uint32_t i = 0; i < topology->place_count; i++) {
		for (uint32_t j = 0; j < i; j++) {
			const struct pin_cpu_place *left = &topology->places[i];
			const struct pin_cpu_place *right = &topology->places[j];

			if (left->cpu_index == right->cpu_index ||
				(!use_smt && left->core_index == right->core_index)) {
				return false;
			}
		}
	}
	return true;
}

/* True when places of a node, and in it of an L3, are adjacent. */
static bool places_are_grouped(const struct pin_topology *topology)
{
	for (uint32_t i = 1; i < topology->place_count; i++) {
		const struct pin_cpu_place *before = &topology->places[i - 1];
		const struct pin_cpu_place *after = &topology->places[i];

		if (before->node_index > after->node_index ||
			(before->node_index == after->node_index &&
				before->l3_index > after->l3_index)) {
			return false;
		}
	}
	return true;
}

/*
 * True when each place is among the CPUs of its node, and those of all nodes
 * are all CPUs, each once.
 */
static bool nodes_have_their_cpus(const struct pin_topology *topology)
{
	uint32_t covered = 0;

	for (uint32_t i = 0; i < topology->place_count; i++) {
		const struct pin_cpu_place *place = &topology->places[i];
		uint32_t j = place->node_cpus.first;
		bool is_first = true;

		while (j < place->node_cpus.end && topology->cpu_indices[j] != place->cpu_index) {
			j++;
		}
		for (uint32_t k = 0; k < i; k++) {
			is_first &= topology->places[k].node_index != place->node_index;
		}
		if (j >= place->node_cpus.end || place->node_cpus.end > topology->cpu_count) {
			return false;
		}
		covered += is_first ? pin_range_count(place->node_cpus) : 0;
	}
	for (uint32_t i = 0; i < topology->cpu_count; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (topology->cpu_indices[i] == topology->cpu_indices[j]) {
				return false;
			}
		}
	}
	return covered == topology->cpu_count;
}

static void check_machine(const struct machine *machine, bool use_smt)
{
	uint32_t places = use_smt ? machine->cpu_count : machine->core_count;
	struct pin_topology topology;

	setenv("HWLOC_SYNTHETIC", machine->description, 1);
	if (!expect_number(machine->description, 0, pin_topology_load(&topology, use_smt))) {
		return;
	}
	expect_number(machine->description, machine->cpu_count, topology.cpu_count);
	expect_number(machine->description, machine->core_count, topology.core_count);
	expect_number(machine->description, machine->node_count, topology.node_count);
	expect_number(machine->description, places, topology.place_count);
	expect_number("quota of an imagined machine", 0, topology.quota_millicpus);
	expect_true(machine->description, places_differ(&topology, use_smt));
	expect_true(machine->description, nodes_have_their_cpus(&topology));
	expect_true(machine->description, use_smt || places_are_grouped(&topology));
	pin_topology_fini(&topology);
	unsetenv("HWLOC_SYNTHETIC");
}

static char root[128];

static void write_file(const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = strchr(full + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(full, 0755);
		*slash = '/';
	}
	file = fopen(full, "w");
	expect_ready(full, file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void write_cpu(unsigned cpu)
{
	static const char *const names[] = {
		"core_siblings", "package_cpus", "thread_siblings", "core_cpus"};
	char path[128];
	char text[32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/%s", cpu,
			names[i]);
		snprintf(text, sizeof(text), "%x\n", i < 2 ? 0xfu : 1u << cpu);
		write_file(path, text);
	}
	snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/core_id", cpu);
	snprintf(text, sizeof(text), "%u\n", cpu);
	write_file(path, text);
	snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/physical_package_id",
		cpu);
	write_file(path, "0\n");
}

static void write_node(unsigned node, unsigned cpus, unsigned long kibibytes, const char *distances)
{
	char path[128];
	char text[64];

	snprintf(path, sizeof(path), "sys/devices/system/node/node%u/cpumap", node);
	snprintf(text, sizeof(text), "%x\n", cpus);
	write_file(path, text);
	snprintf(path, sizeof(path), "sys/devices/system/node/node%u/meminfo", node);
	snprintf(text, sizeof(text), "Node %u MemTotal: %lu kB\n", node, kibibytes);
	write_file(path, text);
	snprintf(path, sizeof(path), "sys/devices/system/node/node%u/distance", node);
	write_file(path, distances);
}

/*
 * Node 0 has CPUs 0 and 1 but no memory, node 1 CPUs 2 and 3 and memory, node 2
 * memory only; node 2 is nearer to node 0 than node 1 is.
 */
static void write_nodes_with_gaps(void)
{
	for (unsigned cpu = 0; cpu < 4; cpu++) {
		write_cpu(cpu);
	}
	write_file("sys/devices/system/cpu/online", "0-3\n");
	write_file("sys/devices/system/cpu/possible", "0-3\n");
	write_file("sys/devices/system/cpu/present", "0-3\n");
	write_file("sys/devices/system/node/online", "0-2\n");
	write_file("sys/devices/system/node/possible", "0-2\n");
	write_node(0, 0x3, 0, "10 40 20\n");
	write_node(1, 0xc, 1048576, "40 10 30\n");
	write_node(2, 0, 1048576, "20 30 10\n");
	write_file("proc/cpuinfo", "processor\t: 0\n");
}

/* The nodes by CPU. */
static void check_nodes(const char *what, const uint32_t *nodes, uint32_t node_count)
{
	struct pin_topology topology;

	setenv("HWLOC_FSROOT", root, 1);
	if (expect_number(what, 0, pin_topology_load(&topology, false)) &&
		expect_number(what, 4, topology.place_count)) {
		expect_number(what, node_count, topology.node_count);
		for (uint32_t i = 0; i < 4; i++) {
			expect_number(what, nodes[topology.places[i].cpu_index],
				topology.places[i].node_index);
		}
		pin_topology_fini(&topology);
	}
	unsetenv("HWLOC_FSROOT");
}

/* As the files say, also of a node without memory. */
static void check_distances(void)
{
	static const uint32_t values[3][3] = {{10, 40, 20}, {40, 10, 30}, {20, 30, 10}};
	struct pin_topology topology;

	setenv("HWLOC_FSROOT", root, 1);
	if (expect_number("distances", 0, pin_topology_load(&topology, false))) {
		for (uint32_t i = 0; i < 9; i++) {
			expect_number("distance", values[i / 3][i % 3],
				pin_node_distance(&topology.distances, i / 3, i % 3));
		}
		expect_number("from an unknown node", UINT32_MAX,
			pin_node_distance(&topology.distances, 7, 0));
		expect_number("to an unknown node", UINT32_MAX,
			pin_node_distance(&topology.distances, 0, 7));
		pin_topology_fini(&topology);
	}
	unsetenv("HWLOC_FSROOT");
}

static void check_nodes_with_gaps(void)
{
	static const uint32_t nearest[] = {2, 2, 1, 1};
	static const uint32_t allowed[] = {1, 1, 1, 1}; /* and nearest, then */

	write_nodes_with_gaps();
	check_nodes("nearest node with memory", nearest, 2);
	check_distances();
	/* Real kernels never allow a node without memory. */
	write_file("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
	write_file("proc/self/cgroup", "0::/job\n");
	write_file("sys/fs/cgroup/cgroup.controllers", "cpuset\n");
	write_file("sys/fs/cgroup/job/cpuset.cpus.effective", "0-3\n");
	write_file("sys/fs/cgroup/job/cpuset.mems.effective", "1-2\n");
	check_nodes("nearest where node 0 is not allowed", nearest, 2);
	write_node(0, 0x3, 0, "10 20 40\n");
	write_node(1, 0xc, 1048576, "20 10 30\n");
	write_node(2, 0, 1048576, "40 30 10\n");
	check_nodes("the same, nearer to node 1", allowed, 1);
	write_file("sys/fs/cgroup/job/cpuset.mems.effective", "1\n");
	check_nodes("the only node allowed", allowed, 1);
}

static void expect_cpus(const char *what, const uint32_t *cpus, uint32_t count)
{
	struct pin_topology topology;

	setenv("HWLOC_FSROOT", root, 1);
	if (expect_number(what, 0, pin_topology_load(&topology, false))) {
		expect_number(what, count, topology.cpu_count);
		if (expect_number(what, count, topology.place_count)) {
			for (uint32_t i = 0; i < count; i++) {
				expect_number(what, cpus[i], topology.places[i].cpu_index);
			}
		}
		pin_topology_fini(&topology);
	}
	unsetenv("HWLOC_FSROOT");
}

/* Of version 2, and of the process's own group, not of those above it. */
static void check_cpuset(void)
{
	static const uint32_t some[] = {1, 3};
	static const uint32_t one[] = {2};
	static const uint32_t all[] = {0, 1, 2, 3};

	write_file("sys/fs/cgroup/job/cpuset.mems.effective", "0-2\n");
	write_file("sys/fs/cgroup/job/cpuset.cpus.effective", "1,3\n");
	expect_cpus("two CPUs of the group", some, 2);
	write_file("proc/self/cgroup", "0::/job/part\n");
	write_file("sys/fs/cgroup/job/part/cpuset.mems.effective", "0-2\n");
	write_file("sys/fs/cgroup/job/part/cpuset.cpus.effective", "2\n");
	expect_cpus("one, of the group below", one, 1);
	write_file("sys/fs/cgroup/job/part/cpuset.cpus.effective", "0-3\n");
	expect_cpus("all of them", all, 4);
}

/* With verbose errors on, hwloc writes a line about nonsense. */
static void check_silence(const char *stderr_path)
{
	struct pin_topology topology;
	struct stat status;
	int saved = dup(STDERR_FILENO);
	int file = open(stderr_path, O_CREAT | O_RDWR | O_TRUNC, 0600);

	expect_ready(stderr_path, saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
	setenv("HWLOC_SYNTHETIC", "node:nonsense", 1);
	setenv("HWLOC_SYNTHETIC_VERBOSE", "1", 1);
	(void)pin_topology_load(&topology, false);
	pin_topology_fini(&topology);
	unsetenv("HWLOC_SYNTHETIC_VERBOSE");
	unsetenv("HWLOC_SYNTHETIC");
	dup2(saved, STDERR_FILENO);
	expect_ready("fstat", fstat(file, &status) == 0);
	expect_number("bytes on stderr", 0, status.st_size);
	close(file);
	close(saved);
}

/* ---- beside other threads ---- */

static struct pin_atomic_u32 is_over;

/* More files at a time than a load has, so that it takes the same numbers. */
static void *open_and_close(void *arg)
{
	const struct stat *expected = arg;
	struct stat status;
	int fds[OPEN_BESIDE];

	do {
		for (int i = 0; i < OPEN_BESIDE; i++) {
			fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
			expect_ready("open", fds[i] >= 0);
		}
		for (int i = 0; i < OPEN_BESIDE; i++) {
			expect_ready("fstat", fstat(fds[i], &status) == 0);
			expect_ready("the file", status.st_rdev == expected->st_rdev);
			expect_ready("close", close(fds[i]) == 0);
		}
	} while (pin_load_relaxed_u32(&is_over) == 0); /* no order of files */
	return NULL;
}

static void check_beside_opens(void)
{
	struct pin_topology topology;
	struct stat expected;
	pthread_t thread;

	expect_ready("stat", stat("/dev/null", &expected) == 0);
	expect_ready("thread", pthread_create(&thread, NULL, open_and_close, &expected) == 0);
	for (int i = 0; i < LOADS_BESIDE; i++) {
		expect_number("load beside opens", 0, pin_topology_load(&topology, false));
		pin_topology_fini(&topology);
	}
	pin_store_relaxed_u32(&is_over, 1);
	expect_ready("join", pthread_join(thread, NULL) == 0);
}

int main(void)
{
	const char *temporary = getenv("TMPDIR");
	char stderr_path[256];

	/* From here on only what the test sets is imagined. */
	unsetenv("HWLOC_XMLFILE");
	unsetenv("HWLOC_COMPONENTS");
	snprintf(root, sizeof(root), "%.80s/topology.%d", temporary == NULL ? "/tmp" : temporary,
		(int)getpid());
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		check_machine(&machines[i], false);
		check_machine(&machines[i], true);
	}
	check_nodes_with_gaps();
	check_cpuset();
	check_beside_opens();
	/* What a sanitizer reports is to be seen. */
	if (!SANITIZED_BUILD) {
		snprintf(stderr_path, sizeof(stderr_path), "%s/stderr", root);
		check_silence(stderr_path);
	}
	return expect_status();
}
