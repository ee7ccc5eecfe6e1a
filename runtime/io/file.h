/* SPDX-License-Identifier: MIT */
/*
 * Finding out how an open file is best read: alignment, size, whether its data
 * is cached, whether O_DIRECT works.
 *
 * What holds for a whole file system is asked once per device and remembered
 * by the worker; what differs from file to file is asked each time.
 */
#ifndef PIN_IO_FILE_H
#define PIN_IO_FILE_H

#include "runtime/base/base.h"

#include <pinion/file.h>
#include <stdbool.h>

/* Bits of pinion_file.flags. */
enum {
	/*
	 * Nothing of it was cached: what a buffered read brings in is dropped.
	 */
	PIN_FILE_EVICT = 1,
	/* Fewer blocks than its size needs: it has holes. */
	PIN_FILE_SPARSE = 2,
};

struct pin_device {
	uint64_t device;
	uint32_t memory_align_bytes; /* 0: no O_DIRECT here */
	uint32_t offset_align_bytes;
};

#define PIN_DEVICES_REMEMBERED 16u

/* [own] One worker's memory of devices; the oldest is forgotten first. */
struct pin_device_cache {
	struct pin_device devices[PIN_DEVICES_REMEMBERED];
	uint32_t count;
	uint32_t next;
};

/* Flags with which a file that may turn out to be anything is opened. */
int pin_file_open_flags(bool follow_links);

/*
 * Looks at what a path leads to without opening it: 0 for a regular file and a
 * directory, -ENOTSUP for anything else; other errors as stat(2).
 */
int pin_file_check_kind(const char *path);

/*
 * Fills `file` for an open descriptor, which it takes over; on failure the
 * descriptor is closed. `cache` may be NULL. Errors as pinion_file_open().
 */
int pin_file_adopt(
	struct pinion_file *file, int fd, uint32_t direct, struct pin_device_cache *cache);

/* Leaves O_DIRECT for this descriptor, for all who use it. */
void pin_file_leave_direct(const struct pinion_file *file);

#endif
