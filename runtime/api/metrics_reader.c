/* SPDX-License-Identifier: MIT */
/*
 * Reads the metrics page of a process, this one or another, alive or dead.
 *
 * A watching thread calls it; nothing of the watched process is called, and
 * nothing written that it sees. The page is read by pread(2) into memory of the
 * reader's, never mapped: a file that is cut meanwhile is an error then, and no
 * signal.
 *
 * Invariant: every place and size in a page is checked against its length
 * before it is used, in numbers that cannot wrap; the writer may be hostile, or
 * of another version.
 */
#include "runtime/api/internal.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/utf8.h"
#include "runtime/base/versioned.h"
#include "runtime/observe/metrics_page.h"
#include "runtime/observe/seqlock.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/metrics.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Of a newer writer, too. */
	WORDS_MAX = 1 << 20,
	FIELDS_MAX = 4096,
	SLOTS_READ_MAX = 4096,
	COPIES_MAX = 4096,
	/* A part is written within some microseconds; a pause takes some 60. */
	TRIES_MAX = 20,
	/* Of all parts of a snapshot: a hostile page may have thousands. */
	PAUSES_MAX = 64,
	TRY_PAUSE_NS = 10000,
};

/* A part of the page: words with a sequence before them. */
struct part {
	size_t at;
	size_t words;
};

struct pinion_metrics {
	int fd;
	struct pin_log log;
	char name[160]; /* what messages call it */
	struct pin_page_header header;
	struct pin_page_field *fields;
	uint64_t *words; /* the snapshot: the runtime's part, then the slots */
	uint32_t torn_count;
};

/* ---- messages ---- */

static int refuse(const struct pinion_metrics *metrics, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(const struct pinion_metrics *metrics, int error, const char *format, ...)
{
	char reason[256];
	va_list arguments;

	PIN_DCHECK(error < 0);
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	pin_log(&metrics->log, PINION_LOG_ERROR, "metrics of %s: %s", metrics->name, reason);
	return error;
}

/* ---- reading ---- */

static int read_bytes(const struct pinion_metrics *metrics, uint64_t at, void *out, size_t bytes)
{
	size_t done = 0;

	PIN_DCHECK(at <= (uint64_t)INT64_MAX - bytes); /* an off_t, after the checks */
	while (done < bytes) {
		ssize_t got =
			pread(metrics->fd, (char *)out + done, bytes - done, (off_t)(at + done));

		if (got < 0 && errno != EINTR) {
			return -errno;
		}
		if (got == 0) {
			return -EPROTO;
		}
		done += got > 0 ? (size_t)got : 0;
	}
	return 0;
}

/* The source of a sequence's reader: words of the file. */
static bool fetch(const void *source, size_t first, size_t count, uint64_t *out_words)
{
	return read_bytes(source, (uint64_t)first * 8, out_words, count * 8) == 0;
}

/* ---- checking ---- */

static bool is_inside(uint64_t at, uint64_t words, uint64_t all)
{
	return words <= all && at <= all - words;
}

static int check_header(const struct pinion_metrics *metrics, uint64_t file_bytes)
{
	const struct pin_page_header *header = &metrics->header;
	uint64_t all = header->word_count;
	uint64_t fields_words = (uint64_t)header->field_count * (header->field_bytes / 8);

	if (header->version != PIN_PAGE_VERSION) {
		return refuse(metrics, -EPROTONOSUPPORT,
			"its format has version %u, this program reads %d: use libpinion %.15s",
			header->version, PIN_PAGE_VERSION, header->owner.library);
	}
	if (header->header_words < sizeof(*header) / 8 || all > WORDS_MAX || all * 8 > file_bytes ||
		!is_inside(0, header->header_words, all)) {
		return refuse(metrics, -EPROTO,
			"it says %llu words and a header of %u, and has %llu bytes",
			(unsigned long long)all, header->header_words,
			(unsigned long long)file_bytes);
	}
	if (header->field_count == 0 || header->field_count > FIELDS_MAX ||
		header->field_bytes < sizeof(struct pin_page_field) ||
		header->field_bytes % 8 != 0 || header->field_bytes > 4096 ||
		!is_inside(header->fields_at, fields_words, all)) {
		return refuse(metrics, -EPROTO,
			"its table, %u rows of %u bytes at word %llu, is not in it",
			header->field_count, header->field_bytes,
			(unsigned long long)header->fields_at);
	}
	if (header->runtime_words == 0 ||
		!is_inside(header->runtime_at, header->runtime_words, all)) {
		return refuse(metrics, -EPROTO, "its runtime's part is not in it");
	}
	if (header->slot_count > SLOTS_READ_MAX || header->slot_words == 0 ||
		header->slot_words > all ||
		!is_inside(header->slots_at, header->slot_count * header->slot_words, all)) {
		return refuse(metrics, -EPROTO, "its %u slots of %llu words are not in it",
			header->slot_count, (unsigned long long)header->slot_words);
	}
	return 0;
}

static bool is_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	for (size_t i = 0; i < length; i++) {
		if (text[i] < ' ' || text[i] > '~') {
			return false;
		}
	}
	return length < size;
}

