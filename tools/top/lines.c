/* SPDX-License-Identifier: MIT */
/*
 * A page as lines for people: whose it is, then tables of its workers, lanes
 * and devices. A value that is not known is a dash.
 */
#include "tools/top/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A worker that has not read the clock for so long is in a long task. */
#define LONG_TASK_NS UINT64_C(100000000)

/* Of one CPU: less of it is usual. */
#define WAIT_SHARE_MIN 0.01

enum { CELL_BYTES = 40 };

struct cell {
	char text[CELL_BYTES];
};

/* ---- numbers ---- */

/* Three digits and a unit, as 12.3k; negative: a dash. */
static struct cell count_cell(double count)
{
	static const char units[] = " kMGTPE";
	struct cell cell = {"-"};
	int unit = 0;

	if (count < 0) {
		return cell;
	}
	while (count >= 999.5 && units[unit + 1] != '\0') {
		count /= 1000;
		unit++;
	}
	if (unit == 0) {
		snprintf(cell.text, sizeof(cell.text), count > 0 && count < 9.95 ? "%.1f" : "%.0f",
			count);
	} else {
		snprintf(cell.text, sizeof(cell.text), "%.*f%c",
			count < 9.995		? 2
				: count < 99.95 ? 1
						: 0,
			count, units[unit]);
	}
	return cell;
}

static struct cell value_cell(uint64_t value)
{
	struct cell cell;

	if (value > 999) {
		return count_cell(value == TOP_MISSING ? -1 : (double)value);
	}
	snprintf(cell.text, sizeof(cell.text), "%u", (unsigned int)value);
	return cell;
}

static struct cell time_cell(uint64_t time_ns)
{
	static const struct {
		double least;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {0, "ns"}};
	struct cell cell = {"-"};
	double time = (double)time_ns;
	int i = 0;

	while (time < units[i].least) {
		i++;
	}
	time /= units[i].least > 0 ? units[i].least : 1;
	snprintf(cell.text, sizeof(cell.text), time < 9.995 && time != 0 ? "%.2f%s" : "%.0f%s",
		time, units[i].unit);
	return cell;
}

static void append_age(struct output_text *text, uint64_t age_ns)
{
	unsigned long long seconds = age_ns / 1000000000u;

	if (seconds < 100) {
		output_text_format(text, "%.1f s", (double)age_ns / 1e9);
	} else if (seconds < 86400) {
		output_text_format(text, "%llu:%02llu:%02llu", seconds / 3600, seconds / 60 % 60,
			seconds % 60);
	} else {
		output_text_format(text, "%llu days %llu:%02llu", seconds / 86400,
			seconds / 3600 % 24, seconds / 60 % 60);
	}
}

/* ---- the title ---- */

/* Negative, that is not known, where either is. */
static double both(double first, double second)
{
	return first < 0 || second < 0 ? -1 : first + second;
}

static void append_name(struct output_text *text, const struct top_page *page)
{
	const char *name = page->process.comm[0] != '\0' ? page->process.comm : page->info.program;

	output_text_escaped(text, name, strlen(name), true);
	if (page->process.pid > 0) {
		output_text_format(text, " (%d)", page->process.pid);
	}
	if (page->path != NULL) {
		output_text_string(text, ", ");
		output_text_escaped(text, page->path, strlen(page->path), true);
	}
}

static void append_state(struct output_text *text, const struct top_page *page)
{
	time_t seconds = (time_t)(page->last_life_unix_ns / 1000000000u);
	struct tm when;
	char date[40] = "?";

	if (page->state == TOP_ALIVE) {
		output_text_string(
			text, top_process_is_stopped(&page->process) ? ": stopped, up " : ": up ");
		append_age(text, top_page_age_ns(page));
		return;
	}
	if (localtime_r(&seconds, &when) != NULL) {
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &when);
	}
	output_text_format(
		text, ": %s since %s, after ", page->state == TOP_DEAD ? "dead" : "ended", date);
	append_age(text, top_page_age_ns(page));
}

