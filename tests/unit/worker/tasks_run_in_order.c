/* SPDX-License-Identifier: MIT */
/*
 * Goal: on one worker the order of tasks is that of the configuration, the same
 * each time, and no endless spawner keeps others out: not a pair that spawn
 * each other, whatever the budget, not a task that spawns itself anew, in
 * either queue order; and not a timer either: a due timer has its turn after as
 * many polls as the budget allows, or as long. What a task spawns is kept back
 * for a row of such only while the row lasts. AS-2, AS-4, AS-8, AS-9, AS-10,
 * EX-3, EX-10, C2, C3, W38. Hazard that others met: a pair in the slot keeps
 * all others out.
 * Method: a task spawns ten that note their number; pairs that go on until a
 * third task or a read has had its turn, and hang if it never has.
 */
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	CHILDREN = 10,
	TREE = 2000,
	LONG_US = 1000000,
	LIMIT_SECONDS = 60,
	BEAT_TIMERS = 50, /* one after another */
	BEAT_NS = 10 * 1000,
};

struct item {
	struct pinion_task task;
	uint32_t number;
};

static struct pinion_runtime *runtime;
static struct item items[TREE];
static uint32_t order[TREE]; /* by one worker; read after a drain */
static uint32_t order_count;
static bool is_over; /* by one worker, too */
static struct pinion_task pair[2];
static uint32_t pair_runs;
static struct pinion_file file;
static struct pinion_request request;
static uint8_t byte;

static struct pinion_config config_of(uint32_t queue_order, uint32_t lifo_polls)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.queue_order = queue_order;
	runtimes_tuning.lifo_polls = lifo_polls;
	/* So that only what the test is about decides. */
	runtimes_tuning.budget_us = LONG_US;
	runtimes_tuning.budget_polls = 65535;
	runtimes_tuning.injector_target_us = LONG_US;
	runtimes_tuning.interval_min = 65535;
	runtimes_tuning.interval_max = 65535;
	return config;
}