/* Several are of devices, and do not overlap, so their number is bounded. */
static bool has_sound_copies(const struct pin_page_field *field)
{
	return field->copies == 1 ||
		(field->scope == PIN_PAGE_DEVICE && field->copies > 0 &&
			field->copies <= COPIES_MAX && field->stride >= field->words);
}

static bool is_field(const struct pin_page_header *header, const struct pin_page_field *field)
{
	uint64_t part =
		field->scope == PIN_PAGE_WORKER ? header->slot_words : header->runtime_words;
	uint64_t last = (uint64_t)(field->copies - 1) * field->stride;

	return is_text(field->name, sizeof(field->name)) && field->name[0] != '\0' &&
		is_text(field->unit, sizeof(field->unit)) && field->kind >= PIN_PAGE_COUNTER &&
		field->kind <= PIN_PAGE_HISTOGRAM && field->scope >= PIN_PAGE_RUNTIME &&
		field->scope <= PIN_PAGE_DEVICE && field->words > 0 && has_sound_copies(field) &&
		(field->kind != PIN_PAGE_HISTOGRAM || field->words == PIN_TIMING_WORDS) &&
		is_inside(field->at, last + field->words, part);
}

/* The rows as they are in the page, for the caller to free. */
static int read_rows(const struct pinion_metrics *metrics, char **out_rows)
{
	const struct pin_page_header *header = &metrics->header;
	size_t bytes = (size_t)header->field_count * header->field_bytes;
	char *rows = malloc(bytes);
	int rc = rows == NULL ? -ENOMEM : read_bytes(metrics, header->fields_at * 8, rows, bytes);

	if (rc < 0) {
		free(rows);
		return rc == -ENOMEM ? rc : refuse(metrics, rc, "its table is cut short");
	}
	*out_rows = rows;
	return 0;
}

/*
 * Rows of a kind that this version does not know are left out, so that newer
 * pages may have some.
 */
static int keep_fields(struct pinion_metrics *metrics, const char *rows)
{
	struct pin_page_header *header = &metrics->header;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < header->field_count; i++) {
		struct pin_page_field *field = &metrics->fields[kept];

		PIN_DCHECK(kept <= i); /* so the array has room for each */
		memcpy(field, rows + (size_t)i * header->field_bytes, sizeof(*field));
		if (field->kind > PIN_PAGE_HISTOGRAM || field->scope > PIN_PAGE_DEVICE) {
			continue;
		}
		if (!is_field(header, field)) {
			return refuse(metrics, -EPROTO, "row %u of its table is not sound", i);
		}
		kept++;
	}
	header->field_count = kept;
	return 0;
}

static int take_fields(struct pinion_metrics *metrics)
{
	char *rows = NULL;
	int rc;

	metrics->fields = calloc(metrics->header.field_count, sizeof(*metrics->fields));
	if (metrics->fields == NULL) {
		return -ENOMEM;
	}
	rc = read_rows(metrics, &rows);
	if (rc == 0) {
		rc = keep_fields(metrics, rows);
		free(rows);
	}
	return rc;
}

static void clean_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	pin_utf8_clean(text);
}

static int take_header(struct pinion_metrics *metrics)
{
	struct pin_page_header *header = &metrics->header;
	struct stat status;
	int rc;

	if (fstat(metrics->fd, &status) != 0) {
		return refuse(metrics, -errno, "fstat: %s", strerror(errno));
	}
	if (!S_ISREG(status.st_mode)) {
		return refuse(metrics, -EPROTO,
			"it is no regular file: give the page's file, or /proc/PID/fd/N of it");
	}
	rc = read_bytes(metrics, 0, header, sizeof(*header));
	if (rc < 0) {
		return refuse(metrics, rc, "it is no metrics page: %s",
			rc == -EPROTO ? "it is too short" : strerror(-rc));
	}
	clean_text(header->owner.boot_id, sizeof(header->owner.boot_id));
	clean_text(header->owner.program, sizeof(header->owner.program));
	clean_text(header->owner.library, sizeof(header->owner.library));
	/* Relaxed: copies of the reader's own. */
	if (pin_load_relaxed_u64(&header->magic) == 0) {
		return refuse(metrics, -EAGAIN, "its process has not filled it yet: try again");
	}
	if (pin_load_relaxed_u64(&header->magic) != PIN_PAGE_MAGIC) {
		return refuse(metrics, -EPROTO, "it is no metrics page, or of another byte order");
	}
	return check_header(metrics, (uint64_t)status.st_size);
}