static void append_rates(struct output_text *text, const struct top_page *page)
{
	double bytes = both(
		top_page_rate_sum(page, TOP_READ_BYTES), top_page_rate_sum(page, TOP_WRITE_BYTES));

	if (page->cpu_share >= 0) {
		output_text_format(text, ", CPU %.0f %%", page->cpu_share * 100);
	}
	if (page->wait_share >= WAIT_SHARE_MIN) {
		output_text_format(text, ", waits for CPUs %.0f %%", page->wait_share * 100);
	}
	if (page->has_threads && page->threads.io_wq_count > 0) {
		output_text_format(text, ", io-wq: %u thread%s", page->threads.io_wq_count,
			page->threads.io_wq_count == 1 ? "" : "s");
		if (page->io_wq_share >= 0) {
			output_text_format(text, " with CPU %.0f %%", page->io_wq_share * 100);
		}
	}
	output_text_string(text, page->is_all ? "\n  since its start: " : "\n  now: ");
	output_text_format(
		text, "%s tasks/s, ", count_cell(top_page_rate_sum(page, TOP_TASKS)).text);
	output_text_format(
		text, "%s I/O/s, ", count_cell(top_page_rate_sum(page, TOP_REQUESTS)).text);
	output_text_format(text, "%sB/s\n", count_cell(bytes).text);
	if (page->info.torn_count > 0) {
		output_text_format(text,
			"  %u parts of the page are not whole: their writer waits for a CPU, or "
			"was killed\n",
			page->info.torn_count);
	}
	if (page->info.slot_count < page->info.worker_count) {
		output_text_format(text, "  %u of %u workers have a place in the page\n",
			page->info.slot_count, page->info.worker_count);
	}
}

/* ---- readings and alarms ---- */

enum {
	/* The text beside three rows of blocks. */
	SERIES_TEXT = 42,
	BLOCKS_MIN = 4,
};

static void append_blocks(
	struct output_text *text, const struct top_readings *readings, uint32_t count)
{
	static const char *const blocks[] = {
		"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
	uint32_t first = readings->count > count ? readings->count - count : 0;
	double most = 0;

	for (uint32_t i = first; i < readings->count; i++) {
		most = readings->values[i] > most ? readings->values[i] : most;
	}
	for (uint32_t i = first; i < readings->count; i++) {
		double value = readings->values[i];

		if (value < 0) {
			output_text_string(text, " ");
		} else {
			output_text_string(text, blocks[most > 0 ? (int)(value / most * 7) : 0]);
		}
	}
}

static void append_series(
	struct output_text *text, const struct top_page *page, const struct top_view *view)
{
	static const char *const titles[TOP_SERIES] = {"queue", "I/O/s", "CPU"};
	uint32_t room =
		view->columns > SERIES_TEXT ? (view->columns - SERIES_TEXT) / TOP_SERIES : 0;

