/* SPDX-License-Identifier: MIT */
/*
 * Goal: with `class_nice` the threads of workers that serve lower lanes are
 * nicer by that for each lane, or run under SCHED_IDLE, also those of workers
 * that come later; the topmost class's are as their creator's, and without it
 * all are. Where the kernel refuses, the runtime works all the same. W49, WP-3.
 * Method: the hook `after_start` asks the kernel on each worker's thread; a
 * filter in a child refuses.
 */
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "tests/support/child.h"
#include "tests/support/runtimes.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pinion/call.h>
#include <pinion/thread_pool.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LIMIT_SECONDS = 60,
	WORKERS_MAX = 8,
	NICE_MAX = 19,
	IDLE = 20,
};

static struct pin_atomic_u32 niceness[WORKERS_MAX]; /* beyond the creator's */
static struct pin_atomic_u32 policies[WORKERS_MAX];
static int own_nice;

static int nice_now(void)
{
	return getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
}

static int note_start(void *arg, uint32_t worker_index, void **out_context)
{
	(void)arg;
	(void)out_context;
	pin_store_release_u32(&niceness[worker_index], (uint32_t)(nice_now() - own_nice));
	pin_store_release_u32(&policies[worker_index], (uint32_t)sched_getscheduler(0));
	return 0;
}

static uint32_t above_own(uint32_t count)
{
	uint32_t room = (uint32_t)(NICE_MAX - own_nice);

	return count < room ? count : room;
}

static void expect_worker(const char *what, uint32_t index, uint32_t steps, uint32_t class_nice)
{
	uint32_t policy = (uint32_t)sched_getscheduler(0);
	bool is_idle = class_nice == IDLE && steps > 0;

	expect_number(what, is_idle ? SCHED_IDLE : policy, pin_load_acquire_u32(&policies[index]));
	expect_number(what, is_idle ? 0 : above_own(steps * class_nice),
		pin_load_acquire_u32(&niceness[index]));
}

/*
 * `steps` has for each worker how many lanes below the topmost class's it
 * serves.
 */
static void check_plan(
	const char *lanes, const uint32_t *steps, uint32_t count, uint32_t class_nice)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;

	runtimes_config(&config, count, PINION_IO_FALLBACK);
	config.bind_workers = 0;
	config.lanes = lanes;
	runtimes_tuning.class_nice = class_nice;
	config.after_start = note_start;
	expect_ready(runtimes_log, pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < count; i++) {
		expect_worker(lanes, i, steps[i], class_nice);
	}
	pinion_runtime_destroy(runtime);
}

static void check_plans(uint32_t class_nice)
{
	check_plan("h:1,hn:2,hnl:1", (const uint32_t[]){0, 1, 1, 2}, 4, class_nice);
	check_plan("h:1,n:1,l:1", (const uint32_t[]){0, 1, 2}, 3, class_nice);
	check_plan("nl:1,h:1", (const uint32_t[]){2, 0}, 2, class_nice);
	check_plan("hn:1,lnh:1", (const uint32_t[]){0, 1}, 2, class_nice);
	check_plan("hnl:2", (const uint32_t[]){0, 0}, 2, class_nice);
}

/* A worker that was not there at first. */
static void check_thread_pool(void)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 1};
	struct pinion_thread_pool_sizes more = {1, 1, 1};
	struct pinion_runtime *thread_pool;
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	runtimes_tuning.thread_pool_max = 1;
	runtimes_tuning.class_nice = 2;
	config.after_start = note_start;
	expect_ready("create", pinion_thread_pool_create(&config, &sizes, &thread_pool) == 0);
	expect_number("resize", 0, pinion_thread_pool_resize(thread_pool, &more));
	for (uint32_t i = 0; i < 3; i++) {
		expect_worker("of a thread pool", i, i, 2);
	}
	pinion_runtime_destroy(thread_pool);
}

/* ---- a kernel that refuses ---- */

static int refuse(void *arg)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setpriority, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setscheduler, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = (unsigned short)PIN_ARRAY_COUNT(filter), .filter = filter};
	struct pinion_runtime *runtime;
	struct pinion_config config;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		return 77;
	}
	runtimes_config(&config, 2, PINION_IO_FALLBACK);
	config.bind_workers = 0;
	config.lanes = "h:1,hnl:1";
	runtimes_tuning.class_nice = *(const uint32_t *)arg;
	config.after_start = note_start;
	expect_ready(runtimes_log, pinion_runtime_create(&config, &runtime) == 0);
	expect_worker("refused", 1, 0, runtimes_tuning.class_nice == IDLE ? IDLE : 0);
	expect_true("it is said",
		strstr(runtimes_log, "worker 1 does not make way for those of upper lanes") !=
			NULL);
	expect_number("it works", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
	return expect_status();
}

static void check_refusal(uint32_t class_nice)
{
	int code = child_code(child_run(refuse, &class_nice, NULL, 0));

	if (code == 77) {
		puts("no filter can be had");
		return;
	}
	expect_number("where it is refused", 0, code);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	own_nice = nice_now();
	check_refusal(5);
	check_refusal(IDLE);
	check_plans(0);
	check_plans(3);
	check_plans(15);
	check_plans(IDLE);
	check_thread_pool();
	return expect_status();
}
