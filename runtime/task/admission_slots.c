/* SPDX-License-Identifier: MIT */
/*
 * The word that counts an admission's jobs: three counts of 20 bits, and flags
 * for waiters.
 *
 * All operations are one compare-and-swap on it, so that a lane's limit, the
 * total, and several lanes of a batch are checked together.
 */
#include "runtime/task/admission.h"
#include "runtime/base/check.h"

enum permits_flag {
	FLAG_CLOSED = 1,
	FLAG_WATCHED = 2,
	FLAGS = FLAG_CLOSED | FLAG_WATCHED,
};

void pin_permits_init(struct pin_permits *permits, const uint32_t *max, uint32_t max_total)
{
	*permits = (struct pin_permits){0};
	pin_permits_set_max(permits, max, max_total);
}

void pin_permits_set_max(struct pin_permits *permits, const uint32_t *max, uint32_t max_total)
{
	PIN_DCHECK(max_total <= PIN_PERMITS_LANES * PIN_PERMITS_MAX);
	/* Relaxed: a later spawn sees them by the return of this call. */
	pin_store_relaxed_u32(&permits->max_total, max_total);
	for (uint32_t lane = 0; lane < PIN_PERMITS_LANES; lane++) {
		PIN_CHECK(max[lane] <= PIN_PERMITS_MAX);
		pin_store_relaxed_u32(&permits->max[lane], max[lane]);
	}
}

enum pin_permits_answer pin_permits_fit(
	const struct pin_permits *permits, uint64_t word, uint64_t amount)
{
	for (uint32_t lane = 0; lane < PIN_PERMITS_LANES; lane++) {
		uint32_t count = pin_permits_count(amount, lane);

		/* Lanes it wants nothing of are no concern of its. */
		if (count > 0 &&
			pin_permits_count(word, lane) + count > pin_permits_max(permits, lane)) {
			return PIN_PERMITS_LANE_FULL;
		}
	}
	return pin_permits_total(word) + pin_permits_total(amount) > pin_permits_max_total(permits)
		? PIN_PERMITS_FULL
		: PIN_PERMITS_ROOM;
}

uint64_t pin_permits_word(const struct pin_permits *permits)
{
	return pin_load_acquire_u64(&permits->word);
}

enum pin_permits_answer pin_permits_take(
	struct pin_permits *permits, uint64_t amount, uint64_t *out_word)
{
	uint64_t word = pin_load_acquire_u64(&permits->word);
	enum pin_permits_answer answer;

	PIN_DCHECK((amount & FLAGS) == 0);
	do {
		*out_word = word;
		if ((word & FLAGS) != 0) {
			return (word & FLAG_CLOSED) != 0 ? PIN_PERMITS_CLOSED : PIN_PERMITS_WATCHED;
		}
		answer = pin_permits_fit(permits, word, amount);
		if (answer != PIN_PERMITS_ROOM) {
			return answer;
		}
	} while (!pin_cas_acq_rel_u64(&permits->word, &word, word + amount)); /* [PERMITS-1] */
	return PIN_PERMITS_ROOM;
}

bool pin_permits_give(struct pin_permits *permits, uint64_t amount)
{
	uint64_t word = pin_load_acquire_u64(&permits->word);

	PIN_DCHECK((amount & FLAGS) == 0);
	while ((word & FLAGS) == 0) {
		PIN_CHECK(pin_permits_total(word) >= pin_permits_total(amount));
		PIN_DCHECK(pin_permits_hold(word, amount));
		if (pin_cas_acq_rel_u64(&permits->word, &word, word - amount)) { /* [PERMITS-1] */
			return true;
		}
	}
	return false;
}

enum pin_permits_answer pin_permits_take_or_watch(
	struct pin_permits *permits, uint64_t amount, uint64_t *out_word)
{
	uint64_t word = pin_load_acquire_u64(&permits->word);
	enum pin_permits_answer answer;
	uint64_t next;

	PIN_DCHECK((amount & FLAGS) == 0);
	do {
		*out_word = word;
		if ((word & FLAG_CLOSED) != 0) {
			return PIN_PERMITS_CLOSED;
		}
		answer = pin_permits_fit(permits, word, amount);
		next = answer == PIN_PERMITS_ROOM ? word + amount : word | FLAG_WATCHED;
		/* Also where that is the same: the word may be an old one. */
	} while (!pin_cas_acq_rel_u64(&permits->word, &word, next)); /* [PERMITS-1] */
	return answer;
}

void pin_permits_exchange(struct pin_permits *permits, uint64_t given, uint64_t amount)
{
	uint64_t before =
		pin_fetch_add_acq_rel_u64(&permits->word, amount - given); /* [PERMITS-1] */

	enum pin_permits_answer fit = pin_permits_fit(permits, before - given, amount);

	PIN_CHECK((before & FLAG_WATCHED) != 0);
	PIN_DCHECK(pin_permits_hold(before, given) && (before & FLAG_CLOSED) == 0);
	PIN_CHECK(fit == PIN_PERMITS_ROOM || fit == PIN_PERMITS_FULL);
	/* Full: the total was lowered; as many come in as go. */
	PIN_CHECK(fit == PIN_PERMITS_ROOM || pin_permits_total(given) == pin_permits_total(amount));
}

void pin_permits_give_locked(struct pin_permits *permits, uint64_t amount)
{
	uint64_t before = pin_fetch_sub_acq_rel_u64(&permits->word, amount); /* [PERMITS-1] */

	PIN_CHECK(pin_permits_total(before) >= pin_permits_total(amount));
	PIN_DCHECK(pin_permits_hold(before, amount));
}

void pin_permits_unwatch(struct pin_permits *permits)
{
	pin_fetch_and_seq_cst_u64(&permits->word, ~(uint64_t)FLAG_WATCHED);
}

void pin_permits_close(struct pin_permits *permits)
{
	pin_fetch_or_seq_cst_u64(&permits->word, FLAG_CLOSED);
}

bool pin_permits_is_closed(const struct pin_permits *permits)
{
	return (pin_load_acquire_u64(&permits->word) & FLAG_CLOSED) != 0;
}
