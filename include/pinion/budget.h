/* SPDX-License-Identifier: MIT */
/*
 * A budget: limited amounts of up to four kinds, such as files in flight or
 * bytes in memory. A caller acquires all that it asks for or nothing; waits are
 * served in the order in which they began.
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
 * that was acquired has been released. A thread that then acquires all of it
 * may free it, though the last release may not yet have returned.
 * Since: 0.1
 */
struct pinion_budget {
	uint64_t private_[24];
};

/*
 * Initialises a budget of which nothing is acquired. `totals` has the amount of
 * each kind, and fixes the order of the kinds for all other calls. `runtime` is
 * the runtime whose tasks will release, or NULL.
 *
 * Shape: `totals` and all `amounts` have `kind_count` elements.
 * Units: of each kind, the caller's; kind_count: 1 … PINION_BUDGET_KINDS.
 * Context: any thread, while no other call uses the budget.
 * Errors: -EINVAL: kind_count.
 * Since: 0.1
 */
PINION_API int pinion_budget_init(struct pinion_budget *budget, struct pinion_runtime *runtime,
	const uint64_t *totals, uint32_t kind_count);

/*
 * Acquires the amounts if there is enough of each kind, and no wait is under
 * way.
 *
 * Context: any thread; never allocates; may wait for another thread that uses
 * the same budget at that moment.
 * Errors: -EAGAIN: too little now. -EINVAL: more than there ever is.
 * Since: 0.1
 */
PINION_API int pinion_budget_try_acquire(struct pinion_budget *budget, const uint64_t *amounts);

/*
 * Acquires the amounts, and sleeps until they are available, at most until
 * `deadline_ns`, as in struct pinion_wait. A large demand is not passed by:
 * later waits are served after it, however small they are.
 *
 * Context: as pinion_future_wait().
 * Errors: -ETIME: nothing is acquired. -EDEADLK: a worker thread of any
 * runtime, and the call would have to wait. -EINVAL: as
 * pinion_budget_try_acquire(). -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_budget_acquire_wait(
	struct pinion_budget *budget, const uint64_t *amounts, uint64_t deadline_ns);

/*
 * Acquires the amounts, and waits in a task: `wait->task` runs when they are
 * acquired, with a result of 0; with any other result nothing was acquired. See
 * pinion_wait(3).
 *
 * Owns: `amounts` stay in place until then.
 * Context: a task on a worker of `runtime`, which need not be the budget's.
 * Errors: -EPERM: not on such a worker. -EBUSY: the wait is under way already.
 * -EINVAL: as pinion_budget_try_acquire(); no `run`, flags, or `reserved` of
 * the wait is not 0. -ESHUTDOWN, -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_budget_acquire_async(struct pinion_runtime *runtime,
	struct pinion_budget *budget, const uint64_t *amounts, struct pinion_wait *wait);

/*
 * Gives amounts back, all that was acquired or a part, and serves waits. A
 * release of more than is acquired is a broken invariant and aborts with a
 * message.
 *
 * Context: any thread; as pinion_budget_try_acquire(). At most one system call
 * for each waiter served.
 * Since: 0.1
 */
PINION_API void pinion_budget_release(struct pinion_budget *budget, const uint64_t *amounts);

/*
 * Writes the free amount of each kind now; other threads may change that at
 * once.
 *
 * Context: any thread; as pinion_budget_try_acquire().
 * Since: 0.1
 */
PINION_API void pinion_budget_available(struct pinion_budget *budget, uint64_t *out_amounts);

PINION_END_DECLS

#endif
