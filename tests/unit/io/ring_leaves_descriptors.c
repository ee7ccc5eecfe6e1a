/* SPDX-License-Identifier: MIT */
/*
 * Goal: a ring and its doorbell leave the last five descriptors that the
 * process may open to files, and a ring that cannot have all it needs keeps
 * none. W16, C20.
 * Method: a limit of 16, and as many taken before that the ring, or the
 * doorbell after it, would be the first of the last five.
 */
#include "tests/support/rings.h"

#include <sys/resource.h>
#include <unistd.h>

enum { LIMIT = 16, LAST = LIMIT - 5 };

static int next_descriptor(void)
{
	int fd = dup(STDIN_FILENO);

	expect_ready("a descriptor", fd >= 0);
	close(fd);
	return fd;
}

/* So that the next to be had is `fd`. */
static void take_up_to(int fd)
{
	while (next_descriptor() < fd) {
		expect_ready("a descriptor", dup(STDIN_FILENO) >= 0);
	}
}

static void give_from(int fd)
{
	for (; fd < LIMIT; fd++) {
		close(fd);
	}
}

static void check(const char *what, int first, int rc, bool sends_messages)
{
	struct pin_ring ring;

	rings_set_feature(PINION_IO_SEND_MSG_RING, sends_messages);
	take_up_to(first);
	expect_number(what, rc, rings_init(&ring, &pin_host_linux, 8));
	if (rc == 0) {
		expect_number(what, first + (sends_messages ? 1 : 2), next_descriptor());
		rings_end(&ring);
	}
	expect_number(what, first, next_descriptor());
}

int main(void)
{
	struct rlimit limit = {LIMIT, LIMIT};
	bool sends_messages;
	int first;

	rings_require();
	sends_messages = pin_kernel_has(&rings_kernel, PINION_IO_SEND_MSG_RING);
	/* Of those that were inherited the first few are enough. */
	give_from(STDERR_FILENO + 1);
	first = next_descriptor();
	expect_ready("a limit", setrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (sends_messages) {
		check("the last that rings may have", LAST - 1, 0, true);
		check("the first of the others", LAST, -EMFILE, true);
		give_from(first);
	}
	check("both", LAST - 2, 0, false);
	check("no doorbell", LAST - 1, -EMFILE, false);
	check("no ring", LAST, -EMFILE, false);
	return expect_status();
}