/* How long it took. */
static uint64_t run_once(const struct pinion_config *config, pinion_task_fn first)
{
	struct pinion_task task = {.run = first};
	int rc = pinion_runtime_create(config, &runtime);
	uint64_t begin_ns = pinion_clock_now_ns();

	order_count = 0;
	pair_runs = 0;
	is_over = false;
	expect_ready("pinion_runtime_create", rc == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("join", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
	return pinion_clock_now_ns() - begin_ns;
}

/* Again where time had a say, since the worker was kept from running. */
static void run(const struct pinion_config *config, pinion_task_fn first)
{
	while (run_once(config, first) >= LONG_US * UINT64_C(1000)) {
	}
}

static int note(struct pinion_task *task)
{
	order[order_count++] = PIN_CONTAINER_OF(task, struct item, task)->number;
	return 0;
}

static int spawn_ten(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < CHILDREN; i++) {
		items[i] = (struct item){.task.run = note, .number = i};
		if (pinion_task_spawn(runtime, &items[i].task) != 0) {
			return -EIO;
		}
	}
	return 0;
}

static void check_ten(uint32_t queue_order, uint32_t lifo_polls, const char *expected)
{
	struct pinion_config config = config_of(queue_order, lifo_polls);
	char got[CHILDREN + 1] = "";

	run(&config, spawn_ten);
	for (uint32_t i = 0; i < order_count; i++) {
		got[i] = (char)('0' + order[i]);
	}
	expect_text(queue_order == PINION_QUEUE_LIFO ? "LIFO" : "FIFO", expected, got);
}

/* ---- a row that ends ---- */

/* Its child's number is one more. */
static int note_and_spawn(struct pinion_task *task)
{
	struct item *child = PIN_CONTAINER_OF(task, struct item, task) + 1;

	child[0] = (struct item){.task.run = note, .number = (uint32_t)(child - items)};
	return note(task) | pinion_task_spawn(runtime, &child->task);
}

static int spawn_parents(struct pinion_task *task)
{
	int rc = 0;

	(void)task;
	for (uint32_t i = 0; i < CHILDREN && rc == 0; i++) {
		items[2 * i] = (struct item){.task.run = note_and_spawn, .number = 2 * i};
		rc = pinion_task_spawn(runtime, &items[2 * i].task);
	}
	return rc;
}

/*
 * The queue's turn ends a row of the slot's: each child, of ten parents with
 * one each, is run after its parent.
 */
static void check_children(void)
{
	struct pinion_config config = config_of(PINION_QUEUE_FIFO, 3);

	run(&config, spawn_parents);
	expect_number("parents and children", 2 * CHILDREN, order_count);
	for (uint32_t i = 0; i < order_count; i++) {
		/* The parent that was spawned last is the slot's. */
		expect_number("in order", (2 * CHILDREN - 2 + i) % (2 * CHILDREN), order[i]);
	}
}

/* ---- the same again ---- */

static int grow(struct pinion_task *task)
{
	struct item *item = PIN_CONTAINER_OF(task, struct item, task);

	for (uint32_t child = 3 * item->number + 1; child <= 3 * item->number + 3; child++) {
		int rc;

		if (child >= TREE) {
			break;
		}
		items[child] = (struct item){.task.run = grow, .number = child};
		rc = child % 7 == 0 ? pinion_task_spawn_shared(runtime, &items[child].task)
				    : pinion_task_spawn(runtime, &items[child].task);
		if (rc != 0) {
			return rc;
		}
	}
	return note(task);
}

static int plant(struct pinion_task *task)
{
	(void)task;
	items[0] = (struct item){.task.run = grow};
	return pinion_task_spawn(runtime, &items[0].task);
}

static void check_repeats(uint32_t queue_order)
{
	struct pinion_config config = config_of(queue_order, 3);
	static uint32_t before[TREE];

	runtimes_tuning.queue_tasks = 16; /* overflows, so that more than the queue decides */
	run(&config, plant);
	expect_number("tasks of the tree", TREE, order_count);
	memcpy(before, order, sizeof(order));
	run(&config, plant);
	expect_number("the same order again", 0, memcmp(before, order, sizeof(order)));
}

/* ---- pairs ---- */

static int spawn_other(struct pinion_task *task)
{
	pair_runs++;
	return is_over ? 0 : pinion_task_spawn(runtime, task == &pair[0] ? &pair[1] : &pair[0]);
}

static int end_pair(struct pinion_task *task)
{
	is_over = true;
	return note(task);
}

static int begin_pair(struct pinion_task *task)
{
	(void)task;
	items[0] = (struct item){.task.run = end_pair};
	pair[0] = (struct pinion_task){.run = spawn_other};
	pair[1] = pair[0];
	return pinion_task_spawn(runtime, &items[0].task) | pinion_task_spawn(runtime, &pair[0]);
}

static void check_pair(uint32_t lifo_polls, uint32_t budget_polls)
{
	struct pinion_config config = config_of(PINION_QUEUE_FIFO, lifo_polls);

	runtimes_tuning.budget_polls = budget_polls;
	run(&config, begin_pair);
	/* The run that was under way to its turn ends the pair. */
	expect_number("runs of the pair", lifo_polls + 1, pair_runs);
}

static int end_pair_by_read(struct pinion_task *task)
{
	(void)task;
	is_over = true;
	return request.result == 1 ? 0 : -EIO;
}

/* One more before the pair, so that their turns fall on other numbers. */
static int begin_pair_beside_read(struct pinion_task *task)
{
	(void)task;
	request = (struct pinion_request){
		.task.run = end_pair_by_read,
		.file = &file,
		.bytes = &byte,
		.length_bytes = 1,
	};
	pair[0] = (struct pinion_task){.run = spawn_other};
	pair[1] = pair[0];
	return pinion_request_submit(runtime, &request) | pinion_task_spawn(runtime, &pair[0]);
}

static int delay(struct pinion_task *task)
{
	task->run = begin_pair_beside_read;
	return pinion_task_spawn(runtime, task);
}

static int delay_twice(struct pinion_task *task)
{
	task->run = delay;
	return pinion_task_spawn(runtime, task);
}

static int delay_thrice(struct pinion_task *task)
{
	task->run = delay_twice;
	return pinion_task_spawn(runtime, task);
}

static void check_pair_beside_read(uint32_t budget_polls)
{
	static const pinion_task_fn firsts[] = {
		begin_pair_beside_read, delay, delay_twice, delay_thrice};
	struct pinion_config config = config_of(PINION_QUEUE_FIFO, 3);

	runtimes_tuning.budget_polls = budget_polls;
	for (size_t i = 0; i < PIN_ARRAY_COUNT(firsts); i++) {
		run(&config, firsts[i]);
		expect_true("a read has its turn", is_over);
	}
}

/* ---- spawning oneself anew ---- */

static int make_way(struct pinion_task *task)
{
	order[order_count++ % TREE] = CHILDREN;
	return is_over || order_count > TREE ? 0 : pinion_task_respawn(runtime, task);
}

static int begin_to_make_way(struct pinion_task *task)
{
	items[0] = (struct item){.task.run = note, .number = 0};
	items[1] = (struct item){.task.run = end_pair, .number = 1};
	task->run = make_way;
	return pinion_task_spawn(runtime, &items[0].task) |
		pinion_task_spawn(runtime, &items[1].task) | pinion_task_respawn(runtime, task);
}

static void check_making_way(uint32_t queue_order, uint32_t lifo_polls)
{
	struct pinion_config config = config_of(queue_order, lifo_polls);

	run(&config, begin_to_make_way);
	expect_number("tasks", 3, order_count);
	expect_number("the last", CHILDREN, order[2]);
}

/* ---- refusals ---- */

static int respawn_elsewhere(struct pinion_task *task)
{
	struct pinion_runtime *other = runtimes_start(1, PINION_IO_AUTO);
	int rc = pinion_task_respawn(other, task);

	pinion_runtime_destroy(other);
	return rc == -EPERM ? 0 : -EIO;
}

static int respawn_bad(struct pinion_task *task)
{
	struct pinion_task bad = {.run = note, .flags = 1u << 31};
	struct pinion_task empty = {0};

	(void)task;
	return pinion_task_respawn(runtime, &bad) == -EINVAL &&
			pinion_task_respawn(runtime, &empty) == -EINVAL &&
			pinion_task_respawn(runtime, NULL) == -EINVAL
		? 0
		: -EIO;
}

static void check_refused(void)
{
	struct pinion_config config = config_of(PINION_QUEUE_FIFO, 3);
	struct pinion_task task = {.run = note, .private_ = 7};
	struct pinion_task before = task;

	runtime = runtimes_start(1, PINION_IO_AUTO);
	expect_number("outside", -EPERM, pinion_task_respawn(runtime, &task));
	expect_number("and untouched", 0, memcmp(&before, &task, sizeof(task)));
	pinion_runtime_destroy(runtime);
	run(&config, respawn_elsewhere);
	run(&config, respawn_bad);
}

/* ---- a timer beside a task that goes on for ever ---- */

static struct pinion_timer timer;
static uint32_t beats;	       /* since the timer was started */
static uint32_t beats_longest; /* the most that a timer has waited for */
static uint32_t timers_left;
static uint64_t beat_ns; /* that each beat takes at least */

static int run_timer(struct pinion_task *task)
{
	(void)task;
	beats_longest = beats > beats_longest ? beats : beats_longest;
	timers_left--;
	is_over = timers_left == 0;
	beats = UINT32_MAX;
	return 0;
}

/* The next timer starts elsewhere in a turn each time. */
static int beat(struct pinion_task *task)
{
	uint64_t begin_ns = beat_ns == 0 ? 0 : pinion_clock_now_ns();

	if (is_over) {
		return 0;
	}
	while (beat_ns != 0 && pinion_clock_now_ns() - begin_ns < beat_ns) {
	}
	if (beats == UINT32_MAX && ++order_count % 37 == 0) {
		timer = (struct pinion_timer){.task.run = run_timer};
		expect_number("timer", 0, pinion_timer_start(runtime, &timer, 0));
		beats = 0;
	} else if (beats != UINT32_MAX) {
		beats++;
	}
	return pinion_task_respawn(runtime, task);
}

static void check_budget(uint32_t budget_polls, uint32_t budget_us, uint32_t polls)
{
	static struct pinion_task beating = {.run = beat};
	struct pinion_config config = config_of(PINION_QUEUE_FIFO, 3);

	runtimes_tuning.budget_polls = budget_polls;
	runtimes_tuning.budget_us = budget_us;
	beats = UINT32_MAX;
	beats_longest = 0;
	timers_left = BEAT_TIMERS;
	order_count = 0;
	is_over = false;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &beating));
	expect_number("join", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
	printf("budget %u, %u us: a timer that is due waits for %u polls at most\n", budget_polls,
		budget_us, beats_longest);
	/* The rest of this turn, and the task that waits in the queue. */
	expect_true("within the budget", beats_longest <= polls + 1);
}

