/* SPDX-License-Identifier: MIT */
/*
 * Reads the state of a thread from /proc/self/task/N: `syscall` for the call
 * and its arguments, `stat` where that may not be read, as in a process that is
 * not dumpable, and `schedstat` for the time on CPUs.
 *
 * The watchdog calls it for a worker that shows no sign of life.
 *
 * Source: proc(5); of the kernel's documents scheduler/sched-stats.
 */
#include "runtime/host/thread_state.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	ARGUMENTS = 6,
	NO_ARGUMENT = -1,
	LINE_BYTES = 256,
};

/* A call, and which of its arguments are a descriptor and a place there. */
struct call {
	long number;
	const char *name;
	int fd_argument;
	int offset_argument; /* or NO_ARGUMENT: at the file's own position */
};

#define OF_FILE(name, fd, offset) \
	{ \
		SYS_##name, #name, fd, offset \
	}
#define OTHER(name) \
	{ \
		SYS_##name, #name, NO_ARGUMENT, NO_ARGUMENT \
	}

static const struct call calls[] = {
	OF_FILE(read, 0, NO_ARGUMENT),
	OF_FILE(write, 0, NO_ARGUMENT),
	OF_FILE(readv, 0, NO_ARGUMENT),
	OF_FILE(writev, 0, NO_ARGUMENT),
	OF_FILE(pread64, 0, 3),
	OF_FILE(pwrite64, 0, 3),
	OF_FILE(preadv, 0, 3),
	OF_FILE(pwritev, 0, 3),
	OF_FILE(preadv2, 0, 3),
	OF_FILE(pwritev2, 0, 3),
	OF_FILE(fsync, 0, NO_ARGUMENT),
	OF_FILE(fdatasync, 0, NO_ARGUMENT),
	OF_FILE(fallocate, 0, 2),
	OF_FILE(ftruncate, 0, NO_ARGUMENT),
	OF_FILE(getdents64, 0, NO_ARGUMENT),
	OF_FILE(fstat, 0, NO_ARGUMENT),
	OF_FILE(ioctl, 0, NO_ARGUMENT),
	OF_FILE(flock, 0, NO_ARGUMENT),
	OF_FILE(fcntl, 0, NO_ARGUMENT),
	OF_FILE(recvfrom, 0, NO_ARGUMENT),
	OF_FILE(recvmsg, 0, NO_ARGUMENT),
	OF_FILE(sendto, 0, NO_ARGUMENT),
	OF_FILE(sendmsg, 0, NO_ARGUMENT),
	OF_FILE(accept4, 0, NO_ARGUMENT),
	OF_FILE(connect, 0, NO_ARGUMENT),
	OTHER(io_uring_enter), /* its descriptor may be a registered one */
	OTHER(openat),
	OTHER(openat2),
	OTHER(statx),
	OTHER(newfstatat),
	OTHER(unlinkat),
	OTHER(futex),
	OTHER(nanosleep),
	OTHER(clock_nanosleep),
	OTHER(ppoll),
	OTHER(epoll_pwait),
	OTHER(wait4),
	OTHER(waitid),
	OTHER(mmap),
	OTHER(munmap),
	OTHER(madvise),
#ifdef SYS_poll
	OTHER(poll),
#endif
#ifdef SYS_epoll_wait
	OTHER(epoll_wait),
#endif
#ifdef SYS_select
	OTHER(select),
#endif
};

/* One line; false: there is none. */
static bool read_line(const char *path, char line[LINE_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, line, LINE_BYTES - 1);

	if (fd >= 0) {
		close(fd);
	}
	line[length > 0 ? length : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return length > 0;
}

uint32_t pin_thread_number(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

void pin_descriptor_describe(int fd, char *out, size_t bytes)
{
	char path[sizeof("/proc/self/fd/") + 12];
	ssize_t length;

	PIN_DCHECK(bytes > 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, out, bytes - 1);
	if (length > 0) {
		out[length] = '\0';
	} else {
		snprintf(out, bytes, "descriptor %d", fd);
	}
}

/* Pipes and terminals have no offsets, whatever a call says. */
static bool has_offsets(int fd)
{
	struct statx status;

	/* Of what the kernel has at hand: the file system may not answer. */
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) == 0 &&
		(S_ISREG(status.stx_mode) || S_ISBLK(status.stx_mode));
}

/* The position of a descriptor, for calls that use it. */
static bool read_position(int fd, uint64_t *out_offset)
{
	char path[sizeof("/proc/self/fdinfo/") + 12];
	char line[LINE_BYTES];
	unsigned long long offset;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (!read_line(path, line) || sscanf(line, "pos: %llu", &offset) != 1) {
		return false;
	}
	*out_offset = offset;
	return true;
}

static const struct call *find_call(long number)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(calls); i++) {
		if (calls[i].number == number) {
			return &calls[i];
		}
	}
	return NULL;
}

