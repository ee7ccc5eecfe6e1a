/* SPDX-License-Identifier: MIT */
/*
 * Goal: the library handles no SIGSEGV: a task that overflows its worker's
 * stack hits a guard page, and a task that follows a null pointer faults, too;
 * the process ends by the signal, or enters the handler that the embedder has.
 * Method: children whose hooks give each worker a stack for handlers, or do
 * not. The handler ends the child, and says whether the address is next to the
 * stack's end; the runtime has changed neither the handler nor the mask.
 */
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

enum {
	IN_GUARD = 42,
	ELSEWHERE = 43,
	HANDLER_BYTES = 64 << 10,
	LIMIT_SECONDS = 60,
};

struct plan {
	bool has_handler;
	bool is_null_pointer;
};

static bool is_null_pointer; /* instead of the overflow */
static volatile uint32_t depth_max = UINT32_MAX;
/* Addresses in the guard of the only worker. */
static uintptr_t guard_low;
static uintptr_t guard_high;

static uint32_t dig(uint32_t depth)
{
	volatile char room[512];

	room[depth % sizeof(room)] = (char)depth;
	return depth == depth_max ? 0 : dig(depth + 1) + (uint8_t)room[depth % sizeof(room)];
}

static int run_fault(struct pinion_task *task)
{
	volatile int *nowhere = NULL;

	(void)task;
	return is_null_pointer ? *nowhere : (int)dig(0);
}

static void handle(int signal_number, siginfo_t *info, void *context)
{
	uintptr_t address = (uintptr_t)info->si_addr;

	(void)signal_number;
	(void)context;
	_exit(address >= guard_low && address < guard_high ? IN_GUARD : ELSEWHERE);
}

/*
 * Whether the guard counts as part of the stack has changed in glibc: both
 * sides of the lowest address.
 */
static void find_guard(void)
{
	pthread_attr_t attributes;
	size_t guard_bytes = 0;
	size_t bytes;
	void *lowest = NULL;

	expect_number("attributes", 0, pthread_getattr_np(pthread_self(), &attributes));
	pthread_attr_getguardsize(&attributes, &guard_bytes);
	pthread_attr_getstack(&attributes, &lowest, &bytes);
	pthread_attr_destroy(&attributes);
	guard_low = (uintptr_t)lowest - guard_bytes;
	guard_high = (uintptr_t)lowest + guard_bytes;
}

/* The advice of pinion_fault(3) for embedders. */
static int give_stack(void *arg, uint32_t worker_index, void **out_context)
{
	stack_t stack = {.ss_size = HANDLER_BYTES};

	(void)arg;
	(void)worker_index;
	stack.ss_sp = mmap(
		NULL, HANDLER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	find_guard();
	*out_context = stack.ss_sp;
	return stack.ss_sp != MAP_FAILED && sigaltstack(&stack, NULL) == 0 ? 0 : -ENOMEM;
}

static int run_plan(void *arg)
{
	const struct plan *plan = arg;
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction found;
	struct pinion_config config;
	struct pinion_runtime *runtime;
	struct pinion_task task = {.run = run_fault};

	is_null_pointer = plan->is_null_pointer;
	runtimes_watchdog(LIMIT_SECONDS);
	runtimes_config(&config, 1, PINION_IO_AUTO);
	if (plan->has_handler) {
		sigaction(SIGSEGV, &action, NULL);
		config.after_start = give_stack;
	}
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	sigaction(SIGSEGV, NULL, &found);
	expect_true("handler as before",
		plan->has_handler ? found.sa_sigaction == handle : found.sa_handler == SIG_DFL);
	if (expect_status() != 0) {
		return expect_status();
	}
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	pinion_runtime_join(runtime);
	return EXIT_FAILURE;
}

static void check(const char *what, struct plan plan, int code)
{
	expect_number(what, code, child_code(child_run(run_plan, &plan, NULL, 0)));
}

int main(void)
{
	const struct plan plain = {0};
	const struct plan handled = {.has_handler = true};
	const struct plan null_pointer = {.is_null_pointer = true};
	const struct plan null_pointer_handled = {.has_handler = true, .is_null_pointer = true};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	puts("sanitizers have a handler and stacks of their own");
	return EXPECT_SKIPPED;
#endif
	check("overflow", plain, 128 + SIGSEGV);
	check("overflow, handled", handled, IN_GUARD);
	check("null pointer", null_pointer, 128 + SIGSEGV);
	check("null pointer, handled", null_pointer_handled, ELSEWHERE);
	return expect_status();
}
