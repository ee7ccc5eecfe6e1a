/* SPDX-License-Identifier: MIT */
/*
 * Wraps the library's calls; tests/tests.am lists their names for the linker.
 */
#include "tests/fault/failing.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	LIVE_MAX = 8192,
	STACKS_MAX = 256,
	FRAMES = 16,
};

/* The calls that came from one place, by the way that led there. */
struct stack {
	void *frames[FRAMES];
	uint32_t seen;	 /* since failing_arm*() */
	uint32_t failed; /* since failing_forget_stacks() */
};

static struct {
	pthread_mutex_t lock;
	enum failing_kind kind;
	uint32_t nth;
	uint32_t seen;
	uint32_t failed;
	int error;
	bool is_lasting;
	void *live[LIVE_MAX];
	size_t live_count;
	size_t mapped_bytes;
	size_t block_calls;
	uint32_t stack_limit; /* 0: calls are counted, not stacks */
	uint32_t stack_count;
	struct stack stacks[STACKS_MAX];
} failing = {.lock = PTHREAD_MUTEX_INITIALIZER};

void failing_arm(enum failing_kind kind, uint32_t nth, int error, bool is_lasting)
{
	failing.kind = kind;
	failing.nth = nth;
	failing.seen = 0;
	failing.failed = 0;
	failing.error = error;
	failing.is_lasting = is_lasting;
	failing.stack_limit = 0;
}

void failing_forget_stacks(void)
{
	void *frames[FRAMES];

	/* Its first call allocates. */
	(void)backtrace(frames, FRAMES);
	memset(failing.stacks, 0, sizeof(failing.stacks));
	failing.stack_count = 0;
}

void failing_arm_stacks(enum failing_kind kind, int error, uint32_t limit)
{
	failing_arm(kind, 0, error, false);
	failing.stack_limit = limit;
	for (uint32_t i = 0; i < failing.stack_count; i++) {
		failing.stacks[i].seen = 0;
	}
}

uint32_t failing_disarm(void)
{
	failing.kind = FAILING_NOTHING;
	return failing.failed;
}

size_t failing_live_count(void)
{
	return failing.live_count;
}

size_t failing_mapped_bytes(void)
{
	return failing.mapped_bytes;
}

size_t failing_block_calls(void)
{
	size_t calls;

	pthread_mutex_lock(&failing.lock);
	calls = failing.block_calls;
	pthread_mutex_unlock(&failing.lock);
	return calls;
}

/* The record of the calls that came as this one did. */
static struct stack *find_stack(void)
{
	struct stack *last = &failing.stacks[failing.stack_count];
	uint32_t i = 0;

	if (failing.stack_count == STACKS_MAX) {
		abort();
	}
	*last = (struct stack){.seen = 0};
	(void)backtrace(last->frames, FRAMES);
	while (memcmp(failing.stacks[i].frames, last->frames, sizeof(last->frames)) != 0) {
		i++;
	}
	failing.stack_count += i == failing.stack_count ? 1 : 0;
	return &failing.stacks[i];
}

/* One call in a life: the first, second … of its stack, one more each time. */
static bool is_next_of_its_stack(void)
{
	struct stack *stack = find_stack();

	stack->seen++;
	if (failing.failed > 0 || stack->seen <= stack->failed ||
		stack->failed == failing.stack_limit) {
		return false;
	}
	stack->failed++;
	return true;
}

/* True when this call is to fail; errno is set. */
static bool fails(enum failing_kind kind)
{
	bool is_hit;

	pthread_mutex_lock(&failing.lock);
	if (kind != failing.kind) {
		pthread_mutex_unlock(&failing.lock);
		return false;
	}
	failing.seen++;
	if (failing.stack_limit > 0) {
		is_hit = is_next_of_its_stack();
	} else {
		is_hit = failing.is_lasting ? failing.seen >= failing.nth
					    : failing.seen == failing.nth;
	}
	failing.failed += is_hit ? 1 : 0;
	pthread_mutex_unlock(&failing.lock);
	if (is_hit) {
		errno = failing.error;
	}
	return is_hit;
}

/* ---- memory ---- */

static void forget(const void *memory)
{
	pthread_mutex_lock(&failing.lock);
	for (size_t i = 0; i < failing.live_count; i++) {
		if (failing.live[i] == memory) {
			failing.live[i] = failing.live[--failing.live_count];
			break;
		}
	}
	pthread_mutex_unlock(&failing.lock);
}

