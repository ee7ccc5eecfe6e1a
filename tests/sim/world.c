/* SPDX-License-Identifier: MIT */
/*
 * Clock, chance, threads and trace of one run.
 */
#include "tests/sim/world.h"
#include "tests/sim/coroutine.h"
#include "tests/sim/device.h"
#include "tests/sim/watch.h"
#include "tests/support/random.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	STACK_BYTES = 128 * 1024,
	EVENTS_KEPT = 256,
	EVENTS_SHOWN = 80,
	LOCAL_BYTES = 16,
	/* A host call takes 20 to 147 ns, an atomic operation 2. */
	POINT_NS_MIN = 20,
	POINT_NS_SPREAD = 128,
	TOUCH_NS = 2,
	SWITCH_PER_MILLE = 250,
	/* More of either is a livelock: good runs stay below a tenth. */
	TOUCHES_MAX = 20 * 1000 * 1000,
};

#define RUN_NS_MAX (UINT64_C(60) * 1000000000)

struct thread {
	const char *name;
	void *(*entry)(void *);
	void *arg;
	enum world_state state;
	const void *address; /* slept on */
	bool is_woken;
	world_condition_fn condition;
	const void *condition_arg;
	uint64_t until_ns;
	uint8_t local[LOCAL_BYTES];
	struct coroutine coroutine;
};

struct event {
	uint64_t at_ns;
	uint32_t thread;
	const char *what;
	uint64_t first;
	uint64_t second;
};

static struct {
	struct world_options options;
	struct random_source random;
	uint64_t now_ns;
	uint64_t touch_count;
	struct thread threads[WORLD_THREADS_MAX];
	uint32_t thread_count;
	uint32_t current;
	struct coroutine home;
	void (*body)(void);
	uint64_t hash;
	struct event events[EVENTS_KEPT];
	uint64_t event_count;
} world;

/* Of the product; the same in all runs. */
static void *local_address;
static size_t local_bytes;

static uint8_t stacks[WORLD_THREADS_MAX][STACK_BYTES] __attribute__((aligned(64)));

static struct thread *running(void)
{
	return &world.threads[world.current];
}

/* ---- chance and time ---- */

uint64_t world_random(uint64_t limit)
{
	return limit == 0 ? 0 : random_below(&world.random, limit);
}

bool world_chance(uint32_t per_mille)
{
	return per_mille > 0 && world_random(1000) < per_mille;
}

uint64_t world_now_ns(void)
{
	return world.now_ns;
}

/* ---- trace ---- */

static void print_event(const struct event *event)
{
	printf("%10" PRIu64 " %-10s %s %" PRIu64 " %" PRIu64 "\n", event->at_ns,
		world.threads[event->thread].name, event->what, event->first, event->second);
}

/* FNV-1a, a word at a time, with a shift that carries high bits down. */
static void hash_word(uint64_t word)
{
	world.hash = (world.hash ^ word) * UINT64_C(0x100000001b3);
	world.hash ^= world.hash >> 32;
}

void world_event(const char *what, uint64_t first, uint64_t second)
{
	struct event *event = &world.events[world.event_count % EVENTS_KEPT];

	*event = (struct event){
		.at_ns = world.now_ns,
		.thread = world.current,
		.what = what,
		.first = first,
		.second = second,
	};
	world.event_count++;
	hash_word(event->at_ns);
	hash_word(event->thread);
	for (const char *letter = what; *letter != '\0'; letter++) {
		hash_word((uint8_t)*letter);
	}
	hash_word(first);
	hash_word(second);
	if (world.options.is_told) {
		print_event(event);
	}
}

void world_fail(const char *format, ...)
{
	uint64_t first = world.event_count > EVENTS_SHOWN ? world.event_count - EVENTS_SHOWN : 0;
	va_list arguments;

	for (uint64_t i = first; i < world.event_count && !world.options.is_told; i++) {
		print_event(&world.events[i % EVENTS_KEPT]);
	}
	printf("case %s, seed %" PRIu64 ": ", world.options.case_name, world.options.seed);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("; trace %016" PRIx64 "; repeat: %s\n", world.hash, world.options.replay);
	fflush(stdout);
	_exit(WORLD_STATUS_FAILED);
}

/* ---- who runs next ---- */

