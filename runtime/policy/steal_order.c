/* SPDX-License-Identifier: MIT */
/*
 * The order in which a thief visits victims, and a waker sleepers: nearest
 * first, by cache, node and distance.
 *
 * Computed once from the workers' CPUs; a thief then only walks through ranges
 * of ranks, starting at a random place in each.
 */
#include "runtime/policy/steal_order.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"

#include <errno.h>
#include <stdlib.h>

/* ---- ranks ---- */

/* A worker with all that it is sorted by. */
struct placed_worker {
	uint32_t node_index;
	uint32_t l3_index;
	uint32_t l2_index;
	uint32_t worker_index;
	bool has_place;
};

static int compare_u32(uint32_t left, uint32_t right)
{
	return (left > right) - (left < right);
}

/*
 * By node, then L3, then L2: neighbours in the sorted order share as much as
 * any two workers.
 */
static int compare_places(const void *left_memory, const void *right_memory)
{
	const struct placed_worker *left = left_memory;
	const struct placed_worker *right = right_memory;
	int order = compare_u32(left->has_place ? 0 : 1, right->has_place ? 0 : 1);

	if (order == 0) {
		order = compare_u32(left->node_index, right->node_index);
	}
	if (order == 0) {
		order = compare_u32(left->l3_index, right->l3_index);
	}
	if (order == 0) {
		order = compare_u32(left->l2_index, right->l2_index);
	}
	if (order == 0) {
		order = compare_u32(left->worker_index, right->worker_index);
	}
	return order;
}

/* Workers without a CPU of their own come last and are near to none. */
static struct placed_worker *sort_by_place(const struct pin_host *host,
	const struct pin_cpu_place *places, uint32_t place_count, uint32_t worker_count)
{
	struct placed_worker *placed =
		pin_heap_zeroed(host, PIN_HEAP_ALIGN, worker_count, sizeof(*placed));

	if (placed == NULL) {
		return NULL;
	}
	for (uint32_t i = 0; i < worker_count; i++) {
		placed[i].worker_index = i;
		if (i < place_count) {
			placed[i].has_place = true;
			placed[i].node_index = places[i].node_index;
			placed[i].l3_index = places[i].l3_index;
			placed[i].l2_index = places[i].l2_index;
		}
	}
	qsort(placed, worker_count, sizeof(*placed), compare_places);
	return placed;
}

/* Whether they share a node; with it an L3; with that an L2. */
static bool is_shared(const struct placed_worker *left, const struct placed_worker *right,
	enum pin_nearness nearness)
{
	return left->has_place == right->has_place && left->node_index == right->node_index &&
		(nearness >= PIN_NEAR_NODE || left->l3_index == right->l3_index) &&
		(nearness >= PIN_NEAR_L3 || left->l2_index == right->l2_index);
}

/* Where the CPU claims that begin at `first` stop sharing that. */
static uint32_t end_of_group(const struct placed_worker *placed, uint32_t first, uint32_t end,
	enum pin_nearness nearness)
{
	uint32_t i = first + 1;

	PIN_DCHECK(first < end);
	while (i < end && is_shared(&placed[first], &placed[i], nearness)) {
		i++;
	}
	return i;
}

/*
 * Workers are ranked so that those of one cache or node are neighbours: each
 * level of nearness is then one range of ranks.
 */
static void rank_workers(struct pin_victims *victims, const struct placed_worker *placed)
{
	struct pin_range all = {0, victims->worker_count};
	struct pin_range node = {0, 0};
	struct pin_range l3 = {0, 0};
	struct pin_range l2 = {0, 0};

	for (uint32_t rank = 0; rank < all.end; rank++) {
		const struct placed_worker *worker = &placed[rank];
		struct pin_neighbours *neighbours = &victims->neighbours[worker->worker_index];

		if (rank == node.end) {
			node.first = rank;
			node.end = end_of_group(placed, rank, all.end, PIN_NEAR_NODE);
		}
		if (rank == l3.end) {
			l3.first = rank;
			l3.end = end_of_group(placed, rank, node.end, PIN_NEAR_L3);
		}
		if (rank == l2.end) {
			l2.first = rank;
			l2.end = end_of_group(placed, rank, l3.end, PIN_NEAR_L2);
		}
		PIN_DCHECK(l2.first >= l3.first && l2.end <= l3.end);
		PIN_DCHECK(l3.first >= node.first && l3.end <= node.end);
		victims->indices[rank] = worker->worker_index;
		neighbours->ranks[PIN_NEAR_SELF] = (struct pin_range){rank, rank + 1};
		neighbours->ranks[PIN_NEAR_L2] = worker->has_place ? l2 : all;
		neighbours->ranks[PIN_NEAR_L3] = worker->has_place ? l3 : all;
		neighbours->ranks[PIN_NEAR_NODE] = worker->has_place ? node : all;
		neighbours->ranks[PIN_NEAR_ALL] = all;
	}
}

/* ---- other nodes ---- */

