/* SPDX-License-Identifier: MIT */
/*
 * Doubles of what a runtime asks of its machine beside the host: kernel probe,
 * topology, placement, files and reads outside a ring. And the fatal report,
 * which ends the run rather than the process.
 */
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/host/kernel.h"
#include "runtime/host/placement.h"
#include "runtime/host/topology.h"
#include "runtime/io/fallback.h"
#include "runtime/io/file.h"
#include "tests/sim/device.h"
#include "tests/sim/disk.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <string.h>

_Noreturn void pin_check_failed(const char *file, int line, const char *expression)
{
	world_fail("%s:%d: broken invariant: %s", file, line, expression);
}

void pin_log(const struct pin_log *log, enum pinion_log_level level, const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

void pin_kernel_probe(struct pin_kernel *kernel)
{
	device_probe(kernel);
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

int pin_placement_prefer(void *memory, size_t bytes, uint32_t node_index)
{
	(void)memory;
	(void)bytes;
	(void)node_index;
	return 0;
}

void pin_file_leave_direct(const struct pinion_file *file)
{
	(void)file;
}

int32_t pin_fallback_execute(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READ_FIXED:
		world_busy(disk_latency_ns());
		return disk_execute(sqe);
	default:
		return -EOPNOTSUPP;
	}
}
