/* SPDX-License-Identifier: MIT */
/*
 * What a reader of the metrics page costs its writers: tasks of eight busy
 * workers in a second of their CPU time, alone and beside a process that takes
 * up to 100 snapshots a second. The two take turns, so that what changes slowly
 * divides out; a ratio is of a pair of slices, with the interval of the sign
 * test (tools/bench/samples.h). The reader's CPU time is a figure by itself.
 * `make bench-watched` prints both.
 */
#include "runtime/base/atomic.h"
#include "tests/support/expect.h"
#include "tests/support/tasks.h"
#include "tools/bench/samples.h"
#include "tools/bench/subject.h"

#include <pinion/machine.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	WORKERS = 8,
	TASKS = 4 * WORKERS,
	PAIRS = 200,
	SLICE_NS = 50 * 1000 * 1000,
	READ_NS = 10 * 1000 * 1000,
};

/* [W:parent and child R:both] */
struct signs {
	struct pin_atomic_u32 may_read;
	struct pin_atomic_u32 has_opened;
	struct pin_atomic_u64 reads;
	struct pin_atomic_u64 cpu_ns; /* of the child */
};

static struct pinion_runtime *runtime;
static struct pin_atomic_u32 may_stop;
static struct pinion_task tasks[TASKS];

static int go_on(struct pinion_task *task)
{
	return pin_load_acquire_u32(&may_stop) != 0 ? 0 : pinion_task_respawn(runtime, task);
}

static void sleep_ns(long time_ns)
{
	struct timespec time = {.tv_nsec = time_ns};

	nanosleep(&time, NULL);
}

/* Of this process, all threads. */
static uint64_t cpu_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* In the child, until it is killed. */
static void read_pages(struct signs *signs, int pid)
{
	struct pinion_metrics *metrics;

	while (pinion_metrics_open_pid(pid, 0, NULL, NULL, &metrics) != 0) {
		sleep_ns(READ_NS);
	}
	pin_store_release_u32(&signs->has_opened, 1);
	for (;;) {
		if (pin_load_acquire_u32(&signs->may_read) != 0) {
			(void)pinion_metrics_snapshot(metrics);
			pin_fetch_add_relaxed_u64(&signs->reads, 1);
			pin_store_relaxed_u64(&signs->cpu_ns, cpu_now_ns());
		}
		sleep_ns(READ_NS);
	}
}

static uint64_t tasks_run(void)
{
	struct pinion_worker_stats stats;

	expect_number("stats", 0,
		pinion_worker_get_stats(runtime, PINION_ALL_WORKERS, &stats, sizeof(stats)));
	return stats.tasks_run;
}

/* Tasks in a second of CPU time. */
static double measure(struct signs *signs, bool is_watched)
{
	uint64_t begin_ns;
	uint64_t before;

	pin_store_release_u32(&signs->may_read, is_watched);
	begin_ns = cpu_now_ns();
	before = tasks_run();
	sleep_ns(SLICE_NS);
	return (double)(tasks_run() - before) * 1e9 / (double)(cpu_now_ns() - begin_ns);
}

static void print(struct signs *signs, struct samples *alone, struct samples *ratios)
{
	uint64_t reads = pin_load_relaxed_u64(&signs->reads);
	double watched_s = (double)PAIRS * SLICE_NS / 1e9;
	struct samples_ratio ratio;

	samples_sort(alone);
	samples_sort(ratios);
	ratio = samples_conclude(ratios);
	printf("%d workers, %.2f million tasks in a second of CPU time; beside a reader %.4f times "
	       "as many (%.4f … %.4f), n = %u\n",
		WORKERS, samples_quantile(alone, 0.5) / 1e6, ratio.ratio, ratio.low, ratio.high,
		ratios->count);
	printf("%.0f reads a second, of %.0f us of the reader's CPU time each\n",
		(double)reads / watched_s,
		(double)pin_load_relaxed_u64(&signs->cpu_ns) / 1e3 / (double)reads);
}

int main(void)
{
	struct signs *signs = mmap(
		NULL, sizeof(*signs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct pinion_config config;
	struct samples alone = {0};
	struct samples ratios = {0};
	pid_t child;

	expect_ready("mmap", signs != MAP_FAILED);
	child = fork();
	expect_ready("fork", child >= 0);
	if (child == 0) {
		read_pages(signs, getppid());
	}
	pinion_config_init(&config);
	config.worker_count = WORKERS;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i].run = go_on;
		expect_number("spawn", 0, pinion_task_spawn_on(runtime, i % WORKERS, &tasks[i]));
	}
	while (pin_load_acquire_u32(&signs->has_opened) == 0) {
		sleep_ns(READ_NS);
	}
	for (int i = 0; i < PAIRS; i++) {
		double rates[2];

		/* Each goes first half of the time. */
		rates[i % 2] = measure(signs, i % 2 != 0);
		rates[1 - i % 2] = measure(signs, i % 2 == 0);
		expect_ready("memory", samples_add(&alone, rates[0]) == 0);
		expect_ready("memory", samples_add(&ratios, rates[1] / rates[0]) == 0);
	}
	pin_store_release_u32(&may_stop, 1);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	print(signs, &alone, &ratios);
	pinion_runtime_destroy(runtime);
	return expect_status();
}
