/* SPDX-License-Identifier: MIT */
/*
 * One execution: coroutines, who runs next, what went wrong.
 */
#undef _FORTIFY_SOURCE /* its longjmp refuses to change stacks */
#include "tests/model/execution.h"
#include "runtime/base/thread.h"
#include "tests/model/choices.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"
#include "tests/model/memory.h"
#include "tests/model/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
	STACK_BYTES = 256 * 1024,
	FRAME_BYTES = 1024,
	SNAPSHOT_STEPS = 6, /* apart: a state costs as much as some of them */
	STEPS_MAX = 20000,
	LOCAL_BYTES = 128,
	TEXT_BYTES = 1024,
	PREEMPTION_PERCENT = 10,
	STALE_PERCENT = 25,
	CLOCK_STEP_NS = 10 * 1000 * 1000,
};

enum thread_state {
	READY,	/* may run; -> any other by its own doing */
	ASLEEP, /* on an address; -> READY by model_wake_on */
	WAITS,	/* for its condition; may run when that holds */
	ENDED,
};

struct thread {
	const char *name;
	model_body_fn body;
	void *arg;
	bool is_daemon;
	bool has_begun;
	enum thread_state state;
	const void *address;
	bool has_timeout; /* its sleep ends by itself when no other thread can go on */
	bool has_timed_out;
	model_condition_fn condition;
	const void *condition_arg;
	const char *what; /* it waits for */
	uint8_t local[LOCAL_BYTES];
	const uint8_t *stack_used; /* from here to its end */
	ucontext_t context;	   /* its beginning */
	jmp_buf jump;		   /* where it left off */
};

static struct execution {
	/* One execution. */
	uint32_t thread_count;
	uint32_t current;
	uint32_t quiet_depth;
	uint32_t left[MODEL_CHOICE_KINDS]; /* of the bounded choices */
	uint64_t step_count;
	uint64_t clock_ns;
	bool is_running;
	bool has_failed;
	const struct model_case *test;
	/* A snapshot has those that there are, and nothing after them. */
	struct thread threads[MODEL_THREADS_MAX];
	char message[TEXT_BYTES];
	jmp_buf home;
	/* All. */
	void *local;
	size_t local_bytes;
	uint64_t snapshot_step; /* of the last snapshot that counts */
	bool is_fresh;		/* each runs from its beginning */
} execution;

static uint8_t stacks[MODEL_THREADS_MAX][STACK_BYTES] __attribute__((aligned(64)));

static struct thread *running(void)
{
	return &execution.threads[execution.current];
}

/* ---- switching ---- */

/*
 * The stack of the running thread as far as a function needs it that calls this
 * and then sets a jump: its frame begins above, and is small.
 */
#define NOTE_STACK(thread) \
	((thread)->stack_used = (const uint8_t *)__builtin_frame_address(0) - FRAME_BYTES)

/* A plain jump takes a tenth of swapcontext's time: no signal mask to save. */
static __attribute__((noinline)) void switch_context(struct thread *to, jmp_buf *from)
{
	if (_setjmp(*from) != 0) {
		return;
	}
	if (to->has_begun) {
		_longjmp(to->jump, 1);
	}
	to->has_begun = true;
	setcontext(&to->context);
}

static _Noreturn void go_home(void)
{
	_longjmp(execution.home, 1);
}

static void switch_to(uint32_t next)
{
	struct thread *from = running();
	struct thread *to = &execution.threads[next];

	if (from == to) {
		return;
	}
	if (execution.local != NULL) {
		memcpy(from->local, execution.local, execution.local_bytes);
		memcpy(execution.local, to->local, execution.local_bytes);
	}
	execution.current = next;
	NOTE_STACK(from);
	switch_context(to, &from->jump);
}

/* ---- who runs next ---- */

static bool can_run(const struct thread *thread)
{
	return thread->state == READY ||
		(thread->state == WAITS && thread->condition(thread->condition_arg));
}

