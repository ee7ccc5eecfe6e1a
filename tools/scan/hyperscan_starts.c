/* SPDX-License-Identifier: MIT */
/*
 * Finding where matches start, by a second search or by anchored trials.
 *
 * Both look at a part of the block only. That is exact because the part holds
 * one byte before and two after the widest match: `\b`, `^`, `$` and `\Z` read
 * no further. What they get wrong at the part's own borders ends before the
 * first or after the last end asked for.
 */
#if defined(HAVE_HYPERSCAN)

#include "tools/scan/hyperscan_starts.h"

#include "tools/scan/hyperscan_shipped.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEFT_CONTEXT = 1,
	RIGHT_CONTEXT = 2,
};

#define START_UNKNOWN UINT64_MAX

int hyperscan_starts_init(
	struct hyperscan_starts *starts, char *expression, uint32_t min_width, uint32_t max_width)
{
	*starts = (struct hyperscan_starts){
		.expression = expression,
		.min_width = min_width,
		.max_width = max_width,
	};
	starts->with_som.was_tried = max_width > HYPERSCAN_SOM_WIDTH_MAX;
	pthread_mutex_init(&starts->lock, NULL);
	return expression == NULL ? -ENOMEM : 0;
}

void hyperscan_starts_fini(struct hyperscan_starts *starts)
{
	hs_free_database(starts->with_som.database);
	for (size_t i = 0; i < HYPERSCAN_CONTEXT_COUNT; i++) {
		hs_free_database(starts->anchored[i].database);
	}
	pthread_mutex_destroy(&starts->lock);
	free(starts->expression);
}

static hs_database_t *find_shipped(const char *expression, unsigned flags)
{
	unsigned id = 0;
	const struct hyperscan_list list = {&expression, &flags, &id, 1, HS_MODE_BLOCK};
	struct hyperscan_target least = hyperscan_target_least();

	return hyperscan_shipped_find(&list, &least);
}

static hs_database_t *compile(const char *expression, unsigned flags)
{
	hs_database_t *database;
	hs_compile_error_t *error = NULL;

	if (expression == NULL) {
		return NULL;
	}
	flags |= HYPERSCAN_FLAGS;
	database = find_shipped(expression, flags);
	if (database == NULL &&
		hs_compile(expression, flags, HS_MODE_BLOCK, NULL, &database, &error) !=
			HS_SUCCESS) {
		hs_free_compile_error(error);
		return NULL;
	}
	return database;
}

/* Failing to compile may take long as well, so it is tried once only. */
static const hs_database_t *need_som(struct hyperscan_starts *starts)
{
	struct hyperscan_lazy *lazy = &starts->with_som;

	pthread_mutex_lock(&starts->lock);
	if (!lazy->was_tried) {
		lazy->database = compile(starts->expression, HS_FLAG_SOM_LEFTMOST);
		lazy->was_tried = true;
	}
	pthread_mutex_unlock(&starts->lock);
	return lazy->database;
}

/* NULL: nothing can match in this context, or the pattern became too large. */
static const hs_database_t *need_anchored(
	struct hyperscan_starts *starts, enum hyperscan_context context)
{
	struct hyperscan_lazy *lazy = &starts->anchored[context];

	pthread_mutex_lock(&starts->lock);
	if (!lazy->was_tried) {
		char *expression = hyperscan_expression_anchored(starts->expression, context);

		lazy->database = compile(expression, 0);
		lazy->was_tried = true;
		free(expression);
	}
	pthread_mutex_unlock(&starts->lock);
	return lazy->database;
}

struct start_search {
	struct candidate *items;
	size_t count;
	uint64_t offset; /* of the part searched, in the block */
	uint64_t start;	 /* of the trial, in the block */
	size_t next;	 /* of the trial, where its next end is looked for */
	uint64_t work;	 /* the sum of the widths of placed items */
	uint64_t work_max;
};

static struct candidate *find_end(const struct start_search *search, uint64_t end)
{
	size_t low = 0;
	size_t high = search->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (search->items[middle].end < end) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low < search->count && search->items[low].end == end ? &search->items[low] : NULL;
}

static int on_match_with_start(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *arg)
{
	const struct start_search *search = arg;
	struct candidate *item = find_end(search, search->offset + to);

	(void)id;
	(void)flags;
	if (item != NULL && search->offset + from < item->start) {
		item->start = search->offset + from;
	}
	return 0;
}

/* As find_end(), for ends that come in order. */
static struct candidate *next_end(struct start_search *search, uint64_t end)
{
	while (search->next < search->count && search->items[search->next].end < end) {
		search->next++;
	}
	return search->next < search->count && search->items[search->next].end == end
		? &search->items[search->next]
		: NULL;
}

/*
 * Trials go from left to right, so the first start of an end is its leftmost.
 */
static int on_match_of_trial(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *arg)
{
	struct start_search *search = arg;
	struct candidate *item = next_end(search, search->offset + to);

	(void)id;
	(void)from;
	(void)flags;
	if (item != NULL && item->start == START_UNKNOWN) {
		item->start = search->start;
	}
	return 0;
}

/* Searches block bytes [from, until) for `search`. */
static int search_part(const hs_database_t *database, hs_scratch_t *scratch,
	const struct matcher_block *block, size_t from, size_t until, match_event_handler handler,
	struct start_search *search)
{
	hs_error_t status;

