/* SPDX-License-Identifier: MIT */
/*
 * What the scanning layer may know of a runtime beyond its public interface.
 */
#ifndef PIN_CORE_RUNTIME_H
#define PIN_CORE_RUNTIME_H

#include "runtime/host/host.h"

#include <pinion/runtime.h>

const struct pin_host *pin_runtime_host(const struct pinion_runtime *runtime);

/* Size of its large buffers. */
uint32_t pin_runtime_buffer_bytes(const struct pinion_runtime *runtime);

#endif
