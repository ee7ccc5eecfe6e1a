/* SPDX-License-Identifier: MIT */
/*
 * Goal: a lane's depth never counts more popped than pushed, whenever it is
 * read, and is 0 when all is popped: [LANE-1].
 * Method: one thread pushes, one pops, one reads the depth, which asserts that
 * itself. Mutants count in the other order, on either side.
 */
#include "runtime/queue/lane_queue.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "tests/model/explorer.h"

/*
 * LATE, of "count": the push counts when others may have popped already. EARLY:
 * the pop counts before it looks, and takes that back if it finds nothing; of
 * "pushed": the depth reads that first.
 */
static uint32_t late_count;
static uint64_t early_pushed;

static uint64_t count_pushed(struct pin_atomic_u64 *pushed, uint32_t count, const char *site)
{
	if (model_is_spoilt(MODEL_LATE, site, "count")) {
		late_count = count;
		return 0;
	}
	return pin_fetch_add_relaxed_u64(pushed, count);
}

static void push(struct pin_lane_queue *queue, struct pin_list *list)
{
	pin_injector_push(&queue->injector, list);
	if (late_count > 0) {
		pin_fetch_add_relaxed_u64(&queue->pushed, late_count);
		late_count = 0;
	}
}

static uint32_t pop_one(struct pin_lane_queue *queue, struct pin_list *out_list, bool *out_has_more,
	const char *site)
{
	bool is_early = model_is_spoilt(MODEL_EARLY, site, "count");
	uint32_t count;

	if (is_early) {
		pin_fetch_add_acq_rel_u64(&queue->popped, 1);
	}
	count = pin_injector_pop(&queue->injector, 1, 1, out_list, out_has_more);
	if (is_early && count == 0) {
		pin_fetch_sub_acq_rel_u64(&queue->popped, 1);
	}
	return count;
}

static uint64_t load_count(
	const struct pin_lane_queue *queue, const struct pin_atomic_u64 *count, const char *site)
{
	if (!model_is_spoilt(MODEL_EARLY, site, "pushed")) {
		return model_load_u64(count, MODEL_ORDER_ACQUIRE, site);
	}
	if (count == &queue->pushed) {
		return early_pushed;
	}
	early_pushed = model_load_u64(&queue->pushed, MODEL_ORDER_ACQUIRE, site);
	return model_load_u64(count, MODEL_ORDER_ACQUIRE, site);
}

#pragma push_macro("pin_fetch_add_relaxed_u64")
#pragma push_macro("pin_fetch_add_acq_rel_u64")
#pragma push_macro("pin_load_acquire_u64")
#undef pin_fetch_add_relaxed_u64
#undef pin_fetch_add_acq_rel_u64
#undef pin_load_acquire_u64
#define pin_fetch_add_relaxed_u64(pushed, count) count_pushed(pushed, count, __func__)
#define pin_fetch_add_acq_rel_u64(popped, count) \
	(model_is_spoilt(MODEL_EARLY, __func__, "count") \
			? 0 \
			: model_update_u64( \
				  popped, MODEL_ADD, count, MODEL_ORDER_ACQ_REL, __func__))
#define pin_load_acquire_u64(count) load_count(queue, count, __func__)
#define pin_injector_push(injector, list) push(queue, list)
#define pin_injector_pop(injector, share_count, room, out_list, out_has_more) \
	pop_one(queue, out_list, out_has_more, __func__)
#include "runtime/queue/lane_queue.c"
#undef pin_injector_pop
#undef pin_injector_push
#pragma pop_macro("pin_load_acquire_u64")
#pragma pop_macro("pin_fetch_add_acq_rel_u64")
#pragma pop_macro("pin_fetch_add_relaxed_u64")

enum { ELEMENTS = 2 };

static struct pin_lane_queue lane;
static struct pin_link elements[ELEMENTS];
static uint32_t popped_count;

static void push_elements(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		struct pin_list list = {0};

		pin_list_push(&list, &elements[i]);
		pin_lane_queue_push(&lane, &list, 1);
	}
}

static void pop_element(void)
{
	bool has_more;
	const struct pin_link *link = pin_lane_queue_pop(&lane, &has_more);

	if (link != NULL) {
		MODEL_CHECK(link == &elements[popped_count]);
		popped_count++;
	}
}

static void pop_twice(void *arg)
{
	(void)arg;
	pop_element();
	pop_element();
}

static void run_depth(void)
{
	uint32_t threads[2];

	late_count = 0;
	popped_count = 0;
	pin_lane_queue_init(&lane, &pin_host_linux);
	threads[0] = model_thread_start("pusher", push_elements, NULL);
	threads[1] = model_thread_start("popper", pop_twice, NULL);
	MODEL_CHECK(pin_lane_queue_depth(&lane) <= ELEMENTS);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(threads); i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(pin_lane_queue_depth(&lane) == ELEMENTS - popped_count);
	while (popped_count < ELEMENTS) {
		pop_element();
	}
	MODEL_CHECK(pin_lane_queue_depth(&lane) == 0);
}

static const struct model_mutant mutants[] = {
	{"counted when it is pushed", {MODEL_LATE, "pin_lane_queue_push", "count"}},
	{"counted before it is popped", {MODEL_EARLY, "pin_lane_queue_pop", "count"}},
	{"counted as popped without a release", {MODEL_RELAXED, "pin_lane_queue_pop", NULL}},
	{"pushes are read first", {MODEL_EARLY, "pin_lane_queue_depth", "pushed"}},
	{"pops are read without an acquire", {MODEL_RELAXED, "pin_lane_queue_depth", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"depth", run_depth, 3, 1, 0, mutants, NULL},
};

int main(void)
{
	return model_main("lane_queue", cases, PIN_ARRAY_COUNT(cases));
}
