/* SPDX-License-Identifier: MIT */
/*
 * Whole runtimes in a simulated world, run after run, each from a seed.
 * Proves EX-2, EX-33, EX-36, W25 and C23 of the acceptance list.
 *
 *     simulate [--seeds N] [CASE.json…]     seeds 1 … N of each case, then the
 *                                           checks of the simulator itself
 *     simulate --seed S [--trace] CASE.json that run only; --trace prints it
 *     simulate --seed S --defect NAME …     with a planted bug
 *
 * Without cases: all of tests/sim/cases, below $top_srcdir. $SEEDS stands in
 * for --seeds, 200 if neither is given; $SEED for --seed.
 *
 * The product is real: the sources of core, sched, memory and io, with
 * pin_worker_step() as threads run it. Simulated are the host below (clock,
 * futexes, threads, memory), the rings with their disk, and the machine's
 * facts. Files: world.h is clock, chance, threads and trace; host.c, atomics.c,
 * machine.c, device.h and disk.h are below the product; case.h, json.h and
 * workload.h its input; watch.h the invariants; defect.h and product_*.c the
 * planted bugs.
 *
 * The simulator itself is checked in two ways: runs are repeated and must give
 * the same trace, also those that fail; and each mutant, a run with a planted
 * bug, must fail for the reason expected of it.
 */
#include "runtime/base/base.h"
#include "runtime/base/thread.h"
#include "tests/sim/defect.h"
#include "tests/sim/device.h"
#include "tests/sim/disk.h"
#include "tests/sim/host.h"
#include "tests/sim/product.h"
#include "tests/sim/watch.h"
#include "tests/sim/workload.h"
#include "tests/sim/world.h"
#include "tests/support/random.h"
#include "tests/support/sanitized.h"

#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
	CASES_MAX = 64,
	/* A planted bug that may take more seeds is left to plain builds. */
	SANITIZED_SEEDS_MAX = 1000,
	SEEDS_DEFAULT = 200,
	REPEATED_MAX = 10,
	PATH_BYTES = 512,
	LINE_BYTES = 1024,
	/* A planted bug that makes the product spin without a point. */
	TWIN_SECONDS_MAX = 120,
};

struct options {
	uint64_t seed_count;
	uint64_t seed; /* 0: all */
	bool is_told;
};

/* ---- planted bugs ---- */

struct mutant {
	enum defect defect;
	const char *name;
	const char *case_name;
	const char *reason; /* part of what the failed run says; or | another */
	uint64_t seeds_max; /* it must fail within */
};

