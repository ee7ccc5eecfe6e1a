/* SPDX-License-Identifier: MIT */
/*
 * What this kernel's io_uring can do, and names for what old headers lack.
 *
 * The library is built against liburing 2.3 and the headers of Linux 6.1 but
 * runs on newer kernels. Their additions are spelled out here as raw numbers,
 * the only place that does so; everything else includes this header instead of
 * <liburing.h>. What works is found by trying it on small throw-away rings,
 * never by comparing versions, since distributions move features back and
 * sandboxes take them away.
 *
 * Called from any thread, once per runtime; it needs no state afterwards.
 *
 * Invariants: (1) a flag is set only after the kernel was seen to accept the
 * feature. (2) with ring_error set, every flag about rings is false. (3) the
 * calling thread is left as it was: no ring, no registered descriptor, and not
 * interrupted when the kernel takes those rings down, later.
 *
 * Elsewhere: the order in which set-up flags are given up is in
 * io/ring_setup.c.
 * Source: include/uapi/linux/io_uring.h, mman.h, stat.h and fs.h of Linux 6.18.
 */
#ifndef PIN_HOST_KERNEL_H
#define PIN_HOST_KERNEL_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"

/* First, so that the additions below never meet an enum still to come. */
#include <liburing.h>
#include <linux/fs.h>
#include <pinion/policy.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16) /* 6.6 */
#endif
#ifndef IORING_REGISTER_CLONE_BUFFERS
#define IORING_REGISTER_CLONE_BUFFERS 30 /* 6.12 */
#endif
#ifndef IORING_REGISTER_SEND_MSG_RING
#define IORING_REGISTER_SEND_MSG_RING 31 /* 6.13 */
#endif
#ifndef IORING_ENTER_NO_IOWAIT
#define IORING_ENTER_NO_IOWAIT (1U << 7) /* 6.15 */
#endif
#ifndef IORING_FEAT_NO_IOWAIT
#define IORING_FEAT_NO_IOWAIT (1U << 17)
#endif
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080 /* 6.14 */
#endif
#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x00002000U /* 6.1 */
#endif
#ifndef __NR_cachestat
#define __NR_cachestat 451 /* 6.5, the same on every architecture */
#endif

/* As struct io_uring_clone_buffers, whose name newer headers take. */
struct pin_clone_buffers {
	uint32_t src_fd;
	uint32_t flags;
	uint32_t src_offset_count;
	uint32_t dst_offset_count;
	uint32_t buffer_count;
	uint32_t pad[3];
};

/* As struct cachestat_range; a length of 0 means to the end of the file. */
struct pin_cachestat_range {
	uint64_t offset_bytes;
	uint64_t length_bytes;
};

/* As struct cachestat; all in pages. */
struct pin_cachestat {
	uint64_t cached_count;
	uint64_t dirty_count;
	uint64_t writeback_count;
	uint64_t evicted_count;
	uint64_t recently_evicted_count;
};

_Static_assert(sizeof(struct pin_clone_buffers) == 32, "the kernel's layout");
_Static_assert(sizeof(struct pin_cachestat_range) == 16, "the kernel's layout");
_Static_assert(sizeof(struct pin_cachestat) == 40, "the kernel's layout");

/*
 * The features, in the order of their bits. Probe, levels, configuration,
 * machine report and doctor follow these rows: a new feature is a row here, its
 * bit in enum pinion_io_feature, and its probe in kernel.c.
 *
 * FEATURE(bit, word in the configuration, what is asked for it, the version of
 * Linux that brought it, probe). Of RING features the probe asks a ring, of
 * SETUP ones it makes one with certain flags; both are gone where rings are.
 */
#define PIN_KERNEL_FEATURES(FEATURE) \
	FEATURE(EXT_ARG, "ext-arg", RING, 5, 11, probe_ext_arg) \
	FEATURE(OPENAT, "openat", RING, 5, 6, probe_openat) \
	FEATURE(REGISTERED_BUFFERS, "registered-buffers", RING, 5, 1, probe_registered_buffers) \
	FEATURE(REGISTERED_RING, "registered-ring", RING, 5, 18, probe_registered_ring) \
	FEATURE(COOP_TASKRUN, "coop-taskrun", SETUP, 5, 19, probe_coop_taskrun) \
	FEATURE(SINGLE_ISSUER, "single-issuer", SETUP, 6, 0, probe_single_issuer) \
	FEATURE(DEFER_TASKRUN, "defer-taskrun", SETUP, 6, 1, probe_defer_taskrun) \
	FEATURE(STATX_DIOALIGN, "statx-dioalign", FILES, 6, 1, probe_statx_dioalign) \
	FEATURE(CACHESTAT, "cachestat", FILES, 6, 5, probe_cachestat) \
	FEATURE(CLONE_BUFFERS, "clone-buffers", RING, 6, 12, probe_clone_buffers) \
	FEATURE(SEND_MSG_RING, "send-msg-ring", RING, 6, 13, probe_send_msg_ring) \
	FEATURE(NO_IOWAIT, "no-iowait", RING, 6, 15, probe_no_iowait) \
	FEATURE(DONTCACHE, "dontcache", FILES, 6, 14, probe_dontcache) \
	FEATURE(REGISTERED_FILES, "registered-files", RING, 5, 19, probe_registered_files) \
	FEATURE(NVME_COMMANDS, "nvme-commands", RING, 5, 19, probe_nvme_commands) \
	FEATURE(NO_SQARRAY, "no-sqarray", SETUP, 6, 6, probe_no_sqarray) \
	FEATURE(RENAMEAT, "renameat", RING, 5, 11, probe_renameat) \
	FEATURE(LINKAT, "linkat", RING, 5, 15, probe_linkat) \
	FEATURE(SHUTDOWN, "shutdown", RING, 5, 11, probe_shutdown) \
	FEATURE(SOCKET, "socket", RING, 5, 19, probe_socket)

