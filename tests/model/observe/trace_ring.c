/* SPDX-License-Identifier: MIT */
/*
 * Goal: an event that a reader is given is whole, is the one of its number, and
 * is given once; each is given or counted as lost: [TRACE-1], [TRACE-2].
 * Method: a writer puts more events into a ring of two slots than it holds,
 * while a reader takes some twice, and the rest at the end. All fields of an
 * event are its number.
 */
#include "runtime/observe/trace_ring.h"
#include "runtime/base/base.h"
#include "tests/model/explorer.h"

/* EARLY: one event more is taken for whole than surely is. */
#define pin_trace_ring_oldest(slots, head) \
	((pin_trace_ring_oldest)(slots, head) - \
		((head) >= (slots) && \
			model_is_spoilt(MODEL_EARLY, __func__, "pin_trace_ring_oldest")))
#include "runtime/observe/trace_ring.c"

enum { SLOTS = 2, EVENTS = 4, READS = 2, LIMIT = 2 };

static struct pin_atomic_u64 words[PIN_TRACE_HEAD_WORDS + SLOTS * PIN_TRACE_EVENT_WORDS];
static struct pin_trace_ring ring;
static struct pin_trace_cursor cursor;
static uint64_t given_count;

static void check_event(const struct pin_trace_event *event, uint64_t number)
{
	MODEL_CHECK(event->kind == PIN_TRACE_TASK_BEGIN);
	MODEL_CHECK(event->time_ns == number);
	MODEL_CHECK((uint64_t)event->number == number);
	MODEL_CHECK(event->first == number && event->second == number);
}

static void take_some(size_t limit)
{
	struct pin_trace_event events[LIMIT];
	size_t count;

	MODEL_CHECK(
		pin_trace_cursor_take(&cursor, pin_seqlock_fetch, words, events, limit, &count));
	MODEL_CHECK(count <= limit);
	for (size_t i = 0; i < count; i++) {
		check_event(&events[i], cursor.next - count + i);
	}
	given_count += count;
	MODEL_CHECK(given_count + cursor.lost == cursor.next);
}

static void read_some(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < READS; i++) {
		take_some(LIMIT);
	}
}

static void reset(void)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(words); i++) {
		pin_store_relaxed_u64(&words[i], UINT64_MAX);
	}
	pin_store_relaxed_u64(&words[0], 0);
	pin_trace_ring_init(&ring, words, SLOTS);
	cursor = (struct pin_trace_cursor){.slots = SLOTS};
	given_count = 0;
}

static void run_overwritten(void)
{
	uint32_t reader;

	reset();
	reader = model_thread_start("reader", read_some, NULL);
	for (uint32_t i = 0; i < EVENTS; i++) {
		pin_trace_ring_put(&ring,
			&(struct pin_trace_event){.kind = PIN_TRACE_TASK_BEGIN,
				.time_ns = i,
				.number = (int32_t)i,
				.first = i,
				.second = i});
	}
	model_thread_join(reader);
	/* Nothing is written any more: the last one is there. */
	while (cursor.next < EVENTS) {
		take_some(1);
	}
	MODEL_CHECK(given_count > 0 && given_count + cursor.lost == EVENTS);
}

static const struct model_mutant mutants[] = {
	{"words are seen before the head", {MODEL_RELAXED, "pin_trace_ring_write", NULL}},
	{"the head is seen before the words", {MODEL_RELAXED, "pin_trace_ring_put", NULL}},
	{"the reader looks without fences", {MODEL_DROP_FENCE, "pin_trace_cursor_take", NULL}},
	{"the event that is being overwritten is taken",
		{MODEL_EARLY, "pin_trace_cursor_take", "pin_trace_ring_oldest"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"overwritten", run_overwritten, 3, 2, 0, mutants, NULL},
};

int main(void)
{
	return model_main("trace_ring", cases, PIN_ARRAY_COUNT(cases));
}
