/* SPDX-License-Identifier: MIT */
/*
 * Goal: while a thread pool with rings is resized again and again, at random,
 * each read ends once, with the file's bytes or with the error of its cancel or
 * deadline, wherever it was submitted; timers, timeouts and cancels in flight
 * end as well; nothing is lost, and a drain ends. The same with an eventfd for
 * a doorbell, and without io_uring.
 * Method: threads that submit from outside and by jobs on any place of the
 * thread pool, into buffers that are wiped before; the file past the page
 * cache, where that can be, and through it. Every byte of a read is compared.
 * PINION_SEED repeats the choices.
 */
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include "runtime/task/entry.h"

#include <errno.h>
#include <pinion/thread_pool.h>

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	ITERATIONS = 30,
#else
	ITERATIONS = 200,
#endif
	READERS = 4,
	SLOTS = 12, /* of each, under way at once */
	MAX = 3,
	PLACES = 3 * MAX,
	BLOCK = 4096,
	READ_BLOCKS_MAX = 16,
	FILE_BLOCKS = 512,
	DEADLINE_NS_MAX = 300 * 1000,
	RUN_SECONDS = 200,
};

struct slot {
	struct pinion_task job; /* submits the request on a worker */
	struct pinion_timer timer;
	struct pinion_request request;
	struct reader *reader;
	uint8_t *bytes;
	bool has_timer;
	bool may_fail; /* it is cancelled, or has a deadline */
	struct pin_atomic_u32 ends;
};

struct reader {
	pthread_t thread;
	struct random_source random;
	struct slot slots[SLOTS];
	struct pin_atomic_u32 ended;
	uint32_t due;
};

static struct pinion_runtime *thread_pool;
static struct pinion_file files[2];
static struct reader readers[READERS];
static struct pin_atomic_u32 is_over;
static struct pin_atomic_u32 wrong_count;
static struct pin_atomic_u32 read_count;
static uint32_t resize_count;

