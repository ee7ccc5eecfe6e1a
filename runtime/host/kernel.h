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

/* First, so that the additions below never meet an enum still to come. */
#include <liburing.h>
#include <linux/fs.h>
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

struct pin_kernel {
	int ring_error; /* 0, or why no ring can be had, negative errno */
	/*
	 * 0, or what kept the probe from an answer and may not do so again,
	 * such as -ENOMEM; then a feature is said to be missing.
	 */
	int passing_error;
	uint32_t ring_features;
	bool has_single_issuer;
	bool has_defer_taskrun;
	bool has_coop_taskrun;
	bool has_registered_ring;
	bool has_send_msg_ring;
	bool has_clone_buffers;
	bool has_no_iowait;
	bool has_no_sqarray;
	bool has_op_openat;
	bool has_commands;	     /* wide rings, and an operation that passes them on */
	bool has_registered_files;   /* a table with gaps, filled one by one */
	bool has_registered_buffers; /* as for memory, the limit decides */
	bool has_statx_dioalign;     /* on the file system of the running program */
	bool has_cachestat;
	bool has_dontcache; /* on the file system of the running program */
};

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

/* The same for a machine whose /proc lies below `root`; for tests. */
void pin_kernel_ring_hint_at(const char *root, int error, char *out, size_t size);

#endif
