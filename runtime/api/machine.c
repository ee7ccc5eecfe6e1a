/* SPDX-License-Identifier: MIT */
/*
 * One snapshot of the machine for people and for programs that plan ahead:
 * what host/topology.c and host/kernel.c find out, plus the limits and the huge
 * pages, which the runtime itself runs into rather than asks for.
 *
 * Called from any thread, before or after runtimes exist; keeps no state.
 *
 * Invariants: (1) the output is written whole, and only on success. (2) a
 * number that cannot be found out is its cautious value: no huge pages, no
 * transparent ones.
 *
 * Source: getrlimit(2), capabilities(7), and of the kernel's documents
 * admin-guide/mm/hugetlbpage and transhuge.
 */
#include "runtime/api/internal.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/kernel.h"
#include "runtime/host/numa.h"
#include "runtime/host/topology.h"

#include <errno.h>
#include <linux/capability.h>
#include <pinion/machine.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The size of the first release, which never shrinks. */
_Static_assert(sizeof(struct pinion_machine) == 320, "released as 0.1");

/* With CAP_IPC_LOCK in force RLIMIT_MEMLOCK does not count. */
static bool may_lock_all(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	memset(sets, 0, sizeof(sets));
	if (syscall(SYS_capget, &header, sets) != 0) {
		return false;
	}
	return (sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

static uint64_t limit_of(__rlimit_resource_t resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) != 0) {
		return 0;
	}
	return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
}

/* The first line of a file under /sys, "" when it cannot be read. */
static void read_line(const char *path, char *out, int size)
{
	FILE *file = fopen(path, "re");

	PIN_DCHECK(size > 0);
	if (file == NULL || fgets(out, size, file) == NULL) {
		out[0] = '\0';
	}
	if (file != NULL) {
		fclose(file);
	}
}

static void probe_memory(struct pinion_machine *machine)
{
	char line[128];

	/* The word in force is in brackets. */
	read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line));
	machine->has_transparent_huge =
		strstr(line, "[always]") != NULL || strstr(line, "[madvise]") != NULL;
	machine->huge_pages_free = pin_pages_hugetlb_free();
	machine->memlock_limit_bytes = may_lock_all() ? UINT64_MAX : limit_of(RLIMIT_MEMLOCK);
	machine->nofile_limit = limit_of(RLIMIT_NOFILE);
}

/*
 * Probes as a runtime with the default level would, so that `doctor` reports
 * what a program gets.
 */
static void probe_kernel(struct pinion_machine *machine)
{
	struct pin_kernel kernel;
	struct utsname name;

	pin_kernel_probe(&kernel);
	/* Nothing is struck out: of auto there is nothing to miss. */
	(void)pin_level_apply(&kernel, PINION_IO_AUTO, 0);
	machine->io_level = pin_level_reached(&kernel);
	machine->ring_error = kernel.ring_error;
	machine->ring_features = kernel.ring_features;
	machine->io_features = kernel.features;
	pin_kernel_ring_hint(kernel.ring_error, machine->ring_hint, sizeof(machine->ring_hint));
	if (uname(&name) == 0) {
		size_t length = strnlen(name.release, sizeof(machine->kernel_release) - 1);

		memcpy(machine->kernel_release, name.release, length);
		PIN_DCHECK(machine->kernel_release[length] == '\0');
	}
	PIN_DCHECK(machine->io_level <= PINION_IO_RING_MESSAGE);
}

static uint32_t default_arena_mib(uint32_t worker_count)
{
	struct pinion_config config;

	pinion_config_init(&config);
	pin_config_complete(&config, worker_count);
	PIN_DCHECK(config.worker_count == worker_count && config.buffer_count > 0);
	return (uint32_t)(((uint64_t)config.buffer_bytes * config.buffer_count +
				  (uint64_t)config.small_buffer_bytes *
					  config.small_buffer_count) >>
		20);
}

const char *pinion_machine_feature_name(uint32_t feature)
{
	return pin_feature_name(feature);
}

/*
 * Fills in a struct of its own and copies it at the end, so a caller with an
 * older, smaller struct gets the fields that it knows.
 */
int pinion_machine_probe(struct pinion_machine *out_machine, size_t size)
{
	struct pinion_machine machine;
	struct pin_topology topology;
	int saved_errno = errno;
	int rc = pin_topology_load(&topology, false);

	if (rc != 0) {
		return rc;
	}
	memset(&machine, 0, sizeof(machine));
	machine.cpu_count = topology.cpu_count;
	machine.core_count = topology.core_count;
	machine.node_count = topology.node_count;
	machine.quota_millicpus = topology.quota_millicpus;
	machine.default_worker_count = pin_topology_default_workers(&topology);
	machine.default_arena_mib = default_arena_mib(machine.default_worker_count);
	pin_topology_fini(&topology);
	probe_memory(&machine);
	probe_kernel(&machine);
	PIN_CHECK(machine.default_worker_count >= 1);
	PIN_DCHECK(machine.core_count <= machine.cpu_count && machine.node_count >= 1);
	PIN_CHECK(machine.ring_error == 0 || machine.ring_hint[0] != '\0');
	pin_sized_give(out_machine, size, &machine, sizeof(machine));
	errno = saved_errno;
	return 0;
}
