/* SPDX-License-Identifier: MIT */
/*
 * Goal: a turn of a worker goes as it should, each time: it takes the time, has
 * timers that are due become tasks, runs `budget_polls` tasks at most, all by
 * one average of their length, learns from them, submits what they left and
 * reaps the ring, and begins anew with a full budget; only after a turn without
 * a task does the worker park. The time counted for tasks is the clock's, or in
 * batches that are not timed their average. Requests wait to be submitted for
 * 20 us of tasks at most. A turn ends `budget_polls` cancelled timers at most.
 * A worker that is woken for nothing, even by itself and on its way to sleep,
 * checks its ring before it sleeps: a completion meanwhile is not left for the
 * next wake. A sleep submits nothing, as that may block past any deadline of
 * the sleep. What it learns from a turn weighs as `ewma_alpha_permille` says.
 * AS-2, AS-3, AS-14, AS-17, C10. Hazards that others met: a worker that wakes
 * itself skips the check for I/O; a wait that is not over in time since it
 * submits first.
 * Method: one worker, whose host is replaced by a host that notes each call, on
 * a clock that stops except for the time that tasks add to it; tasks, a timer
 * and a read note themselves between these, with the worker's turn. The trace
 * has to be the one below, and the words of each turn what they should.
 */
#include "runtime/io/request.h"
#include "runtime/task/entry.h"
#include "runtime/worker/state.h"
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"
#include "tests/support/sleepers.h"
#include "tests/support/tasks.h"

#include <fcntl.h>
#include <sys/socket.h>

enum {
	BUDGET = 4,
	BUDGET_US = 500,
	TASKS = 10,
	TASK_NS = 2000,
	ALPHA_PERMILLE = 100,
	BEGIN_NS = 50 * 1000,
	GATHER_NS = 20 * 1000,
	GATHER_TASK_NS = 3000,
	SHORT_TASKS = 60,
	UNTIMED = 47,
	SHORT_TASK_NS = 7000,
	SHORT_USUAL_NS = 100,
	TIMER_NS = TASK_NS * 7,
	EVENTS_MAX = 128,
	LIMIT_SECONDS = 60,
};

/*
 * t: a task; r: the read's; d: the timer's; e: into the ring, without waiting;
 * w: to sleep there; f: to sleep on the futex; h: `before_park`.
 */
struct event {
	char kind;
	uint64_t clock_ns;
	uint64_t turn_end_ns; /* which turn it is */
	uint64_t average_ns;
	uint64_t turn_polls; /* that the last one took */
	uint64_t busy_ns;    /* of all batches before */
};

static struct pinion_runtime *runtime;
static struct pin_host host;
static uint64_t clock_ns;		/* 0: not read so far */
static struct pin_atomic_u32 goes_on;	/* the worker may be within a turn then */
static struct event events[EVENTS_MAX]; /* by the worker; read after its end */
static uint32_t event_count;
static bool is_noting;
static uint32_t slept_with; /* entries that a sleep was to submit; by the worker */
static struct pinion_task tasks[TASKS];
static struct pinion_timer timer;
static struct pinion_request request;
static struct pinion_file file;
static uint8_t byte;

static struct pin_worker *worker_of(void)
{
	return &runtime->shared.workers[0];
}

static void note(char kind)
{
	const struct pin_worker *worker = pin_worker_of_thread();

	/* Not of other threads, nor before the trace begins. */
	if (worker == NULL || !is_noting || event_count == EVENTS_MAX) {
		return;
	}
	events[event_count++] = (struct event){
		.kind = kind,
		.clock_ns = clock_ns,
		.turn_end_ns = worker->turn_end_ns,
		.average_ns = pin_queue_interval_average_ns(&worker->queue_interval),
		.turn_polls = pin_meter_read(&worker->meter.turn_polls),
		.busy_ns = pin_meter_read(&worker->meter.busy_ns),
	};
}

/* ---- the host ---- */

/*
 * Stops when it is first read, BEGIN_NS ahead: never earlier than the real
 * clock, which timed the turn before, and so that tasks do not seem short. In
 * the end it goes on as the real clock.
 */
