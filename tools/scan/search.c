/* SPDX-License-Identifier: MIT */
/*
 * Engine and findings in one.
 */
#include "tools/scan/search.h"

#include "tools/scan/examples.h"

int search_init(struct search *search, const struct matcher_ops *matcher, const struct rules *rules,
	struct matcher_trouble *out_trouble)
{
	findings_init(&search->findings, rules);
	return engine_create(matcher, rules, &search->engine, out_trouble);
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
}

int search_open(const struct search *search, struct search_file *file)
{
	int error;

	findings_file_init(&file->findings);
	gaps_init(&file->gaps);
	error = engine_file_open(search->engine, &file->engine);
	file->engine.over = &file->findings.over;
	return error;
}

/* Rules with examples have a widest match, which lies in one window whole. */
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

int search_window(const struct search *search, struct search_worker *worker,
	struct search_file *file, const struct pinion_window *window, findings_show_fn show,
	void *arg)
{
	int error = engine_window(worker->engine, &file->engine, window, &worker->yield);

	if (error == 0) {
		error = gaps_add(&file->gaps, window);
	}
	if (error != 0) {
		return error;
	}
	mark_examples(search->findings.rules, window, &worker->yield.found);
	return findings_add(&search->findings, &file->findings, window, &worker->yield, show, arg);
}

int search_close(const struct search *search, struct search_worker *worker,
	struct search_file *file, findings_show_fn show, const struct search_notes *notes,
	void *arg)
{
	int error;

	engine_file_close(worker->engine, &file->engine);
	error = findings_finish(&search->findings, &file->findings, show, arg);
	if (notes->limit != NULL) {
		findings_limits(&file->findings, notes->limit, arg);
	}
	findings_file_fini(&file->findings);
	gaps_join(&file->gaps);
	file->has_gaps = file->gaps.count > 0;
	if (file->has_gaps && notes->gaps != NULL) {
		notes->gaps(arg, file->gaps.items, file->gaps.count);
	}
	gaps_fini(&file->gaps);
	return error;
}
