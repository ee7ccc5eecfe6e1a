/* SPDX-License-Identifier: MIT */
/*
 * What the layers above may know of a runtime beyond its public interface.
 */
#ifndef PIN_CORE_RUNTIME_H
#define PIN_CORE_RUNTIME_H

#include "runtime/host/host.h"

#include <pinion/runtime.h>

const struct pin_host *pin_runtime_host(const struct pinion_runtime *runtime);

/*
 * A place for one task, before there is one: afterwards the task cannot be
 * refused. Exactly one of the other two follows, on the same thread. Any
 * thread; while an outside one holds a place, a drain waits for it.
 * -ESHUTDOWN, as pinion_spawn().
 */
int pin_runtime_reserve(struct pinion_runtime *runtime);
void pin_runtime_spawn_reserved(struct pinion_runtime *runtime, struct pinion_task *task);
void pin_runtime_forgo(struct pinion_runtime *runtime);

/* Size of its large buffers. */
uint32_t pin_runtime_buffer_bytes(const struct pinion_runtime *runtime);

#endif
