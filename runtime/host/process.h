/* SPDX-License-Identifier: MIT */
/*
 * Whether a runtime was created in this process or in one it was forked from.
 *
 * A child has none of its parent's workers, so every call that would need them
 * is refused there. A counter that fork(2) itself moves in the child costs one
 * load to look at; asking for the process id would cost a system call.
 */
#ifndef PIN_HOST_PROCESS_H
#define PIN_HOST_PROCESS_H

#include "runtime/base/atomic.h"

extern struct pin_atomic_u32 pin_forked_count; /* [W:a child after fork R:any] */

/*
 * Keeps the count from now on; `in_child` is called in each child as well, once
 * however often it is given. Any thread.
 */
void pin_forked_watch(void (*in_child)(void));

static inline uint32_t pin_forked_now(void)
{
	return pin_load_relaxed_u32(&pin_forked_count);
}

#endif
