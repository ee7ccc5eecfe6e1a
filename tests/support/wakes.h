/* SPDX-License-Identifier: MIT */
/*
 * How often a thread woke workers: its futex wakes on words of a runtime's
 * workers, counted where the library makes them. Those that hand over a lock
 * are none.
 */
#ifndef PIN_TESTS_SUPPORT_WAKES_H
#define PIN_TESTS_SUPPORT_WAKES_H

#include "tests/support/sleepers.h"
#include "tests/support/syscalls.h"
#include "tests/support/tasks.h"

#include "runtime/worker/worker.h"

#include <linux/futex.h>
#include <sys/syscall.h>

/* By the calling thread, since it set it to 0. */
static _Thread_local uint32_t wakes_count;

static struct pin_atomic_u64 wakes_shared; /* of the runtime, 0: none */
static struct pin_atomic_u32 wakes_found;

static inline bool wakes_note(long number, const long *arguments, long *out_result)
{
	const struct pin_shared *shared =
		(const struct pin_shared *)(uintptr_t)pin_load_acquire_u64(&wakes_shared);
	uintptr_t word = (uintptr_t)arguments[0];

	(void)out_result;
	if (number == SYS_futex && (arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAKE &&
		shared != NULL && word >= (uintptr_t)shared->workers &&
		word < (uintptr_t)(shared->workers + shared->worker_count)) {
		wakes_count++;
	}
	return false;
}

/* To be called first, while there is one thread. */
static inline void wakes_begin(void)
{
	syscalls_begin();
	syscalls_hook = wakes_note;
}

static inline int wakes_find(struct pinion_task *task)
{
	(void)task;
	pin_store_release_u64(&wakes_shared, (uintptr_t)pin_worker_current()->shared);
	tasks_signal(&wakes_found);
	return 0;
}

/*
 * Counts for this runtime from now on. Runs a task to learn where the workers
 * are, and returns when all of them have gone to sleep.
 */
static inline void wakes_watch(struct pinion_runtime *runtime)
{
	static struct pinion_task task;
	const struct pin_shared *shared;

	task = (struct pinion_task){.run = wakes_find};
	pin_store_release_u32(&wakes_found, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&wakes_found, 1);
	shared = (const struct pin_shared *)(uintptr_t)pin_load_acquire_u64(&wakes_shared);
	sleepers_await(&shared->classes[0], shared->worker_count);
	wakes_count = 0;
}

/* Before the runtime is destroyed. */
static inline void wakes_forget(void)
{
	pin_store_release_u64(&wakes_shared, 0);
}

#endif
