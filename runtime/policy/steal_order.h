/* SPDX-License-Identifier: MIT */
/*
 * The victims of a searching worker, in their order; and the neighbours of a
 * worker, for wakes.
 *
 * The nearer the victim, the cheaper its work: same L2 first, as siblings on
 * one core or a cluster of small cores have it, then same L3, then same node,
 * then the other nodes by their distance. These are the **levels** of nearness.
 * Searchers that all began with the same victim would meet there, so each
 * begins a level at a random member and goes round.
 *
 * Workers get a second number, their **rank**: sorted by node, by L3, by L2,
 * then by index. So each L2, each L3 and each node is one range of ranks,
 * however indices are scattered, and a level is a range with a smaller one cut
 * out of its middle:
 *
 *     rank    0  1  2  3  4  5  6  7  8  9
 *     node    [ 0             ][ 1        ]
 *     L3      [ 0    ][ 1     ][ 2        ]
 *     L2      [ 0 ][1][ 2 ][ 3][ 4 ][ 5   ]
 *     of rank 4: itself [4,5), its L2 [3,5), its L3 [3,6), its node [0,6),
 *     all [0,10); its levels: 3 | 5 | 0 1 2 | 6 7 8 9
 *
 * These ranges are kept for each worker, 48 bytes with its rank's index. Where
 * the machine reports different distances to other nodes, the last level is
 * split: each node has the others' ranges in the order of their distance, and
 * those equally far are one ring.
 *
 * The set of parked workers may use ranks for its bits; then they are also what
 * a waker prefers.
 *
 * Pure policy: no atomics, no state but the caller's. Made once, by the thread
 * that creates the runtime; then constant, read by all.
 *
 * Invariants: (1) ranks are a permutation of indices. (2) each of a worker's
 * ranges contains the last one. (3) a round names each other worker once, and
 * none before a nearer one.
 *
 * An L3 that spans nodes, as with sub-NUMA clusters, counts per node: a worker
 * in the other half of it counts as on another node.
 */
#ifndef PIN_POLICY_STEAL_ORDER_H
#define PIN_POLICY_STEAL_ORDER_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/random.h"
#include "runtime/host/topology.h"

/* How near others are. Each holds those before it. */
enum pin_nearness {
	PIN_NEAR_SELF,
	PIN_NEAR_L2,
	PIN_NEAR_L3,
	PIN_NEAR_NODE,
	PIN_NEAR_ALL,
	PIN_NEARNESSES,
};

/* Of one worker. */
struct pin_neighbours {
	struct pin_range ranks[PIN_NEARNESSES];
	uint32_t group; /* its node among those of workers */
};

/* Another node, as seen from a given node. */
struct pin_far_node {
	struct pin_range ranks;
	uint32_t distance;
};

struct pin_victims {
	const struct pin_host *host;	   /* [const] */
	uint32_t worker_count;		   /* [const] */
	struct pin_neighbours *neighbours; /* [const] by worker index */
	uint32_t *indices;		   /* [const] by rank */
	/* [const] by group, near ones first; 0: all are as far */
	uint32_t far_count;
	struct pin_far_node *far;
};

/*
 * Worker i is at places[i], for i < place_count. Workers without a place have
 * all others in one level, and are in the last level of those that have places.
 * Without any places ranks are indices. `distances` may be NULL.
 *
 * Errors: -ENOMEM.
 */
int pin_victims_init(struct pin_victims *victims, const struct pin_host *host,
	const struct pin_cpu_place *places, uint32_t place_count, uint32_t worker_count,
	const struct pin_node_distances *distances);

/* Accepts a zeroed or failed one. */
void pin_victims_fini(struct pin_victims *victims);

static inline uint32_t pin_victims_rank(const struct pin_victims *victims, uint32_t worker_index)
{
	PIN_CHECK(worker_index < victims->worker_count);
	return victims->neighbours[worker_index].ranks[PIN_NEAR_SELF].first;
}

static inline uint32_t pin_victims_index(const struct pin_victims *victims, uint32_t rank)
{
	PIN_CHECK(rank < victims->worker_count);
	return victims->indices[rank];
}

/*
 * Ranks by nearness, PIN_NEARNESSES ranges. A waker that prefers its
 * neighbours looks through those from PIN_NEAR_L2 on.
 */
static inline const struct pin_range *pin_victims_ranges(
	const struct pin_victims *victims, uint32_t worker_index)
{
	PIN_CHECK(worker_index < victims->worker_count);
	return victims->neighbours[worker_index].ranks;
}

/* The same for the `far_count` other nodes, near ones first. */
static inline const struct pin_far_node *pin_victims_far(
	const struct pin_victims *victims, uint32_t worker_index)
{
	PIN_CHECK(worker_index < victims->worker_count);
	if (victims->far == NULL) {
		return NULL;
	}
	return &victims->far[(size_t)victims->neighbours[worker_index].group * victims->far_count];
}

/* One worker's way past all others, on its stack. */
struct pin_victims_round {
	const struct pin_victims *victims;
	const struct pin_range *ranges;
	const struct pin_far_node *far;
	struct pin_random *random;
	enum pin_nearness nearness; /* of the present level */
	uint32_t left_count;	    /* in the present level */
	uint32_t rank;		    /* next to be named */
	/* Far nodes: those of the present level, and which it is in. */
	uint32_t far_first;
	uint32_t far_end;
	uint32_t far_at;
};

void pin_victims_begin(struct pin_victims_round *round, const struct pin_victims *victims,
	uint32_t worker_index, struct pin_random *random);

/*
 * The next victim's worker index; false when all have been named, which is so
 * after as many calls as there are workers. A round can be left at any time.
 */
bool pin_victims_next(struct pin_victims_round *round, uint32_t *out_index);

#endif