static uint64_t read_clock(void)
{
	/* A spawner that wakes the worker notes when. */
	if (pin_worker_of_thread() == NULL) {
		return pinion_clock_now_ns();
	}
	if (pin_load_acquire_u32(&goes_on) != 0) {
		uint64_t real_ns = pinion_clock_now_ns();

		return real_ns > clock_ns ? real_ns : clock_ns;
	}
	if (clock_ns == 0) {
		clock_ns = pinion_clock_now_ns() + BEGIN_NS;
	}
	return clock_ns;
}

static int wait_on_futex(struct pin_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns)
{
	note('f');
	return pin_host_linux.futex_wait(word, expected, deadline_ns);
}

static int enter_ring(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags,
	void *argument, size_t argument_bytes)
{
	note(min_complete > 0 ? 'w' : 'e');
	if (min_complete > 0) {
		slept_with += to_submit;
	}
	return pin_host_linux.ring_enter(
		fd, to_submit, min_complete, flags, argument, argument_bytes);
}

/* On the worker, which is the only one: no other thread uses its host. */
static void replace_host(struct tasks_hold *hold)
{
	(void)hold;
	host = pin_host_linux;
	host.now_ns = read_clock;
	host.futex_wait = wait_on_futex;
	host.ring_enter = enter_ring;
	clock_ns = 0;
	runtime->shared.host = &host;
	worker_of()->ring.host = &host;
	is_noting = false;
}

/* ---- the tasks ---- */

static int run_read(struct pinion_task *task)
{
	(void)task;
	note('r');
	clock_ns += TASK_NS;
	return 0;
}

static int run_timer(struct pinion_task *task)
{
	(void)task;
	note('d');
	clock_ns += TASK_NS;
	return 0;
}

static void submit(void)
{
	request = (struct pinion_request){
		.task.run = run_read,
		.file = &file,
		.bytes = &byte,
		.length_bytes = 1,
	};
	expect_number("read", 0, pinion_request_submit(runtime, &request));
}

static int run_task(struct pinion_task *task)
{
	note('t');
	if (task == &tasks[1]) {
		submit();
	}
	clock_ns += TASK_NS;
	return 0;
}

static void clear_events(struct tasks_hold *hold)
{
	(void)hold;
	event_count = 0;
	is_noting = true;
}

static void start_turns(struct tasks_hold *hold)
{
	clear_events(hold);
	/* Of the queues of its own completions come next. */
	worker_of()->turn = 1;
	timer = (struct pinion_timer){.task.run = run_timer};
	expect_number("timer", 0, pinion_timer_start(runtime, &timer, clock_ns + TIMER_NS));
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = run_task};
		expect_number("respawn", 0, pinion_task_respawn(runtime, &tasks[i]));
	}
}

/* Whether it has a ring. */
static bool start(pinion_worker_hook_fn before_park, uint32_t alpha_permille, uint32_t budget_polls)
{
	struct tasks_hold hold = {.prepare = replace_host};
	struct pinion_runtime_info facts;
	struct pinion_config config;

	pin_store_release_u32(&goes_on, 0);
	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.budget_polls = budget_polls;
	runtimes_tuning.budget_us = BUDGET_US;
	runtimes_tuning.injector_target_us = 1000000;
	runtimes_tuning.interval_min = 65535;
	runtimes_tuning.interval_max = 65535;
	config.before_park = before_park;
	runtimes_tuning.ewma_alpha_permille = alpha_permille;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
	return facts.uses_ring != 0;
}

static void await_sleep(void)
{
	sleepers_await(&runtime->shared.classes[0], 1);
}

/* The worker's thread ends, and all that it has noted can be read. */
static void end(void)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("submitted by a sleep", 0, slept_with);
	pin_store_release_u32(&goes_on, 1);
	pinion_runtime_destroy(runtime);
	is_noting = false;
}

/* What a task of the sleeping worker prepares, up to its end. */
static void play(void (*prepare)(struct tasks_hold *hold))
{
	struct tasks_hold hold = {.prepare = prepare};

	await_sleep();
	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
	await_sleep();
	end();
}

