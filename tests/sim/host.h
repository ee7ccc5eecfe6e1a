/* SPDX-License-Identifier: MIT */
/*
 * The simulated host before and after a run; runtime/host/host.h describes it.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "tests/sim/case.h"

void host_begin(const struct sim_faults *faults);
/* Every mapping was given back. */
void host_end(void);

/* Whether that thread was started as a worker's. */
bool host_is_worker(uint32_t thread);

#endif
