/* SPDX-License-Identifier: MIT */
/*
 * The walk as the scan calls it. How a tree is walked: walk_tree.h.
 */
#ifndef PIN_SCAN_WALK_H
#define PIN_SCAN_WALK_H

#include "runtime/scan/walk_tree.h"

/* pinion_walk_with() by other means than the configuration's. */
int pin_walk(const struct pin_walk_means *means, const char *root,
	const struct pinion_walk_config *config, pinion_walk_fn visit, void *arg);

#endif
