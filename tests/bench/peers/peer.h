/* SPDX-License-Identifier: MIT */
/*
 * What the programs of other libraries have in common: they measure what
 * subjects of `pinion bench` do, with the same numbers, and print a line like
 * theirs, which says "peer" instead of a floor. C11 and C++17.
 *
 *     PEER SUBJECT [SECONDS [WORKERS]]
 *     PEER list
 */
#ifndef PINION_TESTS_BENCH_PEERS_PEER_H
#define PINION_TESTS_BENCH_PEERS_PEER_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	/* As tools/bench/ has them. */
	PEER_SPAWN_BATCH = 128,
	PEER_SPAWN_TASKS = 64 * PEER_SPAWN_BATCH,
	PEER_INJECT_TASKS = 4096,
	PEER_STORM_TASKS = 10000,
	PEER_STORM_REST_NS = 500 * 1000,
	PEER_INJECT_STRIDE = 64,
	PEER_INJECT_SPIN_COUNT = 2000,
	PEER_BATCH = 64,
	PEER_STEAL_TASKS = 128 * 64,
	PEER_STEAL_WORKERS = 2,
	PEER_EXECUTE_TRIPS = 32,
	PEER_POOL_PAIRS = 4096,
	PEER_POOL_BYTES = 64 * 1024,
	PEER_FORKJOIN_NUMBER = 25,
	PEER_FORKJOIN_RESULT = 75025,
	PEER_FORKJOIN_TASKS = 242785,
	PEER_FIGURES_MIN = 6,
	PEER_FIGURES_MAX = 65536,
};

struct peer_subject {
	const char *name;
	/* Takes one figure, in nanoseconds: of a task, a call, a use. */
	double (*figure)(int worker_count);
	const char *unit; /* it is printed in, ns or us */
};

static inline uint64_t peer_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A broken run is not worth a figure. */
static inline void peer_check(int is_right, const char *what)
{
	if (!is_right) {
		fprintf(stderr, "%s\n", what);
		exit(2);
	}
}

/* ---- threads of a round trip, where those of ours are ---- */

enum peer_place {
	PEER_APART,    /* two CPUs: the first and the last, so hardly of one core */
	PEER_TOGETHER, /* both on the first */
};

/* Binds the calling thread, where it is not yet; `is_other`: the second. */
static inline void peer_place(enum peer_place place, int is_other)
{
	static __thread int bound_cpu = -1;
	static cpu_set_t allowed; /* read before any is bound */
	static int is_known;
	cpu_set_t chosen;
	int first = 0;
	int last = CPU_SETSIZE - 1;
	int cpu;

	if (!is_known) {
		peer_check(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "no CPUs");
		is_known = 1;
	}
	while (!CPU_ISSET(first, &allowed)) {
		first++;
	}
	while (!CPU_ISSET(last, &allowed)) {
		last--;
	}
	cpu = is_other && place == PEER_APART ? last : first;
	if (cpu != bound_cpu) {
		CPU_ZERO(&chosen);
		CPU_SET(cpu, &chosen);
		peer_check(sched_setaffinity(0, sizeof(chosen), &chosen) == 0, "cannot move");
		bound_cpu = cpu;
	}
}

/* ---- bursts from outside, as in tools/bench/inject.h ---- */

struct peer_burst {
	uint32_t pushed_count __attribute__((aligned(128)));
	uint32_t known_count __attribute__((aligned(128)));
	uint32_t run_count;
	uint64_t end_ns;
	uint32_t is_ready;
	uint32_t is_over;
};

static inline void peer_burst_await_more(struct peer_burst *burst)
{
	for (uint32_t spins = 1;; spins++) {
		burst->known_count = __atomic_load_n(&burst->pushed_count, __ATOMIC_ACQUIRE);
		if (burst->known_count > burst->run_count) {
			return;
		}
		if (spins % PEER_INJECT_SPIN_COUNT == 0) {
			sched_yield();
		}
	}
}

/* In a task of its own, which the burst begins with. */
static inline void peer_burst_open(struct peer_burst *burst)
{
	__atomic_store_n(&burst->is_ready, 1, __ATOMIC_RELEASE);
	peer_burst_await_more(burst);
}

