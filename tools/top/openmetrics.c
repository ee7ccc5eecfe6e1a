/* SPDX-License-Identifier: MIT */
/*
 * The values of all pages in Prometheus' text format. Its rule is that samples
 * of one name follow each other, so each name is written for all pages at the
 * first row that has it.
 */
#include "tools/top/openmetrics.h"

#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	TEXT_BYTES_MAX = 64 * 1024 * 1024, /* of hostile pages it would be more */
	NAME_BYTES = 80,
};

static const char *const scope_names[] = {
	[PINION_METRICS_RUNTIME] = "runtime",
	[PINION_METRICS_WORKER] = "worker",
	[PINION_METRICS_DEVICE] = "device",
};

static bool is_full(const struct output_text *text)
{
	return text->failed || text->length > TEXT_BYTES_MAX;
}

/* Prometheus takes no other name, and wants seconds. False: there is none. */
static bool name_family(const struct pinion_metrics_field *field, char out_name[NAME_BYTES])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	size_t length = strlen(field->name);
	bool is_time = strcmp(field->unit, "ns") == 0;

	if (field->name[strspn(field->name, letters)] != '\0') {
		return false;
	}
	if (is_time && length > 3 && strcmp(field->name + length - 3, "_ns") == 0) {
		length -= 3;
	}
	snprintf(out_name, NAME_BYTES, "pinion_%s_%.*s%s%s", scope_names[field->scope], (int)length,
		field->name, is_time ? "_seconds" : "",
		field->kind == PINION_METRICS_COUNTER ? "_total" : "");
	return true;
}

static unsigned int number_in_process(const struct top_watch *watch, size_t index)
{
	unsigned int number = 0;

	for (size_t i = 0; i < index; i++) {
		number += watch->pages[i].process.pid == watch->pages[index].process.pid;
	}
	return number;
}

/* Of one value; the caller closes it by a brace. */
static void append_labels(struct output_text *text, const struct top_watch *watch, size_t index,
	const struct pinion_metrics_field *field, uint32_t copy)
{
	static const char *const lanes[] = {"high", "normal", "low"};
	const struct top_page *page = &watch->pages[index];

	output_text_format(text, "{pid=\"%d\",runtime=\"%u\",program=\"", page->process.pid,
		number_in_process(watch, index));
	for (const char *byte = page->info.program; *byte != '\0'; byte++) {
		output_text_format(text, *byte == '"' || *byte == '\\' ? "\\%c" : "%c", *byte);
	}
	output_text_string(text, "\"");
	if (field->scope != PINION_METRICS_RUNTIME) {
		output_text_format(text, ",%s=\"%u\"", scope_names[field->scope], copy);
	}
	if (field->lane < sizeof(lanes) / sizeof(lanes[0])) {
		output_text_format(text, ",lane=\"%s\"", lanes[field->lane]);
	} else if (field->lane != UINT32_MAX) {
		output_text_format(text, ",lane=\"%u\"", field->lane);
	}
}

static void append_seconds(struct output_text *text, uint64_t time_ns)
{
	output_text_format(text, " %llu.%09llu\n", (unsigned long long)(time_ns / 1000000000u),
		(unsigned long long)(time_ns % 1000000000u));
}

struct sample {
	const struct top_watch *watch;
	size_t page;
	const struct pinion_metrics_field *field;
	uint32_t row;
	uint32_t copy;
	const char *name;
};

static void append_summary(struct output_text *text, const struct sample *sample)
{
	static const uint32_t permilles[] = {500, 990, 999};
	static struct pinion_histogram histogram; /* too large for a stack */

	if (pinion_metrics_read_histogram(sample->watch->pages[sample->page].metrics, sample->row,
		    sample->copy, &histogram) != 0) {
		return;
	}
	for (size_t i = 0; i < sizeof(permilles) / sizeof(permilles[0]); i++) {
		output_text_string(text, sample->name);
		append_labels(text, sample->watch, sample->page, sample->field, sample->copy);
		output_text_format(text, ",quantile=\"0.%03u\"}", permilles[i]);
		append_seconds(text, pinion_histogram_quantile_ns(&histogram, permilles[i]));
	}
	output_text_format(text, "%s_sum", sample->name);
	append_labels(text, sample->watch, sample->page, sample->field, sample->copy);
	output_text_string(text, "}");
	append_seconds(text, histogram.sum_ns);
	output_text_format(text, "%s_count", sample->name);
	append_labels(text, sample->watch, sample->page, sample->field, sample->copy);
	output_text_format(text, "} %llu\n", (unsigned long long)histogram.count);
}

static void append_sample(struct output_text *text, const struct sample *sample)
{
	const struct top_page *page = &sample->watch->pages[sample->page];
	uint64_t value;

	if (sample->field->kind == PINION_METRICS_HISTOGRAM) {
		append_summary(text, sample);
		return;
	}
	if (pinion_metrics_read(page->metrics, sample->row, sample->copy, &value) != 0) {
		return;
	}
	output_text_string(text, sample->name);
	append_labels(text, sample->watch, sample->page, sample->field, sample->copy);
	output_text_string(text, "}");
	if (strcmp(sample->field->unit, "ns") == 0) {
		append_seconds(text, value);
	} else {
		output_text_format(text, " %llu\n", (unsigned long long)value);
	}
}

