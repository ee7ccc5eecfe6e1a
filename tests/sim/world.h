/* SPDX-License-Identifier: MIT */
/*
 * The simulated world: one clock, one generator of chance, threads, a trace.
 *
 * Threads are coroutines. One goes on until it reaches a point: each call of
 * the host (world_point) and each atomic operation (world_touch) is one. There
 * the generator says whether another thread goes on, or whether this one
 * stalls, as a thread does that lost its CPU. Chance is drawn from the run's
 * seed and from nothing else, so the same seed makes the same run.
 *
 * The clock moves a little at each point. When no thread can run it jumps to
 * the next thing that will happen: a deadline, the end of a computation, a
 * completion. When nothing will, the run has failed: all threads wait for ever.
 *
 * Memory is sequentially consistent here; weaker orders are what the
 * interleaving explorer in tests/model is for.
 *
 * Each event goes into the trace: into its hash, by which two runs are
 * compared, and into a list of the last ones, which is printed on failure. No
 * event carries an address, since these differ between processes.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_THREADS_MAX 64u
#define WORLD_NEVER UINT64_MAX

/* What a thread does; the first that holds it back decides when it goes on. */
enum world_state {
	WORLD_READY,   /* may run */
	WORLD_FUTEX,   /* asleep on a word */
	WORLD_RING,    /* asleep in a ring */
	WORLD_BUSY,    /* computes or pauses, in its user's code */
	WORLD_STALLED, /* lost its CPU, wherever that was */
	WORLD_JOINS,   /* waits for another thread to end */
	WORLD_ENDED,
};

typedef bool (*world_condition_fn)(const void *arg);

struct world_options {
	const char *case_name;
	const char *replay; /* the command that repeats this run */
	uint64_t seed;
	bool is_told; /* print every event */
	uint32_t preempt_per_mille;
	uint32_t stall_per_million; /* per point; 0: no thread ever stalls */
	uint64_t stall_ns_max;
};

/* Runs `body` as the first thread until it ends; returns the trace's hash. */
uint64_t world_run(const struct world_options *options, void (*body)(void));

/* ---- chance and time ---- */

/* 0 … limit - 1; 0 for a limit of 0. */
uint64_t world_random(uint64_t limit);
bool world_chance(uint32_t per_mille);
uint64_t world_now_ns(void);

/* ---- what a run consists of ---- */

void world_point(void);
void world_touch(void);
/* As a point, but another thread goes on if any can. */
void world_yield(void);
/* The calling thread computes, or does nothing, for that long. */
void world_busy(uint64_t duration_ns);
/*
 * Sleeps until the condition holds, a wake on `address` or the deadline,
 * whichever comes first; any may be left out. False at the deadline.
 */
bool world_sleep(enum world_state state, const void *address, world_condition_fn condition,
	const void *arg, uint64_t deadline_ns);
void world_wake_on(const void *address, uint32_t count);

uint32_t world_thread_start(const char *name, void *(*entry)(void *), void *arg);
void world_thread_join(uint32_t thread);
uint32_t world_thread_current(void);
uint32_t world_thread_count(void);
enum world_state world_thread_state(uint32_t thread);
/* True when it sleeps and nothing has happened yet that ends its sleep. */
bool world_thread_is_asleep(uint32_t thread);
/* The argument it was started with. */
void *world_thread_arg(uint32_t thread);

/* A thread-local variable of the product, to be changed with the thread. */
void world_thread_local(void *address, size_t bytes);

/* ---- outcome ---- */

void world_event(const char *what, uint64_t first, uint64_t second);
/* Prints the last events, the reason, the seed and how to repeat it; exits. */
_Noreturn void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define WORLD_CHECK(condition) \
	((condition) ? (void)0 : world_fail("%s:%d: %s", __FILE__, __LINE__, #condition))

/* Status of a process that world_fail() ended. */
#define WORLD_STATUS_FAILED 3

#endif
