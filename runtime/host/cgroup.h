/* SPDX-License-Identifier: MIT */
/*
 * The control groups this process is in.
 *
 * Version 1, 2 or both may be mounted, and any group between the process and
 * the root of its hierarchy may set a limit; who looks for one looks at them
 * all. /proc/self/mountinfo says where hierarchies are mounted and which of
 * their groups stands at the mount point; /proc/self/cgroup says in which group
 * this process is. In a container the two may disagree, the group lying outside
 * of what is mounted: then the mount point is the best there is, and it is
 * right, since it shows the container's own group.
 *
 * Called on any thread; keeps no state.
 *
 * Source: cgroups(7), proc(5).
 */
#ifndef PIN_HOST_CGROUP_H
#define PIN_HOST_CGROUP_H

#include <stdbool.h>
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

#endif
