/* SPDX-License-Identifier: MIT */
/*
 * Locations, views, and the operations on them.
 */
#include "tests/model/memory.h"
#include "tests/model/choices.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"
#include "tests/model/snapshot.h"

#include <stddef.h>
#include <string.h>

enum {
	/* Older values are forgotten; no case needs as many. */
	VALUES_MAX = 8,
	LOCATIONS_MAX = 4096,
};

struct view {
	int16_t times[MODEL_THREADS_MAX]; /* per thread, its operations known */
	uint32_t seq_cst_count;		  /* seq_cst writes known to have been */
};

struct value {
	uint64_t number;
	struct view released;
	uint32_t seq_cst_number;	 /* 0: not written by a seq_cst operation */
	int16_t seen[MODEL_THREADS_MAX]; /* when each thread saw it; 0: not yet */
};

struct location {
	const void *address;
	uint32_t readers; /* bits of threads, of all executions */
	uint32_t writers;
	bool is_shared;
	/* From here on, a snapshot has it. */
	uint64_t execution; /* of which the values are */
	uint32_t value_count;
	struct value values[VALUES_MAX]; /* the newest is the last */
};

struct mind {
	struct view now;
	struct view fenced;  /* at the last fence: what relaxed stores release */
	struct view pending; /* of relaxed loads: acquired by the next fence */
};

static struct memory {
	const void *addresses[LOCATIONS_MAX]; /* open addressing */
	uint32_t places[LOCATIONS_MAX];	      /* of the locations, for addresses */
	struct location locations[LOCATIONS_MAX / 2];
	uint32_t location_count;
	bool has_learnt;
	uint64_t execution_count;
	/* From here on, a snapshot has it. */
	uint64_t execution;
	struct mind minds[MODEL_THREADS_MAX];
	struct view fences; /* what all fences so far knew */
	uint32_t seq_cst_count;
} memory;

/* ---- views: the times of each fit one vector register ---- */

static void join(struct view *view, const struct view *other)
{
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		int16_t time = view->times[i];

		view->times[i] = time < other->times[i] ? other->times[i] : time;
	}
	if (view->seq_cst_count < other->seq_cst_count) {
		view->seq_cst_count = other->seq_cst_count;
	}
}

static bool knows(const struct view *view, const struct value *value)
{
	int16_t is_seen = 0;

	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		is_seen |= (value->seen[i] != 0) & (value->seen[i] <= view->times[i]);
	}
	return is_seen != 0 ||
		(value->seq_cst_number != 0 && value->seq_cst_number <= view->seq_cst_count);
}

static struct mind *tick(void)
{
	uint32_t thread = model_thread_current();
	struct mind *mind = &memory.minds[thread];

	if (mind->now.times[thread] == INT16_MAX) {
		model_fail("livelock: more than %d operations of one thread", INT16_MAX);
	}
	mind->now.times[thread]++;
	return mind;
}

void memory_exclude(void)
{
	snapshot_exclude(&memory, sizeof(memory));
}

/* The values of this execution count as those of a new one. */
static void change_execution(void)
{
	uint64_t before = memory.execution;

	memory.execution_count++;
	memory.execution = memory.execution_count;
	for (uint32_t i = 0; i < memory.location_count; i++) {
		if (memory.locations[i].execution == before) {
			memory.locations[i].execution = memory.execution;
		}
	}
}

/*
 * The snapshot's values have an execution to themselves: those that come later,
 * here or after it was restored, are never taken for them.
 */
void memory_snapshot(void)
{
	change_execution();
	for (uint32_t i = 0; i < memory.location_count; i++) {
		struct location *location = &memory.locations[i];

		if (location->execution == memory.execution) {
			snapshot_add(&location->execution,
				offsetof(struct location, values) -
					offsetof(struct location, execution) +
					location->value_count * sizeof(location->values[0]));
		}
	}
	snapshot_add(&memory.execution, sizeof(memory) - offsetof(struct memory, execution));
	change_execution();
}

void memory_resume(void)
{
	change_execution();
}

void memory_begin(bool forgets_sharing)
{
	if (forgets_sharing) {
		memset(memory.addresses, 0, sizeof(memory.addresses));
		memset(memory.locations, 0, sizeof(memory.locations));
		memory.location_count = 0;
	}
	memory.execution_count++;
	memory.execution = memory.execution_count;
	memset(memory.minds, 0, sizeof(memory.minds));
	memset(&memory.fences, 0, sizeof(memory.fences));
	memory.seq_cst_count = 0;
}

bool memory_has_learnt(void)
{
	bool has_learnt = memory.has_learnt;

	memory.has_learnt = false;
	return has_learnt;
}

void memory_thread_starts(uint32_t parent, uint32_t child)
{
	memory.minds[child].now = memory.minds[parent].now;
}

