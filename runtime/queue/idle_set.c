/* SPDX-License-Identifier: MIT */
/*
 * The set of parked workers: publish, withdraw, claim the first in a range.
 *
 * A worker that goes to sleep publishes and later withdraws itself; wakers on
 * any thread claim.
 *
 * Invariant: of several wakers exactly one claims a worker's bit.
 */
#include "runtime/queue/idle_set.h"
#include "runtime/base/check.h"

#define TOP_PUBLICATION (UINT64_C(1) << 32)

_Static_assert(TOP_PUBLICATION == UINT64_C(1) << PIN_IDLE_GROUPS, "the count lies above the bits");

void pin_idle_init(struct pin_idle *idle, uint32_t worker_count)
{
	PIN_CHECK(worker_count >= 1 && worker_count <= PIN_IDLE_WORKERS_MAX);
	*idle = (struct pin_idle){
		.worker_count = worker_count,
		.top_mask = worker_count <= 64 ? UINT64_MAX : TOP_PUBLICATION - 1,
	};
}

static bool has_groups(const struct pin_idle *idle)
{
	return idle->worker_count > 64;
}

static uint64_t bit_of(uint32_t index)
{
	return UINT64_C(1) << (index % 64);
}

static struct pin_atomic_u64 *word_of(struct pin_idle *idle, uint32_t worker_index)
{
	struct pin_idle_group *group = &idle->groups[worker_index / PIN_IDLE_GROUP_WORKERS];
	PIN_DCHECK(has_groups(idle) && worker_index < idle->worker_count);

	return &group->words[worker_index / 64 % PIN_IDLE_GROUP_WORDS];
}

/* ---- the bits of groups in `top` ---- */

static bool group_is_empty(const struct pin_idle_group *group)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < PIN_IDLE_GROUP_WORDS; i++) {
		bits |= pin_load_acquire_u64(&group->words[i]); /* [IDLE-1] */
	}
	return bits == 0;
}

/*
 * Failing is fine: another thread has published, or the next claim that comes
 * by does it.
 */
static void clear_if_empty(struct pin_idle *idle, uint32_t group_index)
{
	uint64_t top = pin_load_acquire_u64(&idle->top); /* [IDLE-1] */
	PIN_DCHECK(group_index < PIN_IDLE_GROUPS);

	if ((top & bit_of(group_index)) != 0 && group_is_empty(&idle->groups[group_index])) {
		pin_cas_seq_cst_u64(&idle->top, &top, top & ~bit_of(group_index)); /* [IDLE-1] */
	}
}

/* Whether its word was empty. */
static PIN_APART bool publish_in_group(struct pin_idle *idle, uint32_t worker_index)
{
	struct pin_atomic_u64 *word = word_of(idle, worker_index);
	uint64_t bit = bit_of(worker_index);
	uint64_t group_bit = bit_of(worker_index / PIN_IDLE_GROUP_WORKERS);
	uint64_t others = pin_fetch_or_seq_cst_u64(word, bit); /* [PARK-1] */
	uint64_t top;

	PIN_CHECK((others & bit) == 0);
	top = pin_fetch_add_seq_cst_u64(&idle->top, TOP_PUBLICATION); /* [IDLE-1] */
	if ((top & group_bit) == 0) {
		pin_fetch_or_seq_cst_u64(&idle->top, group_bit); /* [PARK-1] */
	}
	return others == 0;
}

/* ---- the worker's own moves ---- */

bool pin_idle_publish(struct pin_idle *idle, uint32_t worker_index)
{
	uint64_t before;

	PIN_CHECK(worker_index < idle->worker_count);
	if (has_groups(idle)) {
		return publish_in_group(idle, worker_index);
	}
	before = pin_fetch_or_seq_cst_u64(&idle->top, bit_of(worker_index)); /* [PARK-1] */
	PIN_CHECK((before & bit_of(worker_index)) == 0);
	return before == 0;
}

bool pin_idle_withdraw(struct pin_idle *idle, uint32_t worker_index)
{
	uint64_t bit = bit_of(worker_index);
	uint64_t before;

	PIN_CHECK(worker_index < idle->worker_count);
	if (!has_groups(idle)) {
		return (pin_fetch_and_seq_cst_u64(&idle->top, ~bit) & bit) != 0;
	}
	before = pin_fetch_and_seq_cst_u64(word_of(idle, worker_index), ~bit);
	if (before == bit) {
		clear_if_empty(idle, worker_index / PIN_IDLE_GROUP_WORKERS);
	}
	return (before & bit) != 0;
}

/* ---- claiming ---- */

/* The part of `range` that falls into the 64 numbers from `base` on. */
static uint64_t mask_of(struct pin_range range, uint32_t base)
{
	uint32_t first = range.first > base ? range.first - base : 0;
	uint32_t end = range.end > base ? range.end - base : 0;
	uint64_t mask;

	if (first >= 64 || end <= first) {
		return 0;
	}
	mask = UINT64_MAX << first;
	return end >= 64 ? mask : mask & (bit_of(end) - 1);
}

/*
 * The lowest set bit of `mask` that this thread clears, or PIN_IDLE_NONE; the
 * rest of the word goes to `out_left`.
 */
