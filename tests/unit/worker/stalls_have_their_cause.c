/* SPDX-License-Identifier: MIT */
/*
 * Goal: the line for a stalled task says what its thread does; a worker that
 * has no CPU is not stalled. A lane of which no task begins, and a device that
 * completes nothing, for ten times `stall_ms` are each named once, with the
 * remedy, or the file and offset; while anything goes on, or all workers are
 * stalled and have their own lines, they are not. All of it is counted. WP-26,
 * WP-35, AS-38, W46.
 * Method: workers without threads, on a clock that is set by hand, and threads
 * whose state the test makes up.
 */
#include "runtime/host/thread_state.h"
#include "runtime/worker/device_stall.h"
#include "runtime/worker/request.h"
#include "runtime/worker/stall_time.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"
#include "tests/support/expect.h"

#include <stdlib.h>
#include <sys/sysmacros.h>

enum {
	WORKERS = 2,
	STALL_MS = 20,
	DISK = 1, /* not the first */
};

#define LIMIT_NS (STALL_MS * UINT64_C(1000000))
#define LONG_NS (PIN_STALL_TIMES * LIMIT_NS)

static uint64_t clock_ns;
static struct pin_thread_state thread;
static char last_line[512];
static uint32_t line_count;
static uint32_t over_count;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static struct pin_worker *ends_meanwhile; /* a worker whose task ends, or NULL */

static void thread_look(uint32_t number, struct pin_thread_state *out_state)
{
	expect_number("thread", 7, number);
	if (ends_meanwhile != NULL) {
		pin_meter_add(&ends_meanwhile->meter.tasks_run, 1);
	}
	*out_state = thread;
}

static void futex_wake(struct pin_atomic_u32 *word, uint32_t count)
{
	(void)word;
	(void)count;
}

static const struct pin_host host = {
	.now_ns = now_ns, .thread_look = thread_look, .futex_wake = futex_wake};

static void keep(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	snprintf(last_line, sizeof(last_line), "%s", message);
	if (level == PINION_LOG_INFO) {
		over_count++;
	} else {
		expect_number("level", PINION_LOG_WARN, level);
		line_count++;
	}
}

static void run_on(void)
{
}

static struct pin_shared shared;
static struct pin_worker_class all_lanes = {.order.mask = PIN_LANES_ALL};

/* Workers in a task, which go on with it. */
static struct pin_worker *start(uint32_t lane_floor)
{
	static struct pin_worker *workers;

	free(workers);
	workers = aligned_alloc(PIN_CACHE_LINE, WORKERS * sizeof(*workers));
	expect_ready("memory", workers != NULL);
	memset(workers, 0, WORKERS * sizeof(*workers));
	shared = (struct pin_shared){
		.host = &host,
		.log = {.fn = keep},
		.tuning.stall_ms = STALL_MS,
		.tuning.lane_floor = lane_floor,
		.worker_count = WORKERS,
		.workers = workers,
	};
	for (uint32_t i = 0; i < PIN_LANES; i++) {
		pin_lane_queue_init(&shared.lanes[i], &host);
	}
	pin_injector_init(&shared.injector, &host);
	for (uint32_t i = 0; i < WORKERS; i++) {
		workers[i].shared = &shared;
		workers[i].index = i;
		workers[i].worker_class = &all_lanes;
		pin_parker_init(&workers[i].parker);
		pin_running_enter(&workers[i], run_on);
		pin_store_relaxed_u32(&workers[i].is_stepping, 1);
		pin_store_relaxed_u32(&workers[i].running_lane, PINION_LANE_NORMAL);
		pin_store_relaxed_u32(&workers[i].thread_number, 7);
		pin_request_list_init(&workers[i].in_flight);
	}
	thread = (struct pin_thread_state){.cpu_ns = UINT64_MAX};
	clock_ns = 1000 * LONG_NS;
	line_count = 0;
	over_count = 0;
	return workers;
}

static void look_later(uint64_t later_ns)
{
	clock_ns += later_ns;
	shared.stalls.look_ns = 0;
	(void)pin_stall_look(&shared, true);
}

static void expect_lines(const char *what, uint32_t lines, uint64_t later_ns)
{
	look_later(later_ns);
	expect_number(what, lines, line_count);
}

