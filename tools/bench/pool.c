/* SPDX-License-Identifier: MIT */
/*
 * The subjects about pools: what a buffer costs, taken and given back, by a
 * thread with a cache of its own, in a pool that is exact as well, by one
 * without, by two at once, and by two of which one takes and the other gives
 * back. The floor keeps the same buffers in a bare bounded queue or a bare
 * deque, or asks malloc each time.
 */
#include "tools/bench/chaselev.h"
#include "tools/bench/mpmc.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <stdlib.h>

enum {
	POOL_BUFFERS = 64,
	POOL_BUFFER_BYTES = 64 << 10,
	POOL_PAIRS = 50000, /* of one figure */
	POOL_FIGURES = 8,   /* of one turn */
	PASS_PLACES = 256,  /* on the way from one thread to the other */
	STEAL_BUFFERS = 8,  /* few enough for one thread's cache to hold them all */
};

/* What tells one subject from another. */
struct pool_way {
	uint32_t thread_count; /* each on a CPU of its own */
	uint32_t buffer_count;
	bool is_outside; /* the thread has no cache */
	bool has_deque;	 /* in place of the queue */
};

/* One thread puts in, the other takes out. */
struct pass {
	struct pinion_buffer places[PASS_PLACES];
	uint32_t put_count BENCH_LINE_ALIGNED;
	uint32_t taken_count BENCH_LINE_ALIGNED;
};

struct pools {
	struct pinion_pool *pool;
	struct bench_mpmc queue;
	struct bench_chaselev deque; /* the one who gives back pushes */
	bool has_deque;		     /* in place of the queue */
	struct pass pass;
	/* One is counted up by each thread that is ready, one lets them go. */
	uint32_t ready_count BENCH_LINE_ALIGNED;
	uint32_t may_go;
	enum bench_side side;
	int error; /* of the other thread */
};

/* ---- one use, by each side ---- */

static bool take_ours(struct pools *pools, struct pinion_buffer *out_buffer)
{
	return pinion_pool_try_acquire(pools->pool, out_buffer) == 0;
}

static bool give_ours(struct pools *pools, struct pinion_buffer *buffer)
{
	return pinion_pool_release(pools->pool, buffer) == 0;
}

static bool take_queued(struct pools *pools, struct pinion_buffer *out_buffer)
{
	out_buffer->bytes = pools->has_deque ? (uint8_t *)bench_chaselev_steal(&pools->deque)
					     : (uint8_t *)bench_mpmc_pop(&pools->queue);
	return out_buffer->bytes != NULL;
}

static bool give_queued(struct pools *pools, struct pinion_buffer *buffer)
{
	struct pinion_task *item = (struct pinion_task *)(void *)buffer->bytes;

	if (pools->has_deque) {
		bench_chaselev_push(&pools->deque, item);
		return true;
	}
	return bench_mpmc_push(&pools->queue, item);
}

static bool use_ours(struct pools *pools)
{
	for (uint32_t i = 0; i < POOL_PAIRS; i++) {
		struct pinion_buffer buffer;

		if (!take_ours(pools, &buffer) || !give_ours(pools, &buffer)) {
			return false;
		}
	}
	return true;
}

static bool use_queue(struct pools *pools)
{
	for (uint32_t i = 0; i < POOL_PAIRS; i++) {
		struct pinion_buffer buffer;

		if (!take_queued(pools, &buffer) || !give_queued(pools, &buffer)) {
			return false;
		}
	}
	return true;
}

static bool use_malloc(struct pools *pools)
{
	(void)pools;
	for (uint32_t i = 0; i < POOL_PAIRS; i++) {
		void *volatile bytes = malloc(POOL_BUFFER_BYTES);

		if (bytes == NULL) {
			return false;
		}
		free(bytes);
	}
	return true;
}

/* ---- making and ending ---- */

static void pool_stop(void *state)
{
	struct pools *pools = state;

	if (pools->pool != NULL) {
		pinion_pool_detach(pools->pool);
	}
	pinion_pool_destroy(pools->pool);
	free(pools);
}

static int create_pool(const struct pool_way *way, struct pinion_pool **out_pool)
{
	struct pinion_pool_config config;
	int rc;

	pinion_pool_config_init(&config);
	config.worker_count = 2;
	config.local_count = POOL_BUFFERS / 4;
	config.buffer_count = way->buffer_count;
	config.buffer_bytes = POOL_BUFFER_BYTES;
	rc = pinion_pool_create(NULL, &config, out_pool);
	if (rc != 0) {
		report_line("cannot create a pool: %s", report_reason(rc));
		return rc;
	}
	if (!way->is_outside) {
		rc = pinion_pool_attach(*out_pool);
	}
	if (rc != 0) {
		report_line("cannot attach to a pool: %s", report_reason(rc));
	}
	return rc;
}

