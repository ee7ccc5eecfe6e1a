/* SPDX-License-Identifier: MIT */
/*
 * Makes the memory of a trace, and ends it.
 *
 * The runtime's creator and its destroyer call it. trace.h has the parts.
 */
#include "runtime/observe/trace.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	HEADER_WORDS = sizeof(struct pin_trace_header) / sizeof(uint64_t),
};

static struct pin_trace_header *header_of(const struct pin_trace *trace)
{
	return (struct pin_trace_header *)(void *)trace->words;
}

static void write_header(const struct pin_trace *trace, uint64_t slots)
{
	struct pin_trace_header *header = header_of(trace);

	PIN_DCHECK(PIN_TRACE_RINGS_AT + trace->ring_count * pin_trace_ring_words(slots) <=
		trace->word_count);
	header->version = PIN_TRACE_VERSION;
	header->header_words = HEADER_WORDS;
	header->word_count = trace->word_count;
	header->ring_count = trace->ring_count;
	header->event_bytes = sizeof(struct pin_trace_event);
	header->slots = slots;
	header->rings_at = PIN_TRACE_RINGS_AT;
	header->ring_words = pin_trace_ring_words(slots);
	pin_page_owner_write(&header->owner, trace->host->now_ns());
	pin_store_release_u64(&header->magic, PIN_TRACE_MAGIC);
}

static void tell_unshown(const struct pin_log *log, const char *call, int error)
{
	pin_log(log, PINION_LOG_WARN,
		"no other process can read this runtime's trace: %s: %s; the program itself can",
		call, strerror(-error));
}

/* Memory that others see, or NULL. */
static struct pin_atomic_u64 *map_shared(struct pin_trace *trace, const struct pin_log *log)
{
	const char *call = "";
	int rc = pin_shared_page_create_unnamed(
		&trace->page, trace->word_count * sizeof(uint64_t), PIN_TRACE_PAGE_NAME, &call);

	if (rc == 0 && trace->host->fd_is_scarce(trace->page.fd)) {
		pin_shared_page_destroy(&trace->page);
		call = "it would take one of the last descriptors (ulimit -n)";
		rc = -EMFILE;
	}
	if (rc < 0) {
		tell_unshown(log, call, rc);
		return NULL;
	}
	return trace->page.memory;
}

static int allocate(struct pin_trace *trace, const struct pin_log *log)
{
	trace->rings = pin_heap_zeroed(
		trace->host, PIN_HEAP_ALIGN, trace->ring_count, sizeof(*trace->rings));
	if (trace->rings == NULL) {
		return -ENOMEM;
	}
	trace->words = map_shared(trace, log);
	if (trace->words == NULL) {
		trace->words = pin_heap_zeroed(
			trace->host, PIN_CACHE_LINE, trace->word_count, sizeof(*trace->words));
	}
	return trace->words == NULL ? -ENOMEM : 0;
}

static void show(struct pin_trace *trace, const struct pin_log *log)
{
	const char *call = "";
	int rc;

	PIN_DCHECK(pin_load_relaxed_u64(&header_of(trace)->magic) == PIN_TRACE_MAGIC);
	rc = pin_shared_page_show(&trace->page, NULL, &call);

	if (rc < 0) {
		tell_unshown(log, call, rc);
	}
}

int pin_trace_create(const struct pin_host *host, const struct pin_log *log, uint32_t worker_count,
	uint64_t slots, struct pin_trace **out_trace)
{
	size_t ring_words = pin_trace_ring_words(slots);
	struct pin_trace *trace = pin_heap_zeroed(host, PIN_CACHE_LINE, 1, sizeof(*trace));

	if (trace == NULL) {
		return -ENOMEM;
	}
	PIN_DCHECK(worker_count > 0 && pin_is_power_of_two(slots));
	trace->host = host;
	trace->page.fd = -1;
	trace->ring_count = worker_count + 1;
	trace->word_count = pin_trace_bytes(worker_count, slots) / sizeof(uint64_t);
	if (allocate(trace, log) < 0) {
		pin_trace_destroy(trace);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < trace->ring_count; i++) {
		pin_trace_ring_init(&trace->rings[i],
			trace->words + PIN_TRACE_RINGS_AT + i * ring_words, slots);
	}
	write_header(trace, slots);
	if (trace->page.memory != NULL) {
		show(trace, log);
	}
	*out_trace = trace;
	return 0;
}

void pin_trace_destroy(struct pin_trace *trace)
{
	const struct pin_host *host;

	if (trace == NULL) {
		return;
	}
	host = trace->host;
	if (trace->words != NULL) {
		pin_store_release_u64(&header_of(trace)->owner.state, PIN_PAGE_ENDED);
	}
	if (trace->page.memory == NULL) {
		pin_heap_release(host, trace->words, PIN_CACHE_LINE, trace->word_count,
			sizeof(*trace->words));
	}
	pin_shared_page_destroy(&trace->page);
	pin_heap_release(
		host, trace->rings, PIN_HEAP_ALIGN, trace->ring_count, sizeof(*trace->rings));
	pin_heap_release(host, trace, PIN_CACHE_LINE, 1, sizeof(*trace));
}
