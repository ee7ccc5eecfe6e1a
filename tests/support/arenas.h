/* SPDX-License-Identifier: MIT */
/*
 * What tests of workers' arenas ask of a runtime.
 */
#ifndef PIN_TESTS_SUPPORT_ARENAS_H
#define PIN_TESTS_SUPPORT_ARENAS_H

#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"

/* Whether its rings take registered buffers, unless a limit forbids it. */
static inline bool arenas_may_register(const struct pinion_runtime *runtime)
{
	return runtimes_info(runtime).uses_ring != 0 &&
		pin_kernel_has(&runtime->shared.kernel, PINION_IO_REGISTERED_BUFFERS);
}

#endif
