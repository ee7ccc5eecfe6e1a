/* SPDX-License-Identifier: MIT */
/*
 * The search over one case after another, and its report.
 */
#include "tests/model/explorer.h"
#include "runtime/base/thread.h"
#include "tests/model/choices.h"
#include "tests/model/crash.h"
#include "tests/model/execution.h"
#include "tests/model/heap.h"
#include "tests/model/memory.h"
#include "tests/model/snapshot.h"
#include "tests/support/sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 1024 };

static struct {
	const struct model_case *test;
	const struct model_mutant *mutant;
	uint64_t execution_count; /* of this search */
	bool is_fresh;		  /* no execution starts from a snapshot */
} explorer;

/* ---- one search ---- */

/* True when it went through without failure; `limit` counts executions. */
static bool search(const uint32_t *bounds, uint64_t limit)
{
	bool forgets_sharing = true;

	explorer.execution_count = 0;
	for (;;) {
		bool passed =
			execution_run(explorer.test, explorer.mutant, bounds, forgets_sharing);

		explorer.execution_count++;
		forgets_sharing = false;
		if (!passed) {
			return false;
		}
		if (memory_has_learnt() && choices_are_searched()) {
			choices_search();
			explorer.execution_count = 0;
		} else if (explorer.execution_count == limit || !choices_advance()) {
			return true;
		}
	}
}

static void print_failure(const char *program)
{
	char text[TEXT_BYTES];

	record_print();
	choices_text(text, sizeof(text));
	printf("repeat with: PINION_MODEL_CASE=%s %s%s%sPINION_MODEL_REPLAY=%s tests/model/%s\n",
		explorer.test->name, explorer.mutant != NULL ? "PINION_MODEL_TWIN='" : "",
		explorer.mutant != NULL ? explorer.mutant->name : "",
		explorer.mutant != NULL ? "' " : "", text, program);
}

/* ---- programs ---- */

static uint32_t number_from(const char *variable, uint32_t otherwise)
{
	const char *text = getenv(variable);

	return text != NULL && text[0] != '\0' ? (uint32_t)strtoul(text, NULL, 0) : otherwise;
}

static bool is_wanted(const char *variable, const char *name)
{
	const char *text = getenv(variable);

	return text == NULL || text[0] == '\0' || strcmp(text, name) == 0;
}

static void set_bounds(uint32_t *bounds)
{
	const struct model_case *test = explorer.test;

	bounds[MODEL_FREE] = 0;
	bounds[MODEL_PREEMPTION] = number_from(
		"PINION_MODEL_BOUND", test->preemptions + number_from("PINION_MODEL_DEEPER", 0));
	bounds[MODEL_STALE_READ] = number_from("PINION_MODEL_STALE", test->stale_reads);
	bounds[MODEL_SPURIOUS] = test->spurious;
}

static void unbound(uint32_t *bounds)
{
	for (uint32_t i = 0; i < MODEL_CHOICE_KINDS; i++) {
		bounds[i] = UINT32_MAX;
	}
	bounds[MODEL_SPURIOUS] = explorer.test->spurious;
}

static bool replay(const char *program, const char *text)
{
	uint32_t bounds[MODEL_CHOICE_KINDS];
	bool passed;

	if (!choices_repeat(text)) {
		printf("PINION_MODEL_REPLAY: expected NUMBER:CHOICE,…, got \"%s\"\n", text);
		return false;
	}
	unbound(bounds);
	passed = search(bounds, 1);
	record_print();
	printf("%s/%s: %s\n", program, explorer.test->name,
		passed ? "no failure" : execution_message());
	return passed;
}

static bool check_at_random(const char *program, uint32_t limit)
{
	uint32_t seed = number_from("PINION_SEED", 1);
	uint32_t bounds[MODEL_CHOICE_KINDS];

	unbound(bounds);
	choices_random(seed);
	printf("%s/%s: seed %u\n", program, explorer.test->name, seed);
	if (search(bounds, limit)) {
		printf("%s/%s: %u random executions, no failure\n", program, explorer.test->name,
			limit);
		return true;
	}
	print_failure(program);
	printf("%s/%s: random execution %llu: %s\n", program, explorer.test->name,
		(unsigned long long)explorer.execution_count, execution_message());
	return false;
}

