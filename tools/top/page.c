/* SPDX-License-Identifier: MIT */
#include "tools/top/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const value_names[TOP_VALUES] = {
	[TOP_TASKS] = "tasks_run",
	[TOP_REQUESTS] = "requests_completed",
	[TOP_READ_BYTES] = "read_bytes",
	[TOP_WRITE_BYTES] = "write_bytes",
	[TOP_BUSY_NS] = "busy_ns",
	[TOP_PARKS_FUTEX] = "parks_futex",
	[TOP_PARKS_RING] = "parks_ring",
	[TOP_STEALS] = "steals",
	[TOP_RING_ENTERS] = "ring_enters",
	[TOP_SHORT] = "short_transfers",
	[TOP_AGAIN] = "retries_again",
	[TOP_INTERRUPTED] = "retries_interrupted",
	[TOP_PLACE] = "place",
	[TOP_QUEUE_DEPTH] = "queue_depth",
	[TOP_IN_FLIGHT] = "requests_in_flight",
	[TOP_CLOCK_NS] = "clock_ns",
};

static const char *const alarm_names[TOP_ALARMS] = {
	[TOP_ALARM_STALLS] = "stalls",
	[TOP_ALARM_STARVED_LANES] = "starved_lanes",
	[TOP_ALARM_DEVICE_STALLS] = "device_stalls",
};

/* The same at this moment; older pages have none. */
static const char *const alarm_gauges[TOP_ALARMS] = {
	[TOP_ALARM_STALLS] = "tasks_stalled",
	[TOP_ALARM_STARVED_LANES] = "lanes_starving",
	[TOP_ALARM_DEVICE_STALLS] = "devices_stalled",
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

bool top_page_init(struct top_page *page, struct pinion_metrics *metrics, const char *path, int pid)
{
	size_t values;

	*page = (struct top_page){.metrics = metrics, .path = path, .process = {.pid = pid}};
	pinion_metrics_get_info(metrics, &page->info, sizeof(page->info));
	values = (size_t)page->info.slot_count * TOP_VALUES + 1;
	page->values = calloc(values, sizeof(*page->values));
	page->before = calloc(values, sizeof(*page->before));
	if (page->values == NULL || page->before == NULL) {
		free(page->values);
		free(page->before);
		return false;
	}
	for (int i = 0; i < TOP_VALUES; i++) {
		page->rows[i] = pinion_metrics_find(
			metrics, value_names[i], PINION_METRICS_WORKER, UINT32_MAX);
	}
	for (int i = 0; i < TOP_ALARMS; i++) {
		page->alarms[i] = TOP_MISSING;
	}
	page->read_ns = page->info.created_ns;
	page->last_pid = pid > 0 ? (uint64_t)pid : page->info.pid;
	return true;
}

void top_page_fini(struct top_page *page)
{
	pinion_metrics_close(page->metrics);
	free(page->values);
	free(page->before);
}

/* ---- the process ---- */

static bool is_alive(struct top_page *page)
{
	const struct pinion_metrics_info *info = &page->info;
	struct top_process process;
	int pid = page->process.pid;

	if (page->path != NULL) {
		if (!top_boot_is(info->boot_id)) {
			page->process.pid = 0;
			return false;
		}
		pid = pid > 0 ? pid
			      : top_process_find(info->pid, info->process_start, page->metrics);
	}
	if (pid > 0 && top_process_read(pid, &process) &&
		(info->process_start == 0 || process.start == info->process_start)) {
		page->process = process;
		page->last_pid = (uint64_t)pid;
		return true;
	}
	page->process.pid = page->path != NULL ? 0 : pid;
	return false;
}

/*
 * Whether its process has lost a page that has not ended: by exec(2), which
 * keeps number and start.
 */
static bool is_lost_by_exec(struct top_page *page)
{
	if (page->info.has_ended || pinion_metrics_is_open(page->metrics, page->process.pid) != 0) {
		return false;
	}
	/* Perhaps it has ended since: it says so before it is closed. */
	pinion_metrics_snapshot(page->metrics);
	pinion_metrics_get_info(page->metrics, &page->info, sizeof(page->info));
	if (page->info.has_ended) {
		return false;
	}
	page->process.pid = page->path != NULL ? 0 : page->process.pid;
	return true;
}

static void note_state(struct top_page *page)
{
	const struct pinion_metrics_info *info = &page->info;
	uint64_t written_ns = info->created_unix_ns + grown(info->published_ns, info->created_ns);

	if (written_ns > page->last_life_unix_ns) {
		page->last_life_unix_ns = written_ns;
	}
	page->has_process = is_alive(page) && !is_lost_by_exec(page);
	page->state = TOP_DEAD;
	if (page->has_process) {
		page->state = info->has_ended ? TOP_ENDED : TOP_ALIVE;
	} else if (info->has_ended) {
		page->state = TOP_ENDED;
	}
	if (page->state == TOP_ALIVE) {
		page->alive_ns = page->read_ns;
		page->last_life_unix_ns = page->read_unix_ns;
		page->gone_ns = 0;
	} else if (page->gone_ns == 0) {
		page->gone_ns = now_ns(CLOCK_MONOTONIC);
	}
}

/* Threads that have ended since are no part of the sums any more. */
static void note_threads(struct top_page *page, uint64_t passed_ns)
{
	struct top_threads before = page->threads;
	bool is_grown = page->reads == 0 || page->has_threads;

	page->has_threads = top_process_read_threads(page->process.pid, &page->threads);
	if (page->has_threads && is_grown && passed_ns > 0) {
		page->wait_share =
			(double)grown(page->threads.wait_ns, before.wait_ns) / (double)passed_ns;
		page->io_wq_share = (double)grown(page->threads.io_wq_cpu_ns, before.io_wq_cpu_ns) /
			(double)passed_ns;
	}
}

/* Over the time since the snapshot before; first, since it was started. */
static void note_cpu(struct top_page *page)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t passed;

	page->cpu_share = -1;
	page->wait_share = -1;
	page->io_wq_share = -1;
	if (!page->has_process) {
		page->has_threads = false;
		return;
	}
	if (page->reads == 0 && hz > 0) {
		page->cpu_read_ns = page->process.start * (UINT64_C(1000000000) / (uint64_t)hz);
	}
	passed = grown(now, page->cpu_read_ns);
	if (passed > 0) {
		page->cpu_share =
			(double)grown(page->process.cpu_ns, page->cpu_before_ns) / (double)passed;
	}
	note_threads(page, passed);
	page->cpu_before_ns = page->process.cpu_ns;
	page->cpu_read_ns = now;
}

