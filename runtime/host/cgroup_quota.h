/* SPDX-License-Identifier: MIT */
/*
 * The CPU quota this process lives under.
 *
 * A container may be allowed every CPU of a big machine and yet only the time
 * of one and a half: with a thread per CPU the kernel then stops all of them
 * for most of each period. Any of the control groups the process is in may have
 * one, see cgroup.h; the smallest counts.
 *
 * Called once per topology, on any thread.
 *
 * Elsewhere: which CPUs are allowed (cpusets) is hwloc's and topology.c's.
 * Source: the kernel's admin-guide/cgroup-v2 "cpu.max" and
 * scheduler/sched-bwc.
 */
#ifndef PIN_HOST_CGROUP_QUOTA_H
#define PIN_HOST_CGROUP_QUOTA_H

#include <stdint.h>

/*
 * Thousandths of a CPU, 0: no quota or none to be found. `root` goes in front
 * of every path read: "" for this machine, a recorded tree in tests.
 */
uint32_t pin_quota_millicpus(const char *root);

#endif
