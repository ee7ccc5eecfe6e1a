/* SPDX-License-Identifier: MIT */
/*
 * Goal: when arenas are registered for all workers, that happens once each has
 * its memory; each worker clones what it sees whole; and what they clone from
 * goes when all have. Also when a worker fails the creation comes to its end.
 * [ARENA-1]
 * Method: two workers start under the explorer. What they and the creator do to
 * the registry is doubled by relaxed atomics, whose values are checked.
 */
#include "runtime/base/base.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/io/ring_model.h"

#include <errno.h>

enum { WORKERS = 2 };

static void start(uint32_t failure)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;
	struct pinion_tuning tuning;
	int rc;

	model_rings_begin(PIN_DOORBELL_MESSAGE);
	model_arenas_begin(true, failure);
	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.tuning = &tuning;
	config.worker_count = WORKERS;
	tuning.steal_tries = 1;
	rc = pinion_runtime_create(&config, &runtime);
	MODEL_CHECK(rc == (failure < WORKERS ? -ENOMEM : 0));
	if (rc == 0) {
		model_runtime_end(runtime);
	}
}

static void run_all(void)
{
	start(UINT32_MAX);
}

static void run_failure(void)
{
	start(1);
}

static const struct model_mutant mutants[] = {
	{"memory is not seen", {MODEL_RELAXED, "arrive", NULL}},
	{"arrivals are not acquired", {MODEL_RELAXED, "await_workers", NULL}},
	{"registered, not released", {MODEL_RELAXED, "start_threads", NULL}},
	{"registered, not acquired", {MODEL_RELAXED, "join_registry", NULL}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_mutant failure_mutants[] = {
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"all", run_all, 1, 1, 0, mutants, NULL},
	{"failure", run_failure, 1, 1, 0, failure_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("start", cases, PIN_ARRAY_COUNT(cases));
}
