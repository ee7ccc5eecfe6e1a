/* SPDX-License-Identifier: MIT */
/*
 * Goal: a round names every other worker exactly once, never oneself, nearest
 * first, other nodes by their distance; each level begins anywhere with equal
 * chance; each L2, L3 and node is one range of ranks, and those ranges are what
 * the places say. AS-35, EX-6, EX-39, C8.
 * Hazard that others met: a worker that steals from itself.
 * Method: layouts from one worker to 4096, in order and scattered, with places
 * missing; what the round and the ranges say is compared with what the places
 * say, worker by worker. The same for machines whose nodes are not all as far
 * from each other, as a ring, halves of sockets and a cube. Starts are counted
 * from a fixed seed, so that the outcome is always the same. Then each
 * allocation fails in turn. Each is followed by a page that no code may touch.
 */
#include "runtime/base/base.h"
#include "runtime/host/heap.h"
#include "runtime/host/topology.h"
#include "runtime/policy/steal_order.h"
#include "tests/support/expect.h"

#include <sys/mman.h>

enum {
	WORKERS_MAX = 4096,
	DRAWS_PER_MEMBER = 2000,
};

struct layout {
	const char *name;
	uint32_t worker_count;
	uint32_t place_count;
	uint32_t node_count;
	uint32_t l3_per_node;
	uint32_t l2_per_l3;
	uint32_t stride; /* odd; 1: neighbours have successive indices */
};

static const struct layout layouts[] = {
	{"alone", 1, 1, 1, 1, 1, 1},
	{"alone without place", 1, 0, 1, 1, 1, 1},
	{"two", 2, 2, 1, 1, 1, 1},
	{"two on two nodes", 2, 2, 2, 1, 1, 1},
	{"no places", 5, 0, 1, 1, 1, 1},
	{"one L3", 64, 64, 1, 1, 16, 1},
	{"each an L3", 16, 16, 2, 8, 1, 1},
	{"each a node", 7, 7, 7, 1, 1, 1},
	{"in order", 96, 96, 2, 6, 4, 1},
	{"scattered", 96, 96, 2, 6, 4, 35},
	{"uneven", 101, 101, 3, 5, 3, 7},
	{"some without place", 50, 37, 2, 3, 2, 11},
	{"largest in order", WORKERS_MAX, WORKERS_MAX, 8, 16, 8, 1},
	{"largest scattered", WORKERS_MAX, WORKERS_MAX, 8, 16, 8, 2731},
};

static struct pin_cpu_place places[WORKERS_MAX];
static uint32_t allocations_left = UINT32_MAX;

static uint64_t bytes_allocated;
static uint64_t bytes_released;

