/* SPDX-License-Identifier: MIT */
/*
 * A level is an archive that is being read. Its entries are searched, or are
 * the input of the level below.
 */
#include "tools/scan/archive.h"

#if defined(HAVE_LIBARCHIVE)

#include "tools/report.h"
#include "tools/scan/archive_input.h"
#include "tools/scan/archive_kind.h"
#include "tools/scanning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	/* Entries in a row that cannot be read, and leave no other to try. */
	FAILURES_MAX = 16,
	ZEROS_BYTES = 4096,
	REASON_BYTES = 256,
};

/* What there is one line about in an archive, however often it is met. */
enum complaint {
	COMPLAINT_BROKEN,
	COMPLAINT_ENCRYPTED,
	COMPLAINT_DEEP,
	COMPLAINT_LONG,
};

struct level {
	struct archive_run *run;
	struct archive *archive;
	uint32_t depth;
	uint64_t entry_count;
	/* The entry at hand. */
	uint64_t position;    /* of the bytes that came so far */
	const uint8_t *block; /* came after a gap, which is first */
	size_t block_bytes;
};

/* A piece of an entry; `bytes` NULL: zeros. */
struct piece {
	const uint8_t *bytes;
	uint64_t length;
};

static void complain(struct archive_run *run, enum complaint kind, const char *reason)
{
	uint32_t bit = UINT32_C(1) << kind;

	if ((run->complaints & bit) == 0) {
		run->complaints |= bit;
		run->path[run->path_bytes] = '\0';
		run->ops->complain(run->arg, run->path, reason);
	}
}

static void complain_broken(struct level *level)
{
	const char *words = archive_library.archive_error_string(level->archive);
	char reason[REASON_BYTES];

	snprintf(reason, sizeof(reason), "broken archive: %s", words != NULL ? words : "no words");
	complain(level->run, COMPLAINT_BROKEN, reason);
}

/* ---- the path ---- */

static int path_append(struct archive_run *run, const char *text, size_t length)
{
	if (run->path_bytes + length >= run->path_capacity) {
		size_t capacity = 2 * (run->path_bytes + length) + 1;
		char *path = realloc(run->path, capacity);

		if (path == NULL) {
			return -ENOMEM;
		}
		run->path = path;
		run->path_capacity = capacity;
	}
	memcpy(run->path + run->path_bytes, text, length);
	run->path_bytes += length;
	run->path[run->path_bytes] = '\0';
	return 0;
}

static int path_push(struct level *level, struct archive_entry *entry)
{
	struct archive_run *run = level->run;
	const char *name = NULL;
	size_t length;
	int error;

	if (archive_library.archive_format(level->archive) == ARCHIVE_FORMAT_RAW) {
		length = archive_kind_inner_name(run->path, run->path_bytes, &name);
	} else {
		name = archive_library.archive_entry_pathname(entry);
		length = name != NULL ? strlen(name) : 0;
	}
	/* The name may be a part of the path, which moves as it grows. */
	if (length > 0 && name >= run->path && name < run->path + run->path_bytes) {
		size_t at = (size_t)(name - run->path);

		error = path_append(run, "!", 1);
		for (size_t i = 0; error == 0 && i < length; i++) {
			char letter = run->path[at + i];

			error = path_append(run, &letter, 1);
		}
		return error;
	}
	error = path_append(run, "!", 1);
	return error == 0 && length > 0 ? path_append(run, name, length) : error;
}

/* ---- the bytes of an entry ---- */

/* 1: a piece; 0: the end; negative: it is broken there, or all ends. */
static int next_piece(struct level *level, struct piece *out_piece)
{
	struct archive_run *run = level->run;
	la_int64_t offset = 0;
	const void *bytes = NULL;
	size_t length = 0;
	int status;

	if (level->block != NULL) {
		*out_piece = (struct piece){.bytes = level->block, .length = level->block_bytes};
		level->block = NULL;
		level->position += out_piece->length;
		return 1;
	}
	do {
		if (archive_run_is_over(run)) {
			return run->error;
		}
		status = archive_library.archive_read_data_block(
			level->archive, &bytes, &length, &offset);
	} while (status == ARCHIVE_RETRY || (status == ARCHIVE_OK && length == 0));
	if (run->error != 0) {
		return run->error;
	}
	if (status == ARCHIVE_EOF) {
		return 0;
	}
	if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
		complain_broken(level);
		return -EILSEQ;
	}
	run->bytes += length;
	run->counts->bytes += length;
	*out_piece = (struct piece){.bytes = bytes, .length = length};
	if (offset > 0 && (uint64_t)offset > level->position) {
		*out_piece = (struct piece){.length = (uint64_t)offset - level->position};
		level->block = bytes;
		level->block_bytes = length;
	}
	level->position += out_piece->length;
	return 1;
}

