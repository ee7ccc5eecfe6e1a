/* SPDX-License-Identifier: MIT */
/*
 * What a group consists of: the count of its tasks that are not over, and those
 * who wait until that is 0.
 *
 * Who learns that it is 0 may free the group. So it becomes 0 only under the
 * lock of the waiters, which whoever looks takes as well: the last task lets go
 * of the lock, and that was its last touch. All other changes of the count are
 * without the lock.
 *
 *     task                                joiner
 *     count > 1: CAS to count - 1         lock; count is 0: it is over
 *     count is 1: lock, subtract, serve,  else queue, unlock
 *                 unlock
 *
 * [GROUP-1] a task ends (RMW, acq_rel) -> the next (RMW, acq_rel), and the last
 * by the lock -> joiner: it sees what all of them wrote, and the first failure.
 */
#ifndef PIN_TASK_GROUP_H
#define PIN_TASK_GROUP_H

#include "runtime/worker/wait.h"

#include <pinion/group.h>

struct pin_group {
	struct pin_waiters waiters;
	struct pinion_runtime *runtime;	     /* [const] */
	uint32_t flags;			     /* [const] */
	struct pin_atomic_u32 is_cancelled;  /* [W:any R:any] set once */
	struct pin_atomic_u32 first_failure; /* [W:any R:any] its errno; 0: none */
	struct pin_atomic_u64 task_count;    /* [W:any R:any] not over; 0: under the lock */
};

_Static_assert(sizeof(struct pin_group) <= sizeof(struct pinion_group), "fits");
_Static_assert(sizeof(struct pinion_group) == 128, "released size");
_Static_assert(sizeof(struct pinion_group_task) == 64, "released size");

#endif
