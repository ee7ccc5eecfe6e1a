/* SPDX-License-Identifier: MIT */
/*
 * Goal: with `low_max_wait_ms` low work has its turn beside a high lane that
 * never ends, without it, strict, it does not. With `assist` an idle worker
 * helps out in a lane it does not serve, as long as its reserve stays free, and
 * without it, it does not. WP-7, WP-8, WP-9, WP-22, C12, W42.
 * Method: a high task that spawns itself until a low one has run, or for many
 * rounds; workers that are held. Forbidden effects are checked when all workers
 * that could cause them sleep.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include "runtime/worker/state.h"

enum {
	ROUNDS = 3000,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static const struct pin_shared *shared;

static struct pinion_lane_stats metrics_now(void)
{
	struct pinion_lane_stats metrics;

	expect_number(
		"metrics", 0, pinion_runtime_get_lane_stats(runtime, &metrics, sizeof(metrics)));
	return metrics;
}

/* ---- aging ---- */

static uint32_t rounds_left;	/* [own] the one worker's */
static bool has_low_run;	/* [own] as above */
static bool has_flood_ended;	/* [own] its value when low ran */
static bool must_flood_forever; /* until low has run */

static struct pinion_task *behind; /* [own] spawned when the flood is on */

static int flood(struct pinion_task *task)
{
	if (behind != NULL) {
		/* From here: two lanes cannot be read at one instant. */
		int rc = pinion_task_spawn(runtime, behind);

		behind = NULL;
		if (rc < 0) {
			return rc;
		}
	}
	if (must_flood_forever ? !has_low_run : rounds_left-- > 0) {
		return pinion_task_spawn(runtime, task);
	}
	has_flood_ended = true;
	return 0;
}

static bool was_flood_over;

static int run_low(struct pinion_task *task)
{
	(void)task;
	has_low_run = true;
	was_flood_over = has_flood_ended;
	return 0;
}

static void check_aging(uint32_t low_max_wait_ms)
{
	struct pinion_task high = {.run = flood, .flags = PINION_TASK_HIGH};
	struct pinion_task low = {.run = run_low, .flags = PINION_TASK_LOW};
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.lane_floor = 0;
	runtimes_tuning.low_max_wait_ms = low_max_wait_ms;
	must_flood_forever = low_max_wait_ms != 0;
	rounds_left = ROUNDS;
	has_low_run = false;
	has_flood_ended = false;
	behind = &low;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &high));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_true("low has run", has_low_run);
	expect_true("while the flood went on", was_flood_over == !must_flood_forever);
	expect_number("aged", must_flood_forever ? 1 : 0, (long long)metrics_now().aged_turns);
	pinion_runtime_destroy(runtime);
}

/* ---- assistance ---- */

static struct tasks_hold workers[3];
static struct tasks_hold jobs[2];

static void find_shared(struct tasks_hold *hold)
{
	(void)hold;
	shared = pin_worker_current()->shared;
}

static void spawn_job(struct tasks_hold *job, enum pinion_lane lane)
{
	*job = (struct tasks_hold){
		.task = {.run = tasks_hold_run, .flags = pinion_lane_flags(lane)}};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &job->task));
}

static void await_sleep(uint32_t worker_index)
{
	while (!pin_parker_is_parked(&shared->workers[worker_index].parker)) {
		pin_host_linux.yield();
	}
}

/* Of the two that serve high; the other may be in a job. */
static void await_one_asleep(void)
{
	while (!pin_parker_is_parked(&shared->workers[0].parker) &&
		!pin_parker_is_parked(&shared->workers[1].parker)) {
		pin_host_linux.yield();
	}
}

/* Two workers for high and one for all lanes; the latter is held. */
static void start_classes(uint32_t assist, uint32_t reserve)
{
	struct pinion_config config;

	runtimes_config(&config, 0, PINION_IO_AUTO);
	config.lanes = "h:2,hnl:1";
	runtimes_tuning.lane_floor = 0;
	runtimes_tuning.assist = assist;
	runtimes_tuning.assist_reserve = reserve;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	workers[2].prepare = find_shared;
	tasks_hold_begin(&workers[2], runtime, 2);
	await_sleep(0);
	await_sleep(1);
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* A high task is run to its end, so a worker that serves it was free. */
static void run_high(void)
{
	struct pinion_call call = {.run = nothing, .task.flags = PINION_TASK_HIGH};

	expect_number("call", 0, pinion_call_start(runtime, &call));
	expect_number("wait", 0, pinion_future_wait(&call.done, UINT64_MAX));
	expect_number("result", 0, call.result);
}

static void finish_classes(void)
{
	tasks_hold_end(&workers[2]);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
}

static void check_no_assist(void)
{
	start_classes(PINION_ASSIST_OFF, 1);
	spawn_job(&jobs[0], PINION_LANE_LOW);
	run_high();
	await_sleep(0);
	await_sleep(1);
	expect_number("begun without assistance", 0, pin_load_acquire_u32(&jobs[0].has_begun));
	tasks_signal(&jobs[0].may_end);
	finish_classes();
	expect_number("assists", 0, (long long)metrics_now().assists);
	pinion_runtime_destroy(runtime);
}

/* Both of the normal and the low lane; the reserve keeps the second out. */
static void check_assist(enum pinion_lane lane)
{
	start_classes(PINION_ASSIST_IDLE, 1);
	spawn_job(&jobs[0], lane);
	spawn_job(&jobs[1], lane);
	tasks_await(&jobs[0].has_begun, 1);
	run_high();
	await_one_asleep();
	expect_number("begun beyond the reserve", 0, pin_load_acquire_u32(&jobs[1].has_begun));
	/* Then there is room for one again, and no other event says so. */
	tasks_hold_end(&jobs[0]);
	tasks_await(&jobs[1].has_begun, 1);
	tasks_hold_end(&jobs[1]);
	finish_classes();
	expect_number("assists", 2, (long long)metrics_now().assists);
	pinion_runtime_destroy(runtime);
}

static void check_no_reserve(void)
{
	start_classes(PINION_ASSIST_IDLE, 0);
	spawn_job(&jobs[0], PINION_LANE_NORMAL);
	spawn_job(&jobs[1], PINION_LANE_LOW);
	tasks_await(&jobs[0].has_begun, 1);
	tasks_await(&jobs[1].has_begun, 1);
	tasks_hold_end(&jobs[0]);
	tasks_hold_end(&jobs[1]);
	finish_classes();
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_aging(0);
	check_aging(1);
	check_no_assist();
	check_assist(PINION_LANE_NORMAL);
	check_assist(PINION_LANE_LOW);
	check_no_reserve();
	return expect_status();
}
