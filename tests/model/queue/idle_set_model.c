/* SPDX-License-Identifier: MIT */
/*
 * The real queue/idle_set.c, with steps that a mutant may leave out or turn
 * round: what simpler protocols between a group's words and `top` would do.
 */
#include "runtime/queue/idle_set.h"
#include "runtime/base/check.h"
#include "tests/model/explorer.h"

static uint64_t load(const struct pin_atomic_u64 *atomic, const char *site)
{
	return model_load_u64(atomic, MODEL_ORDER_ACQUIRE, site);
}

/* SKIP: the group is taken for empty without a check, or one word of it is. */
static uint64_t load_or_skip(const struct pin_atomic_u64 *atomic, bool is_first, const char *site)
{
	return model_is_spoilt(MODEL_SKIP, site, is_first ? "first load" : "second load")
		? 0
		: load(atomic, site);
}

/*
 * NO_COMPARE: the bit is cleared whatever was published meanwhile. LATE:
 * cleared too, but then the group is checked once more, and its bit set again.
 */
static bool clear_as_told(struct pin_atomic_u64 *top, uint64_t *expected, uint64_t value,
	const struct pin_idle_group *group, const char *site)
{
	uint64_t bits = *expected ^ value;
	bool is_late = model_is_spoilt(MODEL_LATE, site, "group_is_empty");

	if (!is_late && !model_is_spoilt(MODEL_NO_COMPARE, site, NULL)) {
		return model_cas_u64(top, expected, value, MODEL_ORDER_SEQ_CST, site);
	}
	model_update_u64(top, MODEL_AND, ~bits, MODEL_ORDER_SEQ_CST, site);
	if (is_late && (load(&group->words[0], site) | load(&group->words[1], site)) != 0) {
		model_update_u64(top, MODEL_OR, bits, MODEL_ORDER_SEQ_CST, site);
	}
	return true;
}

/* LATE: the group's word is set after `top`, by add_in_order(). */
static bool is_late(const char *site)
{
	return model_is_spoilt(MODEL_LATE, site, "pin_fetch_or_seq_cst_u64");
}

static uint64_t or_in_order(
	struct pin_atomic_u64 *atomic, uint64_t bits, bool is_top, const char *site)
{
	/* Setting `top` may be left out as well. */
	if (is_top ? model_is_spoilt(MODEL_SKIP, site, "set top") : is_late(site)) {
		return 0;
	}
	return model_update_u64(atomic, MODEL_OR, bits, MODEL_ORDER_SEQ_CST, site);
}

static uint64_t add_in_order(struct pin_atomic_u64 *top, uint64_t count, uint64_t group_bit,
	struct pin_atomic_u64 *word, uint64_t bit, const char *site)
{
	uint64_t before;

	/* Without the addition `top` looks the same to the clearing thread. */
	if (model_is_spoilt(MODEL_SKIP, site, "pin_fetch_add_seq_cst_u64")) {
		return load(top, site);
	}
	before = model_update_u64(top, MODEL_ADD, count, MODEL_ORDER_SEQ_CST, site);
	if (is_late(site)) {
		model_update_u64(top, MODEL_OR, group_bit, MODEL_ORDER_SEQ_CST, site);
		model_update_u64(word, MODEL_OR, bit, MODEL_ORDER_SEQ_CST, site);
		before |= group_bit;
	}
	return before;
}

/*
 * The names that follow are those of idle_set.c: each of these operations is in
 * it where they are known.
 */
#undef pin_cas_seq_cst_u64
#define pin_cas_seq_cst_u64(atomic, expected, value) \
	clear_as_told(atomic, expected, value, &idle->groups[group_index], __func__)
#undef pin_fetch_add_seq_cst_u64
#define pin_fetch_add_seq_cst_u64(atomic, value) \
	add_in_order(atomic, value, group_bit, word, bit, __func__)
#undef pin_fetch_or_seq_cst_u64
#define pin_fetch_or_seq_cst_u64(atomic, value) \
	or_in_order(atomic, value, (atomic) == &idle->top && idle->worker_count > 64, __func__)
#undef pin_load_acquire_u64
#define pin_load_acquire_u64(atomic) \
	load_or_skip(atomic, ((uintptr_t)(atomic) & sizeof(uint64_t)) == 0, __func__)

#include "runtime/queue/idle_set.c"