static void *note(void *memory)
{
	if (memory != NULL) {
		pthread_mutex_lock(&failing.lock);
		if (failing.live_count == LIVE_MAX) {
			abort();
		}
		failing.live[failing.live_count++] = memory;
		pthread_mutex_unlock(&failing.lock);
	}
	return memory;
}

static bool block_fails(void)
{
	pthread_mutex_lock(&failing.lock);
	failing.block_calls++;
	pthread_mutex_unlock(&failing.lock);
	return fails(FAILING_MEMORY);
}

/* What the linker asks for: __wrap_NAME is ours, __real_NAME the next one. */
#define WRAP(result, name, ...) \
	result __real_##name(__VA_ARGS__); \
	result __wrap_##name(__VA_ARGS__); \
	result __wrap_##name(__VA_ARGS__)

WRAP(void *, malloc, size_t bytes)
{
	return block_fails() ? NULL : note(__real_malloc(bytes));
}

WRAP(void *, calloc, size_t count, size_t bytes)
{
	return block_fails() ? NULL : note(__real_calloc(count, bytes));
}

WRAP(void *, aligned_alloc, size_t align, size_t bytes)
{
	return block_fails() ? NULL : note(__real_aligned_alloc(align, bytes));
}

WRAP(char *, strdup, const char *text)
{
	return fails(FAILING_MEMORY) ? NULL : note(__real_strdup(text));
}

WRAP(void *, realloc, void *memory, size_t bytes)
{
	void *grown;

	if (block_fails()) {
		return NULL;
	}
	forget(memory);
	grown = __real_realloc(memory, bytes);
	return note(grown == NULL ? memory : grown) == grown ? grown : NULL;
}

int __wrap_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **out, const char *format, ...)
{
	va_list list;
	int length = -1;

	if (!fails(FAILING_MEMORY)) {
		va_start(list, format);
		length = vasprintf(out, format, list);
		va_end(list);
		if (length >= 0) {
			note(*out);
		}
	}
	return length;
}

WRAP(void, free, void *memory)
{
	int saved_errno = errno;

	forget(memory);
	__real_free(memory);
	errno = saved_errno;
}

WRAP(void *, mmap, void *start, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *memory = fails(FAILING_MAP)
		? MAP_FAILED
		: __real_mmap(start, bytes, protection, flags, fd, offset);

	if (memory != MAP_FAILED) {
		pthread_mutex_lock(&failing.lock);
		failing.mapped_bytes += bytes;
		pthread_mutex_unlock(&failing.lock);
	}
	return memory;
}

WRAP(int, munmap, void *start, size_t bytes)
{
	int rc = __real_munmap(start, bytes);

	if (rc == 0) {
		pthread_mutex_lock(&failing.lock);
		failing.mapped_bytes -= bytes;
		pthread_mutex_unlock(&failing.lock);
	}
	return rc;
}

WRAP(int, madvise, void *start, size_t bytes, int advice)
{
	return fails(FAILING_ADVICE) ? -1 : __real_madvise(start, bytes, advice);
}

WRAP(long, mbind, void *start, unsigned long bytes, int mode, const unsigned long *mask,
	unsigned long maxnode, unsigned flags)
{
	return fails(FAILING_ADVICE) ? -1 : __real_mbind(start, bytes, mode, mask, maxnode, flags);
}

WRAP(int, posix_fadvise, int fd, off_t offset, off_t length, int advice)
{
	return fails(FAILING_ADVICE) ? errno : __real_posix_fadvise(fd, offset, length, advice);
}

/* ---- threads and rings ---- */

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes,
	void *(*entry)(void *), void *arg)
{
	return fails(FAILING_THREAD) ? errno
				     : __real_pthread_create(thread, attributes, entry, arg);
}

WRAP(int, sched_setaffinity, pid_t pid, size_t bytes, const void *set)
{
	return fails(FAILING_BIND) ? -1 : __real_sched_setaffinity(pid, bytes, set);
}

WRAP(int, unshare, int flags)
{
	return fails(FAILING_BIND) ? -1 : __real_unshare(flags);
}

WRAP(int, prctl, int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	return fails(FAILING_BIND) ? -1 : __real_prctl(option, a, b, c, d);
}

WRAP(int, io_uring_setup, unsigned entries, struct io_uring_params *params)
{
	return fails(FAILING_RING_SETUP) ? -errno : __real_io_uring_setup(entries, params);
}

WRAP(int, io_uring_enter2, unsigned fd, unsigned submitted, unsigned completed, unsigned flags,
	sigset_t *signals, size_t bytes)
{
	return fails(FAILING_RING_ENTER)
		? -errno
		: __real_io_uring_enter2(fd, submitted, completed, flags, signals, bytes);
}

