/* SPDX-License-Identifier: MIT */
/*
 * The matcher over Hyperscan.
 *
 * All bounded rules are one block database that reports ends only. Where a rule
 * matches a fixed number of bytes its start follows; other rules' starts are
 * looked up afterwards (hyperscan_starts.h), those of confirmed rules are not.
 * Unbounded rules are a streaming database that tracks starts itself, at
 * whatever cost: they are rare.
 *
 * Databases are shared and read-only; each worker has scratch of its own.
 */
#if defined(HAVE_HYPERSCAN)

#include "tools/scan/matcher.h"

#include "tools/scan/confirm.h"
#include "tools/scan/hyperscan_compile.h"
#include "tools/scan/hyperscan_shipped.h"
#include "tools/scan/hyperscan_starts.h"
#include "tools/scan/kept_text.h"
#include "tools/scan/rules_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct matcher {
	const struct rules *rules;
	struct hyperscan_starts *starts; /* one per rule; unused for some */
	hs_database_t *bounded;		 /* NULL: no such rules */
	hs_database_t *unbounded;
};

/* Ends of a rule in the search of that number. */
struct end_counter {
	uint64_t search;
	uint64_t count; /* of a confirmed rule: 1 more than the index of its last candidate */
};

struct matcher_worker {
	struct matcher *matcher;
	struct end_counter *ends; /* one per rule; NULL: not needed */
	uint64_t search;
	hs_scratch_t *scratch;	     /* for the two databases */
	hs_scratch_t *start_scratch; /* grown when starts are looked up */
	struct candidates unplaced;  /* matches whose start is not known yet */
};

struct matcher_stream {
	hs_stream_t *stream;
};

static void hyperscan_destroy(struct matcher *matcher)
{
	if (matcher == NULL) {
		return;
	}
	for (uint32_t i = 0; matcher->starts != NULL && i < matcher->rules->count; i++) {
		hyperscan_starts_fini(&matcher->starts[i]);
	}
	free(matcher->starts);
	hs_free_database(matcher->bounded);
	hs_free_database(matcher->unbounded);
	free(matcher);
}

static int init_starts(struct matcher *matcher)
{
	uint32_t count = matcher->rules->count;
	int error = 0;

	matcher->starts = calloc(count, sizeof(*matcher->starts));
	if (matcher->starts == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct rule *rule = &matcher->rules->items[i];

		if (hyperscan_starts_init(&matcher->starts[i], hyperscan_expression(rule),
			    rule->min_width, rule->max_width) != 0) {
			error = -ENOMEM;
		}
	}
	return error;
}

static const char *version_text(void)
{
	static char text[160];
	struct hyperscan_target here = hyperscan_target_here();

	snprintf(text, sizeof(text), "%s; processor %llx; PCRE2 %s", here.version,
		here.cpu_features, confirm_version());
	return text;
}

/* The program's own databases are there sooner than kept ones. */
static bool hyperscan_recall(struct rules *rules)
{
	struct hyperscan_target here = hyperscan_target_here();

	if (rules->are_builtin && hyperscan_shipped_has_rules(&here)) {
		return false;
	}
	return hs_valid_platform() == HS_SUCCESS && rules_cached_find(rules, version_text());
}

/* False: not both databases are there. */
static bool recall_databases(struct matcher *matcher)
{
	hs_database_t **places[RULES_DATABASE_COUNT] = {
		[RULES_DATABASE_BLOCK] = &matcher->bounded,
		[RULES_DATABASE_STREAM] = &matcher->unbounded,
	};

	for (int i = 0; i < RULES_DATABASE_COUNT; i++) {
		struct rules_database database;

		if (!rules_cached_database(
			    matcher->rules->cached, (enum rules_database_kind)i, &database)) {
			return false;
		}
		/* The library checks version, processor and a checksum. */
		if (database.length > 0 &&
			hs_deserialize_database((const char *)database.bytes, database.length,
				places[i]) != HS_SUCCESS) {
			return false;
		}
	}
	return true;
}