static void expect_count(const char *what, uint32_t count, enum pin_stall_kind kind)
{
	expect_number(what, count, (long long)pin_load_relaxed_u64(&shared.stalls.counts[kind]));
}

/* Its tasks end, one after the other. */
static void keep_alive(struct pin_worker *worker)
{
	pin_meter_add(&worker->meter.tasks_run, 1);
}

/* ---- causes ---- */

static void check_cause(enum pin_thread_doing doing, const char *where, const char *end)
{
	struct pin_worker *workers = start(16);
	size_t length;

	thread.doing = doing;
	snprintf(thread.where, sizeof(thread.where), "%s", where);
	keep_alive(&workers[1]);
	look_later(0);
	keep_alive(&workers[1]);
	expect_lines("named", 1, LIMIT_NS);
	length = strlen(last_line);
	expect_true(
		end, length > strlen(end) && strcmp(last_line + length - strlen(end), end) == 0);
	expect_true("it is worker 0", strstr(last_line, "worker 0: ") == last_line);
	expect_count("counted", 1, PIN_STALL_OF_TASK);
	expect_number("it is stalled", 1, pin_load_relaxed_u32(&shared.stalls.tasks_now));
	keep_alive(&workers[0]);
	look_later(1);
	expect_number("it is not", 0, pin_load_relaxed_u32(&shared.stalls.tasks_now));
}

static void look_after(struct pin_worker *other, uint64_t later_ns, uint64_t cpu_ns)
{
	thread.cpu_ns += cpu_ns;
	keep_alive(other);
	look_later(later_ns);
}

/* A quarter of a CPU is enough to be a task that computes. */
static void check_cpu(void)
{
	struct pin_worker *workers = start(16);

	thread = (struct pin_thread_state){.doing = PIN_THREAD_RUNS};
	look_after(&workers[1], 0, 0);
	look_after(&workers[1], LIMIT_NS / 2, 0);
	for (int i = 0; i < 10; i++) {
		look_after(&workers[1], LIMIT_NS / 2, LIMIT_NS / 8 - 1);
		expect_number("it waits for a CPU", 0, line_count);
	}
	look_after(&workers[1], LIMIT_NS / 2, LIMIT_NS / 8);
	expect_number("it computes", 1, line_count);
	expect_true("as is said", strstr(last_line, "without progress: it computes") != NULL);
}

/* It sleeps at the moment, but waited for a CPU for most of the time. */
static void check_delay(void)
{
	struct pin_worker *workers = start(16);

	thread = (struct pin_thread_state){.doing = PIN_THREAD_SLEEPS, .where = "futex"};
	look_after(&workers[1], 0, 0);
	look_after(&workers[1], LIMIT_NS / 2, 0);
	for (int i = 0; i < 10; i++) {
		thread.delay_ns += LIMIT_NS / 4 + 1;
		look_after(&workers[1], LIMIT_NS / 2, 0);
		expect_number("it waited for a CPU", 0, line_count);
	}
	thread.delay_ns += LIMIT_NS / 4;
	look_after(&workers[1], LIMIT_NS / 2, 0);
	expect_number("it sleeps", 1, line_count);
}

/* It was notified; its waker, or it, has no CPU yet. */
static void check_notified(void)
{
	struct pin_worker *workers = start(16);

	thread = (struct pin_thread_state){
		.doing = PIN_THREAD_SLEEPS, .where = "futex", .cpu_ns = UINT64_MAX};
	expect_true("parks", pin_parker_prepare(&workers[0].parker, PIN_PARK_FUTEX));
	(void)pin_parker_notify(&workers[0].parker, &host);
	look_after(&workers[1], 0, 0);
	look_after(&workers[1], 3 * LIMIT_NS, 0);
	look_after(&workers[1], 3 * LIMIT_NS, 0);
	expect_number("it has not got up", 0, line_count);
	(void)pin_parker_finish(&workers[0].parker);
	look_after(&workers[1], 0, 0);
	look_after(&workers[1], LIMIT_NS, 0);
	expect_number("now it has", 1, line_count);
}