static int feed_zeros(struct archive_run *run, uint64_t length)
{
	static const uint8_t zeros[ZEROS_BYTES];
	int result = 0;

	while (result == 0 && length > 0) {
		size_t part = length < sizeof(zeros) ? (size_t)length : sizeof(zeros);

		if (archive_run_is_over(run)) {
			return run->error;
		}
		result = run->ops->feed(run->arg, zeros, part);
		run->bytes += part;
		length -= part;
	}
	return result;
}

static int feed(struct archive_run *run, const struct piece *piece)
{
	if (piece->length == 0) {
		return 0;
	}
	return piece->bytes == NULL ? feed_zeros(run, piece->length)
				    : run->ops->feed(run->arg, piece->bytes, (size_t)piece->length);
}

/* The first bytes of an entry, and the rest of the piece that has the last. */
struct beginning {
	uint8_t head[ARCHIVE_KIND_BYTES];
	size_t head_bytes;
	struct piece rest;
	int status;	 /* of next_piece(), the last time */
	bool is_limited; /* not all of it is searched, or not as it should be */
};

static void begin_entry(struct level *level, struct beginning *begin)
{
	begin->head_bytes = 0;
	begin->rest = (struct piece){.bytes = NULL};
	begin->status = 1;
	begin->is_limited = false;
	level->position = 0;
	level->block = NULL;
	while (begin->status == 1 && begin->head_bytes < sizeof(begin->head)) {
		size_t room = sizeof(begin->head) - begin->head_bytes;
		struct piece *rest = &begin->rest;
		size_t part;

		begin->status = next_piece(level, rest);
		if (begin->status != 1) {
			break;
		}
		part = rest->length < room ? (size_t)rest->length : room;
		if (rest->bytes != NULL) {
			memcpy(begin->head + begin->head_bytes, rest->bytes, part);
			rest->bytes += part;
		} else {
			memset(begin->head + begin->head_bytes, 0, part);
		}
		begin->head_bytes += part;
		rest->length -= part;
	}
}

/* ---- an entry that is searched ---- */

/* Negative: an error that ends all. */
static int close_entry(struct archive_run *run, int result, bool is_limited)
{
	int error = run->ops->close(run->arg, result < 0 ? result : 0);

	if (run->error == 0 && (result == -EILSEQ || (result >= 0 && error < 0))) {
		run->counts->failed++;
		return result < 0 ? 0 : error;
	}
	if (result >= 0 && error > 0) {
		run->counts->binary++;
	} else if (result < 0 || is_limited) {
		run->counts->limited++;
	} else {
		run->counts->scanned++;
	}
	return result < 0 ? result : 0;
}

static int search_pieces(struct level *level, struct beginning *begin)
{
	struct archive_run *run = level->run;
	struct piece piece = {.bytes = begin->head, .length = begin->head_bytes};
	int result = feed(run, &piece);

	if (result == 0) {
		result = feed(run, &begin->rest);
	}
	while (result == 0 && begin->status == 1) {
		if (level->position > run->limits->entry_bytes) {
			complain(run, COMPLAINT_LONG,
				"has a long entry, whose rest was left out "
				"(--archive-limit=entry=SIZE)");
			begin->is_limited = true;
			return 0;
		}
		begin->status = next_piece(level, &piece);
		result = begin->status == 1 ? feed(run, &piece) : begin->status;
	}
	return result == 0 && begin->status < 0 ? begin->status : result;
}

static int search_plain(struct level *level, struct beginning *begin)
{
	struct archive_run *run = level->run;
	int result = run->ops->open(run->arg, run->path, run->path_bytes);

	if (result != 0) {
		run->error = result;
		run->counts->failed++;
		return result;
	}
	result = search_pieces(level, begin);
	return close_entry(run, result, begin->is_limited);
}

/* ---- an archive within ---- */

static int search_level(struct archive_run *run, struct archive_input *input, uint32_t depth,
	uint64_t *out_entry_count);

static int hold_piece(struct archive_input *input, const struct piece *piece)
{
	if (piece->bytes == NULL && piece->length > ARCHIVE_HELD_BYTES) {
		return -EILSEQ;
	}
	return piece->length == 0 ? 0
				  : archive_input_hold(input, piece->bytes, (size_t)piece->length);
}

