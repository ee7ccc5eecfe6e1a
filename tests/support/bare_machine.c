/* SPDX-License-Identifier: MIT */
/*
 * Doubles of a runtime's questions to its machine, for a machine about which
 * nothing is known: it has one CPU without any setting, no nodes, and no reader
 * of messages.
 */
#include "runtime/base/log.h"
#include "runtime/host/cgroup.h"
#include "runtime/host/host.h"
#include "runtime/host/kernel.h"
#include "runtime/host/process.h"
#include "runtime/host/topology.h"

#include <errno.h>
#include <string.h>

void pin_log_write(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format, ...)
{
	(void)log;
	(void)level;
	(void)file;
	(void)format;
}

bool pin_log_is_due(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format)
{
	(void)log;
	(void)level;
	(void)file;
	(void)format;
	return false;
}

void pin_log_write_due(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format, ...)
{
	(void)log;
	(void)level;
	(void)file;
	(void)format;
}

void pin_log_send(const struct pin_log *log, enum pinion_log_level level,
	enum pinion_log_component component, const char *message)
{
	(void)log;
	(void)level;
	(void)component;
	(void)message;
}

const char *pin_log_component_name(uint32_t component)
{
	(void)component;
	return NULL;
}

void pin_log_init(struct pin_log *log)
{
	log->levels_off = PINION_LOG_LEVELS;
}

void pin_log_flush(const struct pin_log *log, bool is_end)
{
	(void)log;
	(void)is_end;
}

void pin_kernel_ring_hint(int error, char *out, size_t size)
{
	(void)error;
	memset(out, 0, size);
}

int pin_cpu_latency_ask(uint32_t latency_us)
{
	(void)latency_us;
	return -ENOENT;
}

void pin_cpu_latency_drop(int fd)
{
	(void)fd;
}

void pin_topology_begin(struct pin_topology_search *search, struct pin_topology *topology,
	const struct pin_host *host, bool use_smt)
{
	(void)search;
	(void)host;
	(void)use_smt;
	memset(topology, 0, sizeof(*topology));
}

int pin_topology_end(struct pin_topology_search *search)
{
	(void)search;
	return 0;
}

void pin_topology_fini(struct pin_topology *topology)
{
	(void)topology;
}

uint32_t pin_node_distance(
	const struct pin_node_distances *distances, uint32_t from_index, uint32_t to_index)
{
	(void)distances;
	(void)from_index;
	(void)to_index;
	return UINT32_MAX;
}

uint32_t pin_topology_default_workers(const struct pin_topology *topology)
{
	(void)topology;
	return 1;
}

/* The real list outlives an execution that is given up. */
void pin_live_add(
	struct pin_live *live, enum pin_live_kind kind, const void *object, const void *owner)
{
	(void)live;
	(void)kind;
	(void)object;
	(void)owner;
}

void pin_live_check(enum pin_live_kind kind, const void *object)
{
	(void)kind;
	(void)object;
}

void pin_live_remove(enum pin_live_kind kind, const void *object)
{
	(void)kind;
	(void)object;
}

bool pin_live_find(const void *owner, struct pin_live_found *out_found)
{
	(void)owner;
	(void)out_found;
	return false;
}

/* No thread is refused here. */
void pin_threadlimit_hint(int error, size_t stack_bytes, char *out, size_t size)
{
	(void)error;
	(void)stack_bytes;
	if (size > 0) {
		out[0] = '\0';
	}
}
