/* SPDX-License-Identifier: MIT */
/*
 * Goal: a signal for the process reaches the embedder's threads, never a
 * worker, also when no other thread takes it; requests do not see it: each ends
 * once, with its bytes. G8.
 * Method: the runtime is made while this thread lets signals in, then it blocks
 * them, so that any thread that does not would get them; they come one after
 * the other while reads of a pipe and of /dev/zero are in flight, with rings
 * and without. Then this thread lets them in, and its handler is entered.
 */
#include "tests/support/requests.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum {
	LIMIT_SECONDS = 60,
	ROUNDS = 200,
};

static const int numbers[] = {SIGUSR1, SIGUSR2, SIGCHLD, SIGHUP, SIGWINCH};
static volatile sig_atomic_t entered_count;
static volatile sig_atomic_t wrong_count;
static pthread_t own_thread;

static void note(int number)
{
	(void)number;
	entered_count++;
	wrong_count += pthread_equal(pthread_self(), own_thread) == 0;
}

static void send_all(void)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(numbers); i++) {
		expect_ready("kill", kill(getpid(), numbers[i]) == 0);
	}
}

static void set_mask(int how)
{
	sigset_t chosen;

	sigemptyset(&chosen);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(numbers); i++) {
		sigaddset(&chosen, numbers[i]);
	}
	expect_ready("mask", pthread_sigmask(how, &chosen, NULL) == 0);
}

static void check_level(uint32_t io_level)
{
	struct pinion_runtime *runtime;
	struct pinion_file zero = runtimes_plain_file(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	struct pinion_runtime_info facts;
	struct pinion_file late_file;
	int ends[2];

	expect_ready("pipe", zero.fd >= 0 && pipe2(ends, O_CLOEXEC) == 0);
	/* A thread started now would let them in as well. */
	set_mask(SIG_UNBLOCK);
	runtime = runtimes_start(2, io_level);
	set_mask(SIG_BLOCK);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	/* Without a ring a pipe is not read at an offset. */
	late_file = facts.uses_ring != 0 ? runtimes_plain_file(ends[0]) : zero;
	entered_count = 0;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct requests_one late;
		uint8_t bytes[2][64] = {{1}, {[63] = 1}};

		requests_begin_transfer(&late, PINION_OP_READ, &late_file, bytes[0], 0, 1);
		expect_number("submit", 0, pinion_request_submit(runtime, &late.request));
		send_all();
		expect_number("read", sizeof(bytes[1]),
			requests_transfer(
				runtime, PINION_OP_READ, &zero, bytes[1], 0, sizeof(bytes[1])));
		send_all();
		expect_ready("write", write(ends[1], "x", 1) == 1);
		expect_number("late read", 1, requests_await(&late));
		expect_number("its byte", facts.uses_ring != 0 ? 'x' : 0, bytes[0][0]);
		expect_number("the last byte", 0, bytes[1][sizeof(bytes[1]) - 1]);
	}
	expect_number("entered while this thread takes none", 0, entered_count);
	set_mask(SIG_UNBLOCK);
	expect_true("entered then", entered_count > 0);
	expect_number("on other threads", 0, wrong_count);
	runtimes_finish(runtime, 2 * ROUNDS);
	close(ends[0]);
	close(ends[1]);
	close(zero.fd);
}

int main(void)
{
	struct sigaction action = {.sa_handler = note};

	runtimes_watchdog(LIMIT_SECONDS);
	own_thread = pthread_self();
	for (size_t i = 0; i < PIN_ARRAY_COUNT(numbers); i++) {
		expect_ready("sigaction", sigaction(numbers[i], &action, NULL) == 0);
	}
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		check_level(level);
	}
	return expect_status();
}
