/* SPDX-License-Identifier: MIT */
/*
 * The handler runs on a stack of its own: the thread's may be what went wrong.
 */
#include "tests/model/crash.h"
#include "tests/model/execution.h"
#include "tests/model/explorer.h"
#include "tests/model/snapshot.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static uint8_t stack[64 * 1024] __attribute__((aligned(64)));

static void fail_execution(int number, siginfo_t *details, void *machine)
{
	(void)machine;
	if (!execution_is_running()) {
		/* The same instruction runs again, and kills the program. */
		signal(number, SIG_DFL);
		return;
	}
	/*
	 * The jump out of here restores no signal mask: SA_NODEFER keeps the
	 * signal open for the next crash.
	 */
	model_fail("crash: %s at %p, by a pointer from freed memory, or out of bounds",
		number == SIGSEGV ? "segmentation fault" : "bus error", details->si_addr);
}

void crash_exclude(void)
{
	snapshot_exclude(stack, sizeof(stack));
}

void crash_watch(void)
{
	const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {
		.sa_sigaction = fail_execution,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	if (sigaltstack(&own, NULL) != 0 || sigaction(SIGSEGV, &action, NULL) != 0 ||
		sigaction(SIGBUS, &action, NULL) != 0) {
		abort();
	}
}
