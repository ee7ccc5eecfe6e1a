/* SPDX-License-Identifier: MIT */
/*
 * From hwloc's tree to a list of places.
 *
 * hwloc reports contradictory firmware tables on stderr and only an environment
 * variable stops that, which a library must not set under other threads. So it
 * runs on a short-lived thread that has a descriptor table of its own, where 2
 * is /dev/null: the thread inherits the caller's affinity mask, and what hwloc
 * opens cannot leak either. Where a sandbox forbids the separate table the load
 * goes on without it.
 */
#include "runtime/host/topology.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/cgroup.h"
#include "runtime/host/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Of a machine whose distances count; there is none with as many. */
	NODES_MAX = 1024,
};

/* A place with what only the sorting needs. */
struct candidate {
	struct pin_cpu_place place;
	uint32_t smt_rank;  /* 0: the first allowed CPU of its core */
	uint32_t cpu_order; /* position in hwloc's order, which ends all ties */
};

/* Packages, L3 and cores are enough; the rest costs time and can be wrong. */
static int configure(hwloc_topology_t machine)
{
	/*
	 * A node without memory is never allowed to be allocated from; hwloc
	 * would leave it out, and with it how far its CPUs are from others.
	 */
	unsigned long flags = HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS |
		HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;

	/*
	 * The x86 back end asks each CPU in turn, which the kernel has done; a
	 * hwloc without it refuses to leave it out, and that is all right.
	 */
	(void)hwloc_topology_set_components(
		machine, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
	if (hwloc_topology_set_flags(machine, flags) != 0 ||
		hwloc_topology_set_all_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_NONE) != 0 ||
		hwloc_topology_set_type_filter(
			machine, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
		hwloc_topology_set_type_filter(
			machine, HWLOC_OBJ_L3CACHE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
		hwloc_topology_set_type_filter(
			machine, HWLOC_OBJ_L2CACHE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
		hwloc_topology_set_type_filter(
			machine, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
		/* A node that is no package or cache hangs below a group. */
		hwloc_topology_set_type_filter(
			machine, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) != 0) {
		return -EIO;
	}
	return 0;
}

/* The allowed CPUs, to be freed by the caller, or NULL. */
static hwloc_bitmap_t allowed_cpus(hwloc_topology_t machine)
{
	hwloc_bitmap_t allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(machine));
	hwloc_bitmap_t affinity = hwloc_bitmap_alloc();

	if (allowed == NULL || affinity == NULL) {
		hwloc_bitmap_free(allowed);
		hwloc_bitmap_free(affinity);
		return NULL;
	}
	/* A mask that contradicts the machine is worth less than it. */
	if (hwloc_topology_is_thissystem(machine) &&
		hwloc_get_cpubind(machine, affinity, HWLOC_CPUBIND_THREAD) == 0 &&
		hwloc_bitmap_intersects(allowed, affinity)) {
		hwloc_bitmap_and(allowed, allowed, affinity);
	}
	hwloc_bitmap_free(affinity);
	return allowed;
}

/* Memory that this process may use. */
static bool has_memory(hwloc_topology_t machine, hwloc_obj_t node)
{
	return node->attr->numanode.local_memory > 0 &&
		hwloc_bitmap_isset(hwloc_topology_get_allowed_nodeset(machine), node->os_index);
}

/*
 * Of all nodes with memory the least distant from `from`; the lowest index
 * where the machine has no distances.
 */
static hwloc_obj_t nearest_node_with_memory(hwloc_topology_t machine, hwloc_obj_t from)
{
	struct hwloc_distances_s *distances = NULL;
	hwloc_obj_t best = NULL;
	hwloc_uint64_t best_distance = 0;
	unsigned count = 1;
	int from_position = -1;

	if (from != NULL &&
		hwloc_distances_get_by_type(machine, HWLOC_OBJ_NUMANODE, &count, &distances,
			HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) == 0 &&
		count > 0) {
		from_position = hwloc_distances_obj_index(distances, from);
	}
	for (hwloc_obj_t node = NULL;
		(node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node)) != NULL;) {
		hwloc_uint64_t distance = UINT64_MAX;
		int position = from_position < 0 ? -1 : hwloc_distances_obj_index(distances, node);

		if (!has_memory(machine, node)) {
			continue;
		}
		if (position >= 0) {
			PIN_CHECK((unsigned)from_position < distances->nbobjs);
			PIN_CHECK((unsigned)position < distances->nbobjs);
			distance = distances->values[(unsigned)from_position * distances->nbobjs +
				(unsigned)position];
		}
		if (best == NULL || distance < best_distance) {
			best = node;
			best_distance = distance;
		}
	}
	if (distances != NULL) {
		hwloc_distances_release(machine, distances);
	}
	return best;
}

/*
 * Whether the kernel says so. hwloc shows a node without CPUs with those of the
 * nodes nearest to it, so that it looks like one of its neighbours.
 */
static bool is_said_to_hold(hwloc_topology_t machine, hwloc_obj_t node, hwloc_obj_t cpu)
{
	char path[96];

	if (hwloc_topology_is_thissystem(machine) == 0) {
		return false; /* imagined, or another's */
	}
	PIN_DCHECK(cpu->type == HWLOC_OBJ_PU && node->type == HWLOC_OBJ_NUMANODE);
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/node%u", cpu->os_index,
		node->os_index);
	return access(path, F_OK) == 0;
}

/*
 * Of two that both seem to be a CPU's: its true node, or else the lower index,
 * as that is ordinary memory and others are special.
 */
static bool is_more_own(
	hwloc_topology_t machine, hwloc_obj_t cpu, hwloc_obj_t node, hwloc_obj_t than)
{
	bool node_is = is_said_to_hold(machine, node, cpu);
	bool than_is = is_said_to_hold(machine, than, cpu);

	return node_is != than_is ? node_is : node->os_index < than->os_index;
}

/*
 * The node whose memory is nearest to a CPU. Nodes may be without memory
 * (sparse or hot-plugged machines) or without CPUs (slow or fast extra
 * memory, never chosen while a node of the CPU's own has any; CPUs that were
 * taken away).
 */
static uint32_t node_of_cpu(hwloc_topology_t machine, hwloc_obj_t cpu)
{
	hwloc_obj_t own = NULL;
	hwloc_obj_t best = NULL;

	for (hwloc_obj_t node = NULL;
		(node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node)) != NULL;) {
		if (!hwloc_bitmap_intersects(node->cpuset, cpu->cpuset)) {
			continue;
		}
		if (own == NULL || is_more_own(machine, cpu, node, own)) {
			own = node;
		}
		if (has_memory(machine, node) &&
			(best == NULL || is_more_own(machine, cpu, node, best))) {
			best = node;
		}
	}
	if (best == NULL) {
		best = nearest_node_with_memory(machine, own);
	}
	if (best == NULL) {
		best = own;
	}
	return best == NULL ? 0 : best->os_index;
}