static void keep_databases(const struct matcher *matcher)
{
	const hs_database_t *databases[RULES_DATABASE_COUNT] = {
		[RULES_DATABASE_BLOCK] = matcher->bounded,
		[RULES_DATABASE_STREAM] = matcher->unbounded,
	};
	struct rules_database kept[RULES_DATABASE_COUNT] = {{0}};
	char *bytes[RULES_DATABASE_COUNT] = {NULL};
	bool is_ok = true;

	if (matcher->rules->cached == NULL) {
		return;
	}
	for (int i = 0; i < RULES_DATABASE_COUNT; i++) {
		if (databases[i] != NULL) {
			is_ok = hs_serialize_database(databases[i], &bytes[i], &kept[i].length) ==
					HS_SUCCESS &&
				is_ok;
			kept[i].bytes = (const uint8_t *)bytes[i];
		}
	}
	if (is_ok) {
		rules_cached_store(matcher->rules->cached, matcher->rules, kept);
	}
	for (int i = 0; i < RULES_DATABASE_COUNT; i++) {
		free(bytes[i]);
	}
}

static int compile(struct matcher *matcher, struct matcher_trouble *out_trouble)
{
	int error = hyperscan_compile(
		matcher->rules, matcher->starts, true, &matcher->bounded, out_trouble);

	if (error == 0) {
		error = hyperscan_compile(
			matcher->rules, matcher->starts, false, &matcher->unbounded, out_trouble);
	}
	if (error == 0) {
		keep_databases(matcher);
	}
	return error;
}

static int hyperscan_create(const struct rules *rules, struct matcher **out_matcher,
	struct matcher_trouble *out_trouble)
{
	struct matcher *matcher;
	int error;

	if (hs_valid_platform() != HS_SUCCESS) {
		matcher_complain(out_trouble, UINT32_MAX,
			"Hyperscan needs a processor with SSSE3, which this one lacks");
		return -EINVAL;
	}
	matcher = calloc(1, sizeof(*matcher));
	if (matcher == NULL) {
		return -ENOMEM;
	}
	matcher->rules = rules;
	error = init_starts(matcher);
	if (error == 0 && !recall_databases(matcher)) {
		hs_free_database(matcher->bounded);
		matcher->bounded = NULL;
		error = compile(matcher, out_trouble);
	}
	if (error != 0) {
		hyperscan_destroy(matcher);
		return error;
	}
	*out_matcher = matcher;
	return 0;
}

static void hyperscan_worker_destroy(struct matcher_worker *worker)
{
	if (worker == NULL) {
		return;
	}
	hs_free_scratch(worker->scratch);
	hs_free_scratch(worker->start_scratch);
	candidates_free(&worker->unplaced);
	free(worker->ends);
	free(worker);
}

static int hyperscan_worker_create(struct matcher *matcher, struct matcher_worker **out_worker)
{
	struct matcher_worker *worker = calloc(1, sizeof(*worker));
	hs_error_t status = HS_SUCCESS;

	if (worker == NULL) {
		return -ENOMEM;
	}
	worker->matcher = matcher;
	if (matcher->rules->findings_max != 0 || kept_text_of_any(matcher->rules)) {
		worker->ends = calloc(matcher->rules->count, sizeof(*worker->ends));
		status = worker->ends != NULL ? HS_SUCCESS : HS_NOMEM;
	}
	if (status == HS_SUCCESS && matcher->bounded != NULL) {
		status = hs_alloc_scratch(matcher->bounded, &worker->scratch);
	}
	if (status == HS_SUCCESS && matcher->unbounded != NULL) {
		status = hs_alloc_scratch(matcher->unbounded, &worker->scratch);
	}
	if (status != HS_SUCCESS) {
		hyperscan_worker_destroy(worker);
		return -ENOMEM;
	}
	*out_worker = worker;
	return 0;
}

