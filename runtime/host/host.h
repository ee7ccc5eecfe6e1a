/* SPDX-License-Identifier: MIT */
/*
 * The seam to everything non-deterministic.
 *
 * Clock, threads, sleeping and waking, ring calls and memory mapping are
 * reached through one table of functions, so that the code above it runs
 * unchanged on a real machine and under a simulated one. It is passed down at
 * creation and kept by each user; there is no global.
 *
 * Reading directories and files outside a ring is not here: it is done by the
 * layers that own it, in code the scheduler never enters.
 */
#ifndef PIN_HOST_HOST_H
#define PIN_HOST_HOST_H

#include "runtime/base/atomic.h"
#include "runtime/base/check.h"

#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIN_NO_DEADLINE UINT64_MAX

/* How a mapping is backed; from best to worst. */
enum pin_page_kind {
	PIN_PAGES_HUGETLB, /* set aside by the administrator */
	PIN_PAGES_THP,	   /* asked of the kernel by madvise */
	PIN_PAGES_SMALL,   /* 4 KiB */
};

struct pin_thread_state;

/* Beyond the nicest, 19. */
#define PIN_NICE_IDLE 20

/* See heap.h. Any thread, several at once. */
struct pin_heap {
	/* NULL: there is none. */
	void *(*allocate)(void *arg, size_t align, size_t bytes);
	void (*release)(void *arg, void *memory, size_t align, size_t bytes);
	void *arg;
};

struct pin_host {
	/* Monotonic nanoseconds. */
	uint64_t (*now_ns)(void);

	/*
	 * Sleeps while *word == expected, at most until `deadline_ns`. May
	 * return early; 0 or -ETIMEDOUT.
	 */
	int (*futex_wait)(struct pin_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns);
	void (*futex_wake)(struct pin_atomic_u32 *word, uint32_t count);
	void (*yield)(void);

	/*
	 * A descriptor that others can sleep on: readable from a raise to the
	 * next clear, which says whether it was. Not in children that exec.
	 */
	int (*event_create)(void);
	void (*event_raise)(int fd);
	bool (*event_clear)(int fd);
	void (*event_close)(int fd);

	/*
	 * Sleeps until one of them is ready, as ppoll(2) has it, at most until
	 * `deadline_ns`; 0: looks only. How many are; 0 or an error: none as
	 * far as it knows, and it may have returned early.
	 */
	int (*descriptors_wait)(struct pollfd *descriptors, uint32_t count, uint64_t deadline_ns);

	/*
	 * Makes every other running thread of the process pass a full fence,
	 * and passes one itself. False where the kernel cannot.
	 */
	bool (*fence_all)(void);

	/*
	 * Threads block every signal, so that handlers run on the embedder's.
	 * `stack_bytes` 0: the process's default.
	 */
	int (*thread_start)(
		pthread_t *out_thread, size_t stack_bytes, void *(*entry)(void *), void *arg);
	void (*thread_join)(pthread_t thread);
	/*
	 * Calls a function on a thread that has ended by the return; on this
	 * one where there is none to be had. For rings that are set up outside
	 * of workers: the kernel takes a closed ring down in its own time, and
	 * then interrupts what system calls those threads are in, without a
	 * signal, that have set it up or entered it.
	 */
	void (*thread_call)(void (*fn)(void *arg), void *arg);
	/*
	 * Has the calling thread's sleeps end when they should, not up to 50 us
	 * later, as the kernel otherwise may for the sake of fewer interrupts.
	 */
	void (*thread_sleep_exactly)(void);
	/*
	 * Makes the calling thread nicer by `niceness`, up to 19 in all;
	 * PIN_NICE_IDLE: it yields to any. A thread cannot take it back.
	 */
	int (*thread_make_way)(uint32_t niceness);
	/* Binds the calling thread to these CPUs, at least one. */
	int (*thread_bind)(const uint32_t *cpu_indices, uint32_t count);
	/*
	 * Binds the calling thread to them again where it may run on others
	 * too. 1: that was so; 0: it was not, or cannot be known. -EINVAL: none
	 * of them is there at present.
	 */
	int (*thread_rebind)(const uint32_t *cpu_indices, uint32_t count);
	/*
	 * Keeps the threads that the kernel runs for the calling thread's rings
	 * to those CPUs of a node that this thread might use before it was
	 * bound; to all of these where none is on that node. `fd` is one of the
	 * rings. -EINVAL: not bound, too many CPUs, or a kernel before 5.14.
	 */
	int (*ring_bind_helpers)(int fd, uint32_t node_index);

