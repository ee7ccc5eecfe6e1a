/* SPDX-License-Identifier: MIT */
/*
 * Block devices, as sysfs describes them.
 */
#ifndef PIN_HOST_BLOCK_DEVICE_H
#define PIN_HOST_BLOCK_DEVICE_H

#include <linux/nvme_ioctl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pin_block {
	uint64_t device;    /* that of the whole disk, where it is a partition */
	bool is_rotational; /* it has heads to move */
	bool is_polled;	    /* it has queues that raise no interrupts */
};

/*
 * The disk of st_dev `device`. A device that is none of its own, as btrfs,
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

/* ---- block device nvme ---- */

/*
 * NVMe namespaces and their character devices, /dev/ngXnY: finds their
 * properties, and reads them by commands.
 *
 * Such a device has no file system and no page cache, and read(2) does not work
 * there: each read is a command that names blocks of the namespace, given to
 * the driver by ioctl(2), or by a ring's IORING_OP_URING_CMD (io/request.h).
 * The namespace itself (Identify) and the queue of its block device give the
 * limits of one command, and its blocks; the number of that block device also
 * identifies the disk, so that reads of a file there and reads of this device
 * count as one disk's.
 *
 * sysfs says which devices these are, so that none is opened to find out.
 *
 * Elsewhere: rings in io/nvme_command.c, opening in io/file.c.
 * Source: NVM Express Base and NVM Command Set specifications, 2.0: Identify
 * Namespace, Read, Status Code; include/uapi/linux/nvme_ioctl.h.
 */

enum {
	/* Of what Identify answers with. */
	PIN_NVME_IDENTIFY_BYTES = 4096,
	/* A command's field for its blocks has 16 bits, and 0 means one. */
	PIN_NVME_BLOCKS_MAX = 1 << 16,
};

struct pin_nvme {
	uint32_t namespace_id;
	uint32_t block_bytes; /* a power of two, 512 to 4096 */
	uint64_t size_bytes;
	uint32_t transfer_blocks; /* that one command may read */
	uint64_t device;	  /* the number of its block device; 0: it has none */
};

/*
 * Whether character device `number` (st_rdev) is such a namespace. `root` is
 * where /sys is, "" but for tests. Blocks, for some 20 us.
 */
bool pin_nvme_is(const char *root, uint64_t number);

/*
 * Fills in all but `namespace_id`, `transfer_blocks` and `device` from what
 * Identify Namespace has answered. -EMEDIUMTYPE: its blocks cannot be read
 * here, as they are larger than a page or have metadata.
 */
int pin_nvme_parse(const uint8_t *identity, struct pin_nvme *out);

/* Fills in the last two from sysfs. `name` is that of the device, "ng0n1". */
void pin_nvme_find_limits(const char *root, const char *name, struct pin_nvme *out);

/*
 * Asks an open one. Errors of ioctl(2): -EACCES, -EPERM: this user may not send
 * commands; -ENOTTY: it is no namespace; -EIO: it does not identify itself; and
 * as pin_nvme_parse().
 */
int pin_nvme_identify(int fd, uint64_t number, struct pin_nvme *out);

/*
 * What a command's status means, as the kernel has it for block devices:
 * negative errno; 0: it has succeeded. -EAGAIN: it may work when it is sent
 * once more.
 */
int pin_nvme_error(uint32_t status);

/* Reads whole blocks, at most `transfer_blocks`. */
void pin_nvme_read_command(struct nvme_uring_cmd *out, uint32_t namespace_id, void *bytes,
	uint64_t first_block, uint32_t block_count, uint32_t length_bytes);

/* The same by ioctl(2); blocks. 0 or a negative errno. */
int pin_nvme_read(int fd, const struct nvme_uring_cmd *command);

#endif
