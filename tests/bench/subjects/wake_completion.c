/* SPDX-License-Identifier: MIT */
/*
 * The subject `wake_completion`: from write(2) into a pipe to the first
 * instruction of the task whose read it completes, on a worker that sleeps in
 * its ring; against a bare thread that sleeps in a ring of its own. Either is
 * woken only once the kernel says that it sleeps.
 */
#include "tools/bench/pending.h"
#include "tools/bench/place.h"
#include "tools/bench/rawring.h"
#include "tools/bench/sleeper.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

enum { COMPLETION_FIGURES = 32 /* of one turn */ };

/*
 * How many bytes were written so far, by all. The kernel orders the byte after
 * earlier writes, which the memory model of C does not know, so an atomic says
 * it: the writer adds first, and the reader of the byte loads it before it
 * answers.
 */
static uint32_t asked_count;

static void answer(struct sleeper *sleeper)
{
	(void)__atomic_load_n(&asked_count, __ATOMIC_ACQUIRE);
	sleeper_answer(sleeper);
}

/* Sleeps in a ring until a byte comes, and answers. */
struct bare_reader {
	struct sleeper sleeper;
	pthread_t thread;
	bool has_thread;
	int pipe[2];
	int error; /* valid when it has ended */
};

struct completion {
	struct pinion_runtime *runtime;
	struct bench_pending pending;
	struct sleeper worker;
	struct pinion_task turn;
	uint32_t done;
	int error;
	struct bare_reader bare;
	struct bench_place place;
};

/* ---- ours ---- */

static int read_done(struct pinion_task *task)
{
	struct completion *completion = (struct completion *)(void *)((char *)task -
		offsetof(struct completion, pending.request.task));
	int rc;

	answer(&completion->worker);
	/* Anything else, a cancel above all, is the end of it. */
	if (completion->pending.request.result != 1) {
		return 0;
	}
	rc = bench_pending_submit(&completion->pending, completion->runtime);
	if (rc != 0) {
		__atomic_store_n(&completion->error, rc, __ATOMIC_RELEASE);
	}
	return 0;
}

static int submit_turn(struct pinion_task *task)
{
	struct completion *completion =
		(struct completion *)(void *)((char *)task - offsetof(struct completion, turn));

	__atomic_store_n(&completion->error,
		bench_pending_submit(&completion->pending, completion->runtime), __ATOMIC_RELEASE);
	sleeper_answer(&completion->worker); /* publishes its thread id */
	bench_word_raise(&completion->done);
	return 0;
}

/* ---- the floor ---- */

static void *bare_main(void *arg)
{
	struct bare_reader *bare = arg;
	struct rawring *rawring;
	int rc = rawring_create(1, 0, NULL, &rawring);

	__atomic_store_n(&bare->error, rc, __ATOMIC_RELEASE);
	sleeper_answer(&bare->sleeper);
	if (rc != 0) {
		return NULL;
	}
	while ((rc = rawring_await_byte(rawring, bare->pipe[0])) == 1) {
		answer(&bare->sleeper);
	}
	__atomic_store_n(&bare->error, rc, __ATOMIC_RELEASE);
	answer(&bare->sleeper); /* also after an error: a thread may wait */
	rawring_destroy(rawring);
	return NULL;
}

static int bare_start(struct bare_reader *bare)
{
	int rc = pipe2(bare->pipe, O_CLOEXEC) != 0 ? -errno : 0;

	if (rc != 0) {
		report_line("cannot make a pipe: %s", report_reason(rc));
		return rc;
	}
	rc = -pthread_create(&bare->thread, NULL, bare_main, bare);
	bare->has_thread = rc == 0;
	if (rc == 0) {
		rc = bench_word_wait(&bare->sleeper.answers, 0);
		rc = rc == 0 ? __atomic_load_n(&bare->error, __ATOMIC_ACQUIRE) : rc;
	}
	if (rc != 0 && rc != -ECANCELED) {
		report_line("cannot start a bare ring: %s", report_reason(rc));
	}
	return rc;
}

