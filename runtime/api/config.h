/* SPDX-License-Identifier: MIT */
/*
 * Defaults and validation of a runtime's configuration.
 */
#ifndef PIN_API_CONFIG_H
#define PIN_API_CONFIG_H

#include "runtime/base/log.h"

#include <pinion/config.h>

/*
 * Copies what the caller gave into a struct of this library's size and checks
 * it. -E2BIG, -EINVAL as pinion_runtime_create(); the log names the field.
 */
int pin_config_accept(struct pinion_config *out_config, const struct pinion_config *given);

/* Fills in what an accepted configuration left to the library. */
void pin_config_complete(struct pinion_config *config, uint32_t default_worker_count);

#endif
