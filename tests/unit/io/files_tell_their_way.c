/* SPDX-License-Identifier: MIT */
/*
 * Goal: what auto has chosen, and why, is said by the file and counted by the
 * runtime whose worker opened it; and how much its device does in one go is
 * what sysfs says. G3.
 * Method: one file of each kind, with every choice, opened by requests; sysfs
 * trees made here.
 */
#include "tests/support/cached.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include "runtime/host/block_device.h"

#include <sys/sysmacros.h>

enum {
	SIZE = 64 << 10,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;

static struct pinion_file open_by_request(const char *path, uint32_t direct)
{
	struct pinion_file_options options;
	struct pinion_file file = {.fd = -1};
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_OPEN);

	pinion_file_options_init(&options);
	options.direct = direct;
	request->file = &file;
	request->path = path;
	request->options = &options;
	expect_number(path, 0, requests_do(runtime, &one));
	return file;
}

/* Each by a counter of its own. */
static uint64_t count_of(const struct pinion_runtime_stats *counters, uint32_t way)
{
	const uint64_t counts[] = {0, counters->files_direct, counters->files_asked,
		counters->files_cached, counters->files_empty, counters->files_unable};

	return counts[way];
}

static void check(const char *path, uint32_t direct, uint32_t way)
{
	struct pinion_runtime_stats before = runtimes_counters(runtime);
	struct pinion_file file = open_by_request(path, direct);
	struct pinion_runtime_stats after = runtimes_counters(runtime);

	expect_number(path, way, file.way);
	expect_number("direct", way == PINION_WAY_DIRECT, file.is_direct);
	for (uint32_t i = 1; i <= PINION_WAY_UNABLE; i++) {
		expect_number("counted", i == way ? 1 : 0,
			(long long)(count_of(&after, i) - count_of(&before, i)));
	}
	if (file.is_direct == 0) {
		expect_number("no device of its own", 0, file.transfer_bytes);
	} else {
		expect_number("as sysfs says", pin_block_transfer_bytes("", file.device),
			file.transfer_bytes);
	}
	pinion_file_close(&file);
}

static void make_file(void)
{
	static char bytes[SIZE];
	int fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);

	expect_ready("write", fd >= 0 && write(fd, bytes, SIZE) == SIZE && fsync(fd) == 0);
	close(fd);
	scratch_file("empty", "");
}

static void check_ways(void)
{
	struct pinion_file file;
	bool has_direct;

	make_file();
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_ALWAYS));
	has_direct = file.is_direct != 0;
	posix_fadvise(file.fd, 0, 0, POSIX_FADV_WILLNEED);
	pinion_file_close(&file);
	check("file", PINION_DIRECT_NEVER, PINION_WAY_ASKED);
	check("file", PINION_DIRECT_ALWAYS, has_direct ? PINION_WAY_DIRECT : PINION_WAY_UNABLE);
	check("empty", PINION_DIRECT_AUTO, PINION_WAY_EMPTY);
	check("empty", PINION_DIRECT_ALWAYS, PINION_WAY_EMPTY);
	check("/proc/self/status", PINION_DIRECT_AUTO, PINION_WAY_EMPTY);
	if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) == 0) {
		check("/sys/kernel/mm/transparent_hugepage/enabled", PINION_DIRECT_ALWAYS,
			PINION_WAY_UNABLE);
	}
}

/* The state of the cache is not ours to say; the file has it. */
static void check_auto(void)
{
	struct pinion_file file;
	uint32_t way;
	void *kept;

	/* Nor may it change meanwhile. */
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	kept = cached_keep(file.fd, SIZE);
	pinion_file_close(&file);
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_AUTO));
	way = file.cached_percent >= 50 && file.cached_percent <= 100 ? PINION_WAY_CACHED
		: file.is_direct != 0				      ? PINION_WAY_DIRECT
								      : PINION_WAY_UNABLE;
	expect_number("auto", way, file.way);
	pinion_file_close(&file);
	check("file", PINION_DIRECT_AUTO, way);
	cached_let_go(kept, SIZE);
}