static void bare_stop(struct bare_reader *bare)
{
	if (bare->pipe[1] >= 0) {
		__atomic_fetch_add(&asked_count, 1, __ATOMIC_RELEASE);
		close(bare->pipe[1]);
	}
	if (bare->has_thread) {
		pthread_join(bare->thread, NULL);
	}
	if (bare->pipe[0] >= 0) {
		close(bare->pipe[0]);
	}
	sleeper_fini(&bare->sleeper);
}

/* ---- the subject ---- */

/* From the byte to the answer. */
static int take_figure(
	struct completion *completion, enum bench_side side, struct samples *out_figures)
{
	bool is_ours = side == BENCH_OURS;
	struct sleeper *sleeper = is_ours ? &completion->worker : &completion->bare.sleeper;
	int fd = is_ours ? completion->pending.write_fd : completion->bare.pipe[1];
	uint32_t answers = bench_word_read(&sleeper->answers);
	int rc = sleeper_wait_asleep(sleeper);
	uint64_t start_ns;

	__atomic_fetch_add(&asked_count, 1, __ATOMIC_RELEASE);
	start_ns = bench_now_ns();
	if (rc == 0 && write(fd, "", 1) != 1) {
		rc = -errno;
		report_line("cannot write to a pipe: %s", report_reason(rc));
	}
	if (rc == 0) {
		rc = bench_word_wait(&sleeper->answers, answers);
	}
	return rc == 0 ? samples_add(out_figures, (double)(sleeper->woken_ns - start_ns) / 1000)
		       : rc;
}

static int completion_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct completion *completion = state;
	int rc = 0;

	for (int i = 0; rc == 0 && i < COMPLETION_FIGURES; i++) {
		rc = take_figure(completion, side, out_figures);
		if (rc == 0) {
			rc = __atomic_load_n(&completion->error, __ATOMIC_ACQUIRE);
		}
	}
	return rc;
}

static void completion_stop(void *state)
{
	struct completion *completion = state;

	pinion_runtime_destroy(completion->runtime);
	bench_pending_close(&completion->pending);
	bare_stop(&completion->bare);
	bench_place_restore(&completion->place);
	sleeper_fini(&completion->worker);
	free(completion);
}

static int start_all(
	struct completion *completion, struct bench *bench, struct bench_setting *out_setting)
{
	int rc = bench_start_workers(bench, 1, out_setting, &completion->runtime);

	if (rc == 0) {
		rc = bench_require_rings(bench->subject, out_setting);
	}
	if (rc == 0) {
		rc = bench_pending_open(&completion->pending);
	}
	if (rc == 0) {
		completion->pending.request.task.run = read_done;
		completion->pending.request.length_bytes = 1; /* a part is read on */
		rc = bench_run_turn(completion->runtime, &completion->turn, &completion->done);
		rc = rc == 0 ? __atomic_load_n(&completion->error, __ATOMIC_ACQUIRE) : rc;
	}
	return rc == 0 ? bare_start(&completion->bare) : rc;
}

static int completion_start(
	struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct completion *completion = bench_allocate(sizeof(*completion));
	int rc;

	if (completion == NULL) {
		return -ENOMEM;
	}
	completion->turn.run = submit_turn;
	sleeper_init(&completion->worker);
	sleeper_init(&completion->bare.sleeper);
	completion->bare.pipe[0] = -1;
	completion->bare.pipe[1] = -1;
	rc = start_all(completion, bench, out_setting);
	if (rc != 0) {
		completion_stop(completion);
		return rc;
	}
	bench_place_together(completion->bare.sleeper.thread_id, completion->worker.thread_id);
	bench_place_apart(&completion->place, completion->worker.thread_id);
	*out_state = completion;
	return 0;
}

const struct bench_subject bench_wake_completion = {
	.name = "wake_completion",
	.unit = "us",
	.brief = "from the end of a read to its task on a sleeping worker, against a bare ring",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "io_uring-by-hand"},
	.start = completion_start,
	.run = completion_run,
	.stop = completion_stop,
};