static int hold_entry(struct level *level, struct beginning *begin, struct archive_input *input)
{
	struct piece piece = {.bytes = begin->head, .length = begin->head_bytes};
	int error = hold_piece(input, &piece);

	if (error == 0) {
		error = hold_piece(input, &begin->rest);
	}
	while (error == 0 && begin->status == 1 && level->run->held_bytes < ARCHIVE_HELD_BYTES) {
		begin->status = next_piece(level, &piece);
		error = begin->status == 1 ? hold_piece(input, &piece) : begin->status;
	}
	/* Of a broken one the bytes that came are all there are. */
	input->is_whole = begin->status != 1;
	return error == -EILSEQ ? 0 : error;
}

/* It looked like an archive, and has no entry: its bytes are searched. */
static int search_held(struct level *level, struct beginning *begin, struct archive_input *input)
{
	struct archive_run *run = level->run;
	int result = run->ops->open(run->arg, run->path, run->path_bytes);

	if (result != 0) {
		run->error = result;
		return result;
	}
	result = run->ops->feed(run->arg, input->held, input->held_length);
	while (result == 0 && begin->status == 1) {
		struct piece piece;

		begin->status = next_piece(level, &piece);
		result = begin->status == 1 ? feed(run, &piece) : begin->status;
	}
	run->ops->close(run->arg, result < 0 ? result : 0);
	return run->error;
}

static int search_inner(struct level *level, struct beginning *begin)
{
	struct archive_run *run = level->run;
	struct archive_input input;
	uint64_t entry_count = 0;
	int error;

	archive_input_of_entry(&input, run, level->archive);
	error = hold_entry(level, begin, &input);
	if (error != 0) {
		run->error = error;
		run->counts->limited++;
	} else {
		size_t path_bytes = run->path_bytes;

		error = search_level(run, &input, level->depth + 1, &entry_count);
		run->path_bytes = path_bytes;
		run->path[path_bytes] = '\0';
		if (error == -EILSEQ && run->error == 0) {
			run->counts->failed++;
			error = entry_count == 0 ? search_held(level, begin, &input) : 0;
		} else if (begin->status == -EILSEQ) {
			run->counts->failed++;
		}
	}
	archive_input_fini(&input);
	return error;
}

/* ---- entries ---- */

static bool has_bytes(struct archive_entry *entry)
{
	mode_t type = archive_library.archive_entry_filetype(entry);

	return (type == AE_IFREG || type == 0) &&
		archive_library.archive_entry_hardlink(entry) == NULL;
}

static int search_named_entry(struct level *level)
{
	struct archive_run *run = level->run;
	struct beginning begin;
	enum archive_kind kind;

	begin_entry(level, &begin);
	if (run->error != 0) {
		run->counts->limited++;
		return run->error;
	}
	kind = archive_kind_of(begin.head, begin.head_bytes);
	if (kind == ARCHIVE_KIND_NONE) {
		return search_plain(level, &begin);
	}
	if (level->depth < run->limits->depth) {
		return search_inner(level, &begin);
	}
	complain(run, COMPLAINT_DEEP,
		"an archive nested too deep to be unpacked (--archive-limit=depth=N)");
	begin.is_limited = true;
	return search_plain(level, &begin);
}

/* Negative: an error that ends all. */
static int search_entry(struct level *level, struct archive_entry *entry)
{
	struct archive_run *run = level->run;
	size_t path_bytes = run->path_bytes;
	int error;

	if (archive_library.archive_entry_filetype(entry) == AE_IFDIR) {
		return 0;
	}
	if (!has_bytes(entry)) {
		run->counts->links++;
		return 0;
	}
	error = path_push(level, entry);
	if (error != 0) {
		run->error = error;
		return error;
	}
	if (archive_library.archive_entry_is_encrypted(entry) == 1) {
		complain(run, COMPLAINT_ENCRYPTED, "encrypted, and not searched");
		run->counts->encrypted++;
	} else {
		error = search_named_entry(level);
	}
	run->path_bytes = path_bytes;
	run->path[path_bytes] = '\0';
	return error;
}

/* A file that is neither compressed nor an archive, after all. */
static bool is_neither(struct level *level)
{
	return archive_library.archive_format(level->archive) == ARCHIVE_FORMAT_RAW &&
		archive_library.archive_filter_code(level->archive, 0) == ARCHIVE_FILTER_NONE;
}

