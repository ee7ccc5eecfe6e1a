/* SPDX-License-Identifier: MIT */
/*
 * A path is put into shape once for all its findings in hand, since one file
 * may have very many.
 */
#include "tools/scan/reporter.h"

#include "tools/output.h"
#include "tools/report.h"
#include "tools/scan/context.h"
#include "tools/scan/decode.h"
#include "tools/scan/yara_rules.h"

#include <string.h>

/* Of a document's notes, which wait for its end. */
enum { NOTES_BYTES_MAX = 16 << 20 };

/* As long as a private key may be after its first line. */
enum { KEY_BYTES = 16 << 10, HEAD_BYTES = 4 };

void reporter_init(struct reporter *reporter, const struct report_options *options,
	const struct rules *rules, uint32_t first_allowable)
{
	*reporter = (struct reporter){
		.options = options,
		.rules = rules,
		.first_allowable = first_allowable,
		.run = {.rules = rules, .start = time(NULL), .notes = &reporter->notes},
	};
	pthread_mutex_init(&reporter->lock, NULL);
}

void reporter_fini(struct reporter *reporter)
{
	output_text_free(&reporter->notes);
	pthread_mutex_destroy(&reporter->lock);
}

void reporter_worker_fini(struct reporter_worker *worker)
{
	output_text_free(&worker->lines);
	output_text_free(&worker->path);
	output_text_free(&worker->excerpt);
}

struct evidence_needs reporter_needs(const struct reporter *reporter)
{
	const struct report_options *options = reporter->options;
	struct evidence_needs needs = options->format->needs;

	if (options->format == &report_text && options->style.has_offsets) {
		needs.lines = options->style.has_context;
	}
	needs.context_bytes = options->style.has_context ? CONTEXT_BYTES : 0;
	needs.digests = needs.digests || options->has_baseline || reporter->needs_prints;
	needs.allows =
		!options->heeds_nothing && rules_total(reporter->rules) > reporter->first_allowable;
	if (options->style.redact_percent != REPORT_REDACT_STANDARD) {
		needs.text_bytes = REPORT_EXCERPT_MAX;
	}
	return needs;
}

static const struct source_facts *facts_of(const struct pinion_scan_file *file)
{
	return ((const struct search_file *)file->user)->facts;
}

/* In lines on stderr. */
static const char *name_of(const struct pinion_scan_file *file)
{
	const struct source_facts *facts = facts_of(file);

	return facts != NULL ? facts->name : file->path;
}

static struct report_out begin(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file)
{
	worker->lines.length = 0;
	worker->path.length = 0;
	reporter->options->format->shape_path(&worker->path, file->path, file->path_bytes);
	worker->lines.failed = worker->lines.failed || worker->path.failed;
	return (struct report_out){
		.lines = &worker->lines,
		.path = &worker->path,
		.facts = facts_of(file),
		.style = &reporter->options->style,
	};
}

/* Whether the finding is to be shown. */
static bool complete_finding(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, struct report_finding *finding)
{
	const struct report_options *options = reporter->options;
	struct fingerprint print;

	if (finding->place.is_allowed && finding->rule_index >= reporter->first_allowable) {
		worker->allowed_count++;
		return false;
	}
	if (!options->format->needs.digests && !options->has_baseline && !reporter->needs_prints) {
		return true;
	}
	fingerprint_make(finding->rule->id, file->path, file->path_bytes,
		finding->secret_end - finding->secret_start, &finding->place, &print);
	fingerprint_write(&print, finding->fingerprint);
	worker->print = print;
	if (options->has_baseline && baseline_has(&options->baseline, &print)) {
		worker->known_count++;
		return false;
	}
	return true;
}

/* A confirmed rule's finding has its bytes with it. */
static void quote_secret(const struct evidence_needs *needs, const struct finding *finding,
	struct evidence_place *place)
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 hash;
	uint64_t length = finding->secret_end - finding->secret_start;
	uint64_t until = finding->text_start + finding->text_bytes;

	if (finding->text == NULL || finding->secret_start < finding->text_start ||
		finding->secret_end > until) {
		return;
	}
	place->text = finding->text + (finding->secret_start - finding->text_start);
	place->text_bytes = (size_t)(length < REPORT_EXCERPT_MAX ? length : REPORT_EXCERPT_MAX);
	if (needs->digests) {
		sha256_init(&hash);
		sha256_add(&hash, place->text, (size_t)length);
		sha256_finish(&hash, digest);
		memcpy(place->digest, digest, sizeof(place->digest));
		place->has_digest = true;
	}
}

/* To its place in the file, which has other bytes around it. */
static void move_decoded(const struct decoded *decoded, struct report_finding *finding)
{
	finding->decoded = decoded->kind;
	finding->text = NULL;
	decoded->locate(decoded, finding);
}