static void make_limits(const char *folder, const char *most_kb, const char *preferred)
{
	char path[512];

	snprintf(path, sizeof(path), "mkdir -p root/sys/dev/block/%s/queue", folder);
	expect_ready("mkdir", system(path) == 0);
	snprintf(path, sizeof(path), "root/sys/dev/block/%s/queue/max_sectors_kb", folder);
	scratch_file(path, most_kb);
	snprintf(path, sizeof(path), "root/sys/dev/block/%s/queue/optimal_io_size", folder);
	scratch_file(path, preferred);
}

static void check_limits(void)
{
	make_limits("8:0", "1280\n", "0\n");
	make_limits("8:16", "1280\n", "524288\n");
	make_limits("8:32", "512\n", "1048576\n");
	make_limits("8:48", "4294967295\n", "0\n");
	/* sysfs has links where this has folders. */
	expect_ready("a partition",
		system("mkdir -p root/sys/dev/block/part/sda1 && "
		       "ln -s part/sda1 root/sys/dev/block/8:1") == 0);
	make_limits("part", "256\n", "0\n");
	expect_number(
		"the unit of splits", 1280 << 10, pin_block_transfer_bytes("root", makedev(8, 0)));
	expect_number(
		"whole stripes", 1024 << 10, pin_block_transfer_bytes("root", makedev(8, 16)));
	expect_number("no whole one", 512 << 10, pin_block_transfer_bytes("root", makedev(8, 32)));
	expect_number("of blocks", 0, pin_block_transfer_bytes("root", makedev(8, 48)) % 4096);
	expect_number("its disk's", 256 << 10, pin_block_transfer_bytes("root", makedev(8, 1)));
	expect_number("nothing known", 0, pin_block_transfer_bytes("root", makedev(8, 64)));
	expect_number("no device", 0, pin_block_transfer_bytes("root", makedev(0, 40)));
}

/* Links as sysfs has them: a disk's controller is some devices above it. */
static void make_node(const char *number, const char *disk, const char *knows, const char *node)
{
	char path[512];

	snprintf(path, sizeof(path),
		"mkdir -p root/%s/block && ln -s .. root/%s/block/device && "
		"ln -s ../../../%s/block root/sys/dev/block/%s",
		disk, disk, disk, number);
	expect_ready("a disk", system(path) == 0);
	snprintf(path, sizeof(path), "root/%s/numa_node", knows);
	if (node != NULL) {
		scratch_file(path, node);
	}
}

static void check_nodes(void)
{
	struct pinion_file file = {.device = makedev(0, 40)};

	make_node("9:0", "pci0/nvme0/disk", "pci0", "3\n");
	expect_ready("a partition of it",
		system("mkdir root/pci0/nvme0/disk/block/part && "
		       "ln -s ../../../pci0/nvme0/disk/block/part root/sys/dev/block/9:4") == 0);
	scratch_file("root/pci0/nvme0/disk/block/part/partition", "1\n");
	scratch_file("root/pci0/nvme0/disk/block/dev", "9:0\n");
	make_node("9:1", "pci1/disk", "pci1/disk", "1\n");
	make_node("9:2", "pci2/disk", "pci2", "-1\n");
	make_node("9:3", "pci3/disk", "pci3", NULL);
	expect_number("of the layer above the disk", 3, pin_block_node("root", makedev(9, 0)));
	expect_number("the nearest", 1, pin_block_node("root", makedev(9, 1)));
	expect_number("of none", -1, pin_block_node("root", makedev(9, 2)));
	expect_number("not said", -1, pin_block_node("root", makedev(9, 3)));
	expect_number("a partition's disk", 3, pin_block_node("root", makedev(9, 4)));
	expect_number("no device", -ENODATA, pinion_file_node(&file));
}

static void check_level(uint32_t io_level)
{
	runtime = runtimes_start(1, io_level);
	check_ways();
	check_auto();
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	expect_ready("unlink", unlink("file") == 0 && unlink("empty") == 0);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("files_tell_their_way");
	check_limits();
	check_nodes();
	check_level(PINION_IO_FALLBACK);
	check_level(PINION_IO_AUTO);
	scratch_leave();
	return expect_status();
}
