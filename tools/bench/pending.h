/* SPDX-License-Identifier: MIT */
/*
 * A read that stays pending for as long as its worker lives, so that the
 * worker has to sleep in its ring.
 *
 * Regular files always answer, and the library opens no others. So the file is
 * opened as usual, and then its descriptor is replaced by a pipe that has no
 * writer; the read itself does not care.
 */
#ifndef PINION_TOOLS_BENCH_PENDING_H
#define PINION_TOOLS_BENCH_PENDING_H

#include "tools/bench/subject.h"

#include <pinion/file.h>
#include <pinion/request.h>

struct bench_pending {
	struct pinion_request request;
	struct pinion_file file;
	int write_fd;
	uint8_t bytes[16];
	uint32_t is_over;
};

/* Returns 0 or an error that is reported. */
int bench_pending_open(struct bench_pending *pending);

/* Begins to read; in a task, and the read stays with its worker. */
int bench_pending_submit(struct bench_pending *pending, struct pinion_runtime *runtime);

/* Whether the read has ended, which it should not; if so, reports it. */
int bench_pending_check(const struct bench_pending *pending);

/* When the runtime is gone. Accepts a zeroed struct that was never opened. */
void bench_pending_close(struct bench_pending *pending);

/* BENCH_SKIPPED, and says so, where workers have no rings. */
int bench_require_rings(const struct bench_subject *subject, const struct bench_setting *setting);

#endif