static void take_finding(struct reporter *reporter, const struct evidence_needs *needs,
	struct search_file *searched, const struct finding *found, struct report_finding *finding)
{
	*finding = (struct report_finding){
		.rule = &reporter->rules->items[found->rule],
		.rule_index = found->rule,
		.start = found->start,
		.end = found->end,
		.secret_start = found->secret_start,
		.secret_end = found->secret_end,
		.text = found->text,
		.text_start = found->text_start,
		.text_bytes = found->text_bytes,
		.head = found->head,
		.string = yara_rules_string(reporter->rules->yara, found->string),
	};
	if (evidence_needed(needs)) {
		evidence_find(&searched->evidence, reporter->rules, found, &finding->place);
	}
	if (finding->rule->filter != NULL) {
		quote_secret(needs, found, &finding->place);
	}
}

/* ---- context ---- */

/*
 * Where what it stands for ends. Rules of private keys find the first line
 * alone; no text is shown for as long as a key may be after it.
 */
static uint64_t secret_end(const struct report_finding *finding)
{
	static const char begins[][HEAD_BYTES + 1] = {"----", "PuTT"};
	const uint8_t *head = finding->head;

	if (finding->place.text_bytes >= HEAD_BYTES) {
		head = finding->place.text;
	}
	for (size_t i = 0; head != NULL && i < sizeof(begins) / sizeof(begins[0]); i++) {
		if (memcmp(head, begins[i], HEAD_BYTES) == 0) {
			return finding->secret_end + KEY_BYTES;
		}
	}
	return finding->secret_end;
}

/* Has all secrets near the first finding hidden, of which some are already. */
static bool hide_secrets(struct reporter *reporter, struct reporter_worker *worker,
	struct search_file *searched, const struct finding *first)
{
	const struct finding_list *held = &searched->findings.held;
	struct evidence_needs needs = reporter_needs(reporter);
	bool is_hidden;

	if (searched->context == NULL) {
		searched->context = context_create();
	}
	is_hidden = searched->context != NULL;
	while (is_hidden && searched->hidden_count < held->count &&
		held->items[searched->hidden_count].start < first->end + CONTEXT_BYTES) {
		const struct finding *found = &held->items[searched->hidden_count++];
		struct report_finding finding;

		take_finding(reporter, &needs, searched, found, &finding);
		worker->excerpt.length = 0;
		report_excerpt(&worker->excerpt, &reporter->options->style, &finding);
		is_hidden = !worker->excerpt.failed &&
			context_hide(searched->context, finding.secret_start, secret_end(&finding),
				&worker->excerpt) == 0;
	}
	return is_hidden;
}

size_t reporter_findings(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct finding *findings, size_t count)
{
	const struct report_format *format = reporter->options->format;
	struct search_file *searched = file->user;
	struct evidence_needs needs = reporter_needs(reporter);
	struct report_out out = begin(reporter, worker, file);
	bool has_context = reporter->options->style.has_context;
	size_t shown = 0;

	for (size_t i = 0; i < count; i++) {
		struct report_finding finding;

		if (has_context && !hide_secrets(reporter, worker, searched, &findings[i])) {
			worker->lines.failed = true;
			break;
		}
		take_finding(reporter, &needs, searched, &findings[i], &finding);
		if (!complete_finding(reporter, worker, file, &finding)) {
			continue;
		}
		shown++;
		if (searched->decoded != NULL) {
			move_decoded(searched->decoded, &finding);
		}
		if (has_context) {
			context_begin_finding(searched->context, &out, &searched->evidence,
				&finding,
				findings_limits_known_to(reporter->rules, &searched->findings));
		}
		if (format->finding != NULL) {
			format->finding(&out, &finding);
		}
	}
	/* The first ones are dropped now. */
	searched->hidden_count -= has_context && searched->hidden_count >= count ? count : 0;
	worker->finding_count += shown;
	return shown;
}

void reporter_context_end(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file)
{
	struct search_file *searched = file->user;

	worker->lines.length = 0;
	if (searched->context != NULL) {
		struct report_out out = begin(reporter, worker, file);

		context_end(searched->context, &out);
		context_destroy(searched->context);
		searched->context = NULL;
	}
}

/* What a document has at its end. */
static void add_note(struct reporter *reporter, const struct sorted_text *text)
{
	pthread_mutex_lock(&reporter->lock);
	if (reporter->notes.length + text->length > NOTES_BYTES_MAX) {
		reporter->lost_notes++;
	} else {
		output_text_append(&reporter->notes, text->bytes, text->length);
	}
	pthread_mutex_unlock(&reporter->lock);
}

static void keep_notes(struct reporter *reporter, struct reporter_worker *worker, uint64_t sequence)
{
	struct sorted_text text = {worker->lines.bytes, worker->lines.length, true};

	if (!reporter->options->format->is_document || text.length == 0) {
		return;
	}
	if (reporter->sorted != NULL) {
		(void)sorted_output_put(reporter->sorted, sequence, &text);
	} else {
		add_note(reporter, &text);
	}
	worker->lines.length = 0;
}

