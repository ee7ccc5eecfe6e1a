/* SPDX-License-Identifier: MIT */
/*
 * Doubles of what a runtime asks of its machine and what no interleaving
 * depends on: topology, kernel probe, memory, messages. And the fatal report,
 * which ends the execution rather than the program.
 */
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/host/kernel.h"
#include "runtime/host/topology.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/pool.h"
#include "tests/model/explorer.h"

#include <string.h>

_Noreturn void pin_check_failed(const char *file, int line, const char *expression)
{
	model_fail("%s:%d: broken invariant: %s", file, line, expression);
}

void pin_log(const struct pin_log *log, enum pinion_log_level level, const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

void pin_kernel_probe(struct pin_kernel *kernel)
{
	memset(kernel, 0, sizeof(*kernel));
}

void pin_kernel_ring_hint(int error, char *out, size_t size)
{
	(void)error;
	memset(out, 0, size);
}

int pin_topology_load(struct pin_topology *topology, bool use_smt)
{
	(void)use_smt;
	memset(topology, 0, sizeof(*topology));
	return 0;
}

void pin_topology_fini(struct pin_topology *topology)
{
	(void)topology;
}

uint32_t pin_topology_default_workers(const struct pin_topology *topology)
{
	(void)topology;
	return 1;
}

int pin_arena_init(struct pin_arena *arena, const struct pin_host *host, size_t bytes,
	uint32_t node_index, const struct pin_log *log)
{
	(void)node_index;
	(void)log;
	*arena = (struct pin_arena){.host = host, .bytes = bytes};
	return 0;
}

void pin_arena_fini(struct pin_arena *arena)
{
	(void)arena;
}

uint32_t pin_arena_page_bytes(const struct pin_arena *arena)
{
	(void)arena;
	return 0;
}

int pin_pool_init(
	struct pin_pool *pool, uint8_t *memory, uint32_t buffer_bytes, uint32_t buffer_count)
{
	*pool = (struct pin_pool){
		.memory = memory,
		.buffer_bytes = buffer_bytes,
		.buffer_count = buffer_count,
	};
	return 0;
}

void pin_pool_fini(struct pin_pool *pool)
{
	(void)pool;
}

uint8_t *pin_pool_acquire(struct pin_pool *pool, uint32_t *out_index)
{
	(void)pool;
	(void)out_index;
	return NULL;
}

void pin_pool_release(struct pin_pool *pool, const uint8_t *bytes, uint32_t index)
{
	(void)pool;
	(void)bytes;
	(void)index;
}