int main(void)
{
	struct pinion_tuning defaults;

	pinion_tuning_init(&defaults);
	expect_number("the default budget", 128, defaults.budget_polls);
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("tasks_run_in_order");
	scratch_file("file", "text");
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	check_ten(PINION_QUEUE_FIFO, 0, "0123456789");
	check_ten(PINION_QUEUE_FIFO, 3, "9012345678");
	check_ten(PINION_QUEUE_LIFO, 3, "9876543210");
	check_children();
	check_repeats(PINION_QUEUE_FIFO);
	check_repeats(PINION_QUEUE_LIFO);
	check_pair(1, 65535);
	check_pair(3, 65535);
	check_pair(3, 3);
	check_pair(3, 1);
	check_pair(0, 1);
	check_pair(20, 7);
	check_pair_beside_read(65535);
	check_pair_beside_read(8);
	check_making_way(PINION_QUEUE_FIFO, 0);
	check_making_way(PINION_QUEUE_FIFO, 3);
	check_making_way(PINION_QUEUE_LIFO, 3);
	check_refused();
	check_budget(1, LONG_US, 1);
	check_budget(16, LONG_US, 16);
	check_budget(defaults.budget_polls, LONG_US, defaults.budget_polls);
	/* Each beat is as long as the whole budget. */
	beat_ns = BEAT_NS;
	check_budget(65535, BEAT_NS / 1000, 1);
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
