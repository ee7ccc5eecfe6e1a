/* SPDX-License-Identifier: MIT */
/*
 * The plan of worker classes from the text of `lanes`, and the count of turns
 * that keeps lower lanes going.
 *
 * Parsed once, when a runtime is created; each worker then counts its own
 * turns. Pure arithmetic.
 */
#include "runtime/policy/lanes.h"
#include "runtime/base/check.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	WORKERS_MAX = 4096,
};

/* ---- the plan ---- */

/* The letter `m`, for medium, is a second name of the normal lane. */
static uint32_t lane_of_letter(char letter)
{
	switch (letter) {
	case 'h':
		return PINION_LANE_HIGH;
	case 'n':
	case 'm':
		return PINION_LANE_NORMAL;
	case 'l':
		return PINION_LANE_LOW;
	default:
		return PIN_LANE_NONE;
	}
}

static bool is_letter(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/*
 * The letters of one class; their order is the order in which its workers serve
 * the lanes.
 */
static const char *parse_order(struct pin_lane_order *order, const char **text)
{
	uint32_t lane = lane_of_letter(**text);

	*order = (struct pin_lane_order){0};
	for (; lane != PIN_LANE_NONE; lane = lane_of_letter(*++*text)) {
		if ((order->mask & PIN_LANE_BIT(lane)) != 0) {
			return "a lane is named twice in one class";
		}
		order->mask |= PIN_LANE_BIT(lane);
		order->lanes[order->count++] = (uint8_t)lane;
	}
	PIN_DCHECK(order->count <= PIN_LANES);
	/* Another letter follows, or stands alone: "hnx", "x". */
	if (order->count == 0 || is_letter(**text)) {
		return "a class is not made of the letters h, n (or m) and l";
	}
	return NULL;
}

/* 0: there is no number, or one out of range. */
static uint32_t parse_count(const char **text)
{
	uint32_t count = 0;

	for (; **text >= '0' && **text <= '9'; ++*text) {
		count = count * 10 + (uint32_t)(**text - '0');
		if (count > WORKERS_MAX) {
			return 0;
		}
	}
	return count;
}

/*
 * One class of the text: its letters, and a number of workers, which only the
 * last class may leave out.
 */
static const char *parse_class(struct pin_lane_plan *plan, const char **text)
{
	const char *fault;

	if (plan->class_count == PIN_WORKER_CLASSES_MAX) {
		return "there are more than 4 classes";
	}
	fault = parse_order(&plan->orders[plan->class_count], text);
	if (fault == NULL && **text == ':') {
		++*text;
		plan->worker_counts[plan->class_count] = parse_count(text);
		if (plan->worker_counts[plan->class_count] == 0) {
			fault = "a number of workers is not 1 to 4096";
		}
	} else if (fault == NULL && **text == ',') {
		fault = "only the last class may leave out its number of workers";
	}
	plan->class_count++;
	return fault;
}

/*
 * Returns the mistake in words, or NULL. A lane that no class serves is a
 * mistake, since its tasks would never run.
 */
const char *pin_lane_plan_parse(struct pin_lane_plan *out_plan, const char *text)
{
	struct pin_lane_plan plan = {0};
	uint32_t mask = 0;

	if (text == NULL || *text == '\0') {
		text = "hnl";
	}
	for (;;) {
		const char *fault = parse_class(&plan, &text);

		if (fault != NULL) {
			return fault;
		}
		mask |= plan.orders[plan.class_count - 1].mask;
		if (*text == '\0') {
			break;
		}
		if (*text++ != ',') {
			return "classes are not divided by commas";
		}
	}
	if (mask != PIN_LANES_ALL) {
		return "a lane is served by no class";
	}
	PIN_DCHECK(plan.class_count >= 1 && plan.class_count <= PIN_WORKER_CLASSES_MAX);
	*out_plan = plan;
	return NULL;
}

/*
 * Gives the rest of the workers to a last class without a number; returns their
 * sum, 0 if it cannot fit.
 */
uint32_t pin_lane_plan_complete(
	struct pin_lane_plan *plan, uint32_t worker_count, uint32_t default_count)
{
	uint32_t *rest = &plan->worker_counts[plan->class_count - 1];
	uint32_t named = 0;

	PIN_DCHECK(plan->class_count >= 1 && plan->class_count <= PIN_WORKER_CLASSES_MAX);
	for (uint32_t i = 0; i < plan->class_count; i++) {
		named += plan->worker_counts[i];
	}
	if (*rest != 0) {
		return worker_count == 0 || worker_count == named ? named : 0;
	}
	if (worker_count == 0) {
		worker_count = default_count > named ? default_count : named + 1;
	}
	if (worker_count <= named) {
		return 0;
	}
	*rest = worker_count - named;
	return worker_count;
}

uint32_t pin_lane_plan_class(const struct pin_lane_plan *plan, uint32_t worker_index)
{
	uint32_t worker_class = 0;

	while (worker_index >= plan->worker_counts[worker_class]) {
		worker_index -= plan->worker_counts[worker_class];
		worker_class++;
		PIN_CHECK(worker_class < plan->class_count);
	}
	return worker_class;
}

/* ---- turns ---- */

void pin_lane_turns_init(
	struct pin_lane_turns *turns, const struct pin_lane_order *order, uint32_t floor)
{
	PIN_CHECK(order->count >= 1 && order->count <= PIN_LANES);
	*turns = (struct pin_lane_turns){.order = *order};
	for (uint32_t i = 0; i < order->count; i++) {
		turns->floors[order->lanes[i]] = floor;
	}
	turns->floors[PIN_LANE_BOUND] = PIN_LANE_BOUND_FLOOR;
}

static bool is_due(const struct pin_lane_turns *turns, uint32_t slot)
{
	PIN_DCHECK(slot < PIN_LANE_SLOTS);
	return turns->floors[slot] != 0 && turns->passed_counts[slot] + 1 >= turns->floors[slot];
}

uint32_t pin_lane_turns_due(const struct pin_lane_turns *turns, uint32_t overdue)
{
	for (uint32_t i = 0; i < turns->order.count; i++) {
		uint32_t lane = turns->order.lanes[i];

		if (is_due(turns, lane) || (overdue & PIN_LANE_BIT(lane)) != 0) {
			return lane;
		}
	}
	return is_due(turns, PIN_LANE_BOUND) ? PIN_LANE_BOUND : PIN_LANE_NONE;
}

/*
 * A lane is passed over when a task of a lane before it was taken; enough of
 * that gives it the floor.
 */
void pin_lane_turns_note(struct pin_lane_turns *turns, uint32_t slot)
{
	bool is_behind = false;

	PIN_CHECK(slot < PIN_LANE_SLOTS);
	turns->passed_counts[slot] = 0;
	for (uint32_t i = 0; i < turns->order.count; i++) {
		uint32_t lane = turns->order.lanes[i];

		if (is_behind) {
			turns->passed_counts[lane]++;
		}
		is_behind |= lane == slot;
	}
	if (slot != PIN_LANE_BOUND) {
		turns->passed_counts[PIN_LANE_BOUND]++;
	}
}

void pin_lane_turns_note_urgent(struct pin_lane_turns *turns)
{
	PIN_CHECK(turns->order.count >= 1 && turns->order.count <= PIN_LANES);
	for (uint32_t i = 0; i < turns->order.count; i++) {
		turns->passed_counts[turns->order.lanes[i]]++;
	}
	turns->passed_counts[PINION_LANE_HIGH] = 0;
	turns->passed_counts[PIN_LANE_BOUND]++;
}
