/* SPDX-License-Identifier: MIT */
/*
 * Goal: reads by NVMe commands are cut to the namespace and to one command, go
 * on until all is read, and end with what the device's status means; what a
 * ring refuses, or has no room for, goes by calls, which is remembered; writes
 * are refused. The facts of a namespace come from sysfs and from the answers of
 * Identify. G12. With a drive: tests/vm/commands_read_as_blocks.c.
 * Method: answers and a sysfs of the test's own; /dev/null, whose commands do
 * nothing and succeed where a ring gives them, and /dev/zero, which takes none;
 * neither knows NVMe's ioctl.
 */
#include "runtime/host/block_device.h"
#include "runtime/host/kernel.h"
#include "runtime/io/request.h"
#include "runtime/task/entry.h"
#include "tests/support/requests.h"
#include "tests/support/rings.h"
#include "tests/support/scratch.h"

#include <sys/sysmacros.h>
#include <sys/uio.h>

enum {
	LIMIT_SECONDS = 60,
	BLOCK = 512,
	BLOCKS_AT_ONCE = 8,
	NAMESPACE_BLOCKS = 100,
	MANY = 256,
};

static struct pinion_runtime *runtime;
static uint8_t *bytes;

/* ---- what a namespace is ---- */

static void describe(uint8_t *identity, uint8_t flbas, uint32_t index, uint8_t shift,
	uint16_t metadata, uint64_t blocks)
{
	uint8_t *format = identity + 128 + (size_t)index * 4;

	memset(identity, 0, PIN_NVME_IDENTIFY_BYTES);
	identity[26] = flbas;
	format[0] = (uint8_t)metadata;
	format[1] = (uint8_t)(metadata >> 8);
	format[2] = shift;
	for (uint32_t i = 0; i < 8; i++) {
		identity[i] = (uint8_t)(blocks >> (8 * i));
	}
}

static void check_identity(void)
{
	uint8_t *identity = malloc(PIN_NVME_IDENTIFY_BYTES);
	struct pin_nvme nvme = {0};
	int fd;

	expect_ready("memory", identity != NULL);
	describe(identity, 0x00, 0, 9, 0, 1000);
	expect_number("512", 0, pin_nvme_parse(identity, &nvme));
	expect_number("block", 512, nvme.block_bytes);
	expect_number("size", 512000, (long long)nvme.size_bytes);
	/* Format 17: bit 5 of FLBAS is 16, bit 0 is 1. */
	describe(identity, 0x21, 17, 12, 0, UINT64_C(1) << 40);
	expect_number("4096", 0, pin_nvme_parse(identity, &nvme));
	expect_number("block", 4096, nvme.block_bytes);
	expect_number("size", 1LL << 52, (long long)nvme.size_bytes);
	describe(identity, 0x00, 0, 12, 8, 1000);
	expect_number("metadata", -EMEDIUMTYPE, pin_nvme_parse(identity, &nvme));
	describe(identity, 0x00, 0, 12, 256, 1000);
	expect_number("metadata of 256", -EMEDIUMTYPE, pin_nvme_parse(identity, &nvme));
	describe(identity, 0x00, 0, 13, 0, 1000);
	expect_number("8192", -EMEDIUMTYPE, pin_nvme_parse(identity, &nvme));
	describe(identity, 0x00, 0, 0, 0, 1000);
	expect_number("no format", -EMEDIUMTYPE, pin_nvme_parse(identity, &nvme));
	describe(identity, 0x00, 0, 9, 0, UINT64_MAX);
	expect_number("too large", -EMEDIUMTYPE, pin_nvme_parse(identity, &nvme));
	expect_number("untouched", 1LL << 52, (long long)nvme.size_bytes);
	free(identity);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	expect_number("no such device", -ENOTTY, pin_nvme_identify(fd, makedev(1, 3), &nvme));
	close(fd);
}

static void put(const char *path, const char *text)
{
	unlink(path);
	scratch_file(path, text);
}

static struct pin_nvme limits_of(const char *name, uint32_t block_bytes)
{
	struct pin_nvme nvme = {.block_bytes = block_bytes};

	pin_nvme_find_limits(".", name, &nvme);
	return nvme;
}

