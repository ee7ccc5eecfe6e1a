/* SPDX-License-Identifier: MIT */
/*
 * Goal: calls between a thread pool, a runtime with rings and one without,
 * nested up to A, B, A and made by tasks as by threads, run exactly once or end
 * exactly once with an error, while the thread pool is resized and while each
 * runtime is stopped, drained or destroyed, in any order, with tasks still in
 * waits for each other's futures. Nothing hangs, and the counters agree. C2,
 * WP-1, WP-36.
 * Method: rounds of three new runtimes. A chain is a call whose function makes
 * the next one, and sets a future when all of it is over; the last function of
 * some waits for a gate that opens at the end of a round. Each call is counted.
 * PINION_SEED repeats the choices; STRESS_ITERATIONS is the number of calls.
 */
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pinion/thread_pool.h>

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	CALLS = 20000,
#else
	CALLS = 60000,
#endif
	CALLS_OF_ROUND = 4000,
	RUNTIMES = 3, /* the thread pool first */
	CHAINS = 24,
	PARKERS = 24,
	THREADS = 3,
	LEVELS = 3, /* at most, of one chain */
	MAX = 2,    /* of a worker class of the thread pool */
	ROUND_SECONDS = 60,
};

struct chain;
struct level;

typedef void (*next_fn)(struct level *level, bool is_on_worker);

/* One call, and its wait on the runtime it was made on. */
struct level {
	struct pinion_call call;
	struct pinion_wait wait;
	struct pinion_future_callback callback;
	struct pinion_future whole; /* done with all that its function began */
	struct pinion_future *awaited;
	next_fn next;
	struct chain *chain;
	uint32_t home;	 /* the runtime of its caller */
	uint32_t target; /* the runtime it runs on */
	struct pin_atomic_u32 runs;
};

struct chain {
	struct pinion_task starter;
	struct level levels[LEVELS];
	/* Of the last function: where it waits for the gate. */
	struct level gate_wait;
	struct random_source random;
	uint32_t home;
	uint32_t level_count;
	bool parks;
};

struct caller {
	pthread_t thread;
	struct chain chain;
};

static struct pinion_runtime *runtimes[RUNTIMES];
static struct chain chains[CHAINS];
static struct chain parkers[PARKERS];
static struct caller callers[THREADS];
static struct pinion_future gate;
static struct pin_atomic_u32 is_over;
static struct pin_atomic_u32 chains_over;
static struct pin_atomic_u32 parkers_settled; /* at the gate */

/* Of all rounds. */
static struct pin_atomic_u32 tried;
static struct pin_atomic_u32 refused;
static struct pin_atomic_u32 ran;
static struct pin_atomic_u32 cancelled;
static struct pin_atomic_u32 entered; /* by the functions themselves */
static uint32_t tried_before;	      /* this round */

static void count(struct pin_atomic_u32 *word)
{
	pin_fetch_add_relaxed_u32(word, 1);
}

static uint32_t tried_in_round(void)
{
	return pin_load_relaxed_u32(&tried) - tried_before;
}

/* ---- waiting, on a worker while its runtime allows it ---- */

static void callback_over(struct pinion_future_callback *callback)
{
	struct level *level = PIN_CONTAINER_OF(callback, struct level, callback);

	level->next(level, false);
}

/* For a thread that cannot wait any more, but has to know. */
static void call_back(struct level *level)
{
	level->callback =
		(struct pinion_future_callback){.done = callback_over, .future = level->awaited};
	expect_number("callback", 0, pinion_future_call(&level->callback));
}

static int wait_over(struct pinion_task *task);

static void await(struct level *level, uint64_t deadline_ns)
{
	int rc;

	level->wait = (struct pinion_wait){.task.run = wait_over, .deadline_ns = deadline_ns};
	rc = pinion_future_wait_async(runtimes[level->home], level->awaited, &level->wait);
	if (rc != 0) {
		expect_number("await", -ESHUTDOWN, rc);
		call_back(level);
	}
}

