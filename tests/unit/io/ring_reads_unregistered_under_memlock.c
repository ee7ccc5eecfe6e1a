/* SPDX-License-Identifier: MIT */
/*
 * Goal: when the locked-memory limit forbids registering, a message says so and
 * reads go on; where it is allowed, ranges are found again.
 * Method: an ordinary user's child with a limit of 64 KiB registers 2 MiB.
 */
#include "tests/support/child.h"
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"

enum {
	NOBODY = 65534,
	BYTES = 2 << 20,
};

static uint8_t *memory;
static int file_fd;

static void check_read(struct pin_ring *ring)
{
	struct rings_delivered delivered = {0};
	int index = pin_ring_registered_index(ring, memory, 4096);
	struct io_uring_sqe *sqe = rings_entry(ring);

	if (!expect_true("an entry", sqe != NULL)) {
		return;
	}
	memset(memory, 0, 4096);
	if (index >= 0) {
		io_uring_prep_read_fixed(sqe, file_fd, memory, 4096, 0, index);
	} else {
		io_uring_prep_read(sqe, file_fd, memory, 4096, 0);
	}
	sqe->user_data = 8;
	rings_await(ring, &delivered, 1);
	expect_number("bytes read", 4, delivered.last_result);
	expect_number("bytes read", 0, memcmp(memory, "text", 4));
}

static int register_as_nobody(void *arg)
{
	struct rlimit limit = {65536, 65536};
	struct pin_ring ring;
	size_t registered;
	int error;

	(void)arg;
	if (getuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)) {
		printf("skipped: cannot become another user\n");
		return EXPECT_SKIPPED;
	}
	expect_ready("limit", setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	if (rings_init(&ring, &pin_host_linux, 8) < 0) {
		printf("skipped: the limit leaves no memory for the ring itself\n");
		return EXPECT_SKIPPED;
	}
	registered = pin_ring_register(&ring, memory, BYTES, BYTES, 0, &error);
	if (registered == BYTES) {
		printf("skipped: this kernel does not count registered memory\n");
		return EXPECT_SKIPPED;
	}
	expect_number("why not all of it", -ENOMEM, error);
	expect_true("within the limit", registered <= limit.rlim_cur);
	expect_number("index of unregistered memory", -1,
		pin_ring_registered_index(&ring, memory + registered, 4096));
	check_read(&ring);
	rings_end(&ring);
	return expect_status();
}

static void check_registered(void)
{
	struct pin_ring ring;
	int error;

	expect_ready("ring", rings_init(&ring, &pin_host_linux, 8) == 0);
	if (pin_ring_register(&ring, memory, BYTES, 1 << 30, 0, &error) == BYTES) {
		expect_number("first byte", 0, pin_ring_registered_index(&ring, memory, 1));
		expect_number("all", 0, pin_ring_registered_index(&ring, memory, BYTES));
		expect_number(
			"last byte", 0, pin_ring_registered_index(&ring, memory + BYTES - 1, 1));
		expect_number(
			"one too many", -1, pin_ring_registered_index(&ring, memory, BYTES + 1));
		expect_number("one before", -1, pin_ring_registered_index(&ring, memory - 1, 1));
	}
	check_read(&ring);
	rings_end(&ring);
}

int main(void)
{
	FILE *file = tmpfile();
	int code;

	rings_require();
	memory = pin_host_linux.map(BYTES, PIN_PAGES_SMALL);
	expect_ready("map", memory != NULL);
	expect_ready("file", file != NULL && fputs("text", file) >= 0 && fflush(file) == 0);
	file_fd = fileno(file);
	check_registered();
	/* The child cannot see memory that is kept out of forks. */
	pin_host_linux.unmap(memory, BYTES);
	memory = aligned_alloc(4096, BYTES);
	expect_ready("memory", memory != NULL);
	code = child_code(child_run(register_as_nobody, NULL, NULL, 0));
	if (code == EXPECT_SKIPPED && expect_failure_count == 0) {
		return EXPECT_SKIPPED;
	}
	expect_number("child", 0, code);
	free(memory);
	fclose(file);
	return expect_status();
}
