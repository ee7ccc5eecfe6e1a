/* SPDX-License-Identifier: MIT */
/*
 * For how long something has stalled, as far as checks of the watchdog show.
 *
 * The parts of the stall watch use it: of workers, lanes and rings (stall.h),
 * and of devices (device_stall.h).
 */
#ifndef PIN_WORKER_STALL_TIME_H
#define PIN_WORKER_STALL_TIME_H

#include "runtime/base/check.h"
#include "runtime/worker/state.h"

enum {
	/* Of devices and lanes, in `stall_ms`. */
	PIN_STALL_TIMES = 10,
	/* Checks in each limit. */
	PIN_STALL_LOOKS = 2,
	PIN_STALL_MS_NS = 1000 * 1000,
};

static inline uint64_t pin_stall_limit_ns(const struct pin_shared *shared)
{
	PIN_DCHECK(shared->tuning.stall_ms > 0);
	PIN_DCHECK(shared->tuning.stall_ms <= UINT64_MAX / PIN_STALL_MS_NS / PIN_STALL_TIMES);
	return shared->tuning.stall_ms * PIN_STALL_MS_NS;
}

/* Counts one. */
static inline void pin_stall_note_found(struct pin_shared *shared, enum pin_stall_kind kind)
{
	PIN_DCHECK(kind < PIN_STALL_KINDS);
	/* Relaxed: a figure; of devices a worker may count. */
	pin_fetch_add_relaxed_u64(&shared->stalls.counts[kind], 1);
}

/*
 * For how long it has been seen to be so without a sign; 0: it is not, or was
 * not at the last check. The time in which the watchdog did not look is no part
 * of it.
 */
static inline uint64_t pin_stall_lasted_ns(struct pin_stall *stall, bool is_so, uint64_t signs,
	const struct pin_stall_look_times *times)
{
	if (!is_so) {
		stall->is_seen = false;
		return 0;
	}
	if (!stall->is_seen || signs != stall->signs) {
		*stall = (struct pin_stall){
			.signs = signs, .since_ns = times->now_ns, .is_seen = true};
	} else if (!stall->is_told) {
		stall->since_ns += times->late_ns;
		stall->left_out_ns += times->late_ns;
	}
	PIN_DCHECK(times->now_ns >= stall->since_ns);
	return times->now_ns - stall->since_ns;
}

/* There is a sign of life: a stall that was named is over. */
static inline bool pin_stall_is_over(const struct pin_stall *stall, bool is_so, uint64_t signs)
{
	return stall->is_seen && stall->is_told && (!is_so || signs != stall->signs);
}

static inline unsigned long long pin_stall_lasted_ms(
	const struct pin_stall *stall, const struct pin_stall_look_times *times)
{
	return (times->now_ns - stall->since_ns) / PIN_STALL_MS_NS;
}

#endif