/* The group that begins there; that without a place is the farthest. */
static struct pin_far_node far_node(const struct placed_worker *placed, struct pin_range ranks,
	const struct placed_worker *from, const struct pin_node_distances *distances)
{
	const struct placed_worker *worker = &placed[ranks.first];

	return (struct pin_far_node){
		.ranks = ranks,
		.distance = worker->has_place && from->has_place
			? pin_node_distance(distances, from->node_index, worker->node_index)
			: UINT32_MAX,
	};
}

static int compare_far(const void *left_memory, const void *right_memory)
{
	const struct pin_far_node *left = left_memory;
	const struct pin_far_node *right = right_memory;
	int order = compare_u32(left->distance, right->distance);

	return order != 0 ? order : compare_u32(left->ranks.first, right->ranks.first);
}

static uint32_t count_groups(struct pin_victims *victims, const struct placed_worker *placed)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < victims->worker_count; rank++) {
		if (rank > 0 && !is_shared(&placed[rank - 1], &placed[rank], PIN_NEAR_NODE)) {
			count++;
		}
		victims->neighbours[placed[rank].worker_index].group = count;
	}
	return count + 1;
}

/* Whether any node has others that are not all as far. */
static bool differ(const struct pin_far_node *far, uint32_t group_count, uint32_t far_count)
{
	for (uint32_t group = 0; group < group_count; group++) {
		const struct pin_far_node *own = &far[(size_t)group * far_count];

		if (own[0].distance != own[far_count - 1].distance) {
			return true;
		}
	}
	return false;
}

/* All nodes but `from`'s own that have workers, nearest first. */
static void list_far(struct pin_far_node *far, const struct placed_worker *placed,
	uint32_t worker_count, const struct placed_worker *from,
	const struct pin_node_distances *distances)
{
	uint32_t count = 0;
	uint32_t end;

	for (uint32_t first = 0; first < worker_count; first = end) {
		end = end_of_group(placed, first, worker_count, PIN_NEAR_NODE);
		if (!is_shared(&placed[first], from, PIN_NEAR_NODE)) {
			far[count++] =
				far_node(placed, (struct pin_range){first, end}, from, distances);
		}
	}
	PIN_DCHECK(count < worker_count); /* its own node is not among them */
	qsort(far, count, sizeof(*far), compare_far);
}

/*
 * A list of far nodes for each node, nearest first. None is kept where all are
 * equally far, which is the common case.
 */
static int rank_nodes(struct pin_victims *victims, const struct placed_worker *placed,
	const struct pin_node_distances *distances)
{
	uint32_t group_count = count_groups(victims, placed);
	uint32_t far_count = group_count - 1;
	struct pin_far_node *far;

	if (distances == NULL || distances->node_count == 0 || far_count < 2) {
		return 0;
	}
	far = pin_heap_zeroed(
		victims->host, PIN_HEAP_ALIGN, (size_t)group_count * far_count, sizeof(*far));
	if (far == NULL) {
		return -ENOMEM;
	}
	for (uint32_t rank = 0; rank < victims->worker_count; rank++) {
		const struct placed_worker *worker = &placed[rank];
		uint32_t group = victims->neighbours[worker->worker_index].group;

		PIN_DCHECK(group < group_count);
		if (rank == 0 || !is_shared(&placed[rank - 1], worker, PIN_NEAR_NODE)) {
			list_far(&far[(size_t)group * far_count], placed, victims->worker_count,
				worker, distances);
		}
	}
	if (!differ(far, group_count, far_count)) {
		pin_heap_release(victims->host, far, PIN_HEAP_ALIGN,
			(size_t)group_count * far_count, sizeof(*far));
		return 0;
	}
	victims->far = far;
	victims->far_count = far_count;
	return 0;
}

/*
 * The workers' CPUs do not change later; a slot of a thread pool keeps its rank
 * while no thread is in it.
 */
int pin_victims_init(struct pin_victims *victims, const struct pin_host *host,
	const struct pin_cpu_place *places, uint32_t place_count, uint32_t worker_count,
	const struct pin_node_distances *distances)
{
	struct placed_worker *placed;
	int rc = -ENOMEM;

	PIN_CHECK(worker_count >= 1);
	*victims = (struct pin_victims){.host = host, .worker_count = worker_count};
	victims->neighbours =
		pin_heap_zeroed(host, PIN_HEAP_ALIGN, worker_count, sizeof(*victims->neighbours));
	victims->indices =
		pin_heap_zeroed(host, PIN_HEAP_ALIGN, worker_count, sizeof(*victims->indices));
	placed = sort_by_place(host, places, place_count, worker_count);
	if (victims->neighbours != NULL && victims->indices != NULL && placed != NULL) {
		rank_workers(victims, placed);
		rc = rank_nodes(victims, placed, distances);
	}
	pin_heap_release(host, placed, PIN_HEAP_ALIGN, worker_count, sizeof(*placed));
	if (rc != 0) {
		pin_victims_fini(victims);
	}
	return rc;
}

