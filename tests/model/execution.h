/* SPDX-License-Identifier: MIT */
/*
 * One execution of a case: its threads run as coroutines until all have ended
 * or something failed. What threads call is in explorer.h; this is for the
 * search.
 */
#ifndef MODEL_EXECUTION_H
#define MODEL_EXECUTION_H

#include "tests/model/explorer.h"

/* Keeps the state of this file out of snapshots; once, before all else. */
void execution_exclude(void);
/* Each execution runs from its beginning, whatever snapshots there are. */
void execution_start_fresh(bool is_fresh);

/*
 * True when it passed. `bounds` has one for each kind of choice, `mutant` may
 * be NULL; without `forgets_sharing` what memory.h learnt before still holds.
 */
bool execution_run(const struct model_case *test, const struct model_mutant *mutant,
	const uint32_t *bounds, bool forgets_sharing);

/* False in the search, between two executions. */
bool execution_is_running(void);

/* Why the last one failed. */
const char *execution_message(void);

const char *execution_thread_name(uint32_t thread);

/* ---- record: what the threads did, for the report of a failure ---- */

/* Keeps all of it but its length out of snapshots. */
void record_exclude(void);

/* A new execution begins. */
void record_begin(void);

/* What the threads of the last one did, its end only. */
void record_print(void);

/* ---- defects ---- */

/* Keeps their state out of snapshots. */
void defects_exclude(void);

/* Those of the next executions. `mutant` may be NULL. */
void defects_begin(const struct model_case *test, const struct model_mutant *mutant);

/* Starts the count of sites reached anew, for one search. */
void defects_forget_sites(void);

/*
 * The mutant's defect, or without a mutant the first of those that the case is
 * given, whose site no execution since has reached; NULL: none.
 */
const struct model_defect *defects_unreached(void);

#endif
