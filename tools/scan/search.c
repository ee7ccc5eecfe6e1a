/* SPDX-License-Identifier: MIT */
/*
 * Engine and findings in one.
 */
#include "tools/scan/search.h"

#include "tools/scan/examples.h"
#include "tools/scan/findings_whole.h"

#include <errno.h>
#include <string.h>
#include <time.h>

int search_init(struct search *search, const struct matcher_ops *matcher, const struct rules *rules,
	struct matcher_trouble *out_trouble)
{
	findings_init(&search->findings, rules);
	return engine_create(matcher, rules, &search->engine, out_trouble);
}

void search_ask(struct search *search, const struct evidence_needs *needs)
{
	struct engine_needs engine = engine_needs(search->engine);

	search->evidence = (struct evidence_source){
		.needs = *needs,
		.rules = search->findings.rules,
		.overlap_bytes = evidence_overlap_bytes(needs, engine.overlap_bytes),
		.in_order = engine.in_order,
	};
	search->evidence.needs.lines =
		needs->lines || companions_need_places(search->findings.rules);
	search->findings.hold_bytes = needs->allows ? EVIDENCE_REACH + EVIDENCE_OVERLAP : 0;
	search->findings.holds_for_others = needs->context_bytes > 0;
	if (needs->context_bytes > search->findings.hold_bytes) {
		search->findings.hold_bytes = needs->context_bytes;
	}
}

void search_fini(struct search *search)
{
	engine_destroy(search->engine);
	search->engine = NULL;
}

int search_worker_init(struct search_worker *worker, const struct search *search)
{
	return engine_worker_create(search->engine, &worker->engine);
}

void search_worker_fini(struct search_worker *worker)
{
	engine_worker_destroy(worker->engine);
	candidates_free(&worker->yield.found);
	snippets_free(&worker->yield.snippets);
}

/* For companions, at the end of a file. */
static bool locate(
	void *arg, const struct finding *finding, uint64_t *out_line, uint64_t *out_column)
{
	struct search_file *file = arg;
	struct evidence_place place;

	evidence_find(&file->evidence, file->rules, finding, &place);
	*out_line = place.line;
	*out_column = place.column;
	return place.line != 0;
}

int search_open(const struct search *search, struct search_file *file)
{
	int error;

	findings_file_init(&file->findings);
	file->rules = search->findings.rules;
	file->findings.locate = locate;
	file->findings.locate_arg = file;
	gaps_init(&file->gaps);
	error = engine_file_open(search->engine, &file->engine);
	file->engine.over = &file->findings.over;
	return error;
}

/* Rules with examples have a widest match, which is within one window. */
static void mark_examples(
	const struct rules *rules, const struct pinion_window *window, struct candidates *found)
{
	for (size_t i = 0; i < found->count; i++) {
		struct candidate *candidate = &found->items[i];
		const struct rule *rule = &rules->items[candidate->rule];
		uint64_t base = window->base_offset_bytes;

		candidate->is_example = rule->leaves_examples_out && candidate->start >= base &&
			candidate->end <= base + window->length_bytes &&
			examples_include(rule->id, window->bytes + (candidate->start - base),
				(size_t)(candidate->end - candidate->start));
	}
}

/* The only window of a file leaves nothing where there is no candidate. */
static inline bool leaves_evidence(const struct search *search, const struct pinion_window *window,
	const struct candidates *found)
{
	return (found->count > 0 || window->index > 0 || !window->is_last) &&
		evidence_needed(&search->evidence.needs);
}

/* Before the window's candidates are handed on. */
static int keep_evidence(const struct search *search, struct search_file *file,
	const struct pinion_window *window, const struct engine_yield *yield)
{
	struct evidence_window *gathered;
	int error = evidence_gather(&search->evidence, &file->evidence, window, yield, &gathered);

	if (error == 0) {
		pthread_mutex_lock(&file->findings.lock);
		error = evidence_add(&search->evidence, &file->evidence, gathered);
		pthread_mutex_unlock(&file->findings.lock);
	}
	return error;
}

