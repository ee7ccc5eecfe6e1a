/* SPDX-License-Identifier: MIT */
/*
 * Facts about block devices and NVMe namespaces, from sysfs and from the device
 * itself.
 *
 * Called when a file of a device is first opened or used, and by `pinion
 * doctor`. `root` is "" or a test's copy of sysfs.
 *
 * Invariant: sysfs may be missing or wrong, so each fact has a cautious value.
 */
#include "runtime/host/block_device.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

enum {
	/* From a namespace by its controller to the port. */
	NODE_LEVELS = 4,
};

int pin_block_read_numbers(const char *path, unsigned *out_first, unsigned *out_second)
{
	FILE *stream = fopen(path, "re");
	int count;

	if (stream == NULL) {
		return 0;
	}
	count = fscanf(stream, "%u:%u", out_first, out_second);
	PIN_DCHECK(count <= 2);
	fclose(stream);
	return count < 0 ? 0 : count;
}

static int read_numbers(const char *root, uint64_t device, const char *name, unsigned *out_first,
	unsigned *out_second)
{
	char path[1024];
	int length = snprintf(path, sizeof(path), "%s/sys/dev/block/%u:%u/%s", root,
		major((dev_t)device), minor((dev_t)device), name);

	PIN_CHECK(length > 0 && (size_t)length < sizeof(path)); /* a cut one is another's */
	return pin_block_read_numbers(path, out_first, out_second);
}

/* A partition's facts are those of its disk, one folder up. */
struct pin_block pin_block_find(const char *root, uint64_t device)
{
	struct pin_block block = {.device = device};
	unsigned first = 0;
	unsigned second = 0;

	/* Major 0 is for files without a device. */
	if (major((dev_t)device) == 0) {
		return block;
	}
	if (read_numbers(root, device, "partition", &first, &second) == 1 &&
		read_numbers(root, device, "../dev", &first, &second) == 2) {
		block.device = makedev(first, second);
	}
	if (read_numbers(root, block.device, "queue/rotational", &first, &second) == 1) {
		block.is_rotational = first == 1;
	}
	if (read_numbers(root, block.device, "queue/io_poll", &first, &second) == 1) {
		block.is_polled = first == 1;
	}
	return block;
}

/* Of the queue; that of a partition is its disk's, one level up. */
static unsigned read_limit(const char *root, uint64_t device, const char *name)
{
	static const char *const folders[] = {"queue", "../queue"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char file[64];
		unsigned first = 0;
		unsigned second = 0;
		int length = snprintf(file, sizeof(file), "%s/%s", folders[i], name);

		PIN_CHECK(length > 0 && (size_t)length < sizeof(file));
		if (read_numbers(root, device, file, &first, &second) == 1) {
			return first;
		}
	}
	return 0;
}

uint32_t pin_block_transfer_bytes(const char *root, uint64_t device)
{
	uint64_t bytes;
	unsigned preferred;

	if (major((dev_t)device) == 0) {
		return 0;
	}
	bytes = (uint64_t)read_limit(root, device, "max_sectors_kb") << 10;
	bytes = bytes < UINT32_MAX ? bytes : UINT32_MAX & ~UINT32_C(4095);
	preferred = read_limit(root, device, "optimal_io_size");
	if (preferred != 0 && preferred <= bytes) {
		bytes -= bytes % preferred;
	}
	PIN_CHECK(bytes <= UINT32_MAX);
	return (uint32_t)bytes;
}

/* The node of the controller: the first device on the way up that has one. */
int32_t pin_block_node(const char *root, uint64_t device)
{
	struct pin_block block = pin_block_find(root, device);
	char name[64] = "device/";
	unsigned first = 0;
	unsigned second = 0;

	if (major((dev_t)block.device) == 0) {
		return -1;
	}
	/* A disk's controller may be some devices above: the first to know. */
	for (uint32_t i = 0; i < NODE_LEVELS; i++) {
		size_t length = strlen(name);

		PIN_DCHECK(length + sizeof("numa_node") <= sizeof(name));
		snprintf(name + length, sizeof(name) - length, "numa_node");
		if (read_numbers(root, block.device, name, &first, &second) == 1) {
			/* Said to be -1 where it belongs to no node. */
			return first <= INT32_MAX ? (int32_t)first : -1;
		}
		snprintf(name + length, sizeof(name) - length, "../");
	}
	return -1;
}