/* ---- the snapshot ---- */

static void take_values(struct top_page *page)
{
	uint64_t *older = page->before;

	page->before = page->values;
	page->values = older;
	for (uint32_t worker = 0; worker < page->info.slot_count; worker++) {
		for (int i = 0; i < TOP_VALUES; i++) {
			uint64_t *value = &page->values[(size_t)worker * TOP_VALUES + (size_t)i];

			if (page->rows[i] < 0 ||
				pinion_metrics_read(page->metrics, (uint32_t)page->rows[i], worker,
					value) != 0) {
				*value = TOP_MISSING;
			}
		}
	}
}

/* ---- readings and alarms ---- */

static void add_reading(struct top_readings *readings, double value)
{
	if (readings->count == TOP_READINGS) {
		memmove(readings->values, readings->values + 1,
			(TOP_READINGS - 1) * sizeof(readings->values[0]));
		readings->count--;
	}
	readings->values[readings->count++] = value;
}

static double queued_tasks(const struct top_page *page)
{
	static const char *const shared[] = {"high_depth", "injector_depth", "low_depth"};
	double sum = 0;

	for (uint32_t i = 0; i < page->info.slot_count; i++) {
		uint64_t depth = top_page_value(page, i, TOP_QUEUE_DEPTH);

		sum += depth == TOP_MISSING ? 0 : (double)depth;
	}
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		uint64_t depth = top_page_single(page, PINION_METRICS_RUNTIME, shared[i], 0);

		sum += depth == TOP_MISSING ? 0 : (double)depth;
	}
	return sum;
}

static void note_series(struct top_page *page)
{
	add_reading(&page->series[TOP_SERIES_QUEUE], queued_tasks(page));
	add_reading(&page->series[TOP_SERIES_REQUESTS], top_page_rate_sum(page, TOP_REQUESTS));
	add_reading(&page->series[TOP_SERIES_CPU], page->cpu_share);
}

/* The sum of a counter, of the runtime and of all workers. */
static uint64_t alarm_value(const struct top_page *page, const char *name)
{
	uint64_t sum = TOP_MISSING;

	for (int scope = PINION_METRICS_RUNTIME; scope <= PINION_METRICS_WORKER; scope++) {
		int row = pinion_metrics_find(
			page->metrics, name, (enum pinion_metrics_scope)scope, UINT32_MAX);
		uint64_t value;

		for (uint32_t copy = 0; row >= 0 &&
			pinion_metrics_read(page->metrics, (uint32_t)row, copy, &value) == 0;
			copy++) {
			sum = sum == TOP_MISSING ? value : sum + value;
		}
	}
	return sum;
}

