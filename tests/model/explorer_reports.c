/* SPDX-License-Identifier: MIT */
/*
 * Goal: the explorer fails a program whose mutant, or given defect, spoils a
 * site that no execution reaches, and a program whose mutant passes; it takes a
 * crash by a pointer from freed memory for a failure of the case. A search from
 * snapshots is the search in which each execution runs from its beginning, and
 * would be another if a snapshot left a variable out.
 * Method: model_main() runs small cases here; its status and what it printed
 * are compared with what each has to give.
 */
#include "tests/model/explorer.h"
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "tests/model/heap.h"
#include "tests/model/snapshot.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 64 * 1024 };

struct holder {
	const uint32_t *pointer;
};

static struct pin_atomic_u32 word;
static uint32_t number;

/* ---- cases ---- */

static void add(void *arg)
{
	(void)arg;
	pin_fetch_add_relaxed_u32(&word, 1);
}

static void run_adds(void)
{
	uint32_t other;

	word = (struct pin_atomic_u32){0};
	other = model_thread_start("other", add, NULL);
	add(NULL);
	model_thread_join(other);
	MODEL_CHECK(word.value == 2);
}

static void load(void)
{
	(void)pin_load_acquire_u32(&word);
}

static void run_loads(void)
{
	word = (struct pin_atomic_u32){0};
	load();
}

/* EARLY: its memory is freed before it is read. */
static void read_holder(void *arg)
{
	struct holder *holder = arg;
	bool is_early = model_is_spoilt(MODEL_EARLY, __func__, "model_free");

	if (is_early) {
		model_free(holder);
	}
	MODEL_CHECK(*holder->pointer == number);
	if (!is_early) {
		model_free(holder);
	}
}

static struct holder *create_holder(void)
{
	struct holder *holder = model_aligned_alloc(alignof(struct holder), sizeof(*holder));

	number = 4711;
	holder->pointer = &number;
	return holder;
}

static void run_reads(void)
{
	read_holder(create_holder());
}

static void run_reads_in_thread(void)
{
	model_thread_join(model_thread_start("reader", read_holder, create_holder()));
}

/* ---- what a snapshot has to put back ---- */

enum { COUNTS = 30 };

static uint32_t data_count = 1; /* not among those that are zero at first */
static uint32_t zero_count;
static _Thread_local uint32_t own_count;
static uint32_t excluded_count;

static void count(void *arg)
{
	uint32_t *heap_count = arg;
	uint32_t local_count = 0;

	for (uint32_t i = 0; i < COUNTS; i++) {
		pin_fetch_add_relaxed_u32(&word, 1);
		data_count++;
		zero_count++;
		own_count++;
		excluded_count++;
		local_count++;
		(*heap_count)++;
	}
	MODEL_CHECK(local_count == COUNTS);
}

static void run_counts(void)
{
	uint32_t *heap_count = model_aligned_alloc(alignof(uint32_t), sizeof(*heap_count));
	uint32_t other;

	word = (struct pin_atomic_u32){0};
	*heap_count = data_count = zero_count = own_count = excluded_count = 0;
	other = model_thread_start("other", count, heap_count);
	count(heap_count);
	model_thread_join(other);
	MODEL_CHECK(word.value == 2 * COUNTS && *heap_count == 2 * COUNTS);
	MODEL_CHECK(data_count == 2 * COUNTS && zero_count == 2 * COUNTS);
	MODEL_CHECK(own_count == 2 * COUNTS);
	model_free(heap_count);
}

static void run_counts_excluded(void)
{
	run_counts();
	MODEL_CHECK(excluded_count == 2 * COUNTS);
}

/* ---- what it said ---- */

static char output[OUTPUT_BYTES];

/* Its status; all it printed is in `output`, and on stdout as well. */
static int explore(const struct model_case *test)
{
	FILE *file = tmpfile();
	int terminal = dup(STDOUT_FILENO);
	size_t length;
	int status;

	if (file == NULL || terminal < 0) {
		perror("explorer_reports: tmpfile, dup");
		exit(1);
	}
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	status = model_main("explorer_reports", test, 1);
	fflush(stdout);
	dup2(terminal, STDOUT_FILENO);
	close(terminal);
	rewind(file);
	length = fread(output, 1, sizeof(output) - 1, file);
	output[length] = '\0';
	fclose(file);
	fputs(output, stdout);
	return status;
}

static const struct model_mutant caught_mutants[] = {
	{"added in two steps", {MODEL_TORN, "add", NULL}},
	{.name = NULL},
};