/* An unknown kind is a kind of its own, numbered after the known. */
static uint32_t number_of(hwloc_topology_t machine, hwloc_obj_type_t type, uint32_t otherwise)
{
	int known_count = hwloc_get_nbobjs_by_type(machine, type);

	return otherwise + (uint32_t)(known_count > 0 ? known_count : 0);
}

/*
 * Where hwloc knows no core or cache, the CPU or its package stands in for it.
 */
static struct pin_cpu_place place_of_cpu(hwloc_topology_t machine, hwloc_obj_t cpu)
{
	uint32_t node_index = node_of_cpu(machine, cpu);
	hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_CORE, cpu);
	hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_L3CACHE, cpu);
	hwloc_obj_t l2 = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_L2CACHE, cpu);
	uint32_t core_index = core != NULL ? core->logical_index
					   : number_of(machine, HWLOC_OBJ_CORE, cpu->logical_index);

	if (cache == NULL) {
		cache = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_PACKAGE, cpu);
	}
	return (struct pin_cpu_place){
		.cpu_index = cpu->os_index,
		.core_index = core_index,
		.l2_index = l2 != NULL ? l2->logical_index
				       : number_of(machine, HWLOC_OBJ_L2CACHE, core_index),
		.l3_index = cache != NULL ? cache->logical_index : node_index,
		.node_index = node_index,
	};
}

