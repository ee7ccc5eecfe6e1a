/* SPDX-License-Identifier: MIT */
/*
 * The resources that this machine and this kernel offer the process: CPUs it
 * may use, NUMA nodes, limits, and which parts of io_uring work. Found by
 * asking, never by comparing version numbers.
 */
#ifndef PINION_MACHINE_H
#define PINION_MACHINE_H

#include <pinion/policy.h>
#include <pinion/version.h>
#include <stddef.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/* Shape: size-versioned; pass sizeof. Flags are 0 or 1. */
struct pinion_machine {
	/* CPUs. */
	uint32_t cpu_count;	  /* logical CPUs this process may use */
	uint32_t core_count;	  /* physical cores among them */
	uint32_t node_count;	  /* NUMA nodes with at least one of them */
	uint32_t quota_millicpus; /* cgroup CPU quota, 0: none; 1500 = one and a half */
	uint32_t default_worker_count;
	/* Memory. */
	uint32_t has_transparent_huge; /* madvise or always */
	uint32_t huge_pages_free;      /* of 2 MiB, set aside by the administrator */
	uint32_t default_arena_mib;    /* of each worker, as far as buffers need it */
	uint64_t memlock_limit_bytes;  /* UINT64_MAX: none, or the process may exceed it */
	uint64_t nofile_limit;
	/* io_uring. */
	int32_t ring_error;	/* 0, or why no ring can be had, negative errno */
	uint32_t ring_features; /* IORING_FEAT_* */
	/*
	 * Bits of enum pinion_io_feature: what works here, io_uring's and that
	 * of files; the latter on the file system of the running program.
	 */
	uint32_t io_features;
	char kernel_release[64];
	/*
	 * One line: the fault of io_uring here and the command that repairs it.
	 */
	char ring_hint[192];
	/*
	 * The highest level of this kernel, one of enum pinion_io_level:
	 * PINION_IO_RING is the top, PINION_IO_FALLBACK: no rings.
	 */
	uint32_t io_level;
};

/*
 * Examines the machine. Takes a few milliseconds.
 *
 * Context: any thread; blocks, allocates and frees.
 * Errors: -ENOMEM; -EIO when the CPUs cannot be found out.
 * Since: 0.1
 */
PINION_API int pinion_machine_probe(struct pinion_machine *out_machine, size_t size);

/*
 * The word for a feature, as PINION_IO_WITHOUT has it; NULL for what is not one
 * bit of enum pinion_io_feature. The bits have no gap: a loop from 1 on that
 * doubles until NULL sees all that this library knows.
 *
 * Context: any thread; pure.
 * Since: 0.1
 */
PINION_API const char *pinion_machine_feature_name(uint32_t feature);

PINION_END_DECLS

#endif
