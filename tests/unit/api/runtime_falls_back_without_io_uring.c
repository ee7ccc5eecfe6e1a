/* SPDX-License-Identifier: MIT */
/*
 * Goal: where io_uring is forbidden or missing, AUTO works without it and says
 * why once, RING fails with the kernel's error and says why. G6.
 * Method: a child under a seccomp filter that answers io_uring_setup with EPERM
 * or ENOSYS, as container runtimes do, or io_uring_enter alone.
 */
#include "runtime/base/atomic.h"
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_request request;
static uint8_t bytes[4096] __attribute__((aligned(4096)));
static struct pin_atomic_u32 read_count;

struct refusal {
	uint32_t call;
	int error;
};

static bool forbid_io_uring(const struct refusal *refusal)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusal->call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)refusal->error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int has_read(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&read_count, 1);
	return 0;
}

static int submit(struct pinion_task *task)
{
	(void)task;
	request = (struct pinion_request){
		.task.run = has_read, .file = &file, .bytes = bytes, .length_bytes = 4096};
	return pinion_request_submit(runtime, &request);
}

static size_t count_lines(const char *text)
{
	size_t count = 0;

	for (; *text != '\0'; text++) {
		count += *text == '\n' ? 1 : 0;
	}
	return count;
}

static int run_without(void *arg)
{
	const struct refusal *refusal = arg;
	struct pinion_task task = {.run = submit};
	struct pinion_runtime_info facts;
	struct pinion_config config;

	if (!forbid_io_uring(refusal)) {
		return EXPECT_SKIPPED;
	}
	runtimes_config(&config, 2, PINION_IO_RING);
	expect_number(
		"create with rings", -refusal->error, pinion_runtime_create(&config, &runtime));
	expect_true("nothing was written", runtime == NULL);
	expect_true("the message says why", strstr(runtimes_log, "io_uring") != NULL);

	runtime = runtimes_start(2, PINION_IO_AUTO);
	expect_number("messages", 1, (long long)count_lines(runtimes_log));
	expect_true("the message says why", strstr(runtimes_log, "io_uring") != NULL);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	expect_number("uses a ring", 0, facts.uses_ring);
	expect_true("the cause is logged",
		facts.fallback_cause != NULL && strstr(facts.fallback_cause, "io_uring") != NULL);
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("reads", 1, pin_load_acquire_u32(&read_count));
	expect_number("result", 4, request.result);
	expect_number("bytes read", 0, memcmp(bytes, "text", 4));
	pinion_runtime_destroy(runtime);
	pinion_file_close(&file);
	return expect_status();
}

int main(void)
{
	static struct refusal refusals[] = {
		{.call = __NR_io_uring_setup, .error = EPERM},
		{.call = __NR_io_uring_setup, .error = ENOSYS},
		{.call = __NR_io_uring_enter, .error = EPERM},
	};
	bool is_skipped = false;

	runtimes_own_level();
	scratch_enter("runtime_falls_back_without_io_uring");
	scratch_file("file", "text");
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		int code = child_code(child_run(run_without, &refusals[i], NULL, 0));

		is_skipped = code == EXPECT_SKIPPED;
		if (!is_skipped) {
			expect_number("child", 0, code);
		}
	}
	scratch_leave();
	if (is_skipped) {
		printf("skipped: no seccomp filters here\n");
		return EXPECT_SKIPPED;
	}
	return expect_status();
}
