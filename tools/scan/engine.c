/* SPDX-License-Identifier: MIT */
/*
 * Window ownership over a matcher. The invariants are in engine.h.
 */
#include "tools/scan/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Bytes behind an end that decide whether it is one: `\Z` takes two. */
	LOOKAHEAD = 2,
	/* Two held back by the window before, one in front of a start. */
	OVERLAP_CONTEXT = LOOKAHEAD + 1,
	ZERO_PROBE_BYTES = 64 * 1024,
};

struct engine {
	const struct matcher_ops *ops;
	struct matcher *matcher;
	uint32_t rule_count;
	uint32_t widest; /* of the bounded rules */
	bool has_unbounded;
	bool skips_holes;
};

struct engine_worker {
	struct engine *engine;
	struct matcher_worker *matcher;
};

/* Holes are skipped if nothing is found in zeros, at their borders included. */
static int probe_zeros(struct engine *engine, struct engine_worker *worker)
{
	size_t length = 2 * (size_t)engine->widest + ZERO_PROBE_BYTES;
	uint8_t *zeros = calloc(1, length);
	struct matcher_block block = {.bytes = zeros, .length = length, .last_end = length};
	struct candidates found = {0};
	int error;

	if (zeros == NULL) {
		return -ENOMEM;
	}
	error = engine->ops->search(worker->matcher, &block, &found);
	engine->skips_holes = error == 0 && found.count == 0;
	candidates_free(&found);
	free(zeros);
	return error;
}

/* The part of a group's start behind its parenthesis. */
static bool is_plain_group(const char *text)
{
	return text[0] != '?' || text[1] == ':' || (text[1] == 'i' && text[2] == ')');
}

/*
 * Whether no match holds a zero byte, as far as that is seen at once: of what
 * may stand for one (a dot, [^…], \x00, \W and others) the pattern has
 * nothing. Then a zero ends whatever a stream has begun.
 */
static bool avoids_zeros(const struct rule *rule)
{
	static const char escapes[] = "dwsbBnrt.\\/-+*?()[]{}|^$";
	const char *text = rule->pattern;

	if (memchr(text, '\0', rule->pattern_bytes) != NULL) {
		return false;
	}
	for (; *text != '\0' && !rule->is_literal; text++) {
		if (*text == '.' || (*text == '(' && !is_plain_group(text + 1)) ||
			(*text == '[' && (text[1] == '^' || text[1] == ':'))) {
			return false;
		}
		if (*text == '\\') {
			text++;
			if (*text == '\0' || strchr(escapes, *text) == NULL) {
				return false;
			}
		}
	}
	return true;
}

static bool streams_avoid_zeros(const struct rules *rules)
{
	for (uint32_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->items[i];

		if (rule->max_width == RULE_WIDTH_UNBOUNDED && !avoids_zeros(rule)) {
			return false;
		}
	}
	return true;
}

static int decide_holes(struct engine *engine, const struct rules *rules)
{
	struct engine_worker *worker;
	int error;

	if (!streams_avoid_zeros(rules)) {
		return 0;
	}
	error = engine_worker_create(engine, &worker);
	if (error == 0) {
		error = probe_zeros(engine, worker);
		engine_worker_destroy(worker);
	}
	return error;
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

static uint32_t overlap_of(uint32_t widest)
{
	return widest > 0 ? widest + OVERLAP_CONTEXT : 0;
}

uint32_t engine_overlap_bytes(const struct rules *rules)
{
	uint32_t widest;
	bool has_unbounded;

	measure_rules(rules, &widest, &has_unbounded);
	return overlap_of(widest);
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
	engine->rule_count = rules->count;
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
		.overlap_bytes = overlap_of(engine->widest),
		.in_order = engine->has_unbounded,
		.report_holes = engine->skips_holes,
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
}

/* What lies between two gaps, or all of a window: offsets in the window. */
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

/* Drops what was found from `first` on and is not within [from, until). */
static void keep_within(struct candidates *found, size_t first, uint64_t from, uint64_t until)
{
	size_t kept = first;

	for (size_t i = first; i < found->count; i++) {
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
		keep_within(found, found_before, window->base_offset_bytes + segment->from,
			window->base_offset_bytes + segment->until);
	}
	return error;
}

/* Searches what the window owns: engine.h (1). */
static int search_owned(struct engine_worker *worker, const struct pinion_window *window,
	const struct rules_over *over, struct candidates *found)
{
	size_t held_back = window->is_last ? 0 : LOOKAHEAD;
	size_t first_end = 0;
	struct segment segment;
	size_t gap = 0;
	int error = 0;

	if (window->length_bytes <= held_back) {
		return 0;
	}
	if (window->prefix_bytes >= LOOKAHEAD) {
		first_end = window->prefix_bytes - LOOKAHEAD + 1;
	}
	for (size_t from = 0; error == 0 && next_segment(window, from, &gap, &segment);
		from = segment.until) {
		error = search_segment(worker, window, &segment, first_end,
			window->length_bytes - held_back, over, found);
	}
	return error;
}

/* Feeds a stream; what it finds gets offsets of the file. */
static int feed_bytes(struct engine_worker *worker, struct engine_file *file, const uint8_t *bytes,
	size_t length, uint64_t until, struct candidates *found)
{
	size_t found_before = found->count;
	int error = worker->engine->ops->stream_feed(
		worker->matcher, file->stream, bytes, length, found);

	for (size_t i = found_before; i < found->count && file->stream_base > 0; i++) {
		found->items[i].start += file->stream_base;
		found->items[i].end += file->stream_base;
	}
	keep_within(found, found_before, file->stream_start, until);
	return error;
}

static const uint8_t context[LOOKAHEAD];

/* Nothing reaches from before [from, until) to what comes after. */
static int restart_stream(struct engine_worker *worker, struct engine_file *file, uint64_t from,
	uint64_t until, struct candidates *found)
{
	const struct matcher_ops *ops = worker->engine->ops;
	int error = feed_bytes(worker, file, context, sizeof(context), from, found);
	int close_error = ops->stream_close(worker->matcher, file->stream, NULL);

	*file = (struct engine_file){
		.stream_base = until - 1,
		.stream_start = until,
		.over = file->over,
	};
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

	for (size_t i = found_before; i < found->count; i++) {
		found->items[i].start += file->stream_base;
		found->items[i].end += file->stream_base;
	}
	keep_within(found, found_before, file->stream_start, UINT64_MAX);
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

/* Every rule has reached a limit in this file. */
static bool is_all_over(const struct engine *engine, const struct engine_file *file)
{
	return file->over != NULL &&
		__atomic_load_n(&file->over->count, __ATOMIC_RELAXED) == engine->rule_count;
}

/* What comes after it is searched as after a zero byte, which it is. */
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

int engine_window(struct engine_worker *worker, struct engine_file *file,
	const struct pinion_window *window, struct engine_yield *out_yield)
{
	uint64_t window_end = window->base_offset_bytes + window->length_bytes;
	int error = 0;

	out_yield->found.count = 0;
	out_yield->complete_to = UINT64_MAX;
	if (!window->is_last) {
		out_yield->complete_to = window_end > LOOKAHEAD ? window_end - LOOKAHEAD : 0;
	}
	if (is_all_over(worker->engine, file)) {
		return 0;
	}
	if (window->is_hole) {
		return skip_hole(worker, file, window, &out_yield->found);
	}
	if (worker->engine->widest > 0) {
		error = search_owned(worker, window, file->over, &out_yield->found);
	}
	return error != 0 ? error : feed_stream(worker, file, window, &out_yield->found);
}
