/* SPDX-License-Identifier: MIT */
/*
 * Window ownership over a matcher. The invariants are in engine.h.
 */
#include "tools/scan/engine.h"

#include "tools/scan/kept_text.h"
#include "tools/scan/zeros.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Bytes after an end that decide whether it is one: `\Z` takes two. */
	LOOKAHEAD = 2,
	/* One byte in front of a start. */
	LOOKBEHIND = 1,
	ZERO_PROBE_BYTES = 64 * 1024,
	/* Of a hole that is searched, at a time. */
	HOLE_PART_BYTES = 1 << 20,
	/*
	 * A hole shorter than this multiple of the settling length is searched
	 * whole.
	 */
	SETTLED_SHARE = 4,
};

/* What holes are searched as. Not const: so it takes no room in the program. */
static uint8_t zeros[HOLE_PART_BYTES];

struct engine {
	const struct matcher_ops *ops;
	struct matcher *matcher;
	const struct rules *rules;
	uint32_t rule_count;
	uint32_t widest;    /* of the bounded rules */
	uint32_t held_back; /* bytes after an end, LOOKAHEAD or more */
	bool keeps_text;
	bool has_unbounded;
	bool skips_holes;      /* nothing matches in them, nor across */
	bool searches_holes;   /* streams may match in or across them, blocks not */
	uint64_t settle_bytes; /* with searches_holes: zeros.h; 0: not known */
};

struct engine_worker {
	struct engine *engine;
	struct matcher_worker *matcher;
	struct candidates scratch;
	struct newlines_part *newlines; /* of the window; NULL: not asked for */
};

/* Whether blocks find something in zeros, at their borders included. */
static int probe_zeros(struct engine *engine, struct engine_worker *worker, bool *out_has_found)
{
	size_t length = 2 * (size_t)engine->widest + ZERO_PROBE_BYTES;
	uint8_t *bytes = calloc(1, length);
	struct matcher_block block = {.bytes = bytes, .length = length, .last_end = length};
	struct candidates found = {0};
	int error;

	if (bytes == NULL) {
		return -ENOMEM;
	}
	error = engine->ops->search(worker->matcher, &block, &found);
	*out_has_found = found.count > 0;
	candidates_free(&found);
	free(bytes);
	return error;
}

static int decide_holes(struct engine *engine, const struct rules *rules)
{
	struct engine_worker *worker;
	bool has_found = true;
	int error = engine_worker_create(engine, &worker);

	if (error == 0) {
		error = probe_zeros(engine, worker, &has_found);
		engine_worker_destroy(worker);
	}
	if (error != 0 || has_found) {
		return error;
	}
	engine->skips_holes = zeros_end_matches(rules);
	engine->searches_holes = !engine->skips_holes;
	engine->settle_bytes = zeros_settle_bytes(rules);
	if (engine->settle_bytes > HOLE_PART_BYTES) {
		engine->settle_bytes = 0;
	}
	return 0;
}

/* The widest of the bounded rules, and whether there are others. */
static void measure_rules(const struct rules *rules, uint32_t *out_widest, bool *out_has_unbounded)
{
	*out_widest = 0;
	*out_has_unbounded = false;
	for (uint32_t i = 0; i < rules->count; i++) {
		uint32_t width = rules->items[i].max_width;

		if (width == RULE_WIDTH_UNBOUNDED) {
			*out_has_unbounded = true;
		} else if (width > *out_widest) {
			*out_widest = width;
		}
	}
}

/* What the window before holds back, and the bytes in front of a start. */
static uint32_t overlap_of(uint32_t widest, bool keeps_text)
{
	uint32_t context = keeps_text ? 2 * SNIPPET_CONTEXT : LOOKAHEAD + LOOKBEHIND;

	return widest > 0 ? widest + context : 0;
}

uint32_t engine_overlap_bytes(const struct rules *rules)
{
	uint32_t widest;
	bool has_unbounded;

	measure_rules(rules, &widest, &has_unbounded);
	return overlap_of(widest, kept_text_of_any(rules));
}

int engine_create(const struct matcher_ops *matcher, const struct rules *rules,
	struct engine **out_engine, struct matcher_trouble *out_trouble)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int error;

	if (engine == NULL) {
		return -ENOMEM;
	}
	engine->ops = matcher;
	engine->rules = rules;
	engine->rule_count = rules->count;
	engine->keeps_text = kept_text_of_any(rules);
	engine->held_back = engine->keeps_text ? SNIPPET_CONTEXT : LOOKAHEAD;
	measure_rules(rules, &engine->widest, &engine->has_unbounded);
	error = matcher->create(rules, &engine->matcher, out_trouble);
	if (error == 0) {
		error = decide_holes(engine, rules);
	}
	if (error != 0) {
		engine_destroy(engine);
		return error;
	}
	*out_engine = engine;
	return 0;
}

