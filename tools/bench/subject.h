/* SPDX-License-Identifier: MIT */
/*
 * What `pinion bench` and its subjects agree on.
 *
 * A subject measures one thing, and beside it its floor: the least that could
 * do the same without us. command.c calls both in turns and compares. A bench
 * passes no judgement on a time; conclusions come from ratios only.
 */
#ifndef PINION_TOOLS_BENCH_SUBJECT_H
#define PINION_TOOLS_BENCH_SUBJECT_H

#include "tools/bench/samples.h"
#include "tools/bench/sweep.h"

#include <pinion/runtime.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_side {
	BENCH_OURS = 0,
	BENCH_FLOOR = 1,
	/*
	 * The floor plus the work on each byte that ours does as well. Memory
	 * that a device or a virtual machine's host has just written is slow to
	 * read the first time, which the plain floor does not pay.
	 */
	BENCH_TOUCHING = 2,
	/* Another way to do it that people use. */
	BENCH_SECOND = 3,
	BENCH_SIDE_COUNT = 4,
};

enum bench_format {
	BENCH_TEXT = 0,
	BENCH_JSON = 1,
	BENCH_CSV = 2,
};

struct bench_options {
	uint64_t duration_ns; /* per subject and point */
	enum bench_format format;
	const char *plot_path; /* --plot, NULL: none */
	struct bench_sweep sweep;
	struct bench_point point; /* the side to measure */
	const char **files;	  /* --file, in order */
	uint32_t file_count;
	const char *tree;	      /* --tree, NULL: one is made */
	const char *directory;	      /* where files are made when none are given */
	uint64_t size_bytes;	      /* of all of them together */
	uint64_t turn_bytes;	      /* --turn, 0: as the subject likes */
	struct pinion_config runtime; /* with the point's workers */
	struct pinion_tuning tuning;  /* that of `runtime` */
};

struct fileset;
struct bench_subject;

/* One call of the program. */
struct bench {
	const struct bench_options *options;
	const struct bench_subject *subject; /* the side that was measured */
	struct fileset *files;		     /* NULL until a subject needs it */
};

/* What a subject settled on when it started. */
struct bench_setting {
	struct pinion_runtime_info facts;
	struct bench_point point; /* as asked for; only the subject's axes count */
	char text[128];		  /* "2 files, 2048 MiB, 2 workers" */
};

/* A figure beside those of the sides: what it is called, and how much. */
struct bench_further {
	const char *name;
	double value;
};

enum { BENCH_FURTHER_MAX = 4 };

/* What `start` and `run` return when a subject cannot be measured here. */
enum { BENCH_SKIPPED = 1 };

struct bench_subject {
	const char *name;
	const char *unit; /* "GB/s", "ns", "us" */
	bool is_rate;	  /* more is better */
	uint32_t axes;	  /* BENCH_BY() of each that it can be measured by */
	const char *brief;
	/* How each side comes by its samples; NULL: there is no such side. */
	const char *sides[BENCH_SIDE_COUNT];
	/*
	 * Private to its functions, which several subjects may share; or NULL.
	 */
	const void *variant;
	/*
	 * Each returns 0 or a negative errno that is reported already;
	 * -ECANCELED, not reported: a signal came. BENCH_SKIPPED: this machine
	 * lacks what the subject needs, which is reported. `stop` undoes a
	 * `start` that returned 0.
	 */
	int (*start)(struct bench *bench, struct bench_setting *out_setting, void **out_state);
	/* Takes one figure of that side, or a block of them. */
	int (*run)(void *state, enum bench_side side, struct samples *out_figures);
	void (*stop)(void *state);
	/*
	 * Called once, between the last `run` and `stop`; returns how many. May
	 * be NULL. Names are static.
	 */
	uint32_t (*further)(void *state, struct bench_further further[BENCH_FURTHER_MAX]);
};

static inline bool bench_has_side(const struct bench_subject *subject, int side)
{
	return subject->sides[side] != NULL;
}

/* The measurements of a subject; sorted when it is complete. */
struct bench_results {
	struct samples samples[BENCH_SIDE_COUNT];
	struct samples block; /* the turn in hand */
	/* Ours over that side, by pair; nothing under BENCH_OURS. */
	struct samples ratios[BENCH_SIDE_COUNT];
	struct bench_further further[BENCH_FURTHER_MAX];
	uint32_t further_count;
};

/* A program's: of `pinion` the above. */
extern const struct bench_subject *const bench_subjects[];
extern const uint32_t bench_subject_count;

/* clang-format off */
/*
 * The subjects of `pinion bench`, in the order of `pinion bench list`. `make
 * bench` has more: tests/bench/subjects/further.h.
 */
#define BENCH_SUBJECTS(apply) \
	apply(nop) \
	apply(read) \
	apply(read_random) \
	apply(read_random_cached) \
	apply(write) \
	apply(sum) \
	apply(scan) \
	apply(spawn) \
	apply(steal) \
	apply(forkjoin) \
	apply(wake) \
	apply(idle) \
	apply(timer) \
	apply(lanes) \
	apply(walk) \
	apply(pool)
/* clang-format on */

#define BENCH_DECLARE(subject) extern const struct bench_subject bench_##subject;
#define BENCH_LIST(subject) &bench_##subject,

BENCH_SUBJECTS(BENCH_DECLARE)

/* CLOCK_MONOTONIC. */
uint64_t bench_now_ns(void);

#endif
