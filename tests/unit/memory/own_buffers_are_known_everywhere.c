/* SPDX-License-Identifier: MIT */
/*
 * Goal: while a request uses a buffer that a worker has for itself, the worker
 * cannot give it back, whichever worker has the request or has posted it;
 * afterwards it can. A request on a free buffer does not begin: -EFAULT, with a
 * message that names its last holder. BP-23, W8. The worker's own request takes
 * the short way, which it alone can end, unless others may reap its ring.
 * Method: reads of a pipe by the buffer's worker, by the other, and from
 * outside, into large and small ones; what pinion_buffer_release() would abort
 * for is asked of the worker's pool. Again with shared rings.
 */
#include "runtime/memory/pool.h"
#include "runtime/task/entry.h"
#include "tests/support/requests.h"
#include "tests/support/users.h"

#include <fcntl.h>

enum {
	LIMIT_SECONDS = 30,
	LENGTH = 512,
	SMALL_BYTES = 4096,
	LARGE_BYTES = 64 << 10,
};

static struct pinion_runtime *runtime;

struct taken {
	struct pinion_buffer buffer;
	size_t bytes;
	int rc;
};

static void take(void *arg)
{
	struct taken *taken = arg;

	taken->rc = pinion_buffer_acquire(runtime, taken->bytes, &taken->buffer);
}

/* As pinion_buffer_release() does, which would abort. */
static void try_to_give(void *arg)
{
	struct taken *taken = arg;
	struct pin_worker *worker = &runtime->shared.workers[0];
	struct pin_pool *pool =
		taken->bytes == SMALL_BYTES ? &worker->small_buffers : &worker->buffers;
	struct pinion_buffer plain = taken->buffer;

	plain.index = (uint32_t)(pin_pool_find_first(pool, plain.bytes) - pool->entries);
	expect_true(
		"not the short way", !pin_pool_release_own(pool, &pool->magazines[0], 0, &plain));
	taken->rc = pin_pool_release(pool, 0, &plain);
}

static void give(void *arg)
{
	struct taken *taken = arg;

	pinion_buffer_release(runtime, &taken->buffer);
}

static void submit(void *arg)
{
	expect_number("submit", 0, pinion_request_submit(runtime, arg));
}

/* By worker `from`, or from outside. */
static void submit_from(struct requests_one *one, int from)
{
	if (from >= 0) {
		users_on(runtime, (uint32_t)from, submit, &one->request);
	} else {
		submit(&one->request);
	}
}

/* Its private part is written before the submit returns, and not again. */
static bool is_borrowed_own(struct requests_one *one)
{
	return pin_request_of(&one->request)->is_borrowed_own;
}

static void check(size_t bytes, int from, bool is_shared)
{
	struct taken taken = {.bytes = bytes, .rc = 1};
	uint8_t data[LENGTH] = {1};
	struct pinion_file file;
	struct requests_one one;
	uint8_t *memory;
	int ends[2];

	expect_ready("pipe", pipe2(ends, O_CLOEXEC) == 0);
	file = runtimes_plain_file(ends[0]);
	users_on(runtime, 0, take, &taken);
	expect_ready("buffer", taken.rc == 0);
	memory = taken.buffer.bytes;
	requests_begin_transfer(&one, PINION_OP_READ, &file, memory, 0, LENGTH);
	submit_from(&one, from);
	if (from >= 0) {
		expect_number("the short way", from == 0 && !is_shared, is_borrowed_own(&one));
	}
	users_on(runtime, 0, try_to_give, &taken);
	expect_number("the kernel's", -EBUSY, taken.rc);
	expect_number("its data comes", LENGTH, write(ends[1], data, LENGTH));
	expect_number("its end", LENGTH, requests_await(&one));
	users_on(runtime, 0, give, &taken);
	requests_begin_transfer(&one, PINION_OP_READ, &file, memory, 0, LENGTH);
	submit_from(&one, from);
	expect_number("of a free one", -EFAULT, requests_await(&one));
	users_expect_said("a request was to use buffer");
	close(ends[0]);
	close(ends[1]);
}

/* False: there is no ring. */
static bool check_all(bool is_shared)
{
	/* The worker first: what others have used has no short way any more. */
	static const int origins[] = {0, 1, -1};
	struct pinion_runtime_info facts;
	struct pinion_config config;

	runtimes_config(&config, 2, PINION_IO_AUTO);
	config.small_buffer_bytes = SMALL_BYTES;
	config.buffer_bytes = LARGE_BYTES;
	runtimes_tuning.ring_sharing = is_shared ? PINION_RING_SHARED : PINION_RING_OWN;
	expect_ready(runtimes_log, pinion_runtime_create(&config, &runtime) == 0);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	/* Without a ring a pipe cannot be read at an offset. */
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(origins) && facts.uses_ring != 0; i++) {
		check(SMALL_BYTES, origins[i], is_shared);
		check(LARGE_BYTES, origins[i], is_shared);
	}
	pinion_runtime_destroy(runtime);
	return facts.uses_ring != 0;
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	if (!check_all(false) || !check_all(true)) {
		printf("skipped: without rings nothing stays in flight\n");
		return EXPECT_SKIPPED;
	}
	return expect_status();
}
