/* SPDX-License-Identifier: MIT */
/*
 * The floor of `timer`: a bare binary heap of deadlines, as most event loops
 * have one. Entries know their place, so that any of them can be taken out.
 */
#ifndef PINION_TOOLS_BENCH_HEAP_H
#define PINION_TOOLS_BENCH_HEAP_H

#include <stdint.h>

struct bench_heap_entry {
	uint64_t deadline_ns;
	uint32_t place;
};

struct bench_heap {
	struct bench_heap_entry **entries; /* room for as many as are inserted */
	uint32_t count;
};

static inline void bench_heap_put(
	struct bench_heap *heap, uint32_t place, struct bench_heap_entry *entry)
{
	heap->entries[place] = entry;
	entry->place = place;
}

static inline void bench_heap_rise(
	struct bench_heap *heap, uint32_t place, struct bench_heap_entry *entry)
{
	while (place > 0) {
		uint32_t above = (place - 1) / 2;

		if (heap->entries[above]->deadline_ns <= entry->deadline_ns) {
			break;
		}
		bench_heap_put(heap, place, heap->entries[above]);
		place = above;
	}
	bench_heap_put(heap, place, entry);
}

static inline void bench_heap_sink(
	struct bench_heap *heap, uint32_t place, struct bench_heap_entry *entry)
{
	for (;;) {
		uint32_t below = 2 * place + 1;

		if (below >= heap->count) {
			break;
		}
		if (below + 1 < heap->count &&
			heap->entries[below + 1]->deadline_ns < heap->entries[below]->deadline_ns) {
			below++;
		}
		if (heap->entries[below]->deadline_ns >= entry->deadline_ns) {
			break;
		}
		bench_heap_put(heap, place, heap->entries[below]);
		place = below;
	}
	bench_heap_put(heap, place, entry);
}

static inline void bench_heap_insert(
	struct bench_heap *heap, struct bench_heap_entry *entry, uint64_t deadline_ns)
{
	entry->deadline_ns = deadline_ns;
	bench_heap_rise(heap, heap->count++, entry);
}

static inline void bench_heap_remove(struct bench_heap *heap, struct bench_heap_entry *entry)
{
	struct bench_heap_entry *last = heap->entries[--heap->count];

	if (last == entry) {
		return;
	}
	if (last->deadline_ns < entry->deadline_ns) {
		bench_heap_rise(heap, entry->place, last);
	} else {
		bench_heap_sink(heap, entry->place, last);
	}
}

#endif
