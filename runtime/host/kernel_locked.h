/* SPDX-License-Identifier: MIT */
/*
 * Waiting for locked memory that the kernel has yet to give back.
 *
 * The kernel takes a closed ring apart later, after 6 to 40 ms as measured on
 * Linux 6.18, and counts its queues as its user's locked memory until then.
 * Who makes rings soon after, in this process or the next, is refused them
 * under a limit that is large enough for what is in use.
 *
 * Called by whatever makes rings or registers memory, on any thread.
 *
 * Elsewhere: what is registered is given back at once, io/ring_setup.c.
 * Source: RLIMIT_MEMLOCK of getrlimit(2);
 * tests/unit/host/locked_memory_comes_back.
 */
#ifndef PIN_HOST_KERNEL_LOCKED_H
#define PIN_HOST_KERNEL_LOCKED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * After -ENOMEM for `bytes`: sleeps, so that it can be tried once more. `tries`
 * begins with 0 and goes up by one for each sleep; together they take 127 ms.
 * False, at once: there is no limit, or it is smaller than that anyway, or all
 * tries are used up.
 */
bool pin_locked_await(uint64_t bytes, uint32_t *tries);

#endif
