/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffer published on a shared stash is taken by one thread, with the
 * writes of its last user; a place is filled again only after it was read:
 * [STASH-1] [STASH-2]. BP-21, W5.
 * Method: the owner touches plain memory and puts, until the places have come
 * round, while others take one and two at a time and touch it as well.
 */
#include "tests/model/relacy/atomics.h"

#include "runtime/memory/magazine.h"

#include "tests/model/relacy/engine.h"

enum { PUTS = PIN_STASH_SLOTS + 3 };

struct scene {
	struct pin_stash stash;
	model_plain<uint32_t> uses[PUTS];
	uint32_t put_count;
	uint32_t taken_count;

	scene()
	{
		stash.seen_taken = 0;
		put_count = 0;
		taken_count = 0;
		for (uint32_t i = 0; i < PUTS; i++) {
			uses[i] = 0;
		}
	}

	void lay_out()
	{
		for (uint32_t i = 0; i < PUTS; i++) {
			uses[i] = 1;
			if (!pin_stash_put(&stash, i, PIN_STASH_SLOTS)) {
				return;
			}
			put_count++;
		}
	}

	void take(uint32_t max)
	{
		uint32_t indices[2];
		uint32_t count = pin_stash_take(&stash, indices, max);

		for (uint32_t i = 0; i < count; i++) {
			MODEL_CHECK(uses[indices[i]] == 1);
			uses[indices[i]] = 2;
		}
		taken_count += count;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			lay_out();
			return;
		}
		take(index);
		take(index);
		take(2);
	}

	void finish()
	{
		uint32_t index;

		for (uint32_t i = 0; i < PUTS && pin_stash_take(&stash, &index, 1) == 1; i++) {
			MODEL_CHECK(uses[index] == 1);
			uses[index] = 2;
			taken_count++;
		}
		MODEL_CHECK(taken_count == put_count);
	}
};

static const struct model_mutant mutants[] = {
	{"published without a release", {MODEL_RELAXED, "pin_stash_put", NULL}},
	{"taken without an acquire", {MODEL_RELAXED, "pin_stash_take", NULL}},
	{"taken in two steps", {MODEL_TORN, "pin_stash_take", NULL}},
	{NULL, {}},
};

static const struct relacy_case cases[] = {
	{"two_takers", relacy_simulate<scene, 3>, 100000, 1, mutants},
};

int main()
{
	return relacy_main("relacy/stash", cases, PIN_ARRAY_COUNT(cases));
}
