/* SPDX-License-Identifier: MIT */
/*
 * Runs cases under Relacy, a race detector for C11's memory model: a second
 * opinion on what the explorer proves.
 *
 * A scene is a struct: its constructor sets up, thread(i) is the code of thread
 * i and finish() checks the outcome when all have ended. Relacy runs it again
 * and again: this number of times with random choices, then through all
 * executions with at most `context_bound` preemptions. A choice is who goes on
 * before an atomic operation, and which of its last values a load sees. A
 * failed MODEL_CHECK or PIN_CHECK, a race on a model_plain, a deadlock, an
 * endless loop, memory that leaks or is used after it was freed end it; then
 * the history of that execution is printed.
 *
 * A case's mutants are the same with one operation spoilt, and have to fail; a
 * mutant whose site no execution reaches fails the program.
 *
 * Unlike the explorer it sees races on plain memory. A load may see one of the
 * last three values, in the bounded search of the last two. A seq_cst
 * operation, except a fence, orders no more than acquire and release do, so a
 * passing case relies on fences alone.
 *
 * Each program is one file, with the product's sources it is about; this header
 * comes after them.
 *
 * Environment: PINION_MODEL_CASE (only this), PINION_MODEL_RANDOM (this number
 * of random executions), PINION_MODEL_DEEPER (added to the bounds).
 */
#ifndef MODEL_RELACY_ENGINE_H
#define MODEL_RELACY_ENGINE_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/list.h"
#include "runtime/host/host.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <type_traits>

static_assert(!std::is_pointer<decltype(pin_link::next)>::value, "races on links are seen");

struct relacy_case {
	const char *name;
	rl::simulate_f simulate; /* relacy_simulate<SCENE, THREADS> */
	uint32_t random_count;
	uint32_t context_bound;		    /* from 1 on */
	const struct model_mutant *mutants; /* one without a name ends them */
};

template <typename Scene, rl::thread_id_t threads>
struct relacy_suite : rl::test_suite<relacy_suite<Scene, threads>, threads> {
	Scene *scene;

	/* Relacy's own memory is not aligned as ours has to be. */
	void before()
	{
		alignas(Scene) static char memory[sizeof(Scene)];

		scene = new (static_cast<void *>(memory)) Scene;
	}

	void thread(unsigned index)
	{
		scene->thread(index);
	}

	void after()
	{
		scene->finish();
		scene->~Scene();
	}
};

template <typename Scene, rl::thread_id_t threads> bool relacy_simulate(rl::test_params &params)
{
	return rl::simulate<relacy_suite<Scene, threads>>(params);
}

/* The mutant that is running. */
static const struct model_mutant *relacy_mutant;
static bool relacy_mutant_is_reached;

/* ---- what explorer.h and check.h declare ---- */

bool model_is_spoilt(enum model_spoil spoil, const char *site, const char *callee)
{
	(void)callee;
	if (relacy_mutant == NULL || relacy_mutant->defect.spoil != spoil ||
		strcmp(relacy_mutant->defect.site, site) != 0) {
		return false;
	}
	relacy_mutant_is_reached = true;
	return true;
}

/* Relacy leaves the execution and never comes back to it. */
void model_fail(const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	rl::ctx().fail_test(text, rl::test_result_user_assert_failed, RL_INFO);
	abort();
}

void pin_check_failed(const char *file, int line, const char *expression)
{
	model_fail("%s:%d: %s", file, line, expression);
}

void pin_check_misused(const struct pin_log *log, const char *format, ...)
{
	(void)log;
	model_fail("misuse: %s", format);
}

/* ---- the host ---- */

static int relacy_futex_wait(struct pin_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns)
{
	(void)deadline_ns;
	word->sleep_while(expected, RL_INFO);
	return 0;
}

static void relacy_futex_wake(struct pin_atomic_u32 *word, uint32_t count)
{
	if (!model_is_spoilt(MODEL_SKIP, __func__, NULL)) {
		word->wake(count, RL_INFO);
	}
}

/* At one moment: what others do before and after it is tried. */
static bool relacy_fence_all(void)
{
	rl::ctx().sched();
	if (!model_is_spoilt(MODEL_DROP_FENCE, __func__, NULL)) {
		rl::systemwide_fence(RL_INFO);
	}
	return true;
}