/* Its task has ended while /proc was read. */
static void check_recheck(void)
{
	struct pin_worker *workers = start(16);

	ends_meanwhile = &workers[0];
	look_after(&workers[1], 0, 0);
	look_after(&workers[1], LIMIT_NS, 0);
	expect_number("it has gone on", 0, line_count);
	expect_count("none", 0, PIN_STALL_OF_TASK);
	ends_meanwhile = NULL;
	look_after(&workers[1], 0, 0);
	look_after(&workers[1], LIMIT_NS, 0);
	expect_number("the next has not", 1, line_count);
}

/* ---- lanes ---- */

static void push(uint32_t lane, struct pinion_task *task)
{
	struct pin_list list = {0};

	pin_list_push(&list, pin_task_link(task));
	if (lane == PINION_LANE_NORMAL) {
		pin_injector_push(&shared.injector, &list);
	} else {
		pin_lane_queue_push(&shared.lanes[lane], &list, 1);
	}
}

static void live_on(struct pin_worker *workers)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		pin_worker_self = &workers[i];
		pin_stall_note_life(&workers[i]);
	}
	pin_worker_self = NULL;
}

static void expect_lane_lines(
	const char *what, struct pin_worker *workers, uint32_t lines, uint64_t later_ns)
{
	live_on(workers);
	expect_lines(what, lines, later_ns);
}

static void check_lane(uint32_t lane, const char *name, uint32_t floor, const char *remedy)
{
	const struct pin_stalls *stalls = &shared.stalls;
	struct pin_worker *workers = start(floor);
	struct pinion_task task = {0};
	char begin[128];

	pin_store_relaxed_u32(&shared.flags, PIN_SHARED_LANES);
	expect_lane_lines("nothing waits", workers, 0, 0);
	expect_lane_lines("nothing waits", workers, 0, 2 * LONG_NS);
	push(lane, &task);
	expect_lane_lines("seen", workers, 0, 0);
	expect_lane_lines("not yet", workers, 0, LONG_NS - 1);
	expect_lane_lines("now", workers, 1, 1);
	snprintf(begin, sizeof(begin),
		"lane %s: 1 tasks wait and none has begun for more than 200 ms: ", name);
	expect_true(begin, strncmp(last_line, begin, strlen(begin)) == 0);
	expect_true(remedy, strstr(last_line, remedy) != NULL);
	expect_lane_lines("once", workers, 1, 3 * LONG_NS);
	expect_count("counted once", 1, PIN_STALL_OF_LANE);
	expect_number("it starves", PIN_LANE_BIT(lane), pin_load_relaxed_u32(&stalls->lanes_now));
	expect_number("not over", 0, over_count);
	pin_meter_add(lane == PINION_LANE_HIGH	  ? &workers[1].meter.high_run
			: lane == PINION_LANE_LOW ? &workers[1].meter.low_run
						  : &workers[1].meter.queued_cancelled,
		1);
	expect_lane_lines("one has begun", workers, 1, 1);
	expect_number("which is said", 1, over_count);
	expect_number("it does not", 0, pin_load_relaxed_u32(&stalls->lanes_now));
	expect_lane_lines("another waits", workers, 2, LONG_NS);
	expect_count("counted again", 2, PIN_STALL_OF_LANE);
}

static void check_lane_exceptions(void)
{
	struct pin_worker *workers = start(0);
	struct pinion_task task = {0};

	/* A wait that is configured is none, nor a quarter more. */
	shared.tuning.low_max_wait_ms = 1000;
	push(PINION_LANE_LOW, &task);
	expect_lane_lines("seen", workers, 0, 0);
	expect_lane_lines("as configured", workers, 0, 1250 * UINT64_C(1000000) - 1);
	expect_lane_lines("longer", workers, 1, 1);

	/* Both workers are stalled, and have their lines. */
	workers = start(0);
	push(PINION_LANE_HIGH, &task);
	look_later(0);
	expect_lines("both workers", 2, LIMIT_NS);
	expect_lines("and that is why", 2, 3 * LONG_NS);
	expect_count("no lane", 0, PIN_STALL_OF_LANE);
	/* One goes on, with tasks of other lanes. */
	expect_lane_lines("one is alive", workers, 2, 1);
	expect_lane_lines("seen", workers, 2, 1);
	expect_lane_lines("now it starves", workers, 3, LONG_NS);
}

/* ---- devices ---- */

static struct pin_account *open_disk(struct pin_worker *worker)
{
	struct pin_account *account = &worker->device_queue.accounts[0];
	struct pin_disk *disk = &shared.disks.disks[DISK];