static int pool_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct pool_way *way = bench->subject->variant;
	struct pools *pools;
	int rc = way->thread_count == 1 ? 0 : bench_require_cpus(bench->subject, way->thread_count);

	if (rc != 0) {
		return rc;
	}
	pools = bench_allocate(sizeof(*pools));
	if (pools == NULL) {
		return -ENOMEM;
	}
	rc = create_pool(way, &pools->pool);
	if (rc != 0) {
		pool_stop(pools);
		return rc;
	}
	pools->has_deque = way->has_deque;
	bench_mpmc_init(&pools->queue);
	for (uint32_t i = 0; i < way->buffer_count; i++) {
		/* They are told apart, never touched. */
		struct pinion_buffer buffer = {.bytes = (uint8_t *)&pools->pass.places[i]};

		(void)give_queued(pools, &buffer);
	}
	bench_setting_add(
		out_setting, "%u buffers of %d KiB", way->buffer_count, POOL_BUFFER_BYTES >> 10);
	*out_state = pools;
	return 0;
}

static int take_figures(
	struct pools *pools, bool (*use)(struct pools *pools), struct figures *out_figures)
{
	for (uint32_t i = 0; i < POOL_FIGURES; i++) {
		uint64_t start_ns = bench_now_ns();
		int rc;

		if (!use(pools)) {
			report_line("a buffer was not there");
			return -EAGAIN;
		}
		rc = figures_add(out_figures, (double)(bench_now_ns() - start_ns) / POOL_PAIRS);
		if (rc != 0) {
			return rc;
		}
	}
	return 0;
}

static int pool_run(void *state, enum bench_side side, struct figures *out_figures)
{
	return take_figures(state, side == BENCH_OURS ? use_ours : use_queue, out_figures);
}

static int pool_run_malloc(void *state, enum bench_side side, struct figures *out_figures)
{
	return take_figures(state, side == BENCH_OURS ? use_ours : use_malloc, out_figures);
}

/* ---- two threads ---- */

static void wait_for(const uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
		bench_relax();
	}
}

/* Both begin at the same moment. */
static void meet(struct pools *pools)
{
	__atomic_fetch_add(&pools->ready_count, 1, __ATOMIC_ACQ_REL);
	wait_for(&pools->ready_count, 2);
}

static void *use_beside(void *arg)
{
	struct pools *pools = arg;
	int rc = pinion_pool_attach(pools->pool);

	meet(pools);
	while (rc == 0 && __atomic_load_n(&pools->may_go, __ATOMIC_ACQUIRE) == 0) {
		rc = use_ours(pools) ? 0 : -EAGAIN;
	}
	pinion_pool_detach(pools->pool);
	pools->error = rc;
	return NULL;
}

static void give_one(struct pools *pools, struct pinion_buffer *buffer)
{
	bool is_given =
		pools->side == BENCH_OURS ? give_ours(pools, buffer) : give_queued(pools, buffer);

	if (!is_given) {
		pools->error = -EINVAL;
	}
}

static void *give_passed(void *arg)
{
	struct pools *pools = arg;
	struct pass *pass = &pools->pass;
	uint32_t total = POOL_PAIRS * POOL_FIGURES;

	pools->error = pinion_pool_attach(pools->pool);
	meet(pools);
	for (uint32_t i = 0; i < total; i++) {
		wait_for(&pass->put_count, i + 1);
		give_one(pools, &pass->places[i % PASS_PLACES]);
		__atomic_store_n(&pass->taken_count, i + 1, __ATOMIC_RELEASE);
	}
	pinion_pool_detach(pools->pool);
	return NULL;
}

static void pass_one(struct pools *pools, uint32_t number)
{
	struct pinion_buffer buffer;

	while (pools->side == BENCH_OURS ? !take_ours(pools, &buffer)
					 : !take_queued(pools, &buffer)) {
		bench_relax();
	}
	if (number >= PASS_PLACES) {
		wait_for(&pools->pass.taken_count, number - PASS_PLACES + 1);
	}
	pools->pass.places[number % PASS_PLACES] = buffer;
	__atomic_store_n(&pools->pass.put_count, number + 1, __ATOMIC_RELEASE);
}

static int begin_beside(
	struct pools *pools, enum bench_side side, void *(*body)(void *), pthread_t *out_thread)
{
	int rc;