/* ---- NVMe ---- */

/* Identify, Read and the facts of sysfs. */

enum {
	/* Of paths in sysfs, and of where links there lead. */
	PATH_BYTES = 512,
	NAME_BYTES = 64,
	OPCODE_READ = 0x02,	/* of a namespace */
	OPCODE_IDENTIFY = 0x06, /* of the controller */
	/* Offsets in the answer to Identify Namespace. */
	AT_SIZE = 0,	/* NSZE, in blocks */
	AT_FORMAT = 26, /* FLBAS: which of the formats is in use */
	AT_FORMATS = 128,
	FORMAT_BYTES = 4, /* metadata size, log2 of the block size, … */
	BLOCK_SHIFT_MIN = 9,
	BLOCK_SHIFT_MAX = 12, /* a page: windows start at pages */
	/*
	 * Where sysfs has no limit: every controller with a page of 4 KiB takes
	 * this, and no known limit is smaller.
	 */
	TRANSFER_BYTES = 128 << 10,
};

/* ---- sysfs ---- */

/* The last part of where a link leads; "" if there is none, or it is long. */
static void read_link_name(const char *path, char out[NAME_BYTES])
{
	char target[PATH_BYTES];
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	const char *last;

	PIN_CHECK(length < (ssize_t)sizeof(target)); /* the terminator fits */
	out[0] = '\0';
	if (length > 0) {
		target[length] = '\0';
		last = strrchr(target, '/');
		last = last != NULL ? last + 1 : target;
		if (strlen(last) < NAME_BYTES) {
			memcpy(out, last, strlen(last) + 1);
		}
	}
}

static void char_device_path(const char *root, uint64_t number, const char *name, char *out)
{
	int length = snprintf(out, PATH_BYTES, "%s/sys/dev/char/%u:%u%s", root,
		major((dev_t)number), minor((dev_t)number), name);

	PIN_CHECK(length > 0 && length < PATH_BYTES); /* a cut one is another's */
}

bool pin_nvme_is(const char *root, uint64_t number)
{
	char path[PATH_BYTES];
	char class_name[NAME_BYTES];

	char_device_path(root, number, "/subsystem", path);
	read_link_name(path, class_name);
	return strcmp(class_name, "nvme-generic") == 0;
}

static int read_disk_numbers(const char *root, const char *disk, const char *name,
	unsigned *out_first, unsigned *out_second)
{
	char path[PATH_BYTES];
	int length = snprintf(path, sizeof(path), "%s/sys/class/block/%s/%s", root, disk, name);

	PIN_CHECK(length > 0 && length < PATH_BYTES);
	return pin_block_read_numbers(path, out_first, out_second);
}

/*
 * How much one command may move, from the limits that sysfs lists for the
 * namespace's block device; without one a size that every controller takes.
 */
