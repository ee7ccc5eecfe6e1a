/* SPDX-License-Identifier: MIT */
/*
 * The invariants at every moment of a run, whatever the tasks do:
 *
 * (1) no worker sleeps while work is visible: when no thread can run and none
 *     has stalled in the middle of something, no worker sleeps beside a shared
 *     queue with work in it, and none sleeps elsewhere than in its ring while
 *     that holds completions of its requests. Where sleeps have a timeout as
 *     their safety net it is left to that, which must find nothing;
 * (2) no task that may run waits for longer than the case allows, nor for
 *     longer than it allows beside a sleeping worker;
 * (3) values that adapt stay in their range: polls of the LIFO slot in a row
 *     and of a turn in all, the interval of checks of the shared queue, and the
 *     number of searchers: never below zero, nor more than there are threads,
 *     as a waker counts the sleeper before it is up (AS-1, AS-38);
 * (4) where no other worker runs it: the task of an urgent request that is over
 *     waits for no more than one task of each lane and one of its worker's, and
 *     those of other requests are passed by 19 urgent ones in a row at most.
 *
 * The end of a run, and that each task is entered once, are workload.h's.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* `sleeper_limit_ns` 0: no limit of its own. */
void watch_begin(uint64_t age_limit_ns, uint64_t sleeper_limit_ns, bool has_net);

/* The rings are shared: any worker may run a task, so (4) is left out. */
void watch_shares_rings(void);

/* A task may run from now on; it got the given number. */
void watch_task_ready(uint32_t task);
/* It was entered, or will not be. */
void watch_task_gone(uint32_t task);

/* On its worker: it is of a request that is over, and runs here. */
void watch_task_bound(uint32_t task, bool is_urgent);
/* On a worker, whichever task it is. */
void watch_task_entered(uint32_t task);

/* By the world: when no thread can run, and whenever the clock has moved. */
void watch_sleepers(void);
void watch_age(uint64_t now_ns);
void watch_ranges(void);

#endif