static void note_alarms(struct top_page *page)
{
	for (int i = 0; i < TOP_ALARMS; i++) {
		uint64_t before = page->alarms[i];
		uint64_t gauge = top_page_single(page, PINION_METRICS_RUNTIME, alarm_gauges[i], 0);

		page->alarms_now[i] = page->state != TOP_ALIVE || gauge == TOP_MISSING ? 0 : gauge;
		page->alarms[i] = alarm_value(page, alarm_names[i]);
		/* By nothing since TOP_MISSING, which is the largest number. */
		page->alarms_grown[i] = grown(page->alarms[i], before);
	}
}

const char *top_page_alarm_name(enum top_alarm alarm)
{
	return alarm_names[alarm];
}

/* Once it has ended, rates are those of its whole life. */
static void look_back(struct top_page *page)
{
	memset(page->before, 0, (size_t)page->info.slot_count * TOP_VALUES * sizeof(*page->before));
	page->before_ns = page->info.created_ns;
	page->read_ns = page->info.published_ns;
	if (page->state == TOP_DEAD) {
		/* It may have been seen alive after its last write. */
		page->read_ns = page->alive_ns > page->read_ns ? page->alive_ns : page->read_ns;
	}
	page->is_all = true;
}

bool top_page_read(struct top_page *page)
{
	int rc = pinion_metrics_snapshot(page->metrics);

	/* -EAGAIN: all but the parts that torn_count counts is whole. */
	if (rc < 0 && rc != -EAGAIN) {
		page->is_lost = true;
		return false;
	}
	pinion_metrics_get_info(page->metrics, &page->info, sizeof(page->info));
	take_values(page);
	page->before_ns = page->read_ns;
	page->read_ns = now_ns(CLOCK_MONOTONIC);
	page->read_unix_ns = now_ns(CLOCK_REALTIME);
	note_state(page);
	note_cpu(page);
	page->is_all = page->reads == 0;
	note_alarms(page);
	if (page->state == TOP_ALIVE) {
		note_series(page);
	} else {
		look_back(page);
	}
	page->reads++;
	return true;
}

/* ---- values ---- */

uint64_t top_page_value(const struct top_page *page, uint32_t worker, enum top_value value)
{
	return page->values[(size_t)worker * TOP_VALUES + value];
}

double top_page_rate(const struct top_page *page, uint32_t worker, enum top_value value)
{
	uint64_t now = top_page_value(page, worker, value);
	uint64_t before = page->before[(size_t)worker * TOP_VALUES + value];

	if (now == TOP_MISSING || page->read_ns <= page->before_ns) {
		return -1;
	}
	return (double)grown(now, before) * 1e9 / (double)(page->read_ns - page->before_ns);
}

double top_page_rate_sum(const struct top_page *page, enum top_value value)
{
	double sum = 0;

	for (uint32_t i = 0; i < page->info.slot_count; i++) {
		double rate = top_page_rate(page, i, value);

		if (rate < 0) {
			return -1;
		}
		sum += rate;
	}
	return sum;
}

uint64_t top_page_single(const struct top_page *page, enum pinion_metrics_scope scope,
	const char *name, uint32_t copy)
{
	int row = pinion_metrics_find(page->metrics, name, scope, UINT32_MAX);
	uint64_t value;

	if (row < 0 || pinion_metrics_read(page->metrics, (uint32_t)row, copy, &value) != 0) {
		return TOP_MISSING;
	}
	return value;
}

uint32_t top_page_devices(const struct top_page *page)
{
	int row = pinion_metrics_find(page->metrics, "requests", PINION_METRICS_DEVICE, UINT32_MAX);
	uint64_t count = top_page_single(page, PINION_METRICS_RUNTIME, "device_count", 0);
	struct pinion_metrics_field field;

	if (row < 0 || count == TOP_MISSING ||
		pinion_metrics_get_field(page->metrics, (uint32_t)row, &field, sizeof(field)) !=
			0) {
		return 0;
	}
	count = count < field.copies ? count : field.copies;
	return (uint32_t)(count < TOP_DEVICES_MAX ? count : TOP_DEVICES_MAX);
}

uint64_t top_page_age_ns(const struct top_page *page)
{
	if (page->state == TOP_DEAD) {
		return grown(page->last_life_unix_ns, page->info.created_unix_ns);
	}
	return grown(page->read_ns, page->info.created_ns);
}
