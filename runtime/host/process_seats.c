/* SPDX-License-Identifier: MIT */
/*
 * One count for each core; cores beyond are never taken.
 */
#include "runtime/host/process.h"
#include "runtime/base/atomic.h"
#include "runtime/base/check.h"

enum { CORES_MAX = 4096 };

/*
 * Workers bound to each. Relaxed: a guess of who shares what, nothing is
 * ordered by it.
 */
static struct pin_atomic_u32 taken[CORES_MAX]; /* [W:any R:any] */

static uint32_t count_taken(const struct pin_cpu_place *place)
{
	return place->core_index < CORES_MAX ? pin_load_relaxed_u32(&taken[place->core_index]) : 0;
}

/* By insertion, which keeps the order of equals; there are few places. */
void pin_seats_sort(struct pin_cpu_place *places, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		struct pin_cpu_place place = places[i];
		uint32_t place_taken = count_taken(&place);
		uint32_t j = i;

		while (j > 0 && count_taken(&places[j - 1]) > place_taken) {
			places[j] = places[j - 1];
			j--;
		}
		places[j] = place;
	}
}

void pin_seats_take(const struct pin_cpu_place *place)
{
	if (place->core_index < CORES_MAX) {
		pin_fetch_add_relaxed_u32(&taken[place->core_index], 1);
	}
}

void pin_seats_leave(const struct pin_cpu_place *place)
{
	if (place->core_index < CORES_MAX) {
		uint32_t before = pin_fetch_add_relaxed_u32(&taken[place->core_index], UINT32_MAX);

		PIN_CHECK(before > 0);
	}
}

void pin_seats_forget(void)
{
	for (uint32_t i = 0; i < CORES_MAX; i++) {
		pin_store_relaxed_u32(&taken[i], 0);
	}
}