static void relacy_yield(void)
{
	rl::yield(1, RL_INFO);
}

static uint64_t relacy_now_ns(void)
{
	return 0;
}

static const struct pin_host relacy_host = {
	.now_ns = relacy_now_ns,
	.futex_wait = relacy_futex_wait,
	.futex_wake = relacy_futex_wake,
	.yield = relacy_yield,
	.fence_all = relacy_fence_all,
};

/* ---- the search ---- */

static uint32_t relacy_number_from(const char *variable, uint32_t otherwise)
{
	const char *text = getenv(variable);

	return text != NULL && text[0] != '\0' ? (uint32_t)strtoul(text, NULL, 0) : otherwise;
}

static double relacy_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* True when nothing failed; *out_params says what did, and where. */
static bool relacy_search(const struct relacy_case *test, uint32_t context_bound,
	std::ostream *output, rl::test_params *out_params)
{
	*out_params = rl::test_params();
	out_params->output_stream = output;
	out_params->progress_stream = output;
	out_params->search_type = context_bound == 0 ? rl::sched_random : rl::sched_bound;
	out_params->context_bound = context_bound;
	out_params->iteration_count = relacy_number_from("PINION_MODEL_RANDOM", test->random_count);
	return test->simulate(*out_params);
}

/* At random, or, with a bound, all. True when it went as it has to. */
static bool relacy_check(const char *program, const struct relacy_case *test, uint32_t bound)
{
	static std::ostream nowhere(NULL);
	double start = relacy_seconds();
	rl::test_params params;
	unsigned long long count;
	char kind[64] = "random executions";
	bool passed;

	relacy_mutant_is_reached = false;
	passed = relacy_search(test, bound, &nowhere, &params);
	count = params.stop_iteration;
	/* What happened depends on nothing else, so it happens again. */
	if (!passed && relacy_mutant == NULL) {
		relacy_search(test, bound, &std::cout, &params);
	}
	if (bound > 0) {
		snprintf(kind, sizeof(kind), "executions with up to %u preemptions", bound);
	}
	printf("%s/%s: ", program, test->name);
	if (relacy_mutant != NULL && !relacy_mutant_is_reached) {
		printf("mutant \"%s\" spoils nothing: no execution reaches %s\n",
			relacy_mutant->name, relacy_mutant->defect.site);
		return false;
	}
	if (relacy_mutant != NULL) {
		printf("mutant \"%s\" ", relacy_mutant->name);
	}
	if (passed) {
		printf("%s all %llu %s", relacy_mutant != NULL ? "passes" : "pass:", count, kind);
	} else {
		printf("%s in the %llu. of the %s: %s", relacy_mutant != NULL ? "caught" : "fails",
			count, kind, rl::test_result_str(params.test_result));
	}
	printf(" (%.1f s)\n", relacy_seconds() - start);
	return passed == (relacy_mutant == NULL);
}

/*
 * Random executions catch most mutants at once; those that need one thread to
 * pause for long are left to the bounded search.
 */
static bool relacy_check_mutant(const char *program, const struct relacy_case *test, uint32_t bound)
{
	return relacy_check(program, test, 0) || relacy_check(program, test, bound);
}

/* The case, then its mutants. */
static bool relacy_run(const char *program, const struct relacy_case *test)
{
	uint32_t bound = test->context_bound + relacy_number_from("PINION_MODEL_DEEPER", 0);
	bool passed;

	relacy_mutant = NULL;
	passed = relacy_check(program, test, 0) && relacy_check(program, test, bound);
	for (const struct model_mutant *mutant = test->mutants; passed && mutant->name != NULL;
		mutant++) {
		relacy_mutant = mutant;
		passed = relacy_check_mutant(program, test, bound);
	}
	return passed;
}

/* Ends at the first that fails, so that the last line says which. */
static int relacy_main(const char *program, const struct relacy_case *cases, size_t case_count)
{
	const char *wanted = getenv("PINION_MODEL_CASE");

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < case_count; i++) {
		if (wanted != NULL && wanted[0] != '\0' && strcmp(wanted, cases[i].name) != 0) {
			continue;
		}
		if (!relacy_run(program, &cases[i])) {
			return 1;
		}
	}
	return 0;
}

#endif
