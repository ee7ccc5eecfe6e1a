/* SPDX-License-Identifier: MIT */
/*
 * Tasks by program, and their books.
 */
#include "tests/sim/workload.h"
#include "runtime/base/base.h"
#include "runtime/core/resize.h"
#include "tests/sim/device.h"
#include "tests/sim/disk.h"
#include "tests/sim/host.h"
#include "tests/sim/watch.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	SMALL_BUFFERS = 4,
	READ_BYTES_MAX = 4096,
	/* Between two attempts to start a read. */
	RETRY_NS = 5 * 1000,
	REQUESTS_PER_SECOND = 20 * 1000,
};

enum kind { KIND_TASK, KIND_READ };

struct entry {
	struct pinion_request request; /* its task is what is spawned */
	enum kind kind;
	bool is_accepted;
	bool is_entered;
	uint32_t attempt_count; /* a read's refusals, a task's spawns */
	const struct sim_program *program;
	struct entry *parent; /* of a read: the task that waits for it */
	uint32_t reads_left;
	uint32_t reads_to_start;
	/* A read's memory: of the worker's pool, or its own. */
	struct pinion_buffer buffer;
	bool has_buffer;
	uint32_t worker_index; /* that it was submitted on; UINT32_MAX: any */
	bool was_cancelled;
	struct pinion_file opened;
	struct statx status;
};

static struct entry entries[WORKLOAD_TASKS_MAX];

static struct load {
	const struct sim_case *test;
	struct pinion_runtime *runtime;
	struct pinion_file file;
	uint32_t entry_count;
	bool is_stopping;
	bool cancels_all; /* a request that cancels others was submitted */
	bool was_free;	  /* of limits: a depth that is not set may be kept, unused */
	uint32_t first_outside_thread;
	/* The books. */
	uint64_t spawned;
	uint64_t submitted;
	uint64_t run;
	uint64_t cancelled;
	uint64_t failed;
} load;

/* For reads that find no buffer: a block each, aligned as the disk asks. */
static uint8_t own_memory[WORKLOAD_TASKS_MAX][READ_BYTES_MAX]
	__attribute__((aligned(DISK_BLOCK_BYTES)));

static int run_task(struct pinion_task *task);
static int run_read(struct pinion_task *task);
static void cancel_task(struct pinion_task *task);

static uint32_t number_of(const struct entry *entry)
{
	return (uint32_t)(entry - entries);
}

static struct entry *entry_of(struct pinion_task *task)
{
	return PIN_CONTAINER_OF(task, struct entry, request.task);
}

/* Nothing is drawn where all are normal. */
static uint32_t choose_lane(const struct sim_program *program)
{
	uint32_t share;

	if (program->high_percent + program->low_percent == 0) {
		return 0;
	}
	share = (uint32_t)world_random(100);
	if (share < program->high_percent) {
		return PINION_TASK_HIGH;
	}
	return share < program->high_percent + program->low_percent ? PINION_TASK_LOW : 0;
}

static struct entry *new_entry(enum kind kind, const struct sim_program *program)
{
	struct entry *entry = &entries[load.entry_count];

	if (load.entry_count == WORKLOAD_TASKS_MAX) {
		world_fail("the case has more than %u tasks", WORKLOAD_TASKS_MAX);
	}
	load.entry_count++;
	*entry = (struct entry){.kind = kind, .program = program};
	entry->request.task.run = kind == KIND_TASK ? run_task : run_read;
	entry->request.task.cancel = kind == KIND_TASK ? cancel_task : NULL;
	entry->request.task.flags = kind == KIND_TASK ? choose_lane(program) : 0;
	return entry;
}

/* ---- tasks ---- */

