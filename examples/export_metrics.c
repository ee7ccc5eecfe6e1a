/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: an exporter of a program's own metrics, as text for Prometheus.
 * Try:   examples/export_metrics | promtool check metrics
 */
#include <pinion/pinion.h>
#include <pthread.h>
#include <stdio.h>

static struct pinion_task jobs[1000];
static struct pinion_histogram times;
static pthread_mutex_t times_lock = PTHREAD_MUTEX_INITIALIZER;

static int run(struct pinion_task *job)
{
	uint64_t begin_ns = pinion_clock_now_ns();

	for (volatile uint32_t work = 0; work < 10000; work++) {
	}
	pthread_mutex_lock(&times_lock);
	pinion_histogram_record(&times, pinion_clock_now_ns() - begin_ns, 1);
	pthread_mutex_unlock(&times_lock);
	return (job - jobs) % 100 == 99 ? -1 : 0; /* some fail */
}

static void export_metrics(const struct pinion_runtime *runtime)
{
	struct pinion_worker_stats stats;

	pinion_worker_get_stats(runtime, PINION_ALL_WORKERS, &stats, sizeof(stats));
	printf("# HELP job_seconds Times of jobs.\n# TYPE job_seconds summary\n");
	pthread_mutex_lock(&times_lock);
	for (uint32_t permille = 500; permille < 1000; permille += 490) {
		printf("job_seconds{quantile=\"%g\"} %.9f\n", permille / 1e3,
			(double)pinion_histogram_quantile_ns(&times, permille) / 1e9);
	}
	printf("job_seconds_sum %.9f\njob_seconds_count %llu\n", (double)times.sum_ns / 1e9,
		(unsigned long long)times.count);
	pthread_mutex_unlock(&times_lock);
	printf("# HELP jobs_failed_total Failures.\n# TYPE jobs_failed_total counter\n");
	printf("jobs_failed_total %llu\n", (unsigned long long)stats.tasks_failed);
}

int main(int argc, char **argv)
{
	struct pinion_runtime *runtime;

	(void)argv;
	if (argc > 1 || pinion_runtime_create(NULL, &runtime) < 0) {
		fprintf(stderr, "usage: export_metrics, where a runtime can start\n");
		return 2;
	}
	for (uint32_t i = 0; i < 1000; i++) {
		jobs[i].run = run;
		pinion_task_spawn(runtime, &jobs[i]); /* else it is not counted */
	}
	pinion_runtime_drain(runtime);
	export_metrics(runtime);
	return pinion_runtime_destroy(runtime);
}
