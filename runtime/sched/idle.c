/* SPDX-License-Identifier: MIT */
/*
 * The parked set's bit operations.
 */
#include "runtime/sched/idle.h"
#include "runtime/base/check.h"

void pin_idle_init(struct pin_idle *idle, uint32_t worker_count)
{
	PIN_CHECK(worker_count >= 1 && worker_count <= PIN_IDLE_WORKERS_MAX);
	*idle = (struct pin_idle){.word_count = (worker_count + 63) / 64};
}

void pin_idle_publish(struct pin_idle *idle, uint32_t worker_index)
{
	uint64_t bit = UINT64_C(1) << (worker_index % 64);
	uint64_t before =
		pin_fetch_or_seq_cst_u64(&idle->words[worker_index / 64], bit); /* [PARK-1] */

	PIN_CHECK((before & bit) == 0);
}

void pin_idle_withdraw(struct pin_idle *idle, uint32_t worker_index)
{
	uint64_t bit = UINT64_C(1) << (worker_index % 64);

	pin_fetch_and_seq_cst_u64(&idle->words[worker_index / 64], ~bit);
}

uint32_t pin_idle_claim(struct pin_idle *idle)
{
	for (uint32_t i = 0; i < idle->word_count; i++) {
		uint64_t word = pin_load_acquire_u64(&idle->words[i]); /* [PARK-1] */

		while (word != 0) {
			uint32_t index = (uint32_t)__builtin_ctzll(word);
			uint64_t bit = UINT64_C(1) << index;

			word = pin_fetch_and_seq_cst_u64(&idle->words[i], ~bit);
			if ((word & bit) != 0) {
				return i * 64 + index;
			}
		}
	}
	return PIN_IDLE_NONE;
}

uint32_t pin_idle_count(const struct pin_idle *idle)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < idle->word_count; i++) {
		count += (uint32_t)__builtin_popcountll(pin_load_acquire_u64(&idle->words[i]));
	}
	return count;
}
