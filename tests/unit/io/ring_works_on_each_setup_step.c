/* SPDX-License-Identifier: MIT */
/*
 * Goal: a ring comes up and works whichever set-up flags the kernel refuses,
 * with fewer entries where memory is short, and fails cleanly otherwise; the
 * memory that it shares with the kernel is left out of forked children. G1.
 * Method: a copy of the host whose ring_setup refuses the first attempts; what
 * /proc/self/smaps says of the ring's memory.
 */
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"

enum {
	LIMIT_SECONDS = 30,
	STEPS_MAX = 16,
	NOPS = 100,
};

static int refusals_left;
static int refusal;
static uint32_t last_entries;
static size_t exit_count;

static int setup_after_refusals(
	struct io_uring *ring, uint32_t entries, struct io_uring_params *params)
{
	if (refusals_left > 0) {
		refusals_left--;
		return refusal;
	}
	last_entries = entries;
	return pin_host_linux.ring_setup(ring, entries, params);
}

static void count_exit(struct io_uring *ring)
{
	exit_count++;
	pin_host_linux.ring_exit(ring);
}

/* A completion refused here does not come back. */
static bool await_nothing(uint64_t bytes, uint32_t *tries)
{
	(void)bytes;
	(void)tries;
	return false;
}

static struct pin_host host;

static void check_works(struct pin_ring *ring)
{
	struct rings_delivered delivered = {0};
	uint64_t sum = 0;

	for (uint64_t i = 1; i <= NOPS; i++) {
		uint64_t user_data = i * 8;

		while (!rings_submit_nop(ring, user_data)) {
			pin_ring_poll(ring, rings_deliver, &delivered);
		}
		sum += user_data;
	}
	rings_await(ring, &delivered, NOPS);
	expect_number("delivered", NOPS, delivered.count);
	expect_number("each once", (long long)sum, (long long)delivered.user_data_sum);
	expect_number("failed", 0, delivered.failed_count);
	expect_number("in flight", 0, ring->in_flight);
}

/* "dc" of the mapping that holds it. */
static bool is_kept_from_children(const void *memory)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	uintptr_t address = (uintptr_t)memory;
	unsigned long long first;
	unsigned long long end;
	bool is_inside = false;
	bool is_kept = false;
	char line[512];

	expect_ready("/proc/self/smaps", maps != NULL);
	while (fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%llx-%llx ", &first, &end) == 2) {
			is_inside = address >= first && address < end;
		} else if (is_inside && strncmp(line, "VmFlags:", 8) == 0) {
			is_kept = strstr(line, " dc") != NULL;
		}
	}
	fclose(maps);
	return is_kept;
}

static void check_children(void)
{
	struct pin_ring ring;

	expect_true("the stack is shared", !is_kept_from_children(&ring));
	expect_number("init", 0, rings_init(&ring, &pin_host_linux, 8));
	expect_true("queues", is_kept_from_children(ring.uring.sq.ring_ptr));
	expect_true("entries", is_kept_from_children(ring.uring.sq.sqes));
	rings_end(&ring);
}

/* Refuses `count` attempts; returns what pin_ring_init says. */
static int try_with(int error, int count, uint32_t entries)
{
	struct pin_ring ring;
	int rc;

	refusal = error;
	refusals_left = count;
	rc = rings_init(&ring, &host, entries);
	if (rc == 0) {
		check_works(&ring);
		rings_end(&ring);
	}
	pin_ring_fini(&ring);
	return rc;
}

int main(void)
{
	int steps = 0;

	runtimes_watchdog(LIMIT_SECONDS);
	rings_require();
	host = pin_host_linux;
	host.ring_setup = setup_after_refusals;
	host.ring_exit = count_exit;
	host.locked_await = await_nothing;

	while (steps < STEPS_MAX && try_with(-EINVAL, steps, 256) == 0) {
		steps++;
	}
	expect_number("steps", rings_step_count(), steps);
	expect_number("beyond the last step", -EINVAL, try_with(-EINVAL, STEPS_MAX, 256));
	for (int i = 0; i < 3; i++) {
		expect_number("short of memory", 0, try_with(-ENOMEM, i, 256));
		expect_number("entries", 256 >> i, last_entries);
	}
	expect_number("no memory at all", -ENOMEM, try_with(-ENOMEM, 1000, 32768));
	expect_number("not allowed", -EPERM, try_with(-EPERM, 1000, 256));
	check_children();
	expect_number("rings closed", steps + 3, (long long)exit_count);
	return expect_status();
}
