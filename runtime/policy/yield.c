/* SPDX-License-Identifier: MIT */
/*
 * Yield policies. All kinds are one: units are counted up to a quota. They
 * differ in their unit, in the quota, and in its changes.
 *
 * Pure functions of the struct and their arguments, integers only, which is
 * what makes a saved policy repeat its decisions.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <pinion/yield.h>

_Static_assert(sizeof(struct pinion_yield) == 32, "released size, no padding");

enum {
	DEFAULT_CALLS = 64,
	DEFAULT_STRETCH_NS = 500 * 1000,
	DEFAULT_UNITS = 1 << 20,
	STRETCH_NS_MAX = 1000 * 1000 * 1000,
};

/* With STRETCH_NS_MAX, 2^30, the product fits into 64 bits. */
static const uint64_t ADAPTIVE_UNITS_MAX = UINT64_C(1) << 32;

static uint64_t or_default(uint64_t limit, uint64_t default_limit)
{
	return limit != 0 ? limit : default_limit;
}

/*
 * Completes and checks the limit; the quota is the number of units until the
 * first yield.
 */
int pinion_yield_init(struct pinion_yield *yield, uint32_t kind, uint64_t limit)
{
	uint64_t quota = 0;

	switch (kind) {
	case PINION_YIELD_EVERY_N:
		limit = or_default(limit, DEFAULT_CALLS);
		quota = limit;
		break;
	case PINION_YIELD_NEVER:
		limit = 0;
		quota = UINT64_MAX;
		break;
	case PINION_YIELD_ALWAYS:
		limit = 0;
		break;
	case PINION_YIELD_ADAPTIVE:
		limit = or_default(limit, DEFAULT_STRETCH_NS);
		quota = 1;
		if (limit > STRETCH_NS_MAX) {
			return -EINVAL;
		}
		break;
	case PINION_YIELD_UNITS:
		limit = or_default(limit, DEFAULT_UNITS);
		quota = limit;
		break;
	default:
		return -EINVAL;
	}
	*yield = (struct pinion_yield){.kind = kind, .limit = limit, .quota_units = quota};
	return 0;
}

/*
 * Units that a task may do between yields in the named phases of reading a git
 * repository.
 */
int pinion_yield_init_preset(struct pinion_yield *yield, uint32_t preset)
{
	static const uint64_t limits[] = {
		[PINION_YIELD_GIT_COMMIT_WALK] = 128,
		[PINION_YIELD_GIT_CANDIDATE_EMIT] = 64,
		[PINION_YIELD_GIT_PACK_INFLATE] = 512 << 10,
		[PINION_YIELD_GIT_DELTA_RESOLVE] = 128,
		[PINION_YIELD_GIT_CONTENT_SCAN] = 256 << 10,
	};

	return preset < PIN_ARRAY_COUNT(limits)
		? pinion_yield_init(yield, PINION_YIELD_UNITS, limits[preset])
		: -EINVAL;
}

static void begin_stretch(struct pinion_yield *yield)
{
	bool keeps_rest = yield->kind == PINION_YIELD_UNITS && yield->has_ended != 0;

	PIN_DCHECK(!keeps_rest || yield->quota_units > 0);
	yield->done_units = keeps_rest ? yield->done_units % yield->quota_units : 0;
	yield->has_ended = 0;
}

/* The count saturates: more units than fit into 64 bits are due in any case. */
bool pinion_yield_due(struct pinion_yield *yield, uint64_t units)
{
	if (yield->has_ended != 0) {
		begin_stretch(yield);
	}
	if (yield->kind == PINION_YIELD_EVERY_N) {
		units = 1;
	}
	yield->done_units += units;
	if (yield->done_units < units) {
		yield->done_units = UINT64_MAX;
	}
	yield->has_ended =
		yield->done_units >= yield->quota_units && yield->kind != PINION_YIELD_NEVER;
	return yield->has_ended != 0;
}

/* That number of units at the pace of this stretch takes the intended time. */
static uint64_t adapt(const struct pinion_yield *yield, uint64_t stretch_ns)
{
	uint64_t done = yield->done_units;
	uint64_t most = done > yield->quota_units ? done : yield->quota_units;
	uint64_t quota;

	/* Known sizes only: twice as many could take more than twice as long.
	 */
	most = most < ADAPTIVE_UNITS_MAX / 2 ? most * 2 : ADAPTIVE_UNITS_MAX;
	if (done > ADAPTIVE_UNITS_MAX) {
		done = ADAPTIVE_UNITS_MAX;
	}
	quota = stretch_ns > 0 ? done * yield->limit / stretch_ns : most;
	if (quota > most) {
		quota = most;
	}
	PIN_DCHECK(quota <= ADAPTIVE_UNITS_MAX);
	return quota > 0 ? quota : 1;
}

void pinion_yield_note(struct pinion_yield *yield, uint64_t stretch_ns)
{
	if (yield->kind == PINION_YIELD_ADAPTIVE && yield->done_units > 0) {
		yield->quota_units = adapt(yield, stretch_ns);
		PIN_CHECK(yield->quota_units <= ADAPTIVE_UNITS_MAX);
	}
	begin_stretch(yield);
}
