/* SPDX-License-Identifier: MIT */
/*
 * The values of all pages in Prometheus' text format.
 *
 * Its rule is that samples of one name follow each other. So all rows of all
 * pages are listed, sorted by name, and written name by name.
 *
 * Invariants, because a page may be a hostile process's and a text with one bad
 * line is refused as a whole:
 * 1. The name of a family says kind and unit of its rows, so a row of a page
 *    cannot change the type of another page's family.
 * 2. No name ends in a way that Prometheus keeps for other types.
 * 3. A page writes a share of the text at most, and a sample once.
 */
#include "tools/top/openmetrics.h"

#include "tools/output.h"
#include "tools/report.h"
#include "tools/top/meanings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum {
	TEXT_BYTES_MAX = 64 * 1024 * 1024,
	PAGE_BYTES_MAX = 4 * 1024 * 1024, /* of one page; usually 100 KiB */
	ROWS_MAX = 1024,		  /* of one page; usually 120 */
	NAME_BYTES = 80,
};

static const char *const scope_names[] = {
	[PINION_METRICS_RUNTIME] = "runtime",
	[PINION_METRICS_WORKER] = "worker",
	[PINION_METRICS_DEVICE] = "device",
};

/* A row of a page that has the name. */
struct entry {
	char name[NAME_BYTES];
	size_t page;
	uint32_t row;
	struct pinion_metrics_field field;
};

struct list {
	const struct top_watch *watch;
	struct entry *entries;
	size_t count;
	size_t *page_bytes; /* that each page has written */
	size_t page_bytes_max;
};

/* ---- names ---- */

static bool ends_in(const char *name, const char *end)
{
	size_t length = strlen(name);
	size_t end_length = strlen(end);

	return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static bool ends_in_any(const char *name, const char *const *ends, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ends_in(name, ends[i])) {
			return true;
		}
	}
	return false;
}

/*
 * The end of a family's name, by kind and unit; NULL: Prometheus has no such
 * values. For invariant 1, plain counters and gauges need the names below to be
 * refused.
 */
static const char *ending_of(const struct pinion_metrics_field *field)
{
	bool is_time = strcmp(field->unit, "ns") == 0;

	switch ((enum pinion_metrics_kind)field->kind) {
	case PINION_METRICS_COUNTER:
		return is_time ? "_seconds_total" : "_total";
	case PINION_METRICS_GAUGE:
		return is_time ? "_time_seconds" : "";
	case PINION_METRICS_HISTOGRAM:
		return is_time ? "_seconds" : NULL;
	}
	return NULL;
}

static bool is_refused(const struct pinion_metrics_field *field, const char *name)
{
	static const char *const others[] = {"_total", "_seconds", "_sum", "_bucket", "_info"};
	bool is_time = strcmp(field->unit, "ns") == 0;

	if (field->kind == PINION_METRICS_GAUGE) {
		return !is_time && ends_in_any(name, others, sizeof(others) / sizeof(others[0]));
	}
	return field->kind == PINION_METRICS_COUNTER ? !is_time && ends_in(name, "_seconds")
						     : ends_in(name, "_time");
}

static void cut_end(char *name, const char *end)
{
	if (ends_in(name, end) && strlen(name) > strlen(end)) {
		name[strlen(name) - strlen(end)] = '\0';
	}
}

/* False: the row is left out. */
static bool name_family(const struct pinion_metrics_field *field, char out_name[NAME_BYTES])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	const char *ending = ending_of(field);
	char name[sizeof(field->name)];

	memcpy(name, field->name, sizeof(name));
	if (ending == NULL || name[strspn(name, letters)] != '\0') {
		return false;
	}
	if (strcmp(field->unit, "ns") == 0) {
		cut_end(name, "_ns");
	}
	/* Prometheus keeps that for summaries. */
	if (field->kind == PINION_METRICS_GAUGE) {
		cut_end(name, "_count");
	}
	if (is_refused(field, name)) {
		return false;
	}
	snprintf(out_name, NAME_BYTES, "pinion_%s_%s%s", scope_names[field->scope], name, ending);
	return true;
}

/* ---- labels ---- */

/*
 * The runtime is called by the time when it was created, which is another for
 * each runtime of a process, and the same for each reader.
 */
