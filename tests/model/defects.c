/* SPDX-License-Identifier: MIT */
/*
 * The defects planted into an execution: the mutant's, and those that its case
 * is given. Notes whose sites were reached, so that a defect that nothing
 * exercises is seen.
 */
#include "tests/model/execution.h"
#include "tests/model/explorer.h"
#include "tests/model/snapshot.h"

#include <string.h>

static struct {
	const struct model_defect *given; /* ends with one without a site; or NULL */
	const struct model_mutant *mutant;
	/* Since defects_forget_sites(). */
	bool mutant_is_reached;
	uint32_t given_reached; /* bits of the case's list */
} defects;

void defects_exclude(void)
{
	snapshot_exclude(&defects, sizeof(defects));
}

void defects_begin(const struct model_case *test, const struct model_mutant *mutant)
{
	defects.given = test->given;
	defects.mutant = mutant;
}

static bool is_defect(const struct model_defect *defect, enum model_spoil spoil, const char *site,
	const char *callee)
{
	return defect->spoil == spoil && strcmp(defect->site, site) == 0 &&
		(callee == NULL || (defect->callee != NULL && strcmp(defect->callee, callee) == 0));
}

bool model_is_spoilt(enum model_spoil spoil, const char *site, const char *callee)
{
	const struct model_mutant *mutant = defects.mutant;
	const struct model_defect *given = defects.given;

	for (uint32_t i = 0; given != NULL && given[i].site != NULL; i++) {
		if (is_defect(&given[i], spoil, site, callee)) {
			defects.given_reached |= 1u << i;
			return true;
		}
	}
	if (mutant == NULL || !is_defect(&mutant->defect, spoil, site, callee)) {
		return false;
	}
	defects.mutant_is_reached = true;
	return true;
}

void defects_forget_sites(void)
{
	defects.mutant_is_reached = false;
	defects.given_reached = 0;
}

const struct model_defect *defects_unreached(void)
{
	const struct model_defect *given = defects.given;

	if (defects.mutant != NULL) {
		return defects.mutant_is_reached ? NULL : &defects.mutant->defect;
	}
	for (uint32_t i = 0; given != NULL && given[i].site != NULL; i++) {
		if ((defects.given_reached & 1u << i) == 0) {
			return &given[i];
		}
	}
	return NULL;
}
