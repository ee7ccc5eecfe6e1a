/* SPDX-License-Identifier: MIT */
/*
 * The subjects `pool_two`, `pool_pass` and `pool_steal`: two threads at one
 * pool, each with a cache: both take and give back, or one takes and the other
 * gives back. The floor keeps the buffers in a bare bounded queue or deque.
 */
#include "tools/bench/pool.h"
#include "tools/bench/chaselev.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <stdlib.h>

enum {
	PASS_PLACES = 256, /* on the way from one thread to the other */
	STEAL_BUFFERS = 8, /* few enough for one thread's cache to hold them all */
};

/* The differences between one subject and another. */
struct pair_way {
	uint32_t buffer_count;
	bool has_deque; /* in place of the queue */
};

/* One thread puts in, the other takes out. */
struct pass {
	struct pinion_buffer places[PASS_PLACES];
	uint32_t put_count BENCH_LINE_ALIGNED;
	uint32_t taken_count BENCH_LINE_ALIGNED;
};

struct pair {
	struct pools pools;
	struct bench_chaselev deque; /* the thread that gives back pushes */
	bool has_deque;		     /* in place of the queue */
	struct pass pass;
	/* One is counted up by each thread that is ready, one lets them go. */
	uint32_t ready_count BENCH_LINE_ALIGNED;
	uint32_t may_go;
	enum bench_side side;
	int error; /* of the other thread */
};

static bool take_queued(struct pair *pair, struct pinion_buffer *out_buffer)
{
	out_buffer->bytes = pair->has_deque ? (uint8_t *)bench_chaselev_steal(&pair->deque)
					    : (uint8_t *)bench_mpmc_pop(&pair->pools.queue);
	return out_buffer->bytes != NULL;
}

static bool give_queued(struct pair *pair, struct pinion_buffer *buffer)
{
	struct pinion_task *item = (struct pinion_task *)(void *)buffer->bytes;

	if (pair->has_deque) {
		bench_chaselev_push(&pair->deque, item);
		return true;
	}
	return bench_mpmc_push(&pair->pools.queue, item);
}

static void pair_stop(void *state)
{
	struct pair *pair = state;

	pools_fini(&pair->pools);
	free(pair);
}

static int pair_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct pair_way *way = bench->subject->variant;
	const struct pool_way attached = {.buffer_count = way->buffer_count};
	struct pair *pair;
	int rc = bench_require_cpus(bench->subject, 2);

	if (rc != 0) {
		return rc;
	}
	pair = bench_allocate(sizeof(*pair));
	if (pair == NULL) {
		return -ENOMEM;
	}
	pair->has_deque = way->has_deque;
	rc = pools_init(&pair->pools, &attached, out_setting);
	if (rc != 0) {
		pair_stop(pair);
		return rc;
	}
	for (uint32_t i = 0; way->has_deque && i < way->buffer_count; i++) {
		bench_chaselev_push(&pair->deque, &pair->pools.items[i]);
	}
	*out_state = pair;
	return 0;
}

static void wait_for(const uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
		bench_relax();
	}
}

/* Both begin at the same moment. */
static void meet(struct pair *pair)
{
	__atomic_fetch_add(&pair->ready_count, 1, __ATOMIC_ACQ_REL);
	wait_for(&pair->ready_count, 2);
}

static void *use_beside(void *arg)
{
	struct pair *pair = arg;
	int rc = pinion_pool_attach(pair->pools.pool);

	meet(pair);
	while (rc == 0 && __atomic_load_n(&pair->may_go, __ATOMIC_ACQUIRE) == 0) {
		rc = pools_use_ours(&pair->pools) ? 0 : -EAGAIN;
	}
	pinion_pool_detach(pair->pools.pool);
	pair->error = rc;
	return NULL;
}

static void give_one(struct pair *pair, struct pinion_buffer *buffer)
{
	bool is_given = pair->side == BENCH_OURS ? pools_give(&pair->pools, buffer)
						 : give_queued(pair, buffer);

	if (!is_given) {
		pair->error = -EINVAL;
	}
}