static uint32_t take(struct pin_atomic_u64 *word, uint64_t mask, uint64_t *out_left)
{
	uint64_t bits = pin_load_acquire_u64(word); /* [PARK-1] */
	PIN_DCHECK(mask != 0);

	while ((bits & mask) != 0) {
		uint32_t index = (uint32_t)__builtin_ctzll(bits & mask);

		bits = pin_fetch_and_seq_cst_u64(word, ~bit_of(index));
		if ((bits & bit_of(index)) != 0) {
			*out_left = bits & ~bit_of(index);
			return index;
		}
	}
	*out_left = bits;
	return PIN_IDLE_NONE;
}

/*
 * Two words of 64 workers each. If both are found empty the group's summary bit
 * is cleared, unless a worker published meanwhile.
 */
static uint32_t claim_in_group(struct pin_idle *idle, uint32_t group_index, struct pin_range range)
{
	uint32_t first = group_index * PIN_IDLE_GROUP_WORKERS;
	uint64_t left = 0;

	for (uint32_t base = first; base < first + PIN_IDLE_GROUP_WORKERS; base += 64) {
		uint64_t mask = mask_of(range, base);
		uint32_t index = PIN_IDLE_NONE;

		if (mask != 0) {
			index = take(word_of(idle, base), mask, &left);
		}
		if (index != PIN_IDLE_NONE) {
			if (left == 0) {
				clear_if_empty(idle, group_index);
			}
			return base + index;
		}
	}
	if (left == 0) {
		clear_if_empty(idle, group_index);
	}
	return PIN_IDLE_NONE;
}

/*
 * Up to 64 workers are one word. Above that a summary word says which groups
 * can have sleepers, so an empty set costs one load.
 */
static uint32_t claim_in_range(struct pin_idle *idle, struct pin_range range)
{
	uint64_t groups;
	uint64_t left;

	PIN_DCHECK(range.first <= range.end && range.end <= idle->worker_count);
	if (range.first >= range.end) {
		return PIN_IDLE_NONE;
	}
	if (!has_groups(idle)) {
		return take(&idle->top, mask_of(range, 0), &left);
	}
	groups = pin_load_acquire_u64(&idle->top); /* [PARK-1] */
	groups &= mask_of((struct pin_range){range.first / PIN_IDLE_GROUP_WORKERS,
				  (range.end - 1) / PIN_IDLE_GROUP_WORKERS + 1},
		0);
	for (; groups != 0; groups &= groups - 1) {
		uint32_t index = claim_in_group(idle, (uint32_t)__builtin_ctzll(groups), range);

		PIN_DCHECK(index == PIN_IDLE_NONE || index >= range.first);
		PIN_DCHECK(index == PIN_IDLE_NONE || index < range.end);
		if (index != PIN_IDLE_NONE) {
			return index;
		}
	}
	return PIN_IDLE_NONE;
}

uint32_t pin_idle_claim(struct pin_idle *idle)
{
	return claim_in_range(idle, (struct pin_range){0, idle->worker_count});
}

uint32_t pin_idle_claim_from(struct pin_idle *idle, uint32_t start)
{
	struct pin_range all = {0, idle->worker_count};
	struct pin_range ranges[2] = {{start, idle->worker_count}, all};

	return start < idle->worker_count ? pin_idle_claim_in(idle, ranges, 2)
					  : claim_in_range(idle, all);
}

uint32_t pin_idle_claim_in(
	struct pin_idle *idle, const struct pin_range *ranges, uint32_t range_count)
{
	uint32_t index = PIN_IDLE_NONE;

	/* A wake without a sleeper is the common case under load. */
	if (pin_idle_is_empty(idle)) {
		return PIN_IDLE_NONE;
	}
	for (uint32_t i = 0; i < range_count && index == PIN_IDLE_NONE; i++) {
		index = claim_in_range(idle, ranges[i]);
	}
	return index;
}

/* ---- looking ---- */

/* Of one group; relaxed, as below. */
static uint32_t first_in_group(const struct pin_idle_group *group)
{
	for (uint32_t i = 0; i < PIN_IDLE_GROUP_WORDS; i++) {
		uint64_t bits = pin_load_relaxed_u64(&group->words[i]);

		if (bits != 0) {
			return i * 64 + (uint32_t)__builtin_ctzll(bits);
		}
	}
	return PIN_IDLE_NONE;
}

uint32_t pin_idle_first(const struct pin_idle *idle)
{
	/* Relaxed: nothing is read by reason of it. */
	uint64_t bits = pin_load_relaxed_u64(&idle->top) & idle->top_mask;

	if (!has_groups(idle)) {
		return bits == 0 ? PIN_IDLE_NONE : (uint32_t)__builtin_ctzll(bits);
	}
	for (; bits != 0; bits &= bits - 1) {
		uint32_t group_index = (uint32_t)__builtin_ctzll(bits);
		uint32_t index = first_in_group(&idle->groups[group_index]);

		if (index != PIN_IDLE_NONE) {
			return group_index * PIN_IDLE_GROUP_WORKERS + index;
		}
	}
	return PIN_IDLE_NONE;
}

bool pin_idle_holds(const struct pin_idle *idle, uint32_t worker_index)
{
	const struct pin_atomic_u64 *word = &idle->top;

	PIN_CHECK(worker_index < idle->worker_count);
	if (has_groups(idle)) {
		word = &idle->groups[worker_index / PIN_IDLE_GROUP_WORKERS]
				.words[worker_index / 64 % PIN_IDLE_GROUP_WORDS];
	}
	/* Relaxed: nothing is read by reason of it; a withdraw decides. */
	return (pin_load_relaxed_u64(word) & bit_of(worker_index)) != 0;
}
