/* SPDX-License-Identifier: MIT */
/*
 * The CPUs this process may use, and their places in the machine.
 *
 * A runtime wants one worker per physical core, neighbours next to each other,
 * each with memory on its own node. hwloc knows the machine; this file reduces
 * it to a list of places, best first: the first N places are what N workers
 * should use. CPUs outside the process's cpuset or affinity mask do not occur,
 * and the cgroup's CPU quota caps the number of workers.
 *
 * Called once per runtime, on the creating thread, whose affinity mask counts.
 * It takes some milliseconds, most of them in the kernel: a caller with other
 * things to find out meanwhile begins it and ends it later.
 *
 * Invariants: (1) place_count >= 1 after a successful load. (2) no two places
 * share a CPU, nor, without use_smt, a core. (3) the order depends on the
 * machine and the allowed CPUs only.
 *
 * hwloc reads HWLOC_SYNTHETIC and HWLOC_XMLFILE from the environment. Such a
 * machine is imagined: neither this process's affinity mask nor its quota says
 * anything about it, and both are left out.
 *
 * Elsewhere: cgroup.c reads cgroups; numa.h places memory.
 */
#ifndef PIN_HOST_TOPOLOGY_H
#define PIN_HOST_TOPOLOGY_H

#include "runtime/base/base.h"
#include "runtime/host/host.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pin_cpu_place {
	uint32_t cpu_index;  /* the OS's, as sched_setaffinity(2) takes it */
	uint32_t core_index; /* 0, 1, … in machine order, unique in the machine */
	uint32_t l2_index;   /* in machine order, too; without a known L2 that of the core alone */
	uint32_t l3_index;   /* in machine order, too; without a known L3 the package's or node's */
	uint32_t node_index; /* the OS's: the nearest node with memory for us */
	/* CPUs with the same node, in the topology's `cpu_indices`. */
	struct pin_range node_cpus;
};

/* How far nodes are from each other, in a unit of the firmware's. */
struct pin_node_distances {
	uint32_t node_count;	/* 0: the machine has none */
	uint32_t *node_indices; /* the OS's */
	uint32_t *values;	/* from node i to node j at [i * node_count + j] */
};

struct pin_topology {
	uint32_t cpu_count;	  /* logical CPUs allowed */
	uint32_t core_count;	  /* cores with at least one of them */
	uint32_t node_count;	  /* nodes nearest to one of them, see node_index */
	uint32_t quota_millicpus; /* 0: none */
	uint32_t place_count;
	uint32_t place_room; /* of the array */
	struct pin_cpu_place *places;
	uint32_t *cpu_indices;		     /* of the same room; those allowed, by node */
	struct pin_node_distances distances; /* of all nodes */
	const struct pin_host *host;	     /* whose heap it is on */
};

/* A load under way; the struct it fills stays in place until its end. */
struct pin_topology_search {
	struct pin_topology *topology;
	pthread_t thread;
	bool has_thread;
	bool use_smt;
	int result;
};

/* UINT32_MAX where that is not known. */
uint32_t pin_node_distance(
	const struct pin_node_distances *distances, uint32_t from_index, uint32_t to_index);

/*
 * Places are one per allowed core, its first allowed CPU; with `use_smt` the
 * further CPUs of each core follow after all cores have one.
 *
 * Context: blocks, allocates, runs a thread of its own for a few milliseconds.
 * Errors: -ENOMEM. -EIO: the CPUs cannot be found out, as without /sys.
 */
int pin_topology_load(struct pin_topology *topology, bool use_smt);

/*
 * The same in two parts, so that the caller goes on in between. Each begin has
 * its end, whose result and topology are those of pin_topology_load().
 */
void pin_topology_begin(struct pin_topology_search *search, struct pin_topology *topology,
	const struct pin_host *host, bool use_smt);
int pin_topology_end(struct pin_topology_search *search);

/* Accepts a zeroed or failed one. */
void pin_topology_fini(struct pin_topology *topology);

/* As many workers as there are places and the quota can feed, at least one. */
uint32_t pin_topology_default_workers(const struct pin_topology *topology);

#endif