void memory_thread_joins(uint32_t thread, uint32_t ended)
{
	join(&memory.minds[thread].now, &memory.minds[ended].now);
}

void memory_settle(uint32_t thread_count)
{
	struct view all = {.seq_cst_count = memory.seq_cst_count};

	for (uint32_t i = 0; i < thread_count; i++) {
		join(&all, &memory.minds[i].now);
	}
	for (uint32_t i = 0; i < thread_count; i++) {
		memory.minds[i].now = all;
	}
}

/* ---- locations ---- */

static uint64_t peek(const void *address, size_t bytes)
{
	uint32_t narrow;
	uint64_t wide;

	if (bytes == sizeof(narrow)) {
		memcpy(&narrow, address, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, address, sizeof(wide));
	return wide;
}

static void poke(void *address, size_t bytes, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;

	if (bytes == sizeof(narrow)) {
		memcpy(address, &narrow, sizeof(narrow));
	} else {
		memcpy(address, &value, sizeof(value));
	}
}

static struct location *find(const void *address)
{
	size_t index = ((uintptr_t)address >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 52;
	struct location *location;

	while (memory.addresses[index] != address) {
		if (memory.addresses[index] == NULL) {
			MODEL_CHECK(memory.location_count < LOCATIONS_MAX / 2);
			location = &memory.locations[memory.location_count];
			location->address = address;
			memory.addresses[index] = address;
			memory.places[index] = memory.location_count;
			memory.location_count++;
			return location;
		}
		index = (index + 1) % LOCATIONS_MAX;
	}
	return &memory.locations[memory.places[index]];
}

/* Memory holds the newest value, unless it was initialised anew. */
static void refresh(struct location *location, size_t bytes)
{
	uint64_t number = peek(location->address, bytes);

	if (location->execution != memory.execution) {
		location->execution = memory.execution;
		location->value_count = 0;
	}
	if (location->value_count == 0 ||
		location->values[location->value_count - 1].number != number) {
		location->value_count = 1;
		location->values[0] = (struct value){.number = number};
	}
}

/* Shared is what more than one thread uses, and one of them writes. */
static void note_user(struct location *location, bool writes)
{
	uint32_t bit = 1u << model_thread_current();
	uint32_t users;

	location->readers |= bit;
	location->writers |= writes ? bit : 0;
	users = location->readers | location->writers;
	if (!location->is_shared && location->writers != 0 && (users & (users - 1)) != 0) {
		location->is_shared = true;
		memory.has_learnt = true;
	}
}

static void expect_allocated(const void *address, const char *site)
{
	if (model_is_freed(address)) {
		model_fail("%s touches freed memory", site);
	}
}

/*
 * The point before an operation, and the bookkeeping of shared locations. NULL
 * in a quiet part: at its end every thread knows all that was done in it, so
 * plain memory is enough.
 */
static struct location *arrive(const void *address, size_t bytes, bool writes, const char *site)
{
	bool was_quiet = model_is_quiet();
	struct location *location = was_quiet ? NULL : find(address);

	expect_allocated(address, site);
	if (!was_quiet) {
		note_user(location, writes);
		refresh(location, bytes);
	}
	if (was_quiet || location->is_shared || choices_are_repeated()) {
		model_point();
		expect_allocated(address, site);
	} else {
		choices_take(1, 0);
	}
	if (was_quiet && !model_is_quiet()) {
		location = find(address);
	}
	if (location != NULL) {
		refresh(location, bytes);
	}
	return location;
}

static struct value *newest(struct location *location)
{
	return &location->values[location->value_count - 1];
}

static void append(struct location *location, void *address, size_t bytes, struct value value)
{
	if (location->value_count == VALUES_MAX) {
		memmove(&location->values[0], &location->values[1],
			sizeof(value) * (VALUES_MAX - 1));
		location->value_count--;
	}
	location->values[location->value_count] = value;
	location->value_count++;
	poke(address, bytes, value.number);
}

/* ---- operations ---- */

static enum model_order weakened(enum model_order order, const char *site)
{
	/*
	 * A relaxed operation cannot be spoilt, and reaches no mutant's site.
	 */
	return order != MODEL_ORDER_RELAXED && model_is_spoilt(MODEL_RELAXED, site, NULL)
		? MODEL_ORDER_RELAXED
		: order;
}

static void see(struct mind *mind, struct value *value, enum model_order order)
{
	uint32_t thread = model_thread_current();

	if (value->seen[thread] == 0) {
		value->seen[thread] = mind->now.times[thread];
	}
	if (order == MODEL_ORDER_RELAXED || order == MODEL_ORDER_RELEASE) {
		join(&mind->pending, &value->released);
	} else {
		join(&mind->now, &value->released);
	}
}

static struct value written(const struct mind *mind, uint64_t number, enum model_order order)
{
	struct value value = {.number = number};
	uint32_t thread = model_thread_current();

	value.seen[thread] = mind->now.times[thread];
	value.released = order >= MODEL_ORDER_RELEASE ? mind->now : mind->fenced;
	if (order == MODEL_ORDER_SEQ_CST) {
		memory.seq_cst_count++;
		value.seq_cst_number = memory.seq_cst_count;
	}
	return value;
}

uint64_t model_load(const void *address, size_t bytes, enum model_order order, const char *site)
{
	struct location *location = arrive(address, bytes, false, site);
	struct value *value;
	struct mind *mind;
	uint32_t age = 0;

	if (location == NULL) {
		return peek(address, bytes);
	}
	mind = tick();
	while (model_may_choose(MODEL_STALE_READ) && age + 1 < location->value_count &&
		!knows(&mind->now, &location->values[location->value_count - 1 - age])) {
		age++;
	}
	age = model_choose(MODEL_STALE_READ, age + 1);
	value = &location->values[location->value_count - 1 - age];
	see(mind, value, weakened(order, site));
	model_event(site, age > 0 ? "load of an old value" : "load", address, value->number);
	return value->number;
}

void model_store(
	void *address, size_t bytes, uint64_t number, enum model_order order, const char *site)
{
	struct location *location = arrive(address, bytes, true, site);

	if (location == NULL) {
		poke(address, bytes, number);
		return;
	}
	append(location, address, bytes, written(tick(), number, weakened(order, site)));
	model_event(site, "store", address, number);
}

static uint64_t cut(uint64_t number, size_t bytes)
{
	return bytes == sizeof(uint32_t) ? (uint32_t)number : number;
}

static uint64_t apply(enum model_update update, uint64_t before, uint64_t operand)
{
	switch (update) {
	case MODEL_EXCHANGE:
		return operand;
	case MODEL_ADD:
		return before + operand;
	case MODEL_SUB:
		return before - operand;
	case MODEL_OR:
		return before | operand;
	case MODEL_AND:
		return before & operand;
	}
	return before;
}

/* The read half of a read-modify-write; the write half follows at once. */
static struct value read_newest(
	struct location *location, struct mind *mind, enum model_order order)
{
	struct value *value = newest(location);

	see(mind, value, order);
	return *value;
}

/* A mutant's write half comes later than its read half. */
static void arrive_if_torn(
	struct location *location, const void *address, size_t bytes, const char *site)
{
	if (model_is_spoilt(MODEL_TORN, site, NULL)) {
		(void)arrive(address, bytes, true, site);
		refresh(location, bytes);
	}
}

static void write_back(struct location *location, struct mind *mind, void *address, size_t bytes,
	uint64_t number, enum model_order order, const struct value *before)
{
	struct value after = written(mind, number, order);

	join(&after.released, &before->released);
	append(location, address, bytes, after);
}

uint64_t model_update(void *address, size_t bytes, enum model_update update, uint64_t operand,
	enum model_order order, const char *site)
{
	struct location *location;
	struct value before;
	uint64_t after;

	order = weakened(order, site);
	location = arrive(address, bytes, true, site);
	if (location == NULL) {
		before.number = peek(address, bytes);
		poke(address, bytes, apply(update, before.number, operand));
		return before.number;
	}
	before = read_newest(location, tick(), order);
	arrive_if_torn(location, address, bytes, site);
	after = cut(apply(update, before.number, operand), bytes);
	write_back(location, tick(), address, bytes, after, order, &before);
	model_event(site, "update", address, peek(address, bytes));
	return before.number;
}

bool model_cas(void *address, size_t bytes, uint64_t *expected, uint64_t number,
	enum model_order order, const char *site)
{
	struct location *location;
	struct value before;
	struct mind *mind;

	order = weakened(order, site);
	location = arrive(address, bytes, true, site);
	if (location == NULL) {
		bool is_done = peek(address, bytes) == *expected;

		if (is_done) {
			poke(address, bytes, number);
		} else {
			*expected = peek(address, bytes);
		}
		return is_done;
	}
	mind = tick();
	if (newest(location)->number != *expected) {
		before = read_newest(location, mind, MODEL_ORDER_RELAXED);
		*expected = before.number;
		model_event(site, "failed cas", address, before.number);
		return false;
	}
	before = read_newest(location, mind, order);
	arrive_if_torn(location, address, bytes, site);
	write_back(location, tick(), address, bytes, number, order, &before);
	model_event(site, "cas", address, number);
	return true;
}

void model_fence(const char *site)
{
	struct mind *mind;

	model_point();
	if (model_is_spoilt(MODEL_DROP_FENCE, site, NULL)) {
		return;
	}
	mind = tick();
	join(&mind->now, &mind->pending);
	join(&mind->now, &memory.fences);
	mind->now.seq_cst_count = memory.seq_cst_count;
	join(&memory.fences, &mind->now);
	mind->fenced = mind->now;
	model_event(site, "fence", NULL, 0);
}