	pin_store_release_u32(&shared.disks.count, DISK + 1);
	worker->device_queue.account_count = 1;
	disk->device = makedev(8, 16);
	account->device = disk->device;
	account->disk = disk;
	account->worker = worker;
	pin_store_release_u32(&account->disk_place, DISK + 1);
	return account;
}

/* As it is when the worker is about to sleep. */
static void note_used(struct pin_worker *worker, uint32_t count)
{
	worker->device_queue.accounts[0].holding.used = pin_credit_amount(count, count);
	pin_device_stall_note_used(worker);
}

static void begin_read(struct pin_worker *worker, struct pinion_request *request,
	struct pinion_file *file, uint64_t offset)
{
	*request = (struct pinion_request){.file = file, .offset_bytes = offset};
	pin_request_of(request)->cost.account_place = 1;
	pin_request_list_push(&worker->in_flight, &pin_request_of(request)->link);
}

static void check_device(void)
{
	struct pin_worker *workers = start(16);
	struct pinion_request requests[2];
	struct pinion_file file = {.fd = 1 << 20};

	open_disk(&workers[1]);
	/* Of files that are in none, such as pipes. */
	workers[1].device_queue.accounts[0].device = 0;
	note_used(&workers[1], 1);
	expect_number("no device", 0, pin_load_relaxed_u32(&workers[1].devices_used));
	open_disk(&workers[1]);
	note_used(&workers[1], 0);
	expect_lane_lines("unused", workers, 0, 0);
	expect_lane_lines("unused", workers, 0, 2 * LONG_NS);
	begin_read(&workers[1], &requests[0], &file, 8192);
	begin_read(&workers[1], &requests[1], &file, 4096);
	note_used(&workers[1], 2);
	expect_lane_lines("seen", workers, 0, 0);
	expect_lane_lines("not yet", workers, 0, LONG_NS - 1);
	expect_number("no question", 0, pin_load_relaxed_u32(&shared.stalls.asked));
	expect_lane_lines("is asked for", workers, 0, 1);
	expect_number("which", DISK + 1, pin_load_relaxed_u32(&shared.stalls.asked));
	expect_number("a kick", 1, pin_load_relaxed_u32(&workers[1].kicked));
	pin_device_stall_answer(&workers[0]);
	expect_number("it has none", 0, line_count);
	pin_device_stall_answer(&workers[1]);
	expect_number("it has", 1, line_count);
	expect_true(last_line,
		strcmp(last_line,
			"device 8:16: none of its requests has completed for more than 200 ms; "
			"the oldest is a read of descriptor 1048576 at offset 8192") == 0);
	pin_device_stall_answer(&workers[1]);
	expect_lane_lines("once", workers, 1, 2 * LONG_NS);
	expect_lane_lines("once", workers, 1, 2 * LONG_NS);
	expect_count("counted once", 1, PIN_STALL_OF_DEVICE);
	expect_number("not over", 0, over_count);
	expect_number("it is", 1 << DISK, pin_load_relaxed_u32(&shared.stalls.devices_now));
	pin_meter_add(&workers[1].device_queue.accounts[0].requests, 1);
	expect_lane_lines("it goes on", workers, 1, 1);
	expect_number("which is said", 1, over_count);
	expect_number("it is not", 0, pin_load_relaxed_u32(&shared.stalls.devices_now));
}

/* Its workers are asked for the oldest request of a disk. */
static struct pin_worker *start_asked(void)
{
	struct pin_worker *workers = start(16);

	open_disk(&workers[1]);
	note_used(&workers[1], 1);
	expect_lane_lines("seen", workers, 0, 0);
	expect_lane_lines("asked", workers, 0, LONG_NS);
	return workers;
}