/* Their places, and as many as there are. */
enum pin_kernel_feature {
#define PIN_FEATURE_PLACE(name, word, kind, major, minor, probe) PIN_FEATURE_##name,
	PIN_KERNEL_FEATURES(PIN_FEATURE_PLACE)
#undef PIN_FEATURE_PLACE
		PIN_FEATURE_COUNT,
};

#define PIN_FEATURES_ALL ((UINT32_C(1) << PIN_FEATURE_COUNT) - 1)

#define PIN_FEATURE_IS_PLACED(name, word, kind, major, minor, probe) \
	_Static_assert((uint32_t)PINION_IO_##name == UINT32_C(1) << PIN_FEATURE_##name, \
		"rows are in the order of their bits");
PIN_KERNEL_FEATURES(PIN_FEATURE_IS_PLACED)
#undef PIN_FEATURE_IS_PLACED

struct pin_kernel {
	int ring_error; /* 0, or why no ring can be had, negative errno */
	/*
	 * 0, or what kept the probe from an answer and may not do so again,
	 * such as -ENOMEM; then a feature is said to be missing.
	 */
	int passing_error;
	uint32_t ring_features; /* IORING_FEAT_* */
	uint32_t features;	/* bits of enum pinion_io_feature that were found */
};

static inline bool pin_kernel_has(const struct pin_kernel *kernel, enum pinion_io_feature feature)
{
	PIN_DCHECK(pin_is_power_of_two((uint32_t)feature)); /* one of them */
	PIN_DCHECK(((uint32_t)feature & ~PIN_FEATURES_ALL) == 0);
	return (kernel->features & (uint32_t)feature) != 0;
}

/* Takes about a millisecond. Any thread; blocks. */
void pin_kernel_probe(struct pin_kernel *kernel);

/*
 * Writes one line that says what keeps io_uring from working and the command
 * that mends it; an empty one when `error` is 0.
 *
 * Units: `error` is an errno of io_uring_setup(2) or of registering buffers,
 * of either sign. 192 bytes hold every line.
 */
void pin_kernel_ring_hint(int error, char *out, size_t size);

/* The same for a machine whose /proc is below `root`; for tests. */
void pin_kernel_ring_hint_at(const char *root, int error, char *out, size_t size);

/* ---- kernel level ---- */

/*
 * The ladder: which parts of io_uring are used together.
 *
 * Each rung stands for what a generation of kernels brought, from plain rings
 * to everything known here. The highest that the probe found is taken, unless
 * the configuration names a lower one or single features to do without; then
 * those are struck out of what the probe found, and all code above behaves as
 * it would on a kernel that never had them. So every rung can be tested on one
 * machine. Below the lowest rung there are no rings at all.
 *
 * Pure: tables over the features found, no system calls. Called once per
 * runtime, before its workers start.
 *
 * Invariants: (1) a feature is only ever struck out, never added. (2) with
 * ring_error set no feature of rings is left.
 *
 * Elsewhere: kernel.c finds out what there is, io/ring_setup.c what a ring
 * makes of it.
 */

/* What a level does without, and `without`: bits of enum pinion_io_feature. */
uint32_t pin_level_struck(uint32_t io_level, uint32_t without);

/*
 * Strikes them out of `kernel`. If the rest cannot carry a ring, its ring_error
 * becomes -EOPNOTSUPP. Returns 0, or -EOPNOTSUPP when rings work but what gave
 * `io_level` its name is not there.
 */
int pin_level_apply(struct pin_kernel *kernel, uint32_t io_level, uint32_t without);

/* The level that `kernel` reaches; PINION_IO_RING for the highest. */
uint32_t pin_level_reached(const struct pin_kernel *kernel);

/* As PINION_IO_LEVEL spells it. */
const char *pin_level_name(uint32_t io_level);

/* As PINION_IO_WITHOUT spells one bit; NULL for any other number. */
const char *pin_feature_name(uint32_t feature);

/* ---- kernel locked ---- */

/*
 * Waiting for locked memory that the kernel has yet to give back.
 *
 * The kernel takes a closed ring apart later, after 6 to 40 ms as measured on
 * Linux 6.18, and counts its queues as its user's locked memory until then. A
 * process that makes rings soon after, this one or the next, is refused them
 * under a limit that is large enough for the rings in use.
 *
 * Called by whatever makes rings or registers memory, on any thread.
 *
 * Elsewhere: registered memory is given back at once, io/ring_setup.c.
 * Source: RLIMIT_MEMLOCK of getrlimit(2);
 * tests/unit/host/locked_memory_comes_back.
 */

/*
 * After -ENOMEM for `bytes`: sleeps, so that it can be tried once more. `tries`
 * begins with 0 and goes up by one for each sleep; together they take 127 ms.
 * False, at once: there is no limit, or it is smaller than that anyway, or all
 * tries are used up.
 */
bool pin_locked_await(uint64_t bytes, uint32_t *tries);

#endif