/* An entry may be spawned again once it was entered, to go on where it was. */
static bool spawn(struct entry *entry, bool is_shared)
{
	struct pinion_task *task = &entry->request.task;
	int rc;

	entry->is_entered = false;
	entry->is_accepted = true; /* it may be entered before the call returns */
	watch_task_ready(number_of(entry));
	world_event("spawns", number_of(entry), is_shared);
	rc = is_shared ? pinion_spawn_shared(load.runtime, task) : pinion_spawn(load.runtime, task);
	if (rc == 0) {
		load.spawned++;
		return true;
	}
	if (rc != -ESHUTDOWN) {
		world_fail("a spawn returns %d", rc);
	}
	if (entry->is_entered) {
		world_fail("task %u was refused and entered", number_of(entry));
	}
	entry->is_accepted = false;
	watch_task_gone(number_of(entry));
	world_event("is refused", number_of(entry), 0);
	return false;
}

static void enter(struct entry *entry, const char *what)
{
	world_event(what, number_of(entry), 0);
	if (!entry->is_accepted || entry->is_entered) {
		world_fail("task %u %s, though it is not due", number_of(entry), what);
	}
	entry->is_entered = true;
	watch_task_gone(number_of(entry));
}

static void spawn_children(const struct sim_program *program)
{
	for (uint32_t i = 0; i < program->children; i++) {
		spawn(new_entry(KIND_TASK, program->spawns),
			world_random(100) < program->shared_percent);
	}
}

static void start_reads(struct entry *entry);

static void burn(const struct sim_program *program)
{
	if (program->burn_us > 0) {
		world_busy(world_random((uint64_t)program->burn_us * 1000));
	}
}

static void hold(const struct sim_program *program)
{
	if (program->hold_us > 0) {
		world_busy((uint64_t)program->hold_us * 1000);
	}
}

static int run_task(struct pinion_task *task)
{
	struct entry *entry = entry_of(task);
	const struct sim_program *program = entry->program;

	enter(entry, "runs");
	load.run++;
	if (entry->attempt_count > 0) {
		world_busy(RETRY_NS);
	} else {
		burn(program);
		entry->reads_to_start = program->reads;
		entry->reads_left = program->reads;
	}
	entry->attempt_count++;
	if (entry->reads_left > 0) {
		start_reads(entry);
	} else {
		spawn_children(program);
	}
	/* With what it has begun still in the worker's queues or its ring. */
	if (entry->reads_to_start == 0) {
		hold(program);
	}
	if (world_random(16) == 0) {
		load.failed++;
		return -EIO;
	}
	return 0;
}

static void cancel_task(struct pinion_task *task)
{
	struct entry *entry = entry_of(task);

	enter(entry, "is cancelled");
	load.cancelled++;
	if (!load.is_stopping) {
		world_fail("task %u is cancelled without a stop", number_of(entry));
	}
}

/* ---- reads ---- */

static void take_memory(struct entry *read)
{
	int rc = -EAGAIN;

	/* A worker's buffers go back on it, and these reads end anywhere. */
	if (load.test->ring_sharing == 0) {
		rc = pinion_buffer_acquire(load.runtime, READ_BYTES_MAX, &read->buffer);
	}
	read->has_buffer = rc == 0;
	if (rc != 0 && rc != -EAGAIN) {
		world_fail("acquiring a buffer returns %d", rc);
	}
	read->request.bytes = read->has_buffer ? read->buffer.bytes : own_memory[number_of(read)];
	read->worker_index = load.test->ring_sharing == 0
		? (uint32_t)pinion_worker_index(load.runtime)
		: UINT32_MAX;
}

static void give_memory_back(struct entry *read)
{
	if (read->has_buffer) {
		pinion_buffer_release(load.runtime, &read->buffer);
		read->has_buffer = false;
	}
}

static uint16_t choose_op(const struct sim_program *program)
{
	static const uint16_t others[] = {PINION_OP_FSYNC, PINION_OP_FDATASYNC, PINION_OP_ALLOCATE,
		PINION_OP_OPEN, PINION_OP_STATX, PINION_OP_CLOSE, PINION_OP_NOP, PINION_OP_TIMEOUT,
		PINION_OP_CANCEL};
	uint64_t share;

	/* Nothing is drawn for what is not asked for. */
	if (program->write_percent + program->other_percent == 0) {
		return PINION_OP_READ;
	}
	share = world_random(100);
	if (share < program->write_percent) {
		return PINION_OP_WRITE;
	}
	return share < program->write_percent + program->other_percent
		? others[world_random(PIN_ARRAY_COUNT(others))]
		: PINION_OP_READ;
}

