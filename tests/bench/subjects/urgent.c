/* SPDX-License-Identifier: MIT */
/*
 * The subjects `urgent` and `urgent_own`: how long a read of 4 KiB in the high
 * lane takes while workers read the same files in large blocks, in the normal
 * lane; against a thread with a bare ring that does the same beside the same
 * bulk. One read at a time, up to a millisecond after the one before.
 *
 * `urgent`: a thread outside submits it, and the only workers there are are
 * those of the bulk. `urgent_own`: a task of the high lane submits it, on a
 * worker that serves no other lane. A figure is the time from the call that
 * submits to the first instruction of the read's task; of the floor, from the
 * submission until the call that waits has returned.
 *
 * Further figures: the rate of the bulk beside the reads, as measured in turns
 * with turns without any, and how much of it is left, beside ours and beside
 * the floor's. What the floor takes is the price of the reads themselves.
 */
#include "tools/bench/blocks.h"
#include "tools/bench/load.h"
#include "tools/bench/place.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	URGENT_BYTES = 4096,
	/* The longest pause after a read ends, until the next is submitted. */
	URGENT_GAP_NS_MAX = 1000 * 1000,
	URGENT_OWN_INDEX = 0, /* the worker of the high lane alone */
};

struct urgent {
	struct blocks *bulk;
	bool is_own;
	struct pinion_request request;
	struct pinion_task submitter; /* of `urgent_own` */
	uint8_t *bytes;
	struct rawring *rawring; /* the floor's, made at its first turn */
	struct placing placing;
	uint64_t *block_counts; /* of 4 KiB, of each file */
	uint64_t random;
	uint64_t start_ns;
	uint64_t end_ns;
	int error;			      /* of the read in hand */
	uint32_t done;			      /* reads, raised */
	struct samples alone;		      /* rates of the bulk */
	struct samples beside;		      /* with ours */
	struct samples left[BENCH_FLOOR + 1]; /* percent of what it is alone */
};

/* ---- one read ---- */

static int read_done(struct pinion_task *task)
{
	struct urgent *urgent =
		(struct urgent *)(void *)((char *)task - offsetof(struct urgent, request.task));

	urgent->end_ns = bench_now_ns();
	if (urgent->request.result != URGENT_BYTES) {
		urgent->error = urgent->request.result < 0 ? (int)urgent->request.result : -EIO;
	}
	bench_word_raise(&urgent->done);
	return 0;
}

static int submit(struct urgent *urgent)
{
	urgent->start_ns = bench_now_ns();
	return pinion_request_submit(urgent->bulk->runtime, &urgent->request);
}

static int submitter_run(struct pinion_task *task)
{
	struct urgent *urgent =
		(struct urgent *)(void *)((char *)task - offsetof(struct urgent, submitter));
	int rc = submit(urgent);

	if (rc != 0) {
		urgent->error = rc;
		bench_word_raise(&urgent->done);
	}
	return 0;
}

static int read_ours(struct urgent *urgent)
{
	uint32_t before = bench_word_read(&urgent->done);
	uint32_t file_index;
	int rc;

	urgent->request.offset_bytes = placing_next(&urgent->placing, &file_index);
	urgent->request.file = &urgent->bulk->files[file_index];
	rc = urgent->is_own
		? pinion_task_spawn_on(urgent->bulk->runtime, URGENT_OWN_INDEX, &urgent->submitter)
		: submit(urgent);
	rc = rc == 0 ? bench_word_wait(&urgent->done, before) : rc;
	return rc == 0 ? urgent->error : rc;
}

static int read_bare(struct urgent *urgent)
{
	int rc = 0;

	if (urgent->rawring == NULL) {
		rc = rawring_create(1, URGENT_BYTES, urgent->bulk->set, &urgent->rawring);
	}
	urgent->start_ns = bench_now_ns();
	rc = rc == 0 ? rawring_blocks(urgent->rawring, &urgent->placing, 1, false) : rc;
	urgent->end_ns = bench_now_ns();
	return rc;
}

/* ---- turns ---- */

/* A read that the bulk did not outlast counts only if there is no other. */
static int read_meanwhile(struct urgent *urgent, enum bench_side side, struct samples *out_figures)
{
	int rc = 0;

	while (rc == 0) {
		load_sleep_gap(&urgent->random, URGENT_GAP_NS_MAX);
		rc = side == BENCH_OURS ? read_ours(urgent) : read_bare(urgent);
		if (rc != 0 && rc != -ECANCELED) {
			report_line("cannot read: %s", report_reason(rc));
		}
		if (rc != 0 || (blocks_has_ended(urgent->bulk) && out_figures->count > 0)) {
			break;
		}
		rc = samples_add(out_figures, (double)(urgent->end_ns - urgent->start_ns) / 1000);
	}
	return rc;
}

