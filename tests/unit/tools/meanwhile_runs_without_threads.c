/* SPDX-License-Identifier: MIT */
/*
 * Goal: what a command does meanwhile is done once and gives its result, also
 * where no thread can be started.
 * Method: an address space without room for a stack, and then with it.
 */
#include "tests/support/expect.h"
#include "tests/support/sanitized.h"
#include "tools/meanwhile.h"

#include <sys/resource.h>

struct work {
	int runs;
	pthread_t thread;
};

static int run(void *arg)
{
	struct work *work = arg;

	work->runs++;
	work->thread = pthread_self();
	return -7;
}

static void check(const char *what, bool wants_thread)
{
	struct meanwhile meanwhile;
	struct work work = {0};
	struct rlimit before;
	struct rlimit none;

	expect_ready("getrlimit", getrlimit(RLIMIT_AS, &before) == 0);
	none = before;
	none.rlim_cur = wants_thread ? before.rlim_cur : 0;
	expect_ready("setrlimit", setrlimit(RLIMIT_AS, &none) == 0);
	meanwhile_begin(&meanwhile, run, &work);
	expect_ready("setrlimit", setrlimit(RLIMIT_AS, &before) == 0);
	expect_number(what, -7, meanwhile_end(&meanwhile));
	expect_number("times it was run", 1, work.runs);
	expect_number(
		"on another thread", wants_thread, pthread_equal(work.thread, pthread_self()) == 0);
}

int main(void)
{
	/* First: a stack that is there is taken again. */
	if (!SANITIZED_BUILD) {
		check("without threads", false);
	}
	check("with threads", true);
	return expect_status();
}