static void *give_passed(void *arg)
{
	struct pair *pair = arg;
	struct pass *pass = &pair->pass;
	uint32_t total = POOL_PAIRS * POOL_FIGURES;

	pair->error = pinion_pool_attach(pair->pools.pool);
	meet(pair);
	for (uint32_t i = 0; i < total; i++) {
		wait_for(&pass->put_count, i + 1);
		give_one(pair, &pass->places[i % PASS_PLACES]);
		__atomic_store_n(&pass->taken_count, i + 1, __ATOMIC_RELEASE);
	}
	pinion_pool_detach(pair->pools.pool);
	return NULL;
}

static void pass_one(struct pair *pair, uint32_t number)
{
	struct pinion_buffer buffer;

	while (pair->side == BENCH_OURS ? !pools_take(&pair->pools, &buffer)
					: !take_queued(pair, &buffer)) {
		bench_relax();
	}
	if (number >= PASS_PLACES) {
		wait_for(&pair->pass.taken_count, number - PASS_PLACES + 1);
	}
	pair->pass.places[number % PASS_PLACES] = buffer;
	__atomic_store_n(&pair->pass.put_count, number + 1, __ATOMIC_RELEASE);
}

static int begin_beside(
	struct pair *pair, enum bench_side side, void *(*body)(void *), pthread_t *out_thread)
{
	int rc;

	pair->side = side;
	pair->error = 0;
	pair->ready_count = 0;
	pair->may_go = 0;
	pair->pass.put_count = 0;
	pair->pass.taken_count = 0;
	rc = -pthread_create(out_thread, NULL, body, pair);
	if (rc != 0) {
		report_line("cannot start a thread: %s", report_reason(rc));
		return rc;
	}
	meet(pair);
	return 0;
}

static int end_beside(struct pair *pair, pthread_t thread, int rc)
{
	__atomic_store_n(&pair->may_go, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (rc == 0 && pair->error != 0) {
		rc = pair->error;
		report_line("the other thread fails: %s", report_reason(rc));
	}
	return rc;
}

static int pair_run_two(void *state, enum bench_side side, struct samples *out_figures)
{
	struct pair *pair = state;
	pthread_t thread;
	int rc;

	if (side != BENCH_OURS) {
		return pools_take_figures(&pair->pools, pools_use_ours, out_figures);
	}
	rc = begin_beside(pair, side, use_beside, &thread);
	return rc != 0 ? rc
		       : end_beside(pair, thread,
				 pools_take_figures(&pair->pools, pools_use_ours, out_figures));
}

static int pair_run_pass(void *state, enum bench_side side, struct samples *out_figures)
{
	struct pair *pair = state;
	uint32_t number = 0;
	pthread_t thread;
	int rc = begin_beside(pair, side, give_passed, &thread);

	if (rc != 0) {
		return rc;
	}
	for (uint32_t i = 0; i < POOL_FIGURES; i++) {
		uint64_t start_ns = bench_now_ns();

		for (uint32_t j = 0; j < POOL_PAIRS; j++) {
			pass_one(pair, number);
			number++;
		}
		if (rc == 0) {
			rc = samples_add(
				out_figures, (double)(bench_now_ns() - start_ns) / POOL_PAIRS);
		}
	}
	return end_beside(pair, thread, rc);
}

const struct bench_subject bench_pool_two = {
	.name = "pool_two",
	.unit = "ns",
	.brief = "as pool, by two threads at once, each with a cache, against one alone",
	.sides = {[BENCH_OURS] = "two-threads", [BENCH_FLOOR] = "one-thread"},
	.variant = &(const struct pair_way){.buffer_count = POOL_BUFFERS},
	.start = pair_start,
	.run = pair_run_two,
	.stop = pair_stop,
};

const struct bench_subject bench_pool_pass = {
	.name = "pool_pass",
	.unit = "ns",
	.brief = "a buffer taken by one thread and given back by another, against a bounded queue",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "mpmc-queue"},
	.variant = &(const struct pair_way){.buffer_count = POOL_BUFFERS},
	.start = pair_start,
	.run = pair_run_pass,
	.stop = pair_stop,
};

/* All buffers end up with the other thread, which takes none itself. */
const struct bench_subject bench_pool_steal = {
	.name = "pool_steal",
	.unit = "ns",
	.brief = "as pool, where only the other thread's cache has buffers, against a bare theft",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "bare-theft"},
	.variant = &(const struct pair_way){.buffer_count = STEAL_BUFFERS, .has_deque = true},
	.start = pair_start,
	.run = pair_run_pass,
	.stop = pair_stop,
};