static void shape_range(struct entry *read)
{
	uint64_t blocks = read->program->read_bytes / DISK_BLOCK_BYTES;
	struct pinion_request *request = &read->request;
	uint64_t places = DISK_FILE_BYTES / DISK_BLOCK_BYTES;

	request->length_bytes = (1 + world_random(blocks)) * DISK_BLOCK_BYTES;
	/* Some reads lie across the end of the file, none behind it. */
	if (request->op != PINION_OP_READ) {
		places -= request->length_bytes / DISK_BLOCK_BYTES;
	}
	request->offset_bytes = world_random(places) * DISK_BLOCK_BYTES;
}

/* What it does; its memory and its runtime come later. */
static void shape(struct entry *read)
{
	const struct sim_program *program = read->program;
	struct pinion_request *request = &read->request;

	request->op = choose_op(program);
	request->file = &load.file;
	shape_range(read);
	if (request->op == PINION_OP_OPEN || request->op == PINION_OP_CLOSE) {
		disk_open(&read->opened);
		request->file = &read->opened;
		request->path = "file";
	}
	request->status = &read->status;
	if (request->op == PINION_OP_CANCEL) {
		return;
	}
	if (request->op == PINION_OP_TIMEOUT ||
		(program->deadline_percent > 0 && world_random(100) < program->deadline_percent)) {
		request->deadline_ns =
			world_now_ns() + world_random((uint64_t)program->deadline_us * 1000 + 1);
	}
}

static void prepare_memory(const struct pinion_request *request)
{
	if (request->op == PINION_OP_WRITE) {
		disk_fill(request->bytes, request->offset_bytes, (uint32_t)request->length_bytes);
	} else {
		memset(request->bytes, 0, (size_t)request->length_bytes);
	}
}

/* Any request that there is, whatever has become of it. */
static void cancel_any(void)
{
	struct entry *entry = &entries[world_random(load.entry_count)];
	int rc;

	if (entry->kind != KIND_READ || !entry->is_accepted) {
		return;
	}
	/* It may end before the call returns. */
	entry->was_cancelled = true;
	rc = pinion_request_cancel(load.runtime, &entry->request);
	world_event("cancels", number_of(entry), (uint64_t)(int64_t)rc);
	WORLD_CHECK(rc == 0 || rc == -EALREADY);
}

static void after_submit(struct entry *read)
{
	const struct sim_program *program = read->program;

	load.submitted++;
	if (program->cancel_percent > 0 && world_random(100) < program->cancel_percent) {
		read->was_cancelled = true;
		(void)pinion_request_cancel(load.runtime, &read->request);
	}
}

/* 0, -EAGAIN or -ESHUTDOWN; the read is gone unless accepted. */
static int start_read(struct entry *parent)
{
	struct entry *read = new_entry(KIND_READ, parent->program);
	int rc;

	read->parent = parent;
	shape(read);
	read->is_accepted = true;
	if (read->request.op == PINION_OP_CANCEL) {
		/* It ends on another worker, so it must not have a buffer. */
		read->worker_index = UINT32_MAX;
		load.cancels_all = true;
	} else {
		take_memory(read);
		prepare_memory(&read->request);
	}
	rc = pinion_request_submit(load.runtime, &read->request);
	world_event("submits a request", number_of(read), (uint64_t)(int64_t)rc);
	if (rc == 0) {
		after_submit(read);
		return 0;
	}
	give_memory_back(read);
	load.entry_count -= read == &entries[load.entry_count - 1] ? 1 : 0;
	read->is_accepted = false;
	if (rc != -EAGAIN && rc != -ESHUTDOWN) {
		world_fail("submitting a request returns %d", rc);
	}
	return rc;
}