static int wait_over(struct pinion_task *task)
{
	struct level *level = PIN_CONTAINER_OF(task, struct level, wait.task);

	if (level->wait.result == 0) {
		level->next(level, true);
	} else if (level->wait.result == -ETIME) {
		/* The call goes on. */
		await(level, UINT64_MAX);
	} else {
		expect_number("wait", -ECANCELED, level->wait.result);
		call_back(level);
	}
	return 0;
}

static void await_next(
	struct level *level, struct pinion_future *future, next_fn next, bool is_on_worker)
{
	level->awaited = future;
	level->next = next;
	if (is_on_worker) {
		await(level, UINT64_MAX);
	} else {
		call_back(level);
	}
}

/* ---- a call, from its start to its end ---- */

static void go_on(struct chain *chain);
static void start_next(struct chain *chain, uint32_t index);

static void chain_over(void)
{
	tasks_signal(&chains_over);
}

static void level_over(struct level *level, bool is_on_worker)
{
	struct chain *chain = level->chain;

	if (level != &chain->levels[0]) {
		/* The last touch. */
		expect_number("whole", 0, pinion_future_set(&(level - 1)->whole, NULL, 0));
	} else if (is_on_worker && !chain->parks) {
		go_on(chain);
	} else {
		chain_over();
	}
}

/* Whether its function ran. */
static bool check_end(struct level *level)
{
	uint32_t runs = pin_load_acquire_u32(&level->runs);

	if (level->call.result == -ECANCELED) {
		expect_number("runs of a cancelled call", 0, runs);
		expect_number("mandatory", 0, level->call.task.flags & PINION_TASK_MANDATORY);
		count(&cancelled);
		return false;
	}
	expect_number("runs of a call", 1, runs);
	expect_number("result", level->target, level->call.result);
	count(&ran);
	return true;
}

static void call_over(struct level *level, bool is_on_worker)
{
	if (check_end(level)) {
		await_next(level, &level->whole, level_over, is_on_worker);
	} else {
		level_over(level, is_on_worker);
	}
}

static void gate_over(struct level *gate_wait, bool is_on_worker)
{
	struct chain *chain = gate_wait->chain;

	(void)is_on_worker;
	expect_number("whole", 0,
		pinion_future_set(&chain->levels[chain->level_count - 1].whole, NULL, 0));
}

static int run_level(void *arg)
{
	struct level *level = arg;
	struct chain *chain = level->chain;
	uint32_t index = (uint32_t)(level - chain->levels);
	/* It may all be over, and begun anew, after this. */
	int target = (int)level->target;

	expect_true("where it runs", pinion_worker_index(runtimes[target]) >= 0);
	count(&entered);
	pin_fetch_add_acq_rel_u32(&level->runs, 1);
	if (index + 1 < chain->level_count) {
		start_next(chain, index + 1);
	} else if (chain->parks) {
		chain->gate_wait = (struct level){.chain = chain, .home = level->target};
		await_next(&chain->gate_wait, &gate, gate_over, true);
		tasks_signal(&parkers_settled);
	} else {
		expect_number("whole", 0, pinion_future_set(&level->whole, NULL, 0));
	}
	return target;
}

/* An accepted refusal in a round that goes on: no room, or it is ending. */
static void check_refusal(int rc)
{
	expect_true("refusal", rc == -ESHUTDOWN || rc == -EAGAIN);
	count(&refused);
}

static void set_up_level(struct level *level, struct chain *chain, uint32_t home)
{
	static const uint32_t flags[] = {PINION_TASK_HIGH, 0, PINION_TASK_LOW,
		PINION_TASK_MANDATORY, PINION_TASK_MANDATORY | PINION_TASK_HIGH};
	struct random_source *random = &chain->random;

	*level = (struct level){
		.call = {.run = run_level, .arg = level},
		.wait = {.task.run = wait_over, .deadline_ns = UINT64_MAX},
		.next = call_over,
		.chain = chain,
		.home = home,
		.target = (home + 1 + (uint32_t)random_below(random, RUNTIMES - 1)) % RUNTIMES,
	};
	level->call.task.flags = flags[random_below(random, 5)];
	level->awaited = &level->call.done;
	pinion_future_init(&level->whole, runtimes[level->target]);
	count(&tried);
}