void engine_destroy(struct engine *engine)
{
	if (engine == NULL) {
		return;
	}
	if (engine->matcher != NULL) {
		engine->ops->destroy(engine->matcher);
	}
	free(engine);
}

struct engine_needs engine_needs(const struct engine *engine)
{
	return (struct engine_needs){
		.overlap_bytes = overlap_of(engine->widest, engine->keeps_text),
		.in_order = engine->has_unbounded,
		.report_holes = engine->skips_holes || engine->searches_holes,
	};
}

int engine_worker_create(struct engine *engine, struct engine_worker **out_worker)
{
	struct engine_worker *worker = calloc(1, sizeof(*worker));
	int error;

	if (worker == NULL) {
		return -ENOMEM;
	}
	worker->engine = engine;
	error = engine->ops->worker_create(engine->matcher, &worker->matcher);
	if (error != 0) {
		engine_worker_destroy(worker);
		return error;
	}
	*out_worker = worker;
	return 0;
}

void engine_worker_destroy(struct engine_worker *worker)
{
	if (worker == NULL) {
		return;
	}
	if (worker->matcher != NULL) {
		worker->engine->ops->worker_destroy(worker->matcher);
	}
	candidates_free(&worker->scratch);
	free(worker);
}

int engine_file_open(struct engine *engine, struct engine_file *file)
{
	*file = (struct engine_file){0};
	return engine->has_unbounded ? engine->ops->stream_open(engine->matcher, &file->stream) : 0;
}

void engine_file_close(struct engine_worker *worker, struct engine_file *file)
{
	if (file->stream != NULL) {
		worker->engine->ops->stream_close(worker->matcher, file->stream, NULL);
		file->stream = NULL;
	}
	skips_free(&file->skips);
}

/* The part between two gaps, or all of a window: offsets in the window. */
struct segment {
	size_t from;
	size_t until;
};

/*
 * The next segment, which begins at `from` or after the gaps there. `gap`
 * counts the gaps passed. False: there is none.
 */
static bool next_segment(
	const struct pinion_window *window, size_t from, size_t *gap, struct segment *out_segment)
{
	out_segment->from = from;
	out_segment->until = window->length_bytes;
	for (; *gap < window->gap_count; ++*gap) {
		const struct pinion_gap *next = &window->gaps[*gap];
		size_t start = (size_t)(next->offset_bytes - window->base_offset_bytes);

		if (start > out_segment->from) {
			out_segment->until = start;
			break;
		}
		if (start + next->length_bytes > out_segment->from) {
			out_segment->from = start + (size_t)next->length_bytes;
		}
	}
	return out_segment->from < out_segment->until;
}

static size_t largest(size_t left, size_t right)
{
	return left > right ? left : right;
}

static size_t smallest(size_t left, size_t right)
{
	return left < right ? left : right;
}

/*
 * Drops candidates from `first` on that are not within [from, until). Of a
 * confirmed rule's the matches in its part of the file may be, nevertheless.
 */
static void keep_within(const struct engine *engine, struct candidates *found, size_t first,
	uint64_t from, uint64_t until)
{
	size_t kept = first;

	for (size_t i = first; i < found->count; i++) {
		if (engine->rules->items[found->items[i].rule].filter != NULL &&
			found->items[i].start < from) {
			found->items[i].start = from;
		}
		if (found->items[i].start >= from && found->items[i].end <= until) {
			found->items[kept++] = found->items[i];
		}
	}
	found->count = kept;
}

/* Searches for ends in [first_end, last_end] of the window. */
static int search_segment(struct engine_worker *worker, const struct pinion_window *window,
	const struct segment *segment, size_t first_end, size_t last_end,
	const struct rules_over *over, struct candidates *found)
{
	size_t left = segment->from > 0 ? segment->from - 1 : 0;
	size_t right = smallest(segment->until + LOOKAHEAD, window->length_bytes);
	struct matcher_block block = {
		.bytes = window->bytes + left,
		.length = right - left,
		.base_offset = window->base_offset_bytes + left,
		.over = over,
		.newlines = window->gap_count == 0 ? worker->newlines : NULL,
	};
	size_t found_before = found->count;
	int error;

	first_end = segment->from > 0 ? largest(first_end, segment->from + 1) : first_end;
	last_end = smallest(last_end, segment->until);
	if (first_end > last_end) {
		return 0;
	}
	block.first_end = first_end - left;
	block.last_end = last_end - left;
	error = worker->engine->ops->search(worker->matcher, &block, found);
	if (window->gap_count > 0) {
		keep_within(worker->engine, found, found_before,
			window->base_offset_bytes + segment->from,
			window->base_offset_bytes + segment->until);
	}
	return error;
}