/*
 * With the ring full the task spawns itself again and tries later; it goes on
 * by itself too where none of its reads is in flight.
 */
static void start_reads(struct entry *entry)
{
	while (entry->reads_to_start > 0) {
		int rc = start_read(entry);

		if (rc == -ESHUTDOWN) {
			entry->reads_left -= entry->reads_to_start;
			entry->reads_to_start = 0;
			return;
		}
		if (rc == -EAGAIN) {
			spawn(entry, false);
			return;
		}
		entry->reads_to_start--;
	}
}

/* What it did, when it says that it went well. */
static bool is_done_right(const struct entry *read)
{
	const struct pinion_request *request = &read->request;
	uint64_t left = DISK_FILE_BYTES - request->offset_bytes;
	uint32_t expected = (uint32_t)(request->length_bytes < left ? request->length_bytes : left);

	switch (request->op) {
	case PINION_OP_READ:
		return request->result == (int64_t)expected &&
			disk_holds(request->bytes, request->offset_bytes, expected);
	case PINION_OP_WRITE:
		return request->result == (int64_t)expected &&
			disk_was_written(request->offset_bytes, expected);
	case PINION_OP_CANCEL:
		return request->result >= 0;
	case PINION_OP_CLOSE:
		return request->result == 0 && read->opened.fd == -1;
	case PINION_OP_STATX:
		return request->result == 0 && read->status.stx_size == DISK_FILE_BYTES;
	default:
		return request->result == 0;
	}
}

static void check_result(const struct entry *read)
{
	const struct pinion_request *request = &read->request;
	int64_t result = request->result;
	bool may_cancel = load.is_stopping || load.cancels_all || read->was_cancelled;

	if ((result == -EIO && load.test->faults.io_error > 0) ||
		(result == -ECANCELED && may_cancel) ||
		(result == -ETIME && request->deadline_ns != 0 &&
			world_now_ns() >= request->deadline_ns) ||
		/* A close that is interrupted is over. */
		(result == -EINTR && request->op == PINION_OP_CLOSE) ||
		(result == -EAGAIN && request->op == PINION_OP_CLOSE)) {
		return;
	}
	if (!is_done_right(read)) {
		world_fail("request %u of %u bytes at %u ends with %lld, operation %u",
			number_of(read), (uint32_t)request->length_bytes,
			(uint32_t)request->offset_bytes, (long long)result, request->op);
	}
}

static int run_read(struct pinion_task *task)
{
	struct entry *read = entry_of(task);
	struct entry *parent = read->parent;

	enter(read, "has read");
	load.run++;
	check_result(read);
	if (read->worker_index != UINT32_MAX &&
		pinion_worker_index(load.runtime) != (int)read->worker_index) {
		world_fail("read %u ends on another worker", number_of(read));
	}
	give_memory_back(read);
	if (parent == NULL) {
		return 0;
	}
	parent->reads_left--;
	if (parent->reads_left == 0) {
		spawn_children(parent->program);
	}
	return 0;
}

/* A request's address is its user_data, and it comes first in its entry. */
static uint32_t number_of_request(uint64_t user_data)
{
	uint64_t distance = user_data - (uint64_t)(uintptr_t)entries;

	WORLD_CHECK(distance % sizeof(entries[0]) == 0);
	WORLD_CHECK(distance / sizeof(entries[0]) < load.entry_count);
	return (uint32_t)(distance / sizeof(entries[0]));
}

void workload_request_starts(uint64_t user_data)
{
	watch_task_gone(number_of_request(user_data));
}

void workload_request_completes(uint64_t user_data)
{
	if (load.test->rings_wait == 0) {
		watch_task_ready(number_of_request(user_data));
	}
}

/* ---- threads and the end ---- */