static void describe_call(const struct call *call, const uint64_t arguments[ARGUMENTS],
	char out[PIN_THREAD_WHERE_BYTES])
{
	char file[PIN_THREAD_WHERE_BYTES - 64];
	uint64_t offset = 0;
	int fd;

	PIN_DCHECK(call->fd_argument < ARGUMENTS && call->offset_argument < ARGUMENTS);
	if (call->fd_argument == NO_ARGUMENT) {
		snprintf(out, PIN_THREAD_WHERE_BYTES, "%s", call->name);
		return;
	}
	fd = (int)arguments[call->fd_argument];
	pin_descriptor_describe(fd, file, sizeof(file));
	if (call->offset_argument != NO_ARGUMENT) {
		offset = arguments[call->offset_argument];
	}
	if (!has_offsets(fd) ||
		(call->offset_argument == NO_ARGUMENT && !read_position(fd, &offset))) {
		snprintf(out, PIN_THREAD_WHERE_BYTES, "%s of %s", call->name, file);
		return;
	}
	snprintf(out, PIN_THREAD_WHERE_BYTES, "%s of %s at offset %llu", call->name, file,
		(unsigned long long)offset);
}

/* "running", "-1 SP PC", or "NUMBER ARGUMENT… SP PC". */
static void parse_call(const char *line, struct pin_thread_state *state)
{
	uint64_t arguments[ARGUMENTS];
	const struct call *call;
	char *end;
	long number = strtol(line, &end, 10);

	if (end == line) {
		state->doing = strcmp(line, "running") == 0 ? PIN_THREAD_RUNS : PIN_THREAD_UNKNOWN;
		return;
	}
	state->doing = PIN_THREAD_SLEEPS;
	if (number < 0) {
		snprintf(state->where, sizeof(state->where), "a page fault");
		return;
	}
	for (int i = 0; i < ARGUMENTS; i++) {
		arguments[i] = strtoull(end, &end, 16);
	}
	call = find_call(number);
	if (call != NULL) {
		describe_call(call, arguments, state->where);
	} else {
		snprintf(state->where, sizeof(state->where), "system call %ld", number);
	}
}

/* The letter after the name, which may have blanks and brackets itself. */
static enum pin_thread_doing parse_stat(const char *line)
{
	const char *end = strrchr(line, ')');

	if (end == NULL || end[1] != ' ') {
		return PIN_THREAD_UNKNOWN;
	}
	switch (end[2]) {
	case 'R':
		return PIN_THREAD_RUNS;
	case 'S':
	case 'D':
		return PIN_THREAD_SLEEPS;
	default:
		return PIN_THREAD_UNKNOWN;
	}
}

void pin_thread_look(uint32_t thread_number, struct pin_thread_state *out_state)
{
	char path[sizeof("/proc/self/task//schedstat") + 12];
	char line[LINE_BYTES];
	unsigned long long cpu_ns;
	unsigned long long delay_ns;

	*out_state = (struct pin_thread_state){.cpu_ns = UINT64_MAX};
	snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", thread_number);
	if (read_line(path, line)) {
		parse_call(line, out_state);
	}
	if (out_state->doing == PIN_THREAD_UNKNOWN) {
		snprintf(path, sizeof(path), "/proc/self/task/%u/stat", thread_number);
		if (read_line(path, line)) {
			out_state->doing = parse_stat(line);
		}
	}
	snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", thread_number);
	if (read_line(path, line) && sscanf(line, "%llu %llu", &cpu_ns, &delay_ns) == 2) {
		out_state->cpu_ns = cpu_ns;
		out_state->delay_ns = delay_ns;
	}
}

/* ---- another process ---- */

/* A zombie, process or thread: it has neither memory nor descriptors. */
static bool is_over(int number)
{
	char path[64];
	char line[LINE_BYTES];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", number);
	end = read_line(path, line) ? strrchr(line, ')') : NULL;
	return end != NULL && end[1] == ' ' && end[2] == 'Z';
}

/* A thread that is ending has let go of its own, and is no zombie yet. */
static bool has_descriptors(int number)
{
	char path[64];
	const struct dirent *entry;
	bool has_any = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", number);
	folder = opendir(path);
	while (folder != NULL && !has_any && (entry = readdir(folder)) != NULL) {
		has_any = entry->d_name[0] != '.';
	}
	if (folder != NULL) {
		closedir(folder);
	}
	return has_any;
}

int pin_process_thread(int pid)
{
	char path[64];
	const struct dirent *entry;
	DIR *threads;
	int found = pid;
	bool is_sure = false;

	if (!is_over(pid)) {
		return pid;
	}
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (threads != NULL && !is_sure && (entry = readdir(threads)) != NULL) {
		int number = atoi(entry->d_name);

		if (number > 0 && !is_over(number)) {
			is_sure = has_descriptors(number);
			found = is_sure || found == pid ? number : found;
		}
	}
	if (threads != NULL) {
		closedir(threads);
	}
	return found;
}
