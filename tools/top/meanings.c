/* SPDX-License-Identifier: MIT */
/*
 * In the words of pinion-metrics(5) and <pinion/metrics.h>, which say more.
 */
#include "tools/top/meanings.h"

#include <string.h>

struct meaning {
	const char *name;
	const char *text;
};

static const struct meaning of_workers[] = {
	{"place", "Where the worker is: 0 runs, 1 sleeps, 2 sleeps in its ring, 3 is absent."},
	{"published_ns", "When the worker last wrote its values, on CLOCK_MONOTONIC."},
	{"tasks_run", "Tasks entered through run, and over."},
	{"tasks_failed", "Of the tasks run, those that returned a negative value."},
	{"tasks_unwound", "Tasks that ended otherwise than by returning."},
	{"tasks_cancelled", "Tasks entered through cancel."},
	{"busy_ns", "Time in tasks."},
	{"tasks_spawned", "Tasks spawned on the worker, in all ways."},
	{"spawned_local", "Tasks spawned into the worker's own queues."},
	{"spawned_shared", "Tasks spawned into the queue that all workers share."},
	{"spawned_on", "Tasks spawned for one worker."},
	{"spawned_timers", "Timers started."},
	{"spawns_announced", "Times that a spawn woke a sleeper."},
	{"lifo_polls", "Tasks taken from the slot of the last spawn."},
	{"deque_polls", "Tasks taken from the worker's own queue."},
	{"ready_polls", "Tasks taken from completions and what only this worker may run."},
	{"inbox_polls", "Tasks taken from the inbox."},
	{"injector_polls", "Tasks taken from the queue that all workers share."},
	{"steal_polls", "Tasks taken from another worker's queue."},
	{"high_polls", "Tasks taken from the queue of the high lane."},
	{"normal_polls", "Tasks of the normal lane, from all its queues."},
	{"low_polls", "Tasks taken from the queue of the low lane."},
	{"injector_tasks", "Tasks in the batches of injector_polls."},
	{"tasks_shared", "Tasks moved to the queue that all workers share."},
	{"tasks_laned", "Tasks moved to the queues of the high and low lane."},
	{"steals", "Batches taken from other workers."},
	{"tasks_stolen", "Tasks in the batches taken from other workers."},
	{"searches", "Times that the worker searched the queues of others."},
	{"steal_rounds", "Rounds in these searches."},
	{"spin_hits", "Times that the worker found work while it spun."},
	{"floor_turns", "Turns of a lane that others had passed too often."},
	{"aged_turns", "Turns of low work that had waited too long."},
	{"assists", "Tasks of lanes that the worker does not serve."},
	{"budget_ends", "Turns that ended by budget_polls or budget_us."},
	{"ticks", "Calls of on_tick."},
	{"parks_futex", "Sleeps without requests in flight."},
	{"parks_ring", "Sleeps until a request completes."},
	{"wakes_sent", "Sleepers woken by the worker."},
	{"wakes_saved", "Wakes spared, as another worker was searching."},
	{"park_timeout_found_work", "Sleeps that only the safety net ended: must stay 0."},
	{"late_wakes", "Times that the worker ran more than 10 ms after its wake."},
	{"timers_processed", "Expired timers, also of other workers."},
	{"timers_cancelled", "Timers cancelled."},
	{"requests_submitted", "Requests submitted."},
	{"requests_completed", "Requests completed."},
	{"requests_cancelled", "Of the completed requests, those with ECANCELED."},
	{"requests_timed_out", "Of the completed requests, those with ETIME."},
	{"read_bytes", "Bytes read by requests."},
	{"write_bytes", "Bytes written by requests."},
	{"ring_enters", "System calls to the ring."},
	{"short_transfers", "Parts that came with less than was asked for."},
	{"retries_interrupted", "Attempts made again after EINTR."},
	{"retries_again", "Attempts made again after EAGAIN."},
	{"errors_tried_alone", "Failed transfers tried once more, by themselves."},
	{"direct_refusals", "Transfers past the page cache that then went through it."},
	{"cached_reads", "Reads copied from the page cache."},
	{"dontcache_reads", "Reads whose pages the kernel dropped at once."},
	{"evicted_reads", "Reads whose pages the library dropped afterwards."},
	{"unregistered_reads", "Reads into memory that the kernel did not know."},
	{"unregistered_writes", "Writes from memory that the kernel did not know."},
	{"files_registered", "Files registered with the ring."},
	{"plain_file_transfers", "Transfers through a ring that had not registered the file."},
	{"polled_transfers", "Transfers whose completion was polled for."},
	{"polled_refusals", "Of the polled transfers, those refused, and done without polling."},
	{"ring_commands", "Reads of NVMe namespaces that went to a ring."},
	{"files_direct", "Files opened that are read past the page cache."},
	{"files_asked", "Files opened that are read through the page cache, as was asked."},
	{"files_cached", "Files opened of which the page cache had half or more."},
	{"files_empty", "Files opened that are empty, or seem so."},
	{"files_unable", "Files opened that cannot be read past the page cache."},
	{"buffer_waits", "Tasks that waited for one of the worker's buffers."},
	{"workers_rebound", "Times that the worker was bound to its CPUs again."},
	{"received_bytes", "Bytes received from sockets by requests."},
	{"sent_bytes", "Bytes sent to sockets by requests."},
	{"queue_depth", "Tasks in the worker's own queue and in its slot."},
	{"requests_in_flight", "Requests submitted and not completed."},
	{"look_interval", "Tasks between two checks of the shared queue."},
	{"turn_polls", "How many of budget_polls the last timed turn took."},
	{"lifo_row", "Tasks taken from the slot in a row."},
	{"clock_ns", "When the worker last read the clock between two tasks, on CLOCK_MONOTONIC."},
};

