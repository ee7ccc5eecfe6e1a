/* SPDX-License-Identifier: MIT */
/*
 * Binding workers, and binding them again.
 */
#include "runtime/worker/worker.h"

#include <stdio.h>
#include <string.h>

enum {
	PLACE_BYTES = 32,
};

/* Rare beside a system call, soon beside what a wrong CPU costs. */
#define LOOK_NS (UINT64_C(100) * 1000 * 1000)
/* Of one worker: who widens it again and again fills no log. */
#define TELL_NS (UINT64_C(60) * 1000 * 1000 * 1000)

static uint32_t cpus_of(const struct pin_worker *worker, const uint32_t **out_cpus)
{
	const struct pin_shared *shared = worker->shared;
	const struct pin_cpu_place *place = &worker->place;

	if (shared->config.bind_workers == PINION_BIND_NODE) {
		*out_cpus = &shared->cpu_indices[place->node_cpus.first];
		return pin_range_count(place->node_cpus);
	}
	*out_cpus = &place->cpu_index;
	return 1;
}

void pin_binding_start(struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;
	const uint32_t *cpus;
	uint32_t count;

	if (!worker->has_place || shared->config.bind_workers == PINION_BIND_NONE) {
		return;
	}
	count = cpus_of(worker, &cpus);
	if (shared->host->thread_bind(cpus, count) == 0) {
		pin_store_relaxed_u32(&worker->is_bound, 1);
		worker->binding.look_ns = shared->host->now_ns() + LOOK_NS;
	}
}

void pin_binding_reset(struct pin_worker *worker)
{
	pin_store_relaxed_u32(&worker->is_bound, 0);
	worker->binding = (struct pin_binding){.look_ns = PIN_NO_DEADLINE};
}

/* At most once in TELL_NS. */
static bool may_tell(struct pin_worker *worker)
{
	if (worker->binding.has_told && worker->now_ns - worker->binding.told_ns < TELL_NS) {
		return false;
	}
	worker->binding.has_told = true;
	worker->binding.told_ns = worker->now_ns;
	return true;
}

/* "CPU 3", or "the CPUs of node 1". */
static void name_place(const struct pin_worker *worker, char *out, size_t size)
{
	const struct pin_cpu_place *place = &worker->place;

	if (worker->shared->config.bind_workers == PINION_BIND_NODE) {
		snprintf(out, size, "the CPUs of node %u", place->node_index);
	} else {
		snprintf(out, size, "CPU %u", place->cpu_index);
	}
}

static void note_loss(struct pin_worker *worker, int error)
{
	char place[PLACE_BYTES];

	if (pin_load_relaxed_u32(&worker->is_bound) == 0) {
		return;
	}
	pin_store_relaxed_u32(&worker->is_bound, 0);
	worker->binding.loss_is_told = may_tell(worker);
	if (worker->binding.loss_is_told) {
		name_place(worker, place, sizeof(place));
		pin_log(&worker->shared->log, PINION_LOG_WARN,
			"worker %u cannot be bound to %s again: %s; is that offline, or not in the "
			"cpuset? It runs where the kernel lets it, and tries again",
			worker->index, place, strerror(-error));
	}
}

static void note_return(struct pin_worker *worker, bool is_rebound)
{
	char place[PLACE_BYTES];
	bool was_lost = pin_load_relaxed_u32(&worker->is_bound) == 0;

	if (is_rebound) {
		pin_meter_add(&worker->meter.rebinds, 1);
	}
	pin_store_relaxed_u32(&worker->is_bound, 1);
	if (was_lost ? worker->binding.loss_is_told : is_rebound && may_tell(worker)) {
		name_place(worker, place, sizeof(place));
		pin_log(&worker->shared->log, PINION_LOG_WARN,
			"worker %u is bound to %s again: it was allowed on others, since that was "
			"offline or a program set its affinity; bind_workers=none leaves affinity "
			"to others",
			worker->index, place);
	}
}

void pin_binding_look(struct pin_worker *worker)
{
	const uint32_t *cpus;
	uint32_t count = cpus_of(worker, &cpus);
	int rc = worker->shared->host->thread_rebind(cpus, count);

	worker->binding.look_ns = worker->now_ns + LOOK_NS;
	if (rc < 0) {
		note_loss(worker, rc);
	} else {
		note_return(worker, rc > 0);
	}
}
