/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffer in a magazine is taken by its owner or by one thief, and what
 * its last user wrote comes with it: [MAG-1] [MAG-2]. BP-21, W5.
 * Method: the owner takes and puts while others break in, one after the other,
 * as under the pool's lock; the holder of a buffer touches plain memory.
 */
#include "tests/model/relacy/atomics.h"

#include "runtime/memory/magazine.c"

#include "tests/model/relacy/engine.h"

enum { BUFFERS = 2 };

struct scene {
	struct pin_magazine magazine;
	struct pin_atomic_u32 indices[BUFFERS];
	model_plain<uint32_t> uses[BUFFERS];
	uint32_t stolen = 0;

	scene()
	{
		magazine.indices = indices;
		magazine.capacity = BUFFERS;
		for (uint32_t i = 0; i < BUFFERS; i++) {
			uses[i] = 0;
			MODEL_CHECK(pin_magazine_put(&magazine, i));
		}
	}

	void use_as_owner()
	{
		uint32_t index;
		bool has_taken;

		if (!pin_magazine_enter_slowly(&magazine)) {
			return;
		}
		has_taken = pin_magazine_take(&magazine, &index);
		pin_magazine_leave(&magazine);
		if (!has_taken) {
			return;
		}
		uses[index] = uses[index] + 1;
		/* With a thief inside it would go to the free list. */
		if (pin_magazine_enter(&magazine)) {
			MODEL_CHECK(pin_magazine_put(&magazine, index));
			pin_magazine_leave(&magazine);
		} else {
			stolen++;
		}
	}

	void steal()
	{
		uint32_t index;

		pin_magazine_break_in(&magazine, &relacy_host);
		if (pin_magazine_count(&magazine) == 0) {
			pin_magazine_get_out(&magazine);
			return;
		}
		pin_magazine_look_oldest(&magazine, &index, 1);
		pin_magazine_drop_oldest(&magazine, 1);
		pin_magazine_get_out(&magazine);
		uses[index] = uses[index] + 1;
		stolen++;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			use_as_owner();
			use_as_owner();
		} else {
			steal();
		}
	}

	void finish()
	{
		MODEL_CHECK(pin_magazine_count(&magazine) + stolen == BUFFERS);
	}
};

static const struct model_mutant mutants[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "relacy_fence_all", NULL}},
	{"the owner leaves without a release", {MODEL_RELAXED, "pin_magazine_leave", NULL}},
	{"the thief leaves without a release", {MODEL_RELAXED, "pin_magazine_get_out", NULL}},
	{NULL, {}},
};

static const struct relacy_case cases[] = {
	{"one_thief", relacy_simulate<scene, 2>, 200000, 3, mutants},
};

int main()
{
	return relacy_main("relacy/magazine", cases, PIN_ARRAY_COUNT(cases));
}
