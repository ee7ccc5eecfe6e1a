/* SPDX-License-Identifier: MIT */
/*
 * Goal: one place per physical core, the CPU the process may use; siblings only
 * when asked for, and then after all cores have one. C20, W21.
 * Hazard that others met: the first CPUs are taken for those that are allowed.
 * Method: an imagined machine with two threads a core; then this machine,
 * counted a second way from /sys, with all CPUs and bound to a single CPU.
 */
#include "runtime/host/topology.h"
#include "tests/support/expect.h"

#include <sched.h>
#include <stdint.h>

/* The CPUs of a place's node are 8 in a row, whichever of them are places. */
static void expect_node_cpus(const struct pin_topology *topology, uint32_t number)
{
	const struct pin_cpu_place *place = &topology->places[number];

	expect_number("CPUs of a node", 8, pin_range_count(place->node_cpus));
	for (uint32_t i = 0; i < 8; i++) {
		expect_number("CPU of a node", 8 * place->node_index + i,
			topology->cpu_indices[place->node_cpus.first + i]);
	}
}

static void check_imagined(void)
{
	struct pin_topology topology;

	setenv("HWLOC_SYNTHETIC", "node:2 l3:1 core:4 pu:2", 1);
	expect_number("load", 0, pin_topology_load(&topology, false));
	expect_number("CPUs", 16, topology.cpu_count);
	expect_number("cores", 8, topology.core_count);
	expect_number("nodes", 2, topology.node_count);
	expect_number("places without SMT", 8, topology.place_count);
	expect_number("workers", 8, pin_topology_default_workers(&topology));
	for (uint32_t i = 0; i < topology.place_count; i++) {
		expect_number("core of a place", i, topology.places[i].core_index);
		expect_number("CPU of a place", 2 * i, topology.places[i].cpu_index);
		expect_number("node of a place", i / 4, topology.places[i].node_index);
		expect_number("L3 of a place", i / 4, topology.places[i].l3_index);
		expect_number("no L2: its own", i, topology.places[i].l2_index);
		expect_node_cpus(&topology, i);
	}
	pin_topology_fini(&topology);

	expect_number("load with SMT", 0, pin_topology_load(&topology, true));
	expect_number("places with SMT", 16, topology.place_count);
	for (uint32_t i = 0; i < topology.place_count; i++) {
		expect_number("core of a place with SMT", i % 8, topology.places[i].core_index);
		expect_number("CPU of a place with SMT", 2 * (i % 8) + i / 8,
			topology.places[i].cpu_index);
		expect_node_cpus(&topology, i);
	}
	pin_topology_fini(&topology);
	pin_topology_fini(&topology);
	unsetenv("HWLOC_SYNTHETIC");
}

/* CPUs that are the first allowed one of their sibling list in /sys. */
static uint32_t count_cores(const cpu_set_t *allowed)
{
	uint32_t count = 0;

	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		unsigned first;
		char path[128];
		char list[256];
		FILE *file;

		if (!CPU_ISSET(cpu, allowed)) {
			continue;
		}
		snprintf(path, sizeof(path),
			"/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
		file = fopen(path, "r");
		if (file == NULL || fgets(list, sizeof(list), file) == NULL) {
			exit(EXPECT_SKIPPED);
		}
		fclose(file);
		first = (unsigned)strtoul(list, NULL, 10);
		count += first == cpu || !CPU_ISSET(first, allowed);
	}
	return count;
}

static void check_this_machine(void)
{
	struct pin_topology topology;
	cpu_set_t allowed;
	cpu_set_t one;
	unsigned last = 0;

	expect_ready("sched_getaffinity", sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	expect_number("load here", 0, pin_topology_load(&topology, false));
	expect_number("CPUs here", CPU_COUNT(&allowed), topology.cpu_count);
	expect_number("cores here", count_cores(&allowed), topology.core_count);
	expect_number("places here", topology.core_count, topology.place_count);
	pin_topology_fini(&topology);

	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		last = CPU_ISSET(cpu, &allowed) ? cpu : last;
	}
	CPU_ZERO(&one);
	CPU_SET(last, &one);
	expect_ready("sched_setaffinity", sched_setaffinity(0, sizeof(one), &one) == 0);
	expect_number("load bound to one CPU", 0, pin_topology_load(&topology, true));
	expect_number("places of one CPU", 1, topology.place_count);
	expect_number("that CPU", last, topology.places[0].cpu_index);
	pin_topology_fini(&topology);
}

int main(void)
{
	check_imagined();
	check_this_machine();
	return expect_status();
}