static int search_entries(struct level *level)
{
	struct archive_run *run = level->run;
	uint32_t failures = 0;
	bool is_broken = false;

	while (failures < FAILURES_MAX) {
		struct archive_entry *entry = NULL;
		int status = archive_library.archive_read_next_header(level->archive, &entry);
		int error;

		if (archive_run_is_over(run)) {
			return run->error;
		}
		if (status == ARCHIVE_EOF) {
			return is_broken ? -EILSEQ : 0;
		}
		if ((status == ARCHIVE_OK || status == ARCHIVE_WARN) && is_neither(level)) {
			complain(run, COMPLAINT_BROKEN,
				"broken archive: begins like one, and is none");
			return -EILSEQ;
		}
		if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
			complain_broken(level);
			is_broken = true;
			if (status == ARCHIVE_FATAL) {
				break;
			}
			failures++;
			continue;
		}
		failures = 0;
		level->entry_count++;
		error = search_entry(level, entry);
		if (error < 0) {
			run->error = run->error != 0 ? run->error : error;
			return error;
		}
	}
	return -EILSEQ;
}

/* ---- levels ---- */

/*
 * Zeros are the end of a tar, so a compressed file that begins with some looks
 * like one without entries. Its bytes may go on.
 */
static bool may_hide_bytes(struct level *level)
{
	return level->entry_count == 0 &&
		archive_library.archive_format(level->archive) == ARCHIVE_FORMAT_TAR &&
		archive_library.archive_filter_code(level->archive, 0) != ARCHIVE_FILTER_NONE;
}

static int search_level_as(struct level *level, struct archive_input *input, bool is_raw)
{
	struct archive_run *run = level->run;

	level->archive = archive_library_reader(is_raw);
	if (level->archive == NULL) {
		run->error = -ENOMEM;
		return -ENOMEM;
	}
	if (archive_input_open(input, level->archive) == ARCHIVE_OK) {
		return search_entries(level);
	}
	if (run->error == 0) {
		complain_broken(level);
		return -EILSEQ;
	}
	return run->error;
}

/* 0; -EILSEQ: broken; another error: run->error, which ends all. */
static int search_level(struct archive_run *run, struct archive_input *input, uint32_t depth,
	uint64_t *out_entry_count)
{
	struct level level = {.run = run, .depth = depth};
	int error = search_level_as(&level, input, false);

	if (error == 0 && may_hide_bytes(&level) && archive_input_rewind(input)) {
		archive_library.archive_read_free(level.archive);
		error = search_level_as(&level, input, true);
	}
	run->counts->archives += error == 0 || level.entry_count > 0;
	*out_entry_count = level.entry_count;
	archive_library.archive_read_free(level.archive);
	return error;
}

static void complain_end(struct archive_run *run)
{
	const struct archive_limits *limits = run->limits;
	char reason[REASON_BYTES];

	switch (-run->error) {
	case ECANCELED:
		return;
	case EFBIG:
		snprintf(reason, sizeof(reason),
			"given up after %llu bytes unpacked (--archive-limit=size=SIZE)",
			(unsigned long long)limits->bytes);
		break;
	case EDOM:
		snprintf(reason, sizeof(reason),
			"given up as it unpacks to more than %llu times its bytes "
			"(--archive-limit=ratio=N)",
			(unsigned long long)limits->ratio);
		run->error = -EFBIG;
		break;
	case ETIME:
		snprintf(reason, sizeof(reason),
			"given up after %g s of unpacking (--archive-limit=time=SECONDS)",
			(double)limits->time_ns / 1e9);
		break;
	default:
		snprintf(reason, sizeof(reason), "%s", report_reason(run->error));
		break;
	}
	run->ops->complain(run->arg, run->path, reason);
}

int archive_search(int fd, const char *path, const struct archive_limits *limits,
	const struct archive_ops *ops, void *arg, struct archive_counts *counts)
{
	struct archive_run run = {.limits = limits,
		.ops = ops,
		.arg = arg,
		.counts = counts,
		.end_ns = scanning_ns_now() + limits->time_ns};
	struct archive_input input = {.fd = -1};
	uint64_t entry_count = 0;
	uint64_t failed_before = counts->failed;
	int error = path_append(&run, path, strlen(path));

	if (error == 0) {
		error = archive_input_of_file(&input, &run, fd);
	}
	if (error == 0) {
		error = search_level(&run, &input, 1, &entry_count);
		run.path_bytes = strlen(path);
		run.path[run.path_bytes] = '\0';
	}
	if (run.error != 0) {
		complain_end(&run);
		error = run.error;
	} else if (error == 0 && counts->failed > failed_before) {
		error = -EILSEQ;
	}
	archive_input_fini(&input);
	free(run.path);
	return error;
}

#else

#include <errno.h>

int archive_search(int fd, const char *path, const struct archive_limits *limits,
	const struct archive_ops *ops, void *arg, struct archive_counts *counts)
{
	(void)fd;
	(void)path;
	(void)limits;
	(void)ops;
	(void)arg;
	(void)counts;
	return -EOPNOTSUPP;
}

#endif