static void check_sysfs(void)
{
	static const char *const folders[] = {"sys", "sys/dev", "sys/dev/char", "sys/class",
		"sys/class/nvme-generic", "sys/class/mem", "sys/class/block",
		"sys/class/block/nvme7n2", "sys/class/block/nvme7n2/queue", "sys/ng7n2",
		"sys/null"};
	struct pin_nvme nvme;

	for (size_t i = 0; i < PIN_ARRAY_COUNT(folders); i++) {
		expect_ready(folders[i], mkdir(folders[i], 0755) == 0);
	}
	expect_ready("links",
		symlink("../../ng7n2", "sys/dev/char/240:3") == 0 &&
			symlink("../class/nvme-generic", "sys/ng7n2/subsystem") == 0 &&
			symlink("../../null", "sys/dev/char/1:3") == 0 &&
			symlink("../class/mem", "sys/null/subsystem") == 0);
	expect_true("a namespace", pin_nvme_is(".", makedev(240, 3)));
	expect_true("another device", !pin_nvme_is(".", makedev(1, 3)));
	expect_true("none", !pin_nvme_is(".", makedev(240, 4)));
	nvme = limits_of("ng7n2", 512);
	expect_number("nothing is logged", 128 << 10, (long long)nvme.transfer_blocks * 512);
	expect_number("nor the disk", 0, (long long)nvme.device);
	put("sys/class/block/nvme7n2/dev", "259:6\n");
	put("sys/class/block/nvme7n2/queue/max_hw_sectors_kb", "512\n");
	nvme = limits_of("ng7n2", 4096);
	expect_number("of the queue", 128, nvme.transfer_blocks);
	expect_number("the disk", (long long)makedev(259, 6), (long long)nvme.device);
	put("sys/class/block/nvme7n2/queue/max_segments", "33\n");
	expect_number("of its segments", 32, limits_of("ng7n2", 4096).transfer_blocks);
	put("sys/class/block/nvme7n2/queue/max_segments", "127\n");
	put("sys/class/block/nvme7n2/queue/max_hw_sectors_kb", "2147483647\n");
	expect_number("of pages", 126, limits_of("ng7n2", 4096).transfer_blocks);
	put("sys/class/block/nvme7n2/queue/max_segments", "65535\n");
	expect_number("of a command", 65536, limits_of("ng7n2", 512).transfer_blocks);
	put("sys/class/block/nvme7n2/queue/max_hw_sectors_kb", "1\n");
	expect_number("never nothing", 1, limits_of("ng7n2", 4096).transfer_blocks);
}

static void check_status(void)
{
	static const struct {
		uint32_t status;
		int error;
	} known[] = {
		{0x0000, 0},
		{0x4001, -EOPNOTSUPP},
		{0x4002, -EOPNOTSUPP},
		{0x0007, -EAGAIN}, /* aborted: once more */
		{0x4007, -EIO},	   /* the device says no to that */
		{0x400b, -EOPNOTSUPP},
		{0x0021, -EAGAIN},
		{0x4080, -EREMOTEIO},
		{0x4081, -ENOSPC},
		{0x0082, -EAGAIN},
		{0x4083, -EBADE},
		{0x4181, -EILSEQ},
		{0x0281, -ENODATA}, /* a bad sector, however often */
		{0x4281, -ENODATA},
		{0x4282, -EILSEQ},
		{0x4286, -ENODATA},
		{0x0371, -EAGAIN},
		{0x4006, -EIO},
		{0x07ff, -EIO},
	};
	char what[32];

	for (size_t i = 0; i < PIN_ARRAY_COUNT(known); i++) {
		snprintf(what, sizeof(what), "status %x", known[i].status);
		expect_number(what, known[i].error, pin_nvme_error(known[i].status));
	}
	expect_number("done", 4096, pin_command_result(0, 4096));
	expect_number("the device's word", -ENODATA, pin_command_result(0x4281, 4096));
	expect_number("the kernel's", -EACCES, pin_command_result(-EACCES, 4096));
}

/* ---- reading ---- */

static struct pinion_file namespace_on(const char *path)
{
	struct pinion_file file = {
		.fd = open(path, O_RDONLY | O_CLOEXEC),
		.is_direct = 1,
		.memory_align_bytes = BLOCK,
		.offset_align_bytes = BLOCK,
		.size_bytes = NAMESPACE_BLOCKS * BLOCK,
		.allocated_bytes = NAMESPACE_BLOCKS * BLOCK,
		.inode = 1,
		.flags = PIN_FILE_COMMANDS | (BLOCKS_AT_ONCE - 1) << PIN_FILE_BLOCKS_SHIFT,
	};

	expect_ready(path, file.fd >= 0);
	return file;
}