/* In each task of the burst. */
static inline void peer_burst_task(struct peer_burst *burst)
{
	if (++burst->run_count == PEER_INJECT_TASKS) {
		burst->end_ns = peer_now_ns();
		__atomic_store_n(&burst->is_over, 1, __ATOMIC_RELEASE);
	} else if (burst->run_count == burst->known_count) {
		peer_burst_await_more(burst);
	}
}

static inline void peer_burst_await(const uint32_t *flag)
{
	while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) {
		sched_yield();
	}
}

/*
 * By the producer. `push_open` adds a task that opens the burst, `push_stride`
 * a stride of the tasks in it.
 */
static inline double peer_burst_run(
	struct peer_burst *burst, void (*push_open)(void), void (*push_stride)(void))
{
	uint64_t start_ns;

	memset(burst, 0, sizeof(*burst));
	push_open();
	peer_burst_await(&burst->is_ready);
	start_ns = peer_now_ns();
	for (uint32_t i = 0; i < PEER_INJECT_TASKS; i += PEER_INJECT_STRIDE) {
		push_stride();
		__atomic_store_n(&burst->pushed_count, i + PEER_INJECT_STRIDE, __ATOMIC_RELEASE);
	}
	peer_burst_await(&burst->is_over);
	return (double)(burst->end_ns - start_ns) / PEER_INJECT_TASKS;
}

/*
 * The same for `inject_burst`: all at once, into a pool that sleeps, by
 * `push_task`, whose tasks call peer_storm_task().
 */
static inline void peer_storm_task(struct peer_burst *burst)
{
	if (++burst->run_count == PEER_STORM_TASKS) {
		burst->end_ns = peer_now_ns();
		__atomic_store_n(&burst->is_over, 1, __ATOMIC_RELEASE);
	}
}

static inline double peer_storm_run(struct peer_burst *burst, void (*push_task)(void))
{
	struct timespec rest = {0, PEER_STORM_REST_NS};
	uint64_t start_ns;

	memset(burst, 0, sizeof(*burst));
	nanosleep(&rest, NULL);
	start_ns = peer_now_ns();
	for (uint32_t i = 0; i < PEER_STORM_TASKS; i++) {
		push_task();
	}
	peer_burst_await(&burst->is_over);
	return (double)(burst->end_ns - start_ns) / PEER_STORM_TASKS;
}

/* ---- the program ---- */

static inline int peer_compare(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

static inline void peer_measure(
	const char *peer, const struct peer_subject *subject, double seconds, int worker_count)
{
	static double samples[PEER_FIGURES_MAX];
	double divisor = strcmp(subject->unit, "us") == 0 ? 1000 : 1;
	uint64_t end_ns = peer_now_ns() + (uint64_t)(seconds * 1e9);
	uint32_t count = 0;

	(void)subject->figure(worker_count); /* does not count */
	while (count < PEER_FIGURES_MAX && (count < PEER_FIGURES_MIN || peer_now_ns() < end_ns)) {
		samples[count++] = subject->figure(worker_count);
	}
	qsort(samples, count, sizeof(samples[0]), peer_compare);
	printf("{\"bench\":\"%s\",\"peer\":\"%s\",\"unit\":\"%s\",\"n\":%u,\"median\":%.6g,"
	       "\"p99\":%.6g,\"workers\":%d}\n",
		subject->name, peer, subject->unit, count, samples[count / 2] / divisor,
		samples[(count - 1) * 99 / 100] / divisor, worker_count);
}

/* `subjects` ends with an entry without a name. */
static inline int peer_main(
	int argc, char **argv, const char *peer, const struct peer_subject *subjects)
{
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	int worker_count = argc > 3 ? atoi(argv[3]) : 1;

	for (; argc > 1 && subjects->name != NULL; subjects++) {
		if (strcmp(argv[1], "list") == 0) {
			puts(subjects->name);
		} else if (strcmp(argv[1], subjects->name) == 0) {
			peer_measure(peer, subjects, seconds, worker_count);
			return 0;
		}
	}
	if (argc > 1 && strcmp(argv[1], "list") == 0) {
		return 0;
	}
	fprintf(stderr, "usage: %s SUBJECT [SECONDS [WORKERS]] | list\n", argv[0]);
	return 2;
}

#endif
