/* SPDX-License-Identifier: MIT */
/*
 * The control groups this process is in.
 *
 * Version 1, 2 or both may be mounted, and any group between the process and
 * the root of its hierarchy may set a limit; so all of them are read.
 * /proc/self/mountinfo says where hierarchies are mounted and which of their
 * groups is the mount point; /proc/self/cgroup says in which group this process
 * is. In a container the two may disagree, with the group outside of the
 * mounted part: then the mount point is the best there is, and it is right,
 * since it shows the container's own group.
 *
 * Called on any thread; keeps no state.
 *
 * Source: cgroups(7), proc(5).
 */
#ifndef PIN_HOST_CGROUP_H
#define PIN_HOST_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct pin_cgroup {
	const char *root;      /* goes in front of every path read */
	const char *directory; /* of the group, below `root` */
	bool is_v2;
};

typedef void (*pin_cgroup_visit_fn)(void *arg, const struct pin_cgroup *group);

/*
 * Visits this process's group and those above it in each hierarchy that may
 * have `controller`, such as "cpu". `root`: "" for this machine, a recorded
 * tree in tests. Leaves errno as it was.
 */
void pin_cgroup_visit(
	const char *root, const char *controller, pin_cgroup_visit_fn visit, void *arg);

/* A file of a group, to be closed by the caller; NULL: it has none. */
FILE *pin_cgroup_open(const struct pin_cgroup *group, const char *name);

/* ---- cgroup memory ---- */

/*
 * How much memory the control groups this process is in leave it.
 *
 * Touching more than that is not an error but an OOM kill, so it has to be
 * known before. Any group between the process and the root of its hierarchy may
 * set a limit; the smallest counts. What a group uses is taken without the page
 * cache, which the kernel gives up under pressure.
 *
 * Called when a runtime is created, and as arenas grow, on any thread.
 *
 * Elsewhere: pages of MAP_HUGETLB are not charged to these groups by default.
 * Source: of the kernel's documents admin-guide/cgroup-v2, "memory.max", and
 * cgroup-v1/memory.
 */

struct pin_memlimit {
	uint64_t limit_bytes; /* UINT64_MAX: none or none to be found */
	uint64_t free_bytes;  /* left to touch under it; UINT64_MAX as above */
	char path[256];	      /* of the file that sets it, cut if need be; "" */
	bool is_machine;      /* the memory of the machine, which no file sets */
};

/* 1 / 8 of what a limit leaves is not touched: others need memory as well. */
enum { PIN_MEMLIMIT_RESERVE_SHARE = 8 };

static inline uint64_t pin_memlimit_usable(const struct pin_memlimit *limit)
{
	return limit->free_bytes - limit->free_bytes / PIN_MEMLIMIT_RESERVE_SHARE;
}

/* `root` goes in front of every path read: "" for this machine. */
void pin_memlimit_find(const char *root, struct pin_memlimit *out_limit);

/*
 * The machine's memory replaces a limit that leaves more. Free is what programs
 * may take before others are killed: MemAvailable and free swap.
 */
void pin_memlimit_lower_to_machine(const char *root, struct pin_memlimit *limit);

/* ---- cgroup quota ---- */

/*
 * The CPU quota this process lives under.
 *
 * A container may be allowed every CPU of a big machine and yet only the time
 * of one and a half of them: with a thread per CPU the kernel then stops all of
 * them for most of each period. Any of the control groups the process is in may
 * have one, see cgroup.h; the smallest counts.
 *
 * Called once per topology, on any thread.
 *
 * Elsewhere: which CPUs are allowed (cpusets) is hwloc's and topology.c's.
 * Source: the kernel's admin-guide/cgroup-v2 "cpu.max" and
 * scheduler/sched-bwc.
 */

/*
 * Thousandths of a CPU, 0: no quota or none to be found. `root` goes in front
 * of every path read: "" for this machine, a recorded tree in tests.
 */
uint32_t pin_quota_millicpus(const char *root);

/* ---- thread limit ---- */

/*
 * Which limit keeps a thread from being created.
 *
 * pthread_create(3) says EAGAIN for all of them: the address space of the
 * process or its data (its stack does not fit), the cgroup's number of tasks,
 * the user's number of processes, and the system's. The first of these found to
 * be reached is the cause; the user's number cannot be seen from here, so it is
 * the cause when it is limited and none of those before it is reached.
 *
 * Called on any thread, after a failure only: it reads files. Keeps no state.
 *
 * Source: setrlimit(2), proc(5), cgroups(7), pthread_create(3).
 */

/*
 * Writes why a thread with a stack of `stack_bytes`, 0: the default, was
 * refused with `error`, and what to raise. 192 bytes hold every line.
 *
 * Units: `error` is a negative errno.
 */
void pin_threadlimit_hint(int error, size_t stack_bytes, char *out, size_t size);

/* The same for a machine whose files are below `root`; for tests. */
void pin_threadlimit_hint_at(
	const char *root, int error, size_t stack_bytes, char *out, size_t size);

#endif
