/* SPDX-License-Identifier: MIT */
/*
 * The subject `classes`: what becomes of the reads of one class while a second
 * class saturates its own pool on the other half of the cores. The floor is the
 * same without the second class; beside it, the same with the second class's
 * work done by bare loops on the same threads, which shows the machine's own
 * part in a change. A figure is the p99 of one turn's reads, each from its
 * submission, by a thread on the class's own half, to its end.
 *
 * Further figures, of the same turns: by how much that p99 changes beside the
 * other class, and by how much it does where neither class has anything of
 * ours, a loop of the same reads on the first one's thread beside bare loops on
 * the second's, and the first of these by the other.
 *
 * The jobs of each class read blocks at random places of a file in memory of
 * its own and add up their words. So what the classes share is what two pools
 * cannot divide: the caches, the memory, and the kernel.
 */
#include "tools/bench/load.h"
#include "tools/bench/place.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	CLASSES_READS = 512, /* of one turn */
	CLASSES_BLOCK_BYTES = 4096,
	CLASSES_BLOCKS = 16, /* of one job */
	CLASSES_FILE_BYTES = 32 << 20,
	CLASSES_MAX_TASKS = 16, /* at once, of the class that is measured */
};

struct classes {
	int file;	/* in memory, of the class that is measured */
	int other_file; /* and of the other */
	struct bench_place place;
	/* The class that is measured. */
	struct pinion_runtime *own;
	struct pinion_admission admission;
	bool has_admission;
	struct pinion_job job;
	uint64_t random;
	uint32_t ended;	      /* jobs, raised */
	int error;	      /* of a job */
	uint64_t end_ns;      /* of the latest */
	struct samples reads; /* of the turn in hand */
	/* Without queues: a turn of reads in one task, and their p99s. */
	struct pinion_task bare_turn;
	uint32_t bare_done;
	struct samples bare_alone;
	struct samples bare_beside;
	struct samples alone; /* of the turns, for further samples */
	struct samples beside;
	/* The other. */
	struct pinion_runtime *other;
	struct load load;
};

/* What a job of either class does; a sum keeps the reads from being dropped. */
static int read_blocks(int file, uint64_t *random, uint64_t *out_sum)
{
	/* As large as a frame may be. */
	static _Thread_local uint64_t words[CLASSES_BLOCK_BYTES / sizeof(uint64_t)];

	*out_sum = 0;
	for (int i = 0; i < CLASSES_BLOCKS; i++) {
		uint64_t block = load_random_below(random, CLASSES_FILE_BYTES / sizeof(words));
		ssize_t count = pread(file, words, sizeof(words), (off_t)(block * sizeof(words)));

		if (count != (ssize_t)sizeof(words)) {
			return count < 0 ? -errno : -EIO;
		}
		for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++) {
			*out_sum += words[j];
		}
	}
	return 0;
}

/* A file of zeros: any other sum is a mistake. */
static int read_and_check(int file, uint64_t *random)
{
	uint64_t sum;
	int rc = read_blocks(file, random, &sum);

	return rc == 0 && sum != 0 ? -EIO : rc;
}

static int job_run(struct pinion_job *job)
{
	char *place = (char *)job;
	struct classes *classes = (struct classes *)(void *)(place - offsetof(struct classes, job));

	classes->error = read_and_check(classes->file, &classes->random);
	classes->end_ns = bench_now_ns();
	bench_word_raise(&classes->ended);
	return 0;
}

static int other_work(void *arg, uint64_t *random)
{
	return read_and_check(((const struct classes *)arg)->other_file, random);
}

static int read_once(struct classes *classes)
{
	struct pinion_job *job = &classes->job;
	uint32_t before = bench_word_read(&classes->ended);
	uint64_t start_ns = bench_now_ns();
	int rc = pinion_admission_spawn(&classes->admission, &job, 1, NULL);

	if (rc != 0) {
		report_line("cannot spawn: %s", report_reason(rc));
		return rc;
	}
	rc = bench_word_wait(&classes->ended, before);
	if (rc == 0 && classes->error != 0) {
		rc = classes->error;
		report_line("cannot read: %s", report_reason(rc));
	}
	if (rc == 0) {
		rc = samples_add(&classes->reads, (double)(classes->end_ns - start_ns) / 1000);
	}
	return rc;
}

/* ---- a loop instead of jobs ---- */

static int bare_run(struct pinion_task *task)
{
	struct classes *classes =
		(struct classes *)(void *)((char *)task - offsetof(struct classes, bare_turn));

	for (int i = 0; classes->error == 0 && i < CLASSES_READS; i++) {
		uint64_t start_ns = bench_now_ns();

		classes->error = read_and_check(classes->file, &classes->random);
		if (classes->error == 0) {
			classes->error = samples_add(
				&classes->reads, (double)(bench_now_ns() - start_ns) / 1000);
		}
	}
	bench_word_raise(&classes->bare_done);
	return 0;
}

static int run_bare(struct classes *classes, struct samples *out_p99s)
{
	int rc;

	samples_clear(&classes->reads);
	rc = bench_run_turn(classes->own, &classes->bare_turn, &classes->bare_done);
	if (rc == 0 && classes->error != 0) {
		rc = classes->error;
		report_line("cannot read: %s", report_reason(rc));
	}
	if (rc != 0) {
		return rc;
	}
	samples_sort(&classes->reads);
	return samples_add(out_p99s, samples_quantile(&classes->reads, 0.99));
}

static double median_of(struct samples *samples)
{
	samples_sort(samples);
	return samples_quantile(samples, 0.5);
}

