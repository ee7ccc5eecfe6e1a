/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker runs its lanes in its order, restarting from the first after
 * each task, and nothing else; strict as in the seed's table, and with a floor
 * for lower lanes. WP-4, WP-5, WP-6, WP-16, WP-2, C11, C12, W42.
 * Method: workers are held while tasks are queued in all lanes from outside;
 * then one of them is let go until it sleeps. Each task notes its letter.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include "runtime/worker/state.h"

#include <errno.h>

enum {
	EACH = 4,
	TASKS = 40,
	LIMIT_SECONDS = 60,
};

struct item {
	struct pinion_task task;
	char letter;
};

static struct pinion_runtime *runtime;
static const struct pin_shared *shared;
static struct item items[TASKS * PINION_LANES];
static struct tasks_hold holds[3];
static char got[TASKS * PINION_LANES + 1]; /* by one worker at a time */
static struct pin_atomic_u32 got_count;

static int note(struct pinion_task *task)
{
	struct item *item = PIN_CONTAINER_OF(task, struct item, task);

	got[pin_load_relaxed_u32(&got_count)] = item->letter;
	tasks_signal(&got_count);
	return 0;
}

static void find_shared(struct tasks_hold *hold)
{
	(void)hold;
	shared = pin_worker_current()->shared;
}

static void start(const char *lanes, uint32_t worker_count, uint32_t floor)
{
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	config.lanes = lanes;
	runtimes_tuning.lane_floor = floor;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < worker_count; i++) {
		holds[i].prepare = find_shared;
		tasks_hold_begin(&holds[i], runtime, i);
	}
	memset(got, 0, sizeof(got));
	pin_store_release_u32(&got_count, 0);
}

/* The lowest first, so that no order comes from that of spawning. */
static void fill(uint32_t high, uint32_t normal, uint32_t low)
{
	const uint32_t counts[PINION_LANES] = {high, normal, low};
	struct item *item = items;

	for (int lane = PINION_LANE_LOW; lane >= PINION_LANE_HIGH; lane--) {
		for (uint32_t i = 0; i < counts[lane]; i++, item++) {
			item->letter = "HNL"[lane];
			item->task = (struct pinion_task){
				.run = note,
				.flags = pinion_lane_flags((enum pinion_lane)lane),
			};
			expect_number("spawn", 0, pinion_task_spawn(runtime, &item->task));
		}
	}
}

/* Until it has run all it will, and sleeps. */
static void let_go(uint32_t worker_index)
{
	const struct pin_worker *worker = &shared->workers[worker_index];

	tasks_hold_end(&holds[worker_index]);
	while (!pin_parker_is_parked(&worker->parker)) {
		pin_host_linux.yield();
	}
}

/* What others are to run is left to a worker of all lanes. */
static void finish(void)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

static void check_table(void)
{
	static const char *const expected[] = {"HHHH", "HHHHNNNN", "HHHHNNNNLLLL"};

	for (uint32_t i = 0; i < 3; i++) {
		start("h:1,hm:1,hml:1", 3, 0);
		fill(EACH, EACH, EACH);
		let_go(i);
		expect_text("run by this worker alone", expected[i], got);
		for (uint32_t k = 0; k < 3; k++) {
			if (k != i) {
				let_go(k);
			}
		}
		finish();
		expect_number("run at the end", 3 * EACH, pin_load_acquire_u32(&got_count));
	}
}

static void check_order(const char *lanes, uint32_t floor, uint32_t each, const char *expected,
	uint32_t floor_turns)
{
	struct pinion_lane_stats metrics;

	start(lanes, 1, floor);
	fill(each, each, each);
	let_go(0);
	expect_text("order", expected, got);
	expect_number(
		"metrics", 0, pinion_runtime_get_lane_stats(runtime, &metrics, sizeof(metrics)));
	expect_number(expected, floor_turns, (long long)metrics.floor_turns);
	expect_number("not by age", 0, (long long)metrics.aged_turns);
	finish();
}

/* A batch goes apart by lanes, and from a worker as from outside. */
static int spawn_mixed(struct pinion_task *task)
{
	struct pinion_task *batch[3 * EACH];

	(void)task;
	for (uint32_t i = 0; i < 3 * EACH; i++) {
		uint32_t lane = 2 - i % 3;

		items[i].letter = "HNL"[lane];
		items[i].task = (struct pinion_task){
			.run = note, .flags = pinion_lane_flags((enum pinion_lane)lane)};
		batch[i] = &items[i].task;
	}
	return pinion_task_spawn_batch(runtime, batch, 3 * EACH);
}

static void check_batches(void)
{
	struct pinion_task task = {.run = spawn_mixed};

	start("hnl", 1, 0);
	expect_number("batch from outside", 0, spawn_mixed(NULL));
	let_go(0);
	expect_text("from outside", "HHHHNNNNLLLL", got);
	finish();
	start("hnl", 1, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	let_go(0);
	expect_text("from a worker", "HHHHNNNNLLLL", got);
	finish();
}

static void check_refused(void)
{
	struct pinion_task both = {
		.run = note, .flags = PINION_TASK_HIGH | PINION_TASK_LOW, .private_ = 7};
	struct pinion_task before = both;
	struct pinion_task *batch[] = {&both};

	start("hnl", 1, 16);
	expect_number("two lanes", -EINVAL, pinion_task_spawn(runtime, &both));
	expect_number("in a batch", -EINVAL, pinion_task_spawn_batch(runtime, batch, 1));
	expect_number("shared", -EINVAL, pinion_task_spawn_shared(runtime, &both));
	expect_number("and untouched", 0, memcmp(&before, &both, sizeof(both)));
	let_go(0);
	finish();
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_table();
	check_order(NULL, 0, 3, "HHHNNNLLL", 0);
	check_order("lnh", 0, 3, "LLLNNNHHH", 0);
	check_order("nhl:1", 0, 3, "NNNHHHLLL", 0);
	check_order(NULL, 4, 6, "HHHNLHHHNLNNNLNLLL", 5);
	check_order(NULL, 2, 3, "HNLHNLHNL", 6);
	check_order(NULL, 16, 16, "HHHHHHHHHHHHHHHNLHNNNNNNNNNNNNNNLNLLLLLLLLLLLLLL", 3);
	check_batches();
	check_refused();
	return expect_status();
}