static void check_cuts(void)
{
	struct pinion_file file = namespace_on("/dev/null");
	struct nvme_uring_cmd command;
	struct io_uring_sqe entries[2];

	expect_number("one", BLOCK, pin_command_length(&file, 0, BLOCK));
	expect_number("as many as go", BLOCKS_AT_ONCE * BLOCK,
		pin_command_length(&file, BLOCK, 50 * BLOCK));
	expect_number(
		"up to the end", 2 * BLOCK, pin_command_length(&file, 98 * BLOCK, 50 * BLOCK));
	expect_number("at the end", 0, pin_command_length(&file, 100 * BLOCK, BLOCK));
	expect_number("after it", 0, pin_command_length(&file, UINT64_C(1) << 63, BLOCK));
	pin_command_prepare(entries, &file, bytes, 7 * BLOCK, 3 * BLOCK, 5);
	memcpy(&command, entries->cmd, sizeof(command));
	expect_number("operation", IORING_OP_URING_CMD, entries->opcode);
	expect_number("command", (long long)NVME_URING_CMD_IO, entries->cmd_op);
	expect_number("registered", 5, entries->buf_index);
	expect_number("first", 7, command.cdw10);
	expect_number("blocks, less one", 2, command.cdw12);
	expect_number("bytes", 3 * BLOCK, command.data_len);
	file.size_bytes = UINT64_C(1) << 50;
	pin_command_prepare(entries, &file, bytes, (UINT64_C(1) << 43) + BLOCK, BLOCK, -1);
	memcpy(&command, entries->cmd, sizeof(command));
	expect_number("plain memory", 0, entries->uring_cmd_flags);
	expect_number("low part", 1, command.cdw10);
	expect_number("high part", 4, command.cdw11);
	pinion_file_close(&file);
}

static void start(uint32_t io_level, uint32_t without, uint32_t sharing, uint32_t entries)
{
	struct pinion_config config;

	runtimes_config(&config, sharing == PINION_RING_SHARED ? 2 : 1, io_level);
	runtimes_tuning.io_without |= without;
	runtimes_tuning.ring_sharing = sharing;
	runtimes_tuning.ring_entries = entries;
	/* The watchdog checks its rings all the while. */
	runtimes_tuning.cq_stall_us = 100;
	config.log = runtimes_note;
	runtimes_log[0] = '\0';
	runtime = NULL;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
}

static void end(void)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

static int64_t move(struct pinion_file *file, uint16_t op, uint64_t block, uint64_t count)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, op);

	request->file = file;
	request->bytes = bytes;
	request->offset_bytes = block * BLOCK;
	request->length_bytes = count * BLOCK;
	return requests_do(runtime, &one);
}

/* The same in two pieces. */
static int64_t move_pieces(struct pinion_file *file, uint16_t op, uint64_t block, uint64_t count)
{
	struct iovec vector[] = {{bytes + BLOCK, (count - 1) * BLOCK}, {bytes, BLOCK}};
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, op);

	request->file = file;
	request->vector = vector;
	request->vector_count = 2;
	request->offset_bytes = block * BLOCK;
	request->length_bytes = count * BLOCK;
	return requests_do(runtime, &one);
}

static long long commands_count(void)
{
	return (long long)runtimes_counters(runtime).ring_commands;
}

/* Nothing is said of commands; of memory and rings there may be something. */
static void expect_silence(const char *what)
{
	expect_true(what, strstr(runtimes_log, "NVMe commands") == NULL);
}

static bool has_sqe128_rings(void)
{
	return pin_kernel_has(&runtime->shared.kernel, PINION_IO_NVME_COMMANDS);
}

/* Whether this kernel's /dev/null takes commands. */
static bool check_ring(void)
{
	struct pinion_file file = namespace_on("/dev/null");
	int64_t result;
	bool takes;

	start(PINION_IO_AUTO, 0, PINION_RING_OWN, 256);
	result = move(&file, PINION_OP_READ, 0, 1);
	takes = result >= 0;
	printf("commands of a ring: %s, to /dev/null: %s\n", has_sqe128_rings() ? "yes" : "no",
		takes ? "yes" : "no");
	if (takes) {
		expect_number("one", BLOCK, result);
		expect_number("several commands", 25 * BLOCK, move(&file, PINION_OP_READ, 1, 25));
		expect_number("across the end", 5 * BLOCK, move(&file, PINION_OP_READ, 95, 50));
		expect_number("each to a ring, once", 3, commands_count());
		expect_number("of memory it does not know", 1 + 4 + 1,
			(long long)runtimes_counters(runtime).unregistered_reads);
		expect_silence("nothing to be said");
	} else {
		expect_number("by a call", -ENOTTY, result);
	}
	expect_number("at the end", 0, move(&file, PINION_OP_READ, 100, 1));
	expect_number("after it", 0, move(&file, PINION_OP_READ, 1 << 20, 1));
	expect_number("a write", -EROFS, move(&file, PINION_OP_WRITE, 0, 1));
	expect_number("in pieces, by calls", -ENOTTY, move_pieces(&file, PINION_OP_READV, 0, 3));
	expect_number("to no ring", takes ? 3 : 0, commands_count());
	expect_number("at the end", 0, move_pieces(&file, PINION_OP_READV, 100, 3));
	expect_number("a write", -EROFS, move_pieces(&file, PINION_OP_WRITEV, 0, 3));
	pinion_file_close(&file);
	end();
	return takes;
}

