/* SPDX-License-Identifier: MIT */
/*
 * Doubles of what a runtime asks of its machine beside the host: kernel probe,
 * placement, files and reads outside a ring. And the fatal report,
 * which ends the run rather than the process.
 */
#include "runtime/base/check.h"
#include "runtime/host/cgroup.h"
#include "runtime/host/kernel.h"
#include "runtime/host/numa.h"
#include "runtime/io/file.h"
#include "runtime/io/ring.h"
#include "tests/sim/device.h"
#include "tests/sim/disk.h"
#include "tests/sim/world.h"

#include <errno.h>

_Noreturn void pin_check_failed(const char *file, int line, const char *expression)
{
	world_fail("%s:%d: broken invariant: %s", file, line, expression);
}

_Noreturn void pin_check_misused(const struct pin_log *log, const char *format, ...)
{
	(void)log;
	world_fail("misuse: %s", format);
}

void pin_kernel_probe(struct pin_kernel *kernel)
{
	device_probe(kernel);
}

int pin_placement_prefer(void *memory, size_t bytes, uint32_t node_index)
{
	(void)memory;
	(void)bytes;
	(void)node_index;
	return 0;
}

int pin_placement_count_local(const void *memory, size_t bytes, size_t step, uint32_t node_index,
	size_t *out_local_count, size_t *out_count)
{
	(void)memory;
	(void)node_index;
	*out_count = bytes / step;
	*out_local_count = *out_count;
	return 0;
}

int pin_pages_populate(void *memory, size_t bytes)
{
	(void)memory;
	(void)bytes;
	return 0;
}

int pin_pages_count_huge(const void *memory, size_t bytes, size_t *out_huge_bytes)
{
	(void)memory;
	(void)bytes;
	*out_huge_bytes = 0;
	return 0;
}

int pin_pages_scan_huge(const void *memory, size_t bytes, size_t *out_huge_bytes)
{
	return pin_pages_count_huge(memory, bytes, out_huge_bytes);
}

int pin_pages_give_back(void *memory, size_t bytes)
{
	world_point();
	world_event("gives memory back", bytes, 0);
	device_check_unused(memory, bytes);
	return 0;
}

void pin_pages_keep_small(void *memory, size_t bytes)
{
	(void)memory;
	(void)bytes;
}

int pin_pages_collapse(void *memory, size_t bytes)
{
	(void)memory;
	(void)bytes;
	return -EINVAL;
}

uint32_t pin_pages_hugetlb_free(void)
{
	return 0;
}

void pin_memlimit_find(const char *root, struct pin_memlimit *out_limit)
{
	(void)root;
	*out_limit = (struct pin_memlimit){.limit_bytes = UINT64_MAX, .free_bytes = UINT64_MAX};
}

void pin_memlimit_lower_to_machine(const char *root, struct pin_memlimit *limit)
{
	(void)root;
	(void)limit;
}

void pin_file_leave_direct(const struct pinion_file *file)
{
	(void)file;
}

int pin_refuse(struct pin_refusal *why, int error, const char *format, ...)
{
	(void)why;
	(void)format;
	return error;
}

int pin_file_options_accept(struct pinion_file_options *out,
	const struct pinion_file_options *given, struct pin_refusal *why)
{
	(void)why;
	WORLD_CHECK(given == NULL);
	*out = (struct pinion_file_options){.flags = PINION_FILE_READ};
	return 0;
}

struct open_how pin_file_open_how(const struct pinion_file_options *options)
{
	(void)options;
	return (struct open_how){0};
}

/* Only of an open that ended with -ENXIO, as none does here. */
int pin_file_check_path(const struct pinion_file_options *options, const char *path)
{
	(void)options;
	(void)path;
	world_fail("an open ended with -ENXIO");
	return 0;
}

int pin_file_adopt_with(struct pinion_file *file, int fd, const struct pinion_file_options *options,
	struct pin_device_cache *cache)
{
	(void)options;
	(void)cache;
	WORLD_CHECK(fd == DISK_FD);
	disk_open(file);
	return 0;
}

int32_t pin_fallback_execute(const struct io_uring_sqe *sqe)
{
	if (sqe->opcode == PIN_FALLBACK_CANCELLED) {
		return -ECANCELED;
	}
	world_busy(disk_latency_ns());
	if (disk_waits(sqe->opcode) && world_random(2) == 0) {
		return -EAGAIN;
	}
	return disk_execute(sqe);
}

int32_t pin_fallback_execute_as_asked(const struct io_uring_sqe *sqe)
{
	return pin_fallback_execute(sqe);
}

void pin_fallback_rest(void)
{
}
