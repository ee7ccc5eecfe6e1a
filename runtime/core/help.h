/* SPDX-License-Identifier: MIT */
/*
 * Help: a worker that has to block in a task runs others meanwhile.
 *
 * A task may have to wait for what another runtime's workers do, by a call that
 * blocks. Its worker would be lost for as long: with its ring, its timers, and
 * with all that only this worker may run. Among that can be what the others
 * wait for in turn, and then all wait for ever. So the worker goes on with its
 * loop, pin_worker_step(), above the task that waits, on the same stack, until
 * the wait is over. It sleeps as it always does, in its ring if anything is in
 * flight there: the wait is one like those of core/wait.h, whose message ends
 * that sleep.
 *
 * How many tasks may lie below each other so is `help_depth`; one more that has
 * to wait blocks its worker. What lies below can go on only when those above
 * are over, so waits for each other are possible still: knot.h finds them.
 *
 * What belongs to the task that waits is put aside and restored: its name and
 * lane, the place of its job, the end of its turn, the guard it is unwound to.
 * A task above it that panics, or ends its thread, lands above it as well.
 *
 * Not in hooks, nor before the loop has begun: there the worker blocks.
 *
 * Source: docs/DECISIONS.md, "A worker that blocks goes on".
 */
#ifndef PIN_CORE_HELP_H
#define PIN_CORE_HELP_H

#include "runtime/core/knot.h"
#include "runtime/core/wait.h"

/* One wait, in a frame of the task. */
struct pin_help {
	struct pin_blocked blocked;
	struct pin_waiters *waiters;
	struct pin_waiter *waiter; /* the caller's: it gets the value */
	uint64_t deadline_ns;
	struct pinion_wait wait; /* of one that helps */
	bool is_over;		 /* that one's task was run */
};

/*
 * pin_waiters_wait() for what the workers of `target` give, NULL: anybody. Any
 * thread; on others than workers it is just that. -EDEADLK: knot.h.
 */
int pin_help_wait(const struct pin_shared *target, struct pin_waiters *waiters,
	struct pin_waiter *waiter, uint64_t deadline_ns);

/*
 * The same for one whose caller cannot be told: others of a knot get -EDEADLK
 * instead, where there are any.
 */
int pin_help_wait_firmly(const struct pin_shared *target, struct pin_waiters *waiters,
	struct pin_waiter *waiter, uint64_t deadline_ns);

/*
 * On a worker: begins a wait for what a task will do that is given to `target`
 * next. 0: it is given to it then, and the wait is finished by the other, which
 * cannot fail. -EDEADLK: nobody would run it.
 */
int pin_help_begin_call(struct pin_help *help, const struct pin_shared *target,
	struct pin_waiters *waiters, struct pin_waiter *waiter);
void pin_help_finish_call(struct pin_help *help);

#endif
