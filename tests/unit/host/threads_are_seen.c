/* SPDX-License-Identifier: MIT */
/*
 * Goal: the state of another thread says whether it runs or sleeps, in which
 * call and on which file; a pipe has no offset, a file has the call's or its
 * own. In a process whose /proc is not its own, which is not dumpable, it says
 * at least whether the thread runs or sleeps. WP-26, W46.
 * Method: a thread that reads a pipe without a writer, and children of another
 * user that are not dumpable.
 */
#include "runtime/base/atomic.h"
#include "runtime/host/thread_state.h"
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <pthread.h>
#include <sys/prctl.h>

enum { LIMIT_SECONDS = 60, NOBODY = 65534 };

static struct pin_atomic_u32 number;
static int pipe_fd = -1;

static void *read_pipe(void *arg)
{
	char byte;

	pin_store_release_u32(&number, pin_thread_number());
	expect_number("end of pipe", 0, read(pipe_fd, &byte, 1));
	return arg;
}

/* Until it sleeps. */
static void await_sleep(struct pin_thread_state *state)
{
	do {
		sched_yield();
		pin_thread_look(pin_load_acquire_u32(&number), state);
	} while (pin_load_acquire_u32(&number) == 0 || state->doing != PIN_THREAD_SLEEPS);
}

/* The state of a thread that sleeps in a read of a pipe with a name. */
static void look_at_reader(struct pin_thread_state *state)
{
	pthread_t thread;
	int writer;

	pin_store_release_u32(&number, 0);
	pipe_fd = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	writer = open("pipe", O_WRONLY | O_CLOEXEC);
	expect_ready("pipe", pipe_fd >= 0 && writer >= 0 && fcntl(pipe_fd, F_SETFL, 0) == 0);
	expect_ready("thread", pthread_create(&thread, NULL, read_pipe, NULL) == 0);
	await_sleep(state);
	close(writer);
	pthread_join(thread, NULL);
	close(pipe_fd);
}

static void check_pipe(void)
{
	struct pin_thread_state state;
	char wanted[sizeof(scratch_path) + 32];

	look_at_reader(&state);
	snprintf(wanted, sizeof(wanted), "read of %s/pipe", scratch_path);
	expect_text("without an offset", wanted, state.where);
}

static void *spin(void *arg)
{
	pin_store_release_u32(&number, pin_thread_number());
	while (pin_load_acquire_u32(&number) != 0) {
	}
	return arg;
}

static void check_runner(void)
{
	struct pin_thread_state state;
	pthread_t thread;

	pin_store_release_u32(&number, 0);
	expect_ready("thread", pthread_create(&thread, NULL, spin, NULL) == 0);
	do {
		sched_yield();
		pin_thread_look(pin_load_acquire_u32(&number), &state);
	} while (state.doing != PIN_THREAD_RUNS || state.cpu_ns == 0);
	expect_text("nowhere", "", state.where);
	expect_true("known", state.cpu_ns != UINT64_MAX);
	pin_store_release_u32(&number, 0);
	pthread_join(thread, NULL);
}

static int look_undumped(void *arg)
{
	struct pin_thread_state state;

	(void)arg;
	expect_ready("user", geteuid() != 0 || setuid(NOBODY) == 0);
	expect_ready("prctl", prctl(PR_SET_DUMPABLE, 0) == 0);
	if (access("/proc/self/syscall", R_OK) == 0) {
		return 77;
	}
	look_at_reader(&state);
	expect_number("sleeps", PIN_THREAD_SLEEPS, (long long)state.doing);
	expect_text("the call is not shown", "", state.where);
	pin_thread_look(pin_thread_number(), &state);
	expect_number("runs", PIN_THREAD_RUNS, (long long)state.doing);
	return expect_status();
}

static void check_undumped(void)
{
	int code = child_code(child_run(look_undumped, NULL, NULL, 0));

	expect_true("child", code == 0 || code == 77);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("threads_are_seen");
	expect_ready("pipe", mkfifo("pipe", 0666) == 0 && chmod("pipe", 0666) == 0);
	check_undumped();
	check_pipe();
	check_runner();
	scratch_leave();
	return expect_status();
}
