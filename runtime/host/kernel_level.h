/* SPDX-License-Identifier: MIT */
/*
 * The ladder: which parts of io_uring are used together.
 *
 * Each rung stands for what a generation of kernels brought, from plain rings
 * to everything known here. The highest that the probe found is taken, unless
 * the configuration names a lower one or single features to do without; then
 * those are struck out of what the probe found, and all code above behaves as
 * it would on a kernel that never had them. So every rung can be tested on one
 * machine. Below the lowest rung there are no rings at all.
 *
 * Pure: tables over struct pin_kernel, no system calls. Called once per
 * runtime, before its workers start.
 *
 * Invariants: (1) a feature is only ever struck out, never added. (2) with
 * ring_error set no feature of rings is left.
 *
 * Elsewhere: kernel.c finds out what there is, io/ring_setup.c what a ring
 * makes of it.
 */
#ifndef PIN_HOST_KERNEL_LEVEL_H
#define PIN_HOST_KERNEL_LEVEL_H

#include "runtime/host/kernel.h"

/* What a level does without, and `without`: bits of enum pinion_io_feature. */
uint32_t pin_level_struck(uint32_t io_level, uint32_t without);

/*
 * Strikes them out of `kernel`. Where what is left cannot carry a ring, its
 * ring_error becomes -EOPNOTSUPP. Returns 0, or -EOPNOTSUPP when rings work
 * but what gave `io_level` its name is not there.
 */
int pin_level_apply(struct pin_kernel *kernel, uint32_t io_level, uint32_t without);

/* The rung that `kernel` stands on; PINION_IO_RING for the highest. */
uint32_t pin_level_reached(const struct pin_kernel *kernel);

/* As PINION_IO_LEVEL spells it. */
const char *pin_level_name(uint32_t io_level);

#endif