static void append_page_labels(struct output_text *text, const struct top_page *page)
{
	output_text_format(text, "{pid=\"%llu\",runtime=\"%llu\",program=\"",
		(unsigned long long)page->last_pid, (unsigned long long)page->info.created_unix_ns);
	for (const char *byte = page->info.program; *byte != '\0'; byte++) {
		output_text_format(text, *byte == '"' || *byte == '\\' ? "\\%c" : "%c", *byte);
	}
	output_text_string(text, "\"");
}

/* As `lsblk` has it: "259:0". */
static void append_device_number(
	struct output_text *text, const struct top_page *page, uint32_t index)
{
	uint64_t device = top_page_single(page, PINION_METRICS_DEVICE, "device", index);

	if (device != TOP_MISSING) {
		output_text_format(text, ",number=\"%u:%u\"", major(device), minor(device));
	}
}

/* The caller closes them by a brace. */
static void append_labels(struct output_text *text, const struct top_page *page,
	const struct pinion_metrics_field *field, uint32_t copy)
{
	static const char *const lanes[] = {"high", "normal", "low"};

	append_page_labels(text, page);
	if (field->scope != PINION_METRICS_RUNTIME) {
		output_text_format(text, ",%s=\"%u\"", scope_names[field->scope], copy);
	}
	if (field->scope == PINION_METRICS_DEVICE) {
		append_device_number(text, page, copy);
	}
	if (field->lane < sizeof(lanes) / sizeof(lanes[0])) {
		output_text_format(text, ",lane=\"%s\"", lanes[field->lane]);
	} else if (field->lane != UINT32_MAX) {
		output_text_format(text, ",lane=\"%u\"", field->lane);
	}
}

static bool has_same_labels(const struct top_page *first, const struct top_page *second)
{
	return first->last_pid == second->last_pid &&
		first->info.created_unix_ns == second->info.created_unix_ns;
}

/* A process and its file were asked for: the first of them is written. */
static bool is_repeated(const struct top_watch *watch, size_t page)
{
	for (size_t i = 0; i < page; i++) {
		if (has_same_labels(&watch->pages[i], &watch->pages[page])) {
			return true;
		}
	}
	return false;
}

/* ---- samples ---- */

static void append_seconds(struct output_text *text, uint64_t time_ns)
{
	output_text_format(text, " %llu.%09llu\n", (unsigned long long)(time_ns / 1000000000u),
		(unsigned long long)(time_ns % 1000000000u));
}

static void append_summary(struct output_text *text, const struct top_page *page,
	const struct entry *entry, uint32_t copy)
{
	static const struct {
		uint32_t permille;
		const char *text;
	} quantiles[] = {{500, "0.5"}, {990, "0.99"}, {999, "0.999"}};
	static struct pinion_histogram histogram; /* too large for a stack */

	if (pinion_metrics_read_histogram(page->metrics, entry->row, copy, &histogram) != 0) {
		return;
	}
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		output_text_string(text, entry->name);
		append_labels(text, page, &entry->field, copy);
		output_text_format(text, ",quantile=\"%s\"}", quantiles[i].text);
		/* As Prometheus' own clients have it: 0 would be a time. */
		if (histogram.count == 0) {
			output_text_string(text, " NaN\n");
			continue;
		}
		append_seconds(
			text, pinion_histogram_quantile_ns(&histogram, quantiles[i].permille));
	}
	output_text_format(text, "%s_sum", entry->name);
	append_labels(text, page, &entry->field, copy);
	output_text_string(text, "}");
	append_seconds(text, histogram.sum_ns);
	output_text_format(text, "%s_count", entry->name);
	append_labels(text, page, &entry->field, copy);
	output_text_format(text, "} %llu\n", (unsigned long long)histogram.count);
}

static void append_sample(struct output_text *text, const struct top_page *page,
	const struct entry *entry, uint32_t copy)
{
	uint64_t value;

	if (entry->field.kind == PINION_METRICS_HISTOGRAM) {
		append_summary(text, page, entry, copy);
		return;
	}
	if (pinion_metrics_read(page->metrics, entry->row, copy, &value) != 0) {
		return;
	}
	output_text_string(text, entry->name);
	append_labels(text, page, &entry->field, copy);
	output_text_string(text, "}");
	if (strcmp(entry->field.unit, "ns") == 0) {
		append_seconds(text, value);
	} else {
		output_text_format(text, " %llu\n", (unsigned long long)value);
	}
}