static void *allocate_or_fail(void *arg, size_t align, size_t bytes)
{
	size_t mapped = pin_round_up(bytes, PIN_PAGE_BYTES);
	uint8_t *memory;

	(void)arg;
	if (allocations_left == 0) {
		return NULL;
	}
	allocations_left--;
	bytes_allocated += bytes;
	memory = mmap(NULL, mapped + PIN_PAGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect_ready("mmap", memory != MAP_FAILED);
	expect_ready("mprotect", mprotect(memory + mapped, PIN_PAGE_BYTES, PROT_NONE) == 0);
	return memory + mapped - pin_round_up(bytes, align);
}

static void release(void *arg, void *memory, size_t align, size_t bytes)
{
	uint8_t *first = (uint8_t *)pin_round_down((uintptr_t)memory, PIN_PAGE_BYTES);

	(void)arg;
	(void)align;
	bytes_released += bytes;
	munmap(first, pin_round_up(bytes, PIN_PAGE_BYTES) + PIN_PAGE_BYTES);
}

static const struct pin_host host = {.heap = {.allocate = allocate_or_fail, .release = release}};

/*
 * Node numbers fall to 0 as indices rise, and leave gaps, as the OS's may. In
 * scattered layouts L3s are numbered anew on each node, and L2s go round L3s.
 */
static void lay_out(const struct layout *layout)
{
	uint32_t l3_count = layout->node_count * layout->l3_per_node;
	uint32_t l2_count = layout->node_count * layout->l3_per_node * layout->l2_per_l3;

	for (uint32_t i = 0; i < layout->place_count; i++) {
		uint32_t place = (uint32_t)((uint64_t)i * layout->stride % layout->place_count);
		uint32_t l2 = (uint32_t)((uint64_t)place * l2_count / layout->place_count);
		uint32_t l3 = l2 / layout->l2_per_l3;

		places[i] = (struct pin_cpu_place){
			.cpu_index = i,
			.core_index = i,
			.l2_index = layout->stride == 1
				? l2
				: l2 % layout->l2_per_l3 * l3_count + l3 % layout->l3_per_node,
			.l3_index = layout->stride == 1 ? l3 : l3 % layout->l3_per_node,
			.node_index = 3 * (layout->node_count - 1 - l3 / layout->l3_per_node),
		};
	}
}

static enum pin_nearness nearness_of(uint32_t place_count, uint32_t own, uint32_t other)
{
	if (own == other) {
		return PIN_NEAR_SELF;
	}
	if (own >= place_count) {
		return PIN_NEAR_L2;
	}
	if (other >= place_count || places[own].node_index != places[other].node_index) {
		return PIN_NEAR_ALL;
	}
	if (places[own].l3_index != places[other].l3_index) {
		return PIN_NEAR_NODE;
	}
	return places[own].l2_index == places[other].l2_index ? PIN_NEAR_L2 : PIN_NEAR_L3;
}

static bool fail(const struct layout *layout, uint32_t own, const char *what, uint32_t other)
{
	printf("%s: worker %u: %s (worker %u)\n", layout->name, own, what, other);
	expect_failure_count++;
	return false;
}

static bool check_round(const struct layout *layout, const struct pin_victims *victims,
	uint32_t own, struct pin_random *random)
{
	static uint8_t seen[WORKERS_MAX];
	struct pin_victims_round round;
	enum pin_nearness last = PIN_NEAR_L2;
	uint32_t count = 0;
	uint32_t index = 0;

	memset(seen, 0, sizeof(seen));
	pin_victims_begin(&round, victims, own, random);
	while (pin_victims_next(&round, &index)) {
		enum pin_nearness nearness;

		if (index >= layout->worker_count || index == own || seen[index] != 0) {
			return fail(layout, own, "not a victim, or named before", index);
		}
		seen[index] = 1;
		count++;
		nearness = nearness_of(layout->place_count, own, index);
		if (nearness < last) {
			return fail(layout, own, "nearer than the last one", index);
		}
		last = nearness;
	}
	if (count != layout->worker_count - 1) {
		return fail(layout, own, "not all were named, the last", index);
	}
	return !pin_victims_next(&round, &index) || fail(layout, own, "named after the end", index);
}

/* A worker is in a range when the places say so. */
static bool check_ranges(
	const struct layout *layout, const struct pin_victims *victims, uint32_t own)
{
	const struct pin_range *ranges = pin_victims_ranges(victims, own);

	for (uint32_t other = 0; other < layout->worker_count; other++) {
		uint32_t rank = pin_victims_rank(victims, other);
		uint32_t nearness = nearness_of(layout->place_count, own, other);

		if (rank >= layout->worker_count || pin_victims_index(victims, rank) != other) {
			return fail(layout, other, "rank and index disagree", other);
		}
		for (uint32_t i = 0; i < PIN_NEARNESSES; i++) {
			bool is_in = rank >= ranges[i].first && rank < ranges[i].end;

			if (is_in != (nearness <= i)) {
				return fail(layout, own, "a range is wrong about", other);
			}
		}
	}
	return true;
}

static void check_layout(const struct layout *layout)
{
	/* With many workers, some of them: each costs as many steps again. */
	uint32_t step = layout->worker_count / 128 + 1;
	struct pin_victims victims;
	struct pin_random random;

	lay_out(layout);
	pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, 0);
	if (!expect_number(layout->name, 0,
		    pin_victims_init(&victims, &host, places, layout->place_count,
			    layout->worker_count, NULL))) {
		return;
	}
	for (uint32_t i = 0; i < layout->worker_count; i += step) {
		for (uint32_t round = 0; round < 3; round++) {
			if (!check_round(layout, &victims, i, &random)) {
				return;
			}
		}
		if (!check_ranges(layout, &victims, i)) {
			return;
		}
	}
	for (uint32_t i = 0; layout->place_count == 0 && i < layout->worker_count; i++) {
		expect_number("rank without places", i, pin_victims_rank(&victims, i));
	}
	pin_victims_fini(&victims);
	expect_true("nothing is left", victims.host == NULL && victims.neighbours == NULL);
	pin_victims_fini(&victims);
}

/*
 * Counts who comes first in each level of a worker whose four levels have 2, 3,
 * 12 and 18 members. A count's deviation is bounded by five standard ones.
 */
