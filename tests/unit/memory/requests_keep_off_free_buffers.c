/* SPDX-License-Identifier: MIT */
/*
 * Goal: a read or write of a pool's buffer that was given back does not begin:
 * -EFAULT, with a message that names its last holder, also where another has
 * the buffer by the time it would begin; and a buffer with requests in flight
 * is not given back before the last of them has ended. BP-23, W8.
 * Method: requests by a stale pointer, from a worker and from outside; from
 * outside to a worker that is held until another has the buffer. Then two in
 * flight with one buffer, of a thread with a cache, of one without, and of a
 * worker itself, each of which ends alone; after that the buffer can be taken,
 * used and given back. Both kinds of workers.
 */
#include "runtime/api/internal.h"
#include "tests/support/requests.h"
#include "tests/support/users.h"

#include <fcntl.h>

enum {
	LIMIT_SECONDS = 30,
	LENGTH = 512,
	OLD_BYTE = 0x5a,
};

static struct pinion_runtime *runtime;
static struct pinion_pool *pool;
static struct pinion_file zeros;

static void submit(void *arg)
{
	expect_number("submit", 0, pinion_request_submit(runtime, arg));
}

/* From worker `from`, or from outside. */
static int64_t result_of(struct requests_one *one, int from)
{
	if (from >= 0) {
		users_on(runtime, (uint32_t)from, submit, &one->request);
	} else {
		submit(&one->request);
	}
	return requests_await(one);
}

static void check_stale(uint16_t op, int from)
{
	struct pinion_buffer buffer = users_take(pool);
	struct pinion_buffer stale = buffer;
	uint64_t known = users_counters(pool).misuses;
	struct requests_one one;

	memset(buffer.bytes, OLD_BYTE, LENGTH);
	users_give(pool, &buffer);
	requests_begin_transfer(&one, op, &zeros, stale.bytes, 0, LENGTH);
	expect_number("a stale pointer", -EFAULT, result_of(&one, from));
	users_expect_said("a request was to use buffer");
	expect_number("counted", (long long)known + 1, (long long)users_counters(pool).misuses);
	do {
		buffer = users_take(pool);
	} while (buffer.bytes != stale.bytes);
	expect_number("nothing was read into it", OLD_BYTE, buffer.bytes[0]);
	requests_begin_transfer(&one, op, &zeros, buffer.bytes, 0, LENGTH);
	expect_number("by its holder", LENGTH, result_of(&one, from));
	users_give(pool, &buffer);
}

/*
 * The message comes when it is posted, and it does not touch memory that
 * another has since.
 */
static void check_taken_meanwhile(uint16_t op)
{
	struct pinion_buffer buffer = users_take(pool);
	uint8_t *stale = buffer.bytes;
	uint64_t known = users_counters(pool).misuses;
	struct tasks_hold hold = {.prepare = NULL};
	struct requests_one one;

	memset(buffer.bytes, OLD_BYTE, LENGTH);
	users_give(pool, &buffer);
	tasks_hold_begin(&hold, runtime, 0);
	requests_begin_transfer(&one, op, &zeros, stale, 0, LENGTH);
	submit(&one.request);
	users_expect_said("a request was to use buffer");
	buffer = users_take(pool);
	expect_true("the same", buffer.bytes == stale);
	tasks_hold_end(&hold);
	expect_number("another's by now", -EFAULT, requests_await(&one));
	expect_number(
		"counted once", (long long)known + 1, (long long)users_counters(pool).misuses);
	expect_number("nothing was read into it", OLD_BYTE, buffer.bytes[0]);
	requests_begin_transfer(&one, op, &zeros, buffer.bytes, 0, LENGTH);
	expect_number("by its holder", LENGTH, result_of(&one, -1));
	users_give(pool, &buffer);
}

static void read_zeros_into(struct pinion_buffer *buffer)
{
	struct requests_one one;

	requests_begin_transfer(&one, PINION_OP_READ, &zeros, buffer->bytes, 0, LENGTH);
	expect_number("read into again", LENGTH, result_of(&one, -1));
}

/* Reads from a pipe of its own, which holds nothing yet. */
struct waiting {
	struct requests_one one;
	struct pinion_file file;
	int ends[2];
};

static void prepare_waiting(struct waiting *waiting, const struct pinion_buffer *buffer)
{
	expect_ready("pipe", pipe2(waiting->ends, O_CLOEXEC) == 0);
	waiting->file = runtimes_plain_file(waiting->ends[0]);
	requests_begin_transfer(
		&waiting->one, PINION_OP_READ, &waiting->file, buffer->bytes, 0, LENGTH);
}