static const struct mutant mutants[] = {
	{DEFECT_WAKE_SKIPPED, "wake_skipped", "wakes", "sleeps beside", 200},
	{DEFECT_NO_RECHECK, "no_recheck", "wakes", "sleeps beside", 20000},
	{DEFECT_COMPLETION_LOST, "completion_lost", "reads", "wait", 200},
	{DEFECT_TASK_TWICE, "task_twice", "trees", "not due|list->tail != link|before != ", 200},
	{DEFECT_SHORT_READ_TAKEN, "short_read_taken", "reads", "ends with", 200},
	{DEFECT_DOORBELL_NOT_ARMED, "doorbell_not_armed", "reads", "doorbell_is_armed", 1000},
	{DEFECT_SHARED_QUEUE_STARVES, "shared_queue_starves", "saturation", "has waited", 200},
	{DEFECT_CREDIT_UNBOUNDED, "credit_unbounded", "queues", "completion queue of", 200},
	{DEFECT_COMPLETION_MISCOUNTED, "completion_miscounted", "reads", "requests_completed", 200},
	{DEFECT_RING_LEAKS, "ring_leaks", "wakes", "is_open", 200},
	{DEFECT_WATCHDOG_UNTOLD, "watchdog_untold", "blocked", "has waited", 200},
	{DEFECT_WATCHDOG_BLIND, "watchdog_blind", "blocked", "has waited", 200},
	{DEFECT_STALL_UNSEEN, "stall_unseen", "stalls", "is not seen", 200},
	{DEFECT_POLL_KEPT, "poll_kept", "peers", "nothing will ever happen", 200},
	{DEFECT_EXTERNAL_LEFT, "external_left", "posted", "has waited", 200},
	{DEFECT_MESSAGE_LOST, "message_lost", "requests", "nothing will ever happen", 200},
	{DEFECT_DEADLINE_NOT_AWAITED, "deadline_not_awaited", "deadlines",
		"nothing will ever happen", 200},
	{DEFECT_SUCCESSOR_UNTOLD, "successor_untold", "classes", "sleeps beside", 20000},
	{DEFECT_FLOOR_LOST, "floor_lost", "floor", "has waited", 200},
	{DEFECT_AGING_LOST, "aging_lost", "aging", "has waited", 200},
	{DEFECT_ASSIST_UNASKED, "assist_unasked", "assist", "to assist with", 200},
	{DEFECT_ASSIST_BLIND, "assist_blind", "assist", "to assist with", 20000},
	{DEFECT_REMOTE_REAP_LOST, "remote_reap_lost", "remote_reaping", "has waited", 200},
	{DEFECT_DOORBELL_NOT_REARMED, "doorbell_not_rearmed", "remote_reaping", "doorbell_is_armed",
		20000},
	{DEFECT_LEAVES_WITH_WAKE, "leaves_with_wake", "resizes", "sleeps beside", 20000},
	{DEFECT_LEAVES_WITH_TASKS, "leaves_with_tasks", "resizes", "nothing will ever happen", 200},
	{DEFECT_CREDIT_KEPT, "credit_kept", "depth", "taken_count|nothing will ever", 20000},
	{DEFECT_PARKS_IN_NO_RING, "parks_in_no_ring", "depth_no_ring",
		"is_open|PIN_DOORBELL_MESSAGE", 20000},
	{DEFECT_POLLED_NOT_ASKED, "polled_not_asked", "polled", "that it should poll", 200},
	{DEFECT_WAIT_UNTOLD, "wait_untold", "joins", "nothing will ever happen", 200},
	/* Or the cancels of requests that are nowhere are too many. */
	{DEFECT_POLLED_REFUSAL_LOST, "polled_refusal_lost", "polled",
		"in_flight > 0|cancelling <=|has waited|overflows", 200},
	{DEFECT_COMMANDS_UNWATCHED, "commands_unwatched", "commands", "beside completed commands",
		200},
	{DEFECT_CALL_WHILE_SEARCHING, "call_while_searching", "calls", "sleeps beside", 20000},
	{DEFECT_COMMAND_REFUSAL_LOST, "command_refusal_lost", "commands",
		"in_flight > 0|has waited|nothing will ever happen", 200},
	{DEFECT_COMMAND_STATUS_IGNORED, "command_status_ignored", "commands", "ends with", 200},
	{DEFECT_CANCEL_NOT_REPEATED, "cancel_not_repeated", "hung", "livelock", 200},
	{DEFECT_WAKE_UNSENT, "wake_unsent", "safety_net", "park_timeout_found_work", 200},
	{DEFECT_CLAIM_UNTOLD, "claim_untold", "safety_net", "park_timeout_found_work", 200},
	{DEFECT_GIVES_BACK_REGISTERED, "gives_back_registered", "reads", "overlaps", 200},
	{DEFECT_SPAWN_UNTOLD, "spawn_untold", "lone", "beside a sleeper", 200},
	{DEFECT_URGENT_LAST, "urgent_last", "urgent", "an urgent one waits for", 200},
	{DEFECT_URGENT_UNBOUNDED, "urgent_unbounded", "urgent", "that passes others", 200},
	{DEFECT_INTERVAL_UNBOUNDED, "interval_unbounded", "saturation", "is out of range", 200},
};

_Static_assert(PIN_ARRAY_COUNT(mutants) == DEFECT_COUNT - 1, "each defect has a mutant");

static const char *defect_name(void)
{
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(mutants); i++) {
		if (defect_is(mutants[i].defect)) {
			return mutants[i].name;
		}
	}
	return "";
}

/* ---- one run ---- */

static uint32_t maybe(struct random_source *random, uint32_t rate)
{
	return random_below(random, 2) == 0 ? rate : 0;
}

/* Leaves about half of the faults out: some hide others. */
static struct sim_faults choose_faults(const struct sim_faults *all, struct random_source *random)
{
	return (struct sim_faults){
		.late = maybe(random, all->late),
		.hung = maybe(random, all->hung),
		.short_read = maybe(random, all->short_read),
		.io_error = maybe(random, all->io_error),
		.interrupted = maybe(random, all->interrupted),
		.enter_fails = maybe(random, all->enter_fails),
		.enter_short = maybe(random, all->enter_short),
		.cancel_misses = maybe(random, all->cancel_misses),
		.doorbell_fails = maybe(random, all->doorbell_fails),
		.poll_ends = maybe(random, all->poll_ends),
		.spurious = maybe(random, all->spurious),
		.stall = maybe(random, all->stall),
		.no_ring = maybe(random, all->no_ring),
		.no_ring_memory = maybe(random, all->no_ring_memory),
		.no_locked_memory = maybe(random, all->no_locked_memory),
		.no_thread = maybe(random, all->no_thread),
		.late_us = all->late_us,
		.stall_us = all->stall_us,
	};
}