/* What the callbacks work on. */
struct hits {
	struct matcher_worker *worker;
	const struct matcher_block *block; /* NULL in a stream */
	struct candidates *found;
	size_t first; /* of what this call has found */
	int error;
};

static void fill_head(struct candidate *candidate, const struct matcher_block *block)
{
	uint64_t width = candidate->end - candidate->start;

	memcpy(candidate->head, block->bytes + (candidate->start - block->base_offset),
		width < sizeof(candidate->head) ? width : sizeof(candidate->head));
}

static struct end_counter *ends_of(struct matcher_worker *worker, uint32_t rule)
{
	struct end_counter *ends = &worker->ends[rule];

	if (ends->search != worker->search) {
		*ends = (struct end_counter){.search = worker->search};
	}
	return ends;
}

/* Whether an end cannot lead to a finding that is shown. */
static bool is_beyond_limit(const struct hits *hits, uint32_t rule)
{
	struct matcher_worker *worker = hits->worker;
	struct end_counter *ends;

	if (hits->block->over != NULL && rules_over_has(hits->block->over, rule)) {
		return true;
	}
	if (worker->matcher->rules->findings_max == 0) {
		return false;
	}
	ends = ends_of(worker, rule);
	return ends->count++ >=
		rules_ends_max(worker->matcher->rules, &worker->matcher->rules->items[rule]);
}

/*
 * Ends of a confirmed rule come in order, mostly: as long as the part of the
 * file before one touches the last candidate it belongs to that.
 */
static int add_confirmed(struct hits *hits, uint32_t rule, uint64_t end)
{
	struct end_counter *ends = ends_of(hits->worker, rule);
	uint64_t width = hits->worker->matcher->rules->items[rule].max_width;
	struct candidate candidate = {
		.start = hits->block->base_offset + (end > width ? end - width : 0),
		.end = hits->block->base_offset + end,
		.rule = rule,
	};

	if (ends->count > 0) {
		struct candidate *last = &hits->found->items[ends->count - 1];

		if (candidate.start <= last->end && candidate.end >= last->end) {
			last->end = candidate.end;
			return 0;
		}
	}
	hits->error = candidates_add(hits->found, &candidate);
	ends->count = hits->found->count;
	return hits->error;
}

static int on_block_match(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *arg)
{
	struct hits *hits = arg;
	const struct matcher_block *block = hits->block;
	const struct rule *rule = &hits->worker->matcher->rules->items[id];
	struct candidate candidate = {.rule = id};

	(void)from;
	(void)flags;
	if (to < block->first_end || to > block->last_end) {
		return 0;
	}
	if (rule->filter != NULL) {
		return block->over != NULL && rules_over_has(block->over, id)
			? 0
			: add_confirmed(hits, id, to);
	}
	if (is_beyond_limit(hits, id)) {
		return 0;
	}
	if (rule->min_width == rule->max_width) {
		candidate.end = block->base_offset + to;
		candidate.start = candidate.end - rule->max_width;
		fill_head(&candidate, block);
		hits->error = candidates_add(hits->found, &candidate);
	} else {
		candidate.end = to;
		hits->error = candidates_add(&hits->worker->unplaced, &candidate);
	}
	return hits->error;
}

/* Finds the starts of one rule's matches and moves them to `found`. */
static int place(struct hits *hits, struct candidate *items, size_t count)
{
	struct matcher_worker *worker = hits->worker;
	int error = hyperscan_starts_find(&worker->matcher->starts[items[0].rule],
		&worker->start_scratch, hits->block,
		worker->matcher->rules->findings_max != 0 ? RULES_WORK_MAX : UINT64_MAX, items,
		&count);

	for (size_t i = 0; i < count && error == 0; i++) {
		items[i].start += hits->block->base_offset;
		items[i].end += hits->block->base_offset;
		fill_head(&items[i], hits->block);
		error = candidates_add(hits->found, &items[i]);
	}
	return error;
}

