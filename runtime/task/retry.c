/* SPDX-License-Identifier: MIT */
/*
 * Retries: attempts of a caller's function, and pauses between them that grow,
 * on a timer.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/worker/state.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <pinion/retry.h>

_Static_assert(sizeof(struct pinion_retry) == 144, "released size");

enum {
	ATTEMPTS_STANDARD = 4,
	JITTER_PERCENT_STANDARD = 20,
	BASE_NS_STANDARD = 50 * 1000 * 1000,
};

#define CAP_NS_STANDARD UINT64_C(2000000000)
/* Doubling, and a share of it, cannot overflow below. */
#define WAIT_NS_MAX (UINT64_C(1) << 56)

/*
 * Errors that the next attempt may not meet: resources in use, interrupted
 * calls, lost connections. Errors of the data or the caller are final.
 */
bool pinion_error_is_transient(int error)
{
	switch (-error) {
	case EAGAIN:
	case EBUSY:
	case EINTR:
	case ENOBUFS:
	case ENOMEM:
	case ETIME:
	case ETIMEDOUT:
	case ECONNREFUSED:
	case ECONNRESET:
	case ECONNABORTED:
	case EHOSTUNREACH:
	case ENETDOWN:
	case ENETRESET:
	case ENETUNREACH:
	case EPIPE:
		return true;
	default:
		return false;
	}
}

static uint64_t next_random(struct pinion_retry *retry)
{
	/* splitmix64: one word of state, and any start is as good. */
	uint64_t word = retry->private_random += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
	return word ^ (word >> 31);
}

static uint64_t wait_ns(struct pinion_retry *retry)
{
	uint64_t wait = retry->base_ns;
	uint64_t spread;

	for (uint32_t i = 1; i < retry->attempts && wait < retry->cap_ns; i++) {
		wait *= 2;
	}
	wait = wait < retry->cap_ns ? wait : retry->cap_ns;
	PIN_DCHECK(retry->attempts > 0); /* a wait is after an attempt */
	spread = wait / 100 * retry->jitter_percent;
	PIN_DCHECK(spread <= wait && wait <= UINT64_MAX / 4); /* no sum here wraps */
	return wait - spread + next_random(retry) % (2 * spread + 1);
}

/* False: it waits for its next attempt, or is over; the struct may be gone. */
static bool finish(struct pinion_retry *retry, int result)
{
	PIN_DCHECK(result != PINION_RETRY_PENDING);
	if (pinion_error_is_transient(result) && retry->attempts < retry->attempts_max &&
		pinion_timer_start(retry->private_runtime, &retry->timer,
			pinion_clock_now_ns() + wait_ns(retry)) == 0) {
		return false;
	}
	retry->end(retry, result);
	return true;
}

/* When an attempt is unwound; NULL when it has returned. */
static void abandon(struct pinion_retry *const *unended)
{
	if (*unended != NULL) {
		(*unended)->end(*unended, pin_fault_error());
	}
}

static int run_attempt(struct pinion_task *task)
{
	struct pinion_retry *retry = PIN_CONTAINER_OF(task, struct pinion_retry, timer.task);
	__attribute__((cleanup(abandon))) struct pinion_retry *unended = retry;
	int result;

	pin_fault_name((pin_fault_fn)retry->attempt);
	PIN_DCHECK(task->run == run_attempt && retry->attempts < UINT32_MAX);
	retry->attempts++;
	result = retry->attempt(retry);
	unended = NULL;
	if (result == PINION_RETRY_PENDING) {
		return 0;
	}
	/*
	 * Only a result that is not tried again is a failure of the runtime's.
	 */
	return finish(retry, result) && result < 0 ? result : 0;
}

static void cancel_attempt(struct pinion_task *task)
{
	struct pinion_retry *retry = PIN_CONTAINER_OF(task, struct pinion_retry, timer.task);

	PIN_DCHECK(task->cancel == cancel_attempt);
	retry->end(retry, -ECANCELED);
}

void pinion_retry_init(struct pinion_retry *retry, pinion_retry_fn attempt, pinion_retry_end_fn end)
{
	*retry = (struct pinion_retry){
		.timer = {.task = {.run = run_attempt, .cancel = cancel_attempt}},
		.attempt = attempt,
		.end = end,
		.attempts_max = ATTEMPTS_STANDARD,
		.jitter_percent = JITTER_PERCENT_STANDARD,
		.base_ns = BASE_NS_STANDARD,
		.cap_ns = CAP_NS_STANDARD,
	};
}

int pinion_retry_start(struct pinion_runtime *runtime, struct pinion_retry *retry)
{
	if (retry->attempt == NULL || retry->end == NULL || retry->attempts_max == 0 ||
		retry->jitter_percent > 100 || retry->base_ns > WAIT_NS_MAX ||
		retry->cap_ns > WAIT_NS_MAX) {
		return -EINVAL;
	}
	if (!pin_task_is_idle(&retry->timer.task)) {
		return -EBUSY;
	}
	retry->attempts = 0;
	retry->private_runtime = runtime;
	retry->private_random = pinion_clock_now_ns() ^ (uintptr_t)retry;
	return pinion_task_spawn(runtime, &retry->timer.task);
}

void pinion_retry_report(struct pinion_retry *retry, int result)
{
	if (result == PINION_RETRY_PENDING) {
		pin_check_misused(pin_runtime_log(retry->private_runtime),
			"pinion_retry_report() was given PINION_RETRY_PENDING: report 0 or the "
			"error the attempt ended with");
	}
	finish(retry, result);
}

int pinion_retry_cancel(struct pinion_runtime *runtime, struct pinion_retry *retry)
{
	return pinion_timer_cancel(runtime, &retry->timer);
}
