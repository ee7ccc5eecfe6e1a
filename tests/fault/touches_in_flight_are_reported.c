/* SPDX-License-Identifier: MIT */
/*
 * Goal: in sanitized builds a touch of memory that the kernel has is reported:
 * of what a read or a statx is to fill, under AddressSanitizer any touch, under
 * ThreadSanitizer one by another thread; of what a write takes, a store by
 * another thread under ThreadSanitizer. A touch before or after is not
 * reported, nor a touch of memory beside it, also where the request was
 * cancelled. Without rings it is the same, and in any piece of a vector. W17.
 * Method: children, each with a request that waits for a pipe or that a worker
 * has in hand, and one touch. All use the memory afterwards.
 */
#include "tests/support/child.h"
#include "tests/support/requests.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include "runtime/io/in_flight.h"

#if defined(PIN_ASAN) || defined(PIN_TSAN)
#include <sanitizer/common_interface_defs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum {
	BYTES = 64,
	LIMIT_SECONDS = 60,
};

enum touch {
	TOUCH_NOTHING,
	TOUCH_LOAD,
	TOUCH_STORE,
	TOUCH_BESIDE,
	TOUCH_CANCELLED,
};

struct attempt {
	uint16_t op;
	enum touch touch;
	uint32_t io_level;
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct requests_one one;
static struct statx status;
static uint8_t memory[2 * BYTES] __attribute__((aligned(BYTES)));
/* Touches are of the second. */
static const struct iovec vector[] = {{memory + BYTES / 2, BYTES / 2}, {memory, BYTES / 2}};
static volatile uint8_t seen;
static int gate[2];
static bool has_rings;

/*
 * As read(2) and write(2), which ThreadSanitizer would take for an order of the
 * code before and after them in two threads.
 */
static void pass_unseen(long number, int fd, void *bytes, size_t length)
{
	expect_ready("unseen", syscall(number, fd, bytes, length) > 0);
}

/* Its worker has it in hand, with rings the kernel, while the gate is shut. */
static void begin(struct tasks_hold *hold)
{
	uint8_t byte;

	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	if (has_rings && one.request.op != PINION_OP_STATX) {
		(void)pinion_worker_should_yield(runtime);
	}
	tasks_signal(&hold->has_begun);
	pass_unseen(SYS_read, gate[0], &byte, 1);
	/* It need not be let go, which would be such an order. */
	pin_store_release_u32(&hold->may_end, 1);
}

static void touch(volatile uint8_t *bytes, enum touch touch)
{
	switch (touch) {
	case TOUCH_LOAD:
		seen = bytes[8];
		break;
	case TOUCH_STORE:
		bytes[8] = 1;
		break;
	case TOUCH_BESIDE:
		bytes[BYTES] = 1;
		break;
	case TOUCH_NOTHING:
	case TOUCH_CANCELLED:
		break;
	}
}

static bool is_write(uint16_t op)
{
	return op == PINION_OP_WRITE || op == PINION_OP_WRITEV;
}

/* A pipe that is empty for a reader, and full for a writer. */
static void open_pipe(int ends[2], uint16_t op)
{
	static const uint8_t page[4096];

	expect_ready("pipe", pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	while (is_write(op) && write(ends[1], page, sizeof(page)) > 0) {
	}
	expect_ready("blocking", fcntl(ends[is_write(op)], F_SETFL, 0) == 0);
	file = runtimes_plain_file(ends[is_write(op)]);
}

static void start(uint32_t io_level)
{
	struct pinion_runtime_info facts;

	runtime = runtimes_start(1, io_level);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	has_rings = facts.uses_ring != 0;
}

/* What the request waits for; without rings a pipe is an error at once. */
static void let_end(uint16_t op, const int ends[2])
{
	static uint8_t pages[1 << 16];

	pass_unseen(SYS_write, gate[1], pages, 1);
	if (op == PINION_OP_READ || op == PINION_OP_READV) {
		pass_unseen(SYS_write, ends[1], pages, BYTES);
	} else if (is_write(op)) {
		pass_unseen(SYS_read, ends[0], pages, sizeof(pages));
	}
}

static int attempt(void *arg)
{
	const struct attempt *attempt = arg;
	struct tasks_hold hold = {.prepare = begin};
	struct pinion_request *request = requests_begin(&one, attempt->op);
	int ends[2];

	runtimes_watchdog(LIMIT_SECONDS);
	open_pipe(ends, attempt->op);
	expect_ready("pipe", pipe2(gate, O_CLOEXEC) == 0);
	start(attempt->io_level);
	memset(memory, 0, sizeof(memory));
	request->file = &file;
	request->bytes = memory;
	request->length_bytes = BYTES;
	if (pin_request_has(request, PIN_OP_GATHERS)) {
		request->vector = vector;
		request->vector_count = 2;
	}
	request->status = attempt->op == PINION_OP_STATX ? &status : NULL;
	if (attempt->op == PINION_OP_STATX) {
		request->flags = STATX_SIZE;
	}
	tasks_hold_begin(&hold, runtime, 0);
	touch(attempt->op == PINION_OP_STATX ? (uint8_t *)&status : memory, attempt->touch);
	if (attempt->touch == TOUCH_CANCELLED) {
		expect_number("cancel", 0, pinion_request_cancel(runtime, request));
	}
	let_end(attempt->op, ends);
	(void)requests_await(&one);
	/* From here on it belongs to all threads. */
	memset(memory, 1, sizeof(memory));
	memset(&status, 1, sizeof(status));
	pinion_runtime_destroy(runtime);
	return expect_status();
}

static void check(uint16_t op, enum touch touch, uint32_t io_level, bool is_reported)
{
	static char output[1 << 16];
	struct attempt wanted = {.op = op, .touch = touch, .io_level = io_level};
	int status_now = child_run(attempt, &wanted, output, sizeof(output));
	bool was_reported = strstr(output, "use-after-poison") != NULL ||
		strstr(output, "ThreadSanitizer: data race") != NULL;

	if (was_reported != is_reported || (child_code(status_now) != 0 && !is_reported)) {
		printf("op %u, touch %u, level %u: expected %s, got %s, status %d: %.1500s\n", op,
			touch, io_level, is_reported ? "a report" : "none",
			was_reported ? "one" : "none", child_code(status_now), output);
		expect_failure_count++;
	}
}

static void check_level(uint32_t io_level)
{
	static const uint16_t filled[] = {PINION_OP_READ, PINION_OP_READV, PINION_OP_STATX};
	static const uint16_t written[] = {PINION_OP_WRITE, PINION_OP_WRITEV};
#ifdef PIN_TSAN
	bool sees_writes = true;
#else
	bool sees_writes = false;
#endif

	for (size_t i = 0; i < PIN_ARRAY_COUNT(filled); i++) {
		check(filled[i], TOUCH_NOTHING, io_level, false);
		check(filled[i], TOUCH_LOAD, io_level, true);
		check(filled[i], TOUCH_STORE, io_level, true);
		check(filled[i], TOUCH_CANCELLED, io_level, false);
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(written); i++) {
		check(written[i], TOUCH_NOTHING, io_level, false);
		check(written[i], TOUCH_LOAD, io_level, false);
		check(written[i], TOUCH_STORE, io_level, sees_writes);
		check(written[i], TOUCH_BESIDE, io_level, false);
	}
	check(PINION_OP_READ, TOUCH_BESIDE, io_level, false);
	check(PINION_OP_READV, TOUCH_BESIDE, io_level, false);
}

int main(void)
{
	runtimes_watchdog(2 * LIMIT_SECONDS);
	/* To this test, which reads them. */
	__sanitizer_set_report_path("stderr");
	check_level(PINION_IO_AUTO);
	check_level(PINION_IO_FALLBACK);
	return expect_status();
}
#else
int main(void)
{
	printf("this is no build under AddressSanitizer or ThreadSanitizer\n");
	return EXPECT_SKIPPED;
}
#endif