static const struct meaning of_runtimes[] = {
	{"published_ns", "When the runtime's values were last written, on CLOCK_MONOTONIC."},
	{"spawned_outside", "Tasks that threads other than workers spawned."},
	{"spawns_refused", "Spawns refused by the limit of the shared queue."},
	{"watchdog_found_work", "Times that the watchdog woke a worker for kept tasks."},
	{"cq_stalls", "Times that completions waited for longer than cq_stall_us."},
	{"cq_stall_ns", "How long completions waited so."},
	{"queue_depth", "Tasks in the own queues of all workers."},
	{"injector_depth", "Tasks in the shared queue of the normal lane."},
	{"high_depth", "Tasks in the queue of the high lane."},
	{"low_depth", "Tasks in the queue of the low lane."},
	{"searching", "Workers that search for work."},
	{"device_count", "Devices used so far; the first four are shown."},
	{"stalls", "Times that a task ran for more than stall_ms without progress."},
	{"stall_ns", "How long tasks were without progress."},
	{"device_stalls", "Times that a device completed nothing for ten times stall_ms."},
	{"starved_lanes", "Times that no task of a lane began for ten times stall_ms."},
	{"pools", "Pools of the runtime."},
	{"pool_buffers", "Buffers of these pools."},
	{"pool_exhausted",
		"Tries that found none of a pool's buffers free; a call that waits tries again."},
	{"pool_false_nulls", "Of these, those at which a buffer had been free for 10 ms."},
	{"pool_waits", "Waits for a buffer of these pools, by threads and tasks."},
	{"pool_wait_ns", "How long these waits took."},
	{"tasks_stalled", "Tasks that are stalled now."},
	{"devices_stalled", "Devices that are stalled now."},
	{"lanes_starving", "Lanes of which no task begins now."},
	{"queued", "A task's time in the own queue of its worker, or in that of its lane."},
	{"run", "A task's time in run."},
	{"request", "From the start of a read or write in the device to its completion."},
	{"ready", "From the completion of a read or write to its task."},
	{"wake", "From a wake to the first turn of the worker."},
	{"buffer_wait", "A task's wait for a buffer."},
	{"timer_lag", "From a timer's deadline to its expiry."},
	{"shared_wait", "A task's time in the shared queue of the normal lane, if it met others."},
};

static const struct meaning of_devices[] = {
	{"device", "The device's number, as makedev(3) makes it."},
	{"depth_count", "Requests that may be in the device at once."},
	{"taken_count", "Requests that are in the device."},
	{"requests", "Requests that the device has completed."},
	{"bytes", "Bytes that these requests asked for."},
	{"waited", "Requests that waited for others of the device."},
	{"throttled", "Requests that a rate held back."},
	{"throttled_ns", "How long rates held requests back."},
	{"latency_sum_ns", "Time in the device of the requests that were timed."},
	{"timed", "Requests that were timed."},
	{"slow", "Requests that took longer than the device's target."},
	{"request", "From the start of a read or write in the device to its completion."},
};

static const char *find(const struct meaning *meanings, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(meanings[i].name, name) == 0) {
			return meanings[i].text;
		}
	}
	return "A value of another version: pinion-metrics(5) of that has it.";
}

#define FIND(meanings) find(meanings, sizeof(meanings) / sizeof((meanings)[0]), field->name)

const char *top_meaning_of(const struct pinion_metrics_field *field)
{
	switch ((enum pinion_metrics_scope)field->scope) {
	case PINION_METRICS_WORKER:
		return FIND(of_workers);
	case PINION_METRICS_DEVICE:
		return FIND(of_devices);
	case PINION_METRICS_RUNTIME:
		break;
	}
	return FIND(of_runtimes);
}