static uint32_t classes_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct classes *classes = state;
	double change;
	double bare_change;

	if (classes->alone.count == 0 || classes->beside.count == 0 ||
		classes->bare_alone.count == 0 || classes->bare_beside.count == 0) {
		return 0;
	}
	change = median_of(&classes->beside) / median_of(&classes->alone);
	bare_change = median_of(&classes->bare_beside) / median_of(&classes->bare_alone);
	further[0] = (struct bench_further){"change", change};
	further[1] = (struct bench_further){"change_of_bare_loops", bare_change};
	further[2] = (struct bench_further){"change_by_that_of_bare_loops", change / bare_change};
	return 3;
}

static int classes_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct classes *classes = state;
	double p99_us;
	int rc = side == BENCH_FLOOR ? 0 : load_begin(&classes->load, side == BENCH_SECOND);

	if (rc == 0 && side == BENCH_FLOOR) {
		rc = run_bare(classes, &classes->bare_alone);
	}
	if (rc == 0 && side == BENCH_SECOND) {
		rc = run_bare(classes, &classes->bare_beside);
	}
	samples_clear(&classes->reads);
	for (int i = 0; rc == 0 && i < CLASSES_READS; i++) {
		rc = read_once(classes);
	}
	if (rc == 0 && side != BENCH_FLOOR) {
		rc = load_end(&classes->load);
	}
	if (rc != 0) {
		return rc;
	}
	samples_sort(&classes->reads);
	p99_us = samples_quantile(&classes->reads, 0.99);
	if (side != BENCH_SECOND) {
		rc = samples_add(side == BENCH_OURS ? &classes->beside : &classes->alone, p99_us);
	}
	return rc == 0 ? samples_add(out_figures, p99_us) : rc;
}

static void classes_stop(void *state)
{
	struct classes *classes = state;

	load_abandon(&classes->load);
	pinion_runtime_destroy(classes->other);
	if (classes->has_admission) {
		/* No job is in, or one is about to return. */
		(void)pinion_admission_drain(&classes->admission, UINT64_MAX);
	}
	pinion_runtime_destroy(classes->own);
	bench_place_restore(&classes->place);
	load_fini(&classes->load);
	samples_free(&classes->reads);
	samples_free(&classes->bare_alone);
	samples_free(&classes->bare_beside);
	samples_free(&classes->alone);
	samples_free(&classes->beside);
	if (classes->file >= 0) {
		close(classes->file);
	}
	if (classes->other_file >= 0) {
		close(classes->other_file);
	}
	free(classes);
}

/* Its pages are there from the start on. */
static int make_file(int *out_file)
{
	int rc = 0;

	*out_file = memfd_create("pinion-bench", MFD_CLOEXEC);
	if (*out_file < 0) {
		rc = -errno;
	} else {
		rc = -posix_fallocate(*out_file, 0, CLASSES_FILE_BYTES);
	}
	if (rc != 0) {
		report_line("cannot make a file in memory: %s", report_reason(rc));
	}
	return rc;
}

/* One worker per core of that half; its threads stay there. */
static int start_half(struct bench *bench, struct classes *classes, int half,
	struct bench_setting *out_setting, struct pinion_runtime **out_runtime)
{
	if (!bench_place_in_half(&classes->place, half)) {
		report_line("cannot move to one half of the cores");
		return -EINVAL;
	}
	return bench_start_workers(bench, 0, out_setting, out_runtime);
}

/* The measuring thread stays with the class that it measures. */
static int start_both(
	struct bench *bench, struct classes *classes, struct bench_setting *out_setting)
{
	struct pinion_admission_limits limits = {.max_tasks_total = CLASSES_MAX_TASKS};
	struct bench_setting other_setting = *out_setting;
	int rc = start_half(bench, classes, 1, &other_setting, &classes->other);

	if (rc == 0) {
		rc = start_half(bench, classes, 0, out_setting, &classes->own);
	}
	if (rc == 0) {
		rc = pinion_admission_init(&classes->admission, classes->own, &limits);
		classes->has_admission = rc == 0;
	}
	if (rc == 0) {
		bench_setting_add(out_setting, "and %u of the other class",
			pinion_runtime_worker_count(classes->other));
		classes->load.work = other_work;
		classes->load.work_arg = classes;
		rc = load_init(&classes->load, classes->other);
	}
	return rc;
}

static int classes_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct classes *classes;
	int rc = bench_require_cores(bench->subject, 2);

	if (rc != 0) {
		return rc;
	}
	classes = bench_allocate(sizeof(*classes));
	if (classes == NULL) {
		return -ENOMEM;
	}
	classes->file = -1;
	classes->other_file = -1;
	classes->job.run = job_run;
	classes->bare_turn.run = bare_run;
	classes->random = 362436069362436069u;
	rc = make_file(&classes->file);
	if (rc == 0) {
		rc = make_file(&classes->other_file);
	}
	if (rc == 0) {
		rc = start_both(bench, classes, out_setting);
	}
	if (rc != 0) {
		classes_stop(classes);
		return rc;
	}
	*out_state = classes;
	return 0;
}

const struct bench_subject bench_classes = {
	.name = "classes",
	.unit = "us",
	.brief =
		"p99 of one class's reads while another saturates half of the cores, against alone",
	.sides = {[BENCH_OURS] = "pinion_admission_spawn",
		[BENCH_FLOOR] = "alone",
		[BENCH_SECOND] = "beside-bare-loops"},
	.start = classes_start,
	.run = classes_run,
	.stop = classes_stop,
	.further = classes_further,
};
