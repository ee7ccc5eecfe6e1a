/* SPDX-License-Identifier: MIT */
/*
 * Block devices, as sysfs tells of them.
 */
#ifndef PIN_HOST_BLOCK_DEVICE_H
#define PIN_HOST_BLOCK_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct pin_block {
	uint64_t device;    /* that of the whole disk, where it is a partition */
	bool is_rotational; /* it has heads to move */
	bool is_polled;	    /* it has queues that raise no interrupts */
};

/*
 * What is behind st_dev `device`. A device that is none of its own, as btrfs,
 * overlay and network file systems have, is itself, neither rotational nor
 * polled. `root` is where /sys is, "" but for tests. Blocks, for some 50 us.
 */
struct pin_block pin_block_find(const char *root, uint64_t device);

/*
 * How much a device does in one go, in bytes: what the kernel splits at, as a
 * multiple of what the device prefers; 0: not known. `device` may be a
 * partition. Blocks, for some 20 us.
 */
uint32_t pin_block_transfer_bytes(const char *root, uint64_t device);

/*
 * The NUMA node that `device` is attached to, or that of the controller above
 * it, by its index; -1: not known, as where there is one node only. Blocks, for
 * some 50 us.
 */
int32_t pin_block_node(const char *root, uint64_t device);

/* The numbers that a file of sysfs holds, two with a colon or one; how many. */
int pin_block_read_numbers(const char *path, unsigned *out_first, unsigned *out_second);

#endif
