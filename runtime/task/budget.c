/* SPDX-License-Identifier: MIT */
/*
 * Budgets: amounts of several kinds, taken together in one step or waited for
 * in order.
 *
 * Any thread takes and gives back. One lock holds the amounts and the queue of
 * waiters, so a release serves the oldest waiter itself.
 */
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"

#include <errno.h>
#include <string.h>

static struct pin_budget *own(struct pinion_budget *budget)
{
	return (struct pin_budget *)(void *)budget->private_;
}

/* Under the lock: what is there is at most what there is in all. */
static __attribute__((unused)) bool is_sound(const struct pin_budget *budget)
{
	for (uint32_t i = 0; i < budget->kind_count; i++) {
		if (budget->available[i] > budget->totals[i]) {
			return false;
		}
	}
	return budget->kind_count <= PINION_BUDGET_KINDS;
}

static bool fit(const struct pin_budget *budget, const uint64_t *amounts, const uint64_t *limits)
{
	for (uint32_t i = 0; i < budget->kind_count; i++) {
		if (amounts[i] > limits[i]) {
			return false;
		}
	}
	return true;
}

/* Under the lock. */
static bool take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	struct pin_budget *budget = arg;
	const uint64_t *amounts = (const uint64_t *)(uintptr_t)demand;

	(void)out_value;
	PIN_DCHECK(is_sound(budget) && fit(budget, amounts, budget->totals));
	if (!fit(budget, amounts, budget->available)) {
		return false;
	}
	for (uint32_t i = 0; i < budget->kind_count; i++) {
		PIN_CHECK(amounts[i] <= budget->available[i]);
		budget->available[i] -= amounts[i];
	}
	PIN_DCHECK(is_sound(budget));
	return true;
}

int pinion_budget_init(struct pinion_budget *budget, struct pinion_runtime *runtime,
	const uint64_t *totals, uint32_t kind_count)
{
	struct pin_budget *self = own(budget);

	if (kind_count == 0 || kind_count > PINION_BUDGET_KINDS) {
		return -EINVAL;
	}
	memset(budget, 0, sizeof(*budget));
	self->runtime = runtime;
	self->kind_count = kind_count;
	memcpy(self->totals, totals, kind_count * sizeof(totals[0]));
	memcpy(self->available, totals, kind_count * sizeof(totals[0]));
	pin_waiters_init(&self->waiters, &pin_host_linux, take, self, PIN_WAITERS_LOCKED);
	PIN_DCHECK(is_sound(self) && fit(self, self->totals, self->available));
	return 0;
}

int pinion_budget_try_acquire(struct pinion_budget *budget, const uint64_t *amounts)
{
	struct pin_budget *self = own(budget);
	struct pin_waiter waiter;

	if (!fit(self, amounts, self->totals)) {
		return -EINVAL;
	}
	pin_waiter_init(&waiter, (uintptr_t)amounts, NULL);
	return pin_waiters_try(&self->waiters, &waiter) ? 0 : -EAGAIN;
}

int pinion_budget_acquire_wait(
	struct pinion_budget *budget, const uint64_t *amounts, uint64_t deadline_ns)
{
	struct pin_budget *self = own(budget);
	struct pin_waiter waiter;

	if (!fit(self, amounts, self->totals)) {
		return -EINVAL;
	}
	pin_waiter_init(&waiter, (uintptr_t)amounts, NULL);
	return pin_runtime_wait(self->runtime, &self->waiters, &waiter, deadline_ns);
}

int pinion_budget_acquire_async(struct pinion_runtime *runtime, struct pinion_budget *budget,
	const uint64_t *amounts, struct pinion_wait *wait)
{
	struct pin_budget *self = own(budget);
	struct pin_wait_aim aim = {.waiters = &self->waiters, .demand = (uintptr_t)amounts};

	if (!fit(self, amounts, self->totals)) {
		return -EINVAL;
	}
	return pin_runtime_await(runtime, wait, &aim);
}

void pinion_budget_release(struct pinion_budget *budget, const uint64_t *amounts)
{
	struct pin_budget *self = own(budget);

	pin_waiters_lock(&self->waiters);
	PIN_DCHECK(is_sound(self));
	for (uint32_t i = 0; i < self->kind_count; i++) {
		if (PIN_UNLIKELY(amounts[i] > self->totals[i] - self->available[i])) {
			pin_check_misused(pin_runtime_log(self->runtime),
				"pinion_budget_release() of %llu units of kind %u where %llu are "
				"out: release each acquired unit once",
				(unsigned long long)amounts[i], i,
				(unsigned long long)(self->totals[i] - self->available[i]));
		}
		self->available[i] += amounts[i];
		PIN_DCHECK(self->available[i] <= self->totals[i]);
	}
	/*
	 * It may be gone afterwards: a thread that has all of it may free it.
	 */
	pin_waiters_serve_unlock(&self->waiters);
}

void pinion_budget_available(struct pinion_budget *budget, uint64_t *out_amounts)
{
	struct pin_budget *self = own(budget);

	pin_waiters_lock(&self->waiters);
	PIN_DCHECK(is_sound(self));
	memcpy(out_amounts, self->available, self->kind_count * sizeof(out_amounts[0]));
	pin_waiters_unlock(&self->waiters);
}