	if (!view->is_screen || !view->has_blocks || page->series[0].count == 0) {
		return;
	}
	room = room < BLOCKS_MIN ? BLOCKS_MIN : room < TOP_READINGS ? room : TOP_READINGS;
	for (int i = 0; i < TOP_SERIES; i++) {
		const struct top_readings *readings = &page->series[i];
		double last = readings->values[readings->count - 1];

		output_text_format(text, "  %s ", titles[i]);
		append_blocks(text, readings, room);
		if (i == TOP_SERIES_CPU && last >= 0) {
			output_text_format(text, " %.0f %%", last * 100);
		} else {
			output_text_format(text, " %s", count_cell(last).text);
		}
	}
	output_text_string(text, "\n");
}

/* A counter that is 0 has no line. */
static void append_alarms(
	struct output_text *text, const struct top_page *page, const struct top_view *view)
{
	for (int i = 0; i < TOP_ALARMS; i++) {
		uint64_t now = page->alarms_now[i];
		uint64_t grown = page->alarms_grown[i];

		if (page->alarms[i] == 0 || page->alarms[i] == TOP_MISSING) {
			continue;
		}
		output_text_string(
			text, view->is_screen && (now > 0 || grown > 0) ? TOP_MARK_ALARM : "");
		output_text_format(text, "  %s: %s", top_page_alarm_name((enum top_alarm)i),
			value_cell(page->alarms[i]).text);
		if (now > 0) {
			output_text_format(text, ", %s of them now", value_cell(now).text);
		} else if (grown > 0) {
			/* It is over, or there is no gauge of it. */
			output_text_format(text, ", %s of them new", value_cell(grown).text);
		}
		output_text_string(text, "\n");
	}
}

/* ---- workers ---- */

static double column_value(const struct top_page *page, uint32_t worker, enum top_column column)
{
	switch (column) {
	case TOP_BY_TASKS:
		return top_page_rate(page, worker, TOP_TASKS);
	case TOP_BY_REQUESTS:
		return top_page_rate(page, worker, TOP_REQUESTS);
	case TOP_BY_BYTES:
		return both(top_page_rate(page, worker, TOP_READ_BYTES),
			top_page_rate(page, worker, TOP_WRITE_BYTES));
	case TOP_BY_BUSY:
		return top_page_rate(page, worker, TOP_BUSY_NS);
	case TOP_BY_PARKS:
		return both(top_page_rate(page, worker, TOP_PARKS_FUTEX),
			top_page_rate(page, worker, TOP_PARKS_RING));
	case TOP_BY_STEALS:
		return top_page_rate(page, worker, TOP_STEALS);
	case TOP_BY_QUEUE:
		return (double)top_page_value(page, worker, TOP_QUEUE_DEPTH);
	case TOP_BY_WORKER:
	case TOP_COLUMNS:
		break;
	}
	return -(double)worker;
}

/* All lines fit in 80 columns. */
static const struct {
	const char *title;
	int width;
} columns[TOP_COLUMNS] = {
	[TOP_BY_WORKER] = {"worker", 6},
	[TOP_BY_TASKS] = {"tasks/s", 7},
	[TOP_BY_REQUESTS] = {"I/O/s", 6},
	[TOP_BY_BYTES] = {"bytes/s", 7},
	[TOP_BY_BUSY] = {"busy %", 6},
	[TOP_BY_PARKS] = {"parks/s", 7},
	[TOP_BY_STEALS] = {"steals/s", 8},
	[TOP_BY_QUEUE] = {"queue", 5},
};

const char *top_column_title(enum top_column column)
{
	return columns[column].title;
}

struct ranked {
	double value;
	uint32_t worker;
};

static int compare_ranks(const void *left, const void *right)
{
	const struct ranked *first = left;
	const struct ranked *second = right;

	if (first->value != second->value) {
		return first->value < second->value ? 1 : -1;
	}
	return (first->worker > second->worker) - (first->worker < second->worker);
}

/* Where the worker was last, of a process that is no more. */
static const char *name_last_place(uint64_t place)
{
	static const char *const names[] = {
		"was running", "was asleep", "was in ring", "was absent"};

	return place < sizeof(names) / sizeof(names[0]) ? names[place] : "-";
}

/* True: it is in a task that is long already. */
static bool name_place(const struct top_page *page, uint32_t worker, struct cell *out_cell)
{
	uint64_t place = top_page_value(page, worker, TOP_PLACE);
	uint64_t clock = top_page_value(page, worker, TOP_CLOCK_NS);
	static const char *const names[] = {"runs", "sleeps", "in its ring", "absent"};

	if (page->state != TOP_ALIVE || place >= sizeof(names) / sizeof(names[0])) {
		snprintf(out_cell->text, sizeof(out_cell->text), "%s",
			page->state == TOP_ENDED ? "ended" : name_last_place(place));
		return false;
	}
	if (place == PINION_WORKER_RUNNING && top_process_is_stopped(&page->process)) {
		*out_cell = (struct cell){"stopped"};
		return false;
	}
	if (place == PINION_WORKER_RUNNING && clock > 0 && clock < page->read_ns &&
		page->read_ns - clock > LONG_TASK_NS) {
		snprintf(out_cell->text, sizeof(out_cell->text), "task %.24s",
			time_cell(page->read_ns - clock).text);
		return true;
	}
	snprintf(out_cell->text, sizeof(out_cell->text), "%s", names[place]);
	return false;
}

static void append_worker(
	struct output_text *text, const struct top_page *page, uint32_t worker, bool is_screen)
{
	double busy = column_value(page, worker, TOP_BY_BUSY);
	struct cell place;
	bool is_alarm = name_place(page, worker, &place);

	output_text_string(text, is_alarm && is_screen ? TOP_MARK_ALARM : "");
	output_text_format(text, "%6u  %-11s", worker, place.text);
	for (int i = TOP_BY_TASKS; i < TOP_COLUMNS; i++) {
		struct cell cell = count_cell(column_value(page, worker, (enum top_column)i));

		if (i == TOP_BY_BUSY && busy >= 0) {
			/* A row of tasks may have begun before. */
			snprintf(cell.text, sizeof(cell.text), "%.0f",
				busy / 1e7 < 100 ? busy / 1e7 : 100);
		} else if (i == TOP_BY_QUEUE) {
			cell = value_cell(top_page_value(page, worker, TOP_QUEUE_DEPTH));
		}
		output_text_format(text, " %*s", columns[i].width, cell.text);
	}
	output_text_format(
		text, " %6s\n", value_cell(top_page_value(page, worker, TOP_IN_FLIGHT)).text);
}

static void append_workers(
	struct output_text *text, const struct top_page *page, const struct top_view *view)
{
	uint32_t count = page->info.slot_count;
	struct ranked *ranks = calloc((size_t)count + 1, sizeof(*ranks));