/* ---- the list ---- */

static int compare_entries(const void *left, const void *right)
{
	const struct entry *first = left;
	const struct entry *second = right;
	int order = strcmp(first->name, second->name);

	if (order != 0) {
		return order;
	}
	if (first->page != second->page) {
		return first->page < second->page ? -1 : 1;
	}
	return (first->row > second->row) - (first->row < second->row);
}

/* An ended runtime has no state any more; its counts stay for a last scrape. */
static bool is_shown(const struct top_page *page, const struct pinion_metrics_field *field)
{
	return page->state == TOP_ALIVE || field->kind != PINION_METRICS_GAUGE;
}

static void add_rows(struct list *list, size_t page)
{
	const struct top_page *shown = &list->watch->pages[page];
	struct entry *entry = &list->entries[list->count];

	for (uint32_t row = 0; row < ROWS_MAX &&
		pinion_metrics_get_field(
			shown->metrics, row, &entry->field, sizeof(entry->field)) == 0;
		row++) {
		if (is_shown(shown, &entry->field) && name_family(&entry->field, entry->name)) {
			entry->page = page;
			entry->row = row;
			entry++;
		}
	}
	list->count = (size_t)(entry - list->entries);
}

static size_t rows_of(const struct top_page *page)
{
	return page->info.field_count < ROWS_MAX ? page->info.field_count : ROWS_MAX;
}

/* False: no memory. */
static bool make_list(struct list *list, const struct top_watch *watch)
{
	size_t rows = 1; /* the next, which add_rows() fills before it knows */

	for (size_t i = 0; i < watch->count; i++) {
		rows += rows_of(&watch->pages[i]);
	}
	*list = (struct list){.watch = watch,
		.entries = calloc(rows, sizeof(*list->entries)),
		.page_bytes = calloc(watch->count + 1, sizeof(*list->page_bytes))};
	if (list->entries == NULL || list->page_bytes == NULL) {
		return false;
	}
	list->page_bytes_max = watch->count == 0 ? 0 : TEXT_BYTES_MAX / watch->count;
	if (list->page_bytes_max > PAGE_BYTES_MAX) {
		list->page_bytes_max = PAGE_BYTES_MAX;
	}
	for (size_t i = 0; i < watch->count; i++) {
		if (!is_repeated(watch, i)) {
			add_rows(list, i);
		}
	}
	qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
	return true;
}

static void free_list(struct list *list)
{
	free(list->entries);
	free(list->page_bytes);
}

/* An earlier row of the page has the same name and lane. */
static bool is_second(const struct list *list, size_t index, size_t first)
{
	const struct entry *entry = &list->entries[index];

	for (size_t i = index; i-- > first && list->entries[i].page == entry->page;) {
		if (list->entries[i].field.lane == entry->field.lane) {
			return true;
		}
	}
	return false;
}

static void append_entry(struct output_text *text, struct list *list, const struct entry *entry)
{
	const struct top_page *page = &list->watch->pages[entry->page];
	size_t *bytes = &list->page_bytes[entry->page];
	uint32_t copies = entry->field.copies;

	if (entry->field.scope == PINION_METRICS_DEVICE && top_page_devices(page) < copies) {
		copies = top_page_devices(page);
	}
	for (uint32_t copy = 0; copy < copies && *bytes < list->page_bytes_max; copy++) {
		size_t before = text->length;

		append_sample(text, page, entry, copy);
		*bytes += text->length - before;
	}
}

/* Returns the index after the family that begins at `first`. */
static size_t append_family(struct output_text *text, struct list *list, size_t first)
{
	static const char *const types[] = {
		[PINION_METRICS_COUNTER] = "counter",
		[PINION_METRICS_GAUGE] = "gauge",
		[PINION_METRICS_HISTOGRAM] = "summary",
	};
	const struct entry *head = &list->entries[first];
	size_t index = first;

	output_text_format(text, "# HELP %s %s\n# TYPE %s %s\n", head->name,
		top_meaning_of(&head->field), head->name, types[head->field.kind]);
	for (; index < list->count && strcmp(list->entries[index].name, head->name) == 0; index++) {
		if (!is_second(list, index, first)) {
			append_entry(text, list, &list->entries[index]);
		}
	}
	return index;
}