	/*
	 * The calling thread's number, and what a thread of that number does:
	 * thread_state.h. NULL: not known.
	 */
	uint32_t (*thread_number)(void);
	void (*thread_look)(uint32_t thread_number, struct pin_thread_state *out_state);

	/*
	 * Maps `bytes`, a multiple of 2 MiB, aligned to 2 MiB and kept out of
	 * forked children. NULL when that kind of page cannot be had.
	 */
	void *(*map)(size_t bytes, enum pin_page_kind kind);
	void (*unmap)(void *memory, size_t bytes);

	struct pin_heap heap;
	/* Of the same heap, but zeroed; NULL: it has no cheaper way. */
	void *(*heap_zeroed)(size_t align, size_t bytes);

	/* Few are left above it, and these are for files, not for rings. */
	bool (*fd_is_scarce)(int fd);

	/*
	 * As their system calls; a negative errno on failure. -EMFILE: the ring
	 * would have a scarce descriptor as well.
	 */
	int (*ring_setup)(struct io_uring *ring, uint32_t entries, struct io_uring_params *params);
	void (*ring_exit)(struct io_uring *ring);
	int (*ring_enter)(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags,
		void *argument, size_t argument_bytes);
	int (*ring_register)(int fd, uint32_t opcode, const void *argument, uint32_t count);
	/* pin_locked_await(), kernel.c. */
	bool (*locked_await)(uint64_t bytes, uint32_t *tries);
};

/* The real machine. */
extern const struct pin_host pin_host_linux;

/* ---- cpu latency ---- */

/*
 * How long an idle CPU may take to run again, as asked of the kernel.
 *
 * A CPU with nothing to run sleeps, the deeper the longer, and what wakes it
 * has to wait: a microsecond or two from the shallowest state, some hundred
 * from the deepest, and on a virtual machine until its host has started it
 * again. The kernel uses the smallest time that any process asks for, for all
 * CPUs, as long as the descriptor is open. 0: idle CPUs stay awake, polling.
 *
 * It is the idle driver that heeds it. Where there is none, as on some virtual
 * machines, idle CPUs halt whatever was asked for, and the kernel does not say.
 *
 * Called once per runtime, on any thread.
 *
 * Source: of the kernel's documents power/pm_qos_interface.
 */

/* Of sysfs: the idle driver's name, or "none". */
#define PIN_CPU_IDLE_DRIVER "/sys/devices/system/cpu/cpuidle/current_driver"

/*
 * Returns the descriptor, or the error of open(2) or write(2); -EOPNOTSUPP: no
 * idle driver would use it.
 */
int pin_cpu_latency_ask(uint32_t latency_us);

/* `path`: PIN_CPU_IDLE_DRIVER. Also true where that cannot be found out. */
bool pin_cpu_latency_is_heeded(const char *path);

void pin_cpu_latency_drop(int fd);

/* ---- lock ---- */

/*
 * A lock for short, rare critical sections: one word, one futex.
 *
 * 0 free, 1 held, 2 held with a possible sleeper. It lives on the host seam
 * rather than in pthreads so that a model or a simulation sees it.
 *
 * [LOCK-1] release (exchange, release half) -> acquire (CAS or exchange,
 * acquire half): what the last holder wrote is visible to the next; without it
 * two holders could both see the state before.
 */

struct pin_lock {
	struct pin_atomic_u32 word; /* [W:any R:any] */
};

static inline void pin_lock_acquire(struct pin_lock *lock, const struct pin_host *host)
{
	uint32_t free_word = 0;

	if (pin_cas_acquire_u32(&lock->word, &free_word, 1)) { /* [LOCK-1] */
		return;
	}
	PIN_DCHECK(free_word == 1 || free_word == 2);
	while (pin_exchange_acq_rel_u32(&lock->word, 2) != 0) { /* [LOCK-1] */
		host->futex_wait(&lock->word, 2, PIN_NO_DEADLINE);
	}
}

/* False: another has it. */
static inline bool pin_lock_try(struct pin_lock *lock)
{
	uint32_t free_word = 0;

	return pin_cas_acquire_u32(&lock->word, &free_word, 1); /* [LOCK-1] */
}

static inline void pin_lock_release(struct pin_lock *lock, const struct pin_host *host)
{
	uint32_t before = pin_exchange_acq_rel_u32(&lock->word, 0); /* [LOCK-1] */

	PIN_CHECK(before != 0); /* the caller held it */
	if (before == 2) {
		host->futex_wake(&lock->word, 1);
	}
}

#endif
