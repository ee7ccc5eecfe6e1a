/* SPDX-License-Identifier: MIT */
/*
 * pinion_walk_with() on the heap of a host.
 */
#ifndef PIN_SCAN_WALK_H
#define PIN_SCAN_WALK_H

#include "runtime/host/host.h"

#include <pinion/walk.h>

int pin_walk(const struct pin_host *host, const char *root, const struct pinion_walk_config *config,
	pinion_walk_fn visit, void *arg);

#endif
