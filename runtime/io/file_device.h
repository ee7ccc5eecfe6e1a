/* SPDX-License-Identifier: MIT */
/*
 * What a device asks of reads past the page cache: alignments, and how much it
 * transfers at once. It holds for all files of a file system, so a worker asks
 * once per device and remembers it.
 */
#ifndef PIN_IO_FILE_DEVICE_H
#define PIN_IO_FILE_DEVICE_H

#include "runtime/base/base.h"
#include "runtime/base/metrics.h"

#include <stdbool.h>

struct pin_device {
	uint64_t device;
	uint32_t memory_align_bytes; /* 0: no O_DIRECT here */
	uint32_t offset_align_bytes;
	uint32_t transfer_bytes; /* at once; 0: not known */
};

#define PIN_DEVICES_REMEMBERED 16u

/* [own] One worker's memory of devices; the oldest is forgotten first. */
struct pin_device_cache {
	struct pin_device devices[PIN_DEVICES_REMEMBERED];
	uint32_t count;
	uint32_t next;
	struct pin_meter *meter; /* counts what was chosen; NULL: nobody does */
	/*
	 * What the kernel may have and is not asked, see host/kernel_level.h.
	 */
	bool skips_dioalign;
	bool skips_cachestat;
	bool skips_dontcache;
};

/*
 * Of the device with that number, on which the file behind `fd` lies. A block
 * device that is the file itself (`is_file`) is asked anew: what holds for it
 * need not hold for the file system on it. `remembered` may be NULL.
 */
struct pin_device pin_device_find(
	struct pin_device_cache *remembered, int fd, uint64_t number, bool is_file);

#endif