	if (ranks == NULL) {
		text->failed = true;
		return;
	}
	output_text_string(text, view->is_screen ? TOP_MARK_TITLE : "");
	output_text_string(text, "worker  state      ");
	for (int i = TOP_BY_TASKS; i < TOP_COLUMNS; i++) {
		output_text_format(text, "%c%*s",
			view->is_screen && i == (int)view->column ? '>' : ' ', columns[i].width,
			columns[i].title);
	}
	output_text_string(text, " in I/O\n");
	for (uint32_t i = 0; i < count; i++) {
		ranks[i] = (struct ranked){column_value(page, i, view->column), i};
	}
	qsort(ranks, count, sizeof(*ranks), compare_ranks);
	for (uint32_t i = 0; i < count; i++) {
		append_worker(text, page, ranks[i].worker, view->is_screen);
	}
	free(ranks);
}

/* ---- lanes and devices ---- */

static void append_times(struct output_text *text, const struct top_page *page, const char *name,
	enum pinion_metrics_scope scope, uint32_t number)
{
	bool is_device = scope == PINION_METRICS_DEVICE;
	int row = pinion_metrics_find(page->metrics, name, scope, is_device ? UINT32_MAX : number);
	static struct pinion_histogram histogram; /* too large for a stack */

	if (row < 0 ||
		pinion_metrics_read_histogram(
			page->metrics, (uint32_t)row, is_device ? number : 0, &histogram) != 0 ||
		histogram.count == 0) {
		output_text_format(text, "  %8s %8s", "-", "-");
		return;
	}
	output_text_format(
		text, "  %8s", time_cell(pinion_histogram_quantile_ns(&histogram, 500)).text);
	output_text_format(
		text, " %8s", time_cell(pinion_histogram_quantile_ns(&histogram, 990)).text);
}

static void append_lanes(struct output_text *text, const struct top_page *page, bool is_screen)
{
	static const struct {
		const char *name;
		const char *depth;
	} lanes[] = {
		{"high", "high_depth"},
		{"normal", "injector_depth"},
		{"low", "low_depth"},
	};

	output_text_string(text, is_screen ? TOP_MARK_TITLE : "");
	output_text_format(text, "  %-8s%8s  %8s %8s  %8s %8s  %8s %8s\n", "lane", "shared",
		"run p50", "p99", "I/O p50", "p99", "after", "p99");
	for (uint32_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
		uint64_t depth = top_page_single(page, PINION_METRICS_RUNTIME, lanes[i].depth, 0);

		output_text_format(text, "  %-8s%8s", lanes[i].name, value_cell(depth).text);
		append_times(text, page, "run", PINION_METRICS_RUNTIME, i);
		append_times(text, page, "request", PINION_METRICS_RUNTIME, i);
		append_times(text, page, "ready", PINION_METRICS_RUNTIME, i);
		output_text_string(text, "\n");
	}
}

static void append_device(struct output_text *text, const struct top_page *page, uint32_t index)
{
	static const char *const names[] = {
		"requests", "bytes", "taken_count", "depth_count", "waited", "slow"};
	uint64_t device = top_page_single(page, PINION_METRICS_DEVICE, "device", index);
	char name[32];

	/* As makedev(3) puts them together. */
	snprintf(name, sizeof(name), "%llu:%llu",
		(unsigned long long)((device >> 8 & 0xfff) | (device >> 32 & ~UINT64_C(0xfff))),
		(unsigned long long)((device & 0xff) | (device >> 12 & 0xffffff00)));
	output_text_format(text, "  %-8s", device == TOP_MISSING ? "-" : name);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t value = top_page_single(page, PINION_METRICS_DEVICE, names[i], index);

		output_text_format(text, "%*s", i == 0 ? 8 : 7, value_cell(value).text);
	}
	append_times(text, page, "request", PINION_METRICS_DEVICE, index);
	output_text_string(text, "\n");
}

