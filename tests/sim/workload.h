/* SPDX-License-Identifier: MIT */
/*
 * The workload of a run: a runtime, outside threads, tasks that do what their
 * programs say, and the end at a random moment. It keeps the books:
 *
 * (1) a task that was accepted is entered once, by `run` or, under a stop, by
 *     `cancel`; a refused task never; a read that was accepted by `run`;
 * (2) a read delivers the bytes the file holds there, all that were asked for
 *     or up to the file's end; or an error that the fault plan allows;
 * (3) at the end the runtime's counters are those of the books;
 * (4) nothing is left of it: no mapping, no ring, no thread.
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "tests/sim/case.h"

/* Tasks and reads of one run; cases stay below. */
#define WORKLOAD_TASKS_MAX 2048u

/* Before a run; workload_run is its body. */
void workload_begin(const struct sim_case *test);
void workload_run(void);

bool workload_is_worker(uint32_t thread);

/*
 * A posted request was taken, or the device begins an attempt at a request; it
 * ends, and from then on the request may run, unless it begins anew.
 */
void workload_request_starts(uint64_t user_data);
void workload_request_completes(uint64_t user_data);

/* On its worker, which hands it over: its task is ready to run there. */
void workload_request_is_over(uint64_t user_data);

#endif