static int compare_u32(uint32_t left, uint32_t right)
{
	return (left > right) - (left < right);
}

static int compare_by_core(const void *left_memory, const void *right_memory)
{
	const struct candidate *left = left_memory;
	const struct candidate *right = right_memory;
	int order = compare_u32(left->place.core_index, right->place.core_index);

	return order != 0 ? order : compare_u32(left->cpu_order, right->cpu_order);
}

static int compare_by_worth(const void *left_memory, const void *right_memory)
{
	const struct candidate *left = left_memory;
	const struct candidate *right = right_memory;
	int order = compare_u32(left->smt_rank, right->smt_rank);

	if (order == 0) {
		order = compare_u32(left->place.node_index, right->place.node_index);
	}
	if (order == 0) {
		order = compare_u32(left->place.l3_index, right->place.l3_index);
	}
	return order != 0 ? order : compare_by_core(left, right);
}

static int compare_by_node(const void *left_memory, const void *right_memory)
{
	const struct candidate *left = left_memory;
	const struct candidate *right = right_memory;
	int order = compare_u32(left->place.node_index, right->place.node_index);

	return order != 0 ? order : compare_u32(left->place.cpu_index, right->place.cpu_index);
}

/* Numbers the CPUs within each core and returns how many cores there are. */
static uint32_t rank_within_cores(struct candidate *candidates, uint32_t count)
{
	uint32_t core_count = 0;

	qsort(candidates, count, sizeof(*candidates), compare_by_core);
	for (uint32_t i = 0; i < count; i++) {
		bool is_first = i == 0 ||
			candidates[i].place.core_index != candidates[i - 1].place.core_index;

		PIN_DCHECK(i == 0 ||
			candidates[i].place.core_index >= candidates[i - 1].place.core_index);
		candidates[i].smt_rank = is_first ? 0 : candidates[i - 1].smt_rank + 1;
		core_count += is_first;
	}
	PIN_CHECK(core_count <= count);
	return core_count;
}

/* Over places in order of worth, in which those of a node are adjacent. */
static uint32_t count_nodes(const struct pin_cpu_place *places, uint32_t core_count)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < core_count; i++) {
		PIN_DCHECK(i == 0 || places[i].node_index >= places[i - 1].node_index);
		count += i == 0 || places[i].node_index != places[i - 1].node_index;
	}
	PIN_CHECK(count <= core_count);
	return count;
}

/* The allowed CPUs by node; leaves the candidates in that order. */
static void group_by_node(
	struct pin_topology *topology, struct candidate *candidates, uint32_t count)
{
	struct pin_range group = {0, 0};

	PIN_CHECK(count <= topology->place_room);
	qsort(candidates, count, sizeof(*candidates), compare_by_node);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t node_index = candidates[i].place.node_index;

		topology->cpu_indices[i] = candidates[i].place.cpu_index;
		group.end = i + 1;
		if (i + 1 < count && candidates[i + 1].place.node_index == node_index) {
			continue;
		}
		for (uint32_t j = 0; j < topology->place_count; j++) {
			if (topology->places[j].node_index == node_index) {
				topology->places[j].node_cpus = group;
			}
		}
		group.first = i + 1;
	}
	PIN_CHECK(group.first == count); /* each CPU is in a group */
}

/*
 * Lists the CPUs that the process may use, first one of each core, then their
 * siblings, so that as few workers as possible share a core.
 */