/* ---- turns ---- */

/* Checks each by its known facts. */
static void expect_turn(const struct event *first, uint32_t count, bool is_first)
{
	uint64_t start_ns = first->turn_end_ns - (uint64_t)BUDGET_US * 1000;

	/* The task that began it all is of the first turn. */
	expect_true("a full budget", count + (is_first ? 1 : 0) <= BUDGET);
	expect_number("begins when its first task does",
		(long long)(is_first ? 0 : first->clock_ns - start_ns),
		(long long)(is_first ? first->clock_ns - start_ns : 0));
	for (uint32_t i = 1; i < count; i++) {
		expect_true("one average", first[i].average_ns == first->average_ns);
		expect_true("learns at its end", first[i].turn_polls == first->turn_polls);
	}
}

static bool is_of_task(const struct event *event)
{
	return strchr("trd", event->kind) != NULL;
}

static void expect_turns(void)
{
	uint64_t previous_ns = UINT64_MAX; /* the average of the turn before */
	uint32_t turns = 0;

	for (uint32_t i = 0; i < event_count;) {
		uint32_t count = 0;

		while (i + count < event_count && is_of_task(&events[i + count]) &&
			events[i + count].turn_end_ns == events[i].turn_end_ns) {
			count++;
		}
		if (count == 0) {
			i++;
			continue;
		}
		expect_turn(&events[i], count, turns == 0);
		/* Tasks of 2 us draw down an average that began at 50. */
		expect_true("has learnt", events[i].average_ns < previous_ns);
		previous_ns = events[i].average_ns;
		turns++;
		i += count;
	}
	expect_number("turns", 4, turns);
}

static void expect_trace(const char *expected)
{
	char trace[EVENTS_MAX + 1] = "";

	for (uint32_t i = 0; i < event_count; i++) {
		trace[i] = events[i].kind;
	}
	/* All after its first sleep is part of the drain. */
	trace[strlen(expected)] = '\0';
	expect_text("trace", expected, trace);
}

static void count_end(void *arg, uint64_t user_data, int32_t result)
{
	(void)user_data;
	(void)result;
	(*(uint32_t *)arg)++;
}

/*
 * Some kernels, 5.10 say, leave files that are not regular to helper threads.
 */
static bool is_over_when_submitted(void)
{
	static struct pin_ring ring;
	static struct pinion_request read;
	uint32_t ended_count = 0;
	bool is_over;

	rings_require();
	expect_number("init", 0, rings_init(&ring, &pin_host_linux, 8));
	read = (struct pinion_request){.file = &file, .bytes = &byte, .length_bytes = 1};
	read.task.run = run_read;
	expect_number("check", 0, pin_request_check(&read));
	expect_true("submit", pin_request_submit(&ring, &read));
	pin_ring_poll(&ring, count_end, &ended_count);
	is_over = ended_count > 0;
	while (ended_count == 0) {
		pin_ring_poll(&ring, count_end, &ended_count);
	}
	pin_ring_fini(&ring);
	return is_over;
}

/* False: cannot be seen here. */
static bool check_turns(void)
{
	bool has_ring = start(NULL, ALPHA_PERMILLE, BUDGET);
	const struct event *last;

	if (has_ring && !is_over_when_submitted()) {
		end();
		return false;
	}
	play(start_turns);
	/*
	 * Three and their spawner; the tasks left by the second go to the ring,
	 * whose completion is of the next turn; the timer is due when the third
	 * begins, and queues after the waiting ones; a turn without a task.
	 */
	expect_trace(has_ring ? "tttertttttttdf" : "tttrtttttttdf");
	expect_turns();
	last = &events[has_ring ? 13 : 12];
	expect_true("a turn of its own for the sleep", last->turn_end_ns != last[-1].turn_end_ns);
	expect_number("in which it has learnt of the one task", 1, (long long)last->turn_polls);
	expect_number("time of tasks, timer and read", (long long)(TASKS + 2) * TASK_NS,
		(long long)(last->busy_ns - events[0].busy_ns));
	return true;
}

