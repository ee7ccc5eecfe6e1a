/* SPDX-License-Identifier: MIT */
/*
 * Goal: a runtime that has started neither allocates nor maps memory, whatever
 * is spawned, stolen, taken from the shared queue or slept through. C16.
 * Method: malloc and its kin are this program's, and count before they pass a
 * call on. A tree of 100 000 tasks on workers' queues, which overflow and are
 * stolen from; single ones from outside, each awaited, so that workers sleep in
 * between; batches; tasks for a certain worker; reads. The runtime's counters
 * say that all of that took place, and a planted malloc that calls are counted.
 */
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
	TREE = 100000,
	SINGLE = 20000,
	READS = 2000,
	BATCH = 1000,
	WORKERS = 4,
	LIMIT_SECONDS = 60,
};

static struct pin_atomic_u32 is_counting;
static struct pin_atomic_u32 call_count;

static struct pinion_runtime *runtime;
static struct pinion_task tree[TREE];
static struct pinion_task *pointers[BATCH];
static struct pinion_request request;
static struct pinion_file file;
static struct pin_atomic_u32 done;
static uint8_t byte;

/* ---- what is counted ---- */

/* A sanitizer has its own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_COUNT true

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *memory);

static void note_call(void)
{
	if (pin_load_acquire_u32(&is_counting) != 0) {
		pin_fetch_add_acq_rel_u32(&call_count, 1);
	}
}

void *malloc(size_t size)
{
	note_call();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	note_call();
	return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	note_call();
	return __libc_realloc(memory, size);
}

void *memalign(size_t align, size_t size)
{
	note_call();
	return __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	note_call();
	return __libc_memalign(align, size);
}

int posix_memalign(void **out_memory, size_t align, size_t size)
{
	note_call();
	*out_memory = __libc_memalign(align, size);
	return *out_memory != NULL ? 0 : ENOMEM;
}

void free(void *memory)
{
	note_call();
	__libc_free(memory);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	note_call();
	return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

int munmap(void *address, size_t length)
{
	note_call();
	return (int)syscall(SYS_munmap, address, length);
}

static void check_counting(void)
{
	void *volatile memory;

	tasks_signal(&is_counting);
	memory = malloc(1);
	free(memory);
	expect_number("calls of a planted malloc and free", 2, pin_load_acquire_u32(&call_count));
	pin_store_release_u32(&is_counting, 0);
	pin_store_release_u32(&call_count, 0);
}
#else
#define CAN_COUNT false

static void check_counting(void)
{
}
#endif

/* ---- the work ---- */

static int answer(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

static int grow(struct pinion_task *task)
{
	size_t number = (size_t)(task - tree);

	for (size_t child = 20 * number + 1; child <= 20 * number + 20 && child < TREE; child++) {
		int rc;

		tree[child] = (struct pinion_task){.run = grow};
		rc = child % 16 == 0 ? pinion_spawn_shared(runtime, &tree[child])
				     : pinion_spawn(runtime, &tree[child]);
		if (rc != 0) {
			return rc;
		}
	}
	pin_fetch_add_acq_rel_u32(&done, 1);
	if (number % 64 == 0) {
		sched_yield();
	}
	return pin_load_acquire_u32(&done) == TREE ? answer(task) : 0;
}

static int read_again(struct pinion_task *task)
{
	if (pin_fetch_add_acq_rel_u32(&done, 1) + 1 == READS) {
		tasks_signal(&done);
		return 0;
	}
	(void)task;
	return pinion_read_submit(runtime, &request);
}

static int begin_reading(struct pinion_task *task)
{
	(void)task;
	return pinion_read_submit(runtime, &request);
}

static void grow_tree(void)
{
	pin_store_release_u32(&done, 0);
	tree[0] = (struct pinion_task){.run = grow};
	expect_number("spawn", 0, pinion_spawn(runtime, &tree[0]));
	tasks_await(&done, TREE + 1);
}

static void spawn_singles(void)
{
	pin_store_release_u32(&done, 0);
	for (uint32_t i = 0; i < SINGLE; i++) {
		tree[i] = (struct pinion_task){.run = answer};
		expect_number("spawn", 0,
			i % 2 == 0 ? pinion_spawn(runtime, &tree[i])
				   : pinion_spawn_on(runtime, i / 2 % WORKERS, &tree[i]));
		tasks_await(&done, i + 1);
	}
}

static void spawn_batches(void)
{
	pin_store_release_u32(&done, 0);
	for (uint32_t i = 0; i < BATCH; i++) {
		pointers[i] = &tree[i];
	}
	for (uint32_t round = 1; round <= TREE / BATCH; round++) {
		expect_number("batch", 0, pinion_spawn_batch(runtime, pointers, BATCH));
		tasks_await(&done, round * BATCH);
	}
}

static void read_often(void)
{
	static struct pinion_task task;

	pin_store_release_u32(&done, 0);
	request = (struct pinion_request){
		.task.run = read_again,
		.file = &file,
		.bytes = &byte,
		.length_bytes = 1,
	};
	task = (struct pinion_task){.run = begin_reading};
	expect_number("spawn", 0, pinion_spawn(runtime, &task));
	tasks_await(&done, READS + 1);
}

static void check(uint32_t queue_order, uint32_t park_timeout_us)
{
	struct pinion_runtime_counters counters;
	struct pinion_config config;
	uint32_t calls;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	config.queue_order = queue_order;
	config.park_timeout_us = park_timeout_us;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	pin_store_release_u32(&is_counting, 1);
	grow_tree();
	spawn_singles();
	spawn_batches();
	read_often();
	pin_store_release_u32(&is_counting, 0);
	calls = pin_load_acquire_u32(&call_count);
	expect_number("join", 0, pinion_runtime_join(runtime));
	expect_number("calls that allocate, free or map", 0, calls);
	counters = runtimes_counters(runtime);
	expect_true("some were stolen", counters.tasks_stolen > 0);
	expect_true("some came from the shared queue", counters.injector_takes > 0);
	expect_true("workers slept", counters.parks_futex > 0);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	if (!CAN_COUNT) {
		printf("the sanitizer's malloc cannot be counted\n");
		return EXPECT_SKIPPED;
	}
	runtimes_watchdog(LIMIT_SECONDS);
	check_counting();
	scratch_enter("spawning_allocates_nothing");
	scratch_file("file", "text");
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	check(PINION_QUEUE_FIFO, 0);
	check(PINION_QUEUE_LIFO, 1000);
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