static int extract(
	hwloc_topology_t machine, hwloc_const_bitmap_t allowed, struct pin_topology_search *search)
{
	struct pin_topology *topology = search->topology;
	int cpu_total = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PU);
	struct candidate *candidates;
	uint32_t count = 0;

	if (cpu_total <= 0) {
		return -EIO;
	}
	candidates = pin_heap_zeroed(
		topology->host, PIN_HEAP_ALIGN, (size_t)cpu_total, sizeof(*candidates));
	topology->place_room = (uint32_t)cpu_total;
	topology->places = pin_heap_zeroed(
		topology->host, PIN_HEAP_ALIGN, topology->place_room, sizeof(*topology->places));
	topology->cpu_indices = pin_heap_zeroed(topology->host, PIN_HEAP_ALIGN,
		topology->place_room, sizeof(*topology->cpu_indices));
	if (candidates == NULL || topology->places == NULL || topology->cpu_indices == NULL) {
		pin_heap_release(topology->host, candidates, PIN_HEAP_ALIGN, (size_t)cpu_total,
			sizeof(*candidates));
		return -ENOMEM;
	}
	for (hwloc_obj_t cpu = NULL;
		(cpu = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, cpu)) != NULL;) {
		if (hwloc_bitmap_isset(allowed, cpu->os_index)) {
			PIN_CHECK(count < (uint32_t)cpu_total);
			candidates[count].place = place_of_cpu(machine, cpu);
			candidates[count].cpu_order = count;
			count++;
		}
	}
	topology->cpu_count = count;
	topology->core_count = rank_within_cores(candidates, count);
	topology->place_count = search->use_smt ? count : topology->core_count;
	PIN_CHECK(topology->place_count <= topology->place_room);
	/*
	 * The first of each core come first, so a prefix has the wanted ones.
	 */
	qsort(candidates, count, sizeof(*candidates), compare_by_worth);
	for (uint32_t i = 0; i < topology->place_count; i++) {
		PIN_DCHECK(search->use_smt || candidates[i].smt_rank == 0); /* invariant 2 */
		topology->places[i] = candidates[i].place;
	}
	topology->node_count = count_nodes(topology->places, topology->core_count);
	group_by_node(topology, candidates, count);
	pin_heap_release(
		topology->host, candidates, PIN_HEAP_ALIGN, (size_t)cpu_total, sizeof(*candidates));
	return count == 0 ? -EIO : 0;
}

/* The matrix of hwloc, by the system's own numbers of nodes. */
static int copy_distances(struct pin_topology *topology, const struct hwloc_distances_s *found)
{
	struct pin_node_distances *out_distances = &topology->distances;
	uint32_t count = found->nbobjs;

	PIN_CHECK(count <= NODES_MAX);
	/* How large they are, should it fail. */
	out_distances->node_count = count;
	out_distances->node_indices = pin_heap_zeroed(
		topology->host, PIN_HEAP_ALIGN, count, sizeof(*out_distances->node_indices));
	out_distances->values = pin_heap_zeroed(topology->host, PIN_HEAP_ALIGN,
		(size_t)count * count, sizeof(*out_distances->values));
	if (out_distances->node_indices == NULL || out_distances->values == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		out_distances->node_indices[i] = found->objs[i]->os_index;
	}
	for (uint32_t i = 0; i < count * count; i++) {
		uint64_t value = found->values[i];

		out_distances->values[i] = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
	}
	return 0;
}