static bool submit_from_outside(const struct sim_program *program)
{
	struct entry *read = new_entry(KIND_READ, program);
	int rc;

	read->worker_index = UINT32_MAX;
	read->request.bytes = own_memory[number_of(read)];
	shape(read);
	prepare_memory(&read->request);
	read->is_accepted = true; /* it may be entered before the call returns */
	load.cancels_all |= read->request.op == PINION_OP_CANCEL;
	if (read->request.op != PINION_OP_CANCEL) {
		watch_task_ready(number_of(read));
	}
	rc = pinion_request_submit(load.runtime, &read->request);
	world_event("submits from outside", number_of(read), (uint64_t)(int64_t)rc);
	if (rc == 0) {
		after_submit(read);
		return true;
	}
	if (rc != -ESHUTDOWN || read->is_entered) {
		world_fail("submitting from outside returns %d", rc);
	}
	read->is_accepted = false;
	watch_task_gone(number_of(read));
	return false;
}

static void *spawn_from_outside(void *arg)
{
	const struct sim_source *source = arg;

	for (uint32_t i = 0; i < source->tasks; i++) {
		if (!spawn(new_entry(KIND_TASK, source->program), world_random(2) == 0)) {
			break;
		}
		world_busy(world_random((uint64_t)source->pause_us * 1000));
	}
	for (uint32_t i = 0; i < source->requests; i++) {
		if (!submit_from_outside(source->program)) {
			break;
		}
		world_busy(world_random((uint64_t)source->pause_us * 1000));
	}
	for (uint32_t i = 0; i < source->cancels && load.entry_count > 0; i++) {
		cancel_any();
		world_busy(world_random((uint64_t)source->pause_us * 1000));
	}
	return NULL;
}

static void *resize_from_outside(void *arg)
{
	const struct sim_case *test = arg;

	for (uint32_t i = 0; i < test->resizes; i++) {
		uint32_t count = 1 + (uint32_t)world_random(test->workers);
		int rc;

		world_busy(world_random((uint64_t)test->end_us * 1000 / test->resizes));
		rc = pin_runtime_resize(load.runtime, &count);
		world_event("resizes", count, (uint64_t)(int64_t)rc);
		if (rc == -ESHUTDOWN) {
			break;
		}
		if (rc != 0 && (rc != -EAGAIN || test->faults.no_thread == 0)) {
			world_fail("a resize returns %d", rc);
		}
	}
	return NULL;
}

static void limit(uint32_t depth, uint64_t requests_per_second)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.depth_count = depth;
	limits.requests_per_second = requests_per_second;
	load.was_free |= depth == 0;
	world_event("limits", depth, requests_per_second);
	WORLD_CHECK(pinion_runtime_limit(load.runtime, &limits) == 0);
}

static void *limit_from_outside(void *arg)
{
	const struct sim_case *test = arg;

	for (uint32_t i = 0; i < test->limits; i++) {
		world_busy(world_random((uint64_t)test->end_us * 1000 / test->limits));
		limit((uint32_t)world_random(test->depth + 1),
			world_random(2) == 0 ? 0 : REQUESTS_PER_SECOND);
	}
	return NULL;
}

static void check_device(void)
{
	struct pinion_device_figures figures;

	if (pinion_device_figures(load.runtime, 0, &figures, sizeof(figures)) != 0) {
		return; /* nothing was read or written */
	}
	world_event("the disk had", figures.requests, figures.waited);
	if (!load.was_free) {
		WORLD_CHECK(figures.taken_count == 0 && figures.taken_bytes == 0);
	}
}

static void check_books(void)
{
	struct pinion_runtime_counters counters;

	for (uint32_t i = 0; i < load.entry_count; i++) {
		const struct entry *entry = &entries[i];

		if (entry->is_accepted != entry->is_entered) {
			world_fail("task %u was accepted and never entered", i);
		}
	}
	pinion_runtime_counters(load.runtime, &counters, sizeof(counters));
	world_event("counts", counters.tasks_run, counters.tasks_cancelled);
	WORLD_CHECK(counters.tasks_spawned == load.spawned);
	WORLD_CHECK(counters.tasks_run == load.run);
	WORLD_CHECK(counters.tasks_cancelled == load.cancelled);
	WORLD_CHECK(counters.tasks_failed == load.failed);
	WORLD_CHECK(counters.requests_submitted == load.submitted);
	WORLD_CHECK(counters.requests_completed == load.submitted);
	WORLD_CHECK(load.run + load.cancelled == load.spawned + load.submitted);
	check_device();
}