/* Searches what the window owns: engine.h (1). */
static int search_owned(struct engine_worker *worker, const struct pinion_window *window,
	const struct rules_over *over, struct candidates *found)
{
	size_t look = worker->engine->held_back;
	size_t held_back = window->is_last ? 0 : look;
	size_t first_end = 0;
	struct segment segment;
	size_t gap = 0;
	int error = 0;

	if (window->length_bytes <= held_back) {
		return 0;
	}
	if (window->prefix_bytes >= look) {
		first_end = window->prefix_bytes - look + 1;
	}
	for (size_t from = 0; error == 0 && next_segment(window, from, &gap, &segment);
		from = segment.until) {
		error = search_segment(worker, window, &segment, first_end,
			window->length_bytes - held_back, over, found);
	}
	return error;
}

/* From offsets of the stream to those of the file. */
static void place_found(const struct engine_file *file, struct candidates *found, size_t first)
{
	if (file->stream_base == 0 && file->skips.count == 0) {
		return;
	}
	for (size_t i = first; i < found->count; i++) {
		struct candidate *candidate = &found->items[i];

		candidate->start =
			skips_place_start(&file->skips, file->stream_base + candidate->start);
		candidate->end = skips_place_end(&file->skips, file->stream_base + candidate->end);
	}
}

/* Feeds a stream; what it finds gets offsets of the file. */
static int feed_bytes(struct engine_worker *worker, struct engine_file *file, const uint8_t *bytes,
	size_t length, uint64_t until, struct candidates *found)
{
	size_t found_before = found->count;
	int error = worker->engine->ops->stream_feed(
		worker->matcher, file->stream, bytes, length, found);

	place_found(file, found, found_before);
	keep_within(worker->engine, found, found_before, file->stream_start, until);
	return error;
}

static const uint8_t context[LOOKAHEAD];

/* No match reaches from before [from, until) to bytes after it. */
static int restart_stream(struct engine_worker *worker, struct engine_file *file, uint64_t from,
	uint64_t until, struct candidates *found)
{
	const struct matcher_ops *ops = worker->engine->ops;
	int error = feed_bytes(worker, file, context, sizeof(context), from, found);
	int close_error = ops->stream_close(worker->matcher, file->stream, NULL);

	file->stream = NULL;
	file->stream_base = until - 1;
	file->stream_start = until;
	skips_clear(&file->skips);
	error = error != 0 ? error : close_error;
	if (error == 0) {
		error = ops->stream_open(worker->engine->matcher, &file->stream);
	}
	/* Found in it would be a match of the gap. */
	return error != 0 ? error : feed_bytes(worker, file, context, 1, until, found);
}

static int close_stream(
	struct engine_worker *worker, struct engine_file *file, struct candidates *found)
{
	size_t found_before = found->count;
	int error = worker->engine->ops->stream_close(worker->matcher, file->stream, found);

	place_found(file, found, found_before);
	keep_within(worker->engine, found, found_before, file->stream_start, UINT64_MAX);
	file->stream = NULL;
	return error;
}

static int feed_stream(struct engine_worker *worker, struct engine_file *file,
	const struct pinion_window *window, struct candidates *found)
{
	size_t position = window->prefix_bytes;
	uint64_t base = window->base_offset_bytes;
	struct segment segment;
	size_t gap = 0;
	int error = 0;

	if (file->stream == NULL) {
		return 0;
	}
	while (error == 0 && position < window->length_bytes) {
		bool has_more = next_segment(window, position, &gap, &segment);

		if (segment.from > position) {
			error = restart_stream(
				worker, file, base + position, base + segment.from, found);
		}
		if (error == 0 && has_more) {
			error = feed_bytes(worker, file, window->bytes + segment.from,
				segment.until - segment.from, base + segment.until, found);
		}
		position = segment.until;
	}
	if (error == 0 && window->is_last) {
		error = close_stream(worker, file, found);
	}
	return error;
}

bool engine_is_over(const struct engine *engine, const struct engine_file *file)
{
	return file->over != NULL && engine->rule_count > 0 &&
		__atomic_load_n(&file->over->count, __ATOMIC_RELAXED) == engine->rule_count;
}