/* Their worker is in a long task, or they have just ended. */
static void check_unanswered(void)
{
	struct pin_worker *workers = start_asked();

	expect_lane_lines("time to answer", workers, 0, LIMIT_NS / 2);
	expect_lane_lines("no answer", workers, 1, LIMIT_NS / 2);
	expect_true(last_line,
		strcmp(last_line,
			"device 8:16: none of its requests has completed for more than 200 ms") ==
			0);
	expect_number("no question", 0, pin_load_relaxed_u32(&shared.stalls.asked));
	expect_lane_lines("once", workers, 1, 3 * LONG_NS);
	expect_count("counted once", 1, PIN_STALL_OF_DEVICE);

	workers = start_asked();
	note_used(&workers[1], 0);
	expect_lane_lines("they have ended", workers, 0, LIMIT_NS / 2);
	expect_lane_lines("they have ended", workers, 0, LIMIT_NS / 2);
	expect_number("no question", 0, pin_load_relaxed_u32(&shared.stalls.asked));
	expect_count("none", 0, PIN_STALL_OF_DEVICE);

	/* They end just before the question is taken back. */
	workers = start_asked();
	expect_lane_lines("time to answer", workers, 0, LIMIT_NS / 2);
	note_used(&workers[1], 0);
	expect_lane_lines("they have ended", workers, 0, LIMIT_NS / 2);
	expect_number("nothing was named that goes on", 0, over_count);

	/* They go on before any worker has answered. */
	workers = start_asked();
	pin_meter_add(&workers[1].device_queue.accounts[0].requests, 1);
	expect_lane_lines("one has ended", workers, 0, LIMIT_NS / 2);
	expect_number("nothing was named that goes on", 0, over_count);
	expect_number("no question", 0, pin_load_relaxed_u32(&shared.stalls.asked));
	expect_count("none", 0, PIN_STALL_OF_DEVICE);

	/* Reads by calls: each is its worker's task, and named as such. */
	workers = start(16);
	shared.is_fallback = true;
	open_disk(&workers[1]);
	note_used(&workers[1], 1);
	expect_lane_lines("seen", workers, 0, 0);
	expect_lane_lines("without rings", workers, 0, 3 * LONG_NS);
	expect_number("no question", 0, pin_load_relaxed_u32(&shared.stalls.asked));
}

/* ---- quiet ---- */

static void check_quiet(void)
{
	struct pin_worker *workers = start(16);
	struct pinion_task task = {0};

	for (uint32_t i = 0; i < WORKERS; i++) {
		expect_true("parks", pin_parker_prepare(&workers[i].parker, PIN_PARK_FUTEX));
		pin_meter_add(&workers[i].meter.parks_futex, 1);
	}
	look_later(0);
	expect_true("they have parked since", !pin_stall_is_quiet(&shared));
	look_later(LIMIT_NS / 2);
	expect_true("quiet", pin_stall_is_quiet(&shared));
	(void)pin_stall_look(&shared, true);
	expect_true("no look, no answer", !pin_stall_is_quiet(&shared));
	pin_meter_add(&workers[1].meter.parks_futex, 1);
	look_later(LIMIT_NS / 2);
	expect_true("one has run", !pin_stall_is_quiet(&shared));
	look_later(LIMIT_NS / 2);
	expect_true("quiet again", pin_stall_is_quiet(&shared));
	open_disk(&workers[0]);
	note_used(&workers[0], 1);
	look_later(LIMIT_NS / 2);
	expect_true("a request in a device", !pin_stall_is_quiet(&shared));
	note_used(&workers[0], 0);
	look_later(LIMIT_NS / 2);
	expect_true("it has ended", pin_stall_is_quiet(&shared));
	push(PINION_LANE_LOW, &task);
	look_later(LIMIT_NS / 2);
	expect_true("a task waits", !pin_stall_is_quiet(&shared));
}

int main(void)
{
	check_cause(PIN_THREAD_RUNS, "", "without progress: it computes");
	check_cause(PIN_THREAD_UNKNOWN, "", "without progress");
	check_cause(PIN_THREAD_SLEEPS, "pread64 of /a at offset 5",
		"without progress: it waits in pread64 of /a at offset 5");
	check_cause(PIN_THREAD_SLEEPS, "", "without progress: it sleeps");
	check_cpu();
	check_delay();
	check_notified();
	check_recheck();
	check_lane(PINION_LANE_HIGH, "high", 0, "make these shorter");
	check_lane(PINION_LANE_NORMAL, "normal", 0, "lane_floor is 0");
	check_lane(PINION_LANE_LOW, "low", 0, "lane_floor is 0");
	check_lane(PINION_LANE_LOW, "low", 16, "make these shorter");
	check_lane_exceptions();
	check_device();
	check_unanswered();
	check_quiet();
	return expect_status();
}
