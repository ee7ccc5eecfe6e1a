/* SPDX-License-Identifier: MIT */
/*
 * The subject `forkjoin`: Fibonacci numbers the slow way, as a tree of tasks.
 * A task spawns its two children and returns; whichever child ends last goes
 * on for its parent. The floor does the same with the same frames, but calls
 * the children instead of spawning them.
 *
 * Queues are in LIFO order, which walks the tree depth first, or in the default
 * order, `forkjoin_fifo`, which does so after a queue was full.
 *
 * Frames come from the pool of the worker that runs the parent and go to that
 * of the worker that ends the child. So that no pool runs dry each could hold
 * the whole tree; memory that is not touched costs nothing.
 */
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	FORKJOIN_NUMBER = 25,
	FORKJOIN_RESULT = 75025,
	/* One for each call of the recursion. */
	FORKJOIN_TASKS = 242785,
	FORKJOIN_FIGURES = 2, /* trees of one turn */
};

struct forkjoin;

struct frame {
	struct pinion_task task;
	struct forkjoin *forkjoin;
	struct frame *parent; /* the next one, while in a pool */
	uint32_t values[2];   /* of its children */
	uint32_t left_count;  /* children that have not ended */
	uint16_t number;
	uint16_t side; /* which child of its parent */
};

_Static_assert(offsetof(struct frame, task) == 0, "a cast leads back");

/* One worker's. Frames from `fresh` on were never used. */
struct frame_pool {
	struct frame *first;
	struct frame *fresh;
} BENCH_LINE_ALIGNED;

struct forkjoin {
	/* Constant while a tree is under way. */
	struct pinion_runtime *runtime; /* of as many workers as asked for */
	struct pinion_runtime *single;	/* with one worker; NULL: use `runtime` */
	struct pinion_runtime *active;
	uint32_t worker_count;
	bool is_spawning;
	enum pinion_queue_order order;
	struct frame *frames; /* FORKJOIN_TASKS for each worker */
	struct frame_pool *pools;
	struct samples speedups; /* by turns: one worker's time over theirs */
	/* Written when the tree begins and when it ends. */
	struct pinion_task turn;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t result;
	uint32_t done;
	/* Written by a thread that cannot spawn. */
	int error;
};

static struct frame_pool *own_pool(const struct forkjoin *forkjoin)
{
	return &forkjoin->pools[pinion_worker_index(forkjoin->active)];
}

static struct frame *pool_acquire(struct frame_pool *pool)
{
	struct frame *frame = pool->first;

	if (frame == NULL) {
		return pool->fresh++;
	}
	pool->first = frame->parent;
	return frame;
}

static void pool_release(struct frame_pool *pool, struct frame *frame)
{
	frame->parent = pool->first;
	pool->first = frame;
}

static void pools_reset(struct forkjoin *forkjoin)
{
	for (uint32_t i = 0; i < forkjoin->worker_count; i++) {
		forkjoin->pools[i].first = NULL;
		forkjoin->pools[i].fresh = &forkjoin->frames[(size_t)i * FORKJOIN_TASKS];
	}
}

/* ---- the tree ---- */

/* A frame has its value; goes up as long as it was the last child. */
static void frame_end(struct frame_pool *pool, struct frame *frame, uint32_t value)
{
	struct forkjoin *forkjoin = frame->forkjoin;

	for (;;) {
		struct frame *parent = frame->parent;
		uint16_t side = frame->side;

		pool_release(pool, frame);
		if (parent == NULL) {
			forkjoin->end_ns = bench_now_ns();
			forkjoin->result = value;
			bench_word_raise(&forkjoin->done);
			return;
		}
		parent->values[side] = value;
		if (__atomic_fetch_sub(&parent->left_count, 1, __ATOMIC_ACQ_REL) != 1) {
			return;
		}
		value = parent->values[0] + parent->values[1];
		frame = parent;
	}
}

static int frame_run(struct pinion_task *task);

static void frame_start(struct forkjoin *forkjoin, struct frame_pool *pool, struct frame *parent,
	uint16_t number, uint16_t side)
{
	struct frame *frame = pool_acquire(pool);
	int rc;

	*frame = (struct frame){
		.task = {.run = frame_run},
		.forkjoin = forkjoin,
		.parent = parent,
		.left_count = 2,
		.number = number,
		.side = side,
	};
	rc = forkjoin->is_spawning ? pinion_task_spawn(forkjoin->active, &frame->task)
				   : frame_run(&frame->task);
	if (rc != 0) {
		/* The tree never ends, so this does. */
		__atomic_store_n(&forkjoin->error, rc, __ATOMIC_RELAXED);
		bench_word_raise(&forkjoin->done);
	}
}

static int frame_run(struct pinion_task *task)
{
	struct frame *frame = (struct frame *)(void *)task;
	struct forkjoin *forkjoin = frame->forkjoin;
	struct frame_pool *pool = own_pool(forkjoin);
	uint16_t number = frame->number;

	if (number < 2) {
		frame_end(pool, frame, number);
		return 0;
	}
	frame_start(forkjoin, pool, frame, (uint16_t)(number - 1), 0);
	/* Not the last child yet, so the frame is still there. */
	frame_start(forkjoin, pool, frame, (uint16_t)(number - 2), 1);
	return 0;
}

static int forkjoin_turn(struct pinion_task *task)
{
	struct forkjoin *forkjoin =
		(struct forkjoin *)(void *)((char *)task - offsetof(struct forkjoin, turn));

	forkjoin->start_ns = bench_now_ns();
	frame_start(forkjoin, own_pool(forkjoin), NULL, FORKJOIN_NUMBER, 0);
	return 0;
}

