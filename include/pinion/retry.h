/* SPDX-License-Identifier: MIT */
/*
 * Retries: an attempt that fails for a transient reason is made again, after a
 * pause that grows each time and is a little random, so that many callers do
 * not come back at once. Between attempts only a timer exists.
 */
#ifndef PINION_RETRY_H
#define PINION_RETRY_H

#include <limits.h>
#include <pinion/timer.h>
#include <stdbool.h>

PINION_BEGIN_DECLS

struct pinion_retry;

enum {
	/* Of an attempt whose result pinion_retry_report() will give. */
	PINION_RETRY_PENDING = INT_MAX,
};

/*
 * One attempt. 0 or more: success; a negative errno: failure, and it is made
 * again if pinion_error_is_transient() says so and an attempt is left;
 * PINION_RETRY_PENDING: it has only begun.
 *
 * Context: a task on a worker. An attempt that ends by pinion_task_panic() was
 * the last.
 * Since: 0.1
 */
typedef int (*pinion_retry_fn)(struct pinion_retry *retry);

/*
 * The end, once: the result of the last attempt, or -ECANCELED. The struct is
 * the caller's again.
 *
 * Context: as pinion_retry_fn, or the caller of pinion_retry_report().
 * Since: 0.1
 */
typedef void (*pinion_retry_end_fn)(struct pinion_retry *retry, int result);

/*
 * Shape: embeddable; pinion_retry_init() sets all of it, then change the fields
 * up to `cap_ns` that should differ.
 * Owns: the caller's memory, to stay in place from a successful
 * pinion_retry_start() until `end` is entered.
 * Source: four attempts, 50 ms, 2 s and 20 % are what object stores' clients
 * use.
 * Since: 0.1
 */
struct pinion_retry {
	struct pinion_timer timer; /* the library's, but for `task.flags` */
	pinion_retry_fn attempt;
	pinion_retry_end_fn end;
	uint32_t attempts_max;	 /* 1 … UINT32_MAX. Default 4 */
	uint32_t jitter_percent; /* 0 … 100: a pause is up to that much longer or shorter. 20 */
	uint64_t base_ns;	 /* the first pause, doubled each time. 50 ms */
	uint64_t cap_ns;	 /* the longest pause, before the jitter. 2 s */
	uint32_t attempts;	 /* made so far; to be read in `attempt` and `end` */
	uint32_t private_flags;
	struct pinion_runtime *private_runtime;
	uint64_t private_random;
};

/* Writes every default. Context: any thread. Since: 0.1 */
PINION_API void pinion_retry_init(
	struct pinion_retry *retry, pinion_retry_fn attempt, pinion_retry_end_fn end);

/*
 * Makes the first attempt, soon, as a task.
 *
 * Context: as pinion_task_spawn().
 * Errors: as pinion_task_spawn(); -EBUSY: also while its next attempt is due.
 * -EINVAL: also if a field is out of range, or `attempt` or `end` is missing.
 * The struct is the caller's then.
 * Since: 0.1
 */
PINION_API int pinion_retry_start(struct pinion_runtime *runtime, struct pinion_retry *retry);

/*
 * Reports the result of a pending attempt, once.
 *
 * Context: a task of the runtime; or any thread that makes sure that the
 * runtime is not drained meanwhile.
 * Since: 0.1
 */
PINION_API void pinion_retry_report(struct pinion_retry *retry, int result);

/*
 * Ends a retry while it waits for its next attempt: `end` gets -ECANCELED, on a
 * worker.
 *
 * Context: as pinion_timer_cancel(); the caller makes sure that the retry is
 * not over.
 * Errors: -EALREADY: it does not wait; an attempt runs, or is about to.
 * -ECHILD.
 * Since: 0.1
 */
PINION_API int pinion_retry_cancel(struct pinion_runtime *runtime, struct pinion_retry *retry);

/*
 * Says whether the reason of an error may pass by itself: -EAGAIN, -EBUSY,
 * -EINTR, -ENOBUFS, -ENOMEM, -ETIME, -ETIMEDOUT, and of networks -ECONNREFUSED,
 * -ECONNRESET, -ECONNABORTED, -EHOSTUNREACH, -ENETDOWN, -ENETRESET,
 * -ENETUNREACH, -EPIPE.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API bool pinion_error_is_transient(int error);

PINION_END_DECLS

#endif