static void check_starts(uint32_t own)
{
	static const struct layout layout = {"starts", 36, 36, 2, 3, 2, 7};
	uint32_t counts[36] = {0};
	uint32_t sizes[PIN_NEARNESSES] = {0};
	struct pin_victims victims;
	struct pin_random random;

	lay_out(&layout);
	pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, own);
	expect_ready("memory", pin_victims_init(&victims, &host, places, 36, 36, NULL) == 0);
	for (uint32_t i = 0; i < 36; i++) {
		sizes[nearness_of(36, own, i)]++;
	}
	expect_number("members of the L2", 2, sizes[PIN_NEAR_L2]);
	expect_number("others of the L3", 3, sizes[PIN_NEAR_L3]);
	expect_number("others of the node", 12, sizes[PIN_NEAR_NODE]);
	expect_number("the rest", 18, sizes[PIN_NEAR_ALL]);
	for (uint32_t i = 0; i < 18 * DRAWS_PER_MEMBER; i++) {
		struct pin_victims_round round;
		enum pin_nearness last = PIN_NEAR_SELF;
		uint32_t index;

		pin_victims_begin(&round, &victims, own, &random);
		while (pin_victims_next(&round, &index)) {
			enum pin_nearness nearness = nearness_of(36, own, index);

			counts[index] += nearness != last ? 1 : 0;
			last = nearness;
		}
	}
	for (uint32_t i = 0; i < 36; i++) {
		uint32_t nearness = nearness_of(36, own, i);
		int64_t expected = nearness == PIN_NEAR_SELF
			? 0
			: 18 * DRAWS_PER_MEMBER / (int64_t)sizes[nearness];
		int64_t deviation = (int64_t)counts[i] - expected;

		if (deviation * deviation > 25 * expected) {
			printf("worker %u came first %u times for %u, expected about %lld\n", i,
				counts[i], own, (long long)expected);
			expect_failure_count++;
		}
	}
	pin_victims_fini(&victims);
}

/* ---- other nodes by distance ---- */

struct machine {
	const char *name;
	uint32_t node_count;
	uint32_t worker_count;	/* with places, as many on each node */
	uint32_t further_count; /* without places */
	bool has_levels;	/* others differ in how far they are */
	uint32_t values[8 * 8];
};

static const struct machine machines[] = {
	{"ring of four", 4, 16, 0, true,
		{10, 20, 30, 20, 20, 10, 20, 30, 30, 20, 10, 20, 20, 30, 20, 10}},
	{"ring of four, some without place", 4, 12, 3, true,
		{10, 20, 30, 20, 20, 10, 20, 30, 30, 20, 10, 20, 20, 30, 20, 10}},
	{"row of four, one worker each", 4, 4, 0, true,
		{10, 21, 22, 23, 21, 10, 21, 22, 22, 21, 10, 21, 23, 22, 21, 10}},
	{"two sockets of two halves", 4, 20, 0, true,
		{10, 12, 32, 32, 12, 10, 32, 32, 32, 32, 10, 12, 32, 32, 12, 10}},
	{"all as far", 4, 8, 0, false,
		{10, 20, 20, 20, 20, 10, 20, 20, 20, 20, 10, 20, 20, 20, 20, 10}},
	{"far one way only", 3, 9, 0, true, {10, 20, 40, 20, 10, 20, 20, 20, 10}},
	{"far from the last only", 3, 9, 0, true, {10, 20, 20, 20, 10, 20, 20, 40, 10}},
	{"two nodes", 2, 4, 0, false, {10, 40, 40, 10}},
	{"eight in a cube", 8, 32, 0, true,
		{10, 16, 16, 22, 16, 22, 22, 28, 16, 10, 22, 16, 22, 16, 28, 22, 16, 22, 10, 16, 22,
			28, 16, 22, 22, 16, 16, 10, 28, 22, 22, 16, 16, 22, 22, 28, 10, 16, 16, 22,
			22, 16, 28, 22, 16, 10, 22, 16, 22, 28, 16, 22, 16, 22, 10, 16, 28, 22, 22,
			16, 22, 16, 16, 10}},
};

static const struct machine pair = {"a pair", 1, 2, 0, false, {10}};
static const struct machine row = {"a row of four", 4, 4, 0, true,
	{10, 21, 22, 23, 21, 10, 21, 22, 22, 21, 10, 21, 23, 22, 21, 10}};