static bool is_of_family(const struct pinion_metrics_field *field, const char *family)
{
	char name[NAME_BYTES];

	return name_family(field, name) && strcmp(name, family) == 0;
}

/* Whether the first `rows` rows of a page have the name, in a lane or any. */
static bool has_family(const struct top_page *page, uint32_t rows, const char *family,
	const struct pinion_metrics_field *of_lane)
{
	struct pinion_metrics_field field;

	for (uint32_t row = 0; row < rows &&
		pinion_metrics_get_field(page->metrics, row, &field, sizeof(field)) == 0;
		row++) {
		if ((of_lane == NULL || of_lane->lane == field.lane) &&
			is_of_family(&field, family)) {
			return true;
		}
	}
	return false;
}

/* Whether an earlier page, or an earlier row of this page, has the name. */
static bool is_written(const struct top_watch *watch, size_t page, uint32_t row, const char *family)
{
	for (size_t i = 0; i < page; i++) {
		if (has_family(&watch->pages[i], UINT32_MAX, family, NULL)) {
			return true;
		}
	}
	return has_family(&watch->pages[page], row, family, NULL);
}

/*
 * The rows of that name in one page. Those of another kind or unit, and a
 * second of the same lane, are left out: they would void the whole text.
 */
static void append_rows(struct output_text *text, const struct top_watch *watch, size_t index,
	const struct pinion_metrics_field *family, const char *name)
{
	const struct top_page *page = &watch->pages[index];
	struct pinion_metrics_field field;

	for (uint32_t row = 0;
		pinion_metrics_get_field(page->metrics, row, &field, sizeof(field)) == 0; row++) {
		uint32_t copies = field.scope == PINION_METRICS_DEVICE ? top_page_devices(page)
								       : field.copies;

		if (field.kind != family->kind || strcmp(field.unit, family->unit) != 0 ||
			!is_of_family(&field, name) || has_family(page, row, name, &field)) {
			continue;
		}
		copies = field.scope == PINION_METRICS_DEVICE && field.copies < copies
			? field.copies
			: copies;
		for (uint32_t copy = 0; copy < copies && !is_full(text); copy++) {
			append_sample(
				text, &(struct sample){watch, index, &field, row, copy, name});
		}
	}
}

static void append_up(struct output_text *text, const struct top_watch *watch)
{
	static const struct pinion_metrics_field field = {
		.scope = PINION_METRICS_RUNTIME, .lane = UINT32_MAX};

	output_text_string(text,
		"# HELP pinion_up Whether the process lives.\n"
		"# TYPE pinion_up gauge\n");
	for (size_t i = 0; i < watch->count; i++) {
		output_text_string(text, "pinion_up");
		append_labels(text, watch, i, &field, 0);
		output_text_format(text, "} %d\n", watch->pages[i].state == TOP_ALIVE);
	}
}

void top_openmetrics_append(struct output_text *text, const struct top_watch *watch)
{
	static const char *const types[] = {
		[PINION_METRICS_COUNTER] = "counter",
		[PINION_METRICS_GAUGE] = "gauge",
		[PINION_METRICS_HISTOGRAM] = "summary",
	};
	struct pinion_metrics_field field;
	char name[NAME_BYTES];

	append_up(text, watch);
	for (size_t i = 0; i < watch->count; i++) {
		for (uint32_t row = 0; !is_full(text) &&
			pinion_metrics_get_field(
				watch->pages[i].metrics, row, &field, sizeof(field)) == 0;
			row++) {
			if (!name_family(&field, name) || is_written(watch, i, row, name)) {
				continue;
			}
			output_text_format(text,
				"# HELP %s %s of each %s: pinion-metrics(5).\n# TYPE %s %s\n", name,
				field.name, scope_names[field.scope], name, types[field.kind]);
			for (size_t j = i; j < watch->count; j++) {
				append_rows(text, watch, j, &field, name);
			}
		}
	}
}

/* ---- the file ---- */

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

/* At a name of its own, so that several may write at once. */
static int write_file(int folder, const struct output_text *text)
{
	char name[64];
	int fd;
	int rc;

	/* The collector reads *.prom only. */
	snprintf(name, sizeof(name), ".pinion.prom.%d", getpid());
	(void)unlinkat(folder, name, 0);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0) {
		return -errno;
	}
	rc = write_all(fd, text->bytes, text->length);
	if (close(fd) != 0 && rc == 0) {
		rc = -errno;
	}
	if (rc == 0 && renameat(folder, name, folder, "pinion.prom") != 0) {
		rc = -errno;
	}
	if (rc != 0) {
		(void)unlinkat(folder, name, 0);
	}
	return rc;
}

bool top_openmetrics_write(const struct top_watch *watch, const char *folder)
{
	struct output_text text = {0};
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : 0;

	top_openmetrics_append(&text, watch);
	if (rc == 0) {
		rc = text.failed ? -ENOMEM : write_file(fd, &text);
	}
	if (fd >= 0) {
		close(fd);
	}
	output_text_free(&text);
	if (rc != 0) {
		report_path(folder, report_reason(rc));
	}
	return rc == 0;
}