void reporter_gaps(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_gap *gaps, size_t count)
{
	const struct report_format *format = reporter->options->format;
	struct report_out out = begin(reporter, worker, file);

	for (size_t i = 0; i < count; i++) {
		report_gap(name_of(file), &gaps[i]);
		if (format->gap != NULL) {
			format->gap(&out, &gaps[i]);
		}
	}
	keep_notes(reporter, worker, file->sequence);
}

void reporter_limit(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct findings_limit *limit)
{
	const struct report_format *format = reporter->options->format;
	const char *id = reporter->rules->items[limit->rule].id;
	char reason[REPORT_LIMIT_BYTES];
	struct report_out out = begin(reporter, worker, file);

	/* A line for people, whatever the format is. */
	report_limit_reason(id, limit, reason);
	report_path(name_of(file), reason);
	if (format->limit != NULL) {
		format->limit(&out, id, limit);
	}
	keep_notes(reporter, worker, file->sequence);
}

void reporter_file_end(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, uint64_t shown_count)
{
	const struct report_format *format = reporter->options->format;

	worker->lines.length = 0;
	if (format->file_end != NULL && shown_count > 0) {
		struct report_out out = begin(reporter, worker, file);

		format->file_end(&out, shown_count);
	}
}

/* The lock is held. */
static bool write_begin(struct reporter *reporter)
{
	struct output_text text = {0};
	bool is_written;

	if (reporter->has_begun || reporter->options->format->begin == NULL) {
		return true;
	}
	reporter->has_begun = true;
	reporter->options->format->begin(&text, &reporter->run);
	is_written = !text.failed && output_write(text.bytes, text.length);
	output_text_free(&text);
	return is_written;
}

static bool write_lines(const struct reporter *reporter, const char *bytes, size_t length)
{
	return reporter->options->style.has_colors ? output_write_escaped(bytes, length)
						   : output_write(bytes, length);
}

/* The first group of lines needs no separator. */
static bool write_groups(struct reporter *reporter, const char *bytes, size_t length)
{
	static const char separator[] = REPORT_GROUP_END;
	size_t begun = 0;
	bool is_written;

	pthread_mutex_lock(&reporter->lock);
	if (!reporter->has_findings && length >= sizeof(separator) - 1 &&
		memcmp(bytes, separator, sizeof(separator) - 1) == 0) {
		begun = sizeof(separator) - 1;
	}
	reporter->has_findings = true;
	is_written = write_lines(reporter, bytes + begun, length - begun);
	pthread_mutex_unlock(&reporter->lock);
	return is_written;
}

static bool write_text(struct reporter *reporter, const char *bytes, size_t length)
{
	const struct report_format *format = reporter->options->format;
	bool is_written;

	if (reporter->options->style.has_context) {
		return write_groups(reporter, bytes, length);
	}
	if (format->begin == NULL) {
		return write_lines(reporter, bytes, length);
	}
	pthread_mutex_lock(&reporter->lock);
	is_written = write_begin(reporter);
	/* Findings of a document begin with a comma, but for its first. */
	if (format->is_document && !reporter->has_findings) {
		bytes++;
		length--;
	}
	reporter->has_findings = true;
	is_written = is_written && output_write(bytes, length);
	pthread_mutex_unlock(&reporter->lock);
	return is_written;
}

bool reporter_write_sorted(void *arg, const struct sorted_text *text)
{
	if (text->is_note) {
		add_note(arg, text);
		return true;
	}
	return write_text(arg, text->bytes, text->length);
}

bool reporter_write(struct reporter *reporter, struct reporter_worker *worker, uint64_t sequence)
{
	struct sorted_text text = {worker->lines.bytes, worker->lines.length, false};

	if (text.length == 0) {
		return true;
	}
	return reporter->sorted != NULL ? sorted_output_put(reporter->sorted, sequence, &text)
					: write_text(reporter, text.bytes, text.length);
}

bool reporter_end(struct reporter *reporter, bool has_trouble)
{
	const struct report_format *format = reporter->options->format;
	struct output_text text = {0};
	bool is_written;

	pthread_mutex_lock(&reporter->lock);
	is_written = write_begin(reporter);
	if (reporter->lost_notes > 0) {
		report_line("%llu lines about files are not in the document: it has no room",
			(unsigned long long)reporter->lost_notes);
	}
	reporter->run.has_trouble = has_trouble;
	if (format->end != NULL) {
		format->end(&text, &reporter->run);
	}
	is_written = is_written && !text.failed && !reporter->notes.failed &&
		output_write(text.bytes, text.length);
	pthread_mutex_unlock(&reporter->lock);
	output_text_free(&text);
	return is_written && (reporter->sorted == NULL || !reporter->sorted->has_failed);
}
