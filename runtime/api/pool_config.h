/* SPDX-License-Identifier: MIT */
/*
 * Defaults, validation and sizes of a pool's configuration.
 */
#ifndef PIN_API_POOL_CONFIG_H
#define PIN_API_POOL_CONFIG_H

#include "runtime/base/log.h"

#include <pinion/pool.h>

/* Bytes of one buffer with what stands in front of it. */
static inline uint64_t pin_pool_config_stride(const struct pinion_pool_config *config)
{
	return (uint64_t)config->headroom_bytes + config->buffer_bytes;
}

/*
 * Copies what the caller gave into a struct of this library's size, checks it
 * and fills in what was left to the library. `runtime_workers` is 0 without a
 * runtime. Errors as pinion_pool_create(); the log names the field.
 */
int pin_pool_config_accept(struct pinion_pool_config *out_config,
	const struct pinion_pool_config *given, uint32_t runtime_workers,
	const struct pin_log *log);

#endif
