/* SPDX-License-Identifier: MIT */
/*
 * Goal: discovery by a budget, objects through a channel, their chunks in a
 * pool's buffers to tasks that own them: if any stage pauses, those before it
 * stop after as many steps as were allowed, each count says so, and when it
 * goes on all arrives, once. BP-27, BP-28, BP-29, BP-30.
 * Method: a thread that finds objects, a thread that cuts them into chunks, and
 * a worker that is held until all has come to a stop.
 */
#include "tests/support/users.h"

enum {
	CAPACITY = 4, /* of the channel */
	LOOKS = 1000, /* at the counts after all stages stopped */
	BUFFERS = 3,
	OBJECTS = 500,
	CHUNKS = 8, /* of each, more than there are buffers */
	LIMIT_SECONDS = 60,
};

static const uint64_t one_object[] = {1};
static struct pinion_runtime *runtime;
static struct pinion_budget budget;
static struct pinion_channel channel;
static uint32_t messages[CAPACITY];
static struct pinion_pool *pool;
static struct pinion_buffer_task owners[BUFFERS]; /* by buffer */
static struct pin_atomic_u32 found;
static struct pin_atomic_u32 scanned[OBJECTS]; /* chunks, of each */

static void *discover(void *arg)
{
	(void)arg;
	for (uint32_t object = 0; object < OBJECTS; object++) {
		expect_number(
			"budget", 0, pinion_budget_acquire_wait(&budget, one_object, UINT64_MAX));
		pin_fetch_add_acq_rel_u32(&found, 1);
		expect_number("send", 0, pinion_channel_send_wait(&channel, &object, UINT64_MAX));
	}
	expect_number("close", 0, pinion_channel_close(&channel));
	return NULL;
}

static int scan(struct pinion_buffer_task *task, struct pinion_buffer *buffer)
{
	const uint32_t *words = (const uint32_t *)(const void *)buffer->bytes;
	uint32_t object = words[0];

	(void)task;
	expect_ready("an object", object < OBJECTS);
	expect_number("the chunk's end", object + words[1], words[1023]);
	if (pin_fetch_add_acq_rel_u32(&scanned[object], 1) + 1 == CHUNKS) {
		pinion_budget_release(&budget, one_object);
	}
	return 0;
}

static void *fetch(void *arg)
{
	uint32_t object;

	(void)arg;
	while (pinion_channel_receive_wait(&channel, &object, UINT64_MAX) == 0) {
		for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
			struct pinion_buffer buffer = {NULL, 0, 0};
			struct pinion_buffer_task *owner;
			uint32_t *words;

			expect_ready("acquire",
				pinion_pool_acquire_wait(pool, UINT64_MAX, &buffer) == 0);
			words = (uint32_t *)(void *)buffer.bytes;
			words[0] = object;
			words[1] = chunk;
			words[1023] = object + chunk;
			/* Its last task has ended, or it would not be free. */
			owner = &owners[buffer.index];
			pinion_buffer_task_init(owner, pool, &buffer, scan, NULL);
			expect_number("spawn", 0, pinion_task_spawn(runtime, &owner->task));
		}
	}
	return NULL;
}

static long long budget_left(void)
{
	uint64_t left = 0;

	pinion_budget_available(&budget, &left);
	return (long long)left;
}

static void expect_rest(uint32_t found_count, uint32_t sent_count, uint32_t left_count)
{
	/* Else the watchdog ends it. */
	while (pin_load_acquire_u32(&found) < found_count ||
		pinion_channel_count(&channel) < sent_count || users_free(pool) > 0) {
		sched_yield();
	}
	for (int i = 0; i < LOOKS; i++) {
		sched_yield();
	}
	expect_number("found", found_count, pin_load_acquire_u32(&found));
	expect_number("in the channel", sent_count, pinion_channel_count(&channel));
	expect_number("budget left", left_count, budget_left());
	expect_number("buffers left", 0, users_free(pool));
	expect_number("scanned", 0, pin_load_acquire_u32(&scanned[0]));
}

static void check(uint64_t budget_count, uint32_t found_count, uint32_t sent_count)
{
	struct tasks_hold hold = {0};
	pthread_t threads[2];

	memset(scanned, 0, sizeof(scanned));
	pin_store_relaxed_u32(&found, 0);
	runtime = users_runtime(1, 1 << 20);
	pool = users_pool(runtime, 0, 1, BUFFERS);
	expect_number("budget", 0, pinion_budget_init(&budget, runtime, &budget_count, 1));
	expect_number("channel", 0,
		pinion_channel_init(&channel, runtime, messages, sizeof(messages[0]), CAPACITY));
	tasks_hold_begin(&hold, runtime, 0);
	expect_ready("thread", pthread_create(&threads[0], NULL, discover, NULL) == 0);
	expect_ready("thread", pthread_create(&threads[1], NULL, fetch, NULL) == 0);
	expect_rest(found_count, sent_count, (uint32_t)budget_count - found_count);
	tasks_hold_end(&hold);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("join", 0, pinion_runtime_join(runtime));
	for (uint32_t i = 0; i < OBJECTS; i++) {
		expect_number("chunks of an object", CHUNKS, pin_load_acquire_u32(&scanned[i]));
	}
	expect_number("the budget is whole", (long long)budget_count, budget_left());
	expect_number("the channel is empty", 0, pinion_channel_count(&channel));
	users_end(pool);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	/* One is being cut, two are sent, and the budget allows no more. */
	check(3, 3, 2);
	/* One is being cut, the channel is full, and one waits for room. */
	check(CAPACITY + 4, CAPACITY + 2, CAPACITY);
	return expect_status();
}