static void begin_waiting(struct waiting *waiting, const struct pinion_buffer *buffer)
{
	prepare_waiting(waiting, buffer);
	submit(&waiting->one.request);
}

static void end_waiting(struct waiting *waiting)
{
	uint8_t data[LENGTH] = {0};

	expect_number("its data comes", LENGTH, write(waiting->ends[1], data, LENGTH));
	expect_number("its end", LENGTH, requests_await(&waiting->one));
	close(waiting->ends[0]);
	close(waiting->ends[1]);
}

static void check_in_flight(bool has_cache)
{
	struct pinion_buffer buffer;
	struct waiting first;
	struct waiting second;

	expect_number("attach", 0, has_cache ? pinion_pool_attach(pool) : 0);
	buffer = users_take(pool);
	begin_waiting(&first, &buffer);
	begin_waiting(&second, &buffer);
	expect_number("the kernel's", -EBUSY, pinion_pool_release(pool, &buffer));
	users_expect_said("until its request has completed");
	end_waiting(&first);
	expect_number("the other's still", -EBUSY, pinion_pool_release(pool, &buffer));
	end_waiting(&second);
	users_give(pool, &buffer);
	buffer = users_take(pool);
	read_zeros_into(&buffer);
	users_give(pool, &buffer);
	expect_number("detach", 0, has_cache ? pinion_pool_detach(pool) : 0);
}

static void try_to_give(void *arg)
{
	expect_number("its worker's", -EBUSY, pinion_pool_release(pool, arg));
}

/*
 * The worker's requests of what it has taken itself; the second begins when
 * others have tried to give it back, so that it is shared.
 */
static void check_in_flight_own(void)
{
	struct users_taking taking = {.pool = pool, .count = 1};
	struct pinion_buffer *buffer = &taking.buffers[0];
	const struct pin_entry *entry;
	struct waiting first;
	struct waiting second;

	users_forget_shared(pool);
	users_on(runtime, 0, users_take_some, &taking);
	entry = &pool->pool.entries[buffer->index];
	prepare_waiting(&first, buffer);
	users_on(runtime, 0, submit, &first.one.request);
	expect_true(
		"counted by its holder", pin_entry_has_own(pin_load_relaxed_u32(&entry->holder)));
	expect_number("the kernel's", -EBUSY, pinion_pool_release(pool, buffer));
	users_expect_said("until its request has completed; taken by worker 0");
	users_on(runtime, 0, try_to_give, buffer);
	pin_pool_share(&pool->pool, buffer->index);
	prepare_waiting(&second, buffer);
	users_on(runtime, 0, submit, &second.one.request);
	expect_true("counted by all",
		(pin_load_relaxed_u64(&entry->state) & PIN_ENTRY_REQUESTS_MASK) != 0);
	end_waiting(&first);
	expect_true("no longer by its holder",
		!pin_entry_has_own(pin_load_relaxed_u32(&entry->holder)));
	expect_number("the other's still", -EBUSY, pinion_pool_release(pool, buffer));
	end_waiting(&second);
	expect_number("by another", 0, pinion_pool_release(pool, buffer));
}

static void check(enum pinion_io_level level)
{
	struct pinion_runtime_info facts;
	struct pinion_config config;

	runtimes_config(&config, 1, level);
	config.pool_bytes = 1 << 16;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_ready(runtimes_log, runtime != NULL);
	pool = users_pool(runtime, 0, 1, 1);
	for (int from = -1; from < 1; from++) {
		check_stale(PINION_OP_READ, from);
		check_stale(PINION_OP_WRITE, from);
	}
	check_taken_meanwhile(PINION_OP_READ);
	check_taken_meanwhile(PINION_OP_WRITE);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	/* Without a ring a pipe cannot be read at an offset. */
	if (facts.uses_ring != 0) {
		check_in_flight(false);
		check_in_flight(true);
		check_in_flight_own();
	}
	expect_number("all are back", 1, users_free(pool));
	expect_number("destroy", 0, pinion_pool_destroy(pool));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	zeros = runtimes_plain_file(open("/dev/zero", O_RDWR | O_CLOEXEC));
	check(PINION_IO_AUTO);
	check(PINION_IO_FALLBACK);
	close(zeros.fd);
	return expect_status();
}
