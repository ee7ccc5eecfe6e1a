/* SPDX-License-Identifier: MIT */
/*
 * Goal: a readiness descriptor is made once, when it is asked for; one giver at
 * a time has to raise it; it is reset only with its token, and closed only
 * after a token that is under way has come.
 * Method: a host whose descriptors are made up, one of them with the number 0.
 */
#include "runtime/queue/ready_fd.h"
#include "tests/support/expect.h"

#include <errno.h>

static struct pin_ready_fd ready_fd;
static struct pin_host host;
static int created_fd;
static bool has_token;
static uint32_t create_count;
static uint32_t clear_count;
static uint32_t close_count;
static uint32_t raise_count;
static uint32_t yield_count;
static int last_fd;

static int event_create(void)
{
	create_count++;
	return created_fd;
}

static void event_raise(int fd)
{
	raise_count++;
	last_fd = fd;
	has_token = true;
}

static bool event_clear(int fd)
{
	bool had_token = has_token;

	clear_count++;
	last_fd = fd;
	has_token = false;
	return had_token;
}

static void event_close(int fd)
{
	close_count++;
	last_fd = fd;
}

/* The token comes with the third. */
static void yield(void)
{
	yield_count++;
	has_token = yield_count == 3;
}

static void begin(int fd)
{
	pin_ready_fd_init(&ready_fd);
	created_fd = fd;
	has_token = false;
	create_count = 0;
	clear_count = 0;
	close_count = 0;
	raise_count = 0;
	yield_count = 0;
	last_fd = -1;
}

static void check_open(int fd)
{
	begin(-EMFILE);
	expect_true("none", !pin_ready_fd_is_open(&ready_fd));
	expect_number("no descriptors left", -EMFILE, pin_ready_fd_open(&ready_fd, &host));
	expect_true("none yet", !pin_ready_fd_is_open(&ready_fd));
	created_fd = fd;
	expect_number("made", fd, pin_ready_fd_open(&ready_fd, &host));
	expect_true("open", pin_ready_fd_is_open(&ready_fd));
	expect_number("tries", 2, create_count);
	created_fd = fd + 1;
	expect_number("the same", fd, pin_ready_fd_open(&ready_fd, &host));
	expect_number("made once", 2, create_count);
}

static void check_signal(int fd)
{
	begin(fd);
	pin_ready_fd_reset(&ready_fd, &host);
	expect_number("nothing to reset", 0, clear_count);
	pin_ready_fd_open(&ready_fd, &host);
	expect_number("the first raises it", fd, pin_ready_fd_claim(&ready_fd));
	expect_number("the second does not", -1, pin_ready_fd_claim(&ready_fd));
	pin_ready_fd_reset(&ready_fd, &host);
	expect_number("asked for the token", 1, clear_count);
	expect_number("of this one", fd, last_fd);
	expect_number("it is under way", -1, pin_ready_fd_claim(&ready_fd));
	pin_ready_fd_raise(fd, &host);
	expect_number("raised", 1, raise_count);
	pin_ready_fd_reset(&ready_fd, &host);
	expect_number("the next raises it again", fd, pin_ready_fd_claim(&ready_fd));
}

static void check_close(int fd)
{
	begin(fd);
	pin_ready_fd_close(&ready_fd, &host);
	expect_number("none to close", 0, close_count);
	pin_ready_fd_open(&ready_fd, &host);
	pin_ready_fd_close(&ready_fd, &host);
	expect_number("closed", 1, close_count);
	expect_number("this one", fd, last_fd);
	expect_number("without a wait", 0, clear_count + yield_count);
	expect_true("not open", !pin_ready_fd_is_open(&ready_fd));
	pin_ready_fd_open(&ready_fd, &host);
	(void)pin_ready_fd_claim(&ready_fd);
	pin_ready_fd_close(&ready_fd, &host);
	expect_number("waited for the token", 3, yield_count);
	expect_number("closed then", 2, close_count);
	pin_ready_fd_open(&ready_fd, &host);
	expect_number("not signalled any more", fd, pin_ready_fd_claim(&ready_fd));
}

int main(void)
{
	host = pin_host_linux;
	host.event_create = event_create;
	host.event_raise = event_raise;
	host.event_clear = event_clear;
	host.event_close = event_close;
	host.yield = yield;
	for (int fd = 0; fd < 8; fd += 7) {
		check_open(fd);
		check_signal(fd);
		check_close(fd);
	}
	return expect_status();
}
