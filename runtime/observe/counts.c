/* SPDX-License-Identifier: MIT */
/*
 * The table of a worker's counts: which counter each field of struct
 * pinion_worker_stats shows, and how the derived ones are computed.
 *
 * pinion_worker_get_stats() asks for it on any thread.
 *
 * Invariant: a source of tasks is counted before the task is run, so a derived
 * rest is too small while a task runs, and never too large.
 */
#include "runtime/observe/counts.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <pinion/file.h>

/* A field, and the counter of struct pin_meter that it shows. */
struct row {
	const char *name;
	size_t shown_at;
	size_t kept_at;
	bool is_derived;
};

#define COUNT(shown, kept) \
	{ \
#shown, offsetof(struct pinion_worker_stats, shown), \
			offsetof(struct pin_meter, kept), false \
	}
#define DERIVED(shown) \
	{ \
#shown, offsetof(struct pinion_worker_stats, shown), 0, true \
	}

static const struct row rows[] = {
	COUNT(tasks_run, tasks_run),
	COUNT(tasks_failed, tasks_failed),
	COUNT(tasks_unwound, tasks_unwound),
	COUNT(tasks_cancelled, tasks_cancelled),
	COUNT(busy_ns, busy_ns),
	COUNT(tasks_spawned, tasks_spawned),
	DERIVED(spawned_local),
	COUNT(spawned_shared, spawned_shared),
	COUNT(spawned_on, spawned_on),
	COUNT(spawned_timers, spawned_timers),
	COUNT(spawns_announced, spawns_announced),
	COUNT(lifo_polls, lifo_polls),
	DERIVED(deque_polls),
	COUNT(ready_polls, ready_polls),
	COUNT(inbox_polls, inbox_polls),
	COUNT(injector_polls, injector_takes),
	COUNT(steal_polls, steal_polls),
	COUNT(high_polls, high_run),
	DERIVED(normal_polls),
	COUNT(low_polls, low_run),
	COUNT(injector_tasks, injector_tasks),
	COUNT(tasks_shared, tasks_shared),
	COUNT(tasks_laned, tasks_laned),
	COUNT(steals, steals),
	COUNT(tasks_stolen, tasks_stolen),
	COUNT(searches, searches),
	COUNT(steal_rounds, steal_rounds),
	COUNT(spin_hits, spin_hits),
	COUNT(floor_turns, floor_turns),
	COUNT(aged_turns, aged_turns),
	COUNT(assists, assists),
	COUNT(budget_ends, budget_ends),
	COUNT(ticks, ticks),
	COUNT(parks_futex, parks_futex),
	COUNT(parks_ring, parks_ring),
	COUNT(wakes_sent, wakes_sent),
	COUNT(wakes_saved, wakes_saved),
	COUNT(park_timeout_found_work, park_timeout_found_work),
	COUNT(late_wakes, late_wakes),
	COUNT(timers_processed, timers_processed),
	DERIVED(timers_cancelled),
	COUNT(requests_submitted, requests_submitted),
	COUNT(requests_completed, requests_completed),
	COUNT(requests_cancelled, requests_cancelled),
	COUNT(requests_timed_out, requests_timed_out),
	COUNT(read_bytes, read_bytes),
	COUNT(write_bytes, write_bytes),
	COUNT(ring_enters, ring_enters),
	COUNT(short_transfers, short_transfers),
	COUNT(retries_interrupted, retries_interrupted),
	COUNT(retries_again, retries_again),
	COUNT(errors_tried_alone, errors_tried_alone),
	COUNT(direct_refusals, direct_refusals),
	COUNT(cached_reads, cached_reads),
	COUNT(dontcache_reads, dontcache_reads),
	COUNT(evicted_reads, evicted_reads),
	COUNT(unregistered_reads, unregistered_reads),
	COUNT(unregistered_writes, unregistered_writes),
	COUNT(files_registered, files_registered),
	COUNT(plain_file_transfers, plain_file_transfers),
	COUNT(polled_transfers, polled_transfers),
	COUNT(polled_refusals, polled_refusals),
	COUNT(ring_commands, ring_commands),
	COUNT(files_direct, files_by_way[PINION_WAY_DIRECT]),
	COUNT(files_asked, files_by_way[PINION_WAY_ASKED]),
	COUNT(files_cached, files_by_way[PINION_WAY_CACHED]),
	COUNT(files_empty, files_by_way[PINION_WAY_EMPTY]),
	COUNT(files_unable, files_by_way[PINION_WAY_UNABLE]),
	COUNT(buffer_waits, buffer_waits),
	COUNT(workers_rebound, rebinds),
	COUNT(received_bytes, received_bytes),
	COUNT(sent_bytes, sent_bytes),
};

_Static_assert(PIN_ARRAY_COUNT(rows) == PIN_COUNTS, "a row for each field");

const char *pin_counts_name(uint32_t number)
{
	PIN_CHECK(number < PIN_COUNTS);
	PIN_DCHECK(rows[number].shown_at == number * sizeof(uint64_t));
	return rows[number].name;
}

static uint64_t *field_of(struct pinion_worker_stats *stats, const struct row *row)
{
	PIN_DCHECK(row->shown_at < sizeof(*stats));
	return (uint64_t *)(void *)((char *)stats + row->shown_at);
}

static const struct pin_atomic_u64 *counter_of(const struct pin_meter *meter, const struct row *row)
{
	PIN_DCHECK(!row->is_derived && row->kept_at < sizeof(*meter));
	return (const struct pin_atomic_u64 *)(const void *)((const char *)meter + row->kept_at);
}

/* `queued_cancelled`: tasks that were taken from a queue by a stop. */
static void derive(struct pinion_worker_stats *stats, uint64_t queued_cancelled)
{
	uint64_t taken = stats->tasks_run + queued_cancelled;

	stats->normal_polls = pin_rest_u64(taken, stats->high_polls + stats->low_polls);
	stats->deque_polls = pin_rest_u64(stats->normal_polls,
		stats->lifo_polls + stats->ready_polls + stats->inbox_polls +
			stats->injector_polls + stats->steal_polls);
	stats->timers_cancelled = pin_rest_u64(stats->tasks_cancelled, queued_cancelled);
	stats->spawned_local = pin_rest_u64(stats->tasks_spawned,
		stats->spawned_shared + stats->spawned_on + stats->spawned_timers);
}

/*
 * Ends are read before sources: a task that begins meanwhile is seen with a
 * source and without its end, like a task that runs.
 */
void pin_counts_collect(const struct pin_meter *meter, struct pinion_worker_stats *out_stats)
{
	for (uint32_t i = 0; i < PIN_COUNTS; i++) {
		if (!rows[i].is_derived) {
			*field_of(out_stats, &rows[i]) =
				pin_meter_read(counter_of(meter, &rows[i]));
		}
	}
	/* Taken over from outside. */
	out_stats->requests_submitted += pin_meter_read(&meter->requests_posted);
	derive(out_stats, pin_meter_read(&meter->queued_cancelled));
}

uint64_t pin_counts_in_flight(const struct pin_meter *meter)
{
	uint64_t completed = pin_meter_read(&meter->requests_completed);

	return pin_rest_u64(pin_meter_read(&meter->requests_submitted) +
			pin_meter_read(&meter->requests_posted),
		completed);
}
