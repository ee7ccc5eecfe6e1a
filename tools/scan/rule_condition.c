/* SPDX-License-Identifier: MIT */
/*
 * Rules' conditions, made of filter expressions.
 */
#include "tools/scan/rule_condition.h"

#include "tools/scan/confirm.h"
#include "tools/scan/expression_tree.h"

#include <errno.h>
#include <stdlib.h>

struct condition {
	struct expression own; /* all zero: there is none */
	struct rule_condition_shared *shared;
};

struct rule_condition_shared *rule_condition_shared_create(void)
{
	struct rule_condition_shared *shared = calloc(1, sizeof(*shared));

	if (shared != NULL) {
		shared->owner_count = 1;
	}
	return shared;
}

void rule_condition_shared_release(struct rule_condition_shared *shared)
{
	if (shared == NULL || --shared->owner_count > 0) {
		return;
	}
	expression_free(&shared->prefilter);
	expression_free(&shared->filter);
	free(shared);
}

/* A search, in room that is made for the first one of a finding. */
static int search(void *arg, struct rule_regexes *regexes, const char *bytes, size_t length,
	size_t *out_start, size_t *out_end)
{
	struct confirm_room **room = arg;

	if (*room == NULL) {
		*room = confirm_room_create();
		if (*room == NULL) {
			return -ENOMEM;
		}
	}
	return rule_regexes_search(RULE_DIALECT_GO, regexes, *room, (const uint8_t *)bytes, length,
		out_start, out_end);
}

static bool drops(const struct expression *expression, const struct rule_subject *subject,
	struct confirm_room **room)
{
	return expression->root != NULL && expression_is_true(expression, subject, search, room);
}

static bool condition_keeps(const void *object, const struct rule_subject *subject)
{
	const struct condition *condition = object;
	const struct rule_condition_shared *shared = condition->shared;
	struct confirm_room *room = NULL;
	bool is_dropped = drops(&condition->own, subject, &room);

	if (!is_dropped && shared != NULL) {
		is_dropped = drops(&shared->prefilter, subject, &room) ||
			drops(&shared->filter, subject, &room);
	}
	confirm_room_destroy(room);
	return !is_dropped;
}

static void condition_destroy(void *object)
{
	struct condition *condition = object;

	expression_free(&condition->own);
	rule_condition_shared_release(condition->shared);
	free(condition);
}

/* The filter's condition, made now if there is none; NULL: no memory. */
static struct condition *condition_of(struct rule_filter *filter)
{
	if (filter->condition.object == NULL) {
		filter->condition = (struct rule_condition){
			.object = calloc(1, sizeof(struct condition)),
			.keeps = condition_keeps,
			.destroy = condition_destroy,
		};
	}
	return filter->condition.object;
}

int rule_condition_set(struct rule_filter *filter, struct expression *expression)
{
	struct condition *condition = condition_of(filter);

	if (condition == NULL) {
		expression_free(expression);
		return -ENOMEM;
	}
	expression_free(&condition->own);
	condition->own = *expression;
	*expression = (struct expression){0};
	return 0;
}

int rule_condition_share(struct rule_filter *filter, struct rule_condition_shared *shared)
{
	struct condition *condition = condition_of(filter);

	if (condition == NULL) {
		return -ENOMEM;
	}
	rule_condition_shared_release(condition->shared);
	condition->shared = shared;
	shared->owner_count++;
	return 0;
}

const struct expression *rule_condition_own(const struct rule_filter *filter)
{
	const struct condition *condition = filter->condition.object;

	return condition != NULL && condition->own.root != NULL ? &condition->own : NULL;
}

int rule_condition_check(struct expression *expression, char out_reason[RULE_FILTER_REASON_BYTES])
{
	struct expression_regexes *regexes = expression->regexes;
	int error = 0;

	for (; regexes != NULL && error == 0; regexes = regexes->next) {
		error = rule_regexes_check(RULE_DIALECT_GO, &regexes->list, out_reason);
	}
	return error;
}
