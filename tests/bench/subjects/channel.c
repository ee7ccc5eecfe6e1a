/* SPDX-License-Identifier: MIT */
/*
 * The subjects `channel`, a message sent and received by one thread, and
 * `channel_pass`, sent by one and received by another. The floor is a bounded
 * queue of pointers that any number of threads may use, but no thread can sleep
 * on. Messages are as large as a pointer, so that both sides copy the same.
 */
#include "tools/bench/mpmc.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum {
	CHANNEL_FIGURES = 16, /* of one turn */
	/* Messages of one figure, and how many of them are in it at a time. */
	CHANNEL_MESSAGES = 4096,
	CHANNEL_STRIDE = 64,
	/* Checks before the CPU is offered to the other thread. */
	CHANNEL_SPIN_COUNT = 2000,
};

_Static_assert(CHANNEL_MESSAGES % CHANNEL_STRIDE == 0, "whole strides");

struct channels {
	struct pinion_channel channel;
	struct bench_mpmc queue;
	struct pinion_task *messages[BENCH_MPMC_CELLS];
	struct pinion_task task; /* what pointers point to; never run */
	enum bench_side side;
	struct samples *samples; /* of the thread that receives */
	int error;
	uint32_t is_over; /* waiting threads give up */
};

static bool send_one(struct channels *channels, struct pinion_task *message)
{
	return channels->side == BENCH_OURS
		? pinion_channel_try_send(&channels->channel, &message) == 0
		: bench_mpmc_push(&channels->queue, message);
}

static bool receive_one(struct channels *channels)
{
	struct pinion_task *message;

	if (channels->side == BENCH_OURS) {
		return pinion_channel_try_receive(&channels->channel, &message) == 0;
	}
	return bench_mpmc_pop(&channels->queue) != NULL;
}

/* ---- one thread ---- */

static bool go_through(struct channels *channels)
{
	for (uint32_t i = 0; i < CHANNEL_MESSAGES; i += CHANNEL_STRIDE) {
		bool is_whole = true;

		for (uint32_t j = 0; j < CHANNEL_STRIDE; j++) {
			is_whole &= send_one(channels, &channels->task);
		}
		for (uint32_t j = 0; j < CHANNEL_STRIDE; j++) {
			is_whole &= receive_one(channels);
		}
		if (!is_whole) {
			return false;
		}
	}
	return true;
}

static int channel_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct channels *channels = state;
	int rc = 0;

	channels->side = side;
	for (int i = 0; rc == 0 && i < CHANNEL_FIGURES; i++) {
		uint64_t start_ns = bench_now_ns();

		if (!go_through(channels)) {
			report_line("a message was lost");
			return -EIO;
		}
		rc = samples_add(
			out_figures, (double)(bench_now_ns() - start_ns) / CHANNEL_MESSAGES);
	}
	return rc;
}

/* ---- two threads ---- */

/* False: it is over. */
static bool retry(const struct channels *channels, uint32_t *spins)
{
	bench_relax();
	if (++*spins % CHANNEL_SPIN_COUNT == 0) {
		sched_yield();
		return __atomic_load_n(&channels->is_over, __ATOMIC_ACQUIRE) == 0 &&
			!signals_interrupted();
	}
	return true;
}

static bool receive_figure(struct channels *channels)
{
	for (uint32_t i = 0; i < CHANNEL_MESSAGES; i++) {
		uint32_t spins = 0;

		while (!receive_one(channels)) {
			if (!retry(channels, &spins)) {
				return false;
			}
		}
	}
	return true;
}

static void *receive_all(void *arg)
{
	struct channels *channels = arg;

	for (int i = 0; channels->error == 0 && i < CHANNEL_FIGURES; i++) {
		uint64_t start_ns = bench_now_ns();

		if (receive_figure(channels)) {
			channels->error = samples_add(channels->samples,
				(double)(bench_now_ns() - start_ns) / CHANNEL_MESSAGES);
		} else {
			channels->error = -ECANCELED;
		}
	}
	__atomic_store_n(&channels->is_over, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void send_all(struct channels *channels)
{
	for (uint32_t i = 0; i < CHANNEL_FIGURES * CHANNEL_MESSAGES; i++) {
		uint32_t spins = 0;

		while (!send_one(channels, &channels->task)) {
			if (!retry(channels, &spins)) {
				return;
			}
		}
	}
}

static int pass_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct channels *channels = state;
	pthread_t thread;
	int rc;

	channels->side = side;
	channels->samples = out_figures;
	channels->error = 0;
	channels->is_over = 0;
	rc = -pthread_create(&thread, NULL, receive_all, channels);
	if (rc != 0) {
		report_line("cannot start a thread: %s", report_reason(rc));
		return rc;
	}
	send_all(channels);
	pthread_join(thread, NULL);
	return channels->error;
}

/* ---- the subjects ---- */

static void channel_stop(void *state)
{
	free(state);
}

static int channel_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct channels *channels = bench_allocate(sizeof(*channels));
	int rc;

	(void)bench;
	if (channels == NULL) {
		return -ENOMEM;
	}
	bench_mpmc_init(&channels->queue);
	rc = pinion_channel_init(&channels->channel, NULL, channels->messages,
		sizeof(channels->messages[0]), BENCH_MPMC_CELLS);
	if (rc != 0) {
		report_line("cannot make a channel: %s", report_reason(rc));
		free(channels);
		return rc;
	}
	bench_setting_add(out_setting, "room for %u messages", BENCH_MPMC_CELLS);
	*out_state = channels;
	return 0;
}

const struct bench_subject bench_channel = {
	.name = "channel",
	.unit = "ns",
	.brief = "a message sent and received by one thread, against a bounded queue",
	.sides = {[BENCH_OURS] = "pinion_channel", [BENCH_FLOOR] = "mpmc-queue"},
	.start = channel_start,
	.run = channel_run,
	.stop = channel_stop,
};

const struct bench_subject bench_channel_pass = {
	.name = "channel_pass",
	.unit = "ns",
	.brief = "a message sent by one thread and received by another, against a bounded queue",
	.sides = {[BENCH_OURS] = "pinion_channel", [BENCH_FLOOR] = "mpmc-queue"},
	.start = channel_start,
	.run = pass_run,
	.stop = channel_stop,
};
