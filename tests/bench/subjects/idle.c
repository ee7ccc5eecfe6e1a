/* SPDX-License-Identifier: MIT */
/*
 * The subject `idle_ring`: `idle`, of workers that sleep in their rings.
 */
#include "tools/bench/idle.h"

const struct bench_subject bench_idle_ring = {
	.name = "idle_ring",
	.brief = "as idle, with a read pending on each worker",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "futex-wait"},
	.variant = &(const struct idle_way){.is_reading = true},
	IDLE_SHARED,
};
