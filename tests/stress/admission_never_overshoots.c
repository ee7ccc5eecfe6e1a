/* SPDX-License-Identifier: MIT */
/*
 * Goal: under 16 threads that spawn as fast as they can, never more jobs are in
 * than a lane's limit or the total says; each that was admitted runs, or is
 * cancelled where it lost its place; none is left. RP-5, RP-13, W51.
 * Method: jobs go on when they have begun, and are ended by the thread that
 * spawned them, so that many more than there are workers are in. The test
 * counts them in as they begin and out before they end. 16 threads spawn one or
 * several in random lanes; first all at once, which takes no lock, then some
 * of them waiting, then with eviction. PINION_SEED repeats the choices.
 */
#include "tests/support/jobs.h"
#include "tests/support/random.h"

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	ITERATIONS = 200,
#else
	ITERATIONS = 1000,
#endif
	SPAWNERS = 16,
	WORKERS = 3,
	BATCH = 3,
	REFUSED = 20,
	MAX_TOTAL = 7,
	RUN_SECONDS = 110,
};

static const uint32_t max_tasks[PINION_LANES] = {4, 3, 5};

struct spawner {
	pthread_t thread;
	struct random_source random;
	struct pinion_job jobs[BATCH];
	bool is_in[BATCH];
	struct pin_atomic_u32 entered; /* of its batch, run or cancelled */
	uint64_t admitted;
	uint64_t refused;
};

static struct pinion_runtime *runtime;
static struct pinion_admission admission;
static struct spawner spawners[SPAWNERS];
static struct pin_atomic_u32 in[PINION_LANES + 1]; /* the last: of all */
static bool waits;
static struct pin_atomic_u32 excess;
static struct pin_atomic_u64 runs;
static struct pin_atomic_u64 evictions;

static uint32_t lane_of(const struct pinion_job *job)
{
	return pin_task_lane(&job->task);
}

static struct spawner *spawner_of(struct pinion_job *job)
{
	return &spawners[((uintptr_t)job - (uintptr_t)spawners) / sizeof(spawners[0])];
}

static void count_in(uint32_t which, uint32_t max)
{
	if (pin_fetch_add_acq_rel_u32(&in[which], 1) + 1 > max) {
		pin_fetch_add_acq_rel_u32(&excess, 1);
	}
}

static int run(struct pinion_job *job)
{
	struct spawner *spawner = spawner_of(job);
	uint32_t lane = lane_of(job);

	count_in(lane, max_tasks[lane]);
	count_in(PINION_LANES, MAX_TOTAL);
	pin_fetch_add_acq_rel_u64(&runs, 1);
	spawner->is_in[job - spawner->jobs] = true;
	tasks_signal(&spawner->entered);
	return PINION_JOB_GOES_ON;
}

static void cancel(struct pinion_job *job, int reason)
{
	if (reason == -EAGAIN) {
		pin_fetch_add_acq_rel_u64(&evictions, 1);
	}
	tasks_signal(&spawner_of(job)->entered);
}

static void end_batch(struct spawner *spawner, uint32_t count)
{
	tasks_await(&spawner->entered, count);
	for (uint32_t i = 0; i < count; i++) {
		struct pinion_job *job = &spawner->jobs[i];

		if (spawner->is_in[i]) {
			pin_fetch_sub_acq_rel_u32(&in[PINION_LANES], 1);
			pin_fetch_sub_acq_rel_u32(&in[lane_of(job)], 1);
			pinion_job_end(job, 0);
		}
	}
}

static int spawn_some(struct spawner *spawner, struct pinion_job *const *jobs, uint32_t count)
{
	switch (waits ? random_below(&spawner->random, 4) : 3) {
	case 0:
		return pinion_admission_spawn_wait(&admission, jobs, count, UINT64_MAX);
	case 1:
		return pinion_admission_spawn_wait(&admission, jobs, count,
			pinion_clock_now_ns() + random_below(&spawner->random, 100 * 1000));
	default:
		return pinion_admission_spawn(&admission, jobs, count, NULL);
	}
}

static void *spawn(void *arg)
{
	static const uint32_t flags[PINION_LANES] = {PINION_TASK_HIGH, 0, PINION_TASK_LOW};
	struct spawner *spawner = arg;
	/* Most of those that do not wait are refused, which takes no time. */
	uint32_t rounds = tasks_iterations(ITERATIONS) * (waits ? 1 : REFUSED);

	for (uint32_t round = 0; round < rounds; round++) {
		struct pinion_job *jobs[BATCH];
		uint32_t count = 1 + (uint32_t)random_below(&spawner->random, BATCH);
		int rc;

		pin_store_release_u32(&spawner->entered, 0);
		for (uint32_t i = 0; i < count; i++) {
			jobs[i] = &spawner->jobs[i];
			spawner->is_in[i] = false;
			*jobs[i] = (struct pinion_job){
				.task.flags = flags[random_below(&spawner->random, PINION_LANES)],
				.run = run,
				.cancel = cancel};
		}
		rc = spawn_some(spawner, jobs, count);
		if (rc == 0) {
			spawner->admitted += count;
			end_batch(spawner, count);
		} else if (rc == -EAGAIN || rc == -ETIME) {
			spawner->refused++;
		} else {
			expect_number("spawn", 0, rc);
		}
	}
	return NULL;
}

static void check(bool some_wait, uint32_t flags, uint64_t seed)
{
	struct pinion_admission_limits limits = {.max_tasks_total = MAX_TOTAL, .flags = flags};
	uint64_t admitted = 0;

	waits = some_wait;
	memcpy(limits.max_tasks, max_tasks, sizeof(max_tasks));
	expect_number("init", 0, pinion_admission_init(&admission, runtime, &limits));
	pin_store_release_u64(&runs, 0);
	pin_store_release_u64(&evictions, 0);
	for (uint32_t i = 0; i < SPAWNERS; i++) {
		spawners[i] = (struct spawner){.admitted = 0};
		spawners[i].random.state = seed + i;
		expect_ready("thread",
			pthread_create(&spawners[i].thread, NULL, spawn, &spawners[i]) == 0);
	}
	for (uint32_t i = 0; i < SPAWNERS; i++) {
		pthread_join(spawners[i].thread, NULL);
		admitted += spawners[i].admitted;
	}
	jobs_drain(&admission);
	expect_number("overshoots", 0, pin_load_acquire_u32(&excess));
	expect_number("admitted and ended", (long long)admitted,
		(long long)(pin_load_acquire_u64(&runs) + pin_load_acquire_u64(&evictions)));
	if (flags == 0) {
		expect_number("evicted", 0, (long long)pin_load_acquire_u64(&evictions));
	}
	expect_true("some were admitted", admitted > 0);
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);

	runtimes_watchdog(RUN_SECONDS);
	runtime = runtimes_start(WORKERS, PINION_IO_AUTO);
	check(false, 0, seed);
	check(true, 0, random_next(&source));
	check(true, PINION_ADMISSION_EVICT, random_next(&source));
	pinion_runtime_destroy(runtime);
	return expect_status();
}