void pin_nvme_find_limits(const char *root, const char *name, struct pin_nvme *out)
{
	uint64_t bytes = TRANSFER_BYTES;
	uint64_t blocks;
	char disk[NAME_BYTES + 2];
	unsigned kib = 0;
	unsigned segments = 0;
	unsigned first = 0;
	unsigned second = 0;

	PIN_CHECK(pin_is_power_of_two(out->block_bytes));
	PIN_CHECK(strlen(name) < NAME_BYTES);
	out->device = 0;
	if (strncmp(name, "ng", 2) == 0) {
		snprintf(disk, sizeof(disk), "nvme%s", name + 2);
		if (read_disk_numbers(root, disk, "dev", &first, &second) == 2) {
			out->device = makedev(first, second);
		}
		if (read_disk_numbers(root, disk, "queue/max_hw_sectors_kb", &kib, &second) >= 1 &&
			kib > 0) {
			bytes = (uint64_t)kib << 10;
		}
		/* Each page may be one, and one more if it is unaligned. */
		if (read_disk_numbers(root, disk, "queue/max_segments", &segments, &second) >= 1 &&
			segments > 1 && (uint64_t)(segments - 1) * PIN_PAGE_BYTES < bytes) {
			bytes = (uint64_t)(segments - 1) * PIN_PAGE_BYTES;
		}
	}
	blocks = bytes / out->block_bytes;
	blocks = blocks < PIN_NVME_BLOCKS_MAX ? blocks : PIN_NVME_BLOCKS_MAX;
	out->transfer_blocks = blocks > 0 ? (uint32_t)blocks : 1;
	PIN_DCHECK(out->transfer_blocks <= PIN_NVME_BLOCKS_MAX);
}

/* ---- the namespace ---- */

static uint64_t read_u64(const uint8_t *bytes)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--) {
		value = value << 8 | bytes[i];
	}
	return value;
}

/*
 * Reads the size and block format from the answer to an Identify command;
 * formats with metadata are refused.
 */
int pin_nvme_parse(const uint8_t *identity, struct pin_nvme *out)
{
	uint64_t blocks = read_u64(identity + AT_SIZE);
	uint8_t flbas = identity[AT_FORMAT];
	/* Bits 6 and 5 continue bits 3 to 0. */
	uint32_t index = (flbas & 0xfu) | (uint32_t)(flbas >> 1 & 0x30u);
	const uint8_t *format = identity + AT_FORMATS + (size_t)index * FORMAT_BYTES;
	uint32_t metadata_bytes = (uint32_t)(format[0] | format[1] << 8);
	uint32_t shift = format[2];

	PIN_CHECK(format + FORMAT_BYTES <= identity + PIN_NVME_IDENTIFY_BYTES);
	/*
	 * Metadata in a buffer of its own could be left out; the kernel asks
	 * for that buffer all the same, or for the bytes between the blocks.
	 */
	if (shift < BLOCK_SHIFT_MIN || shift > BLOCK_SHIFT_MAX || metadata_bytes != 0 ||
		blocks > (uint64_t)INT64_MAX >> shift) {
		return -EMEDIUMTYPE;
	}
	out->block_bytes = 1u << shift;
	out->size_bytes = blocks << shift;
	PIN_DCHECK(out->size_bytes / out->block_bytes == blocks);
	PIN_DCHECK(out->size_bytes <= INT64_MAX);
	return 0;
}

/* A status, or a negative errno. */
static int identify(int fd, uint32_t namespace_id, uint8_t *answer)
{
	struct nvme_passthru_cmd command = {
		.opcode = OPCODE_IDENTIFY,
		.nsid = namespace_id,
		.addr = (uintptr_t)answer,
		.data_len = PIN_NVME_IDENTIFY_BYTES,
	};
	int rc = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &command);

	PIN_DCHECK((uintptr_t)answer % PIN_PAGE_BYTES == 0);
	return rc < 0 ? -errno : rc;
}

/*
 * Asks the device itself, as sysfs lists no block size for a character device.
 */
int pin_nvme_identify(int fd, uint64_t number, struct pin_nvme *out)
{
	uint8_t *answer;
	char path[PATH_BYTES];
	char name[NAME_BYTES];
	int rc = ioctl(fd, NVME_IOCTL_ID);

	if (rc < 0) {
		return -errno;
	}
	*out = (struct pin_nvme){.namespace_id = (uint32_t)rc};
	answer = aligned_alloc(PIN_PAGE_BYTES, PIN_NVME_IDENTIFY_BYTES);
	if (answer == NULL) {
		return -ENOMEM;
	}
	rc = identify(fd, out->namespace_id, answer);
	if (rc == 0) {
		rc = pin_nvme_parse(answer, out);
	} else if (rc > 0) {
		rc = -EIO;
	}
	free(answer);
	PIN_CHECK(rc <= 0);
	if (rc < 0) {
		return rc;
	}
	char_device_path("", number, "", path);
	read_link_name(path, name);
	pin_nvme_find_limits("", name, out);
	return 0;
}