static bool has_reason(const struct thread *thread)
{
	return thread->is_woken || world.now_ns >= thread->until_ns ||
		(thread->condition != NULL && thread->condition(thread->condition_arg));
}

static bool can_run(const struct thread *thread)
{
	return thread->state == WORLD_READY || (thread->state != WORLD_ENDED && has_reason(thread));
}

/* Those that can run, in order; the current one only when asked for. */
static uint32_t find_runnable(uint32_t *out_threads, bool with_current)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < world.thread_count; i++) {
		if ((with_current || i != world.current) && can_run(&world.threads[i])) {
			out_threads[count] = i;
			count++;
		}
	}
	return count;
}

static void switch_to(uint32_t next)
{
	struct thread *from = running();
	struct thread *to = &world.threads[next];

	if (from == to) {
		return;
	}
	memcpy(from->local, local_address, local_bytes);
	memcpy(local_address, to->local, local_bytes);
	world.current = next;
	world_event("goes on", from->state, 0);
	coroutine_switch(&from->coroutine, &to->coroutine);
}

static const char *state_name(enum world_state state)
{
	switch (state) {
	case WORLD_READY:
		return "ready";
	case WORLD_FUTEX:
		return "asleep on a futex";
	case WORLD_RING:
		return "asleep in its ring";
	case WORLD_BUSY:
		return "busy";
	case WORLD_STALLED:
		return "stalled";
	case WORLD_JOINS:
		return "waits for a thread to end";
	case WORLD_ENDED:
		break;
	}
	return "ended";
}

static _Noreturn void fail_by_deadlock(void)
{
	char text[512];
	size_t length = 0;

	for (uint32_t i = 0; i < world.thread_count && length < sizeof(text); i++) {
		const struct thread *thread = &world.threads[i];

		if (thread->state != WORLD_ENDED) {
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %s",
				length > 0 ? ", " : "", thread->name, state_name(thread->state));
		}
	}
	world_fail("nothing will ever happen again: %s", text);
}

static void advance(uint64_t to_ns)
{
	if (to_ns > RUN_NS_MAX) {
		world_fail("livelock: a minute has passed");
	}
	world.now_ns = to_ns;
	device_advance(to_ns);
	watch_age(to_ns);
	watch_ranges();
}

/* No thread can run. */
static void jump(void)
{
	uint64_t next_ns = device_next_ns();

	watch_sleepers();
	for (uint32_t i = 0; i < world.thread_count; i++) {
		const struct thread *thread = &world.threads[i];

		if (thread->state != WORLD_ENDED && thread->until_ns < next_ns) {
			next_ns = thread->until_ns;
		}
	}
	if (next_ns == WORLD_NEVER) {
		fail_by_deadlock();
	}
	advance(next_ns > world.now_ns ? next_ns : world.now_ns);
}

/* The running thread cannot go on, or not at once. */
static void leave(void)
{
	uint32_t threads[WORLD_THREADS_MAX];
	uint32_t count = find_runnable(threads, true);

	while (count == 0) {
		jump();
		count = find_runnable(threads, true);
	}
	switch_to(threads[world_random(count)]);
}

static void hand_over(void)
{
	uint32_t threads[WORLD_THREADS_MAX];
	uint32_t count = find_runnable(threads, false);

	if (count > 0) {
		switch_to(threads[world_random(count)]);
	}
}

static void wait_until(uint64_t until_ns)
{
	struct thread *thread = running();

	thread->until_ns = until_ns;
	thread->is_woken = false;
	leave();
	thread->state = WORLD_READY;
	thread->condition = NULL;
	thread->address = NULL;
}

static bool stalls(void)
{
	struct thread *thread = running();
	uint32_t per_million = world.options.stall_per_million;

	if (per_million == 0 || world_random(1000000) >= per_million) {
		return false;
	}
	world_event("stalls", 0, 0);
	thread->state = WORLD_STALLED;
	wait_until(world.now_ns + 1 + world_random(world.options.stall_ns_max));
	return true;
}

void world_point(void)
{
	advance(world.now_ns + POINT_NS_MIN + world_random(POINT_NS_SPREAD));
	if (!stalls() && world_chance(SWITCH_PER_MILLE)) {
		hand_over();
	}
}