/* ---- what gathers ---- */

static int run_gathering(struct pinion_task *task)
{
	note('t');
	if (task == &tasks[0]) {
		submit();
	}
	clock_ns += GATHER_TASK_NS;
	return 0;
}

static void start_gathering(struct tasks_hold *hold)
{
	clear_events(hold);
	worker_of()->turn = 1;
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = run_gathering};
		expect_number("respawn", 0, pinion_task_respawn(runtime, &tasks[i]));
	}
}

/* The budget would let all of them run first. */
static void check_gathering(void)
{
	char expected[EVENTS_MAX] = "";

	if (start(NULL, ALPHA_PERMILLE, TASKS + 2)) {
		play(start_gathering);
		for (uint32_t i = 0; i * GATHER_TASK_NS < GATHER_NS; i++) {
			strcat(expected, "t");
		}
		expect_trace(strcat(expected, "e"));
	} else {
		end();
	}
}

/* ---- batches that are not timed ---- */

static uint32_t short_left; /* by the worker */

static int run_short(struct pinion_task *task)
{
	note('t');
	clock_ns += SHORT_TASK_NS;
	if (--short_left > 0) {
		expect_number("respawn", 0, pinion_task_respawn(runtime, task));
	}
	return 0;
}

static void start_short(struct tasks_hold *hold)
{
	clear_events(hold);
	/* From here on they are known as short, until a batch is timed. */
	worker_of()->queue_interval.average = (uint64_t)SHORT_USUAL_NS
		<< PIN_QUEUE_INTERVAL_AVERAGE_SHIFT;
	short_left = SHORT_TASKS;
	tasks[0] = (struct pinion_task){.run = run_short};
	expect_number("respawn", 0, pinion_task_respawn(runtime, &tasks[0]));
}

/*
 * With a budget of one task each is a batch. 47 in a row are not timed: they
 * count as usual, though each takes much longer; then the clock counts.
 */
static void check_untimed(void)
{
	start(NULL, 1, 1);
	play(start_short);
	for (uint32_t i = 0; i + 1 < SHORT_TASKS; i++) {
		uint64_t busy_ns = i < UNTIMED ? events[i].average_ns : SHORT_TASK_NS;

		expect_true("is short", i > UNTIMED || events[i].average_ns <= SHORT_USUAL_NS);
		expect_number("what a batch adds", (long long)busy_ns,
			(long long)(events[i + 1].busy_ns - events[i].busy_ns));
	}
}

/* ---- cancelled timers ---- */

static struct pinion_timer cancelled[TASKS];

static int note_run(struct pinion_task *task)
{
	(void)task;
	note('t');
	return 0;
}

static void note_cancel(struct pinion_task *task)
{
	(void)task;
	note('c');
}

static void start_cancelled(struct tasks_hold *hold)
{
	clear_events(hold);
	worker_of()->turn = 1;
	for (uint32_t i = 0; i < TASKS; i++) {
		cancelled[i] =
			(struct pinion_timer){.task = {.run = note_run, .cancel = note_cancel}};
		expect_number("timer", 0, pinion_timer_start(runtime, &cancelled[i], UINT64_MAX));
		tasks[i] = (struct pinion_task){.run = note_run};
		expect_number("respawn", 0, pinion_task_respawn(runtime, &tasks[i]));
	}
	for (uint32_t i = 0; i < TASKS; i++) {
		expect_number("cancel", 0, pinion_timer_cancel(runtime, &cancelled[i]));
	}
}

/* A turn ends as many as its budget has, and runs as many tasks. */
static void check_cancelled(void)
{
	start(NULL, ALPHA_PERMILLE, BUDGET);
	play(start_cancelled);
	expect_trace("tttccccttttcccctttcc");
}

/* ---- learning ---- */

/*
 * The first turn was of one task that took no time and three of 2 us: each of
 * the four moves the average by alpha towards their mean.
 */
