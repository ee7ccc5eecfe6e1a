/* SPDX-License-Identifier: MIT */
/*
 * A page as a JSON object: every row of its table by its name, so that values
 * of newer pages are there as well.
 */
#include "tools/top/show.h"

#include <string.h>

enum {
	/* Of a hostile page it would be a gigabyte; of others, 100 KiB. */
	OBJECT_BYTES_MAX = 16 * 1024 * 1024,
};

static bool is_full(const struct output_text *text, size_t begin)
{
	return text->failed || text->length - begin > OBJECT_BYTES_MAX;
}

static void append_text(struct output_text *text, const char *name, const char *value)
{
	output_text_format(text, "\"%s\":", name);
	output_text_json(text, value, strlen(value));
	output_text_string(text, ",");
}

static void append_number(struct output_text *text, const char *name, uint64_t value)
{
	output_text_format(text, "\"%s\":%llu,", name, (unsigned long long)value);
}

static void end_list(struct output_text *text, const char *end)
{
	if (!text->failed && text->length > 0 && text->bytes[text->length - 1] == ',') {
		text->length--;
	}
	output_text_string(text, end);
}

static void append_histogram(
	struct output_text *text, const struct pinion_metrics *metrics, uint32_t row, uint32_t copy)
{
	static struct pinion_histogram histogram; /* too large for a stack */

	if (pinion_metrics_read_histogram(metrics, row, copy, &histogram) != 0) {
		output_text_string(text, "null");
		return;
	}
	output_text_string(text, "{");
	append_number(text, "count", histogram.count);
	append_number(text, "sum_ns", histogram.sum_ns);
	append_number(text, "p50_ns", pinion_histogram_quantile_ns(&histogram, 500));
	append_number(text, "p99_ns", pinion_histogram_quantile_ns(&histogram, 990));
	append_number(text, "p999_ns", pinion_histogram_quantile_ns(&histogram, 999));
	end_list(text, "}");
}

static void append_value(struct output_text *text, const struct pinion_metrics *metrics,
	const struct pinion_metrics_field *field, uint32_t row, uint32_t copy)
{
	uint64_t value;

	if (field->kind == PINION_METRICS_HISTOGRAM) {
		append_histogram(text, metrics, row, copy);
	} else if (pinion_metrics_read(metrics, row, copy, &value) == 0) {
		output_text_decimal(text, value);
	} else {
		output_text_string(text, "null");
	}
}

static void append_lane(struct output_text *text, uint32_t lane)
{
	static const char *const names[] = {"high", "normal", "low"};

	if (lane < sizeof(names) / sizeof(names[0])) {
		output_text_format(text, "\"%s\":", names[lane]);
	} else {
		output_text_format(text, "\"lane_%u\":", lane);
	}
}

/*
 * All rows of a scope, of one worker or device. Rows of lanes follow each
 * other and become one object.
 */
static void append_rows(struct output_text *text, const struct top_page *page,
	enum pinion_metrics_scope scope, uint32_t copy)
{
	struct pinion_metrics_field field;
	char open[sizeof(field.name)] = "";

	for (uint32_t row = 0;
		pinion_metrics_get_field(page->metrics, row, &field, sizeof(field)) == 0; row++) {
		bool has_lane = field.lane != UINT32_MAX;

		if (field.scope != scope) {
			continue;
		}
		if (open[0] != '\0' && (!has_lane || strcmp(open, field.name) != 0)) {
			end_list(text, "},");
			open[0] = '\0';
		}
		if (open[0] == '\0') {
			output_text_json(text, field.name, strlen(field.name));
			output_text_string(text, has_lane ? ":{" : ":");
		}
		if (has_lane) {
			memcpy(open, field.name, sizeof(open));
			append_lane(text, field.lane);
		}
		append_value(text, page->metrics, &field, row, copy);
		output_text_string(text, ",");
	}
	if (open[0] != '\0') {
		end_list(text, "}");
	}
}

static void append_process(struct output_text *text, const struct top_page *page)
{
	static const char *const states[] = {
		[TOP_ALIVE] = "alive",
		[TOP_ENDED] = "ended",
		[TOP_DEAD] = "dead",
	};
	const struct pinion_metrics_info *info = &page->info;

	if (page->process.pid > 0) {
		append_number(text, "pid", (uint64_t)page->process.pid);
	} else {
		output_text_string(text, "\"pid\":null,");
	}
	append_text(text, "comm", page->process.comm);
	append_text(text, "program", info->program);
	if (page->path != NULL) {
		append_text(text, "file", page->path);
	}
	append_text(text, "state", states[page->state]);
	output_text_format(text, "\"is_stopped\":%s,",
		page->has_process && top_process_is_stopped(&page->process) ? "true" : "false");
	append_number(text, "last_life_unix_ns", page->last_life_unix_ns);
	append_number(text, "read_unix_ns", page->read_unix_ns);
	append_number(text, "read_ns", page->read_ns);
	append_number(text, "age_ns", top_page_age_ns(page));
	if (page->process.start > 0) {
		append_number(text, "cpu_ns", page->process.cpu_ns);
	} else {
		output_text_string(text, "\"cpu_ns\":null,");
	}
	if (page->has_threads) {
		append_number(text, "cpu_wait_ns", page->threads.wait_ns);
		append_number(text, "io_wq_threads", page->threads.io_wq_count);
		append_number(text, "io_wq_cpu_ns", page->threads.io_wq_cpu_ns);
	} else {
		output_text_string(
			text, "\"cpu_wait_ns\":null,\"io_wq_threads\":null,\"io_wq_cpu_ns\":null,");
	}
}

static void append_info(struct output_text *text, const struct pinion_metrics_info *info)
{
	append_number(text, "version", info->version);
	append_text(text, "library", info->library);
	append_text(text, "boot_id", info->boot_id);
	append_number(text, "page_pid", info->pid);
	append_number(text, "process_start", info->process_start);
	append_number(text, "created_ns", info->created_ns);
	append_number(text, "created_unix_ns", info->created_unix_ns);
	append_number(text, "published_ns", info->published_ns);
	append_number(text, "worker_count", info->worker_count);
	append_number(text, "torn_count", info->torn_count);
}

void top_show_json(struct output_text *text, const struct top_page *page)
{
	size_t begin = text->length;
	uint32_t devices = top_page_devices(page);

	output_text_string(text, "{");
	append_process(text, page);
	append_info(text, &page->info);
	output_text_string(text, "\"runtime\":{");
	append_rows(text, page, PINION_METRICS_RUNTIME, 0);
	end_list(text, "},\"devices\":[");
	for (uint32_t i = 0; i < devices && !is_full(text, begin); i++) {
		output_text_format(text, "{\"index\":%u,", i);
		append_rows(text, page, PINION_METRICS_DEVICE, i);
		end_list(text, "},");
	}
	end_list(text, "],\"workers\":[");
	for (uint32_t i = 0; i < page->info.slot_count && !is_full(text, begin); i++) {
		output_text_format(text, "{\"worker\":%u,", i);
		append_rows(text, page, PINION_METRICS_WORKER, i);
		end_list(text, "},");
	}
	end_list(text, "]");
	output_text_string(text, is_full(text, begin) ? ",\"is_cut\":true}\n" : "}\n");
}