/* Many machines have none, and those with one node need none. */
static int load_distances(hwloc_topology_t machine, struct pin_topology *topology)
{
	struct hwloc_distances_s *found = NULL;
	unsigned count = 1;
	int rc = 0;

	if (hwloc_distances_get_by_type(machine, HWLOC_OBJ_NUMANODE, &count, &found,
		    HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
		count == 0) {
		return 0;
	}
	if (found->nbobjs <= NODES_MAX) {
		rc = copy_distances(topology, found);
	}
	hwloc_distances_release(machine, found);
	return rc;
}

/* On a thread of its own where that is possible; the file's head says why. */
static int load_machine(struct pin_topology_search *search)
{
	hwloc_topology_t machine;
	hwloc_bitmap_t allowed;
	int rc;

	if (hwloc_topology_init(&machine) != 0) {
		return -ENOMEM;
	}
	rc = configure(machine);
	if (rc == 0 && hwloc_topology_load(machine) != 0) {
		rc = errno == ENOMEM ? -ENOMEM : -EIO;
	}
	if (rc == 0) {
		allowed = allowed_cpus(machine);
		rc = allowed == NULL ? -ENOMEM : extract(machine, allowed, search);
		hwloc_bitmap_free(allowed);
		if (rc == 0) {
			rc = load_distances(machine, search->topology);
		}
		if (hwloc_topology_is_thissystem(machine)) {
			search->topology->quota_millicpus = pin_quota_millicpus("");
		}
	}
	hwloc_topology_destroy(machine);
	return rc;
}

/*
 * A sanitized build does without: ThreadSanitizer takes the same number in two
 * tables for one descriptor, which two threads then use in no order; and what
 * a sanitizer reports of this thread is to be seen.
 */
static void leave_stderr(void)
{
#if !defined(PIN_ASAN) && !defined(PIN_TSAN)
	if (unshare(CLONE_FILES) == 0) {
		int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

		if (null_fd >= 0) {
			(void)dup2(null_fd, STDERR_FILENO);
		}
	}
#endif
}

static void *load_quietly(void *arg)
{
	struct pin_topology_search *search = arg;

	leave_stderr();
	search->result = load_machine(search);
	return NULL;
}

void pin_topology_begin(struct pin_topology_search *search, struct pin_topology *topology,
	const struct pin_host *host, bool use_smt)
{
	sigset_t all;
	sigset_t before;

	*topology = (struct pin_topology){.host = host};
	*search = (struct pin_topology_search){.topology = topology, .use_smt = use_smt};
	/* A handler run on that thread would see the wrong descriptors. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	search->has_thread = pthread_create(&search->thread, NULL, load_quietly, search) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Waits for the thread that loads, or loads here if it could not be started. */
int pin_topology_end(struct pin_topology_search *search)
{
	struct pin_topology *topology = search->topology;
	int saved_errno = errno;

	if (search->has_thread) {
		pthread_join(search->thread, NULL);
	} else {
		search->result = load_machine(search);
	}
	if (search->result != 0) {
		pin_topology_fini(topology);
	} else {
		PIN_CHECK(topology->place_count >= 1);
		PIN_CHECK(topology->place_count <= topology->cpu_count);
		PIN_CHECK(topology->core_count <= topology->cpu_count);
		PIN_CHECK(topology->node_count >= 1);
	}
	errno = saved_errno;
	return search->result;
}

int pin_topology_load(struct pin_topology *topology, bool use_smt)
{
	struct pin_topology_search search;

	pin_topology_begin(&search, topology, &pin_host_linux, use_smt);
	return pin_topology_end(&search);
}

void pin_topology_fini(struct pin_topology *topology)
{
	if (topology != NULL) {
		const struct pin_host *host = topology->host;
		struct pin_node_distances *distances = &topology->distances;
		size_t node_count = distances->node_count;

		pin_heap_release(host, topology->places, PIN_HEAP_ALIGN, topology->place_room,
			sizeof(*topology->places));
		pin_heap_release(host, topology->cpu_indices, PIN_HEAP_ALIGN, topology->place_room,
			sizeof(*topology->cpu_indices));
		pin_heap_release(host, distances->node_indices, PIN_HEAP_ALIGN, node_count,
			sizeof(*distances->node_indices));
		pin_heap_release(host, distances->values, PIN_HEAP_ALIGN, node_count * node_count,
			sizeof(*distances->values));
		memset(topology, 0, sizeof(*topology));
	}
}

/* Its row and column; `node_count`: it has none. */
static uint32_t position_of(const struct pin_node_distances *distances, uint32_t node_index)
{
	uint32_t i = 0;

	while (i < distances->node_count && distances->node_indices[i] != node_index) {
		i++;
	}
	return i;
}

uint32_t pin_node_distance(
	const struct pin_node_distances *distances, uint32_t from_index, uint32_t to_index)
{
	uint32_t from = position_of(distances, from_index);
	uint32_t to = position_of(distances, to_index);

	if (from == distances->node_count || to == distances->node_count) {
		return UINT32_MAX;
	}
	return distances->values[from * distances->node_count + to];
}

uint32_t pin_topology_default_workers(const struct pin_topology *topology)
{
	uint32_t count = topology->place_count;
	uint32_t fed = topology->quota_millicpus / 1000 + (topology->quota_millicpus % 1000 != 0);

	PIN_CHECK(count >= 1);
	return fed != 0 && fed < count ? fed : count;
}