/* A site that is gone, or that this case never comes to, spoils nothing. */
static bool sites_are_reached(const char *program)
{
	const struct model_defect *missed = defects_unreached();
	const char *callee;

	if (missed == NULL) {
		return true;
	}
	callee = missed->callee;
	printf("%s/%s: %s%s%s spoils nothing: no execution reaches %s%s%s%s\n", program,
		explorer.test->name,
		explorer.mutant != NULL ? "mutant \"" : "what the case is given",
		explorer.mutant != NULL ? explorer.mutant->name : "",
		explorer.mutant != NULL ? "\"" : "", missed->site, callee != NULL ? " (" : "",
		callee != NULL ? callee : "", callee != NULL ? ")" : "");
	return false;
}

static bool check_case(const char *program)
{
	uint32_t bounds[MODEL_CHOICE_KINDS];

	set_bounds(bounds);
	choices_search();
	defects_forget_sites();
	if (search(bounds, UINT64_MAX)) {
		printf("%s/%s: all %llu executions pass (%u preemptions, %u stale reads)\n",
			program, explorer.test->name, (unsigned long long)explorer.execution_count,
			bounds[MODEL_PREEMPTION], bounds[MODEL_STALE_READ]);
		return sites_are_reached(program);
	}
	print_failure(program);
	printf("%s/%s: execution %llu: %s\n", program, explorer.test->name,
		(unsigned long long)explorer.execution_count, execution_message());
	return false;
}

/* Few preemptions first: most bugs need few, and those searches are short. */
static bool check_mutant(const char *program)
{
	uint32_t bounds[MODEL_CHOICE_KINDS];
	uint64_t sum = 0;
	uint32_t most;

	set_bounds(bounds);
	defects_forget_sites();
	most = bounds[MODEL_PREEMPTION];
	for (uint32_t i = 0; i <= most; i++) {
		bounds[MODEL_PREEMPTION] = i;
		choices_search();
		if (!search(bounds, UINT64_MAX)) {
			char text[TEXT_BYTES];

			sum += explorer.execution_count;
			choices_text(text, sizeof(text));
			printf("%s/%s: mutant \"%s\" caught in execution %llu, "
			       "with %u preemptions: %s (%s)\n",
				program, explorer.test->name, explorer.mutant->name,
				(unsigned long long)sum, i, execution_message(), text);
			return sites_are_reached(program);
		}
		sum += explorer.execution_count;
	}
	if (!sites_are_reached(program)) {
		return false;
	}
	printf("%s/%s: mutant \"%s\" was not caught in %llu executions\n", program,
		explorer.test->name, explorer.mutant->name, (unsigned long long)sum);
	return false;
}

static bool run(const char *program)
{
	const char *text = getenv("PINION_MODEL_REPLAY");
	uint32_t random_count = number_from("PINION_MODEL_RANDOM", 0);
	const char *mutant_name = getenv("PINION_MODEL_TWIN");
	bool wants_mutant = mutant_name != NULL && mutant_name[0] != '\0';
	bool passed = true;

	explorer.mutant = NULL;
	if (!wants_mutant) {
		if (text != NULL) {
			return replay(program, text);
		}
		if (random_count > 0) {
			return check_at_random(program, random_count);
		}
		passed = check_case(program);
	}
	for (const struct model_mutant *mutant = explorer.test->mutants;
		mutant != NULL && mutant->name != NULL; mutant++) {
		if (!is_wanted("PINION_MODEL_TWIN", mutant->name)) {
			continue;
		}
		explorer.mutant = mutant;
		if (text != NULL) {
			return replay(program, text);
		}
		passed &= check_mutant(program);
	}
	explorer.mutant = NULL;
	return passed;
}

/* What a snapshot must not put back. */
static void exclude_from_snapshots(void)
{
	static bool is_excluded;

	if (!is_excluded) {
		is_excluded = true;
		snapshot_exclude(&explorer, sizeof(explorer));
		choices_exclude();
		crash_exclude();
		execution_exclude();
		heap_exclude();
		memory_exclude();
	}
}

void model_start_fresh(void)
{
	explorer.is_fresh = true;
}

int model_main(const char *program, const struct model_case *cases, size_t case_count)
{
	bool passed = true;

	if (SANITIZED_BUILD) {
		printf("the explorer changes stacks, which this sanitizer does not follow\n");
		return 77;
	}
	/* One record for all modelled threads: none provides its own. */
	(void)pin_thread_own();
	exclude_from_snapshots();
	execution_start_fresh(explorer.is_fresh || number_from("PINION_MODEL_FRESH", 0) != 0);
	crash_watch();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < case_count; i++) {
		if (is_wanted("PINION_MODEL_CASE", cases[i].name)) {
			explorer.test = &cases[i];
			passed &= run(program);
		}
	}
	return passed ? 0 : 1;
}
