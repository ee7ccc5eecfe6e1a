/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: what becomes of tasks that fail, and hooks that watch. One task
 * returns an error, one panics deep in its calls, one ends its thread; each is
 * logged, counted, and hurts no other. The runtime retries a task that failed
 * for a transient reason, and waits longer each time. Each worker has a
 * context, made and freed by hooks, that its tasks count in, and a tick that
 * looks at it.
 *
 * Try:   examples/failures
 */
#include <errno.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 1000, TICK_MS = 5, RETRY_NS = 10 * 1000 * 1000 };

/* A worker's own: no lock, no atomic. */
struct context {
	uint64_t tasks;
	uint64_t ticks;
};

static struct pinion_runtime *runtime;
static struct context total; /* by workers at their end; atomic */
static int retry_result = 1;

static int after_start(void *arg, uint32_t worker_index, void **out_context)
{
	(void)arg;
	(void)worker_index;
	*out_context = calloc(1, sizeof(struct context));
	return *out_context == NULL ? -ENOMEM : 0;
}

static void on_tick(void *arg, uint32_t worker_index, void *context)
{
	(void)arg;
	(void)worker_index;
	((struct context *)context)->ticks++;
}

static void before_stop(void *arg, uint32_t worker_index, void *context)
{
	struct context *own = context;

	(void)arg;
	(void)worker_index;
	__atomic_add_fetch(&total.tasks, own->tasks, __ATOMIC_RELAXED);
	__atomic_add_fetch(&total.ticks, own->ticks, __ATOMIC_RELAXED);
	free(own);
}

static void log_line(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	printf("log: %s\n", message);
}

static int count_task(struct pinion_task *task)
{
	void *context;

	(void)task;
	if (pinion_worker_context(runtime, &context) == 0) {
		((struct context *)context)->tasks++;
	}
	return 0;
}

static int fail(struct pinion_task *task)
{
	(void)task;
	return -ENOENT;
}

static int give_up(struct pinion_task *task)
{
	(void)task;
	pinion_task_panic(-EBADMSG, "no way back from here");
}

static int end_thread(struct pinion_task *task)
{
	(void)task;
	pthread_exit(NULL);
}

static int attempt(struct pinion_retry *retry)
{
	return retry->attempts < 3 ? -EAGAIN : 0;
}

static void end_attempts(struct pinion_retry *retry, int result)
{
	(void)retry;
	retry_result = result;
}

int main(int argc, char **argv)
{
	static struct pinion_task tasks[TASKS];
	struct pinion_task bad[] = {{.run = fail}, {.run = give_up}, {.run = end_thread}};
	struct pinion_runtime_stats counters = {0};
	struct pinion_retry retry;
	struct pinion_config config;
	struct pinion_tuning tuning;
	int rc;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		puts("usage: failures");
		return 0;
	}
	pinion_config_init(&config);
	config.log = log_line;
	config.after_start = after_start;
	config.on_tick = on_tick;
	config.before_stop = before_stop;
	pinion_tuning_init(&tuning);
	tuning.tick_interval_ms = TICK_MS;
	config.tuning = &tuning;
	rc = pinion_runtime_create(&config, &runtime);
	pinion_retry_init(&retry, attempt, end_attempts);
	retry.base_ns = RETRY_NS;
	rc = rc < 0 ? rc : pinion_retry_start(runtime, &retry);
	for (int i = 0; i < TASKS + 3 && rc == 0; i++) {
		struct pinion_task *task = i < TASKS ? &tasks[i] : &bad[i - TASKS];

		task->run = i < TASKS ? count_task : task->run;
		rc = pinion_task_spawn(runtime, task);
	}
	if (rc < 0) {
		fprintf(stderr, "failures: %s\n", strerror(-rc));
		pinion_runtime_destroy(runtime);
		return 1;
	}
	pinion_runtime_drain(runtime);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	pinion_runtime_destroy(runtime);
	printf("%llu tasks counted by their workers, %llu failed, %llu of them unwound\n",
		(unsigned long long)total.tasks, (unsigned long long)counters.tasks_failed,
		(unsigned long long)counters.tasks_unwound);
	printf("the other was tried %u times: %s\n", retry.attempts, strerror(-retry_result));
	printf("%llu ticks\n", (unsigned long long)total.ticks);
	return 0;
}
