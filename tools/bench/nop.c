/* SPDX-License-Identifier: MIT */
/*
 * The subject `nop`: what a request costs that does nothing: from a task into
 * the ring, through the kernel, and back as a task. The floor drives a bare
 * ring by hand, on the same worker's thread.
 *
 * Both sides submit a batch, and the next when all of its requests have
 * completed.
 */
#include "tools/bench/effort.h"
#include "tools/bench/pending.h"
#include "tools/bench/rawring.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	NOP_DEPTH = 64,
	NOP_FIGURE_REQUESTS = 8192, /* or a few batches, where these are larger */
	NOP_FIGURES = 8,	    /* of one turn */
	NOP_RING_ENTRIES_MIN = 256,
};

struct nops;

struct nop_request {
	struct pinion_request request;
	struct nops *nops;
};

_Static_assert(offsetof(struct nop_request, request.task) == 0, "a cast leads back");

/* Everything but `done` is the worker's alone while a turn is running. */
struct nops {
	struct pinion_runtime *runtime;
	struct pinion_task turn;
	struct nop_request *requests; /* one batch */
	uint32_t depth_count;
	uint32_t batch_count;	 /* of one figure */
	struct rawring *rawring; /* made at the floor's first turn */
	uint32_t left_count;	 /* batches of the figure in hand */
	uint32_t open_count;	 /* requests of the batch in hand */
	uint64_t start_ns;
	uint32_t figure_count;
	double samples[NOP_FIGURES];
	enum bench_side side;
	struct effort effort;
	int error;
	uint32_t done;
};

static void end_turn(struct nops *nops, int error)
{
	nops->error = error;
	bench_word_raise(&nops->done);
}

/* Notes a figure and says whether another is to come. */
static bool next_figure(struct nops *nops)
{
	uint64_t now_ns = bench_now_ns();

	nops->samples[nops->figure_count++] =
		(double)(now_ns - nops->start_ns) / ((double)nops->batch_count * nops->depth_count);
	nops->left_count = nops->batch_count;
	nops->start_ns = bench_now_ns();
	return nops->figure_count < NOP_FIGURES;
}

static void submit_batch(struct nops *nops)
{
	int rc = 0;

	if (nops->left_count == 0 && !next_figure(nops)) {
		end_turn(nops, 0);
		return;
	}
	nops->left_count--;
	/* One more than are under way, until all are. */
	nops->open_count = nops->depth_count + 1;
	for (uint32_t i = 0; rc == 0 && i < nops->depth_count; i++) {
		rc = pinion_request_submit(nops->runtime, &nops->requests[i].request);
	}
	nops->open_count--;
	if (rc != 0) {
		/* Those before it come back, but begin no other. */
		nops->open_count = UINT32_MAX;
		end_turn(nops, rc);
	}
}

static int nop_done(struct pinion_task *task)
{
	struct nop_request *one = (struct nop_request *)(void *)task;
	struct nops *nops = one->nops;

	if (one->request.result != 0) {
		nops->open_count = UINT32_MAX;
		end_turn(nops, (int)one->request.result);
	} else if (--nops->open_count == 0) {
		submit_batch(nops);
	}
	return 0;
}

static int run_floor(struct nops *nops)
{
	int rc = 0;

	if (nops->rawring == NULL) {
		rc = rawring_create(nops->depth_count, 0, NULL, &nops->rawring);
		nops->start_ns = bench_now_ns();
	}
	while (rc == 0) {
		rc = rawring_nops(nops->rawring, nops->batch_count * nops->depth_count);
		if (rc == 0 && !next_figure(nops)) {
			break;
		}
	}
	return rc;
}

/* A turn begins: on the worker for both sides, so on the same core. */
static int nop_turn(struct pinion_task *task)
{
	struct nops *nops = (struct nops *)(void *)((char *)task - offsetof(struct nops, turn));

	nops->figure_count = 0;
	nops->left_count = nops->batch_count;
	nops->start_ns = bench_now_ns();
	if (nops->side == BENCH_OURS) {
		submit_batch(nops);
	} else {
		end_turn(nops, run_floor(nops));
	}
	return 0;
}

static int nop_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct nops *nops = state;
	int rc;

	nops->side = side;
	effort_begin(&nops->effort, nops->runtime);
	rc = bench_run_turn(nops->runtime, &nops->turn, &nops->done);
	effort_end(&nops->effort, nops->runtime, side, 0);
	if (rc == 0 && nops->error != 0) {
		rc = nops->error;
		report_line("requests fail: %s", report_reason(rc));
	}
	for (uint32_t i = 0; rc == 0 && i < NOP_FIGURES; i++) {
		rc = samples_add(out_figures, nops->samples[i]);
	}
	return rc;
}

static uint32_t nop_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct nops *nops = state;

	return effort_further(&nops->effort, further);
}

static void nop_stop(void *state)
{
	struct nops *nops = state;

	pinion_runtime_destroy(nops->runtime);
	rawring_destroy(nops->rawring);
	free(nops->requests);
	free(nops);
}

static int start_runtime(
	struct nops *nops, const struct bench *bench, struct bench_setting *out_setting)
{
	struct bench_options options = *bench->options;
	struct bench deep = {.options = &options};
	uint32_t entries = NOP_RING_ENTRIES_MIN;
	int rc;

	while (entries < nops->depth_count) {
		entries *= 2;
	}
	if (options.tuning.ring_entries < entries) {
		options.tuning.ring_entries = entries;
		options.runtime.tuning = &options.tuning;
	}
	rc = bench_start_workers(&deep, 1, out_setting, &nops->runtime);
	return rc == 0 ? bench_require_rings(bench->subject, out_setting) : rc;
}

static int nop_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct nops *nops = bench_allocate(sizeof(*nops));
	uint32_t *depth = &out_setting->point.values[BENCH_DEPTH];
	int rc;

	if (nops == NULL) {
		return -ENOMEM;
	}
	*depth = *depth == 0 ? NOP_DEPTH : *depth;
	nops->turn.run = nop_turn;
	nops->depth_count = *depth;
	nops->batch_count = (NOP_FIGURE_REQUESTS + *depth - 1) / *depth;
	nops->requests = bench_allocate(*depth * sizeof(*nops->requests));
	rc = nops->requests == NULL ? -ENOMEM : start_runtime(nops, bench, out_setting);
	if (rc != 0) {
		nop_stop(nops);
		return rc;
	}
	for (uint32_t i = 0; i < *depth; i++) {
		nops->requests[i].nops = nops;
		nops->requests[i].request.task.run = nop_done;
		nops->requests[i].request.op = PINION_OP_NOP;
	}
	bench_setting_add(out_setting, "%u at a time", *depth);
	*out_state = nops;
	return 0;
}

const struct bench_subject bench_nop = {
	.name = "nop",
	.unit = "ns",
	.axes = BENCH_BY(BENCH_DEPTH),
	.brief = "a request that does nothing, from task to task, against a bare io_uring",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "io_uring-by-hand"},
	.start = nop_start,
	.run = nop_run,
	.stop = nop_stop,
	.further = nop_further,
};