/* Nodes have the OS's numbers 0, 3, 6, …; neighbours' indices are apart. */
static void lay_out_machine(const struct machine *machine, struct pin_node_distances *out_distances)
{
	static uint32_t node_indices[8];
	static uint32_t values[8 * 8];

	for (uint32_t i = 0; i < machine->worker_count; i++) {
		uint32_t node = i % machine->node_count;

		places[i] = (struct pin_cpu_place){
			.cpu_index = i,
			.core_index = i,
			.l2_index = i,
			.l3_index = node,
			.node_index = 3 * node,
		};
	}
	for (uint32_t i = 0; i < machine->node_count; i++) {
		node_indices[i] = 3 * i;
	}
	memcpy(values, machine->values, sizeof(values));
	*out_distances = (struct pin_node_distances){machine->node_count, node_indices, values};
}

/* What a round must not go down in. */
static uint32_t distance_of(const struct machine *machine, uint32_t own, uint32_t other)
{
	uint32_t from = own % machine->node_count;
	uint32_t to = other % machine->node_count;

	if (own >= machine->worker_count) {
		return 0;
	}
	if (other >= machine->worker_count) {
		return machine->has_levels ? UINT32_MAX : 1;
	}
	if (from == to) {
		return 0;
	}
	return machine->has_levels ? machine->values[from * machine->node_count + to] : 1;
}

/* Rounds of one worker; counts whom its last levels begin with. */
static void check_far_rounds(const struct machine *machine, const struct pin_victims *victims,
	uint32_t own, uint32_t *starts)
{
	uint32_t all = machine->worker_count + machine->further_count;
	struct pin_random random;

	pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, own);
	for (uint32_t i = 0; i < all * DRAWS_PER_MEMBER; i++) {
		struct pin_victims_round round;
		uint64_t seen = UINT64_C(1) << own;
		uint32_t last = 0;
		uint32_t index;

		pin_victims_begin(&round, victims, own, &random);
		while (pin_victims_next(&round, &index)) {
			uint32_t distance = distance_of(machine, own, index);

			if ((seen >> index & 1) != 0 || distance < last) {
				printf("%s: worker %u: %u named twice, or too late\n",
					machine->name, own, index);
				expect_failure_count++;
				return;
			}
			seen |= UINT64_C(1) << index;
			starts[index] += distance != last ? 1 : 0;
			last = distance;
		}
		if (seen != (UINT64_C(1) << all) - 1) {
			printf("%s: worker %u: not all were named\n", machine->name, own);
			expect_failure_count++;
			return;
		}
	}
}

/* Of those as far each comes first as often, within five deviations. */
static void check_far_starts(const struct machine *machine, uint32_t own, const uint32_t *starts)
{
	uint32_t all = machine->worker_count + machine->further_count;

	for (uint32_t i = 0; i < all; i++) {
		uint32_t distance = distance_of(machine, own, i);
		int64_t members = 0;
		int64_t deviation;

		for (uint32_t j = 0; j < all; j++) {
			members += distance_of(machine, own, j) == distance;
		}
		deviation = (int64_t)starts[i] * members - (int64_t)all * DRAWS_PER_MEMBER;
		if (distance != 0 &&
			deviation * deviation > 25 * members * (int64_t)all * DRAWS_PER_MEMBER) {
			printf("%s: worker %u came first %u times for %u\n", machine->name, i,
				starts[i], own);
			expect_failure_count++;
		}
	}
}

/* Those that a waker asks one after the other: each other node once. */
static void check_far_list(
	const struct machine *machine, const struct pin_victims *victims, uint32_t own)
{
	const struct pin_far_node *far = pin_victims_far(victims, own);
	uint32_t count = pin_range_count(pin_victims_ranges(victims, own)[PIN_NEAR_NODE]);

	for (uint32_t i = 0; i < victims->far_count; i++) {
		count += pin_range_count(far[i].ranks);
		expect_true(machine->name, i == 0 || far[i - 1].distance <= far[i].distance);
	}
	if (own < machine->worker_count && victims->far_count > 0) {
		expect_number(machine->name, machine->worker_count + machine->further_count, count);
	}
}

static void check_machine(const struct machine *machine)
{
	uint32_t all = machine->worker_count + machine->further_count;
	struct pin_node_distances distances;
	struct pin_victims victims;

	lay_out_machine(machine, &distances);
	expect_ready(machine->name,
		pin_victims_init(&victims, &host, places, machine->worker_count, all, &distances) ==
			0);
	expect_true(machine->name, (victims.far_count > 0) == machine->has_levels);
	for (uint32_t own = 0; own < all; own++) {
		uint32_t starts[64] = {0};

		check_far_rounds(machine, &victims, own, starts);
		check_far_starts(machine, own, starts);
		check_far_list(machine, &victims, own);
	}
	pin_victims_fini(&victims);
}