/* Refused once, a worker does not ask again. */
static void check_refused(void)
{
	struct pinion_file file = namespace_on("/dev/zero");

	start(PINION_IO_AUTO, 0, PINION_RING_OWN, 256);
	expect_number("by a call, then", -ENOTTY, move(&file, PINION_OP_READ, 0, 20));
	expect_number("asked", has_sqe128_rings() ? 1 : 0, commands_count());
	expect_number("by a call", -ENOTTY, move(&file, PINION_OP_READ, 0, 1));
	expect_number("not again", has_sqe128_rings() ? 1 : 0, commands_count());
	pinion_file_close(&file);
	end();
}

static void check_calls(uint32_t io_level, uint32_t without, uint32_t sharing)
{
	struct pinion_file file = namespace_on("/dev/null");

	start(io_level, without, sharing, 256);
	expect_number("by a call", -ENOTTY, move(&file, PINION_OP_READ, 0, 1));
	expect_number("at the end", 0, move(&file, PINION_OP_READ, 100, 1));
	expect_number("a write", -EROFS, move(&file, PINION_OP_WRITE, 0, 1));
	expect_number("to no ring", 0, commands_count());
	expect_silence("as was asked");
	pinion_file_close(&file);
	end();
}

/* A kernel that has rings, but none of 128-byte entries. */
static void check_too_old(void)
{
	struct pinion_file file = namespace_on("/dev/null");
	const struct pinion_config *config;
	struct requests_one one;

	start(PINION_IO_AUTO, 0, PINION_RING_OWN, 256);
	/* The worker has read its features by the time it ends a request. */
	requests_begin(&one, PINION_OP_NOP);
	expect_number("a NOP", 0, requests_do(runtime, &one));
	runtime->shared.kernel.features &= ~(uint32_t)PINION_IO_NVME_COMMANDS;
	config = &runtime->shared.config;
	expect_number("by a call", -ENOTTY, move(&file, PINION_OP_READ, 0, 1));
	expect_number("again", -ENOTTY, move(&file, PINION_OP_READ, 0, 1));
	if ((pin_level_struck(config->io_level, runtimes_tuning.io_without) &
		    PINION_IO_NVME_COMMANDS) == 0) {
		expect_true("a message says so, with the command that helps",
			strstr(runtimes_log, "NVMe commands one at a time") != NULL &&
				strstr(runtimes_log, "Linux 5.19") != NULL &&
				strstr(runtimes_log, "block device") != NULL);
	}
	pinion_file_close(&file);
	end();
}

/* ---- more than the ring holds ---- */

static struct requests_one many[MANY];
static struct pinion_file many_file;

static int submit_many(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < MANY; i++) {
		expect_number("submit", 0, pinion_request_submit(runtime, &many[i].request));
	}
	return 0;
}

static void check_full(void)
{
	struct pinion_task task = {.run = submit_many};
	long long by_ring = 0;

	many_file = namespace_on("/dev/null");
	for (uint32_t i = 0; i < MANY; i++) {
		struct pinion_request *request = requests_begin(&many[i], PINION_OP_READ);

		request->file = &many_file;
		/* All of them read nothing, so they may share it. */
		request->bytes = bytes;
		request->length_bytes = BLOCK;
	}
	start(PINION_IO_AUTO, 0, PINION_RING_OWN, 8);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	for (uint32_t i = 0; i < MANY; i++) {
		int64_t result;

		tasks_await(&many[i].entered, 1);
		result = many[i].request.result;
		by_ring += result == BLOCK;
		if (result != BLOCK) {
			expect_number("by a call", -ENOTTY, result);
		}
	}
	expect_number("what the ring held", runtime->shared.workers[0].sqe128.credit, by_ring);
	expect_number("counted", by_ring, commands_count());
	end();
	pinion_file_close(&many_file);
}

/* ---- refused by the kernel ---- */

static void check_ring_refused(void)
{
	struct pin_ring_options options = {
		.entries = 8, .helper_count = 1, .is_sqe128 = true, .kernel = &rings_kernel};

	(void)rings_expect_refused(&options, IORING_SETUP_SQE128);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("commands");
	bytes = aligned_alloc(4096, 128 << 10);
	expect_ready("memory", bytes != NULL);
	check_identity();
	check_sysfs();
	check_status();
	check_cuts();
	check_calls(PINION_IO_FALLBACK, 0, PINION_RING_OWN);
	check_calls(PINION_IO_AUTO, PINION_IO_NVME_COMMANDS, PINION_RING_OWN);
	check_calls(PINION_IO_AUTO, 0, PINION_RING_SHARED);
	if (check_ring()) {
		check_full();
	}
	check_refused();
	scratch_leave();
	rings_require();
	check_too_old();
	check_ring_refused();
	free(bytes);
	return expect_status();
}