static struct sim_faults running_faults;

static void run_body(void)
{
	device_begin(&running_faults);
	disk_begin(&running_faults);
	workload_run();
}

static uint64_t run_seed(const struct sim_case *test, const char *path, uint64_t seed, bool is_told)
{
	/* How often threads change between two atomic operations. */
	static const uint32_t preempt_per_mille[] = {0, 5, 30, 150};
	struct random_source random = {.state = ~seed};
	char replay[PATH_BYTES + 128];
	struct world_options options = {
		.case_name = test->name,
		.replay = replay,
		.seed = seed,
		.is_told = is_told,
	};

	snprintf(replay, sizeof(replay), "tests/sim/simulate --seed %" PRIu64 " --trace%s%s %s",
		seed, defect_is(DEFECT_NONE) ? "" : " --defect ", defect_name(), path);
	running_faults = choose_faults(&test->faults, &random);
	options.preempt_per_mille =
		preempt_per_mille[random_below(&random, PIN_ARRAY_COUNT(preempt_per_mille))];
	options.stall_per_million = running_faults.stall;
	options.stall_ns_max = (uint64_t)running_faults.stall_us * 1000;
	host_begin(&running_faults);
	watch_begin((uint64_t)test->age_limit_us * 1000, (uint64_t)test->sleeper_limit_us * 1000,
		test->park_timeout_us > 0);
	workload_begin(test);
	return world_run(&options, run_body);
}

/* ---- all seeds of a case ---- */

static bool run_again(
	const struct sim_case *test, const char *path, const uint64_t *hashes, uint64_t count)
{
	for (uint64_t seed = count; seed > 0; seed--) {
		uint64_t hash = run_seed(test, path, seed, false);

		if (hash != hashes[seed - 1]) {
			printf("case %s, seed %" PRIu64 ": expected trace %016" PRIx64
			       " as before, got %016" PRIx64 "\n",
				test->name, seed, hashes[seed - 1], hash);
			return false;
		}
	}
	/* A trace that is always the same would prove nothing. */
	if (count > 1 && hashes[0] == hashes[1]) {
		printf("case %s: seeds 1 and 2 have the same trace\n", test->name);
		return false;
	}
	return true;
}

static bool run_case(const struct sim_case *test, const char *path, const struct options *options)
{
	uint64_t hashes[REPEATED_MAX];
	uint64_t sum = 0;

	if (options->seed != 0) {
		uint64_t hash = run_seed(test, path, options->seed, options->is_told);

		printf("case %s, seed %" PRIu64 ": trace %016" PRIx64 "\n", test->name,
			options->seed, hash);
		return true;
	}
	for (uint64_t seed = 1; seed <= options->seed_count; seed++) {
		uint64_t hash = run_seed(test, path, seed, false);

		sum = sum * 31 + hash;
		if (seed <= REPEATED_MAX) {
			hashes[seed - 1] = hash;
		}
	}
	printf("case %s, seeds 1 to %" PRIu64 ": traces %016" PRIx64 "\n", test->name,
		options->seed_count, sum);
	fflush(stdout);
	return run_again(test, path, hashes,
		options->seed_count < REPEATED_MAX ? options->seed_count : REPEATED_MAX);
}

/* ---- mutants ---- */

/* The line with which the child's run failed, or an empty one. */
static void run_child(const struct sim_case *test, const char *path, enum defect defect,
	uint64_t first, uint64_t last, char *line)
{
	FILE *output = tmpfile();
	int status = 0;
	pid_t child;

	line[0] = '\0';
	fflush(stdout);
	child = output != NULL ? fork() : -1;
	if (child == 0) {
		dup2(fileno(output), STDOUT_FILENO);
		alarm(TWIN_SECONDS_MAX);
		defect_planted = defect;
		for (uint64_t seed = first; seed <= last; seed++) {
			run_seed(test, path, seed, false);
		}
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("a child process");
		exit(1);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == WORLD_STATUS_FAILED) {
		rewind(output);
		while (fgets(line, LINE_BYTES, output) != NULL) {
		}
	} else if (WIFSIGNALED(status)) {
		snprintf(line, LINE_BYTES, "killed by signal %d\n", WTERMSIG(status));
	}
	fclose(output);
}

/* Whichever of its reasons comes first. */
static bool is_expected(const struct mutant *mutant, const char *failure)
{
	const char *part = mutant->reason;
	size_t length = strcspn(part, "|");

	while (memmem(failure, strlen(failure), part, length) == NULL) {
		if (part[length] == '\0') {
			return false;
		}
		part += length + 1;
		length = strcspn(part, "|");
	}
	return true;
}

