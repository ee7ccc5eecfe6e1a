/* SPDX-License-Identifier: MIT */
/*
 * Goal: where reads are over when they are submitted, or are copies from the
 * page cache, and a file's reads are all on one worker, another that has
 * nothing gets some. G6.
 * Method: white box: a task keeps the second worker until the first has the
 * reads to itself, and none of them in a queue that others take from; from then
 * on the first waits in a window until the other sleeps, and in the next until
 * that has had a window.
 */
#include "runtime/worker/wake.h"
#include "tests/support/instant.h"
#include "tests/support/tasks.h"

enum {
	WINDOWS = 128,
	LEARNING = 16, /* windows until it is known that they are over at once */
	WAIT_MS = 20000,
	LIMIT_SECONDS = 60,
};

static struct tasks_hold hold; /* of the second worker */
static uint32_t window_count;
static uint32_t own_count;    /* as the first had them all */
static uint32_t second_count; /* windows of the second worker */
static uint32_t waited_ms;
static bool was_free;

/* Between two checks of the condition, so that both waits have an end. */
static void sleep_ms(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int look(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	const struct pin_worker *worker = pin_worker_current();

	(void)arg;
	(void)file;
	(void)window;
	if (worker->index != 0) {
		__atomic_fetch_add(&second_count, 1, __ATOMIC_RELEASE);
		return 0;
	}
	window_count++;
	if (window_count <= LEARNING || pin_deque_count(&worker->deque) > 0) {
		own_count = window_count;
		return 0;
	}
	tasks_signal(&hold.may_end);
	for (; waited_ms < WAIT_MS && !was_free; waited_ms++) {
		was_free = pin_wake_find_free(worker) != NULL;
		sleep_ms();
	}
	for (; waited_ms < WAIT_MS && window_count > own_count + 2 &&
		__atomic_load_n(&second_count, __ATOMIC_ACQUIRE) == 0;
		waited_ms++) {
		sleep_ms();
	}
	return 0;
}

static void check(int (*open)(void *arg, struct pinion_scan_file *file))
{
	const struct pinion_scan_ops ops = {
		.open = open,
		.window = look,
		.report = instant_report,
	};
	struct pinion_runtime *runtime = instant_runtime(2);

	window_count = 0;
	own_count = 0;
	second_count = 0;
	waited_ms = 0;
	was_free = false;
	tasks_hold_begin(&hold, runtime, 1);
	instant_scan(runtime, &ops, PINION_SCAN_PARALLEL);
	tasks_hold_end(&hold);
	expect_true("the first had all reads", own_count < WINDOWS / 2);
	expect_true("the other was free", was_free);
	expect_true("it got windows", second_count > 0);
	expect_number("each window", WINDOWS, window_count + second_count);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	instant_require();
	scratch_enter("instant_tracks_are_shared_out");
	if (!instant_file(WINDOWS)) {
		scratch_leave();
		printf("skipped: the file system at TMPDIR cannot read without waiting\n");
		return EXPECT_SKIPPED;
	}
	check(instant_call_direct);
	check(NULL); /* copied */
	scratch_leave();
	return expect_status();
}
