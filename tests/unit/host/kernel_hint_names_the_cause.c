/* SPDX-License-Identifier: MIT */
/*
 * Goal: each way in which io_uring can be refused leads to one line that names
 * the cause and a command; the probe finds the truth about this kernel.
 * Method: a made-up /proc for each state of the sysctl; one ring asked for here
 * and compared with what the probe says.
 */
#include "runtime/host/kernel.h"
#include "tests/support/expect.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many as struct pinion_machine has room for. */
#define HINT_BYTES 192

static char root[128];

static void write_sysctl(const char *value)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/sys/kernel/io_uring_disabled", root);
	file = fopen(path, "w");
	expect_ready(path, file != NULL && fputs(value, file) >= 0 && fclose(file) == 0);
}

static void make_root(void)
{
	static const char *const folders[] = {"", "/proc", "/proc/sys", "/proc/sys/kernel"};
	const char *temporary = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%.80s/kernel_hint.%d", temporary == NULL ? "/tmp" : temporary,
		(int)getpid());
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s%s", root, folders[i]);
		expect_ready(path, mkdir(path, 0755) == 0);
	}
}

static void remove_root(void)
{
	static const char *const names[] = {
		"/proc/sys/kernel/io_uring_disabled", "/proc/sys/kernel", "/proc/sys", "/proc", ""};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s%s", root, names[i]);
		(void)remove(path);
	}
}

static void check_hint(const char *what, int error, const char *cause, const char *command)
{
	char hint[HINT_BYTES];
	char negative[HINT_BYTES];

	pin_kernel_ring_hint_at(root, error, hint, sizeof(hint));
	pin_kernel_ring_hint_at(root, -error, negative, sizeof(negative));
	expect_text(what, hint, negative);
	expect_true("hint fits whole", strlen(hint) < HINT_BYTES - 1);
	expect_true("hint is one line", strchr(hint, '\n') == NULL);
	if (strstr(hint, cause) == NULL || strstr(hint, command) == NULL) {
		printf("%s: expected \"%s\" and \"%s\", got \"%s\"\n", what, cause, command, hint);
		expect_failure_count++;
	}
}

static void check_probe(void)
{
	struct io_uring_params params = {.flags = 0};
	struct pin_kernel kernel;
	long fd = syscall(__NR_io_uring_setup, 2, &params);
	int error = fd < 0 ? -errno : 0;

	if (fd >= 0) {
		close((int)fd);
	}
	errno = 4711;
	pin_kernel_probe(&kernel);
	expect_number("errno after the probe", 4711, errno);
	expect_number("ring_error", error, kernel.ring_error);
	expect_number("ring_features", params.features, kernel.ring_features);
	if (kernel.ring_error == 0) {
		expect_true("a ring knows openat", pin_kernel_has(&kernel, PINION_IO_OPENAT));
		expect_number("no_iowait", (params.features & IORING_FEAT_NO_IOWAIT) != 0,
			pin_kernel_has(&kernel, PINION_IO_NO_IOWAIT));
		expect_true("defer_taskrun implies single_issuer",
			pin_kernel_has(&kernel, PINION_IO_SINGLE_ISSUER) ||
				!pin_kernel_has(&kernel, PINION_IO_DEFER_TASKRUN));
	}
}

/* Descriptors the probe left open, were there any, would show in the next. */
static void check_leak(void)
{
	struct pin_kernel kernel;
	int before = dup(0);
	int after;

	close(before);
	for (int i = 0; i < 20; i++) {
		pin_kernel_probe(&kernel);
	}
	after = dup(0);
	close(after);
	expect_number("next free descriptor", before, after);
}

int main(void)
{
	make_root();
	check_hint("no error", 0, "", "");
	check_hint("ENOSYS", ENOSYS, "no io_uring", "apt-get install linux-image");
	check_hint("EPERM without the sysctl", EPERM, "seccomp", "--security-opt seccomp=");
	write_sysctl("0\n");
	check_hint("EPERM, sysctl 0", EPERM, "seccomp", "--security-opt seccomp=");
	write_sysctl("1\n");
	check_hint("EPERM, sysctl 1", EPERM, "group", "sysctl -w kernel.io_uring_disabled=0");
	write_sysctl("2\n");
	check_hint("EPERM, sysctl 2", EPERM, "sysctl", "sysctl -w kernel.io_uring_disabled=0");
	check_hint("EACCES", EACCES, "security module", "ausearch");
	check_hint("ENOMEM", ENOMEM, "locked-memory", "ulimit -l");
	check_hint("ENOMEM", ENOMEM, "locked-memory", "LimitMEMLOCK=");
	check_hint("EMFILE", EMFILE, "descriptor", "ulimit -n 65536, or LimitNOFILE=65536");
	check_hint("ENFILE", ENFILE, "descriptor", "fs.file-max");
	check_hint("an errno of no known cause", EXDEV, "errno 18", "dmesg");
	remove_root();
	check_probe();
	check_leak();
	return expect_status();
}
