/* SPDX-License-Identifier: MIT */
/*
 * A file's text in other forms, as its windows come. A run of base64 that a
 * window cuts is kept until its end.
 */
#include "tools/scan/decode.h"

#include "tools/options.h"
#include "tools/report.h"
#include "tools/scan/base64.h"
#include "tools/scan/newlines.h"
#include "tools/scan/source.h"
#include "tools/scan/utf16.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE_BYTES = 64 << 10,
	KEPT_FIRST_BYTES = 4096,
};

bool decode_options_parse(struct decode_options *options, const char *value)
{
	static const char *const words[] = {"utf16", "base64", "utf16,base64", NULL};
	int index = value == NULL ? 2 : options_choice("decode", value, words);

	options->has_utf16 |= index == 0 || index == 2;
	options->has_base64 |= index == 1 || index == 2;
	return index >= 0;
}

/* A run that is open at the end of a window, or has ended. */
struct run {
	uint64_t start;
	uint64_t line;
	uint64_t column;
	uint64_t length; /* characters */
	uint8_t *kept;	 /* the first of them, if it may be text */
	size_t kept_bytes;
	size_t kept_capacity;
	bool is_open;
	bool is_dropped; /* it is no text */
};

struct decoding {
	bool has_looked;
	struct source *text; /* NULL: it is not UTF-16 */
	struct utf16 utf16;
	struct text_place {
		struct decoded decoded;
		const struct utf16 *utf16;
	} text_place;
	uint8_t *utf8;
	/* base64 */
	uint64_t lines; /* before the next window's new bytes */
	uint64_t line_start;
	struct run run;
};

/* ---- UTF-16 ---- */

static void locate_text(const struct decoded *decoded, struct report_finding *finding)
{
	const struct text_place *place = (const struct text_place *)decoded;

	utf16_place(place->utf16, &finding->start, &finding->end);
}

static int begin_text(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct search_file *searched = file->user;
	struct decoding *decoding = searched->decoding;
	size_t mark;
	enum utf16_kind kind;
	int error;

	if (decoding->has_looked || window->base_offset_bytes + window->prefix_bytes != 0) {
		return 0;
	}
	decoding->has_looked = true;
	kind = utf16_kind_of(window->bytes, window->length_bytes, &mark);
	if (kind == UTF16_NONE) {
		return 0;
	}
	decoding->utf16.kind = kind;
	decoding->utf16.origin = mark;
	decoding->text_place = (struct text_place){
		.decoded = {.kind = "utf16", .locate = locate_text},
		.utf16 = &decoding->utf16,
	};
	decoding->utf8 = malloc(utf16_room(PIECE_BYTES));
	decoding->text = source_create(job, worker);
	if (decoding->utf8 == NULL || decoding->text == NULL) {
		return -ENOMEM;
	}
	error = source_open_decoded(decoding->text, file, &decoding->text_place.decoded);
	if (error != 0) {
		source_destroy(decoding->text);
		decoding->text = NULL;
	}
	return error;
}

static int feed_text(struct decoding *decoding, const uint8_t *bytes, size_t length)
{
	int result = 0;

	while (result == 0 && length > 0) {
		size_t part = length < PIECE_BYTES ? length : PIECE_BYTES;
		long made = utf16_decode(&decoding->utf16, bytes, part, decoding->utf8);

		if (made < 0) {
			return (int)made;
		}
		result = source_feed(decoding->text, decoding->utf8, (size_t)made);
		bytes += part;
		length -= part;
	}
	utf16_forget(&decoding->utf16, source_settled_to(decoding->text));
	return result;
}

static int decode_text(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct search_file *searched = file->user;
	struct decoding *decoding = searched->decoding;
	size_t from = window->prefix_bytes;
	int error = begin_text(job, worker, file, window);
	int result;

	if (error != 0 || decoding->text == NULL) {
		return error;
	}
	if (window->base_offset_bytes + from == 0) {
		from += (size_t)decoding->utf16.origin;
	}
	result = feed_text(decoding, window->bytes + from, window->length_bytes - from);
	return result < 0 ? result : 0;
}

