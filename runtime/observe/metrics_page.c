/* SPDX-License-Identifier: MIT */
/*
 * Lays out the metrics page of a runtime, and writes it.
 *
 * The runtime's creator sets it up; workers publish from their loops, before
 * they sleep, and when they leave; the watchdog, of stalls. metrics_page.h has
 * the parts.
 *
 * Invariant: between two tasks a worker's counts agree with each other, and
 * only then are they copied; so the sums in pinion_metrics(3) hold in each
 * slot.
 */
#include "runtime/observe/metrics_page.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/observe/seqlock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- values ---- */

/* A worker's, after its counts. */
static const struct value {
	const char *name;
	const char *unit;
	enum pin_page_kind_of_value kind;
} info_values[] = {
	{"queue_depth", "", PIN_PAGE_GAUGE},
	{"requests_in_flight", "", PIN_PAGE_GAUGE},
	{"look_interval", "", PIN_PAGE_GAUGE},
	{"turn_polls", "", PIN_PAGE_GAUGE},
	{"lifo_row", "", PIN_PAGE_GAUGE},
	{"clock_ns", "ns", PIN_PAGE_GAUGE},
};

static const struct value runtime_values[] = {
	{"spawned_outside", "", PIN_PAGE_GAUGE},
	{"spawns_refused", "", PIN_PAGE_COUNTER},
	{"watchdog_found_work", "", PIN_PAGE_COUNTER},
	{"cq_stalls", "", PIN_PAGE_COUNTER},
	{"cq_stall_ns", "ns", PIN_PAGE_COUNTER},
	{"queue_depth", "", PIN_PAGE_GAUGE},
	{"injector_depth", "", PIN_PAGE_GAUGE},
	{"high_depth", "", PIN_PAGE_GAUGE},
	{"low_depth", "", PIN_PAGE_GAUGE},
	{"searching", "", PIN_PAGE_GAUGE},
	{"device_count", "", PIN_PAGE_GAUGE},
	{"stalls", "", PIN_PAGE_COUNTER},
	{"stall_ns", "ns", PIN_PAGE_COUNTER},
	{"device_stalls", "", PIN_PAGE_COUNTER},
	{"starved_lanes", "", PIN_PAGE_COUNTER},
	{"pools", "", PIN_PAGE_GAUGE},
	{"pool_buffers", "", PIN_PAGE_GAUGE},
	{"pool_exhausted", "", PIN_PAGE_COUNTER},
	{"pool_false_nulls", "", PIN_PAGE_COUNTER},
	{"pool_waits", "", PIN_PAGE_COUNTER},
	{"pool_wait_ns", "ns", PIN_PAGE_COUNTER},
	{"tasks_stalled", "", PIN_PAGE_GAUGE},
	{"devices_stalled", "", PIN_PAGE_GAUGE},
	{"lanes_starving", "", PIN_PAGE_GAUGE},
};

static const struct value device_values[] = {
	{"device", "", PIN_PAGE_GAUGE},
	{"depth_count", "", PIN_PAGE_GAUGE},
	{"taken_count", "", PIN_PAGE_GAUGE},
	{"requests", "", PIN_PAGE_COUNTER},
	{"bytes", "bytes", PIN_PAGE_COUNTER},
	{"waited", "", PIN_PAGE_COUNTER},
	{"throttled", "", PIN_PAGE_COUNTER},
	{"throttled_ns", "ns", PIN_PAGE_COUNTER},
	{"latency_sum_ns", "ns", PIN_PAGE_COUNTER},
	{"timed", "", PIN_PAGE_COUNTER},
	{"slow", "", PIN_PAGE_COUNTER},
};

static const char *const timing_names[PINION_TIMINGS] = {
	[PINION_TIMING_QUEUED] = "queued",
	[PINION_TIMING_RUN] = "run",
	[PINION_TIMING_REQUEST] = "request",
	[PINION_TIMING_READY] = "ready",
	[PINION_TIMING_WAKE] = "wake",
	[PINION_TIMING_BUFFER] = "buffer_wait",
	[PINION_TIMING_TIMER] = "timer_lag",
	[PINION_TIMING_SHARED] = "shared_wait",
};

