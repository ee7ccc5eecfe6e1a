/* SPDX-License-Identifier: MIT */
/*
 * Goal: a process whose main thread has ended, and others not, is alive: its
 * pages, its trace and the names of its functions are found.
 * Method: a child with a runtime, whose main thread calls pthread_exit().
 */
#include "runtime/host/symbols.h"
#include "tests/support/metrics.h"
#include "tests/support/runtimes.h"
#include "tools/top/process.h"
#include "tools/top/watch.h"

#include <pinion/trace.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum { LIMIT_SECONDS = 60, EVENTS = 64 };

static void be_child(void)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.trace_events = EVENTS;
	if (pinion_runtime_create(&config, &runtime) != 0) {
		_exit(1);
	}
	pthread_exit(NULL);
}

static void check_names(int pid)
{
	struct pin_symbols *symbols;
	char name[PIN_SYMBOL_BYTES];

	expect_ready("symbols", pin_symbols_open(pid, &symbols) == 0);
	/* The same program at the same place. */
	pin_symbols_name(symbols, (uint64_t)(uintptr_t)check_names, name);
	expect_text("name", "check_names", name);
	pin_symbols_close(symbols);
}

static void check_process(int pid)
{
	char number[16];
	char *operands[] = {number, NULL};
	struct top_watch watch = {.operands = operands, .operand_count = 1};
	struct pinion_trace *trace = NULL;

	snprintf(number, sizeof(number), "%d", pid);
	expect_true("found", top_watch_find(&watch));
	expect_true("without trouble", !watch.had_trouble);
	expect_number("pages", 1, (long long)watch.count);
	top_watch_read(&watch);
	if (watch.count == 1) {
		expect_number("state", TOP_ALIVE, watch.pages[0].state);
	}
	top_watch_fini(&watch);
	expect_number("trace", 0, pinion_trace_open_pid(pid, 0, note, NULL, &trace));
	pinion_trace_close(trace);
	check_names(pid);
}

int main(void)
{
	struct top_process process = {.pid = 0};
	pid_t child = fork();

	expect_ready("fork", child >= 0);
	if (child == 0) {
		be_child();
	}
	runtimes_watchdog(LIMIT_SECONDS);
	do {
		sched_yield();
		(void)top_process_read(child, &process);
	} while (process.state != 'Z');
	check_process(child);
	/* Now it is a zombie as a whole. */
	kill(child, SIGKILL);
	expect_number(
		"it has ended", 0, waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT));
	expect_true("which is seen", !top_process_read(child, &process));
	expect_true("and why", top_process_is_zombie(&process));
	waitpid(child, NULL, 0);
	return expect_status();
}