static const struct model_mutant gone_mutants[] = {
	{"in a function that is gone", {MODEL_TORN, "gone", NULL}},
	{.name = NULL},
};

/* A load has nothing to tear. */
static const struct model_mutant other_kind_mutants[] = {
	{"of another kind", {MODEL_TORN, "load", NULL}},
	{.name = NULL},
};

static const struct model_mutant harmless_mutants[] = {
	{"of no effect", {MODEL_RELAXED, "load", NULL}},
	{.name = NULL},
};

static const struct model_mutant freed_mutants[] = {
	{"read when it is freed", {MODEL_EARLY, "read_holder", "model_free"}},
	{"read when it is freed, again", {MODEL_EARLY, "read_holder", "model_free"}},
	{.name = NULL},
};

static const struct model_defect gone_given[] = {
	{MODEL_TORN, "gone", NULL},
	{.site = NULL},
};

static const struct {
	struct model_case test;
	int status;
	const char *words[2]; /* all of them have to be in the output */
} reports[] = {
	{{"adds", run_adds, 1, 0, 0, caught_mutants, NULL}, 0,
		{"adds: all ", "mutant \"added in two steps\" caught"}},
	{{"mutant_gone", run_adds, 1, 0, 0, gone_mutants, NULL}, 1,
		{"mutant \"in a function that is gone\" spoils nothing",
			"no execution reaches gone"}},
	{{"mutant_of_other_kind", run_loads, 1, 0, 0, other_kind_mutants, NULL}, 1,
		{"mutant \"of another kind\" spoils nothing", "no execution reaches load"}},
	{{"mutant_passes", run_loads, 1, 0, 0, harmless_mutants, NULL}, 1,
		{"mutant \"of no effect\" was not caught", ""}},
	{{"given_gone", run_adds, 1, 0, 0, NULL, gone_given}, 1,
		{"what the case is given spoils nothing", "no execution reaches gone"}},
	/* Twice each: a crash must not keep the next from being seen. */
	{{"freed", run_reads, 0, 0, 0, freed_mutants, NULL}, 0,
		{"freed\" caught in execution 1, with 0 preemptions: crash",
			"again\" caught in execution 1, with 0 preemptions: crash"}},
	{{"freed_in_thread", run_reads_in_thread, 0, 0, 0, freed_mutants, NULL}, 0,
		{"freed\" caught in execution 1, with 0 preemptions: crash",
			"again\" caught in execution 1, with 0 preemptions: crash"}},
};

static bool are_searches_equal(void)
{
	static const struct model_case counts = {"counts", run_counts, 2, 1, 0, NULL, NULL};
	static const struct model_case excluded = {
		"counts_excluded", run_counts_excluded, 2, 1, 0, NULL, NULL};
	static char first[OUTPUT_BYTES];
	bool is_fresh_right;

	(void)explore(&counts);
	strcpy(first, output);
	snapshot_exclude(&excluded_count, sizeof(excluded_count));
	if (explore(&excluded) != 1) {
		printf("a snapshot without a variable: expected a failure, got none\n");
		return false;
	}
	setenv("PINION_MODEL_FRESH", "1", 1);
	is_fresh_right = explore(&excluded) == 0 && explore(&counts) == 0;
	unsetenv("PINION_MODEL_FRESH");
	if (!is_fresh_right || strcmp(first, output) != 0) {
		printf("from snapshots: expected the same as without them, got %s", first);
		return false;
	}
	return true;
}

int main(void)
{
	static const char *const variables[] = {"PINION_MODEL_BOUND", "PINION_MODEL_CASE",
		"PINION_MODEL_DEEPER", "PINION_MODEL_FRESH", "PINION_MODEL_RANDOM",
		"PINION_MODEL_REPLAY", "PINION_MODEL_STALE", "PINION_MODEL_TWIN"};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(variables); i++) {
		unsetenv(variables[i]);
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(reports); i++) {
		int status = explore(&reports[i].test);

		if (status == 77) {
			return status;
		}
		if (status != reports[i].status) {
			printf("%s: expected status %d, got %d\n", reports[i].test.name,
				reports[i].status, status);
			return 1;
		}
		for (size_t k = 0; k < PIN_ARRAY_COUNT(reports[i].words); k++) {
			if (strstr(output, reports[i].words[k]) == NULL) {
				printf("%s: expected \"%s\" in what it printed\n",
					reports[i].test.name, reports[i].words[k]);
				return 1;
			}
		}
	}
	if (!are_searches_equal()) {
		return 1;
	}
	printf("%zu cases ended as they have to\n", PIN_ARRAY_COUNT(reports));
	return 0;
}