static uint64_t word_at(uint64_t offset_bytes)
{
	return (offset_bytes / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void note_wrong(bool is_wrong)
{
	if (is_wrong) {
		pin_fetch_add_acq_rel_u32(&wrong_count, 1);
	}
}

static void note_end(struct slot *slot)
{
	pin_fetch_add_acq_rel_u32(&slot->ends, 1);
	/* The last touch. */
	tasks_signal(&slot->reader->ended);
}

static void check_bytes(const struct slot *slot)
{
	const struct pinion_request *request = &slot->request;

	for (uint32_t i = 0; i < request->length_bytes; i += 8) {
		uint64_t word;

		memcpy(&word, slot->bytes + i, sizeof(word));
		if (word != word_at(request->offset_bytes + i)) {
			note_wrong(true);
			return;
		}
	}
}

static int end_request(struct pinion_task *task)
{
	struct slot *slot = PIN_CONTAINER_OF(task, struct slot, request.task);
	const struct pinion_request *request = &slot->request;

	if (request->op == PINION_OP_READ && request->result == (int64_t)request->length_bytes) {
		check_bytes(slot);
		pin_fetch_add_acq_rel_u32(&read_count, 1);
	} else if (request->op == PINION_OP_READ) {
		note_wrong(!slot->may_fail ||
			(request->result != -ECANCELED && request->result != -ETIME));
	} else {
		note_wrong(request->result != -ETIME && request->result != -ECANCELED);
	}
	note_end(slot);
	return 0;
}

static int end_timer(struct pinion_task *task)
{
	note_end(PIN_CONTAINER_OF(task, struct slot, timer.task));
	return 0;
}

static void cancel_timer(struct pinion_task *task)
{
	note_end(PIN_CONTAINER_OF(task, struct slot, timer.task));
}

static void submit(struct slot *slot)
{
	int rc;

	/* A ring without room says so. */
	do {
		rc = pinion_request_submit(thread_pool, &slot->request);
	} while (rc == -EAGAIN);
	note_wrong(rc != 0);
}

static int run_job(struct pinion_task *task)
{
	struct slot *slot = PIN_CONTAINER_OF(task, struct slot, job);

	if (slot->has_timer) {
		note_wrong(pinion_timer_start(
				   thread_pool, &slot->timer, pinion_clock_now_ns() + 100000) != 0);
	}
	submit(slot);
	return 0;
}

static void choose_request(struct slot *slot, struct random_source *random)
{
	uint64_t first = random_below(random, FILE_BLOCKS - READ_BLOCKS_MAX);
	uint64_t count = 1 + random_below(random, READ_BLOCKS_MAX);

	slot->request = (struct pinion_request){
		.task.run = end_request,
		.op = PINION_OP_READ,
		.file = &files[random_below(random, 2)],
		.bytes = slot->bytes,
		.offset_bytes = first * BLOCK,
		.length_bytes = count * BLOCK,
	};
	if (random_below(random, 8) == 0) {
		slot->request.op = PINION_OP_TIMEOUT;
	}
	slot->may_fail = slot->request.op == PINION_OP_TIMEOUT || random_below(random, 3) == 0;
	if (slot->request.op == PINION_OP_TIMEOUT || (slot->may_fail && random_below(random, 2))) {
		slot->request.deadline_ns =
			pinion_clock_now_ns() + 1 + random_below(random, DEADLINE_NS_MAX);
	}
	memset(slot->bytes, 0, (size_t)count * BLOCK);
}

static void begin_one(struct reader *reader, struct slot *slot)
{
	static const uint32_t flags[] = {PINION_TASK_HIGH, 0, PINION_TASK_LOW};
	struct random_source *random = &reader->random;
	uint64_t way = random_below(random, 3);

	choose_request(slot, random);
	pin_store_release_u32(&slot->ends, 0);
	slot->has_timer = way > 0 && random_below(random, 4) == 0;
	slot->timer = (struct pinion_timer){.task = {.run = end_timer, .cancel = cancel_timer}};
	slot->job = (struct pinion_task){.run = run_job};
	reader->due += slot->has_timer ? 2 : 1;
	if (way == 0) {
		submit(slot);
	} else if (way == 1) {
		expect_number("spawn_on", 0,
			pinion_task_spawn_on(
				thread_pool, (uint32_t)random_below(random, PLACES), &slot->job));
	} else {
		slot->job.flags = flags[random_below(random, 3)];
		expect_number("spawn", 0, pinion_task_spawn(thread_pool, &slot->job));
	}
}

static void *read_on(void *arg)
{
	struct reader *reader = arg;
	uint32_t rounds = tasks_iterations(ITERATIONS);

	for (uint32_t round = 0; round < rounds; round++) {
		reader->due = 0;
		pin_store_release_u32(&reader->ended, 0);
		for (uint32_t i = 0; i < SLOTS; i++) {
			begin_one(reader, &reader->slots[i]);
		}
		for (uint32_t i = 0; i < SLOTS; i++) {
			struct slot *slot = &reader->slots[i];

			if (slot->may_fail) {
				int rc = pinion_request_cancel(thread_pool, &slot->request);

				note_wrong(rc != 0 && rc != -EALREADY);
			}
		}
		tasks_await(&reader->ended, reader->due);
		for (uint32_t i = 0; i < SLOTS; i++) {
			const struct slot *slot = &reader->slots[i];

			expect_number("ends of a request and its timer", 1 + slot->has_timer,
				pin_load_acquire_u32(&slot->ends));
		}
	}
	return NULL;
}

static void *resize(void *arg)
{
	struct random_source *random = arg;

	while (pin_load_acquire_u32(&is_over) == 0) {
		struct pinion_thread_pool_sizes sizes = {
			(uint32_t)random_below(random, MAX + 1),
			(uint32_t)random_below(random, MAX + 1),
			1 + (uint32_t)random_below(random, MAX),
		};

		expect_number("resize", 0, pinion_thread_pool_resize(thread_pool, &sizes));
		resize_count++;
	}
	return NULL;
}

static void start(uint32_t io_level, uint32_t io_without)
{
	struct pinion_thread_pool_sizes sizes = {1, 2, 1};
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.log = runtimes_note;
	config.io_level = io_level;
	runtimes_tuning.io_without = io_without;
	runtimes_tuning.thread_pool_max = MAX;
	runtimes_tuning.ring_entries = 64;
	/* Strict, low would wait for as long as anything else comes. */
	runtimes_tuning.lane_floor = 16;
	runtimes_log[0] = '\0';
	expect_number("create", 0, pinion_thread_pool_create(&config, &sizes, &thread_pool));
	expect_ready(runtimes_log, thread_pool != NULL);
}

static void run(const char *name, uint32_t io_level, uint32_t io_without, uint64_t seed)
{
	struct random_source random = {.state = seed};
	struct pinion_runtime_stats counters;
	pthread_t resizer;

	start(io_level, io_without);
	pin_store_release_u32(&is_over, 0);
	pin_store_release_u32(&read_count, 0);
	resize_count = 0;
	for (uint32_t i = 0; i < READERS; i++) {
		readers[i].random.state = seed + i;
		expect_ready("thread",
			pthread_create(&readers[i].thread, NULL, read_on, &readers[i]) == 0);
	}
	expect_ready("thread", pthread_create(&resizer, NULL, resize, &random) == 0);
	for (uint32_t i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
	}
	pin_store_release_u32(&is_over, 1);
	pthread_join(resizer, NULL);
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	counters = runtimes_counters(thread_pool);
	expect_number("submitted and completed", (long long)counters.requests_submitted,
		(long long)counters.requests_completed);
	expect_number("safety net", 0, (long long)counters.park_timeout_found_work);
	expect_number("wrong bytes or results", 0, pin_load_acquire_u32(&wrong_count));
	expect_true("reads ended with bytes", pin_load_acquire_u32(&read_count) > 0);
	expect_true("and meanwhile it was resized", resize_count > 0);
	printf("%s%s: %u resizes, %u whole reads\n", name,
		thread_pool->shared.is_fallback ? ", without io_uring" : "", resize_count,
		pin_load_acquire_u32(&read_count));
	pinion_runtime_destroy(thread_pool);
	thread_pool = NULL;
}

static void write_file(void)
{
	int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	static uint64_t words[BLOCK / 8];

	expect_ready("file", fd >= 0);
	for (uint64_t block = 0; block < FILE_BLOCKS; block++) {
		for (uint64_t i = 0; i < BLOCK / 8; i++) {
			words[i] = word_at(block * BLOCK + i * 8);
		}
		expect_ready("write", write(fd, words, BLOCK) == BLOCK);
	}
	expect_ready("sync", fsync(fd) == 0);
	close(fd);
	expect_number("open", 0, pinion_file_open(&files[0], "file", PINION_DIRECT_ALWAYS));
	printf("the file is read %s the page cache\n",
		files[0].is_direct != 0 ? "past" : "only through");
	expect_number("open", 0, pinion_file_open(&files[1], "file", PINION_DIRECT_NEVER));
	/* Else the page cache would answer before a ring is asked. */
	files[1].cached_percent = 0;
}

int main(void)
{
	struct random_source random;
	uint64_t seed = random_begin(&random);

	runtimes_watchdog(tasks_iterations(ITERATIONS) > ITERATIONS ? 3600 : RUN_SECONDS);
	scratch_enter("thread_pool_loses_no_read");
	write_file();
	for (uint32_t i = 0; i < READERS * SLOTS; i++) {
		struct slot *slot = &readers[i / SLOTS].slots[i % SLOTS];
		void *memory = NULL;

		expect_ready(
			"memory", posix_memalign(&memory, BLOCK, READ_BLOCKS_MAX * BLOCK) == 0);
		slot->bytes = memory;
		slot->reader = &readers[i / SLOTS];
	}
	run("rings", PINION_IO_AUTO, 0, seed);
	/* As on older kernels. */
	run("no messages, no clones", PINION_IO_AUTO,
		PINION_IO_SEND_MSG_RING | PINION_IO_CLONE_BUFFERS, seed + READERS);
	run("calls", PINION_IO_FALLBACK, 0, seed + 2 * READERS);
	pinion_file_close(&files[0]);
	pinion_file_close(&files[1]);
	for (uint32_t i = 0; i < READERS * SLOTS; i++) {
		free(readers[i / SLOTS].slots[i % SLOTS].bytes);
	}
	scratch_leave();
	return expect_status();
}
