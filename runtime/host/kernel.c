/* SPDX-License-Identifier: MIT */
/*
 * The capability probe: each feature is asked for once, on rings of two
 * entries that are closed before the function returns. EINVAL is the only
 * answer that means "unknown to this kernel"; a feature that failed for want
 * of memory exists all the same.
 */
#include "runtime/host/kernel.h"
#include "runtime/base/check.h"
#include "runtime/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PROBE_ENTRIES 2u
#define PROBE_BYTES 8192u /* two pages of queues */
#define PROBE_USER_DATA 0x70696e696f6eu
#define PROBE_OPCODE_COUNT 64u

static int ring_setup(uint32_t flags, struct io_uring_params *out_params)
{
	uint32_t tries = 0;
	long fd;

	memset(out_params, 0, sizeof(*out_params));
	out_params->flags = flags;
	do {
		fd = syscall(__NR_io_uring_setup, PROBE_ENTRIES, out_params);
	} while (fd < 0 && errno == ENOMEM && pin_locked_await(PROBE_BYTES, &tries));
	PIN_DCHECK(fd < 0 || out_params->sq_entries >= PROBE_ENTRIES);
	return fd < 0 ? -errno : (int)fd;
}

static int ring_register(int fd, uint32_t opcode, void *argument, uint32_t count)
{
	long rc = syscall(__NR_io_uring_register, fd, opcode, argument, count);

	return rc < 0 ? -errno : (int)rc;
}

static bool probe_setup_flags(uint32_t flags)
{
	struct io_uring_params params;
	int fd = ring_setup(flags, &params);

	if (fd >= 0) {
		close(fd);
	}
	return fd != -EINVAL;
}

/*
 * What the probes of features ask: a ring and what its set-up said, or nothing
 * for those of files. `kernel` is where they note what kept them from an
 * answer.
 */
struct asked {
	int fd;
	struct io_uring_params params;
	struct pin_kernel *kernel;
};

static bool probe_ext_arg(const struct asked *asked)
{
	return (asked->params.features & IORING_FEAT_EXT_ARG) != 0;
}

static bool probe_no_iowait(const struct asked *asked)
{
	return (asked->params.features & IORING_FEAT_NO_IOWAIT) != 0;
}

/* As old as rings. As for memory, the limit decides. */
static bool probe_registered_buffers(const struct asked *asked)
{
	(void)asked;
	return true;
}

static bool probe_registered_ring(const struct asked *asked)
{
	struct io_uring_rsrc_update update = {
		.offset = UINT32_MAX, /* any free slot of this thread */
		.data = (uint64_t)(uint32_t)asked->fd,
	};

	if (ring_register(asked->fd, IORING_REGISTER_RING_FDS, &update, 1) != 1) {
		return false;
	}
	/* Slots are the thread's: a leftover would outlive the ring. */
	update.data = 0;
	(void)ring_register(asked->fd, IORING_UNREGISTER_RING_FDS, &update, 1);
	return true;
}

/* A table with gaps, filled one by one. */
static bool probe_registered_files(const struct asked *asked)
{
	struct io_uring_rsrc_register slots = {.nr = 1, .flags = IORING_RSRC_REGISTER_SPARSE};
	int32_t nothing = -1;
	struct io_uring_rsrc_update update = {.data = (uint64_t)(uintptr_t)&nothing};

	return ring_register(asked->fd, IORING_REGISTER_FILES2, &slots, sizeof(slots)) == 0 &&
		ring_register(asked->fd, IORING_REGISTER_FILES_UPDATE, &update, 1) == 1;
}

static bool probe_opcode(int fd, uint8_t opcode)
{
	union {
		struct io_uring_probe probe;
		uint8_t bytes[sizeof(struct io_uring_probe) +
			PROBE_OPCODE_COUNT * sizeof(struct io_uring_probe_op)];
	} answer;

	PIN_CHECK(opcode < PROBE_OPCODE_COUNT);
	memset(&answer, 0, sizeof(answer));
	if (ring_register(fd, IORING_REGISTER_PROBE, &answer, PROBE_OPCODE_COUNT) < 0) {
		return false;
	}
	PIN_CHECK(answer.probe.ops_len <= PROBE_OPCODE_COUNT);
	return opcode <= answer.probe.last_op &&
		(answer.probe.ops[opcode].flags & IO_URING_OP_SUPPORTED) != 0;
}

