/* SPDX-License-Identifier: MIT */
/*
 * A runtime's creation and its workers' threads, for crews and resizing.
 */
#ifndef PIN_API_RUNTIME_H
#define PIN_API_RUNTIME_H

#include "runtime/worker/runtime_state.h"

/*
 * As pinion_runtime_create(); of each tier of `config->lanes` only so many
 * workers are there at first. NULL: all, and for good.
 */
int pin_runtime_create(const struct pinion_config *config, const uint32_t *serving_counts,
	struct pinion_runtime **out_runtime);

/*
 * One that is OUT, and whose thread was joined, if it has had one: with `life`.
 * The error of starting it.
 */
int pin_runtime_start_worker(struct pin_worker *worker);

/* One that is on its way OUT; likewise. */
void pin_runtime_join_worker(struct pin_worker *worker);

#endif
