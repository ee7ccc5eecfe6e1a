/* SPDX-License-Identifier: MIT */
/*
 * Goal: once a pool is made, taking, waiting, giving back, attaching for the
 * second time and owned buffers neither allocate nor map memory, whichever way
 * a buffer goes: own cache, free list, others' caches, from hand to hand; nor
 * does the process come to need more memory. BP-1, BP-2.
 * Method: calls of malloc and its kin are counted while threads and workers use
 * a pool; its counters say that all those ways were gone. The process's
 * resident pages are counted after a quarter of the rounds and after all:
 * STRESS_ITERATIONS sets how many; 32 bytes lost with each buffer would show.
 */
#include "tests/support/allocations.h"
#include "tests/support/users.h"

#include <fcntl.h>
#include <unistd.h>

enum {
	WORKERS = 2,
	BUFFERS = 8,
	ROUNDS = 2000,
	LIMIT_SECONDS = 60,
	GROWN_PAGES_MAX = 128, /* stacks, and pages counted late */
};

static struct pinion_runtime *runtime;
static struct pinion_pool *pool;
static struct pin_atomic_u32 done;

static void use_all(void *arg)
{
	struct pinion_buffer buffers[BUFFERS];
	struct pinion_buffer none;

	(void)arg;
	for (int i = 0; i < BUFFERS; i++) {
		buffers[i] = users_take(pool);
	}
	expect_number("none is left", -EAGAIN, pinion_pool_try_acquire(pool, &none));
	for (int i = 0; i < BUFFERS; i++) {
		users_give(pool, &buffers[i]);
	}
}

static int run_with_own(struct pinion_buffer_task *task, struct pinion_buffer *buffer)
{
	(void)task;
	buffer->bytes[0]++;
	tasks_signal(&done);
	return 0;
}

static int run_served(struct pinion_task *task)
{
	struct pinion_pool_wait *wait = PIN_CONTAINER_OF(task, struct pinion_pool_wait, wait.task);

	expect_number("served", 0, wait->wait.result);
	users_give(pool, &wait->buffer);
	tasks_signal(&done);
	return 0;
}

static void begin_wait(void *arg)
{
	expect_number("await", 0, pinion_pool_acquire_async(runtime, pool, arg));
}

/* A buffer that a task owns, then a buffer that goes from task to task. */
static void use_tasks(void)
{
	struct pinion_pool_wait wait = {
		.wait = {.task = {.run = run_served}, .deadline_ns = UINT64_MAX}};
	struct pinion_buffer buffers[BUFFERS];
	struct pinion_buffer_task task;

	pin_store_release_u32(&done, 0);
	expect_number("acquire", 0, pinion_pool_acquire_wait(pool, UINT64_MAX, &buffers[0]));
	pinion_buffer_task_init(&task, pool, &buffers[0], run_with_own, NULL);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task.task));
	tasks_await(&done, 1);
	for (int i = 0; i < BUFFERS; i++) {
		expect_number(
			"acquire", 0, pinion_pool_acquire_wait(pool, UINT64_MAX, &buffers[i]));
	}
	users_on(runtime, 0, begin_wait, &wait);
	for (int i = 0; i < BUFFERS; i++) {
		users_give(pool, &buffers[i]);
	}
	tasks_await(&done, 2);
}

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0) {
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/*
 * Pages of this process that are in memory; without allocating. Counted by the
 * kernel: statm is what each CPU has added up so far, a hundred pages less or
 * more for each of them.
 */
static long long resident_pages(void)
{
	char text[1024];
	const char *line;
	long long all = 0;
	long long resident = 0;

	if (read_text("/proc/self/smaps_rollup", text, sizeof(text))) {
		line = strstr(text, "Anonymous:");
		expect_ready("Anonymous",
			line != NULL && sscanf(line, "Anonymous: %lld kB", &resident) == 1);
		return resident / 4;
	}
	expect_ready("statm", read_text("/proc/self/statm", text, sizeof(text)));
	expect_ready("its fields", sscanf(text, "%lld %lld", &all, &resident) == 2);
	return resident;
}

int main(void)
{
	uint32_t rounds = tasks_iterations(ROUNDS);
	struct pinion_pool_stats counters;
	long long early = 0;
	long long late;

	if (!ALLOCATIONS_CAN_COUNT) {
		printf("the sanitizer's malloc cannot be counted\n");
		return EXPECT_SKIPPED;
	}
	runtimes_watchdog(rounds == ROUNDS ? LIMIT_SECONDS : 0);
	allocations_check_counting();
	runtime = users_runtime(WORKERS, 1 << 20);
	pool = users_pool(runtime, 0, 2, BUFFERS);
	expect_number("first attach", 0, pinion_pool_attach(pool));
	expect_number("detach", 0, pinion_pool_detach(pool));
	allocations_begin();
	for (uint32_t round = 0; round < rounds; round++) {
		if (round == rounds / 4) {
			early = resident_pages();
		}
		use_all(NULL);
		expect_number("attach", 0, pinion_pool_attach(pool));
		use_all(NULL);
		users_on(runtime, round % WORKERS, use_all, NULL);
		use_tasks();
		expect_number("detach", 0, pinion_pool_detach(pool));
	}
	late = resident_pages();
	allocations_expect_none();
	printf("%u rounds: %lld resident pages after a quarter, %lld at the end\n", rounds, early,
		late);
	expect_true("resident memory does not grow", late <= early + GROWN_PAGES_MAX);
	pinion_pool_get_stats(pool, &counters, sizeof(counters));
	expect_true("own cache", counters.local_hits > 0);
	expect_true("free list", counters.refills > 0);
	expect_true("back to it", counters.spills > 0);
	expect_true("others' caches", counters.steals > 0);
	expect_true("outside", counters.outside > 0);
	expect_true("exhausted", counters.exhausted > 0);
	users_end(pool);
	pinion_runtime_destroy(runtime);
	return expect_status();
}
