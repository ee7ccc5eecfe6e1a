/* SPDX-License-Identifier: MIT */
/*
 * Jobs are tasks of the thread pool, in memory of their own.
 */
#include "tools/scan/lane.h"

#include <errno.h>
#include <pinion/thread_pool.h>
#include <stdlib.h>

struct lane {
	struct scan_job *job;
	struct pinion_runtime *pool;
	struct lane_thread *threads; /* `thread_count` */
	uint32_t thread_count;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	uint32_t waiting_count; /* jobs that have not begun */
	uint32_t count;		/* that have not ended */
};

struct lane_job {
	struct pinion_task task;
	struct lane *lane;
	lane_run_fn run;
	void *arg;
};

int lane_create(struct scan_job *job, uint32_t thread_count, struct lane **out_lane)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	struct pinion_thread_pool_sizes sizes = {.low = thread_count};
	struct pinion_config config;
	struct pinion_tuning tuning;
	int error;

	if (lane == NULL) {
		return -ENOMEM;
	}
	lane->job = job;
	lane->thread_count = thread_count;
	lane->threads = calloc(thread_count, sizeof(*lane->threads));
	pthread_mutex_init(&lane->lock, NULL);
	pthread_cond_init(&lane->changed, NULL);
	pinion_thread_pool_config_init(&config);
	pinion_thread_pool_tuning_init(&tuning);
	config.tuning = &tuning;
	config.log = job->options->scanning.runtime.log;
	config.log_arg = job->options->scanning.runtime.log_arg;
	error = lane->threads == NULL ? -ENOMEM
				      : pinion_thread_pool_create(&config, &sizes, &lane->pool);
	if (error != 0) {
		lane_destroy(lane);
		return error;
	}
	*out_lane = lane;
	return 0;
}

static struct lane_thread *thread_here(struct lane *lane)
{
	struct lane_thread *thread = &lane->threads[pinion_worker_index(lane->pool)];

	if (thread->worker == NULL) {
		thread->worker = scan_job_add_worker(lane->job);
	}
	if (thread->worker != NULL && thread->source == NULL) {
		thread->source = source_create(lane->job, thread->worker);
	}
	return thread->source != NULL ? thread : NULL;
}

static void count_down(struct lane *lane, uint32_t *count)
{
	pthread_mutex_lock(&lane->lock);
	--*count;
	pthread_cond_broadcast(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
}

static int run_job(struct pinion_task *task)
{
	struct lane_job *job = (struct lane_job *)task;
	struct lane *lane = job->lane;

	count_down(lane, &lane->waiting_count);
	job->run(lane->job, thread_here(lane), job->arg);
	free(job);
	count_down(lane, &lane->count);
	return 0;
}

int lane_submit(struct lane *lane, lane_run_fn run, void *arg)
{
	struct lane_job *job = calloc(1, sizeof(*job));
	int error;

	if (job == NULL) {
		return -ENOMEM;
	}
	*job = (struct lane_job){.lane = lane, .run = run, .arg = arg};
	job->task.run = run_job;
	job->task.flags = PINION_TASK_LOW;
	pthread_mutex_lock(&lane->lock);
	while (lane->waiting_count == LANE_JOBS_MAX) {
		pthread_cond_wait(&lane->changed, &lane->lock);
	}
	lane->waiting_count++;
	lane->count++;
	pthread_mutex_unlock(&lane->lock);
	error = pinion_task_spawn(lane->pool, &job->task);
	if (error != 0) {
		free(job);
		count_down(lane, &lane->waiting_count);
		count_down(lane, &lane->count);
	}
	return error;
}

void lane_finish(struct lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	while (lane->count > 0) {
		pthread_cond_wait(&lane->changed, &lane->lock);
	}
	pthread_mutex_unlock(&lane->lock);
}

void lane_destroy(struct lane *lane)
{
	if (lane == NULL) {
		return;
	}
	pinion_runtime_destroy(lane->pool);
	for (uint32_t i = 0; lane->threads != NULL && i < lane->thread_count; i++) {
		source_destroy(lane->threads[i].source);
	}
	free(lane->threads);
	pthread_cond_destroy(&lane->changed);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}
