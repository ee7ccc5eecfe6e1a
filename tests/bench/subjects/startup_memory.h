/* SPDX-License-Identifier: MIT */
/*
 * What the memory of a runtime costs when it starts: at rest, the gigabyte that
 * an appliance gives its buffers, and registering 64 MiB of huge pages.
 */
#ifndef PIN_TESTS_BENCH_SUBJECTS_STARTUP_MEMORY_H
#define PIN_TESTS_BENCH_SUBJECTS_STARTUP_MEMORY_H

#include "tools/bench/subject.h"

/*
 * Up to four, of several times each the median: `create_ms` and `rest_kib`, the
 * creation alone and the resident memory of the process then;
 * `register_64m_ms`, by the call of the kernel on a ring of no other use, and
 * `start_1g_ms`, the creation of a runtime whose arenas hold that much beside
 * what `config` says. A size that
 * this machine has no memory for, or that the kernel refuses, is left out, and
 * that is reported.
 */
uint32_t startup_memory_further(const struct pinion_config *config, uint32_t worker_count,
	struct bench_further further[BENCH_FURTHER_MAX]);

#endif
