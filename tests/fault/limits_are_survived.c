/* SPDX-License-Identifier: MIT */
/*
 * Goal: under each limit that containers, units and administrators set, a
 * runtime of default size comes up, says in one line what it lacks where that
 * costs anything, and a scan hands over every byte of every file: any call of
 * io_uring refused with EPERM or ENOSYS, as seccomp profiles and the sysctl
 * kernel.io_uring_disabled do, locked memory of 0, 64 KiB and 8 MiB, 16
 * descriptors, one CPU, all of them at once. W16, C20. Hazard that others met:
 * ENOMEM of a ring or a registration ends the program.
 * Method: a forked child for each, as an ordinary user where memory is locked.
 */
#include "runtime/host/kernel.h"
#include "tests/support/child.h"
#include "tests/support/scans.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum {
	NOBODY = 65534,
	FILES = 40,
	LIMIT_SECONDS = 100, /* of all; a child of its own has as many */
};

struct limit {
	const char *name;
	uint32_t call;	  /* refused; 0: none */
	int error;	  /* with this */
	uint64_t memlock; /* KiB; UINT64_MAX: as it is */
	uint32_t nofile;  /* 0: as it is */
	bool is_one_cpu;
	const char *message;   /* some line has this; NULL: any or none */
	uint32_t worker_count; /* 0: as usual */
	bool is_up_front;      /* all memory is taken at the start */
};

#define AS_IT_IS UINT64_MAX

static const struct limit limits[] = {
	{"setup EPERM", __NR_io_uring_setup, EPERM, AS_IT_IS, 0, false, "without io_uring", 0,
		false},
	{"setup ENOSYS", __NR_io_uring_setup, ENOSYS, AS_IT_IS, 0, false, "without io_uring", 0,
		false},
	{"enter EPERM", __NR_io_uring_enter, EPERM, AS_IT_IS, 0, false, "without io_uring", 0,
		false},
	{"enter ENOSYS", __NR_io_uring_enter, ENOSYS, AS_IT_IS, 0, false, "without io_uring", 0,
		false},
	{"register EPERM", __NR_io_uring_register, EPERM, AS_IT_IS, 0, false, NULL, 0, false},
	{"register ENOSYS", __NR_io_uring_register, ENOSYS, AS_IT_IS, 0, false, NULL, 0, false},
	{"memlock 0", 0, 0, 0, 0, false, "locked-memory limit", 0, false},
	{"memlock 64 KiB", 0, 0, 64, 0, false, "locked-memory limit", 0, false},
	{"memlock 64 KiB, all at once", 0, 0, 64, 0, false, "locked-memory limit", 0, true},
	{"memlock 8 MiB", 0, 0, 8192, 0, false, NULL, 0, false},
	{"memlock 8 MiB, all at once", 0, 0, 8192, 0, false, "locked-memory limit", 0, true},
	{"16 descriptors", 0, 0, AS_IT_IS, 16, false, NULL, 0, false},
	{"16 descriptors, 16 workers", 0, 0, AS_IT_IS, 16, false,
		"of 16 workers run without io_uring: ", 16, false},
	{"one CPU", 0, 0, AS_IT_IS, 0, true, NULL, 0, false},
	{"one CPU, 16 descriptors, memlock 64 KiB", 0, 0, 64, 16, true, NULL, 0, false},
	{"and no rings", __NR_io_uring_setup, EPERM, 64, 16, true, "without io_uring", 0, false},
};

static bool refuse(const struct limit *limit)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, limit->call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)limit->error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void set_limit(__rlimit_resource_t resource, uint64_t value)
{
	struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

	expect_ready("setrlimit", setrlimit(resource, &limit) == 0);
}

static void bind_to_one(void)
{
	cpu_set_t all;
	cpu_set_t one;
	size_t cpu = 0;

	expect_ready("affinity", sched_getaffinity(0, sizeof(all), &all) == 0);
	while (!CPU_ISSET(cpu, &all)) {
		cpu++;
	}
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	expect_ready("affinity", sched_setaffinity(0, sizeof(one), &one) == 0);
}