/* Those that can run but for the current one, in order. */
static uint32_t find_others(uint32_t *out_others)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < execution.thread_count; i++) {
		if (i != execution.current && can_run(&execution.threads[i])) {
			out_others[count] = i;
			count++;
		}
	}
	return count;
}

static bool is_over(void)
{
	for (uint32_t i = 0; i < execution.thread_count; i++) {
		const struct thread *thread = &execution.threads[i];

		if (thread->state != ENDED && !thread->is_daemon) {
			return false;
		}
	}
	return true;
}

static _Noreturn void fail_by_deadlock(void)
{
	char text[TEXT_BYTES / 2];
	size_t length = 0;

	for (uint32_t i = 0; i < execution.thread_count; i++) {
		const struct thread *thread = &execution.threads[i];

		if (thread->state != ENDED && length < sizeof(text)) {
			length += (size_t)snprintf(text + length, sizeof(text) - length,
				"%s%s waits for %s", length > 0 ? ", " : "", thread->name,
				thread->what);
		}
	}
	model_fail("deadlock: %s", text);
}

static void count_step(void)
{
	execution.step_count++;
	if (execution.step_count > STEPS_MAX) {
		model_fail("livelock: more than %d steps", STEPS_MAX);
	}
}

bool model_pass_time(void)
{
	for (uint32_t i = 0; i < execution.thread_count; i++) {
		struct thread *thread = &execution.threads[i];

		if (thread->state == ASLEEP && thread->has_timeout) {
			thread->state = READY;
			thread->has_timed_out = true;
			execution.clock_ns += CLOCK_STEP_NS;
			return true;
		}
	}
	return false;
}

void model_clock_reach(uint64_t time_ns)
{
	if (execution.clock_ns < time_ns) {
		execution.clock_ns = time_ns;
	}
}

uint64_t model_clock_ns(void)
{
	return execution.clock_ns;
}

/* The running thread cannot go on. */
static void leave(void)
{
	uint32_t others[MODEL_THREADS_MAX];
	uint32_t count;

	if (running()->state == ENDED && is_over()) {
		go_home();
	}
	for (;;) {
		count = find_others(others);
		if (count > 0) {
			switch_to(others[model_choose(MODEL_FREE, count)]);
			return;
		}
		if (can_run(running())) {
			return;
		}
		count_step();
		if (!model_pass_time()) {
			fail_by_deadlock();
		}
	}
}

/* In a quiet part the lowest thread that can run does. */
static void run_lower(void)
{
	for (uint32_t i = 0; i < execution.current; i++) {
		if (can_run(&execution.threads[i])) {
			switch_to(i);
			return;
		}
	}
}

void model_point(void)
{
	uint32_t others[MODEL_THREADS_MAX];
	uint32_t count;
	uint32_t choice;

	count_step();
	/* Most points come after the last preemption: no other may run. */
	if (!model_may_choose(MODEL_PREEMPTION) && !model_is_quiet()) {
		(void)choices_take(1, 0);
		return;
	}
	if (model_is_quiet()) {
		run_lower();
		return;
	}
	count = find_others(others);
	choice = model_choose(MODEL_PREEMPTION, count + 1);
	if (choice > 0) {
		switch_to(others[choice - 1]);
	}
}

void model_yield(void)
{
	uint32_t others[MODEL_THREADS_MAX];
	uint32_t count = find_others(others);

	count_step();
	if (count > 0) {
		switch_to(others[model_choose(MODEL_FREE, count)]);
	}
}

/* ---- snapshots ---- */

static void add_stacks(void)
{
	for (uint32_t i = 0; i < execution.thread_count; i++) {
		const struct thread *thread = &execution.threads[i];
		uint8_t *end = stacks[i] + STACK_BYTES;
		size_t bytes = thread->has_begun ? (size_t)(end - thread->stack_used) : FRAME_BYTES;

		/* A thread that has ended still chooses its successor. */
		if (thread->state != ENDED || i == execution.current) {
			snapshot_add(end - bytes, bytes);
		}
	}
}