static int urgent_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct urgent *urgent = state;
	double alone;
	double beside;
	int rc = blocks_begin(urgent->bulk, BENCH_OURS);

	rc = rc == 0 ? blocks_end(urgent->bulk, &alone) : rc;
	rc = rc == 0 ? blocks_begin(urgent->bulk, BENCH_OURS) : rc;
	rc = rc == 0 ? read_meanwhile(urgent, side, out_figures) : rc;
	rc = rc == 0 ? blocks_end(urgent->bulk, &beside) : rc;
	rc = rc == 0 ? samples_add(&urgent->left[side], 100 * beside / alone) : rc;
	if (rc == 0 && side == BENCH_OURS) {
		rc = samples_add(&urgent->alone, alone);
		rc = rc == 0 ? samples_add(&urgent->beside, beside) : rc;
	}
	return rc;
}

static double median_of(struct samples *samples)
{
	samples_sort(samples);
	return samples_quantile(samples, 0.5);
}

static uint32_t urgent_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct urgent *urgent = state;

	if (urgent->beside.count == 0 || urgent->left[BENCH_FLOOR].count == 0) {
		return 0;
	}
	further[0] = (struct bench_further){"bulk_gb_s", median_of(&urgent->beside)};
	further[1] = (struct bench_further){"bulk_alone_gb_s", median_of(&urgent->alone)};
	further[2] = (struct bench_further){"bulk_percent", median_of(&urgent->left[BENCH_OURS])};
	further[3] =
		(struct bench_further){"floor_bulk_percent", median_of(&urgent->left[BENCH_FLOOR])};
	return 4;
}

/* ---- start and stop ---- */

static void urgent_stop(void *state)
{
	struct urgent *urgent = state;

	blocks_stop(urgent->bulk); /* cancels a read that a signal left in flight */
	rawring_destroy(urgent->rawring);
	samples_free(&urgent->alone);
	samples_free(&urgent->beside);
	samples_free(&urgent->left[BENCH_OURS]);
	samples_free(&urgent->left[BENCH_FLOOR]);
	free(urgent->block_counts);
	free(urgent->bytes);
	free(urgent);
}

static int prepare_reads(struct urgent *urgent)
{
	const struct blocks *bulk = urgent->bulk;

	urgent->bytes = aligned_alloc(URGENT_BYTES, URGENT_BYTES);
	urgent->block_counts = calloc(bulk->set->count, sizeof(*urgent->block_counts));
	if (urgent->bytes == NULL || urgent->block_counts == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < bulk->set->count; i++) {
		urgent->block_counts[i] = bulk->block_counts[i] * bulk->block_bytes / URGENT_BYTES;
		if (urgent->block_counts[i] == 0) {
			report_path(bulk->set->files[i].path, "is smaller than one block");
			return -EINVAL;
		}
	}
	urgent->placing = (struct placing){
		.block_counts = urgent->block_counts,
		.file_count = bulk->set->count,
		.block_bytes = URGENT_BYTES,
		.state = 88172645463325252u,
	};
	urgent->request = (struct pinion_request){
		.task = {.run = read_done, .flags = PINION_TASK_HIGH},
		.op = PINION_OP_READ,
		.bytes = urgent->bytes,
		.length_bytes = URGENT_BYTES,
	};
	urgent->submitter = (struct pinion_task){.run = submitter_run, .flags = PINION_TASK_HIGH};
	return 0;
}

static int urgent_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct blocks_plan *plan = bench->subject->variant;
	struct urgent *urgent;
	void *bulk;
	int rc = bench_require_cpus(bench->subject, 2);

	if (rc != 0) {
		return rc;
	}
	rc = blocks_start(bench, out_setting, &bulk);
	if (rc != 0) {
		return rc;
	}
	urgent = bench_allocate(sizeof(*urgent));
	if (urgent == NULL) {
		blocks_stop(bulk);
		return -ENOMEM;
	}
	urgent->bulk = bulk;
	urgent->is_own = plan->first_index > URGENT_OWN_INDEX;
	urgent->random = 362436069362436069u;
	rc = prepare_reads(urgent);
	if (rc != 0) {
		urgent_stop(urgent);
		return rc;
	}
	*out_state = urgent;
	return 0;
}

#define URGENT_SHARED \
	.unit = "us", \
	.axes = BENCH_BY(BENCH_WORKERS) | BENCH_BY(BENCH_DEPTH) | BENCH_BY(BENCH_BLOCK), \
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "io_uring-by-hand"}, \
	.start = urgent_start, .run = urgent_run, .stop = urgent_stop, .further = urgent_further

const struct bench_subject bench_urgent = {
	.name = "urgent",
	.brief = "4 KiB read in the high lane from outside, beside large blocks",
	.variant = &(const struct blocks_plan){.block_bytes = BLOCKS_IN_ORDER_BYTES,
		.is_sequential = true},
	URGENT_SHARED,
};

const struct bench_subject bench_urgent_own = {
	.name = "urgent_own",
	.brief = "the same by tasks of the high lane with a worker of their own",
	.variant = &(const struct blocks_plan){.block_bytes = BLOCKS_IN_ORDER_BYTES,
		.is_sequential = true,
		.lanes = "h:1,hnl",
		.first_index = URGENT_OWN_INDEX + 1},
	URGENT_SHARED,
};