static bool probe_openat(const struct asked *asked)
{
	return probe_opcode(asked->fd, IORING_OP_OPENAT);
}

static bool probe_renameat(const struct asked *asked)
{
	return probe_opcode(asked->fd, IORING_OP_RENAMEAT) &&
		probe_opcode(asked->fd, IORING_OP_UNLINKAT);
}

static bool probe_linkat(const struct asked *asked)
{
	return probe_opcode(asked->fd, IORING_OP_LINKAT) &&
		probe_opcode(asked->fd, IORING_OP_MKDIRAT) &&
		probe_opcode(asked->fd, IORING_OP_SYMLINKAT);
}

static bool probe_shutdown(const struct asked *asked)
{
	return probe_opcode(asked->fd, IORING_OP_SHUTDOWN);
}

static bool probe_socket(const struct asked *asked)
{
	return probe_opcode(asked->fd, IORING_OP_SOCKET);
}

/* Rings of 128-byte entries, and an operation that passes commands on. */
static bool probe_nvme_commands(const struct asked *asked)
{
	return probe_opcode(asked->fd, IORING_OP_URING_CMD) &&
		probe_setup_flags(IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
}

/*
 * The message's arrival is checked, not only that it was accepted: the sleep
 * protocol depends on it.
 */
static bool probe_send_msg_ring(const struct asked *asked)
{
	const struct io_uring_params *params = &asked->params;
	int fd = asked->fd;
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_MSG_RING,
		.fd = fd,
		.off = PROBE_USER_DATA,
	};
	size_t bytes =
		params->cq_off.cqes + (size_t)params->cq_entries * sizeof(struct io_uring_cqe);
	bool has_arrived = false;
	uint8_t *memory;

	if (ring_register(-1, IORING_REGISTER_SEND_MSG_RING, &sqe, 1) < 0) {
		return false;
	}
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_CQ_RING);
	if (memory == MAP_FAILED) {
		asked->kernel->passing_error = -errno;
		return false;
	}
	PIN_CHECK(params->cq_off.tail + sizeof(uint32_t) <= bytes);
	/* This thread's own system calls wrote it: plain loads will do. */
	(void)syscall(__NR_io_uring_enter, fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
	if (*(const uint32_t *)(const void *)(memory + params->cq_off.tail) == 1) {
		const struct io_uring_cqe *cqe = (const void *)(memory + params->cq_off.cqes);

		has_arrived = cqe->user_data == PROBE_USER_DATA;
	}
	munmap(memory, bytes);
	return has_arrived;
}

static bool probe_clone_buffers(const struct asked *asked)
{
	/* A kernel that knows the request complains of the descriptor. */
	struct pin_clone_buffers clone = {.src_fd = UINT32_MAX};

	return ring_register(asked->fd, IORING_REGISTER_CLONE_BUFFERS, &clone, 1) == -EBADF;
}

static bool probe_coop_taskrun(const struct asked *asked)
{
	(void)asked;
	return probe_setup_flags(IORING_SETUP_COOP_TASKRUN);
}

static bool probe_single_issuer(const struct asked *asked)
{
	(void)asked;
	return probe_setup_flags(IORING_SETUP_SINGLE_ISSUER);
}