/* An execution that starts from the snapshot comes out of here too. */
static __attribute__((noinline)) void take_snapshot(void)
{
	struct thread *thread = running();

	NOTE_STACK(thread);
	if (_setjmp(thread->jump) != 0) {
		return;
	}
	execution.snapshot_step = execution.step_count;
	snapshot_begin(choices_made(), choices_asked());
	snapshot_add(&execution,
		offsetof(struct execution, threads) +
			execution.thread_count * sizeof(execution.threads[0]));
	snapshot_add(pin_thread_own(), sizeof(struct pin_thread));
	add_stacks();
	heap_snapshot();
	memory_snapshot();
}

static uint32_t take_choice(uint32_t count, uint32_t percent)
{
	if (count > 1 && choices_are_new() && !execution.is_fresh &&
		execution.step_count >= execution.snapshot_step + SNAPSHOT_STEPS) {
		take_snapshot();
	}
	return choices_take(count, percent);
}

bool model_may_choose(enum model_choice_kind kind)
{
	return !model_is_quiet() && (kind == MODEL_FREE || execution.left[kind] > 0);
}

uint32_t model_choose(enum model_choice_kind kind, uint32_t count)
{
	uint32_t choice;

	if (model_is_quiet()) {
		return 0;
	}
	if (kind == MODEL_FREE) {
		return take_choice(count, 50);
	}
	if (execution.left[kind] == 0) {
		return choices_take(1, 0);
	}
	choice = take_choice(count, kind == MODEL_PREEMPTION ? PREEMPTION_PERCENT : STALE_PERCENT);
	execution.left[kind] -= choice > 0 ? 1 : 0;
	return choice;
}

void model_await(const char *what, model_condition_fn condition, const void *arg)
{
	struct thread *thread = running();

	model_point();
	if (condition(arg)) {
		return;
	}
	thread->state = WAITS;
	thread->what = what;
	thread->condition = condition;
	thread->condition_arg = arg;
	leave();
	thread->state = READY;
}

bool model_sleep_on(const void *address, bool has_timeout)
{
	struct thread *thread = running();

	thread->state = ASLEEP;
	thread->address = address;
	thread->has_timeout = has_timeout;
	thread->has_timed_out = false;
	thread->what = "a futex";
	leave();
	return !thread->has_timed_out;
}

void model_wake_on(const void *address, uint32_t count)
{
	for (uint32_t woken = 0; woken < count; woken++) {
		struct thread *sleepers[MODEL_THREADS_MAX];
		uint32_t sleeper_count = 0;

		for (uint32_t i = 0; i < execution.thread_count; i++) {
			struct thread *thread = &execution.threads[i];

			if (thread->state == ASLEEP && thread->address == address) {
				sleepers[sleeper_count] = thread;
				sleeper_count++;
			}
		}
		if (sleeper_count == 0) {
			return;
		}
		sleepers[model_choose(MODEL_FREE, sleeper_count)]->state = READY;
	}
}

bool model_is_quiet(void)
{
	return execution.quiet_depth > 0;
}

void model_quiet_begin(void)
{
	execution.quiet_depth++;
}

void model_quiet_end(void)
{
	execution.quiet_depth--;
	if (!model_is_quiet()) {
		memory_settle(execution.thread_count);
	}
}

static bool others_sleep(const void *arg)
{
	const uint32_t *self = arg;

	for (uint32_t i = 0; i < execution.thread_count; i++) {
		if (i != *self && can_run(&execution.threads[i])) {
			return false;
		}
	}
	return true;
}

void model_settle(void)
{
	uint32_t self = execution.current;

	model_await("the others to sleep", others_sleep, &self);
}

/* ---- threads ---- */

static void begin_thread(void)
{
	struct thread *thread = running();

	thread->body(thread->arg);
	thread->state = ENDED;
	leave();
}

