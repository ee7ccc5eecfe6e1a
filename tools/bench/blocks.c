/* SPDX-License-Identifier: MIT */
/*
 * Turns of reading or writing blocks, on the workers' threads.
 */
#include "tools/bench/blocks.h"

#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <unistd.h>

_Static_assert(offsetof(struct blocks_chain, request.task) == 0, "a cast leads back");
_Static_assert(offsetof(struct blocks_worker, turn) == 0, "a cast leads back");

static void end_turn(struct blocks_worker *worker)
{
	struct blocks *owner = worker->owner;

	worker->end_ns = bench_now_ns();
	if (__atomic_add_fetch(&owner->ended_count, 1, __ATOMIC_ACQ_REL) == owner->worker_count) {
		bench_word_raise(&owner->done);
	}
}

/* ---- ours ---- */

static int submit_next(struct blocks_chain *chain)
{
	struct blocks_worker *worker = chain->worker;
	uint32_t file_index;
	int rc;

	chain->request.offset_bytes = placing_next(&worker->placing, &file_index);
	chain->request.file = &worker->owner->files[file_index];
	rc = pinion_request_submit(worker->owner->runtime, &chain->request);
	if (rc == 0) {
		worker->unbegun_count--;
	}
	return rc;
}

static int chain_done(struct pinion_task *task)
{
	struct blocks_chain *chain = (struct blocks_chain *)(void *)task;
	struct blocks_worker *worker = chain->worker;

	if (chain->request.result != (int32_t)worker->owner->block_bytes) {
		worker->error = chain->request.result < 0 ? (int)chain->request.result : -EIO;
	}
	if (worker->error == 0 && worker->unbegun_count > 0) {
		worker->error = submit_next(chain);
		if (worker->error == 0) {
			return 0;
		}
	}
	worker->in_flight_count--;
	if (worker->in_flight_count == 0) {
		end_turn(worker);
	}
	return 0;
}

static int acquire_buffers(struct blocks_worker *worker)
{
	struct blocks *owner = worker->owner;

	for (uint32_t i = 0; i < owner->depth_count; i++) {
		struct pinion_request *request = &worker->chains[i].request;
		struct pinion_buffer buffer;
		int rc = pinion_buffer_acquire(owner->runtime, owner->block_bytes, &buffer);

		if (rc != 0) {
			return rc;
		}
		request->task.run = chain_done;
		request->op = owner->plan->is_written ? PINION_OP_WRITE : PINION_OP_READ;
		request->length_bytes = owner->block_bytes;
		request->bytes = buffer.bytes;
		fileset_fill(buffer.bytes, owner->block_bytes, i + 1);
	}
	worker->has_buffers = true;
	return 0;
}

static int begin_ours(struct blocks_worker *worker)
{
	struct blocks *owner = worker->owner;
	int rc = worker->has_buffers ? 0 : acquire_buffers(worker);

	worker->unbegun_count = owner->turn_count;
	worker->in_flight_count = 0;
	worker->start_ns = bench_now_ns();
	for (uint32_t i = 0; rc == 0 && i < owner->depth_count; i++) {
		rc = submit_next(&worker->chains[i]);
		worker->in_flight_count += rc == 0 ? 1 : 0;
	}
	return rc;
}

/* ---- the others ---- */

static int go_one_by_one(struct blocks_worker *worker)
{
	struct blocks *owner = worker->owner;

	worker->start_ns = bench_now_ns();
	for (uint32_t i = 0; i < owner->turn_count; i++) {
		uint32_t file_index;
		off_t offset_bytes = (off_t)placing_next(&worker->placing, &file_index);
		int fd = owner->plan->is_cached ? owner->cached_fds[file_index]
						: owner->set->files[file_index].fd;
		ssize_t count = owner->plan->is_written
			? pwrite(fd, worker->block, owner->block_bytes, offset_bytes)
			: pread(fd, worker->block, owner->block_bytes, offset_bytes);

		if (count != (ssize_t)owner->block_bytes) {
			return count < 0 ? -errno : -EIO;
		}
		if (signals_interrupted()) {
			return -ECANCELED;
		}
	}
	return 0;
}

