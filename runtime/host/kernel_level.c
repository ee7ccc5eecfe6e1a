/* SPDX-License-Identifier: MIT */
/*
 * The ladder of io_uring levels as tables: which features there are, since
 * when, and which kernel each level stands for.
 *
 * A forced level removes features from a probe's result before workers start,
 * so one machine can run as each older kernel.
 */
#include "runtime/host/kernel.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <pinion/policy.h>

/* Without these, requests would be lost, waits endless, files not opened. */
#define FLOOR_FEATURES ((uint32_t)(PINION_IO_EXT_ARG | PINION_IO_OPENAT))

#define LINUX(major, minor) ((major) << 8 | (minor))

enum {
	/* Features are of rings but for those that files have. */
	RING = true,
	SETUP = true,
	FILES = false,
	NEWEST = LINUX(255, 255),
};

static const struct {
	bool is_of_rings;
	uint16_t since;
} features[] = {
#define ROW(name, word, kind, major, minor, probe) \
	[PIN_FEATURE_##name] = {kind, LINUX(major, minor)},
	PIN_KERNEL_FEATURES(ROW)
#undef ROW
};

/* A level does without all that came after the kernel it stands for. */
static const struct {
	const char *name;
	uint16_t kernel;
	uint32_t needed;
} levels[] = {
	[PINION_IO_AUTO] = {"auto", NEWEST, 0},
	[PINION_IO_FALLBACK] = {"fallback", NEWEST, 0},
	[PINION_IO_RING] = {"ring", NEWEST, 0},
	[PINION_IO_RING_BASIC] = {"ring-basic", LINUX(5, 15), 0},
	[PINION_IO_RING_COOP] = {"ring-coop", LINUX(5, 19), PINION_IO_COOP_TASKRUN},
	[PINION_IO_RING_DEFER] = {"ring-defer", LINUX(6, 1), PINION_IO_DEFER_TASKRUN},
	[PINION_IO_RING_MESSAGE] = {"ring-message", LINUX(6, 13),
		PINION_IO_DEFER_TASKRUN | PINION_IO_SEND_MSG_RING},
};

uint32_t pin_level_struck(uint32_t io_level, uint32_t without)
{
	PIN_CHECK(io_level < PIN_ARRAY_COUNT(levels));
	for (uint32_t i = 0; i < PIN_FEATURE_COUNT; i++) {
		if (features[i].since > levels[io_level].kernel) {
			without |= UINT32_C(1) << i;
		}
	}
	/* Completions are deferred on rings of a single issuer only. */
	if ((without & PINION_IO_SINGLE_ISSUER) != 0) {
		without |= PINION_IO_DEFER_TASKRUN;
	}
	return without;
}

static void drop_rings(struct pin_kernel *kernel)
{
	kernel->ring_error = -EOPNOTSUPP;
	kernel->ring_features = 0;
	for (uint32_t i = 0; i < PIN_FEATURE_COUNT; i++) {
		if (features[i].is_of_rings) {
			kernel->features &= ~(UINT32_C(1) << i); /* invariant 2 */
		}
	}
	PIN_CHECK((kernel->features & FLOOR_FEATURES) == 0);
}

int pin_level_apply(struct pin_kernel *kernel, uint32_t io_level, uint32_t without)
{
	PIN_CHECK(kernel->ring_error <= 0);
	kernel->features &= ~pin_level_struck(io_level, without);
	if (kernel->ring_error != 0) {
		return 0;
	}
	if ((kernel->ring_features & IORING_FEAT_NODROP) == 0 ||
		(kernel->features & FLOOR_FEATURES) != FLOOR_FEATURES) {
		drop_rings(kernel);
		return 0;
	}
	return (levels[io_level].needed & ~kernel->features) == 0 ? 0 : -EOPNOTSUPP;
}

uint32_t pin_level_reached(const struct pin_kernel *kernel)
{
	if (kernel->ring_error != 0) {
		return PINION_IO_FALLBACK;
	}
	PIN_CHECK((kernel->features & FLOOR_FEATURES) ==
		FLOOR_FEATURES); /* else there are no rings */
	if (!pin_kernel_has(kernel, PINION_IO_DEFER_TASKRUN)) {
		return pin_kernel_has(kernel, PINION_IO_COOP_TASKRUN) ? PINION_IO_RING_COOP
								      : PINION_IO_RING_BASIC;
	}
	if (!pin_kernel_has(kernel, PINION_IO_SEND_MSG_RING)) {
		return PINION_IO_RING_DEFER;
	}
	return pin_kernel_has(kernel, PINION_IO_NO_IOWAIT) ? PINION_IO_RING
							   : PINION_IO_RING_MESSAGE;
}

const char *pin_level_name(uint32_t io_level)
{
	PIN_CHECK(io_level < PIN_ARRAY_COUNT(levels));
	return levels[io_level].name;
}

/* The compiler warns of a member of the enumeration that has no row. */
const char *pin_feature_name(uint32_t feature)
{
	switch ((enum pinion_io_feature)feature) {
#define NAME(name, word, kind, major, minor, probe) \
	case PINION_IO_##name: \
		return word;
		PIN_KERNEL_FEATURES(NAME)
#undef NAME
	}
	return NULL;
}
