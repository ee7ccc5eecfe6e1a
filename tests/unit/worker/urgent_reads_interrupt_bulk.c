/* SPDX-License-Identifier: MIT */
/*
 * Goal: from the first request of the high lane on, a worker submits no more in
 * one call than takes 100 us, and before it as much as has gathered. An urgent
 * read that comes from outside during a call is begun right after that call, in
 * a call of its own, and its task is the next to run, though completions of
 * others are ready. The first of all is read before the next task, if it comes
 * during a task. While an urgent request is in flight a turn lasts 20 us.
 * Method: one worker, on a clock that goes on by 20 us for each entry that a
 * call submits, and by what tasks add; chains of reads of a cached file, which
 * are over when they are submitted. During some calls the thread outside
 * submits an urgent read. Calls and tasks note themselves, and a read of a pipe
 * stays in flight.
 */
#include "runtime/io/request.h"
#include "runtime/task/entry.h"
#include "runtime/worker/state.h"
#include "tests/support/requests.h"
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <fcntl.h>

enum {
	CHAINS = 32,
	READS = 12 * CHAINS, /* of all chains */
	BLOCK_BYTES = 64 << 10,
	URGENT_BYTES = 4096,
	ENTRY_NS = 20 * 1000,
	/* Five entries of 20 us. */
	ENTRIES_MAX = 5,
	BEGIN_NS = 50 * 1000,
	URGENT = 3,
	TASKS = 99,
	TASK_NS = 3000,
	TURN_TASKS = 7, /* of 3 us, in 20 */
	FIRST_TASKS = 4,
	EVENTS_MAX = 2048,
	LIMIT_SECONDS = 60,
};

/* Calls with bulk during which an urgent read is submitted, from 1 on. */
static const uint32_t interrupted[URGENT] = {3, 9, 20};

/* e: a call, with its entries; E: an urgent read came then; t, u: tasks. */
struct event {
	char kind;
	uint32_t count;
};

static struct pinion_runtime *runtime;
static struct pin_host host;
static struct pin_atomic_u64 clock_ns; /* by the worker */
static struct event events[EVENTS_MAX];
static uint32_t event_count;
static bool is_noting;
static uint32_t call_count;
static struct pin_atomic_u32 calls_reached;
static struct pin_atomic_u32 calls_may_end;
static struct pin_atomic_u32 bulk_ended;
static uint32_t bulk_begun;
static struct pinion_file file;
static struct pinion_request chains[CHAINS];
static uint8_t memory[CHAINS][BLOCK_BYTES];
static struct requests_one urgent[URGENT];
static uint8_t urgent_bytes[URGENT_BYTES];

static void note(char kind, uint32_t count)
{
	if (is_noting && event_count < EVENTS_MAX) {
		events[event_count++] = (struct event){.kind = kind, .count = count};
	}
}

/* ---- the host ---- */

/* The real one until it is stopped. Relaxed: other threads read it as well. */
static uint64_t read_clock(void)
{
	uint64_t stopped_ns = pin_load_relaxed_u64(&clock_ns);

	return stopped_ns != 0 ? stopped_ns : pinion_clock_now_ns();
}

static void advance(uint64_t elapsed_ns)
{
	pin_store_relaxed_u64(&clock_ns, read_clock() + elapsed_ns);
}

static bool is_interrupted(void)
{
	for (uint32_t i = 0; i < URGENT; i++) {
		if (call_count == interrupted[i]) {
			return true;
		}
	}
	return false;
}

/* The kernel copies while it submits. */
static int enter_ring(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags,
	void *argument, size_t argument_bytes)
{
	int rc = pin_host_linux.ring_enter(
		fd, to_submit, min_complete, flags, argument, argument_bytes);

	if (!is_noting || rc <= 0) {
		return rc;
	}
	advance((uint64_t)rc * ENTRY_NS);
	/* An urgent one has a call of its own. */
	call_count += to_submit > 1 ? 1 : 0;
	if (to_submit > 1 && is_interrupted()) {
		note('E', to_submit);
		tasks_signal(&calls_reached);
		tasks_await(&calls_may_end, pin_load_acquire_u32(&calls_reached));
	} else {
		note('e', to_submit);
	}
	return rc;
}

static void replace_host(struct tasks_hold *hold)
{
	(void)hold;
	host = pin_host_linux;
	host.now_ns = read_clock;
	host.ring_enter = enter_ring;
	runtime->shared.host = &host;
	runtime->shared.workers[0].ring.host = &host;
}

static void stop_clock(struct tasks_hold *hold)
{
	(void)hold;
	pin_store_relaxed_u64(&clock_ns, pinion_clock_now_ns() + BEGIN_NS);
}