/* As hwloc has it: clusters of small cores that share an L2. */
static void check_imagined(void)
{
	static const uint32_t level_ends[] = {2, 4, 8, 16};
	struct pin_topology topology;
	struct pin_victims victims;
	struct pin_victims_round round;
	struct pin_random random;
	uint32_t index;

	setenv("HWLOC_SYNTHETIC", "node:2 l3:2 l2:2 core:2 pu:1", 1);
	expect_ready("topology", pin_topology_load(&topology, false) == 0);
	unsetenv("HWLOC_SYNTHETIC");
	expect_number("places", 16, topology.place_count);
	expect_ready("memory",
		pin_victims_init(&victims, &host, topology.places, topology.place_count, 16,
			&topology.distances) == 0);
	pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, 0);
	pin_victims_begin(&round, &victims, 0, &random);
	for (uint32_t i = 0, count = 1; i < PIN_ARRAY_COUNT(level_ends); i++) {
		for (; count < level_ends[i] && pin_victims_next(&round, &index); count++) {
			expect_true("nearest first",
				index < level_ends[i] && index >= (i == 0 ? 1 : level_ends[i - 1]));
		}
	}
	expect_true("all named", !pin_victims_next(&round, &index));
	pin_victims_fini(&victims);
	pin_topology_fini(&topology);
}

/* The same seed, the same order. */
static void check_repeats(void)
{
	static const struct layout layout = {"repeats", 96, 96, 2, 6, 4, 35};
	struct pin_victims victims;
	uint32_t orders[2][95];

	lay_out(&layout);
	expect_ready("memory", pin_victims_init(&victims, &host, places, 96, 96, NULL) == 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct pin_random random;
		struct pin_victims_round round;
		uint32_t count = 0;

		pin_random_init(&random, 1, 40);
		pin_victims_begin(&round, &victims, 40, &random);
		while (count < 95 && pin_victims_next(&round, &orders[i][count])) {
			count++;
		}
		expect_number("victims of 96 workers", 95, count);
	}
	expect_true("the same seed gives the same order",
		memcmp(orders[0], orders[1], sizeof(orders[0])) == 0);
	pin_victims_fini(&victims);
}

/* One victim in each level: no random number is spent. */
static void check_no_choice(const struct machine *machine)
{
	struct pin_node_distances distances;
	struct pin_victims victims;
	struct pin_random random;
	struct pin_random before;
	struct pin_victims_round round;
	uint32_t index;
	uint32_t count = 0;

	lay_out_machine(machine, &distances);
	expect_ready(machine->name,
		pin_victims_init(&victims, &host, places, machine->worker_count,
			machine->worker_count, &distances) == 0);
	pin_random_init(&random, 1, 0);
	before = random;
	pin_victims_begin(&round, &victims, 0, &random);
	while (pin_victims_next(&round, &index)) {
		count++;
	}
	expect_number(machine->name, machine->worker_count - 1, count);
	expect_true("no number is spent", memcmp(&random, &before, sizeof(random)) == 0);
	pin_victims_fini(&victims);
}

static void check_without_memory(void)
{
	struct pin_node_distances distances;
	struct pin_victims victims;

	for (uint32_t i = 0; i < 3; i++) {
		allocations_left = i;
		expect_number("without memory", -ENOMEM,
			pin_victims_init(&victims, &host, places, 4, 4, NULL));
		expect_true("nothing is left to free",
			victims.neighbours == NULL && victims.indices == NULL);
		pin_victims_fini(&victims);
	}
	lay_out_machine(&machines[0], &distances);
	allocations_left = 3;
	expect_number("without memory for distances", -ENOMEM,
		pin_victims_init(&victims, &host, places, 16, 16, &distances));
	expect_true("nothing is left to free either",
		victims.neighbours == NULL && victims.far == NULL);
	allocations_left = 3;
	expect_number("with as much as it needs", 0,
		pin_victims_init(&victims, &host, places, 4, 4, NULL));
	pin_victims_fini(&victims);
	allocations_left = UINT32_MAX;
}

int main(void)
{
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(layouts); i++) {
		check_layout(&layouts[i]);
	}
	for (uint32_t own = 0; own < 36; own += 5) {
		check_starts(own);
	}
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(machines); i++) {
		check_machine(&machines[i]);
	}
	check_imagined();
	check_repeats();
	check_no_choice(&pair);
	check_no_choice(&row);
	check_without_memory();
	expect_number("bytes given back", (long long)bytes_allocated, (long long)bytes_released);
	return expect_status();
}