/* ---- the subject ---- */

static int run_tree(struct forkjoin *forkjoin, struct pinion_runtime *runtime, bool is_spawning,
	double *out_figure)
{
	int rc;

	pools_reset(forkjoin);
	forkjoin->active = runtime;
	forkjoin->is_spawning = is_spawning;
	rc = bench_run_turn(runtime, &forkjoin->turn, &forkjoin->done);
	if (rc != 0) {
		return rc;
	}
	rc = __atomic_load_n(&forkjoin->error, __ATOMIC_RELAXED);
	if (rc == 0 && forkjoin->result != FORKJOIN_RESULT) {
		rc = -EBADMSG;
	}
	if (rc != 0) {
		report_line("the tree has not been computed: %s", report_reason(rc));
		return rc;
	}
	*out_figure = (double)(forkjoin->end_ns - forkjoin->start_ns) / FORKJOIN_TASKS;
	return 0;
}

static int forkjoin_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct forkjoin *forkjoin = state;
	int rc = 0;

	for (int i = 0; rc == 0 && i < FORKJOIN_FIGURES; i++) {
		double figure;
		double single_figure;

		rc = run_tree(forkjoin, forkjoin->runtime, side == BENCH_OURS, &figure);
		if (rc == 0) {
			rc = samples_add(out_figures, figure);
		}
		if (rc == 0 && side == BENCH_OURS && forkjoin->single != NULL) {
			rc = run_tree(forkjoin, forkjoin->single, true, &single_figure);
			if (rc == 0) {
				rc = samples_add(&forkjoin->speedups, single_figure / figure);
			}
		}
	}
	return rc;
}

static uint32_t forkjoin_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct forkjoin *forkjoin = state;

	if (forkjoin->single == NULL) {
		return 0;
	}
	samples_sort(&forkjoin->speedups);
	further[0] = (struct bench_further){"speedup", samples_quantile(&forkjoin->speedups, 0.5)};
	return 1;
}

static void forkjoin_stop(void *state)
{
	struct forkjoin *forkjoin = state;

	pinion_runtime_destroy(forkjoin->runtime);
	pinion_runtime_destroy(forkjoin->single);
	samples_free(&forkjoin->speedups);
	free(forkjoin->frames);
	free(forkjoin->pools);
	free(forkjoin);
}

static int start_runtimes(
	struct forkjoin *forkjoin, const struct bench *bench, struct bench_setting *out_setting)
{
	struct bench_options options = *bench->options;
	struct bench ordered = {.options = &options};
	struct bench_setting ignored;
	int rc = 0;

	options.tuning.queue_order = forkjoin->order;
	options.runtime.tuning = &options.tuning;
	if (forkjoin->worker_count > 1) {
		rc = bench_start_workers(&ordered, 1, &ignored, &forkjoin->single);
	}
	return rc == 0 ? bench_start_workers(
				 &ordered, forkjoin->worker_count, out_setting, &forkjoin->runtime)
		       : rc;
}

static int start_in_order(struct bench *bench, struct bench_setting *out_setting,
	enum pinion_queue_order order, void **out_state)
{
	struct forkjoin *forkjoin = bench_allocate(sizeof(*forkjoin));
	uint32_t worker_count = bench->options->runtime.worker_count;
	void *frames;
	int rc = -ENOMEM;

	if (forkjoin == NULL) {
		return rc;
	}
	worker_count = worker_count == 0 ? 1 : worker_count;
	forkjoin->worker_count = worker_count;
	forkjoin->order = order;
	forkjoin->turn.run = forkjoin_turn;
	forkjoin->pools = bench_allocate(worker_count * sizeof(*forkjoin->pools));
	/* Left untouched, so that only used pages become memory. */
	if (posix_memalign(&frames, BENCH_LINE_BYTES,
		    (size_t)worker_count * FORKJOIN_TASKS * sizeof(struct frame)) != 0) {
		report_line("%s", report_reason(ENOMEM));
	} else {
		forkjoin->frames = frames;
		rc = forkjoin->pools == NULL ? -ENOMEM
					     : start_runtimes(forkjoin, bench, out_setting);
	}
	if (rc != 0) {
		forkjoin_stop(forkjoin);
		return rc;
	}
	*out_state = forkjoin;
	return 0;
}

static int forkjoin_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	return start_in_order(bench, out_setting, PINION_QUEUE_LIFO, out_state);
}

static int forkjoin_fifo_start(
	struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	return start_in_order(bench, out_setting, PINION_QUEUE_FIFO, out_state);
}

const struct bench_subject bench_forkjoin = {
	.name = "forkjoin",
	.unit = "ns",
	.axes = BENCH_BY(BENCH_WORKERS),
	.brief = "a task of a tree that spawns two children and joins them, against calls",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "recursive-calls"},
	.start = forkjoin_start,
	.run = forkjoin_run,
	.stop = forkjoin_stop,
	.further = forkjoin_further,
};

const struct bench_subject bench_forkjoin_fifo = {
	.name = "forkjoin_fifo",
	.unit = "ns",
	.axes = BENCH_BY(BENCH_WORKERS),
	.brief = "the same in the default order of queues",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "recursive-calls"},
	.start = forkjoin_fifo_start,
	.run = forkjoin_run,
	.stop = forkjoin_stop,
	.further = forkjoin_further,
};
