/* SPDX-License-Identifier: MIT */
/*
 * Doubles of what a runtime asks of its machine and what no interleaving
 * depends on: kernel probe, memory. And the fatal report, which ends the
 * execution rather than the program.
 */
#include "runtime/base/check.h"
#include "runtime/host/kernel.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/pool.h"
#include "runtime/worker/arena_growth.h"
#include "runtime/worker/worker.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <string.h>

_Noreturn void pin_check_failed(const char *file, int line, const char *expression)
{
	model_fail("%s:%d: broken invariant: %s", file, line, expression);
}

_Noreturn void pin_check_misused(const struct pin_log *log, const char *format, ...)
{
	(void)log;
	model_fail("misuse: %s", format);
}

void pin_kernel_probe(struct pin_kernel *kernel)
{
	memset(kernel, 0, sizeof(*kernel));
	/* Of its rings the double asks nothing more. */
	kernel->ring_features = IORING_FEAT_NODROP;
	kernel->features = PINION_IO_EXT_ARG | PINION_IO_OPENAT |
		(model_registers_files ? PINION_IO_REGISTERED_FILES : 0) |
		(model_takes_commands ? PINION_IO_NVME_COMMANDS : 0);
}

static bool shares_arenas_now;
static uint32_t failing_worker = UINT32_MAX;

/* What the real ones write as plain memory, here so that it is watched. */
static struct pin_atomic_u32 has_arena[MODEL_THREADS_MAX];
static struct pin_atomic_u32 is_registered;
static struct pin_atomic_u32 has_joined[MODEL_THREADS_MAX];

void model_arenas_begin(bool shares_arenas, uint32_t failure)
{
	shares_arenas_now = shares_arenas;
	failing_worker = failure;
	pin_store_relaxed_u32(&is_registered, 0);
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		pin_store_relaxed_u32(&has_arena[i], 0);
		pin_store_relaxed_u32(&has_joined[i], 0);
	}
}

int pin_arena_init(struct pin_arena *arena, const struct pin_host *host,
	const struct pin_arena_options *options, const struct pin_log *log)
{
	(void)log;
	*arena = (struct pin_arena){.host = host, .bytes = options->bytes};
	if (options->worker_index == failing_worker) {
		return -ENOMEM;
	}
	if (shares_arenas_now) {
		pin_store_relaxed_u32(&has_arena[options->worker_index], 1);
	}
	return 0;
}

void pin_arena_fini(struct pin_arena *arena)
{
	(void)arena;
}

uint8_t *pin_arena_carve(struct pin_arena *arena, size_t bytes, size_t align)
{
	static uint8_t piece;

	(void)arena;
	(void)bytes;
	(void)align;
	return &piece;
}

uint32_t pin_arena_page_bytes(const struct pin_arena *arena)
{
	(void)arena;
	return 0;
}

size_t pin_arena_setup_arena_bytes(const struct pinion_config *config)
{
	return config->buffer_bytes;
}

int pin_arena_setup_fit(struct pin_shared *shared)
{
	(void)shared;
	return 0;
}

bool pin_arena_setup_is_shared(const struct pin_shared *shared)
{
	(void)shared;
	return shares_arenas_now;
}

void pin_arena_setup_register(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		MODEL_CHECK(pin_load_relaxed_u32(&has_arena[i]) == 1);
	}
	shared->has_source = true;
	pin_store_relaxed_u32(&is_registered, 1);
}

void pin_arena_setup_register_polled(struct pin_worker *worker)
{
	(void)worker;
}

void pin_arena_setup_join(struct pin_worker *worker)
{
	/* Another worker has failed: each has its own arena at most. */
	if (!worker->shared->has_source) {
		return;
	}
	MODEL_CHECK(pin_load_relaxed_u32(&is_registered) == 1);
	pin_store_relaxed_u32(&has_joined[worker->index], 1);
}

void pin_arena_setup_register_own(struct pin_worker *worker)
{
	(void)worker;
}

void pin_arena_setup_close(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count && shared->has_source; i++) {
		MODEL_CHECK(pin_load_relaxed_u32(&has_joined[i]) == 1);
	}
	shared->has_source = false;
}

void pin_arena_setup_report(const struct pin_shared *shared)
{
	(void)shared;
}

void pin_arena_setup_fini(struct pin_shared *shared)
{
	(void)shared;
}

/* Doubles of arena_growth.c: no buffer is ever acquired. */

uint32_t pin_arena_growth_slots(const struct pin_shared *shared)
{
	(void)shared;
	return 0;
}

void pin_arena_setup_tell_unregistered(const struct pin_shared *shared, int error)
{
	(void)shared;
	(void)error;
}

void pin_arena_growth_start(struct pin_worker *worker)
{
	(void)worker;
}

int pin_arena_grow(struct pin_worker *worker, enum pin_grown_kind kind)
{
	(void)worker;
	(void)kind;
	return -EAGAIN;
}

void pin_arena_growth_tell(struct pin_worker *worker, struct pin_ring *ring)
{
	(void)worker;
	(void)ring;
}

void pin_arena_growth_look(struct pin_worker *worker)
{
	MODEL_CHECK(worker->growth.look_ns != PIN_NO_DEADLINE);
}

uint64_t pin_arena_growth_due_ns(const struct pin_worker *worker)
{
	return worker->growth.look_ns;
}

void pin_arena_growth_end(struct pin_worker *worker)
{
	(void)worker;
}