/* The turn in which the host is replaced goes on with the real one. */
static void await_sleep(void)
{
	struct pinion_worker_info info = {.place = PINION_WORKER_RUNNING};

	while (info.place == PINION_WORKER_RUNNING) {
		expect_number("info", 0, pinion_worker_get_info(runtime, 0, &info, sizeof(info)));
	}
}

static void on_worker(void (*prepare)(struct tasks_hold *hold))
{
	struct tasks_hold hold = {.prepare = prepare};

	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
}

/* ---- bulk ---- */

static void submit_next(struct pinion_request *request)
{
	if (bulk_begun < READS) {
		bulk_begun++;
		expect_number("submit", 0, pinion_request_submit(runtime, request));
	}
}

static int end_block(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);

	note('t', 0);
	expect_number("block", BLOCK_BYTES, (long long)request->result);
	submit_next(request);
	tasks_signal(&bulk_ended);
	return 0;
}

static void start_bulk(struct tasks_hold *hold)
{
	(void)hold;
	is_noting = true;
	for (uint32_t i = 0; i < CHAINS; i++) {
		chains[i] = (struct pinion_request){
			.task.run = end_block,
			.op = PINION_OP_READ,
			.file = &file,
			.bytes = memory[i],
			.length_bytes = BLOCK_BYTES,
		};
		submit_next(&chains[i]);
	}
}

static int end_urgent(struct pinion_task *task)
{
	note('u', 0);
	return requests_entered(task);
}

static void submit_urgent(struct requests_one *one)
{
	struct pinion_request *request =
		requests_begin_transfer(one, PINION_OP_READ, &file, urgent_bytes, 0, URGENT_BYTES);

	request->task.run = end_urgent;
	request->task.flags = PINION_TASK_HIGH;
	expect_number("urgent", 0, pinion_request_submit(runtime, request));
}

static void expect_events(void)
{
	uint32_t urgent_count = 0;
	uint32_t longest = 0;

	for (uint32_t i = 0; i < event_count; i++) {
		bool is_bulk = events[i].kind == 'E' ||
			(events[i].kind == 'e' && events[i - (i > 0 ? 1 : 0)].kind != 'E');

		if (is_bulk && urgent_count == 0) {
			expect_number("as gathered", CHAINS, events[i].count);
		} else if (is_bulk) {
			expect_true("bounded", events[i].count <= ENTRIES_MAX);
			longest = events[i].count > longest ? events[i].count : longest;
		}
		if (events[i].kind == 'E' && i + 2 < event_count) {
			expect_number("a call follows", 'e', events[i + 1].kind);
			expect_number("of its own", 1, events[i + 1].count);
			expect_number("and then its task", 'u', events[i + 2].kind);
			urgent_count++;
		}
	}
	expect_number("urgent ones", URGENT, urgent_count);
	expect_number("a full call", ENTRIES_MAX, longest);
}

static void check_bulk(void)
{
	on_worker(start_bulk);
	for (uint32_t i = 0; i < URGENT; i++) {
		tasks_await(&calls_reached, i + 1);
		submit_urgent(&urgent[i]);
		tasks_signal(&calls_may_end);
	}
	for (uint32_t i = 0; i < URGENT; i++) {
		expect_number("read", URGENT_BYTES, (long long)requests_await(&urgent[i]));
	}
	tasks_await(&bulk_ended, READS);
}

static struct pinion_task tasks[TASKS];

/* ---- the first of all ---- */

static int note_task(struct pinion_task *task)
{
	(void)task;
	note('t', 0);
	return 0;
}

static void queue_tasks(struct tasks_hold *hold)
{
	(void)hold;
	is_noting = true;
	for (uint32_t i = 0; i < FIRST_TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = note_task};
		expect_number("respawn", 0, pinion_task_respawn(runtime, &tasks[i]));
	}
}

static void check_first(void)
{
	struct tasks_hold hold = {.prepare = queue_tasks};
	char kinds[FIRST_TASKS + 3] = "";

	tasks_hold_begin(&hold, runtime, 0);
	submit_urgent(&urgent[0]);
	tasks_hold_end(&hold);
	expect_number("read", URGENT_BYTES, (long long)requests_await(&urgent[0]));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("events", FIRST_TASKS + 2, event_count);
	for (uint32_t i = 0; i < FIRST_TASKS + 2 && i < event_count; i++) {
		kinds[i] = events[i].kind;
	}
	expect_text("its call and its task, then the others", "eutttt", kinds);
	event_count = 0;
}