static int go_by_ring(struct blocks_worker *worker)
{
	struct blocks *owner = worker->owner;
	int rc = 0;

	if (worker->rawring == NULL) {
		rc = rawring_create(
			owner->depth_count, owner->block_bytes, owner->set, &worker->rawring);
	}
	worker->start_ns = bench_now_ns();
	return rc != 0 ? rc
		       : rawring_blocks(worker->rawring, &worker->placing, owner->turn_count,
				 owner->plan->is_written);
}

static int take_turn(struct pinion_task *task)
{
	struct blocks_worker *worker = (struct blocks_worker *)(void *)task;
	const struct blocks *owner = worker->owner;

	if (owner->side == BENCH_OURS) {
		worker->error = begin_ours(worker);
		if (worker->in_flight_count > 0) {
			return 0;
		}
	} else if (owner->side == BENCH_FLOOR && !owner->plan->is_cached) {
		worker->error = go_by_ring(worker);
	} else {
		worker->error = go_one_by_one(worker);
	}
	end_turn(worker);
	return 0;
}

/* ---- a turn of all ---- */

int blocks_begin(struct blocks *blocks, enum bench_side side)
{
	blocks->side = side;
	effort_begin(&blocks->effort, blocks->runtime);
	blocks->done_before = bench_word_read(&blocks->done);
	blocks->ended_count = 0;
	for (uint32_t i = 0; i < blocks->worker_count; i++) {
		int rc;

		blocks->workers[i].turn.run = take_turn;
		rc = pinion_task_spawn_on(
			blocks->runtime, blocks->plan->first_index + i, &blocks->workers[i].turn);
		if (rc != 0) {
			report_line("cannot spawn: %s", report_reason(rc));
			return rc;
		}
	}
	return 0;
}

bool blocks_has_ended(const struct blocks *blocks)
{
	return bench_word_read(&blocks->done) != blocks->done_before;
}

/* In GB/s, or in thousands a second. */
static double rate(const struct blocks *blocks, uint64_t elapsed_ns)
{
	double count = (double)blocks->turn_count * blocks->worker_count;

	return blocks->plan->is_sequential ? count * blocks->block_bytes / (double)elapsed_ns
					   : 1e6 * count / (double)elapsed_ns;
}

int blocks_end(struct blocks *blocks, double *out_rate)
{
	uint64_t start_ns = UINT64_MAX;
	uint64_t end_ns = 0;
	int rc = bench_word_wait(&blocks->done, blocks->done_before);

	effort_end(&blocks->effort, blocks->runtime, blocks->side,
		(uint64_t)blocks->turn_count * blocks->worker_count * blocks->block_bytes);
	for (uint32_t i = 0; rc == 0 && i < blocks->worker_count; i++) {
		const struct blocks_worker *worker = &blocks->workers[i];

		start_ns = worker->start_ns < start_ns ? worker->start_ns : start_ns;
		end_ns = worker->end_ns > end_ns ? worker->end_ns : end_ns;
		rc = worker->error;
		if (rc != 0 && rc != -ECANCELED) {
			report_line("cannot %s: %s", blocks->plan->is_written ? "write" : "read",
				report_reason(rc));
		}
	}
	if (rc == 0) {
		*out_rate = rate(blocks, end_ns - start_ns);
	}
	return rc;
}

int blocks_run(void *state, enum bench_side side, struct samples *out_figures)
{
	double rate_now;
	int rc = blocks_begin(state, side);

	rc = rc == 0 ? blocks_end(state, &rate_now) : rc;
	return rc == 0 ? samples_add(out_figures, rate_now) : rc;
}

uint32_t blocks_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct blocks *blocks = state;

	return effort_further(&blocks->effort, further);
}
