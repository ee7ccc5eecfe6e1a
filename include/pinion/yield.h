/* SPDX-License-Identifier: MIT */
/*
 * Yield policies: when a long task should leave its worker to others.
 *
 * A task is never interrupted. A task with much work keeps a cursor in its own
 * struct, asks a policy after each unit of progress, and when the policy says
 * so spawns itself anew and returns; it continues where it stopped once the
 * tasks that waited before it have run:
 *
 * 	while (job->next < job->end) {
 * 		work_on(job->next++);
 * 		if (pinion_yield_due(&job->yield, 1)) {
 * 			return pinion_task_respawn(job->runtime, &job->task);
 * 		}
 * 	}
 *
 * A policy uses only its arguments: no clock, no runtime, no global state. Its
 * whole state is the struct below, plain data without pointers: it may be
 * copied, written to a file and read back by this version of the library on the
 * same kind of machine; the copy decides as the original would have.
 */
#ifndef PINION_YIELD_H
#define PINION_YIELD_H

#include <pinion/version.h>
#include <stdbool.h>
#include <stdint.h>

PINION_BEGIN_DECLS

enum pinion_yield_kind {
	/*
	 * After each `limit` calls, whatever a call stands for. Default 64.
	 */
	PINION_YIELD_EVERY_N = 0,
	/* Never: for a task that ends soon or has a worker of its own. */
	PINION_YIELD_NEVER = 1,
	/* At each call: fairest, and best at finding mistakes in tests. */
	PINION_YIELD_ALWAYS = 2,
	/*
	 * When about `limit` nanoseconds should have passed, judged by the time
	 * of earlier units, which the task reports with pinion_yield_note(). At
	 * most 1 s; default 500 us, a worker's loop.
	 */
	PINION_YIELD_ADAPTIVE = 3,
	/*
	 * After `limit` units, of which a call may bring many: bytes, records.
	 * Units beyond a multiple of the limit count for the next stretch: how
	 * often a task yields does not depend on the size of its portions, as
	 * long as none is larger than the limit. Default 1 Mi: as bytes, the
	 * amount that one core hashes or searches in about 500 us at 2 GB/s.
	 */
	PINION_YIELD_UNITS = 4,
};

/*
 * Limits for the phases of reading a git repository, each of kind UNITS. The
 * comment says what one unit is.
 */
enum pinion_yield_preset {
	PINION_YIELD_GIT_COMMIT_WALK = 0,    /* 128 commits */
	PINION_YIELD_GIT_CANDIDATE_EMIT = 1, /* 64 candidates */
	PINION_YIELD_GIT_PACK_INFLATE = 2,   /* 512 KiB of inflated bytes */
	PINION_YIELD_GIT_DELTA_RESOLVE = 3,  /* 128 deltas */
	PINION_YIELD_GIT_CONTENT_SCAN = 4,   /* 256 KiB of scanned bytes */
};

/*
 * Shape: 32 bytes, embeddable, no padding. All fields may be read, only the
 * functions below write them. A stretch is the work between two yields.
 * Owns: the caller's memory; used by one thread at a time.
 * Since: 0.1
 */
struct pinion_yield {
	uint32_t kind;
	/* Nonzero: the last call said that the stretch is over. */
	uint32_t has_ended;
	/* As given to pinion_yield_init(), or the default. */
	uint64_t limit;
	/* Units in this stretch, or in the one that has ended; saturating. */
	uint64_t done_units;
	/* What a stretch may hold now: fixed, but for kind ADAPTIVE. */
	uint64_t quota_units;
};

/*
 * Begins a policy of one of enum pinion_yield_kind; a `limit` of 0 means the
 * kind's default. Kinds NEVER and ALWAYS take no notice of it.
 *
 * Context: any thread; never blocks or allocates, as all functions here.
 * Errors: -EINVAL: no such kind, or ADAPTIVE with a limit of more than 1 s;
 * nothing is written.
 * Since: 0.1
 */
PINION_API int pinion_yield_init(struct pinion_yield *yield, uint32_t kind, uint64_t limit);

/*
 * Begins a policy with the kind and limit of one of enum pinion_yield_preset.
 *
 * Errors: -EINVAL: no such preset; nothing is written.
 * Since: 0.1
 */
PINION_API int pinion_yield_init_preset(struct pinion_yield *yield, uint32_t preset);

/*
 * Counts `units` more that are done, and says whether to yield now. The call
 * after a true one begins the next stretch.
 *
 * Since: 0.1
 */
PINION_API bool pinion_yield_due(struct pinion_yield *yield, uint64_t units);

/*
 * Reports how long the stretch took that has ended, or that ends here because
 * the task leaves for another reason (it waits for a read, say). Kind ADAPTIVE
 * learns from it, others only begin the next stretch.
 *
 * The first stretch is one unit or call; a stretch grows at most twofold from
 * one to the next, so that expensive units after cheap ones are found early,
 * and shrinks to the right size at once. Without notes it stays at one unit.
 *
 * Units: `stretch_ns` of the task's own running, measured as the caller likes.
 * For replay: recorded together with the calls.
 * Since: 0.1
 */
PINION_API void pinion_yield_note(struct pinion_yield *yield, uint64_t stretch_ns);

PINION_END_DECLS

#endif