static void append_devices(struct output_text *text, const struct top_page *page, bool is_screen)
{
	uint32_t count = top_page_devices(page);

	if (count == 0) {
		return;
	}
	output_text_string(text, is_screen ? TOP_MARK_TITLE : "");
	output_text_format(text, "  %-8s%8s%7s%7s%7s%7s%7s  %8s %8s\n", "device", "requests",
		"bytes", "taken", "depth", "waited", "slow", "I/O p50", "p99");
	for (uint32_t i = 0; i < count; i++) {
		append_device(text, page, i);
	}
}

/* Both, or that it is missing. */
static uint64_t sum_of(uint64_t first, uint64_t second)
{
	return first == TOP_MISSING || second == TOP_MISSING ? TOP_MISSING : first + second;
}

static void append_ring(struct output_text *text, const struct top_page *page, uint32_t worker)
{
	double enters = top_page_rate(page, worker, TOP_RING_ENTERS);
	double requests = top_page_rate(page, worker, TOP_REQUESTS);
	double sleeps = top_page_rate(page, worker, TOP_PARKS_RING);
	double each = enters > 0 && requests >= 0 ? requests / enters : -1;
	const uint64_t counts[] = {
		top_page_value(page, worker, TOP_IN_FLIGHT),
		top_page_value(page, worker, TOP_SHORT),
		sum_of(top_page_value(page, worker, TOP_AGAIN),
			top_page_value(page, worker, TOP_INTERRUPTED)),
	};

	output_text_format(text, "  %-8u%8s", worker, count_cell(enters).text);
	output_text_format(text, " %9s %8s", count_cell(each).text, count_cell(sleeps).text);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		output_text_format(text, " %6s", value_cell(counts[i]).text);
	}
	output_text_string(text, "\n");
}

/* Of workers that have entered theirs. */
static void append_rings(struct output_text *text, const struct top_page *page, bool is_screen)
{
	bool has_title = false;

	for (uint32_t i = 0; i < page->info.slot_count; i++) {
		uint64_t entered = top_page_value(page, i, TOP_RING_ENTERS);

		if (entered == 0 || entered == TOP_MISSING) {
			continue;
		}
		if (!has_title) {
			output_text_string(text, is_screen ? TOP_MARK_TITLE : "");
			output_text_format(text, "  %-8s%8s %9s %8s %6s %6s %6s\n", "ring",
				"enters/s", "I/O/enter", "sleeps/s", "in I/O", "short", "again");
			has_title = true;
		}
		append_ring(text, page, i);
	}
}

/* Until a buffer was free, of those that waited for it. */
static void append_pool_waits(struct output_text *text, const struct top_page *page)
{
	uint64_t waits = top_page_single(page, PINION_METRICS_RUNTIME, "pool_waits", 0);
	uint64_t wait_ns = top_page_single(page, PINION_METRICS_RUNTIME, "pool_wait_ns", 0);

	if (waits == TOP_MISSING || wait_ns == TOP_MISSING || waits == 0) {
		return;
	}
	output_text_format(text, "  pool waits: %s", value_cell(waits).text);
	output_text_format(text, ", %s each on average\n", time_cell(wait_ns / waits).text);
}

static void append_pools(struct output_text *text, const struct top_page *page)
{
	static const char *const names[] = {
		"pools", "pool_buffers", "pool_exhausted", "pool_false_nulls"};
	uint64_t values[sizeof(names) / sizeof(names[0])];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		values[i] = top_page_single(page, PINION_METRICS_RUNTIME, names[i], 0);
	}
	if (values[0] == TOP_MISSING || (values[0] == 0 && values[2] == 0)) {
		return;
	}
	output_text_format(text, "  pools: %s", value_cell(values[0]).text);
	output_text_format(text, ", %s buffers", value_cell(values[1]).text);
	output_text_format(text, ", %s times none was free", value_cell(values[2]).text);
	output_text_format(text, ", %s of them doubtful\n", value_cell(values[3]).text);
}

void top_show_lines(
	struct output_text *text, const struct top_page *page, const struct top_view *view)
{
	if (view->is_screen) {
		output_text_string(
			text, page->state == TOP_ALIVE ? TOP_MARK_TITLE : TOP_MARK_ALARM);
	}
	append_name(text, page);
	append_state(text, page);
	append_rates(text, page);
	append_series(text, page, view);
	append_alarms(text, page, view);
	append_workers(text, page, view);
	append_lanes(text, page, view->is_screen);
	append_devices(text, page, view->is_screen);
	append_rings(text, page, view->is_screen);
	append_pools(text, page);
	append_pool_waits(text, page);
}