void pin_victims_fini(struct pin_victims *victims)
{
	const struct pin_host *host = victims->host;
	size_t worker_count = victims->worker_count;
	/* Each of the groups has all the others. */
	size_t far_count = ((size_t)victims->far_count + 1) * victims->far_count;

	pin_heap_release(host, victims->neighbours, PIN_HEAP_ALIGN, worker_count,
		sizeof(*victims->neighbours));
	pin_heap_release(
		host, victims->indices, PIN_HEAP_ALIGN, worker_count, sizeof(*victims->indices));
	pin_heap_release(host, victims->far, PIN_HEAP_ALIGN, far_count, sizeof(*victims->far));
	*victims = (struct pin_victims){0};
}

/* ---- rounds ---- */

/*
 * A level is a ring of ranks, `outer`, with `inner` cut out. Its members are
 * counted from the end of `inner` on, round to where `inner` begins.
 */
static void begin_level(struct pin_victims_round *round)
{
	struct pin_range outer = round->ranges[round->nearness];
	struct pin_range inner = round->ranges[round->nearness - 1];
	uint32_t start;

	PIN_DCHECK(outer.first <= inner.first && inner.end <= outer.end);
	round->left_count = pin_range_count(outer) - pin_range_count(inner);
	/* A level without a choice takes no number. */
	start = round->left_count > 1 ? pin_random_below(round->random, round->left_count) : 0;
	round->rank = inner.end + start;
	if (round->rank >= outer.end) {
		round->rank -= pin_range_count(outer);
	}
	/* A member, that is, if there is any. */
	PIN_DCHECK(
		round->left_count == 0 || (round->rank >= outer.first && round->rank < outer.end));
	PIN_DCHECK(round->left_count == 0 || round->rank < inner.first || round->rank >= inner.end);
}

/* The nearest of the nodes left, all that are as far; false: none is left. */
static bool begin_far_level(struct pin_victims_round *round)
{
	uint32_t far_count = round->victims->far_count;
	uint32_t first = round->far_end;
	uint32_t end = first;
	uint32_t start;

	PIN_DCHECK(round->nearness == PIN_NEAR_ALL && round->left_count == 0);
	while (end < far_count && round->far[end].distance == round->far[first].distance) {
		round->left_count += pin_range_count(round->far[end].ranks);
		end++;
	}
	if (end == first) {
		return false;
	}
	round->far_first = first;
	round->far_end = end;
	start = round->left_count > 1 ? pin_random_below(round->random, round->left_count) : 0;
	for (round->far_at = first; start >= pin_range_count(round->far[round->far_at].ranks);
		round->far_at++) {
		start -= pin_range_count(round->far[round->far_at].ranks);
	}
	round->rank = round->far[round->far_at].ranks.first + start;
	return true;
}

static uint32_t next_far_rank(struct pin_victims_round *round)
{
	uint32_t rank = round->rank + 1;

	PIN_DCHECK(round->far_at >= round->far_first && round->far_at < round->far_end);
	if (rank == round->far[round->far_at].ranks.end) {
		round->far_at =
			round->far_at + 1 == round->far_end ? round->far_first : round->far_at + 1;
		rank = round->far[round->far_at].ranks.first;
	}
	return rank;
}

void pin_victims_begin(struct pin_victims_round *round, const struct pin_victims *victims,
	uint32_t worker_index, struct pin_random *random)
{
	*round = (struct pin_victims_round){
		.victims = victims,
		.ranges = pin_victims_ranges(victims, worker_index),
		.far = pin_victims_far(victims, worker_index),
		.random = random,
		.nearness = PIN_NEAR_SELF,
	};
}

/* The member of the present level after the one just named. */
static uint32_t next_rank(const struct pin_victims_round *round)
{
	struct pin_range outer = round->ranges[round->nearness];
	struct pin_range inner = round->ranges[round->nearness - 1];
	uint32_t rank = round->rank + 1;

	if (rank == outer.end) {
		rank = outer.first;
	}
	if (rank == inner.first) {
		rank = inner.end < outer.end ? inner.end : outer.first;
	}
	return rank;
}

/* Whether the last level is split by distance. */
static bool has_far_levels(const struct pin_victims_round *round)
{
	return round->victims->far_count > 0 &&
		pin_range_count(round->ranges[PIN_NEAR_NODE]) < round->victims->worker_count;
}

static bool begin_next_level(struct pin_victims_round *round)
{
	PIN_DCHECK(round->nearness <= PIN_NEAR_ALL && round->left_count == 0);
	if (round->nearness == PIN_NEAR_ALL) {
		return has_far_levels(round) && begin_far_level(round);
	}
	round->nearness++;
	if (round->nearness == PIN_NEAR_ALL && has_far_levels(round)) {
		return begin_far_level(round);
	}
	begin_level(round);
	return true;
}

bool pin_victims_next(struct pin_victims_round *round, uint32_t *out_index)
{
	while (round->left_count == 0) {
		if (!begin_next_level(round)) {
			return false;
		}
	}
	*out_index = pin_victims_index(round->victims, round->rank);
	PIN_DCHECK(*out_index < round->victims->worker_count);
	round->left_count--;
	round->rank = round->far_end > 0 ? next_far_rank(round) : next_rank(round);
	return true;
}
