/* SPDX-License-Identifier: MIT */
/*
 * A budget: so many of something, files in flight, bytes in memory, of up to
 * four kinds, and those who want more than there is wait for it in the order of
 * their coming. All that somebody wants is had together or not at all.
 */
#ifndef PINION_BUDGET_H
#define PINION_BUDGET_H

#include <pinion/wait.h>

PINION_BEGIN_DECLS

enum {
	PINION_BUDGET_KINDS = 4, /* of units in one budget, at most */
};

/*
 * Shape: 192 bytes, embeddable; pinion_budget_init() sets all of it.
 * Owns: the caller's memory, to stay in place until every wait is over and all
 * that was acquired has been released. Whoever then acquires all of it may free
 * it, though the last release may not yet have returned.
 * Since: 0.1
 */
struct pinion_budget {
	uint64_t private_[24];
};

/*
 * Makes it one of which nothing is acquired. `totals` says how much there is of
 * each kind, and with that what their order is in all other calls. `runtime` is
 * the one whose tasks are going to release, or NULL.
 *
 * Shape: `totals` and all `amounts` have `kind_count` elements.
 * Units: of each kind, the caller's; kind_count: 1 … PINION_BUDGET_KINDS.
 * Context: any thread, while nobody else uses it.
 * Errors: -EINVAL: kind_count.
 * Since: 0.1
 */
PINION_API int pinion_budget_init(struct pinion_budget *budget, struct pinion_runtime *runtime,
	const uint64_t *totals, uint32_t kind_count);

/*
 * Acquires the amounts if there is enough of each kind, and nobody waits.
 *
 * Context: any thread; never allocates; may wait for another thread that is
 * just using the same budget.
 * Errors: -EAGAIN: too little now. -EINVAL: more than there ever is.
 * Since: 0.1
 */
PINION_API int pinion_budget_try_acquire(struct pinion_budget *budget, const uint64_t *amounts);

/*
 * Likewise, but sleeps until it is had, at most until `deadline_ns`, as in
 * struct pinion_wait. Who wants much is not passed by: those who come later
 * wait behind, however little they want.
 *
 * Context: as pinion_future_wait().
 * Errors: -ETIME: nothing is acquired. -EDEADLK: a worker thread of any
 * runtime, and it cannot be had at once. -EINVAL: as above. -ECHILD: as
 * pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_budget_acquire_wait(
	struct pinion_budget *budget, const uint64_t *amounts, uint64_t deadline_ns);

/*
 * Begins to wait for that in a task: `wait->task` runs when the amounts are
 * acquired, with a result of 0; with any other, nothing is. See pinion_wait(3).
 *
 * Owns: `amounts` stay in place until then.
 * Context: a task on a worker of `runtime`, which need not be the budget's.
 * Errors: -EPERM: not on such a worker. -EBUSY: the wait is under way already.
 * -EINVAL: more than there ever is; no `run`, flags, or `reserved` is not 0.
 * -ESHUTDOWN, -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_budget_acquire_async(struct pinion_runtime *runtime,
	struct pinion_budget *budget, const uint64_t *amounts, struct pinion_wait *wait);

/*
 * Gives amounts back, all that was acquired or a part, and serves who waits.
 * More than is out is a broken invariant and aborts with a message.
 *
 * Context: any thread; as pinion_budget_try_acquire(). At most one system call
 * per waiter served.
 * Since: 0.1
 */
PINION_API void pinion_budget_release(struct pinion_budget *budget, const uint64_t *amounts);

/*
 * What there is now of each kind; others may change that at once.
 *
 * Context: any thread; as pinion_budget_try_acquire().
 * Since: 0.1
 */
PINION_API void pinion_budget_available(struct pinion_budget *budget, uint64_t *out_amounts);

PINION_END_DECLS

#endif