WRAP(int, io_uring_register_buffers, struct io_uring *ring, const struct iovec *vectors,
	unsigned count)
{
	return fails(FAILING_RING_BUFFERS) ? -errno
					   : __real_io_uring_register_buffers(ring, vectors, count);
}

WRAP(int, io_uring_register_ring_fd, struct io_uring *ring)
{
	return fails(FAILING_RING_DESCRIPTOR) ? -errno : __real_io_uring_register_ring_fd(ring);
}

WRAP(int, io_uring_register_iowq_max_workers, struct io_uring *ring, unsigned *values)
{
	return fails(FAILING_RING_DESCRIPTOR)
		? -errno
		: __real_io_uring_register_iowq_max_workers(ring, values);
}

static enum failing_kind kind_of_call(long number, long b)
{
	switch (number) {
	case __NR_io_uring_setup:
		return FAILING_RING_PROBE;
	case __NR_io_uring_register:
		return FAILING_RING_REGISTER;
	case __NR_io_uring_enter:
		return FAILING_RING_ENTER;
	case SYS_membarrier:
		return FAILING_BIND;
	case SYS_openat2:
		return FAILING_DESCRIPTOR;
	case SYS_getdents64:
		return FAILING_LISTING;
	case 451: /* cachestat */
		return FAILING_STATUS;
	case SYS_futex:
		return (b & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? FAILING_FUTEX_WAIT
								 : FAILING_NOTHING;
	case SYS_preadv2:
		return FAILING_READ;
	default:
		return FAILING_NOTHING;
	}
}

/* Declared in <unistd.h> with "...", which comes to the same here. */
WRAP(long, syscall, long number, long a, long b, long c, long d, long e, long f)
{
	enum failing_kind kind = kind_of_call(number, b);

	if (kind != FAILING_NOTHING && fails(kind)) {
		return -1;
	}
	return __real_syscall(number, a, b, c, d, e, f);
}

/* ---- files ---- */

WRAP(int, open, const char *path, int flags, mode_t mode)
{
	return fails(FAILING_DESCRIPTOR) ? -1 : __real_open(path, flags, mode);
}

WRAP(int, openat, int folder, const char *path, int flags, mode_t mode)
{
	return fails(FAILING_DESCRIPTOR) ? -1 : __real_openat(folder, path, flags, mode);
}

WRAP(DIR *, opendir, const char *path)
{
	return fails(FAILING_DESCRIPTOR) ? NULL : __real_opendir(path);
}

WRAP(FILE *, fopen, const char *path, const char *mode)
{
	return fails(FAILING_DESCRIPTOR) ? NULL : __real_fopen(path, mode);
}

WRAP(int, eventfd, unsigned count, int flags)
{
	return fails(FAILING_DESCRIPTOR) ? -1 : __real_eventfd(count, flags);
}

WRAP(int, stat, const char *path, struct stat *status)
{
	return fails(FAILING_STATUS) ? -1 : __real_stat(path, status);
}

WRAP(int, fstat, int fd, struct stat *status)
{
	return fails(FAILING_STATUS) ? -1 : __real_fstat(fd, status);
}

WRAP(int, fstatat, int folder, const char *path, struct stat *status, int flags)
{
	return fails(FAILING_STATUS) ? -1 : __real_fstatat(folder, path, status, flags);
}

WRAP(int, statx, int folder, const char *path, int flags, unsigned mask, struct statx *status)
{
	return fails(FAILING_STATUS) ? -1 : __real_statx(folder, path, flags, mask, status);
}

WRAP(int, fcntl, int fd, int command, long argument)
{
	return fails(FAILING_FLAGS) ? -1 : __real_fcntl(fd, command, argument);
}

WRAP(off_t, lseek, int fd, off_t offset, int whence)
{
	return fails(FAILING_FLAGS) ? -1 : __real_lseek(fd, offset, whence);
}

WRAP(ssize_t, pread, int fd, void *bytes, size_t length, off_t offset)
{
	return fails(FAILING_READ) ? -1 : __real_pread(fd, bytes, length, offset);
}

WRAP(ssize_t, preadv2, int fd, const struct iovec *vectors, int count, off_t offset, int flags)
{
	return fails(FAILING_READ) ? -1 : __real_preadv2(fd, vectors, count, offset, flags);
}

WRAP(struct dirent *, readdir, DIR *folder)
{
	return fails(FAILING_LISTING) ? NULL : __real_readdir(folder);
}