enum {
	INFO_VALUES = PIN_ARRAY_COUNT(info_values),
	RUNTIME_VALUES = PIN_ARRAY_COUNT(runtime_values),
	DEVICE_VALUES = PIN_ARRAY_COUNT(device_values),
	/* Parts begin at a cache line. */
	LINE_WORDS = PIN_CACHE_LINE / sizeof(uint64_t),
	HEADER_WORDS = sizeof(struct pin_page_header) / sizeof(uint64_t),
	FIELD_WORDS = sizeof(struct pin_page_field) / sizeof(uint64_t),
	/* The runtime's part: sequence, time, values, devices, histograms. */
	RUNTIME_SEQUENCE = 0,
	RUNTIME_PUBLISHED = 1,
	RUNTIME_FIRST = 2,
	DEVICES_AT = RUNTIME_FIRST + RUNTIME_VALUES,
	TIMINGS_AT = DEVICES_AT + PIN_TIMED_DEVICES * DEVICE_VALUES,
	RUNTIME_WORDS = TIMINGS_AT + PIN_TIMINGS * PIN_TIMING_WORDS,
	SLOT_USED = PIN_SLOT_COUNTS + PIN_COUNTS + INFO_VALUES,
	SLOT_WORDS = (SLOT_USED + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS,
	FIELDS = PIN_COUNTS + INFO_VALUES + 2 /* place, time */ + RUNTIME_VALUES + 1 /* time */ +
		DEVICE_VALUES + PIN_TIMINGS_OF_DEVICES + 1 /* of devices */,
	FIELDS_AT = (HEADER_WORDS + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS,
	RUNTIME_AT = (FIELDS_AT + FIELDS * FIELD_WORDS + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS,
	SLOTS_AT = (RUNTIME_AT + RUNTIME_WORDS + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS,
	SLOTS_MAX = (PIN_PAGE_BYTES_MAX / sizeof(uint64_t) - SLOTS_AT) / SLOT_WORDS,
};

_Static_assert(sizeof(struct pin_shown_runtime) == RUNTIME_VALUES * 8, "a row for each");
_Static_assert(sizeof(struct pin_shown_device) == DEVICE_VALUES * 8, "a row for each");
_Static_assert(SLOTS_MAX >= 64, "the page has room for the workers of most machines");

/* ---- the table ---- */

static void write_field(struct pin_page_field *field, const char *name, const struct value *like,
	enum pin_page_scope scope, uint32_t at)
{
	*field = (struct pin_page_field){.kind = (uint16_t)like->kind,
		.scope = (uint16_t)scope,
		.lane = UINT32_MAX,
		.at = at,
		.words = 1,
		.copies = 1};
	PIN_DCHECK(strlen(name) < sizeof(field->name)); /* readers find it by its whole name */
	snprintf(field->name, sizeof(field->name), "%s", name);
	snprintf(field->unit, sizeof(field->unit), "%s", like->unit);
}

static const char *unit_of_count(const char *name)
{
	size_t length = strlen(name);

	if (length > 3 && strcmp(name + length - 3, "_ns") == 0) {
		return "ns";
	}
	return length > 6 && strcmp(name + length - 6, "_bytes") == 0 ? "bytes" : "";
}

static struct pin_page_field *write_worker_fields(struct pin_page_field *field)
{
	static const struct value place = {"place", "", PIN_PAGE_GAUGE};
	static const struct value published = {"published_ns", "ns", PIN_PAGE_GAUGE};

	write_field(field++, place.name, &place, PIN_PAGE_WORKER, PIN_SLOT_PLACE);
	write_field(field++, published.name, &published, PIN_PAGE_WORKER, PIN_SLOT_PUBLISHED);
	for (uint32_t i = 0; i < PIN_COUNTS; i++) {
		const char *name = pin_counts_name(i);
		struct value count = {name, unit_of_count(name), PIN_PAGE_COUNTER};

		write_field(field++, name, &count, PIN_PAGE_WORKER, PIN_SLOT_COUNTS + i);
	}
	for (uint32_t i = 0; i < INFO_VALUES; i++) {
		write_field(field++, info_values[i].name, &info_values[i], PIN_PAGE_WORKER,
			PIN_SLOT_COUNTS + PIN_COUNTS + i);
	}
	return field;
}

static struct pin_page_field *write_histograms(struct pin_page_field *field)
{
	static const struct value histogram = {NULL, "ns", PIN_PAGE_HISTOGRAM};

	for (uint32_t timing = 0; timing < PINION_TIMINGS; timing++) {
		uint32_t lanes = timing < PIN_TIMINGS_LANED ? PIN_LANES : 1;

		for (uint32_t lane = 0; lane < lanes; lane++) {
			uint32_t index = pin_timing_of((enum pinion_timing)timing, lane);

			write_field(field, timing_names[timing], &histogram, PIN_PAGE_RUNTIME,
				TIMINGS_AT + index * PIN_TIMING_WORDS);
			field->lane = lanes == 1 ? UINT32_MAX : lane;
			field->words = PIN_TIMING_WORDS;
			field++;
		}
	}
	write_field(field, timing_names[PINION_TIMING_REQUEST], &histogram, PIN_PAGE_DEVICE,
		TIMINGS_AT + PIN_TIMINGS_OF_DEVICES * PIN_TIMING_WORDS);
	field->words = PIN_TIMING_WORDS;
	field->copies = PIN_TIMED_DEVICES;
	field->stride = PIN_TIMING_WORDS;
	return field + 1;
}

uint32_t pin_metrics_page_field_count(void)
{
	return FIELDS;
}

void pin_metrics_page_write_fields(struct pin_page_field *fields)
{
	static const struct value published = {"published_ns", "ns", PIN_PAGE_GAUGE};
	struct pin_page_field *field = write_worker_fields(fields);

	write_field(field++, published.name, &published, PIN_PAGE_RUNTIME, RUNTIME_PUBLISHED);
	for (uint32_t i = 0; i < RUNTIME_VALUES; i++) {
		write_field(field++, runtime_values[i].name, &runtime_values[i], PIN_PAGE_RUNTIME,
			RUNTIME_FIRST + i);
	}
	for (uint32_t i = 0; i < DEVICE_VALUES; i++) {
		write_field(field, device_values[i].name, &device_values[i], PIN_PAGE_DEVICE,
			DEVICES_AT + i);
		field->copies = PIN_TIMED_DEVICES;
		field->stride = DEVICE_VALUES;
		field++;
	}
	field = write_histograms(field);
	PIN_CHECK(field == fields + FIELDS);
}

/* ---- setting up ---- */

static struct pin_page_header *header_of(const struct pin_metrics_page *metrics)
{
	return (struct pin_page_header *)(void *)metrics->words;
}

static void write_header(const struct pin_host *host, struct pin_metrics_page *metrics)
{
	struct pin_page_header *header = header_of(metrics);

	header->version = PIN_PAGE_VERSION;
	header->header_words = HEADER_WORDS;
	header->word_count = metrics->word_count;
	header->field_count = FIELDS;
	header->field_bytes = sizeof(struct pin_page_field);
	header->fields_at = FIELDS_AT;
	header->runtime_at = RUNTIME_AT;
	header->runtime_words = RUNTIME_WORDS;
	header->slots_at = SLOTS_AT;
	header->slot_words = SLOT_WORDS;
	header->slot_count = metrics->slot_count;
	header->worker_count = metrics->worker_count;
	pin_page_owner_write(&header->owner, host->now_ns());
	pin_metrics_page_write_fields(
		(struct pin_page_field *)(void *)((char *)metrics->words + FIELDS_AT * 8));
}

static void tell_unshown(const struct pin_log *log, const char *path, const char *call, int error)
{
	if (path != NULL && error == -EEXIST) {
		pin_log(log, PINION_LOG_WARN,
			"metrics_file %s is not there: something else than a metrics page has that "
			"name, and is left as it is",
			path);
	} else if (path != NULL && error == -EBUSY) {
		pin_log(log, PINION_LOG_WARN,
			"metrics_file %s is not there: that name, and with .1 to .%u after it, "
			"have pages of runtimes that live; choose another name",
			path, PIN_SHARED_PAGE_NAMES - 1u);
	} else if (path != NULL) {
		pin_log(log, PINION_LOG_WARN,
			"metrics_file %s is not there: %s: %s; choose a folder that this user may "
			"write to, with room for 256 KiB",
			path, call, strerror(-error));
	} else {
		pin_log(log, PINION_LOG_INFO,
			"no other process can read this runtime's metrics: %s: %s; "
			"PINION_METRICS_PAGE=0 asks for no such page",
			call, strerror(-error));
	}
}

/* Memory that others see, or NULL. */
static struct pin_atomic_u64 *map_shared(
	const struct pin_page_setup *setup, struct pin_metrics_page *metrics)
{
	const uint64_t magic = PIN_PAGE_MAGIC;
	char mark[PIN_SHARED_PAGE_MARK];
	const char *call = "";
	int rc;

	_Static_assert(sizeof(mark) == sizeof(magic), "a page begins with it");
	memcpy(mark, &magic, sizeof(mark));
	if (!setup->is_shared) {
		if (setup->path != NULL) {
			pin_log(setup->log, PINION_LOG_WARN,
				"metrics_file %s is not there: metrics_page is 0, which asks for "
				"none (PINION_METRICS_PAGE)",
				setup->path);
		}
		return NULL;
	}
	rc = pin_shared_page_create(
		&metrics->page, metrics->word_count * 8, setup->path, mark, &call);
	if (rc == 0 && setup->host->fd_is_scarce(metrics->page.fd)) {
		pin_shared_page_destroy(&metrics->page);
		call = "it would take one of the last descriptors (ulimit -n)";
		rc = -EMFILE;
	}
	if (rc < 0) {
		tell_unshown(setup->log, setup->path, call, rc);
		return NULL;
	}
	return metrics->page.memory;
}

/* The page is whole; from here on it is only written by workers. */
static void show(const struct pin_page_setup *setup, struct pin_metrics_page *metrics)
{
	const char *call = "";
	int rc;

	PIN_DCHECK(pin_load_relaxed_u64(&header_of(metrics)->magic) == PIN_PAGE_MAGIC);
	rc = pin_shared_page_show(&metrics->page, setup->path, &call);

	if (rc < 0) {
		tell_unshown(setup->log, setup->path, call, rc);
	} else if (metrics->page.number > 0) {
		pin_log(setup->log, PINION_LOG_INFO,
			"metrics_file %s is that of another runtime, which lives; this runtime "
			"has %s.%u",
			setup->path, setup->path, metrics->page.number);
	}
}

/* Everything but the words, which do not move any more. */
static int allocate(const struct pin_page_setup *setup, struct pin_metrics_page *metrics)
{
	metrics->timings = pin_heap_zeroed(
		setup->host, PIN_HEAP_ALIGN, setup->worker_count, sizeof(*metrics->timings));
	if (metrics->timings == NULL) {
		return -ENOMEM;
	}
	metrics->words = map_shared(setup, metrics);
	if (metrics->words == NULL) {
		metrics->words =
			pin_heap_zeroed(setup->host, PIN_HEAP_ALIGN, metrics->word_count, 8);
	}
	return metrics->words == NULL ? -ENOMEM : 0;
}

static void lay_out(struct pin_metrics_page *metrics, uint32_t worker_count)
{
	metrics->worker_count = worker_count;
	metrics->runtime_at = RUNTIME_AT;
	metrics->slots_at = SLOTS_AT;
	metrics->slot_count = pin_min_u32(worker_count, SLOTS_MAX);
	metrics->word_count =
		pin_round_up(
			(SLOTS_AT + (size_t)metrics->slot_count * SLOT_WORDS) * 8, PIN_PAGE_BYTES) /
		8;
	PIN_CHECK(metrics->word_count * 8 <= PIN_PAGE_BYTES_MAX);
	metrics->page.fd = -1;
}

static struct pin_atomic_u64 *slot_of(struct pin_metrics_page *metrics, uint32_t index)
{
	PIN_DCHECK(index < metrics->slot_count);
	return metrics->words + metrics->slots_at + (size_t)index * SLOT_WORDS;
}

int pin_metrics_page_create(
	const struct pin_page_setup *setup, struct pin_metrics_page **out_metrics)
{
	struct pin_metrics_page *metrics =
		pin_heap_zeroed(setup->host, PIN_HEAP_ALIGN, 1, sizeof(*metrics));

	if (metrics == NULL) {
		return -ENOMEM;
	}
	PIN_DCHECK(setup->worker_count > 0);
	lay_out(metrics, setup->worker_count);
	if (allocate(setup, metrics) < 0) {
		pin_metrics_page_destroy(metrics, setup->host);
		return -ENOMEM;
	}
	write_header(setup->host, metrics);
	for (uint32_t i = 0; i < metrics->slot_count; i++) {
		pin_store_relaxed_u64(&slot_of(metrics, i)[PIN_SLOT_PLACE], PINION_WORKER_ABSENT);
	}
	pin_store_release_u64(&header_of(metrics)->magic, PIN_PAGE_MAGIC);
	if (metrics->page.memory != NULL) {
		show(setup, metrics);
	}
	*out_metrics = metrics;
	return 0;
}

void pin_metrics_page_join(
	struct pin_metrics_page *metrics, uint32_t worker_index, struct pin_observed *out_observed)
{
	PIN_DCHECK(worker_index < metrics->worker_count);
	out_observed->timings = &metrics->timings[worker_index];
	out_observed->publish_ns = 0;
	if (worker_index < metrics->slot_count) {
		out_observed->slot = slot_of(metrics, worker_index);
	}
}

void pin_metrics_page_destroy(struct pin_metrics_page *metrics, const struct pin_host *host)
{
	if (metrics == NULL) {
		return;
	}
	if (metrics->words != NULL) {
		pin_store_release_u64(&header_of(metrics)->owner.state, PIN_PAGE_ENDED);
	}
	if (metrics->page.memory == NULL) {
		pin_heap_release(host, metrics->words, PIN_HEAP_ALIGN, metrics->word_count, 8);
	}
	pin_shared_page_destroy(&metrics->page);
	pin_heap_release(host, metrics->timings, PIN_HEAP_ALIGN, metrics->worker_count,
		sizeof(*metrics->timings));
	pin_heap_release(host, metrics, PIN_HEAP_ALIGN, 1, sizeof(*metrics));
}

/* ---- publishing ---- */

static void copy(struct pin_atomic_u64 *words, const uint64_t *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		pin_store_relaxed_u64(&words[i], values[i]); /* between the two of a sequence */
	}
}

void pin_metrics_page_write_slot(
	const struct pin_observed *observed, const struct pin_shown_worker *shown, uint64_t now_ns)
{
	struct pin_atomic_u64 *slot = observed->slot;
	const uint64_t gauges[] = {
		shown->info.queue_depth,
		shown->info.requests_in_flight,
		shown->info.look_interval,
		shown->info.turn_polls,
		shown->info.lifo_row,
		shown->clock_ns,
	};

	_Static_assert(PIN_ARRAY_COUNT(gauges) == INFO_VALUES, "a row for each");
	if (slot == NULL) {
		return;
	}
	pin_seqlock_begin(&slot[PIN_SLOT_SEQUENCE]);
	pin_store_relaxed_u64(&slot[PIN_SLOT_PUBLISHED], now_ns);
	copy(&slot[PIN_SLOT_COUNTS], (const uint64_t *)(const void *)&shown->stats, PIN_COUNTS);
	copy(&slot[PIN_SLOT_COUNTS + PIN_COUNTS], gauges, INFO_VALUES);
	pin_seqlock_end(&slot[PIN_SLOT_SEQUENCE]);
}

void pin_metrics_page_write_runtime(struct pin_metrics_page *metrics,
	const struct pin_shown_runtime *runtime, const struct pin_shown_device *devices,
	struct pin_timings *gathered, uint64_t now_ns)
{
	struct pin_atomic_u64 *part = metrics->words + metrics->runtime_at;
	uint64_t device_count = runtime->device_count;

	pin_seqlock_begin(&part[RUNTIME_SEQUENCE]);
	pin_store_relaxed_u64(&part[RUNTIME_PUBLISHED], now_ns);
	copy(&part[RUNTIME_FIRST], (const uint64_t *)(const void *)runtime, RUNTIME_VALUES);
	for (uint32_t i = 0; i < device_count && i < PIN_TIMED_DEVICES; i++) {
		copy(&part[DEVICES_AT + i * DEVICE_VALUES],
			(const uint64_t *)(const void *)&devices[i], DEVICE_VALUES);
	}
	if (gathered != NULL) {
		pin_timings_move(gathered, &part[TIMINGS_AT]);
	}
	pin_seqlock_end(&part[RUNTIME_SEQUENCE]);
}

/* ---- reading ---- */

bool pin_metrics_page_read_histogram(const struct pin_metrics_page *metrics, uint32_t index,
	struct pinion_histogram *out_histogram)
{
	size_t at = metrics->runtime_at;

	_Static_assert(sizeof(*out_histogram) == PIN_TIMING_WORDS * sizeof(uint64_t), "its words");
	PIN_CHECK(index < PIN_TIMINGS);
	return pin_seqlock_try_read(pin_seqlock_fetch, metrics->words, at + RUNTIME_SEQUENCE,
		       at + TIMINGS_AT + (size_t)index * PIN_TIMING_WORDS, PIN_TIMING_WORDS,
		       (uint64_t *)(void *)out_histogram) == PIN_SEQLOCK_READ;
}