/* ---- opening ---- */

static int take_page(struct pinion_metrics *metrics)
{
	int rc = take_header(metrics);
	size_t words;

	rc = rc == 0 ? take_fields(metrics) : rc;
	if (rc < 0) {
		return rc;
	}
	words = metrics->header.runtime_words +
		metrics->header.slot_count * metrics->header.slot_words;
	metrics->words = calloc(words, sizeof(*metrics->words));
	return metrics->words == NULL ? -ENOMEM : 0;
}

int pin_metrics_take(
	int fd, const char *name, const struct pin_log *log, struct pinion_metrics **out_metrics)
{
	struct pinion_metrics *metrics = calloc(1, sizeof(*metrics));
	int rc;

	PIN_DCHECK(fd >= 0);
	if (metrics == NULL) {
		close(fd);
		return -ENOMEM;
	}
	metrics->fd = fd;
	metrics->log = *log;
	snprintf(metrics->name, sizeof(metrics->name), "%s", name);
	rc = take_page(metrics);
	if (rc < 0) {
		pinion_metrics_close(metrics);
		return rc;
	}
	*out_metrics = metrics;
	return 0;
}

int pinion_metrics_open(
	const char *path, pinion_log_fn log, void *log_arg, struct pinion_metrics **out_metrics)
{
	struct pin_log line = {.fn = log, .arg = log_arg};
	/* Not blocked by what only seems to be a file. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error = errno;

	if (fd < 0) {
		pin_log(&line, PINION_LOG_ERROR, "metrics of %.160s: open: %s", path,
			strerror(error));
		return -error;
	}
	return pin_metrics_take(fd, path, &line, out_metrics);
}

unsigned long long pin_metrics_inode(const struct pinion_metrics *metrics)
{
	struct stat status;

	return fstat(metrics->fd, &status) == 0 ? status.st_ino : 0;
}

void pinion_metrics_close(struct pinion_metrics *metrics)
{
	if (metrics == NULL) {
		return;
	}
	close(metrics->fd);
	free(metrics->fields);
	free(metrics->words);
	free(metrics);
}

/* ---- the snapshot ---- */

static struct part part_of(const struct pinion_metrics *metrics, uint32_t number)
{
	const struct pin_page_header *header = &metrics->header;

	PIN_DCHECK(number <= header->slot_count); /* 0 is the runtime's */
	return number == 0 ? (struct part){header->runtime_at, header->runtime_words}
			   : (struct part){header->slots_at + (number - 1) * header->slot_words,
				     header->slot_words};
}

static uint64_t *words_of(const struct pinion_metrics *metrics, uint32_t number)
{
	const struct pin_page_header *header = &metrics->header;

	PIN_DCHECK(number <= header->slot_count);
	return number == 0
		? metrics->words
		: metrics->words + header->runtime_words + (number - 1) * header->slot_words;
}

/* 1: it was torn each time. `*pauses` is what the snapshot may still wait. */
static int read_part(const struct pinion_metrics *metrics, uint32_t number, uint32_t *pauses)
{
	const struct timespec pause = {.tv_nsec = TRY_PAUSE_NS};
	struct part part = part_of(metrics, number);

	PIN_DCHECK(is_inside(part.at, part.words, metrics->header.word_count));
	for (uint32_t i = 0; i < TRIES_MAX; i++) {
		switch (pin_seqlock_try_read(
			fetch, metrics, part.at, part.at, part.words, words_of(metrics, number))) {
		case PIN_SEQLOCK_READ:
			return 0;
		case PIN_SEQLOCK_FAILED:
			return -EPROTO;
		case PIN_SEQLOCK_TORN:
			if (*pauses == 0) {
				return 1;
			}
			(*pauses)--;
			nanosleep(&pause, NULL);
			break;
		}
	}
	return 1;
}

int pinion_metrics_snapshot(struct pinion_metrics *metrics)
{
	struct pin_page_header now;
	uint32_t pauses = PAUSES_MAX;
	int rc;

	metrics->torn_count = 0;
	for (uint32_t i = 0; i <= metrics->header.slot_count; i++) {
		rc = read_part(metrics, i, &pauses);
		if (rc < 0) {
			return refuse(metrics, rc, "it was cut short meanwhile");
		}
		metrics->torn_count += (uint32_t)rc;
	}
	rc = read_bytes(metrics, 0, &now, sizeof(now));
	if (rc < 0) {
		return refuse(metrics, rc, "it was cut short meanwhile");
	}
	/* Relaxed: copies. */
	pin_store_relaxed_u64(&metrics->header.owner.state, pin_load_relaxed_u64(&now.owner.state));
	return metrics->torn_count > 0 ? -EAGAIN : 0;
}

/* ---- values ---- */

/* NULL: there is no such row or copy. */
static const uint64_t *value_of(
	const struct pinion_metrics *metrics, uint32_t number, uint32_t copy)
{
	const struct pin_page_field *field;

	if (number >= metrics->header.field_count) {
		return NULL;
	}
	field = &metrics->fields[number];
	if (field->scope == PIN_PAGE_WORKER) {
		return copy >= metrics->header.slot_count ? NULL
							  : words_of(metrics, copy + 1) + field->at;
	}
	return copy >= field->copies
		? NULL
		: words_of(metrics, 0) + field->at + (size_t)copy * field->stride;
}

int pinion_metrics_read(
	const struct pinion_metrics *metrics, uint32_t number, uint32_t copy, uint64_t *out_value)
{
	const uint64_t *value = value_of(metrics, number, copy);

	if (value == NULL) {
		return -ENOENT;
	}
	*out_value = *value;
	return 0;
}

int pinion_metrics_read_histogram(const struct pinion_metrics *metrics, uint32_t number,
	uint32_t copy, struct pinion_histogram *out_histogram)
{
	const uint64_t *words = value_of(metrics, number, copy);

	if (words == NULL) {
		return -ENOENT;
	}
	if (metrics->fields[number].kind != PIN_PAGE_HISTOGRAM) {
		return -EINVAL;
	}
	PIN_DCHECK(metrics->fields[number].words * sizeof(*words) == sizeof(*out_histogram));
	memcpy(out_histogram, words, sizeof(*out_histogram));
	return 0;
}

int pinion_metrics_get_field(const struct pinion_metrics *metrics, uint32_t number,
	struct pinion_metrics_field *out_field, size_t size)
{
	const struct pin_page_field *field;
	struct pinion_metrics_field shown = {0};

	if (number >= metrics->header.field_count) {
		return -ENOENT;
	}
	field = &metrics->fields[number];
	memcpy(shown.name, field->name, sizeof(shown.name));
	memcpy(shown.unit, field->unit, sizeof(shown.unit));
	shown.kind = field->kind;
	shown.scope = field->scope;
	shown.lane = field->lane;
	shown.copies = field->scope == PIN_PAGE_WORKER ? metrics->header.slot_count : field->copies;
	pin_sized_give(out_field, size, &shown, sizeof(shown));
	return 0;
}

int pinion_metrics_find(const struct pinion_metrics *metrics, const char *name,
	enum pinion_metrics_scope scope, uint32_t lane)
{
	for (uint32_t i = 0; i < metrics->header.field_count; i++) {
		const struct pin_page_field *field = &metrics->fields[i];

		if (field->scope == scope && field->lane == lane &&
			strcmp(field->name, name) == 0) {
			return (int)i;
		}
	}
	return -ENOENT;
}

/* The latest of all parts that this version finds the time in. */
static uint64_t latest_of(const struct pinion_metrics *metrics)
{
	uint64_t latest = 0;

	for (uint32_t scope = PIN_PAGE_RUNTIME; scope <= PIN_PAGE_WORKER; scope++) {
		int number = pinion_metrics_find(
			metrics, "published_ns", (enum pinion_metrics_scope)scope, UINT32_MAX);
		uint32_t copy = 0;
		const uint64_t *value;

		while (number >= 0 &&
			(value = value_of(metrics, (uint32_t)number, copy++)) != NULL) {
			latest = *value > latest ? *value : latest;
		}
	}
	return latest;
}

void pinion_metrics_get_info(
	const struct pinion_metrics *metrics, struct pinion_metrics_info *out_info, size_t size)
{
	const struct pin_page_header *header = &metrics->header;
	struct pinion_metrics_info info = {
		.version = header->version,
		.field_count = header->field_count,
		.worker_count = header->worker_count,
		.slot_count = header->slot_count,
		.page_bytes = header->word_count * 8,
		.pid = header->owner.pid,
		.process_start = header->owner.process_start,
		.created_ns = header->owner.created_ns,
		.created_unix_ns = header->owner.created_unix_ns,
		.published_ns = latest_of(metrics),
		.has_ended = pin_load_relaxed_u64(&header->owner.state) == PIN_PAGE_ENDED,
		.torn_count = metrics->torn_count,
	};

	memcpy(info.boot_id, header->owner.boot_id, sizeof(info.boot_id));
	memcpy(info.program, header->owner.program, sizeof(info.program));
	memcpy(info.library, header->owner.library, sizeof(info.library));
	pin_sized_give(out_info, size, &info, sizeof(info));
}