	search->offset = from;
	status = hs_scan(database, (const char *)block->bytes + from, (unsigned)(until - from), 0,
		scratch, handler, search);
	return status == HS_SUCCESS ? 0 : -EPROTO;
}

static size_t part_end(const struct matcher_block *block, uint64_t last_end)
{
	size_t end = last_end < block->length ? (size_t)last_end : block->length;

	return block->length - end > RIGHT_CONTEXT ? end + RIGHT_CONTEXT : block->length;
}

/*
 * Ends that are near each other, so that no bytes far from all of them are
 * searched.
 */
static size_t group_size(
	const struct hyperscan_starts *starts, const struct candidate *items, size_t count)
{
	size_t size = 1;

	while (size < count && items[size].end - items[size - 1].end <= 2 * starts->max_width) {
		size++;
	}
	return size;
}

static int find_with_som(const struct hyperscan_starts *starts, const hs_database_t *database,
	hs_scratch_t **scratch, const struct matcher_block *block, struct candidate *items,
	size_t count)
{
	int error = hs_alloc_scratch(database, scratch) == HS_SUCCESS ? 0 : -ENOMEM;

	while (count > 0 && error == 0) {
		size_t size = group_size(starts, items, count);
		size_t reach = starts->max_width + LEFT_CONTEXT;
		size_t from = items[0].end > reach ? (size_t)items[0].end - reach : 0;
		struct start_search search = {.items = items, .count = size};

		error = search_part(database, *scratch, block, from,
			part_end(block, items[size - 1].end), on_match_with_start, &search);
		for (size_t i = 0; i < size && error == 0; i++) {
			error = items[i].start == START_UNKNOWN ? -EPROTO : 0;
		}
		items += size;
		count -= size;
	}
	return error;
}

/* What trials need, readied when they first need it: that takes 0.7 µs. */
struct trials {
	struct hyperscan_starts *starts;
	const struct matcher_block *block;
	hs_scratch_t **scratch;
	bool is_ready[HYPERSCAN_CONTEXT_COUNT];
	const hs_database_t *databases[HYPERSCAN_CONTEXT_COUNT];
};

static int trials_ready(struct trials *trials, enum hyperscan_context context)
{
	const hs_database_t *database = need_anchored(trials->starts, context);

	if (database != NULL && hs_alloc_scratch(database, trials->scratch) != HS_SUCCESS) {
		return -ENOMEM;
	}
	trials->databases[context] = database;
	trials->is_ready[context] = true;
	return 0;
}

static enum hyperscan_context context_of(const struct matcher_block *block, uint64_t start)
{
	if (start == 0) {
		return HYPERSCAN_CONTEXT_FILE;
	}
	return block->bytes[start - 1] == '\n' ? HYPERSCAN_CONTEXT_LINE : HYPERSCAN_CONTEXT_INSIDE;
}

/* Tries one start for all ends it can reach. */
static int try_start(struct trials *trials, struct start_search *search)
{
	enum hyperscan_context context = context_of(trials->block, search->start);
	uint64_t last_end = search->items[search->count - 1].end;
	uint64_t reach = search->start + trials->starts->max_width;
	size_t until = part_end(trials->block, reach < last_end ? reach : last_end);
	size_t from = (size_t)search->start - (context == HYPERSCAN_CONTEXT_INSIDE);

	if (!trials->is_ready[context]) {
		int error = trials_ready(trials, context);

		if (error != 0) {
			return error;
		}
	}
	if (trials->databases[context] == NULL) {
		return 0;
	}
	search->next = 0;
	return search_part(trials->databases[context], *trials->scratch, trials->block, from, until,
		on_match_of_trial, search);
}

/*
 * Passes over ends whose start is known and over starts from which the first
 * other end is out of reach. False when none is left.
 */
static bool skip_to_trial(const struct hyperscan_starts *starts, struct start_search *search)
{
	uint64_t end;

	while (search->count > 0 && search->items[0].start != START_UNKNOWN) {
		search->work += search->items[0].end - search->items[0].start;
		search->items++;
		search->count--;
		if (search->work > search->work_max) {
			return false;
		}
	}
	if (search->count == 0) {
		return false;
	}
	end = search->items[0].end;
	if (end > starts->max_width && search->start < end - starts->max_width) {
		search->start = end - starts->max_width;
	}
	return true;
}

static int find_by_trial(struct hyperscan_starts *starts, hs_scratch_t **scratch,
	const struct matcher_block *block, uint64_t work_max, struct candidate *items,
	size_t *count)
{
	struct trials trials = {.starts = starts, .block = block, .scratch = scratch};
	struct start_search search = {.items = items, .count = *count, .work_max = work_max};
	int error = 0;

	for (; error == 0 && skip_to_trial(starts, &search); search.start++) {
		if (search.start + starts->min_width > search.items[0].end) {
			return -EPROTO;
		}
		error = try_start(&trials, &search);
	}
	*count -= search.count;
	return error;
}

int hyperscan_starts_find(struct hyperscan_starts *starts, hs_scratch_t **scratch,
	const struct matcher_block *block, uint64_t work_max, struct candidate *items,
	size_t *count)
{
	const hs_database_t *with_som = need_som(starts);

	for (size_t i = 0; i < *count; i++) {
		items[i].start = START_UNKNOWN;
	}
	if (with_som == NULL) {
		return find_by_trial(starts, scratch, block, work_max, items, count);
	}
	return find_with_som(starts, with_som, scratch, block, items, *count);
}

#endif
