/* SPDX-License-Identifier: MIT */
/*
 * Asking workers to leave, and starting others.
 */
#include "runtime/core/resize.h"
#include "runtime/base/check.h"
#include "runtime/core/wake.h"

#include <errno.h>

static uint32_t serving(const struct pin_tier *tier)
{
	/* Relaxed: [lock:life] for who writes it. */
	return pin_load_relaxed_u32(&tier->serving_count);
}

static struct pin_worker *worker_at(
	struct pin_shared *shared, const struct pin_tier *tier, uint32_t number)
{
	return &shared->workers[tier->first_worker + number];
}

/* Down to `count`: asks all first, since each may take its time. */
static void dismiss(struct pin_shared *shared, struct pin_tier *tier, uint32_t count)
{
	for (uint32_t i = count; i < serving(tier); i++) {
		struct pin_worker *worker = worker_at(shared, tier, i);

		pin_store_release_u32(&worker->service, PIN_SERVICE_LEAVING); /* [RETIRE-2] */
	}
	/* Awake or not: a token is left with each, as at the end. */
	pin_wake_all(shared);
}

static void await_dismissed(struct pin_shared *shared, struct pin_tier *tier, uint32_t count)
{
	for (uint32_t i = count; i < serving(tier); i++) {
		pin_runtime_join_worker(worker_at(shared, tier, i));
	}
	/* Relaxed: a rule of thumb to others. */
	pin_store_relaxed_u32(&tier->serving_count, count);
}

/* All or none of those that a tier lacks. */
static int engage(struct pin_shared *shared, struct pin_tier *tier, uint32_t count)
{
	uint32_t before = serving(tier);

	for (uint32_t i = before; i < count; i++) {
		int rc = pin_runtime_start_worker(worker_at(shared, tier, i));

		if (rc < 0) {
			dismiss(shared, tier, before);
			await_dismissed(shared, tier, before);
			return rc;
		}
		pin_store_relaxed_u32(&tier->serving_count, i + 1);
	}
	return 0;
}

static int engage_all(struct pin_shared *shared, const uint32_t *counts)
{
	uint32_t before[PIN_TIERS_MAX];

	for (uint32_t i = 0; i < shared->tier_count; i++) {
		int rc;

		before[i] = serving(&shared->tiers[i]);
		rc = engage(shared, &shared->tiers[i], counts[i]);
		if (rc < 0) {
			for (uint32_t j = 0; j < i; j++) {
				if (serving(&shared->tiers[j]) > before[j]) {
					dismiss(shared, &shared->tiers[j], before[j]);
					await_dismissed(shared, &shared->tiers[j], before[j]);
				}
			}
			return rc;
		}
	}
	return 0;
}

static int resize(struct pin_shared *shared, const uint32_t *counts)
{
	int rc;

	if (!pin_gate_is_open(&shared->gate)) {
		return -ESHUTDOWN;
	}
	rc = engage_all(shared, counts);
	if (rc < 0) {
		return rc;
	}
	for (uint32_t i = 0; i < shared->tier_count; i++) {
		if (serving(&shared->tiers[i]) > counts[i]) {
			dismiss(shared, &shared->tiers[i], counts[i]);
		}
	}
	for (uint32_t i = 0; i < shared->tier_count; i++) {
		await_dismissed(shared, &shared->tiers[i], counts[i]);
	}
	return 0;
}

int pin_runtime_resize(struct pinion_runtime *runtime, const uint32_t *counts)
{
	struct pin_shared *shared = &runtime->shared;
	uint32_t nobody = 0;
	int rc;

	for (uint32_t i = 0; i < shared->tier_count; i++) {
		PIN_CHECK(counts[i] <= shared->tiers[i].worker_count);
	}
	PIN_CHECK(counts[shared->tier_count - 1] >= 1);
	if (!pin_cas_acq_rel_u32(&shared->is_resizing, &nobody, 1)) {
		return -EBUSY;
	}
	/* No other resize has it, so whoever does ends the runtime. */
	if (pin_lock_try(&runtime->life)) {
		rc = resize(shared, counts);
		pin_lock_release(&runtime->life, shared->host);
	} else {
		rc = -ESHUTDOWN;
	}
	pin_store_release_u32(&shared->is_resizing, 0);
	return rc;
}
