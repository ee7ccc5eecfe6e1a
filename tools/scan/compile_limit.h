/* SPDX-License-Identifier: MIT */
/*
 * The limit of --max-compile-time. Nothing can end a compilation but the end of
 * the process, and one rule alone may take minutes, on the main thread too
 * where no other can be started. So a timer of the process ends it: that needs
 * no thread, no descriptor and no room in the queue of signals.
 *
 * Only one of each at a time, on the main thread.
 */
#ifndef PINION_TOOLS_SCAN_COMPILE_LIMIT_H
#define PINION_TOOLS_SCAN_COMPILE_LIMIT_H

#include <stdint.h>

/*
 * From now on, `limit_ns` later the process ends with EXIT_STATUS_TROUBLE and
 * says that the rules take too long; `rule_count` 0: their number is not known.
 * Nothing may have been written before the limit ends that this would lose.
 */
void compile_limit_begin(uint64_t limit_ns, uint32_t rule_count);

/* Compiled. Accepts a limit that was never begun, or has ended. */
void compile_limit_end(void);

#endif
