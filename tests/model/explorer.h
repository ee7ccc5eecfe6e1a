/* SPDX-License-Identifier: MIT */
/*
 * The explorer: tries the interleavings of a small case, one after another.
 *
 * A case is a function that runs as thread 0, sets up everything anew and
 * starts further threads. All of them are coroutines on one OS thread. Each
 * atomic operation, futex call and model ring call is a point where another
 * thread may go on instead, and where more than one outcome may be possible
 * (which value a load sees, whom a wake reaches). The explorer makes these
 * choices; a depth-first search over them (choices.h) repeats the case until
 * all have been made.
 *
 * The choices are bounded per execution: leaving a thread that could go on
 * costs one of `preemptions`, reading anything but the newest value one of
 * `stale_reads`, a futex wait that returns for no reason one of `spurious`.
 * Switching away from a thread that blocks, yields or ends is free. Within its
 * bounds the search is complete.
 *
 * A case fails by an assertion (its own or the product's), by a deadlock, which
 * is how a lost wake-up shows, by a touch of freed memory (an atomic one at
 * once, a plain one by the poison it finds: crash.h), by too many steps.
 * A failure prints what happened and a line that repeats it.
 *
 * Each case lists mutants: the same source with one operation spoilt. All of
 * them must fail, or the explorer would prove nothing. A mutant or a `given`
 * defect whose site no execution reaches is a failure too.
 *
 * Environment: PINION_MODEL_BOUND (preemptions), PINION_MODEL_DEEPER (this
 * number more than the case says), PINION_MODEL_STALE (0 means sequential
 * consistency), PINION_MODEL_CASE and PINION_MODEL_TWIN (only these),
 * PINION_MODEL_RANDOM (this number of random executions without bounds, seeded
 * by PINION_SEED), PINION_MODEL_REPLAY (the choices of one execution),
 * PINION_MODEL_FRESH (1: no execution starts from a snapshot: snapshot.h).
 */
#ifndef MODEL_EXPLORER_H
#define MODEL_EXPLORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_THREADS_MAX 8u

enum model_choice_kind {
	MODEL_FREE,	  /* costs nothing */
	MODEL_PREEMPTION, /* 0 stays with the running thread */
	MODEL_STALE_READ, /* 0 reads the newest value */
	MODEL_SPURIOUS,	  /* 0 sleeps on */
	MODEL_CHOICE_KINDS,
};

/* Ways to spoil an operation; `site` is the function it is in. */
enum model_spoil {
	MODEL_DROP_FENCE, /* the fence does nothing */
	MODEL_TORN,	  /* a read-modify-write is a load, then a store */
	MODEL_RELAXED,	  /* any order becomes relaxed */
	MODEL_SKIP,	  /* the call of `callee` is left out */
	MODEL_EARLY,	  /* the call of `callee` comes too early */
	MODEL_LATE,	  /* the call of `callee` comes too late */
	MODEL_NO_COMPARE, /* the futex sleeps without looking at its word */
};

struct model_defect {
	enum model_spoil spoil;
	const char *site;
	const char *callee; /* NULL where the kind of spoiling needs none */
};

struct model_mutant {
	const char *name; /* NULL ends a list */
	struct model_defect defect;
};

struct model_case {
	const char *name;
	void (*run)(void);
	uint32_t preemptions; /* unless PINION_MODEL_BOUND says otherwise */
	uint32_t stale_reads;
	uint32_t spurious;
	const struct model_mutant *mutants;
	/* With all of these in place it must pass all the same; NULL: none. */
	const struct model_defect *given; /* a `site` of NULL ends the list */
};

/*
 * Each execution runs from its beginning: for cases that change what no
 * snapshot has, such as which pages may be touched. Before model_main().
 */
void model_start_fresh(void);

/* Explores all cases and their mutants; the test program's exit status. */
int model_main(const char *program, const struct model_case *cases, size_t case_count);

/* ---- threads of the running case ---- */

typedef void (*model_body_fn)(void *arg);
typedef bool (*model_condition_fn)(const void *arg);

uint32_t model_thread_start(const char *name, model_body_fn body, void *arg);
/* An execution ends without waiting for it, and its sleep is no deadlock. */
uint32_t model_thread_start_daemon(const char *name, model_body_fn body, void *arg);
void model_thread_join(uint32_t thread);
uint32_t model_thread_current(void);
/* Started so far, the case's own included. */
uint32_t model_thread_count(void);

/* Gives every thread its own copy of a static variable, zero at first. */
void model_thread_local(void *address, size_t bytes);

/* ---- points and choices ---- */

/* Others may run here. */
void model_point(void);
/* Others should run here. */
void model_yield(void);
/* Sleeps until `condition` holds; `what` is for the report of a deadlock. */
void model_await(const char *what, model_condition_fn condition, const void *arg);
/* False: model_choose() would return 0 whatever the count. */
bool model_may_choose(enum model_choice_kind kind);
/* One of 0 … count - 1. */
uint32_t model_choose(enum model_choice_kind kind, uint32_t count);

/*
 * Between begin and end nothing is explored: the lowest thread that can go on
 * does. For setting up and taking down.
 */
void model_quiet_begin(void);
void model_quiet_end(void);
bool model_is_quiet(void);
/* In a quiet part: lets the others go on until all of them sleep. */
void model_settle(void);

/*
 * Sleeping on an address; the caller has looked at the word. False: time has
 * passed, as it does only when no other thread can go on.
 */
bool model_sleep_on(const void *address, bool has_timeout);
/* Ends one such sleep now, if there is any, and moves the clock. */
bool model_pass_time(void);
uint64_t model_clock_ns(void);
/* It is at least that late. */
void model_clock_reach(uint64_t time_ns);
void model_wake_on(const void *address, uint32_t count);

/* ---- outcome ---- */

bool model_is_spoilt(enum model_spoil spoil, const char *site, const char *callee);

/* Notes what the running thread did, for the report of a failure. */
void model_event(const char *site, const char *operation, const void *address, uint64_t value);

_Noreturn void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define MODEL_CHECK(condition) \
	((condition) ? (void)0 : model_fail("%s:%d: %s", __FILE__, __LINE__, #condition))

#endif