/* After the window's findings were shown. */
static void drop_evidence(
	const struct search *search, struct search_file *file, const struct pinion_window *window)
{
	if (!window->is_last && evidence_needed(&search->evidence.needs)) {
		pthread_mutex_lock(&file->findings.lock);
		evidence_forget(&file->evidence,
			findings_held_settled_to(&search->findings, &file->findings));
		pthread_mutex_unlock(&file->findings.lock);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Whether a hole that is searched up to `offset` may go on. */
static int check_hole(const struct search *search, struct search_file *file, uint64_t offset)
{
	if (search->is_stopped != NULL && search->is_stopped()) {
		return -ECANCELED;
	}
	if (search->hole_ns_max != 0 && file->hole_ns > search->hole_ns_max) {
		__atomic_store_n(&file->is_late, true, __ATOMIC_RELAXED);
		file->late_offset = offset;
		return -ETIME;
	}
	return 0;
}

static void note_hole(
	const struct search *search, const struct pinion_window *window, uint64_t bytes, void *arg)
{
	if (window->is_hole && search->note_hole != NULL) {
		search->note_hole(arg, bytes);
	}
}

/*
 * Part after part, so that what each yields can be decided and let go of. Only
 * streams come here, whose windows are in order.
 */
static int search_hole(const struct search *search, struct search_worker *worker,
	struct search_file *file, const struct pinion_window *window, findings_show_fn show,
	void *arg)
{
	uint64_t start_ns = now_ns() - file->hole_ns;
	struct pinion_window part = *window;
	uint64_t done = 0;
	int error = 0;

	part.index += file->extra_windows;
	while (error == 0 && done < window->length_bytes) {
		struct engine_yield *yield = &worker->yield;
		uint64_t done_before = done;

		yield->found.count = 0;
		yield->newlines = (struct newlines_part){0};
		snippets_clear(&yield->snippets);
		error = engine_hole_part(
			worker->engine, &file->engine, window, &done, &yield->found);
		yield->complete_to = engine_complete_to(search->engine, window, done);
		part.is_last = window->is_last && done == window->length_bytes;
		part.base_offset_bytes = window->base_offset_bytes + done_before;
		part.length_bytes = (size_t)(done - done_before);
		if (error == 0 && leaves_evidence(search, &part, &yield->found)) {
			error = keep_evidence(search, file, &part, yield);
		}
		if (error == 0) {
			error = findings_add(
				&search->findings, &file->findings, &part, yield, show, arg);
		}
		part.index++;
		file->hole_ns = now_ns() - start_ns;
		note_hole(search, window, done - done_before, arg);
		if (error == 0 && engine_is_over(search->engine, &file->engine)) {
			error = PINION_SCAN_ENOUGH;
		}
		if (error == 0 && done < window->length_bytes) {
			error = check_hole(search, file, window->base_offset_bytes + done);
		}
	}
	file->extra_windows = part.index - 1 - window->index;
	return error;
}

static bool is_zeros(const struct pinion_window *window)
{
	const uint8_t *bytes = window->bytes + window->prefix_bytes;
	size_t length = window->length_bytes - window->prefix_bytes;

	return length > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/*
 * If zeros have to be read, because a rule with a widest match finds something
 * in them, a hole cannot be distinguished from data. So the limit is on the
 * time in which nothing but zeros came, and only of a file that has holes.
 * Windows may be at several workers, whose order is of no importance to a
 * guess.
 */
static int check_zeros(
	const struct search *search, struct search_file *file, const struct pinion_window *window)
{
	uint64_t since_ns;
	uint64_t here_ns;

	if (!is_zeros(window)) {
		__atomic_store_n(&file->zeros_since_ns, 0, __ATOMIC_RELAXED);
		return 0;
	}
	here_ns = now_ns();
	since_ns = __atomic_load_n(&file->zeros_since_ns, __ATOMIC_RELAXED);
	if (since_ns == 0) {
		__atomic_store_n(&file->zeros_since_ns, here_ns, __ATOMIC_RELAXED);
		return 0;
	}
	/* Another worker may have been the first after this one looked. */
	if (here_ns <= since_ns || here_ns - since_ns <= search->hole_ns_max) {
		return 0;
	}
	if (!__atomic_exchange_n(&file->is_late, true, __ATOMIC_RELAXED)) {
		file->late_offset = window->base_offset_bytes;
	}
	return -ETIME;
}

static int search_bytes(const struct search *search, struct search_worker *worker,
	struct search_file *file, const struct pinion_window *window, findings_show_fn show,
	void *arg)
{
	struct pinion_window counted = *window;
	int error;

	if (file->is_sparse && search->hole_ns_max != 0 &&
		!engine_needs(search->engine).report_holes) {
		error = check_zeros(search, file, window);
		if (error != 0) {
			return error;
		}
	}
	worker->yield.counts_newlines = evidence_counts_lines(&search->evidence.needs) &&
		(window->index > 0 || !window->is_last);
	error = engine_window(worker->engine, &file->engine, window, &worker->yield);

	if (error == 0) {
		error = gaps_add(&file->gaps, window);
	}
	if (error != 0) {
		return error;
	}
	mark_examples(search->findings.rules, window, &worker->yield.found);
	if (leaves_evidence(search, window, &worker->yield.found)) {
		error = keep_evidence(search, file, window, &worker->yield);
	}
	if (error != 0) {
		return error;
	}
	counted.index += file->extra_windows;
	note_hole(search, window, window->length_bytes, arg);
	error = findings_add(
		&search->findings, &file->findings, &counted, &worker->yield, show, arg);
	drop_evidence(search, file, window);
	return error;
}

int search_window(const struct search *search, struct search_worker *worker,
	struct search_file *file, const struct pinion_window *window, findings_show_fn show,
	void *arg)
{
	int error;

	if (engine_is_over(search->engine, &file->engine) ||
		__atomic_load_n(&file->is_taken, __ATOMIC_RELAXED)) {
		return PINION_SCAN_ENOUGH;
	}
	/* Rules of YARA alone, which are searched for elsewhere. */
	if (file->rules->count == 0) {
		note_hole(search, window, window->length_bytes, arg);
		return gaps_add(&file->gaps, window);
	}
	if (window->is_hole && engine_searches_holes(search->engine)) {
		return search_hole(search, worker, file, window, show, arg);
	}
	error = search_bytes(search, worker, file, window, show, arg);
	return error == 0 && engine_is_over(search->engine, &file->engine) ? PINION_SCAN_ENOUGH
									   : error;
}

int search_take_whole(const struct search *search, struct search_file *file,
	const struct pinion_window *window, struct candidates *found)
{
	struct engine_yield yield = {.complete_to = UINT64_MAX};
	int error = findings_whole_choose(&search->findings, &file->findings, found);

	yield.found = *found;
	if (error == 0 && found->count > 0 && evidence_needed(&search->evidence.needs)) {
		error = keep_evidence(search, file, window, &yield);
	}
	return error != 0 ? error
			  : findings_whole_hold(&search->findings, &file->findings, window, found);
}

int search_close(const struct search *search, struct search_worker *worker,
	struct search_file *file, findings_show_fn show, const struct search_notes *notes,
	void *arg)
{
	int error = 0;

	engine_file_close(worker->engine, &file->engine);
	/* No finding of a taken file was shown: its first window is missing. */
	if (!file->is_taken) {
		error = findings_finish(&search->findings, &file->findings, show, arg);
	}
	if (notes->limit != NULL && !file->is_taken) {
		findings_limits_show(&file->findings, notes->limit, arg);
	}
	findings_file_fini(&file->findings);
	evidence_fini(&file->evidence);
	gaps_join(&file->gaps);
	file->has_gaps = file->gaps.count > 0;
	if (file->has_gaps && notes->gaps != NULL) {
		notes->gaps(arg, file->gaps.items, file->gaps.count);
	}
	gaps_fini(&file->gaps);
	return error;
}
