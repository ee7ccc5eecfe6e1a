/* SPDX-License-Identifier: MIT */
/*
 * Tasks that cannot go on. A task fails by returning a negative errno; where it
 * is too deep in its calls for that, pinion_task_panic() ends it, and it alone.
 *
 * A task that calls pthread_exit(), or lets a C++ exception out, is contained
 * as well: it fails with -EOWNERDEAD, is logged by name and counted in
 * `tasks_unwound`. The worker goes on, on the same thread, with its ring, its
 * arena, its queue and its requests in flight. The frames between are unwound:
 * C++ destructors, handlers of pthread_cleanup_push(), cleanup attributes of
 * code compiled with -fexceptions (PINION_AUTO_BUFFER among them). A lock that
 * none of these releases stays locked.
 *
 * Not promised: a thread that ends by the bare system call (SYS_exit) is gone.
 * After a task has called pthread_exit() the C library regards its thread as
 * ending, and leaves it out when the process changes its user (setuid(2)).
 */
#ifndef PINION_FAULT_H
#define PINION_FAULT_H

#include <pinion/version.h>

PINION_BEGIN_DECLS

/*
 * Ends the calling task, which fails with `error`, as if it had returned that;
 * its group, call, work item or future gets it. `message` is logged.
 *
 * Units: a negative errno; anything else becomes -EINVAL. `message` may be
 * NULL.
 * Context: a task on a worker: its `run` or `cancel`, or a function they call,
 * but not through a call of the library that is still under way (a callback of
 * a future, an engine of a scan); or a hook of the configuration other than
 * `after_start`, which then ends. Anywhere else it prints the message and
 * aborts.
 * Since: 0.1
 */
PINION_API void pinion_task_panic(int error, const char *message) __attribute__((noreturn));

PINION_END_DECLS

#endif
