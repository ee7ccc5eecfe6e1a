/* SPDX-License-Identifier: MIT */
/*
 * Buffers of a pool against those of a bounded queue, and the subject `pool`.
 */
#include "tools/bench/pool.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stdlib.h>

bool pools_use_ours(struct pools *pools)
{
	for (uint32_t i = 0; i < POOL_PAIRS; i++) {
		struct pinion_buffer buffer;

		if (!pools_take(pools, &buffer) || !pools_give(pools, &buffer)) {
			return false;
		}
	}
	return true;
}

static bool use_queue(struct pools *pools)
{
	for (uint32_t i = 0; i < POOL_PAIRS; i++) {
		struct pinion_task *item = bench_mpmc_pop(&pools->queue);

		if (item == NULL || !bench_mpmc_push(&pools->queue, item)) {
			return false;
		}
	}
	return true;
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

int pools_init(struct pools *pools, const struct pool_way *way, struct bench_setting *out_setting)
{
	int rc = create_pool(way, &pools->pool);

	bench_mpmc_init(&pools->queue);
	for (uint32_t i = 0; i < way->buffer_count; i++) {
		(void)bench_mpmc_push(&pools->queue, &pools->items[i]);
	}
	bench_setting_add(
		out_setting, "%u buffers of %d KiB", way->buffer_count, POOL_BUFFER_BYTES >> 10);
	return rc;
}

void pools_fini(struct pools *pools)
{
	if (pools->pool != NULL) {
		pinion_pool_detach(pools->pool);
	}
	pinion_pool_destroy(pools->pool);
}

int pools_take_figures(
	struct pools *pools, bool (*use)(struct pools *pools), struct samples *out_figures)
{
	for (uint32_t i = 0; i < POOL_FIGURES; i++) {
		uint64_t start_ns = bench_now_ns();
		int rc;

		if (!use(pools)) {
			report_line("a buffer was not there");
			return -EAGAIN;
		}
		rc = samples_add(out_figures, (double)(bench_now_ns() - start_ns) / POOL_PAIRS);
		if (rc != 0) {
			return rc;
		}
	}
	return 0;
}

void pool_stop(void *state)
{
	struct pools *pools = state;

	pools_fini(pools);
	free(pools);
}

int pool_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct pools *pools = bench_allocate(sizeof(*pools));
	int rc;

	if (pools == NULL) {
		return -ENOMEM;
	}
	rc = pools_init(pools, bench->subject->variant, out_setting);
	if (rc != 0) {
		pool_stop(pools);
		return rc;
	}
	*out_state = pools;
	return 0;
}

int pool_run(void *state, enum bench_side side, struct samples *out_figures)
{
	return pools_take_figures(
		state, side == BENCH_OURS ? pools_use_ours : use_queue, out_figures);
}

const struct bench_subject bench_pool = {
	.name = "pool",
	.unit = "ns",
	.brief = "a buffer taken and given back by a thread with a cache, against a bounded queue",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "mpmc-queue"},
	.variant = &(const struct pool_way){.buffer_count = POOL_BUFFERS},
	.start = pool_start,
	.run = pool_run,
	.stop = pool_stop,
};