static bool create(void)
{
	const struct sim_case *test = load.test;
	struct pinion_config config;
	int rc;

	pinion_config_init(&config);
	config.worker_count = test->workers;
	config.ring_entries = test->ring_entries;
	config.buffer_bytes = READ_BYTES_MAX;
	config.buffer_count = 1;
	config.small_buffer_bytes = READ_BYTES_MAX;
	config.small_buffer_count = SMALL_BUFFERS;
	config.io_level = PINION_IO_AUTO;
	config.lanes = test->lanes;
	config.lane_floor = test->lane_floor;
	config.low_max_wait_ms = test->low_max_wait_ms;
	config.assist = test->assist == 0 ? PINION_ASSIST_OFF : PINION_ASSIST_IDLE;
	config.assist_reserve = test->assist_reserve;
	config.ring_sharing = test->ring_sharing == 0 ? PINION_RING_OWN : PINION_RING_SHARED;
	if (test->task_ns > 0) {
		config.task_ns = test->task_ns;
	}
	if (test->ring_sharing != 0) {
		device_share_rings();
	}
	config.polled = test->polled;
	if (test->polled != 0) {
		device_poll();
	}
	if (test->resizes > 0 || test->no_rings != 0) {
		config.io_level = PINION_IO_FALLBACK;
	}
	rc = pin_runtime_create(&config, test->resizes > 0 ? &test->workers : NULL, &load.runtime);
	world_event("creates a runtime", (uint64_t)(int64_t)rc, test->workers);
	if (rc != 0 && test->faults.no_thread == 0) {
		world_fail("creating a runtime returns %d", rc);
	}
	return rc == 0;
}

static void end_runtime(bool is_stop)
{
	world_event(is_stop ? "stops" : "drains", 0, 0);
	load.is_stopping = is_stop;
	WORLD_CHECK((is_stop ? pinion_runtime_stop : pinion_runtime_drain)(load.runtime) == 0);
}

void workload_begin(const struct sim_case *test)
{
	load = (struct load){.test = test};
}

void workload_run(void)
{
	static const char *const names[SIM_SOURCES_MAX] = {"outside 0", "outside 1", "outside 2",
		"outside 3", "outside 4", "outside 5", "outside 6", "outside 7"};
	const struct sim_case *test = load.test;
	bool is_stop = test->may_stop && (!test->may_drain || world_random(2) == 0);
	uint32_t threads[SIM_SOURCES_MAX];
	uint32_t resizer = 0;
	uint32_t limiter = 0;

	disk_open(&load.file);
	if (!create()) {
		goto done;
	}
	if (test->depth > 0) {
		limit(test->depth, 0);
	} else {
		load.was_free = true;
	}
	for (uint32_t i = 0; i < test->source_count; i++) {
		threads[i] = world_thread_start(
			names[i], spawn_from_outside, (void *)(uintptr_t)&test->sources[i]);
	}
	if (test->resizes > 0) {
		resizer =
			world_thread_start("resizer", resize_from_outside, (void *)(uintptr_t)test);
	}
	if (test->limits > 0) {
		limiter =
			world_thread_start("limiter", limit_from_outside, (void *)(uintptr_t)test);
	}
	world_busy(world_random((uint64_t)test->end_us * 1000));
	end_runtime(is_stop);
	for (uint32_t i = 0; i < test->source_count; i++) {
		world_thread_join(threads[i]);
	}
	if (test->resizes > 0) {
		world_thread_join(resizer);
	}
	if (test->limits > 0) {
		world_thread_join(limiter);
	}
	check_books();
	pinion_runtime_destroy(load.runtime);
done:
	device_end();
	host_end();
}

bool workload_is_worker(uint32_t thread)
{
	return host_is_worker(thread);
}
