/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_task_panic() outside of a worker's task aborts with a line on
 * stderr that holds its message; from a hook that is not in the loop yet the
 * line goes to the log hook before that.
 * Method: a child calls it on its main thread, another in `after_start`; the
 * log hook writes what it gets to stderr, marked.
 */
#include "tests/support/child.h"
#include "tests/support/runtimes.h"

#include <errno.h>
#include <pinion/fault.h>

enum { LIMIT_SECONDS = 60 };

#define LINE "pinion_task_panic() outside of a worker's task: no disk"

static void print(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	fprintf(stderr, "log: %s\n", message);
}

static int panic_in_hook(void *arg, uint32_t worker_index, void **out_context)
{
	(void)arg;
	(void)worker_index;
	(void)out_context;
	pinion_task_panic(-EIO, "no disk");
}

static int run_hook(void *arg)
{
	struct pinion_config config;
	struct pinion_runtime *runtime;

	(void)arg;
	runtimes_watchdog(LIMIT_SECONDS);
	runtimes_config(&config, 1, PINION_IO_AUTO);
	config.log = print;
	config.after_start = panic_in_hook;
	return pinion_runtime_create(&config, &runtime);
}

static int run_outside(void *arg)
{
	(void)arg;
	pinion_task_panic(-EIO, "no disk");
}

static void check(const char *what, int (*body)(void *arg), bool is_logged)
{
	char output[2048];

	expect_number(
		what, 128 + SIGABRT, child_code(child_run(body, NULL, output, sizeof(output))));
	expect_true("on stderr", strstr(output, "pinion: " LINE "\n") != NULL);
	expect_number("through the log hook", is_logged, strstr(output, "log: " LINE "\n") != NULL);
}

int main(void)
{
	check("no worker", run_outside, false);
	check("a hook", run_hook, true);
	return expect_status();
}