/* The bytes after it are searched as after a zero byte, which it is. */
static int skip_hole(struct engine_worker *worker, struct engine_file *file,
	const struct pinion_window *window, struct candidates *found)
{
	uint64_t start = window->base_offset_bytes;
	int error = 0;

	if (file->stream != NULL) {
		error = restart_stream(worker, file, start, start + window->length_bytes, found);
		if (error == 0 && window->is_last) {
			error = close_stream(worker, file, found);
		}
	}
	return error;
}

/*
 * Whether a match begins in the settled zeros: then a match begins at each
 * byte.
 */
static bool has_start_from(const struct candidates *found, size_t first, uint64_t offset)
{
	for (size_t i = first; i < found->count; i++) {
		if (found->items[i].start >= offset) {
			return true;
		}
	}
	return false;
}

/*
 * The first part is as long as the settling length, and so is the second, which
 * shows the matches from there on; the last one too, for the bytes after the
 * hole.
 */
static size_t part_length(
	const struct engine *engine, const struct pinion_window *window, uint64_t done)
{
	uint64_t left = window->length_bytes - done;
	uint64_t part = HOLE_PART_BYTES;

	if (engine->settle_bytes != 0 && done < 2 * engine->settle_bytes) {
		part = engine->settle_bytes;
	}
	return (size_t)(left < part ? left : part);
}

int engine_hole_part(struct engine_worker *worker, struct engine_file *file,
	const struct pinion_window *window, uint64_t *done, struct candidates *found)
{
	const struct engine *engine = worker->engine;
	uint64_t settle = engine->settle_bytes;
	size_t length = part_length(engine, window, *done);
	uint64_t offset = window->base_offset_bytes + *done;
	size_t found_before = found->count;
	int error;

	if (engine->skips_holes || file->stream == NULL || engine_is_over(engine, file)) {
		*done = window->length_bytes;
		return engine->skips_holes && !engine_is_over(engine, file)
			? skip_hole(worker, file, window, found)
			: 0;
	}
	error = feed_bytes(worker, file, zeros, length, offset + length, found);
	*done += length;
	if (error == 0 && settle != 0 && *done == 2 * settle &&
		window->length_bytes >= SETTLED_SHARE * settle &&
		!has_start_from(found, found_before, offset)) {
		uint64_t skipped = window->length_bytes - *done - settle;

		error = skips_add(&file->skips, offset + length, skipped);
		*done += skipped;
	}
	if (error == 0 && window->is_last && *done == window->length_bytes) {
		error = close_stream(worker, file, found);
	}
	return error;
}

uint32_t engine_held_back(const struct engine *engine)
{
	return engine->held_back;
}

bool engine_searches_holes(const struct engine *engine)
{
	return engine->searches_holes;
}

uint64_t engine_complete_to(
	const struct engine *engine, const struct pinion_window *window, uint64_t done)
{
	uint64_t end = window->base_offset_bytes + done;

	if (window->is_last && done == window->length_bytes) {
		return UINT64_MAX;
	}
	return end > engine->held_back ? end - engine->held_back : 0;
}

static int hole_whole(struct engine_worker *worker, struct engine_file *file,
	const struct pinion_window *window, struct candidates *found)
{
	uint64_t done = 0;
	int error = 0;

	while (error == 0 && done < window->length_bytes) {
		error = engine_hole_part(worker, file, window, &done, found);
	}
	return error;
}

int engine_window(struct engine_worker *worker, struct engine_file *file,
	const struct pinion_window *window, struct engine_yield *out_yield)
{
	int error = 0;

	out_yield->found.count = 0;
	out_yield->newlines = (struct newlines_part){0};
	worker->newlines = out_yield->counts_newlines ? &out_yield->newlines : NULL;
	snippets_clear(&out_yield->snippets);
	out_yield->complete_to = engine_complete_to(worker->engine, window, window->length_bytes);
	if (engine_is_over(worker->engine, file)) {
		return 0;
	}
	if (window->is_hole) {
		return hole_whole(worker, file, window, &out_yield->found);
	}
	if (worker->engine->widest > 0) {
		error = search_owned(worker, window, file->over, &out_yield->found);
	}
	if (error == 0) {
		error = feed_stream(worker, file, window, &out_yield->found);
	}
	if (error == 0 && worker->engine->keeps_text && out_yield->found.count > 0) {
		error = kept_text_add(worker->engine->rules, window, &out_yield->found,
			&worker->scratch, &out_yield->snippets);
	}
	return error;
}