static uint32_t start_thread(const char *name, model_body_fn body, void *arg, bool is_daemon)
{
	uint32_t index = execution.thread_count;
	struct thread *thread = &execution.threads[index];

	MODEL_CHECK(index < MODEL_THREADS_MAX);
	thread->name = name;
	thread->body = body;
	thread->arg = arg;
	thread->is_daemon = is_daemon;
	thread->has_begun = false;
	thread->state = READY;
	memset(thread->local, 0, sizeof(thread->local));
	getcontext(&thread->context);
	thread->context.uc_stack.ss_sp = stacks[index];
	thread->context.uc_stack.ss_size = STACK_BYTES;
	thread->context.uc_link = NULL;
	makecontext(&thread->context, begin_thread, 0);
	execution.thread_count++;
	if (index > 0) {
		memory_thread_starts(execution.current, index);
	}
	return index;
}

uint32_t model_thread_count(void)
{
	return execution.thread_count;
}

uint32_t model_thread_start(const char *name, model_body_fn body, void *arg)
{
	return start_thread(name, body, arg, false);
}

uint32_t model_thread_start_daemon(const char *name, model_body_fn body, void *arg)
{
	return start_thread(name, body, arg, true);
}

static bool has_ended(const void *arg)
{
	const struct thread *thread = arg;

	return thread->state == ENDED;
}

void model_thread_join(uint32_t thread)
{
	model_await("a thread to end", has_ended, &execution.threads[thread]);
	memory_thread_joins(execution.current, thread);
}

uint32_t model_thread_current(void)
{
	return execution.current;
}

const char *execution_thread_name(uint32_t thread)
{
	return execution.threads[thread].name;
}

void model_thread_local(void *address, size_t bytes)
{
	if (bytes > LOCAL_BYTES) {
		abort();
	}
	execution.local = address;
	execution.local_bytes = bytes;
}

/* ---- outcome ---- */

void model_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(execution.message, sizeof(execution.message), format, arguments);
	va_end(arguments);
	execution.has_failed = true;
	go_home();
}

/* ---- the execution ---- */

static void run_case(void *arg)
{
	(void)arg;
	execution.test->run();
}

void execution_exclude(void)
{
	snapshot_exclude(&execution, sizeof(execution));
	snapshot_exclude(stacks, sizeof(stacks));
	record_exclude();
	defects_exclude();
}

void execution_start_fresh(bool is_fresh)
{
	execution.is_fresh = is_fresh;
}

/* From the last snapshot on the way; false: there is none. */
static bool run_from_snapshot(void)
{
	uint32_t made;
	uint32_t asked;

	if (execution.is_fresh || !choices_are_searched() ||
		!snapshot_restore(choices_depth(), &made, &asked)) {
		return false;
	}
	memory_resume();
	choices_resume(made, asked);
	execution.snapshot_step = execution.step_count;
	if (_setjmp(execution.home) == 0) {
		_longjmp(running()->jump, 1);
	}
	return true;
}

static void run_from_beginning(const struct model_case *test, const struct model_mutant *mutant,
	const uint32_t *bounds, bool forgets_sharing)
{
	execution.test = test;
	defects_begin(test, mutant);
	memory_begin(forgets_sharing);
	heap_begin();
	choices_begin();
	memcpy(execution.left, bounds, sizeof(execution.left));
	execution.thread_count = 0;
	execution.current = 0;
	execution.quiet_depth = 0;
	execution.step_count = 0;
	execution.clock_ns = 0;
	record_begin();
	execution.has_failed = false;
	if (execution.local != NULL) {
		memset(execution.local, 0, execution.local_bytes);
	}
	execution.snapshot_step = 0;
	start_thread("thread 0", run_case, NULL, false);
	execution.is_running = true;
	switch_context(&execution.threads[0], &execution.home);
}

bool execution_run(const struct model_case *test, const struct model_mutant *mutant,
	const uint32_t *bounds, bool forgets_sharing)
{
	if (!run_from_snapshot()) {
		run_from_beginning(test, mutant, bounds, forgets_sharing);
	}
	execution.is_running = false;
	return !execution.has_failed;
}

bool execution_is_running(void)
{
	return execution.is_running;
}

const char *execution_message(void)
{
	return execution.message;
}