/* ---- turns while one is in flight ---- */

static uint64_t turn_ends_ns[TASKS]; /* which turn each was in */
static struct pin_atomic_u32 tasks_ended;
static struct pinion_file pipe_file;
static struct requests_one waiting;

static int run_task(struct pinion_task *task)
{
	turn_ends_ns[task - tasks] = runtime->shared.workers[0].turn_end_ns;
	advance(TASK_NS);
	tasks_signal(&tasks_ended);
	return 0;
}

static void start_tasks(struct tasks_hold *hold)
{
	struct pinion_request *request = requests_begin_transfer(
		&waiting, PINION_OP_READ, &pipe_file, urgent_bytes, 0, URGENT_BYTES);

	(void)hold;
	is_noting = false;
	request->task.flags = PINION_TASK_HIGH;
	expect_number("pipe", 0, pinion_request_submit(runtime, request));
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = run_task};
		expect_number("respawn", 0, pinion_task_respawn(runtime, &tasks[i]));
	}
}

static void check_turns(void)
{
	uint32_t turns = 1;
	uint32_t first = 0;
	int ends[2];

	expect_ready("pipe", pipe2(ends, O_CLOEXEC) == 0);
	pipe_file = runtimes_plain_file(ends[0]);
	on_worker(start_tasks);
	tasks_await(&tasks_ended, TASKS);
	expect_ready("write", write(ends[1], memory[0], URGENT_BYTES) == URGENT_BYTES);
	expect_number("then it ends", URGENT_BYTES, (long long)requests_await(&waiting));
	for (uint32_t i = 1; i < TASKS; i++) {
		if (turn_ends_ns[i] != turn_ends_ns[i - 1]) {
			/* In the first turn tasks seem short still. */
			expect_true("of 20 us", turns == 1 || i - first == TURN_TASKS);
			first = i;
			turns++;
		}
	}
	expect_true("several turns", turns > 3);
	close(ends[0]);
	close(ends[1]);
}

/* Its task is a completion, as that of any other request. */
static void check_count(void)
{
	struct pinion_worker_stats before;
	struct pinion_worker_stats after;
	struct pinion_request *request = requests_begin_transfer(
		&waiting, PINION_OP_READ, &file, urgent_bytes, 0, URGENT_BYTES);

	request->task.flags = PINION_TASK_HIGH;
	expect_number("stats", 0, pinion_worker_get_stats(runtime, 0, &before, sizeof(before)));
	expect_number("submit", 0, pinion_request_submit(runtime, request));
	expect_number("read", URGENT_BYTES, (long long)requests_await(&waiting));
	expect_number("stats", 0, pinion_worker_get_stats(runtime, 0, &after, sizeof(after)));
	expect_number("ready", 1, (long long)(after.ready_polls - before.ready_polls));
}

/* In the page cache, so that the kernel copies it. */
static void open_file(void)
{
	scratch_enter("urgent_reads_interrupt_bulk");
	file = runtimes_plain_file(open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	expect_ready("file", file.fd >= 0);
	expect_ready("fill", write(file.fd, memory[0], BLOCK_BYTES) == BLOCK_BYTES);
}

/* Not where file systems leave that to helper threads. */
static bool is_over_when_submitted(void)
{
	struct rings_delivered delivered = {0};
	static struct pin_ring ring;
	bool is_over;

	rings_require();
	expect_number("init", 0, rings_init(&ring, &pin_host_linux, 8));
	requests_begin_transfer(&waiting, PINION_OP_READ, &file, urgent_bytes, 0, URGENT_BYTES);
	expect_true("submit", pin_request_submit(&ring, &waiting.request));
	pin_ring_poll(&ring, rings_deliver, &delivered);
	is_over = delivered.count > 0;
	rings_await(&ring, &delivered, 1);
	rings_end(&ring);
	return is_over;
}

/* With one worker, which sleeps while its clock is stopped. */
static void start(void)
{
	runtime = runtimes_start(1, PINION_IO_AUTO);
	on_worker(replace_host);
	await_sleep();
	on_worker(stop_clock);
}

static void end(void)
{
	pinion_runtime_destroy(runtime);
	is_noting = false;
	pin_store_relaxed_u64(&clock_ns, 0);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	open_file();
	if (!is_over_when_submitted()) {
		printf("skipped: no read is over here when it is submitted\n");
		scratch_leave();
		return EXPECT_SKIPPED;
	}
	start();
	check_first();
	end();
	start();
	check_bulk();
	check_turns();
	check_count();
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	end();
	expect_events();
	close(file.fd);
	scratch_leave();
	return expect_status();
}