/* ---- base64 ---- */

struct run_place {
	struct decoded decoded;
	const struct run *run;
};

static void locate_run(const struct decoded *decoded, struct report_finding *finding)
{
	const struct run *run = ((const struct run_place *)decoded)->run;

	finding->start = run->start;
	finding->end = run->start + run->length;
	finding->place.line = run->line;
	finding->place.column = run->column;
	finding->place.end_line = run->line;
	finding->place.end_column = run->column + run->length;
}

/* The bytes of a run, as a source of their own. */
static int search_bytes(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, const struct run *run, const uint8_t *bytes,
	size_t length)
{
	const struct run_place place = {
		.decoded = {.kind = "base64", .locate = locate_run}, .run = run};
	int error;

	if (worker->decoded == NULL) {
		worker->decoded = source_create(job, worker);
	}
	error = worker->decoded == NULL
		? -ENOMEM
		: source_open_decoded(worker->decoded, file, &place.decoded);
	if (error != 0) {
		return error;
	}
	(void)source_feed(worker->decoded, bytes, length);
	return source_close(worker->decoded, 0);
}

static int search_chars(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, const struct run *run, const uint8_t *chars,
	size_t length)
{
	enum base64_text kind = base64_text_of(chars, length);
	struct utf16 utf16 = {.kind = UTF16_LITTLE};
	uint8_t *bytes;
	uint8_t *utf8 = NULL;
	long made;
	int error;

	if (kind == BASE64_BYTES) {
		return 0;
	}
	bytes = malloc(length / 4 * 3 + 3);
	if (bytes == NULL) {
		return -ENOMEM;
	}
	made = (long)base64_decode(chars, length, bytes);
	if (kind == BASE64_UTF16) {
		utf8 = malloc(utf16_room((size_t)made));
		made = utf8 == NULL ? -ENOMEM : utf16_decode(&utf16, bytes, (size_t)made, utf8);
		utf16_fini(&utf16);
	}
	error = made < 0
		? (int)made
		: search_bytes(job, worker, file, run, utf8 != NULL ? utf8 : bytes, (size_t)made);
	free(utf8);
	free(bytes);
	return error;
}

/* The end of the open run. */
static int end_run(
	struct scan_job *job, struct scan_worker *worker, const struct pinion_scan_file *file)
{
	struct search_file *searched = file->user;
	struct run *run = &searched->decoding->run;
	int error = 0;

	if (run->is_open && !run->is_dropped && run->length >= BASE64_RUN_MIN) {
		error = search_chars(job, worker, file, run, run->kept, run->kept_bytes);
	}
	run->is_open = false;
	return error;
}

/* More characters of the open run. */
static int keep_chars(struct run *run, const uint8_t *chars, size_t length)
{
	size_t room = BASE64_RUN_MAX - run->kept_bytes;

	run->length += length;
	length = length < room ? length : room;
	if (run->is_dropped || length == 0) {
		return 0;
	}
	if (run->kept_bytes + length > run->kept_capacity) {
		size_t capacity = 2 * (run->kept_bytes + length) + KEPT_FIRST_BYTES;
		uint8_t *kept = realloc(run->kept, capacity);

		if (kept == NULL) {
			return -ENOMEM;
		}
		run->kept = kept;
		run->kept_capacity = capacity;
	}
	memcpy(run->kept + run->kept_bytes, chars, length);
	run->kept_bytes += length;
	run->is_dropped = run->kept_bytes >= BASE64_LOOK_CHARS &&
		base64_text_of(run->kept, run->kept_bytes) == BASE64_BYTES;
	return 0;
}

/* Newlines are counted where a run may be text, and at the window's end. */
struct line_count {
	const uint8_t *bytes; /* the new ones */
	uint64_t base;
	size_t counted;
	uint64_t lines;
	uint64_t line_start;
};