static int place_all(struct hits *hits)
{
	struct candidates *unplaced = &hits->worker->unplaced;
	size_t first = 0;
	int error = 0;

	candidates_sort_by_end(unplaced);
	while (first < unplaced->count && error == 0) {
		size_t next = first + 1;

		while (next < unplaced->count &&
			unplaced->items[next].rule == unplaced->items[first].rule) {
			next++;
		}
		error = place(hits, &unplaced->items[first], next - first);
		first = next;
	}
	unplaced->count = 0;
	return error;
}

static int status_error(hs_error_t status, const struct hits *hits)
{
	if (hits->error != 0) {
		return hits->error;
	}
	return status == HS_SUCCESS ? 0 : status == HS_NOMEM ? -ENOMEM : -EPROTO;
}

static int hyperscan_search(
	struct matcher_worker *worker, const struct matcher_block *block, struct candidates *found)
{
	struct hits hits = {.worker = worker, .block = block, .found = found};
	hs_error_t status;
	int error;

	if (worker->matcher->bounded == NULL || block->last_end == 0 ||
		block->first_end > block->last_end) {
		return 0;
	}
	worker->unplaced.count = 0;
	worker->search++;
	status = hs_scan(worker->matcher->bounded, (const char *)block->bytes,
		(unsigned)block->length, 0, worker->scratch, on_block_match, &hits);
	error = status_error(status, &hits);
	return error != 0 ? error : place_all(&hits);
}

static int on_stream_match(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *arg)
{
	struct hits *hits = arg;
	struct candidate candidate = {.start = from, .end = to, .rule = id};
	struct candidates *found = hits->found;

	(void)flags;
	if (found->count > hits->first && found->items[found->count - 1].rule == id &&
		found->items[found->count - 1].start == from) {
		found->items[found->count - 1].end = to; /* ends come in order */
		return 0;
	}
	hits->error = candidates_add(hits->found, &candidate);
	return hits->error;
}

static int hyperscan_stream_open(struct matcher *matcher, struct matcher_stream **out_stream)
{
	struct matcher_stream *stream = calloc(1, sizeof(*stream));

	if (stream == NULL) {
		return -ENOMEM;
	}
	if (hs_open_stream(matcher->unbounded, 0, &stream->stream) != HS_SUCCESS) {
		free(stream);
		return -ENOMEM;
	}
	*out_stream = stream;
	return 0;
}

static int hyperscan_stream_feed(struct matcher_worker *worker, struct matcher_stream *stream,
	const uint8_t *bytes, size_t length, struct candidates *found)
{
	struct hits hits = {.worker = worker, .found = found, .first = found->count};
	hs_error_t status;

	if (length == 0) {
		return 0;
	}
	status = hs_scan_stream(stream->stream, (const char *)bytes, (unsigned)length, 0,
		worker->scratch, on_stream_match, &hits);
	return status_error(status, &hits);
}

static int hyperscan_stream_close(
	struct matcher_worker *worker, struct matcher_stream *stream, struct candidates *found)
{
	struct hits hits = {
		.worker = worker,
		.found = found,
		.first = found != NULL ? found->count : 0,
	};
	hs_error_t status = hs_close_stream(
		stream->stream, worker->scratch, found != NULL ? on_stream_match : NULL, &hits);

	free(stream);
	return status_error(status, &hits);
}

const struct matcher_ops matcher_hyperscan = {
	.name = "hyperscan",
	.measure = hyperscan_measure,
	.recall = hyperscan_recall,
	.create = hyperscan_create,
	.destroy = hyperscan_destroy,
	.worker_create = hyperscan_worker_create,
	.worker_destroy = hyperscan_worker_destroy,
	.search = hyperscan_search,
	.stream_open = hyperscan_stream_open,
	.stream_feed = hyperscan_stream_feed,
	.stream_close = hyperscan_stream_close,
};

#endif