	pools->side = side;
	pools->error = 0;
	pools->ready_count = 0;
	pools->may_go = 0;
	pools->pass.put_count = 0;
	pools->pass.taken_count = 0;
	rc = -pthread_create(out_thread, NULL, body, pools);
	if (rc != 0) {
		report_line("cannot start a thread: %s", report_reason(rc));
		return rc;
	}
	meet(pools);
	return 0;
}

static int end_beside(struct pools *pools, pthread_t thread, int rc)
{
	__atomic_store_n(&pools->may_go, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (rc == 0 && pools->error != 0) {
		rc = pools->error;
		report_line("the other thread fails: %s", report_reason(rc));
	}
	return rc;
}

static int pool_run_two(void *state, enum bench_side side, struct figures *out_figures)
{
	struct pools *pools = state;
	pthread_t thread;
	int rc;

	if (side != BENCH_OURS) {
		return take_figures(pools, use_ours, out_figures);
	}
	rc = begin_beside(pools, side, use_beside, &thread);
	return rc != 0 ? rc : end_beside(pools, thread, take_figures(pools, use_ours, out_figures));
}

static int pool_run_pass(void *state, enum bench_side side, struct figures *out_figures)
{
	struct pools *pools = state;
	uint32_t number = 0;
	pthread_t thread;
	int rc = begin_beside(pools, side, give_passed, &thread);

	if (rc != 0) {
		return rc;
	}
	for (uint32_t i = 0; i < POOL_FIGURES; i++) {
		uint64_t start_ns = bench_now_ns();

		for (uint32_t j = 0; j < POOL_PAIRS; j++) {
			pass_one(pools, number);
			number++;
		}
		if (rc == 0) {
			rc = figures_add(
				out_figures, (double)(bench_now_ns() - start_ns) / POOL_PAIRS);
		}
	}
	return end_beside(pools, thread, rc);
}

const struct bench_subject bench_pool = {
	.name = "pool",
	.unit = "ns",
	.brief = "a buffer taken and given back by a thread with a cache, against a bounded queue",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "mpmc-queue"},
	.variant = &(const struct pool_way){.thread_count = 1, .buffer_count = POOL_BUFFERS},
	.start = pool_start,
	.run = pool_run,
	.stop = pool_stop,
};

const struct bench_subject bench_pool_outside = {
	.name = "pool_outside",
	.unit = "ns",
	.brief = "likewise by a thread without a cache, against a bounded queue",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "mpmc-queue"},
	.variant =
		&(const struct pool_way){
			.thread_count = 1, .buffer_count = POOL_BUFFERS, .is_outside = true},
	.start = pool_start,
	.run = pool_run,
	.stop = pool_stop,
};

const struct bench_subject bench_pool_malloc = {
	.name = "pool_malloc",
	.unit = "ns",
	.brief = "likewise by a thread with a cache, against malloc and free of 64 KiB",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "malloc"},
	.variant = &(const struct pool_way){.thread_count = 1, .buffer_count = POOL_BUFFERS},
	.start = pool_start,
	.run = pool_run_malloc,
	.stop = pool_stop,
};

const struct bench_subject bench_pool_two = {
	.name = "pool_two",
	.unit = "ns",
	.brief = "likewise by two threads at once, each with a cache, against one alone",
	.sides = {[BENCH_OURS] = "two-threads", [BENCH_FLOOR] = "one-thread"},
	.variant = &(const struct pool_way){.thread_count = 2, .buffer_count = POOL_BUFFERS},
	.start = pool_start,
	.run = pool_run_two,
	.stop = pool_stop,
};

const struct bench_subject bench_pool_pass = {
	.name = "pool_pass",
	.unit = "ns",
	.brief = "a buffer taken by one thread and given back by another, against a bounded queue",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "mpmc-queue"},
	.variant = &(const struct pool_way){.thread_count = 2, .buffer_count = POOL_BUFFERS},
	.start = pool_start,
	.run = pool_run_pass,
	.stop = pool_stop,
};

/* All buffers end up with the other thread, which takes none itself. */
const struct bench_subject bench_pool_steal = {
	.name = "pool_steal",
	.unit = "ns",
	.brief =
		"likewise when nothing is free but what the other thread has, against a bare theft",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "bare-theft"},
	.variant =
		&(const struct pool_way){
			.thread_count = 2, .buffer_count = STEAL_BUFFERS, .has_deque = true},
	.start = pool_start,
	.run = pool_run_pass,
	.stop = pool_stop,
};