/* False: this user may not set that limit. */
static bool apply(const struct limit *limit)
{
	if (limit->memlock != AS_IT_IS) {
		struct rlimit now;

		/* Where less is allowed, only root may allow more. */
		expect_ready("getrlimit", getrlimit(RLIMIT_MEMLOCK, &now) == 0);
		if (getuid() != 0 && now.rlim_max < limit->memlock << 10) {
			return false;
		}
		set_limit(RLIMIT_MEMLOCK, limit->memlock << 10);
		/* Root may lock what it likes. */
		expect_ready("another user",
			getuid() != 0 || (setgid(NOBODY) == 0 && setuid(NOBODY) == 0));
	}
	if (limit->nofile != 0) {
		set_limit(RLIMIT_NOFILE, limit->nofile);
	}
	if (limit->is_one_cpu) {
		bind_to_one();
	}
	return true;
}

static void scan_all(struct pinion_runtime *runtime, uint32_t direct)
{
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	scans_config(&config);
	config.direct = direct;
	scan = scans_create(runtime, &config);
	for (uint32_t i = 0; i < FILES; i++) {
		scans_add(scan, i);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	for (uint32_t i = 0; i < FILES; i++) {
		scans_expect_end(i, PINION_SCAN_DONE, 0);
	}
	pinion_scan_destroy(scan);
}

static uint32_t count_text(const char *log, const char *text)
{
	uint32_t count = 0;

	for (log = strstr(log, text); log != NULL; log = strstr(log + 1, text)) {
		count++;
	}
	return count;
}

static int live_under(void *arg)
{
	const struct limit *limit = arg;
	struct pinion_runtime *runtime = NULL;
	struct pinion_runtime_info facts;
	struct pinion_config config;
	struct pinion_tuning tuning;
	const char *message = limit->message;
	struct pin_kernel kernel;
	size_t descriptors;

	runtimes_watchdog(LIMIT_SECONDS);
	pin_kernel_probe(&kernel);
	if (message != NULL && kernel.ring_error != 0) {
		message = "without io_uring"; /* whatever the limit is */
	}
	scans_setting = limit->name;
	if (!apply(limit) || (limit->call != 0 && !refuse(limit))) {
		return EXPECT_SKIPPED;
	}
	descriptors = runtimes_count_entries("/proc/self/fd");
	runtimes_log[0] = '\0';
	pinion_config_init(&config);
	config.log = runtimes_note;
	config.worker_count = limit->worker_count;
	pinion_tuning_init(&tuning);
	tuning.buffer_rest_ms = limit->is_up_front ? 0 : 1000;
	config.tuning = &tuning;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	if (runtime == NULL) {
		return 1;
	}
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (limit->is_one_cpu) {
		expect_number("workers", 1, facts.worker_count);
	}
	if (limit->call == __NR_io_uring_setup || limit->call == __NR_io_uring_enter) {
		expect_number("uses a ring", 0, facts.uses_ring);
	}
	if (limit->call == __NR_io_uring_register) {
		expect_number("registered", 0, facts.arenas_registered);
		expect_true("no messages", strcmp(facts.doorbell, "send_msg_ring") != 0);
	}
	for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER; direct++) {
		scan_all(runtime, direct);
	}
	if (message != NULL && strstr(runtimes_log, message) == NULL) {
		printf("%s: expected a line with \"%s\", got \"%s\"\n", limit->name, message,
			runtimes_log);
		expect_failure_count++;
	}
	expect_true("one line at most", count_text(runtimes_log, "without io_uring") <= 1);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	expect_number("descriptors", (long long)descriptors,
		(long long)runtimes_count_entries("/proc/self/fd"));
	return expect_status();
}

int main(void)
{
	runtimes_own_level();
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("limits_are_survived");
	for (uint32_t i = 0; i < FILES; i++) {
		scans_make(i, i * 7919 + (i % 4 == 0 ? 1 << 20 : 0));
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(limits); i++) {
		struct limit limit = limits[i];
		int code = child_code(child_run(live_under, &limit, NULL, 0));

		if (code == EXPECT_SKIPPED) {
			printf("%s: cannot be set here\n", limit.name);
		} else {
			expect_number(limit.name, 0, code);
		}
	}
	scans_forget();
	scratch_leave();
	return expect_status();
}