static void check_alpha(uint32_t alpha_permille)
{
	double expected_ns = TASK_NS * 3.0 / BUDGET;
	double kept = 1;
	double got_ns;
	uint32_t next = BUDGET - 1;

	start(NULL, alpha_permille, BUDGET);
	play(start_turns);
	for (int i = 0; i < BUDGET; i++) {
		kept *= 1 - alpha_permille / 1000.0;
	}
	expected_ns += ((double)events[0].average_ns - expected_ns) * kept;
	while (!is_of_task(&events[next])) {
		next++;
	}
	got_ns = (double)events[next].average_ns;
	printf("alpha %u: %llu ns, then %.0f\n", alpha_permille,
		(unsigned long long)events[0].average_ns, got_ns);
	/* In units of 2^-8 ns by weights of 24 bits, rounded down. */
	expect_true("the average",
		got_ns > expected_ns - 2 - expected_ns / 1000 &&
			got_ns < expected_ns + 2 + expected_ns / 1000);
}

/* ---- on the way to sleep ---- */

enum wake { SELF_WAKE, OWN_TASK, NO_WAKE };

static enum wake wake;
static int ends[2];
static struct pin_atomic_u32 read_count;

static int count_read(struct pinion_task *task)
{
	(void)task;
	note('r');
	tasks_signal(&read_count);
	return 0;
}

static void start_read(struct tasks_hold *hold)
{
	(void)hold;
	submit();
	request.task.run = count_read;
}

/* A completion that comes now has not been there at the last check. */
static void wake_itself(void *arg, uint32_t worker_index, void *context)
{
	(void)arg;
	(void)worker_index;
	(void)context;
	note('h');
	if (!is_noting || event_count != 1) {
		return;
	}
	expect_ready("write", write(ends[1], "x", 1) == 1);
	while (!pin_ring_owes_completions(&worker_of()->ring)) {
		pin_host_linux.yield();
	}
	if (wake == SELF_WAKE) {
		expect_true("no doorbell", !pin_parker_notify(&worker_of()->parker, &host));
	} else if (wake == OWN_TASK) {
		tasks[0] = (struct pinion_task){.run = run_task};
		expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, 0, &tasks[0]));
	}
}

/* The first sleep of it is after the read. */
static void expect_read_before_sleep(void)
{
	uint32_t i = 0;

	while (i < event_count && events[i].kind != 'w' && events[i].kind != 'f' &&
		events[i].kind != 'r') {
		i++;
	}
	expect_number("the first is the hook's", 'h', events[0].kind);
	expect_number("then the read's, before a sleep", 'r', i < event_count ? events[i].kind : 0);
}

static void check_wake(enum wake how)
{
	struct tasks_hold reading = {.prepare = start_read};
	struct tasks_hold hold = {.prepare = clear_events};

	wake = how;
	pin_store_release_u32(&read_count, 0);
	/*
	 * Of a pipe a kernel without FMODE_NOWAIT there, 6.1 say, has a helper
	 * thread read, once there is something.
	 */
	expect_ready("sockets", socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	if (start(wake_itself, ALPHA_PERMILLE, BUDGET)) {
		file = runtimes_plain_file(ends[0]);
		tasks_hold_begin(&reading, runtime, 0);
		tasks_hold_end(&reading);
		await_sleep();
		tasks_hold_begin(&hold, runtime, 0);
		tasks_hold_end(&hold);
		tasks_await(&read_count, 1);
		end();
		expect_read_before_sleep();
	} else {
		printf("no io_uring, so no read is in flight\n");
		end();
	}
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	bool has_looked;

	runtimes_watchdog(LIMIT_SECONDS);
	file = runtimes_plain_file(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	has_looked = check_turns();
	check_alpha(1);
	check_alpha(ALPHA_PERMILLE);
	check_alpha(500);
	check_alpha(999);
	check_gathering();
	check_untimed();
	check_cancelled();
	close(file.fd);
	check_wake(SELF_WAKE);
	check_wake(OWN_TASK);
	check_wake(NO_WAKE);
	if (!has_looked && expect_failure_count == 0) {
		printf("skipped: no read is over here when it is submitted\n");
		return 77;
	}
	return expect_status();
}
