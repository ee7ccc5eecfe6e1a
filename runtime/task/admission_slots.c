/* SPDX-License-Identifier: MIT */
/*
 * The places' operations on their word.
 */
#include "runtime/task/admission.h"
#include "runtime/base/check.h"

enum places_flag {
	FLAG_CLOSED = 1,
	FLAG_WATCHED = 2,
	FLAGS = FLAG_CLOSED | FLAG_WATCHED,
};

void pin_places_init(struct pin_places *places, const uint32_t *max, uint32_t max_total)
{
	*places = (struct pin_places){0};
	pin_places_set_max(places, max, max_total);
}

void pin_places_set_max(struct pin_places *places, const uint32_t *max, uint32_t max_total)
{
	/* Relaxed: a later spawn sees them by the return of this call. */
	pin_store_relaxed_u32(&places->max_total, max_total);
	for (uint32_t lane = 0; lane < PIN_PLACES_LANES; lane++) {
		PIN_CHECK(max[lane] <= PIN_PLACES_MAX);
		pin_store_relaxed_u32(&places->max[lane], max[lane]);
	}
}

enum pin_places_answer pin_places_fit(
	const struct pin_places *places, uint64_t word, uint64_t amount)
{
	for (uint32_t lane = 0; lane < PIN_PLACES_LANES; lane++) {
		uint32_t count = pin_places_count(amount, lane);

		/* Lanes it wants nothing of are no concern of its. */
		if (count > 0 &&
			pin_places_count(word, lane) + count > pin_places_max(places, lane)) {
			return PIN_PLACES_LANE_FULL;
		}
	}
	return pin_places_total(word) + pin_places_total(amount) > pin_places_max_total(places)
		? PIN_PLACES_FULL
		: PIN_PLACES_ROOM;
}

uint64_t pin_places_word(const struct pin_places *places)
{
	return pin_load_acquire_u64(&places->word);
}

enum pin_places_answer pin_places_take(
	struct pin_places *places, uint64_t amount, uint64_t *out_word)
{
	uint64_t word = pin_load_acquire_u64(&places->word);
	enum pin_places_answer answer;

	do {
		*out_word = word;
		if ((word & FLAGS) != 0) {
			return (word & FLAG_CLOSED) != 0 ? PIN_PLACES_CLOSED : PIN_PLACES_WATCHED;
		}
		answer = pin_places_fit(places, word, amount);
		if (answer != PIN_PLACES_ROOM) {
			return answer;
		}
	} while (!pin_cas_acq_rel_u64(&places->word, &word, word + amount)); /* [PLACES-1] */
	return PIN_PLACES_ROOM;
}

bool pin_places_give(struct pin_places *places, uint64_t amount)
{
	uint64_t word = pin_load_acquire_u64(&places->word);

	while ((word & FLAGS) == 0) {
		PIN_CHECK(pin_places_total(word) >= pin_places_total(amount));
		if (pin_cas_acq_rel_u64(&places->word, &word, word - amount)) { /* [PLACES-1] */
			return true;
		}
	}
	return false;
}

enum pin_places_answer pin_places_take_or_watch(
	struct pin_places *places, uint64_t amount, uint64_t *out_word)
{
	uint64_t word = pin_load_acquire_u64(&places->word);
	enum pin_places_answer answer;
	uint64_t next;

	do {
		*out_word = word;
		if ((word & FLAG_CLOSED) != 0) {
			return PIN_PLACES_CLOSED;
		}
		answer = pin_places_fit(places, word, amount);
		next = answer == PIN_PLACES_ROOM ? word + amount : word | FLAG_WATCHED;
		/* Also where that is the same: the word may be an old one. */
	} while (!pin_cas_acq_rel_u64(&places->word, &word, next)); /* [PLACES-1] */
	return answer;
}

void pin_places_exchange(struct pin_places *places, uint64_t given, uint64_t amount)
{
	uint64_t before = pin_fetch_add_acq_rel_u64(&places->word, amount - given); /* [PLACES-1] */

	enum pin_places_answer fit = pin_places_fit(places, before - given, amount);

	PIN_CHECK((before & FLAG_WATCHED) != 0);
	PIN_CHECK(fit == PIN_PLACES_ROOM || fit == PIN_PLACES_FULL);
	/* Full: the total was lowered; as many come in as go. */
	PIN_CHECK(fit == PIN_PLACES_ROOM || pin_places_total(given) == pin_places_total(amount));
}

void pin_places_give_locked(struct pin_places *places, uint64_t amount)
{
	uint64_t before = pin_fetch_sub_acq_rel_u64(&places->word, amount); /* [PLACES-1] */

	PIN_CHECK(pin_places_total(before) >= pin_places_total(amount));
}

void pin_places_unwatch(struct pin_places *places)
{
	pin_fetch_and_seq_cst_u64(&places->word, ~(uint64_t)FLAG_WATCHED);
}

void pin_places_close(struct pin_places *places)
{
	pin_fetch_or_seq_cst_u64(&places->word, FLAG_CLOSED);
}

bool pin_places_is_closed(const struct pin_places *places)
{
	return (pin_load_acquire_u64(&places->word) & FLAG_CLOSED) != 0;
}
