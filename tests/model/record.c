/* SPDX-License-Identifier: MIT */
/*
 * A ring of the last events. Its length is part of a snapshot, its contents are
 * not: what an execution adds after a snapshot, the next one overwrites.
 */
#include "tests/model/choices.h"
#include "tests/model/execution.h"
#include "tests/model/snapshot.h"

#include <stdio.h>

enum {
	EVENTS_MAX = 4096,
	EVENTS_SHOWN = 120,
};

struct event {
	uint32_t thread;
	uint32_t number; /* choices asked for before */
	const char *site;
	const char *operation;
	const void *address;
	uint64_t value;
};

static struct event events[EVENTS_MAX];
static uint64_t event_count;

void record_exclude(void)
{
	snapshot_exclude(events, sizeof(events));
}

void record_begin(void)
{
	event_count = 0;
}

void model_event(const char *site, const char *operation, const void *address, uint64_t value)
{
	events[event_count % EVENTS_MAX] = (struct event){
		.thread = model_thread_current(),
		.number = choices_asked(),
		.site = site,
		.operation = operation,
		.address = address,
		.value = value,
	};
	event_count++;
}

void record_print(void)
{
	uint64_t first = event_count > EVENTS_SHOWN ? event_count - EVENTS_SHOWN : 0;

	for (uint64_t i = first; i < event_count; i++) {
		const struct event *event = &events[i % EVENTS_MAX];

		printf("  %6u %-10s %s: %s", event->number, execution_thread_name(event->thread),
			event->site, event->operation);
		if (event->address != NULL) {
			printf(" [%04x] %llx", (unsigned)((uintptr_t)event->address & 0xffff),
				(unsigned long long)event->value);
		}
		printf("\n");
	}
}