/* ---- commands ---- */

enum {
	/* Of the status, the code and its type; the bits above are flags. */
	STATUS_MASK = 0x7ff,
	STATUS_DO_NOT_RETRY = 0x4000,
};

/*
 * The errors that the kernel's NVMe driver gives a read of the block device
 * with the same status.
 */
int pin_nvme_error(uint32_t status)
{
	static const struct {
		uint16_t first;
		uint16_t last;
		bool may_retry; /* unless the device says no */
		int error;
	} errors[] = {
		{0x000, 0x000, false, 0}, {0x001, 0x002, false, EOPNOTSUPP}, /* opcode, field */
		{0x007, 0x008, true, EIO},	   /* aborted: by request, with its queue */
		{0x00b, 0x00b, false, EOPNOTSUPP}, /* namespace or format */
		{0x021, 0x021, true, EREMOTEIO},   /* interrupted */
		{0x080, 0x080, false, EREMOTEIO},  /* beyond the last block */
		{0x081, 0x081, false, ENOSPC},	   /* capacity */
		{0x082, 0x082, true, EREMOTEIO},   /* not ready */
		{0x083, 0x083, false, EBADE},	   /* reserved for another host */
		{0x181, 0x181, false, EILSEQ},	   /* protection information */
		{0x281, 0x281, false, ENODATA},	   /* unrecovered read error */
		{0x282, 0x284, false, EILSEQ},	   /* guard, application tag, reference tag */
		{0x286, 0x287, false, ENODATA},	   /* access denied, deallocated block */
		{0x370, 0x371, true, ENOLINK},	   /* host path: error, aborted */
	};
	uint32_t code = status & STATUS_MASK;

	for (size_t i = 0; i < PIN_ARRAY_COUNT(errors); i++) {
		PIN_DCHECK(errors[i].first <= errors[i].last);
		if (code >= errors[i].first && code <= errors[i].last) {
			return errors[i].may_retry && (status & STATUS_DO_NOT_RETRY) == 0
				? -EAGAIN
				: -errors[i].error;
		}
	}
	return -EIO;
}

void pin_nvme_read_command(struct nvme_uring_cmd *out, uint32_t namespace_id, void *bytes,
	uint64_t first_block, uint32_t block_count, uint32_t length_bytes)
{
	PIN_CHECK(block_count > 0 && block_count <= PIN_NVME_BLOCKS_MAX);
	PIN_CHECK(length_bytes % block_count == 0);
	PIN_DCHECK(pin_is_power_of_two(length_bytes / block_count));
	*out = (struct nvme_uring_cmd){
		.opcode = OPCODE_READ,
		.nsid = namespace_id,
		.addr = (uintptr_t)bytes,
		.data_len = length_bytes,
		.cdw10 = (uint32_t)first_block,
		.cdw11 = (uint32_t)(first_block >> 32),
		.cdw12 = block_count - 1,
	};
}

int pin_nvme_read(int fd, const struct nvme_uring_cmd *command)
{
	struct nvme_passthru_cmd64 order = {
		.opcode = command->opcode,
		.nsid = command->nsid,
		.addr = command->addr,
		.data_len = command->data_len,
		.cdw10 = command->cdw10,
		.cdw11 = command->cdw11,
		.cdw12 = command->cdw12,
	};
	int rc = ioctl(fd, NVME_IOCTL_IO64_CMD, &order);

	PIN_DCHECK(command->opcode == OPCODE_READ); /* none that writes */
	return rc < 0 ? -errno : pin_nvme_error((uint32_t)rc);
}