static void append_up(struct output_text *text, const struct top_watch *watch)
{
	output_text_string(text,
		"# HELP pinion_up Whether the runtime lives.\n"
		"# TYPE pinion_up gauge\n");
	for (size_t i = 0; i < watch->count; i++) {
		if (!is_repeated(watch, i)) {
			output_text_string(text, "pinion_up");
			append_page_labels(text, &watch->pages[i]);
			output_text_format(text, "} %d\n", watch->pages[i].state == TOP_ALIVE);
		}
	}
}

void top_openmetrics_append(struct output_text *text, const struct top_watch *watch)
{
	struct list list;

	append_up(text, watch);
	if (!make_list(&list, watch)) {
		text->failed = true;
	}
	for (size_t i = 0; i < list.count && !text->failed;) {
		i = append_family(text, &list, i);
	}
	free_list(&list);
}

/* ---- the file ---- */

/* The collector reads *.prom only. */
#define DRAFT ".pinion.prom."

enum { DRAFT_TRIES = 16 };

static int write_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t count = write(fd, bytes, length);

		if (count < 0 && errno != EINTR) {
			return -errno;
		}
		bytes += count > 0 ? count : 0;
		length -= count > 0 ? (size_t)count : 0;
	}
	return 0;
}

/* A writer that lives has its draft locked. */
static void remove_draft(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat status;

	if (fd < 0) {
		return;
	}
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
		flock(fd, LOCK_EX | LOCK_NB) == 0) {
		(void)unlinkat(folder, name, 0);
	}
	close(fd);
}

/* Those of writers that were killed. */
static void remove_drafts(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (entries == NULL) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	while ((entry = readdir(entries)) != NULL) {
		if (strncmp(entry->d_name, DRAFT, strlen(DRAFT)) == 0) {
			remove_draft(folder, entry->d_name);
		}
	}
	closedir(entries);
}

/* A new file, locked; another that removes drafts may come before the lock. */
static int open_draft(int folder, char *out_name, size_t size)
{
	int fd = -EEXIST;

	for (int i = 0; i < DRAFT_TRIES && fd == -EEXIST; i++) {
		struct timespec now;
		struct stat status;

		clock_gettime(CLOCK_MONOTONIC, &now);
		snprintf(out_name, size, DRAFT "%d-%lld%09ld", getpid(), (long long)now.tv_sec,
			now.tv_nsec);
		fd = openat(folder, out_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0644);
		if (fd < 0) {
			fd = -errno;
		} else if ((flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
			fstat(fd, &status) != 0 || status.st_nlink == 0) {
			close(fd);
			fd = -EEXIST;
		}
	}
	return fd;
}

static int write_file(int folder, const struct output_text *text)
{
	char name[96];
	int fd = open_draft(folder, name, sizeof(name));
	int rc;

	if (fd < 0) {
		return fd;
	}
	rc = write_all(fd, text->bytes, text->length);
	/* Named before it is closed, which unlocks it. */
	if (rc == 0 && renameat(folder, name, folder, "pinion.prom") != 0) {
		rc = -errno;
	}
	if (rc != 0) {
		(void)unlinkat(folder, name, 0);
	}
	if (close(fd) != 0 && rc == 0) {
		rc = -errno;
	}
	return rc;
}

bool top_openmetrics_write(const struct top_watch *watch, const char *folder)
{
	static bool has_cleaned;
	static bool has_line; /* since it was written last */
	struct output_text text = {0};
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : 0;

	if (rc == 0 && !has_cleaned) {
		remove_drafts(fd);
		has_cleaned = true;
	}
	top_openmetrics_append(&text, watch);
	if (rc == 0) {
		rc = text.failed ? -ENOMEM : write_file(fd, &text);
	}
	if (fd >= 0) {
		close(fd);
	}
	output_text_free(&text);
	if (rc != 0 && !has_line) {
		report_path(folder, output_reason(rc));
	}
	has_line = rc != 0;
	return rc == 0;
}