static bool run_mutant(const struct mutant *mutant, const struct sim_case *test, const char *path)
{
	char failure[LINE_BYTES];
	char again[LINE_BYTES];
	uint64_t seed = 0;

	run_child(test, path, mutant->defect, 1, mutant->seeds_max, failure);
	if (!is_expected(mutant, failure) ||
		sscanf(failure, "case %*[^,], seed %" SCNu64, &seed) != 1) {
		printf("mutant %s of case %s: expected a failure with \"%s\", got %s\n",
			mutant->name, test->name, mutant->reason,
			failure[0] != '\0' ? failure : "none");
		return false;
	}
	run_child(test, path, mutant->defect, seed, seed, again);
	if (strcmp(failure, again) != 0) {
		printf("mutant %s: expected the same failure from the same seed, got %sand %s",
			mutant->name, failure, again);
		return false;
	}
	printf("mutant %s fails as it should: %s", mutant->name, failure);
	return true;
}

/* ---- the program ---- */

static struct sim_case cases[CASES_MAX];
static const char *paths[CASES_MAX];
static uint32_t case_count;

static bool add_case(const char *path)
{
	if (case_count == CASES_MAX || !sim_case_load(&cases[case_count], path)) {
		return false;
	}
	paths[case_count] = path;
	case_count++;
	return true;
}

static bool add_all_cases(void)
{
	static glob_t found;
	const char *top = getenv("top_srcdir");
	char pattern[PATH_BYTES];

	snprintf(pattern, sizeof(pattern), "%s/tests/sim/cases/%s", top != NULL ? top : ".",
		"*.json");
	if (glob(pattern, 0, NULL, &found) != 0) {
		printf("no cases: %s\n", pattern);
		return false;
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		if (!add_case(found.gl_pathv[i])) {
			return false;
		}
	}
	return true;
}

static bool run_all_mutants(void)
{
	bool is_good = true;

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(mutants); i++) {
		uint32_t j = 0;

		while (j < case_count && strcmp(cases[j].name, mutants[i].case_name) != 0) {
			j++;
		}
		if (j == case_count) {
			printf("mutant %s: there is no case %s\n", mutants[i].name,
				mutants[i].case_name);
			return false;
		}
		if (SANITIZED_BUILD && mutants[i].seeds_max > SANITIZED_SEEDS_MAX) {
			printf("mutant %s is too rare for a sanitized build\n", mutants[i].name);
			continue;
		}
		is_good &= run_mutant(&mutants[i], &cases[j], paths[j]);
	}
	return is_good;
}

static bool plant(const char *name)
{
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(mutants); i++) {
		if (strcmp(mutants[i].name, name) == 0) {
			defect_planted = mutants[i].defect;
			return true;
		}
	}
	printf("no defect is called %s\n", name);
	return false;
}

static uint64_t number_from(const char *text)
{
	return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static bool parse(int count, char **arguments, struct options *out_options)
{
	struct options *options = out_options;

	*options = (struct options){
		.seed_count = number_from(getenv("SEEDS")),
		.seed = number_from(getenv("SEED")),
	};
	for (int i = 1; i < count; i++) {
		const char *name = arguments[i];
		bool has_value = i + 1 < count;

		if (strcmp(name, "--trace") == 0) {
			options->is_told = true;
		} else if (strcmp(name, "--seeds") == 0 && has_value) {
			options->seed_count = number_from(arguments[++i]);
		} else if (strcmp(name, "--seed") == 0 && has_value) {
			options->seed = number_from(arguments[++i]);
		} else if (strcmp(name, "--defect") == 0 && has_value) {
			if (!plant(arguments[++i])) {
				return false;
			}
		} else if (!add_case(name)) {
			return false;
		}
	}
	if (options->seed_count == 0) {
		options->seed_count = SEEDS_DEFAULT;
	}
	return true;
}

int main(int count, char **arguments)
{
	struct options options;
	bool is_good = true;
	bool is_whole;

	if (!parse(count, arguments, &options)) {
		return 1;
	}
	/* One record for all simulated threads: none provides its own. */
	(void)pin_thread_own();
	is_whole = case_count == 0;
	if (is_whole && !add_all_cases()) {
		return 1;
	}
	product_register();
	for (uint32_t i = 0; i < case_count && is_good; i++) {
		is_good = run_case(&cases[i], paths[i], &options);
	}
	if (is_good && is_whole && options.seed == 0) {
		is_good = run_all_mutants();
	}
	return is_good ? 0 : 1;
}