/* From a task on level->home. 0, or it has not begun. */
static int start_level(struct level *level)
{
	struct random_source *random = &level->chain->random;
	struct pinion_runtime *target = runtimes[level->target];
	uint64_t deadline_ns = UINT64_MAX;
	int rc;

	if (random_below(random, 8) == 0) {
		deadline_ns = pinion_clock_now_ns() + random_below(random, 50000);
	}
	if (random_below(random, 2) == 0) {
		level->wait.deadline_ns = deadline_ns;
		rc = pinion_call_run_async(
			target, &level->call, runtimes[level->home], &level->wait);
	} else {
		rc = pinion_call_start(target, &level->call);
		if (rc == 0) {
			await(level, deadline_ns);
		}
	}
	if (rc != 0) {
		expect_number("runs of a refused call", 0, pin_load_acquire_u32(&level->runs));
		check_refusal(rc);
	}
	return rc;
}

/* In the function of the call before. */
static void start_next(struct chain *chain, uint32_t index)
{
	struct level *level = &chain->levels[index];

	set_up_level(level, chain, chain->levels[index - 1].target);
	if (start_level(level) != 0) {
		expect_number(
			"whole", 0, pinion_future_set(&chain->levels[index - 1].whole, NULL, 0));
	}
}

/* In a task on chain->home: its next call that is not refused, if any. */
static void go_on(struct chain *chain)
{
	while (tried_in_round() < CALLS_OF_ROUND && pin_load_acquire_u32(&is_over) == 0) {
		chain->level_count = 1 + (uint32_t)random_below(&chain->random, LEVELS);
		set_up_level(&chain->levels[0], chain, chain->home);
		if (start_level(&chain->levels[0]) == 0) {
			return;
		}
		if (chain->parks) {
			break;
		}
	}
	chain_over();
}

static int run_starter(struct pinion_task *task)
{
	go_on(PIN_CONTAINER_OF(task, struct chain, starter));
	return 0;
}

static void cancel_starter(struct pinion_task *task)
{
	(void)task;
	chain_over();
}

static void start_chain(struct chain *chain, struct random_source *random, bool parks)
{
	*chain = (struct chain){
		.starter = {.run = run_starter, .cancel = cancel_starter},
		.home = (uint32_t)random_below(random, RUNTIMES),
		.random.state = random_next(random),
		.parks = parks,
	};
	expect_number("spawn", 0, pinion_task_spawn(runtimes[chain->home], &chain->starter));
}

/* ---- threads ---- */

static int run_plain(void *arg)
{
	struct level *level = arg;

	count(&entered);
	pin_fetch_add_acq_rel_u32(&level->runs, 1);
	return (int)level->target;
}

/* Sleeps until its function has returned. */
static void execute(struct level *level)
{
	int result = 7;
	int rc = pinion_call_run(runtimes[level->target], run_plain, level, &result);

	if (rc != 0) {
		expect_number("untouched", 7, result);
		expect_number("runs of a refused call", 0, pin_load_acquire_u32(&level->runs));
		check_refusal(rc);
		return;
	}
	level->call.result = result;
	level->call.task.flags = 0;
	check_end(level);
}

/* All that its function begins too. */
static void start_and_wait(struct level *level)
{
	int rc = pinion_call_start(runtimes[level->target], &level->call);

	if (rc != 0) {
		check_refusal(rc);
		return;
	}
	expect_number("wait", 0, pinion_future_wait(&level->call.done, UINT64_MAX));
	if (check_end(level)) {
		expect_number("wait", 0, pinion_future_wait(&level->whole, UINT64_MAX));
	}
}