static void count_to(struct line_count *count, size_t at)
{
	const uint8_t *from = count->bytes + count->counted;
	size_t length = at - count->counted;
	size_t after = newlines_last_start(from, length);

	if (after != 0) {
		count->lines += newlines_count(from, length);
		count->line_start = count->base + count->counted + after;
	}
	count->counted = at;
}

static void place_run(struct run *run, struct line_count *count, size_t at)
{
	count_to(count, at);
	run->start = count->base + at;
	run->line = count->lines + 1;
	run->column = run->start - count->line_start + 1;
}

/* Runs that are whole in these bytes; the last may stay open. */
static int decode_runs(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, struct line_count *count, size_t from, size_t length)
{
	struct search_file *searched = file->user;
	struct run *open = &searched->decoding->run;
	int error = 0;

	while (error == 0) {
		size_t start = base64_next(count->bytes, from, length);
		size_t end = base64_end(count->bytes, start, length);
		const uint8_t *chars = count->bytes + start;

		if (start == length) {
			break;
		}
		if (end == length) {
			place_run(open, count, start);
			open->length = 0;
			open->kept_bytes = 0;
			open->is_dropped = false;
			open->is_open = true;
			error = keep_chars(open, chars, end - start);
			break;
		}
		if (base64_text_of(chars, end - start) != BASE64_BYTES) {
			struct run run = {.length = end - start};
			size_t most =
				run.length < BASE64_RUN_MAX ? (size_t)run.length : BASE64_RUN_MAX;

			place_run(&run, count, start);
			error = search_chars(job, worker, file, &run, chars, most);
		}
		from = end;
	}
	return error;
}

static int decode_base64(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct search_file *searched = file->user;
	struct decoding *decoding = searched->decoding;
	size_t length = window->length_bytes - window->prefix_bytes;
	struct line_count count = {
		.bytes = window->bytes + window->prefix_bytes,
		.base = window->base_offset_bytes + window->prefix_bytes,
		.lines = decoding->lines,
		.line_start = decoding->line_start,
	};
	size_t from = 0;
	int error = 0;

	if (decoding->run.is_open) {
		from = base64_end(count.bytes, 0, length);
		error = keep_chars(&decoding->run, count.bytes, from);
		if (error == 0 && from < length) {
			error = end_run(job, worker, file);
		}
	}
	if (error == 0 && !decoding->run.is_open) {
		error = decode_runs(job, worker, file, &count, from, length);
	}
	count_to(&count, length);
	decoding->lines = count.lines;
	decoding->line_start = count.line_start;
	if (error == 0 && window->is_last) {
		error = end_run(job, worker, file);
	}
	return error;
}

/* ---- files ---- */

int decode_window(struct scan_job *job, struct scan_worker *worker, struct pinion_scan_file *file,
	const struct pinion_window *window)
{
	const struct decode_options *options = &job->options->decode;
	struct search_file *searched = file->user;
	int error = 0;

	if (window->is_hole) {
		return searched->decoding != NULL ? end_run(job, worker, file) : 0;
	}
	if (searched->decoding == NULL) {
		searched->decoding = calloc(1, sizeof(*searched->decoding));
	}
	if (searched->decoding == NULL) {
		return -ENOMEM;
	}
	if (options->has_utf16) {
		error = decode_text(job, worker, file, window);
	}
	if (error == 0 && options->has_base64) {
		error = decode_base64(job, worker, file, window);
	}
	return error;
}

int decode_close(
	struct scan_job *job, struct scan_worker *worker, struct pinion_scan_file *file, int error)
{
	struct search_file *searched = file->user;
	struct decoding *decoding = searched->decoding;
	int run_error;
	int text_error = 0;

	if (decoding == NULL) {
		return 0;
	}
	run_error = end_run(job, worker, file);
	if (decoding->text != NULL) {
		text_error = source_close(decoding->text, error);
		source_destroy(decoding->text);
	}
	utf16_fini(&decoding->utf16);
	free(decoding->utf8);
	free(decoding->run.kept);
	free(decoding);
	searched->decoding = NULL;
	return run_error != 0 ? run_error : text_error;
}
