/* SPDX-License-Identifier: MIT */
/*
 * The host table of a real machine: Linux system calls, one line each where
 * that is enough.
 *
 * host.h is the seam; the model checker and the simulator have tables of their
 * own.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/thread.h"
#include "runtime/host/heap.h"
#include "runtime/host/host.h"
#include "runtime/host/kernel.h"
#include "runtime/host/thread_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	/* That rings leave to files; a worker without a ring reads by calls. */
	SPARE_DESCRIPTORS = 5,
	/* Room for as many as any kernel is built for. */
	CPUS_MAX = 8192,
};

static uint64_t linux_now_ns(void)
{
	struct timespec now;
	int rc = clock_gettime(CLOCK_MONOTONIC, &now);

	PIN_DCHECK(rc == 0);
	PIN_DCHECK(now.tv_sec >= 0 && now.tv_nsec >= 0 && now.tv_nsec < 1000000000);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int linux_futex_wait(struct pin_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns)
{
	struct timespec deadline = {
		.tv_sec = (time_t)(deadline_ns / 1000000000u),
		.tv_nsec = (long)(deadline_ns % 1000000000u),
	};
	/*
	 * WAIT_BITSET takes an absolute time; WAIT would take a relative one.
	 */
	long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
		deadline_ns == PIN_NO_DEADLINE ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);

	/* After any other error the caller would ask again and again. */
	PIN_DCHECK(rc == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
	return rc < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

static void linux_futex_wake(struct pin_atomic_u32 *word, uint32_t count)
{
	long rc = syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG,
		count > INT_MAX ? INT_MAX : (int)count, NULL, NULL, 0);

	PIN_DCHECK(rc <= (long)count);
}

static void linux_yield(void)
{
	sched_yield();
}

static int linux_event_create(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

static void linux_event_raise(int fd)
{
	uint64_t one = 1;
	ssize_t written = write(fd, &one, sizeof(one));

	/* It is refused at 2^64 - 1 only. */
	PIN_CHECK(written == sizeof(one));
}

static bool linux_event_clear(int fd)
{
	uint64_t count;
	ssize_t got = read(fd, &count, sizeof(count));

	PIN_DCHECK(got == sizeof(count) || (got < 0 && errno == EAGAIN));
	return got == sizeof(count);
}

static void linux_event_close(int fd)
{
	close(fd);
}

static int linux_descriptors_wait(struct pollfd *descriptors, uint32_t count, uint64_t deadline_ns)
{
	uint64_t now_ns = deadline_ns == 0 ? 0 : linux_now_ns();
	uint64_t wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	struct timespec wait = {
		.tv_sec = (time_t)(wait_ns / 1000000000u),
		.tv_nsec = (long)(wait_ns % 1000000000u),
	};
	int rc = ppoll(descriptors, count, deadline_ns == PIN_NO_DEADLINE ? NULL : &wait, NULL);

	return rc < 0 ? -errno : rc;
}

static bool register_fence(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/*
 * When the program is loaded: as long as a process has one thread the kernel
 * says yes at once, with more threads after a grace period of some 10 ms.
 */
__attribute__((constructor)) static void register_fence_early(void)
{
	if (__libc_single_threaded) {
		(void)register_fence();
	}
}

static bool linux_fence_all(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
		return true;
	}
	/* A process must say once that it will ask for this. */
	return errno == EPERM && register_fence() &&
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/*
 * Signals to the process reach its other threads. Those that the kernel raises
 * for a fault of the thread itself stay open: blocked, they end the process
 * past the handler that the embedder may have for them.
 */
static void block_signals(sigset_t *out_before)
{
	static const int own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t blocked;

	sigfillset(&blocked);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(own_faults); i++) {
		sigdelset(&blocked, own_faults[i]);
	}
	int rc = pthread_sigmask(SIG_SETMASK, &blocked, out_before);

	PIN_CHECK(rc == 0); /* it fails for a wrong `how` only */
}

/*
 * The signal mask is set before the start, so that no signal can reach the
 * thread before it could block it.
 */
static int linux_thread_start(
	pthread_t *out_thread, size_t stack_bytes, void *(*entry)(void *), void *arg)
{
	pthread_attr_t attributes;
	sigset_t before;
	int rc = pthread_attr_init(&attributes);

	if (rc == 0 && stack_bytes > 0) {
		rc = pthread_attr_setstacksize(&attributes, stack_bytes);
	}
	if (rc != 0) {
		return -rc;
	}

	/* A thread inherits the mask of its creator. */
	block_signals(&before);
	rc = pthread_create(out_thread, &attributes, entry, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	PIN_CHECK(rc >= 0);
	return -rc;
}

static void linux_thread_join(pthread_t thread)
{
	int rc = pthread_join(thread, NULL);

	PIN_CHECK(rc == 0); /* once, and by another thread */
}

struct call {
	void (*fn)(void *arg);
	void *arg;
};

static void *call_run(void *arg)
{
	const struct call *call = arg;

	call->fn(call->arg);
	return NULL;
}

static void linux_thread_call(void (*fn)(void *arg), void *arg)
{
	struct call call = {fn, arg};
	pthread_t thread;

	if (linux_thread_start(&thread, 0, call_run, &call) == 0) {
		linux_thread_join(thread);
	} else {
		fn(arg);
	}
}

static void linux_thread_sleep_exactly(void)
{
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

/*
 * Lower niceness is relative to the creator's; SCHED_IDLE gives way to all
 * other processes.
 */
static int linux_thread_make_way(uint32_t niceness)
{
	struct sched_param none = {.sched_priority = 0};
	int id = (int)syscall(SYS_gettid);
	int now;

	PIN_CHECK(niceness <= PIN_NICE_IDLE);
	PIN_DCHECK(id > 0); /* 0 would be the caller, too; a negative number none */
	if (niceness == PIN_NICE_IDLE) {
		return sched_setscheduler(0, SCHED_IDLE, &none) == 0 ? 0 : -errno;
	}
	/* Of Linux, both mean the thread. Above 19 the kernel takes 19. */
	errno = 0;
	now = getpriority(PRIO_PROCESS, (id_t)id);
	if (now == -1 && errno != 0) {
		return -errno;
	}
	return setpriority(PRIO_PROCESS, (id_t)id, now + (int)niceness) == 0 ? 0 : -errno;
}

/* NULL: no memory. To be freed with CPU_FREE(). */
static cpu_set_t *make_cpu_set(const uint32_t *cpu_indices, uint32_t count, size_t *out_bytes)
{
	uint32_t end = 0;
	cpu_set_t *set;

	PIN_CHECK(count > 0);
	for (uint32_t i = 0; i < count; i++) {
		end = cpu_indices[i] >= end ? cpu_indices[i] + 1 : end;
	}
	PIN_CHECK(end > 0); /* the number after UINT32_MAX */
	set = CPU_ALLOC(end);
	*out_bytes = CPU_ALLOC_SIZE(end);
	if (set == NULL) {
		return NULL;
	}
	CPU_ZERO_S(*out_bytes, set);
	for (uint32_t i = 0; i < count; i++) {
		CPU_SET_S(cpu_indices[i], *out_bytes, set);
	}
	PIN_DCHECK((uint32_t)CPU_COUNT_S(*out_bytes, set) == count); /* each is named once */
	return set;
}

static int linux_thread_bind(const uint32_t *cpu_indices, uint32_t count)
{
	struct pin_thread *thread = pin_thread_own();
	size_t set_bytes;
	cpu_set_t *set = make_cpu_set(cpu_indices, count, &set_bytes);
	int rc;

	if (set == NULL || thread == NULL) {
		CPU_FREE(set);
		return -ENOMEM;
	}
	if (sched_getaffinity(0, sizeof(thread->unbound_cpus), &thread->unbound_cpus) < 0) {
		CPU_ZERO(&thread->unbound_cpus);
	}
	rc = sched_setaffinity(0, set_bytes, set) < 0 ? -errno : 0;
	CPU_FREE(set);
	return rc;
}

/*
 * Compares first: the call is made ten times a second, and changing an affinity
 * that is right would only cost.
 */
static int linux_thread_rebind(const uint32_t *cpu_indices, uint32_t count)
{
	/* The kernel wants room for all CPUs that it was built for. */
	unsigned long now[CPUS_MAX / (8 * sizeof(unsigned long))];
	cpu_set_t *allowed = (cpu_set_t *)(void *)now;
	uint32_t own_count = 0;
	size_t set_bytes;
	cpu_set_t *set;
	int rc;

	memset(now, 0, sizeof(now));
	if (sched_getaffinity(0, sizeof(now), allowed) < 0) {
		return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		own_count += CPU_ISSET_S(cpu_indices[i], sizeof(now), allowed) ? 1 : 0;
	}
	PIN_DCHECK((uint32_t)CPU_COUNT_S(sizeof(now), allowed) >= own_count);
	if ((uint32_t)CPU_COUNT_S(sizeof(now), allowed) == own_count) {
		return 0;
	}
	set = make_cpu_set(cpu_indices, count, &set_bytes);
	if (set == NULL) {
		return 0;
	}
	rc = sched_setaffinity(0, set_bytes, set) < 0 ? -errno : 1;
	CPU_FREE(set);
	return rc;
}

/*
 * Reserves more than asked and gives back both ends: mmap(2) aligns to small
 * pages only.
 */
static void *map_aligned(size_t bytes)
{
	size_t reserve = bytes + PIN_HUGE_PAGE_BYTES;
	uint8_t *start = mmap(NULL, reserve, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *aligned;
	size_t before;

	PIN_CHECK(bytes > 0 && bytes % PIN_PAGE_BYTES == 0);
	if (start == MAP_FAILED) {
		return NULL;
	}
	aligned = (uint8_t *)pin_round_up((uintptr_t)start, PIN_HUGE_PAGE_BYTES);
	before = (size_t)(aligned - start);
	PIN_CHECK(before < PIN_HUGE_PAGE_BYTES); /* so there is a rest after it */
	if (before > 0) {
		munmap(start, before);
	}
	munmap(aligned + bytes, reserve - before - bytes);
	return aligned;
}

/*
 * One mapping of one kind of pages, aligned to a huge page; NULL if that kind
 * is not available.
 */
static void *linux_map(size_t bytes, enum pin_page_kind kind)
{
	void *memory;

	PIN_CHECK(kind <= PIN_PAGES_SMALL);
	if (kind == PIN_PAGES_HUGETLB) {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
		if (memory == MAP_FAILED) {
			return NULL;
		}
	} else {
		memory = map_aligned(bytes);
		if (memory == NULL) {
			return NULL;
		}
		if (kind == PIN_PAGES_THP && madvise(memory, bytes, MADV_HUGEPAGE) < 0) {
			munmap(memory, bytes);
			return NULL;
		}
	}
	/*
	 * A child that writes to a copied page would otherwise take the page
	 * the kernel reads into away from the parent.
	 */
	madvise(memory, bytes, MADV_DONTFORK);
	PIN_CHECK((uintptr_t)memory % PIN_HUGE_PAGE_BYTES == 0);
	return memory;
}

static void linux_unmap(void *memory, size_t bytes)
{
	int rc = munmap(memory, bytes);

	PIN_CHECK(rc == 0 || errno == ENOMEM); /* a part of a mapping makes two of it */
}

/* The lowest that is free is given out, so not much is left above it. */
static bool linux_fd_is_scarce(int fd)
{
	struct rlimit limit;

	PIN_DCHECK(fd >= 0);
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
		(rlim_t)fd + SPARE_DESCRIPTORS >= limit.rlim_cur;
}

/*
 * By the steps of io_uring_queue_init_params(), of which old versions write to
 * an array of indices that NO_SQARRAY leaves out, and newer ones set that flag
 * unasked.
 */
static int linux_ring_setup(struct io_uring *ring, uint32_t entries, struct io_uring_params *params)
{
	int fd = io_uring_setup(entries, params);
	int rc;

	if (fd < 0) {
		return fd;
	}
	if (linux_fd_is_scarce(fd)) {
		close(fd);
		return -EMFILE;
	}
	rc = io_uring_queue_mmap(fd, params, ring);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	/* Not by each version of liburing. */
	ring->flags = params->flags;
	ring->features = params->features;
	ring->ring_fd = fd;
	ring->enter_ring_fd = fd;
	PIN_DCHECK(params->sq_entries >= entries || (params->flags & IORING_SETUP_CLAMP) != 0);
	PIN_DCHECK(params->cq_entries >= params->sq_entries);
	return 0;
}

static void linux_ring_exit(struct io_uring *ring)
{
	io_uring_queue_exit(ring);
}

static int linux_ring_enter(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags,
	void *argument, size_t argument_bytes)
{
	return io_uring_enter2(
		(unsigned)fd, to_submit, min_complete, flags, argument, argument_bytes);
}

static int linux_ring_register(int fd, uint32_t opcode, const void *argument, uint32_t count)
{
	long rc = syscall(__NR_io_uring_register, fd, opcode, argument, count);

	return rc < 0 ? -errno : (int)rc;
}

/* "0-3,8": those of a node; none where it is not known. */
static void read_node_cpus(uint32_t node_index, cpu_set_t *out_cpus)
{
	char path[64];
	FILE *stream;
	unsigned first;

	CPU_ZERO(out_cpus);
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node_index);
	stream = fopen(path, "re");
	while (stream != NULL && fscanf(stream, "%u", &first) == 1) {
		unsigned last = first;

		if (fscanf(stream, "-%u", &last) != 1) {
			last = first;
		}
		for (unsigned cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++) {
			CPU_SET(cpu, out_cpus);
		}
		if (fgetc(stream) != ',') {
			break;
		}
	}
	if (stream != NULL) {
		fclose(stream);
	}
}

static int linux_ring_bind_helpers(int fd, uint32_t node_index)
{
	const struct pin_thread *thread = pin_thread_find();
	cpu_set_t cpus;

	if (thread == NULL || CPU_COUNT(&thread->unbound_cpus) == 0) {
		return -EINVAL;
	}
	read_node_cpus(node_index, &cpus);
	CPU_AND(&cpus, &cpus, &thread->unbound_cpus);
	return linux_ring_register(fd, IORING_REGISTER_IOWQ_AFF,
		CPU_COUNT(&cpus) > 0 ? &cpus : &thread->unbound_cpus, sizeof(cpus));
}

const struct pin_host pin_host_linux = {
	.now_ns = linux_now_ns,
	.futex_wait = linux_futex_wait,
	.futex_wake = linux_futex_wake,
	.yield = linux_yield,
	.event_create = linux_event_create,
	.event_raise = linux_event_raise,
	.event_clear = linux_event_clear,
	.event_close = linux_event_close,
	.descriptors_wait = linux_descriptors_wait,
	.fence_all = linux_fence_all,
	.thread_start = linux_thread_start,
	.thread_join = linux_thread_join,
	.thread_call = linux_thread_call,
	.thread_sleep_exactly = linux_thread_sleep_exactly,
	.thread_make_way = linux_thread_make_way,
	.thread_bind = linux_thread_bind,
	.thread_rebind = linux_thread_rebind,
	.thread_number = pin_thread_number,
	.thread_look = pin_thread_look,
	.map = linux_map,
	.unmap = linux_unmap,
	.heap = {.allocate = pin_heap_system_allocate, .release = pin_heap_system_release},
	.heap_zeroed = pin_heap_system_zeroed,
	.fd_is_scarce = linux_fd_is_scarce,
	.ring_setup = linux_ring_setup,
	.ring_exit = linux_ring_exit,
	.ring_enter = linux_ring_enter,
	.ring_register = linux_ring_register,
	.ring_bind_helpers = linux_ring_bind_helpers,
	.locked_await = pin_locked_await,
};

/* ---- CPU latency ---- */

/*
 * A number in /dev/cpu_dma_latency, which is binary.
 */

bool pin_cpu_latency_is_heeded(const char *path)
{
	static const char none[] = "none\n";
	char name[sizeof(none)] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0) {
		return true;
	}
	length = read(fd, name, sizeof(name));
	close(fd);
	return length != (ssize_t)strlen(none) || memcmp(name, none, strlen(none)) != 0;
}

/*
 * The request holds as long as the descriptor is open, so a killed process
 * leaves nothing.
 */
int pin_cpu_latency_ask(uint32_t latency_us)
{
	int32_t number = (int32_t)latency_us;
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	int error;

	PIN_CHECK(latency_us <= INT32_MAX);
	if (fd < 0) {
		return -errno;
	}
	if (!pin_cpu_latency_is_heeded(PIN_CPU_IDLE_DRIVER)) {
		close(fd);
		return -EOPNOTSUPP;
	}
	if (write(fd, &number, sizeof(number)) == (ssize_t)sizeof(number)) {
		return fd;
	}
	error = errno;
	close(fd);
	return -error;
}

void pin_cpu_latency_drop(int fd)
{
	int rc = close(fd);

	PIN_DCHECK(rc == 0); /* else it was given up before */
}