static bool probe_defer_taskrun(const struct asked *asked)
{
	(void)asked;
	return probe_setup_flags(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
}

static bool probe_no_sqarray(const struct asked *asked)
{
	(void)asked;
	return probe_setup_flags(IORING_SETUP_NO_SQARRAY);
}

/* On the file system of the running program. */
static bool probe_statx_dioalign(const struct asked *asked)
{
	struct statx status;

	(void)asked;
	memset(&status, 0, sizeof(status));
	if (statx(AT_FDCWD, "/proc/self/exe", AT_STATX_DONT_SYNC, STATX_DIOALIGN, &status) != 0) {
		return false;
	}
	return (status.stx_mask & STATX_DIOALIGN) != 0;
}

static bool probe_cachestat(const struct asked *asked)
{
	struct pin_cachestat_range range = {.offset_bytes = 0};
	struct pin_cachestat status;

	(void)asked;
	/* A kernel that knows the call complains of the descriptor. */
	return syscall(__NR_cachestat, -1, &range, &status, 0) < 0 && errno == EBADF;
}

/*
 * Past the end, so that nothing is read; on the file system of the running
 * program.
 */
static bool probe_dontcache(const struct asked *asked)
{
	uint8_t byte;
	struct iovec vector = {.iov_base = &byte, .iov_len = 1};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool works;

	(void)asked;
	if (fd < 0) {
		return false;
	}
	works = preadv2(fd, &vector, 1, (off_t)1 << 40, RWF_DONTCACHE) >= 0;
	close(fd);
	return works;
}

/* The questions that answer for a feature, one after the other. */
enum kind { RING, SETUP, FILES };

static const struct {
	enum kind kind;
	bool (*probe)(const struct asked *asked);
} probes[] = {
#define PROBE(name, word, kind, major, minor, probe) [PIN_FEATURE_##name] = {kind, probe},
	PIN_KERNEL_FEATURES(PROBE)
#undef PROBE
};

static void probe_features(const struct asked *asked, enum kind kind)
{
	PIN_DCHECK((kind == FILES) == (asked->fd < 0));
	for (uint32_t i = 0; i < PIN_FEATURE_COUNT; i++) {
		if (probes[i].kind == kind && probes[i].probe(asked)) {
			asked->kernel->features |= UINT32_C(1) << i;
		}
	}
	PIN_DCHECK((asked->kernel->features & ~PIN_FEATURES_ALL) == 0);
}

/*
 * A sandbox may allow a ring to be set up and forbid to enter it. What passes
 * forbids nothing.
 */
static int probe_enter(int fd)
{
	PIN_DCHECK(fd >= 0);
	if (syscall(__NR_io_uring_enter, fd, 0, 0, 0, NULL, 0) >= 0 || errno == EINTR ||
		errno == EAGAIN || errno == EBUSY || errno == ENOMEM) {
		return 0;
	}
	return -errno;
}

static void probe_rings(struct pin_kernel *kernel)
{
	struct asked asked = {.kernel = kernel};

	asked.fd = ring_setup(0, &asked.params);
	kernel->ring_error = asked.fd < 0 ? asked.fd : probe_enter(asked.fd);
	if (kernel->ring_error == 0) {
		kernel->ring_features = asked.params.features;
		probe_features(&asked, RING);
	}
	if (asked.fd >= 0) {
		close(asked.fd);
	}
	if (kernel->ring_error == 0) {
		probe_features(&asked, SETUP);
	}
}

static void probe_rings_aside(void *kernel)
{
	probe_rings(kernel);
}

void pin_kernel_probe(struct pin_kernel *kernel)
{
	struct asked of_files = {.fd = -1, .kernel = kernel};
	int saved_errno = errno;

	memset(kernel, 0, sizeof(*kernel));
	pin_host_linux.thread_call(probe_rings_aside, kernel);
	probe_features(&of_files, FILES);
	PIN_CHECK(kernel->ring_error <= 0);
	PIN_CHECK(kernel->ring_error == 0 || !pin_kernel_has(kernel, PINION_IO_OPENAT));
	PIN_CHECK(kernel->ring_error == 0 || kernel->ring_features == 0);
	PIN_CHECK(kernel->passing_error <= 0);
	errno = saved_errno;
}

/* The sysctl's value, or 0 where there is none. */
static int hint_sysctl_value(const char *root)
{
	char path[256];
	int value = 0;
	int length = snprintf(path, sizeof(path), "%s/proc/sys/kernel/io_uring_disabled", root);
	FILE *file;

	PIN_CHECK(length > 0 && (size_t)length < sizeof(path));
	file = fopen(path, "re");
	if (file != NULL) {
		if (fscanf(file, "%d", &value) != 1) {
			value = 0;
		}
		fclose(file);
	}
	return value;
}

/* EPERM has three causes, which a sysctl distinguishes. */
static const char *hint_not_permitted(const char *root)
{
	switch (hint_sysctl_value(root)) {
	case 0:
		return "io_uring is blocked by a seccomp filter, as in most containers; allow it: "
		       "docker run --security-opt seccomp=unconfined (or a profile with "
		       "io_uring_setup, _enter, _register)";
	case 1:
		return "io_uring is reserved for root and one group by a sysctl; open it: sysctl "
		       "-w kernel.io_uring_disabled=0 (or set kernel.io_uring_group to a group of "
		       "this user)";
	default:
		return "io_uring is switched off by a sysctl; switch it on: sysctl -w "
		       "kernel.io_uring_disabled=0";
	}
}

/* The line for a positive errno, NULL for an error without one. */
static const char *hint_line(const char *root, int error)
{
	switch (error) {
	case 0:
		return "";
	case ENOSYS:
		return "this kernel has no io_uring, or a sandbox hides it; install one of 5.15 or "
		       "later: apt-get install linux-image-amd64 (in a container: --security-opt "
		       "seccomp=unconfined)";
	case EPERM:
		return hint_not_permitted(root);
	case EOPNOTSUPP:
		return "this kernel's io_uring is too old, or cut down by PINION_IO_WITHOUT; "
		       "install one of 5.15 or later: apt-get install linux-image-amd64";
	case EACCES:
		return "io_uring is denied by a security module (SELinux, AppArmor); find its "
		       "rule: ausearch -m avc -ts recent, or journalctl -k -g apparmor";
	case ENOMEM:
		return "io_uring ran into the locked-memory limit; raise it: ulimit -l unlimited "
		       "(limits.conf: memlock), or LimitMEMLOCK=infinity in the systemd unit";
	case EMFILE:
		return "io_uring needs a descriptor and none is left; raise the limit: ulimit -n "
		       "65536, or LimitNOFILE=65536 in the systemd unit";
	case ENFILE:
		return "io_uring needs a descriptor and the system has none left; raise the limit: "
		       "sysctl -w fs.file-max=1000000";
	default:
		return NULL;
	}
}

void pin_kernel_ring_hint_at(const char *root, int error, char *out, size_t size)
{
	int number = error < 0 ? -error : error;
	int saved_errno = errno;
	const char *line = hint_line(root, number);

	PIN_CHECK(size > 0);
	PIN_CHECK(number >= 0); /* of either sign, but no INT_MIN */
	if (line != NULL) {
		snprintf(out, size, "%s", line);
	} else {
		snprintf(out, size,
			"io_uring_setup failed with errno %d; see the kernel's log: dmesg", number);
	}
	errno = saved_errno;
}

void pin_kernel_ring_hint(int error, char *out, size_t size)
{
	pin_kernel_ring_hint_at("", error, out, size);
}

/* ---- locked memory ---- */

/* See kernel.c. */

enum {
	/* 1, 2, 4 … 64 ms. */
	TRIES_MAX = 7,
	FIRST_NS = 1000000,
};

bool pin_locked_await(uint64_t bytes, uint32_t *tries)
{
	struct timespec pause = {.tv_nsec = (long)FIRST_NS << *tries};
	struct rlimit limit;

	PIN_CHECK(*tries <= TRIES_MAX); /* the pause doubles each time */
	PIN_DCHECK(pause.tv_nsec < 1000000000);
	if (*tries >= TRIES_MAX || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
		limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur < bytes) {
		return false;
	}
	(*tries)++;
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, &pause) == EINTR) {
	}
	return true;
}