void world_touch(void)
{
	world.touch_count++;
	if (world.touch_count > TOUCHES_MAX) {
		world_fail("livelock: more than %d atomic operations", TOUCHES_MAX);
	}
	world.now_ns += TOUCH_NS;
	if (world_chance(world.options.preempt_per_mille) && !stalls()) {
		hand_over();
	}
}

void world_yield(void)
{
	advance(world.now_ns + POINT_NS_MIN + world_random(POINT_NS_SPREAD));
	hand_over();
}

void world_busy(uint64_t duration_ns)
{
	running()->state = WORLD_BUSY;
	wait_until(world.now_ns + duration_ns);
}

bool world_sleep(enum world_state state, const void *address, world_condition_fn condition,
	const void *arg, uint64_t deadline_ns)
{
	struct thread *thread = running();

	thread->state = state;
	thread->address = address;
	thread->condition = condition;
	thread->condition_arg = arg;
	wait_until(deadline_ns);
	return thread->is_woken || world.now_ns < deadline_ns;
}

void world_wake_on(const void *address, uint32_t count)
{
	for (uint32_t woken = 0; woken < count; woken++) {
		struct thread *sleepers[WORLD_THREADS_MAX];
		uint32_t sleeper_count = 0;

		for (uint32_t i = 0; i < world.thread_count; i++) {
			struct thread *thread = &world.threads[i];

			if (thread->state == WORLD_FUTEX && thread->address == address &&
				!thread->is_woken) {
				sleepers[sleeper_count] = thread;
				sleeper_count++;
			}
		}
		if (sleeper_count == 0) {
			return;
		}
		sleepers[world_random(sleeper_count)]->is_woken = true;
	}
}

/* ---- threads ---- */

static _Noreturn void end_thread(void)
{
	running()->state = WORLD_ENDED;
	world_event("ends", 0, 0);
	leave();
	__builtin_unreachable();
}

static void begin_thread(void)
{
	running()->entry(running()->arg);
	end_thread();
}

uint32_t world_thread_start(const char *name, void *(*entry)(void *), void *arg)
{
	uint32_t index = world.thread_count;
	struct thread *thread = &world.threads[index];

	WORLD_CHECK(index < WORLD_THREADS_MAX);
	*thread = (struct thread){.name = name, .entry = entry, .arg = arg};
	coroutine_init(&thread->coroutine, stacks[index], STACK_BYTES, begin_thread);
	world.thread_count++;
	world_event("starts a thread", index, 0);
	return index;
}

static bool has_ended(const void *arg)
{
	const struct thread *thread = arg;

	return thread->state == WORLD_ENDED;
}

void world_thread_join(uint32_t thread)
{
	world_point();
	world_sleep(WORLD_JOINS, NULL, has_ended, &world.threads[thread], WORLD_NEVER);
}

uint32_t world_thread_current(void)
{
	return world.current;
}

uint32_t world_thread_count(void)
{
	return world.thread_count;
}

enum world_state world_thread_state(uint32_t thread)
{
	return world.threads[thread].state;
}

bool world_thread_is_asleep(uint32_t thread)
{
	enum world_state state = world.threads[thread].state;

	return (state == WORLD_FUTEX || state == WORLD_RING) && !has_reason(&world.threads[thread]);
}

void *world_thread_arg(uint32_t thread)
{
	return world.threads[thread].arg;
}

void world_thread_local(void *address, size_t bytes)
{
	local_address = address;
	local_bytes = bytes < LOCAL_BYTES ? bytes : LOCAL_BYTES;
}

/* ---- a run ---- */

static void *run_body(void *arg)
{
	(void)arg;
	world.body();
	for (uint32_t i = 1; i < world.thread_count; i++) {
		WORLD_CHECK(world.threads[i].state == WORLD_ENDED);
	}
	coroutine_switch(&running()->coroutine, &world.home);
	return NULL;
}

uint64_t world_run(const struct world_options *options, void (*body)(void))
{
	world.options = *options;
	world.random = (struct random_source){.state = options->seed};
	world.now_ns = 0;
	world.touch_count = 0;
	world.thread_count = 0;
	world.current = 0;
	world.body = body;
	world.hash = UINT64_C(0xcbf29ce484222325);
	world.event_count = 0;
	memset(local_address, 0, local_bytes);
	coroutine_init_own(&world.home);
	world_thread_start("main", run_body, NULL);
	coroutine_switch(&world.home, &world.threads[0].coroutine);
	return world.hash;
}