static void *run_caller(void *arg)
{
	struct chain *chain = arg;
	struct level *level = &chain->levels[0];

	while (tried_in_round() < CALLS_OF_ROUND && pin_load_acquire_u32(&is_over) == 0) {
		chain->level_count = 1 + (uint32_t)random_below(&chain->random, LEVELS);
		set_up_level(level, chain, (uint32_t)random_below(&chain->random, RUNTIMES));
		if (chain->level_count == 1) {
			execute(level);
		} else {
			start_and_wait(level);
		}
	}
	return NULL;
}

static void *resize(void *arg)
{
	struct random_source *random = arg;
	int rc = 0;

	while (rc == 0 && pin_load_acquire_u32(&is_over) == 0) {
		struct pinion_thread_pool_sizes sizes = {
			(uint32_t)random_below(random, MAX + 1),
			(uint32_t)random_below(random, MAX + 1),
			1 + (uint32_t)random_below(random, MAX),
		};

		rc = pinion_thread_pool_resize(runtimes[0], &sizes);
		expect_true("resize", rc == 0 || rc == -ESHUTDOWN);
	}
	return NULL;
}

/* ---- the end ---- */

enum end {
	STOP,
	STOP_IN_TIME,
	LOOK_AND_STOP,
	DRAIN,
	DESTROY, /* only where no call is made any more */
	ENDS,
};

struct ending {
	pthread_t thread;
	uint32_t runtime;
	enum end end;
};

static void open_gate(void)
{
	int rc = pinion_future_set(&gate, NULL, 0);

	expect_true("gate", rc == 0 || rc == -EALREADY);
}

static void check_counters(uint32_t index)
{
	struct pinion_runtime_stats counters = runtimes_counters(runtimes[index]);

	expect_number("run and cancelled", (long long)counters.tasks_spawned,
		(long long)(counters.tasks_run + counters.tasks_cancelled));
	expect_number("safety net", 0, (long long)counters.park_timeout_found_work);
}

static void *end_one(void *arg)
{
	const struct ending *ending = arg;
	struct pinion_runtime *runtime = runtimes[ending->runtime];
	uint64_t limit_ns = pinion_clock_now_ns() + ROUND_SECONDS * UINT64_C(1000000000);
	int rc;

	switch (ending->end) {
	case STOP_IN_TIME:
		expect_number("stop until", 0, pinion_runtime_stop_until(runtime, limit_ns));
		break;
	case LOOK_AND_STOP:
		rc = pinion_runtime_stop_until(runtime, 0);
		expect_true("look", rc == 0 || rc == -ETIME);
		expect_number("stop", 0, pinion_runtime_stop(runtime));
		break;
	case DRAIN:
		/* It waits for all that has begun to wait. */
		open_gate();
		expect_number("drain", 0, pinion_runtime_drain(runtime));
		break;
	case DESTROY:
		expect_number("destroy", 0, pinion_runtime_destroy(runtime));
		runtimes[ending->runtime] = NULL;
		return NULL;
	case STOP:
	case ENDS:
		expect_number("stop", 0, pinion_runtime_stop(runtime));
		break;
	}
	check_counters(ending->runtime);
	return NULL;
}

/* In any order, one after the other or all at once. */
static void end_all(struct random_source *random, bool may_destroy)
{
	bool at_once = random_below(random, 2) == 0;
	struct ending endings[RUNTIMES];
	uint32_t first = (uint32_t)random_below(random, RUNTIMES);
	uint32_t step = 1 + (uint32_t)random_below(random, RUNTIMES - 1);

	for (uint32_t i = 0; i < RUNTIMES; i++) {
		endings[i].runtime = (first + i * step) % RUNTIMES;
		endings[i].end = (enum end)random_below(random, may_destroy ? ENDS : DESTROY);
		if (at_once) {
			expect_ready("thread",
				pthread_create(&endings[i].thread, NULL, end_one, &endings[i]) ==
					0);
		} else {
			end_one(&endings[i]);
		}
	}
	for (uint32_t i = 0; at_once && i < RUNTIMES; i++) {
		pthread_join(endings[i].thread, NULL);
	}
}

