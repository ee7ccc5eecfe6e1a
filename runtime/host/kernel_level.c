/* SPDX-License-Identifier: MIT */
/*
 * The ladder as tables: features and where the probe notes them, levels and
 * what they do without.
 */
#include "runtime/host/kernel.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <pinion/policy.h>

/* Without these, requests would be lost, waits endless, files not opened. */
#define FLOOR_FEATURES (IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG)

static const struct {
	uint32_t feature;
	bool is_of_rings;
	size_t offset; /* of its flag */
} flags[] = {
	{PINION_IO_OPENAT, true, offsetof(struct pin_kernel, has_op_openat)},
	{PINION_IO_REGISTERED_BUFFERS, true, offsetof(struct pin_kernel, has_registered_buffers)},
	{PINION_IO_REGISTERED_FILES, true, offsetof(struct pin_kernel, has_registered_files)},
	{PINION_IO_REGISTERED_RING, true, offsetof(struct pin_kernel, has_registered_ring)},
	{PINION_IO_COOP_TASKRUN, true, offsetof(struct pin_kernel, has_coop_taskrun)},
	{PINION_IO_SINGLE_ISSUER, true, offsetof(struct pin_kernel, has_single_issuer)},
	{PINION_IO_DEFER_TASKRUN, true, offsetof(struct pin_kernel, has_defer_taskrun)},
	{PINION_IO_NVME_COMMANDS, true, offsetof(struct pin_kernel, has_commands)},
	{PINION_IO_STATX_DIOALIGN, false, offsetof(struct pin_kernel, has_statx_dioalign)},
	{PINION_IO_CACHESTAT, false, offsetof(struct pin_kernel, has_cachestat)},
	{PINION_IO_DONTCACHE, false, offsetof(struct pin_kernel, has_dontcache)},
	{PINION_IO_CLONE_BUFFERS, true, offsetof(struct pin_kernel, has_clone_buffers)},
	{PINION_IO_SEND_MSG_RING, true, offsetof(struct pin_kernel, has_send_msg_ring)},
	{PINION_IO_NO_IOWAIT, true, offsetof(struct pin_kernel, has_no_iowait)},
	{PINION_IO_NO_SQARRAY, true, offsetof(struct pin_kernel, has_no_sqarray)},
};

enum {
	/* What came with Linux 6.15, 6.13 and so on, each with all later. */
	SINCE_6_15 = PINION_IO_NO_IOWAIT,
	SINCE_6_14 = SINCE_6_15 | PINION_IO_DONTCACHE,
	SINCE_6_12 = SINCE_6_14 | PINION_IO_SEND_MSG_RING | PINION_IO_CLONE_BUFFERS,
	SINCE_6_6 = SINCE_6_12 | PINION_IO_NO_SQARRAY,
	SINCE_6_5 = SINCE_6_6 | PINION_IO_CACHESTAT,
	SINCE_6_0 = SINCE_6_5 | PINION_IO_SINGLE_ISSUER | PINION_IO_DEFER_TASKRUN |
		PINION_IO_STATX_DIOALIGN,
	SINCE_5_18 = SINCE_6_0 | PINION_IO_REGISTERED_RING | PINION_IO_COOP_TASKRUN |
		PINION_IO_REGISTERED_FILES | PINION_IO_NVME_COMMANDS,
};

static const struct {
	const char *name;
	uint32_t struck;
	uint32_t needed;
} levels[] = {
	[PINION_IO_AUTO] = {"auto", 0, 0},
	[PINION_IO_FALLBACK] = {"fallback", 0, 0},
	[PINION_IO_RING] = {"ring", 0, 0},
	[PINION_IO_RING_BASIC] = {"ring-basic", SINCE_5_18, 0},
	[PINION_IO_RING_COOP] = {"ring-coop", SINCE_6_0, PINION_IO_COOP_TASKRUN},
	[PINION_IO_RING_DEFER] = {"ring-defer", SINCE_6_5, PINION_IO_DEFER_TASKRUN},
	[PINION_IO_RING_MESSAGE] = {"ring-message", SINCE_6_14,
		PINION_IO_DEFER_TASKRUN | PINION_IO_SEND_MSG_RING},
};

static bool *flag_at(struct pin_kernel *kernel, size_t offset)
{
	return (bool *)((uint8_t *)kernel + offset);
}

uint32_t pin_level_struck(uint32_t io_level, uint32_t without)
{
	PIN_CHECK(io_level < PIN_ARRAY_COUNT(levels));
	/* Completions are deferred on rings of a single issuer only. */
	if ((without & PINION_IO_SINGLE_ISSUER) != 0) {
		without |= PINION_IO_DEFER_TASKRUN;
	}
	return without | levels[io_level].struck;
}

static void drop_rings(struct pin_kernel *kernel)
{
	kernel->ring_error = -EOPNOTSUPP;
	kernel->ring_features = 0;
	for (size_t i = 0; i < PIN_ARRAY_COUNT(flags); i++) {
		if (flags[i].is_of_rings) {
			*flag_at(kernel, flags[i].offset) = false; /* invariant 2 */
		}
	}
}

int pin_level_apply(struct pin_kernel *kernel, uint32_t io_level, uint32_t without)
{
	uint32_t struck = pin_level_struck(io_level, without);
	uint32_t left = 0;

	for (size_t i = 0; i < PIN_ARRAY_COUNT(flags); i++) {
		bool *flag = flag_at(kernel, flags[i].offset);

		*flag = *flag && (flags[i].feature & struck) == 0;
		left |= *flag ? flags[i].feature : 0;
	}
	if ((struck & PINION_IO_EXT_ARG) != 0) {
		kernel->ring_features &= ~IORING_FEAT_EXT_ARG;
	}
	if (kernel->ring_error != 0) {
		return 0;
	}
	if ((kernel->ring_features & FLOOR_FEATURES) != FLOOR_FEATURES || !kernel->has_op_openat) {
		drop_rings(kernel);
		return 0;
	}
	return (levels[io_level].needed & ~left) == 0 ? 0 : -EOPNOTSUPP;
}

uint32_t pin_level_reached(const struct pin_kernel *kernel)
{
	if (kernel->ring_error != 0) {
		return PINION_IO_FALLBACK;
	}
	if (!kernel->has_defer_taskrun) {
		return kernel->has_coop_taskrun ? PINION_IO_RING_COOP : PINION_IO_RING_BASIC;
	}
	if (!kernel->has_send_msg_ring) {
		return PINION_IO_RING_DEFER;
	}
	return kernel->has_no_iowait ? PINION_IO_RING : PINION_IO_RING_MESSAGE;
}

const char *pin_level_name(uint32_t io_level)
{
	PIN_CHECK(io_level < PIN_ARRAY_COUNT(levels));
	return levels[io_level].name;
}
