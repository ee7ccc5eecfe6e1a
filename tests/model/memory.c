/* SPDX-License-Identifier: MIT */
/*
 * Locations, views, and the operations on them.
 */
#include "tests/model/memory.h"
#include "tests/model/choices.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <string.h>

enum {
	/* Older values are forgotten; no case needs as many. */
	VALUES_MAX = 8,
	LOCATIONS_MAX = 4096,
};

struct view {
	uint32_t times[MODEL_THREADS_MAX]; /* per thread, its operations known */
	uint32_t seq_cst_count;		   /* seq_cst writes known to have been */
};

struct value {
	uint64_t number;
	struct view released;
	uint32_t seq_cst_number;	  /* 0: not written by a seq_cst operation */
	uint32_t seen[MODEL_THREADS_MAX]; /* when each thread saw it; 0: not yet */
};

struct location {
	const void *address;
	uint64_t execution; /* of which the values are */
	uint32_t readers;   /* bits of threads, of all executions */
	uint32_t writers;
	bool is_shared;
	uint32_t value_count;
	struct value values[VALUES_MAX]; /* the newest is the last */
};

struct mind {
	struct view now;
	struct view fenced;  /* at the last fence: what relaxed stores release */
	struct view pending; /* of relaxed loads: acquired by the next fence */
};

static struct {
	struct location locations[LOCATIONS_MAX]; /* open addressing */
	uint32_t location_count;
	bool has_learnt;
	uint64_t execution;
	struct mind minds[MODEL_THREADS_MAX];
	struct view fences; /* what all fences so far knew */
	uint32_t seq_cst_count;
} memory;

/* ---- views ---- */

static void join(struct view *view, const struct view *other)
{
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		if (view->times[i] < other->times[i]) {
			view->times[i] = other->times[i];
		}
	}
	if (view->seq_cst_count < other->seq_cst_count) {
		view->seq_cst_count = other->seq_cst_count;
	}
}

static bool knows(const struct view *view, const struct value *value)
{
	if (value->seq_cst_number != 0 && value->seq_cst_number <= view->seq_cst_count) {
		return true;
	}
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		if (value->seen[i] != 0 && value->seen[i] <= view->times[i]) {
			return true;
		}
	}
	return false;
}

static struct mind *tick(void)
{
	uint32_t thread = model_thread_current();

	memory.minds[thread].now.times[thread]++;
	return &memory.minds[thread];
}

void memory_begin(bool forgets_sharing)
{
	if (forgets_sharing) {
		memset(memory.locations, 0, sizeof(memory.locations));
		memory.location_count = 0;
	}
	memory.execution++;
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

static struct location *find(const void *address, size_t bytes, const char *site)
{
	size_t index = ((uintptr_t)address >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 52;
	struct location *location = &memory.locations[index % LOCATIONS_MAX];
	uint64_t number;

	if (model_is_freed(address)) {
		model_fail("%s touches freed memory", site);
	}
	while (location->address != NULL && location->address != address) {
		index++;
		location = &memory.locations[index % LOCATIONS_MAX];
	}
	if (location->address == NULL) {
		MODEL_CHECK(memory.location_count < LOCATIONS_MAX / 2);
		memory.location_count++;
		location->address = address;
	}
	number = peek(address, bytes);
	/* Memory holds the newest value, unless it was initialised anew. */
	if (location->execution != memory.execution ||
		location->values[location->value_count - 1].number != number) {
		location->execution = memory.execution;
		location->value_count = 1;
		location->values[0] = (struct value){.number = number};
	}
	return location;
}

/* The point before an operation, and the bookkeeping of shared locations. */
static void arrive(struct location *location, bool writes)
{
	uint32_t bit = 1u << model_thread_current();
	uint32_t users;

	if (!model_is_quiet()) {
		location->readers |= bit;
		location->writers |= writes ? bit : 0;
		users = location->readers | location->writers;
		if (!location->is_shared && location->writers != 0 && (users & (users - 1)) != 0) {
			location->is_shared = true;
			memory.has_learnt = true;
		}
	}
	if (location->is_shared || choices_are_repeated() || model_is_quiet()) {
		model_point();
	} else {
		choices_take(1, 0);
	}
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
	struct location *location = find(address, bytes, site);
	struct value *value;
	struct mind *mind;
	uint32_t age = 0;

	arrive(location, false);
	location = find(address, bytes, site);
	mind = tick();
	while (age + 1 < location->value_count &&
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
	struct location *location = find(address, bytes, site);

	arrive(location, true);
	location = find(address, bytes, site);
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
	struct location *location = find(address, bytes, site);
	struct value before;
	uint64_t after;

	order = weakened(order, site);
	arrive(location, true);
	location = find(address, bytes, site);
	before = read_newest(location, tick(), order);
	if (model_is_spoilt(MODEL_TORN, site, NULL)) {
		arrive(location, true);
		location = find(address, bytes, site);
	}
	after = cut(apply(update, before.number, operand), bytes);
	write_back(location, tick(), address, bytes, after, order, &before);
	model_event(site, "update", address, peek(address, bytes));
	return before.number;
}

bool model_cas(void *address, size_t bytes, uint64_t *expected, uint64_t number,
	enum model_order order, const char *site)
{
	struct location *location = find(address, bytes, site);
	struct value before;
	struct mind *mind;

	order = weakened(order, site);
	arrive(location, true);
	location = find(address, bytes, site);
	mind = tick();
	if (newest(location)->number != *expected) {
		before = read_newest(location, mind, MODEL_ORDER_RELAXED);
		*expected = before.number;
		model_event(site, "failed cas", address, before.number);
		return false;
	}
	before = read_newest(location, mind, order);
	if (model_is_spoilt(MODEL_TORN, site, NULL)) {
		arrive(location, true);
		location = find(address, bytes, site);
	}
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