/* ---- a round ---- */

static void set_up(void)
{
	struct pinion_thread_pool_sizes sizes = {1, 2, 1};
	struct pinion_config config;

	runtimes[1] = runtimes_start(2, PINION_IO_AUTO);
	runtimes[2] = runtimes_start(2, PINION_IO_FALLBACK);
	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	runtimes_tuning.thread_pool_max = MAX;
	/* Strict, low would wait for as long as anything else comes. */
	runtimes_tuning.lane_floor = 16;
	config.log = runtimes_note;
	expect_ready(runtimes_log, pinion_thread_pool_create(&config, &sizes, &runtimes[0]) == 0);
	pinion_future_init(&gate, NULL);
	pin_store_release_u32(&is_over, 0);
	pin_store_release_u32(&chains_over, 0);
	pin_store_release_u32(&parkers_settled, 0);
	tried_before = pin_load_relaxed_u32(&tried);
}

static void park(struct random_source *random)
{
	for (uint32_t i = 0; i < PARKERS; i++) {
		start_chain(&parkers[i], random, true);
	}
}

/* No thread calls any more, except waits in progress. */
static void join_all(pthread_t resizer)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(callers[i].thread, NULL);
	}
	pin_store_release_u32(&is_over, 1);
	pthread_join(resizer, NULL);
}

static void run_round(struct random_source *random)
{
	bool is_quiet = random_below(random, 3) == 0;
	uint32_t calls_before_end = (uint32_t)random_below(random, CALLS_OF_ROUND);
	struct random_source sizes = {random_next(random)};
	pthread_t resizer;

	runtimes_watchdog(ROUND_SECONDS);
	set_up();
	for (uint32_t i = 0; i < CHAINS; i++) {
		start_chain(&chains[i], random, false);
	}
	expect_ready("thread", pthread_create(&resizer, NULL, resize, &sizes) == 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		callers[i].chain = (struct chain){.random.state = random_next(random)};
		expect_ready("thread",
			pthread_create(&callers[i].thread, NULL, run_caller, &callers[i].chain) ==
				0);
	}
	if (is_quiet) {
		join_all(resizer);
		tasks_await(&chains_over, CHAINS);
		/* As many once more, which only wait. */
		pin_store_release_u32(&is_over, 0);
		tried_before = pin_load_relaxed_u32(&tried);
		park(random);
		tasks_await(&parkers_settled, PARKERS);
		end_all(random, true);
	} else {
		while (tried_in_round() < calls_before_end) {
			sched_yield();
		}
		park(random);
		end_all(random, false);
		join_all(resizer);
	}
	/* No worker is left: what still waits is called back in here. */
	open_gate();
	expect_number("chains over", CHAINS + PARKERS, pin_load_acquire_u32(&chains_over));
	for (uint32_t i = 0; i < RUNTIMES; i++) {
		expect_number("destroy", 0, pinion_runtime_destroy(runtimes[i]));
	}
}

int main(void)
{
	uint32_t calls = tasks_iterations(CALLS);
	struct random_source random;
	uint32_t rounds = 0;

	random_begin(&random);
	while (pin_load_relaxed_u32(&tried) < calls && expect_status() == 0) {
		run_round(&random);
		rounds++;
	}
	expect_number("ran", pin_load_relaxed_u32(&entered), pin_load_relaxed_u32(&ran));
	expect_number("each once", pin_load_relaxed_u32(&tried),
		(long long)pin_load_relaxed_u32(&ran) + pin_load_relaxed_u32(&cancelled) +
			pin_load_relaxed_u32(&refused));
	printf("%u rounds, %u calls: %u ran, %u cancelled, %u refused\n", rounds,
		pin_load_relaxed_u32(&tried), pin_load_relaxed_u32(&ran),
		pin_load_relaxed_u32(&cancelled), pin_load_relaxed_u32(&refused));
	return expect_status();
}
