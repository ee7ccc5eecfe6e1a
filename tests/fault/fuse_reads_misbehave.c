/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file system that delays, shortens, interrupts and refuses reads costs
 * time and nothing else; one that fails them fails its file with that error;
 * one that dies meanwhile fails what is in flight. Each file ends once, what is
 * done has every byte, nothing hangs, with and without rings. REQ-4, W16.
 * Method: a FUSE server in a child, speaking the kernel's protocol, one kind of
 * misbehaviour for each file. Needs root and /dev/fuse; mounts in a namespace
 * of its own.
 */
#include "tests/support/requests.h"
#include "tests/support/scans.h"

#include <errno.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum kind {
	KIND_HONEST,
	KIND_SHORT,	  /* half of what was asked for, but a byte at least */
	KIND_FAILS,	  /* EIO from a certain offset on */
	KIND_INTERRUPTED, /* EINTR at the first attempt */
	KIND_LATE,
	KIND_BUSY, /* EAGAIN at the first attempt */
	KIND_DIES, /* the server, at the first read */
	KIND_COUNT,
};

enum {
	SIZE = 70001,
	FAILS_FROM = 40000,
	LATE_MS = 20,
	REQUEST_BYTES_MAX = 1 << 17,
	WINDOW = 16 << 10,
	LIMIT_SECONDS = 90,
};

/* ---- the server ---- */

static int server_fd;
static uint32_t read_count; /* the first attempt is every other one */

static void answer(uint64_t unique, int error, const void *bytes, size_t length)
{
	static uint8_t message[sizeof(struct fuse_out_header) + REQUEST_BYTES_MAX];
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + length),
		.error = error,
		.unique = unique,
	};

	memcpy(message, &header, sizeof(header));
	if (length > 0) {
		memcpy(message + sizeof(header), bytes, length);
	}
	/* ENOENT: it was interrupted and nobody waits for the answer. */
	if (write(server_fd, message, header.len) < 0 && errno != ENOENT) {
		_exit(1);
	}
}

static struct fuse_attr attributes_of(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.size = node == FUSE_ROOT_ID ? 0 : SIZE,
		.blocks = node == FUSE_ROOT_ID ? 0 : (SIZE + 511) / 512,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
		.nlink = 1,
		.blksize = 4096,
	};
}

static void look_up(const struct fuse_in_header *request, const char *name)
{
	uint64_t node = FUSE_ROOT_ID + 1 + strtoul(name, NULL, 10);
	struct fuse_entry_out entry = {.nodeid = node, .generation = 1};

	if (node > FUSE_ROOT_ID + KIND_COUNT) {
		answer(request->unique, -ENOENT, NULL, 0);
		return;
	}
	entry.attr = attributes_of(node);
	answer(request->unique, 0, &entry, sizeof(entry));
}

static void serve_read(const struct fuse_in_header *request, const struct fuse_read_in *asked)
{
	enum kind kind = (enum kind)(request->nodeid - FUSE_ROOT_ID - 1);
	const struct timespec late = {.tv_nsec = LATE_MS * 1000000};
	uint64_t left = asked->offset < SIZE ? SIZE - asked->offset : 0;
	size_t length = asked->size < left ? asked->size : left;
	int error = 0;

	read_count++;
	switch (kind) {
	case KIND_SHORT:
		length = length > 1 ? length / 2 : length;
		break;
	case KIND_FAILS:
		error = asked->offset + length > FAILS_FROM ? -EIO : 0;
		break;
	case KIND_INTERRUPTED:
		error = read_count % 2 == 1 ? -EINTR : 0;
		break;
	case KIND_BUSY:
		error = read_count % 2 == 1 ? -EAGAIN : 0;
		break;
	case KIND_LATE:
		nanosleep(&late, NULL);
		break;
	case KIND_DIES:
		_exit(0);
	case KIND_HONEST:
	case KIND_COUNT:
		break;
	}
	answer(request->unique, error, error != 0 ? NULL : scans_files[kind].bytes + asked->offset,
		error != 0 ? 0 : length);
}

static void serve_one(const struct fuse_in_header *request, const void *body)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.max_readahead = 65536,
		.max_background = 64,
		.congestion_threshold = 48,
		.max_write = 65536,
		.time_gran = 1,
	};
	struct fuse_open_out open_out = {
		/*
		 * A short answer is one to the reader, not zeros in the cache.
		 */
		.open_flags =
			request->nodeid == FUSE_ROOT_ID + 1 + KIND_HONEST ? 0 : FOPEN_DIRECT_IO,
	};
	struct fuse_attr_out attributes = {.attr = attributes_of(request->nodeid)};

	switch (request->opcode) {
	case FUSE_INIT:
		answer(request->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		look_up(request, body);
		break;
	case FUSE_GETATTR:
		answer(request->unique, 0, &attributes, sizeof(attributes));
		break;
	case FUSE_OPEN:
		answer(request->unique, 0, &open_out, sizeof(open_out));
		break;
	case FUSE_READ:
		serve_read(request, body);
		break;
	case FUSE_RELEASE:
	case FUSE_FLUSH:
		answer(request->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(request->unique, -ENOSYS, NULL, 0);
		break;
	}
}

static void serve(void)
{
	static union {
		struct fuse_in_header header;
		uint8_t bytes[REQUEST_BYTES_MAX];
	} request;

	for (;;) {
		ssize_t got = read(server_fd, &request, sizeof(request));

		if (got >= (ssize_t)sizeof(request.header)) {
			serve_one(&request.header, request.bytes + sizeof(request.header));
		} else if (errno != EINTR && errno != EAGAIN && errno != ENOENT) {
			_exit(errno == ENODEV ? 0 : 1);
		}
	}
}

/* ---- the test ---- */

/* Mounts and returns the server, or ends the test where that cannot be. */
static pid_t start_server(void)
{
	char options[96];
	pid_t child;

	server_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", server_fd);
	if (server_fd < 0 ||
		mount("pinion-test", "mnt", "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		printf("skipped: no FUSE file system can be mounted: %s\n", strerror(errno));
		scratch_leave();
		exit(EXPECT_SKIPPED);
	}
	fflush(stdout);
	child = fork();
	expect_ready("fork", child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(0);
		serve();
	}
	close(server_fd);
	return child;
}

static void end_server(pid_t child)
{
	int status;

	expect_ready("umount", umount2("mnt", MNT_DETACH) == 0);
	expect_ready("kill", kill(child, SIGKILL) == 0);
	expect_ready("waitpid", waitpid(child, &status, 0) == child);
}

static void scan_kinds(uint32_t io_level, uint32_t direct, enum kind first, enum kind last)
{
	struct pinion_runtime *runtime = runtimes_start(2, io_level);
	struct pinion_scan_config config;
	struct pinion_scan *scan;
	static char setting[64];

	snprintf(setting, sizeof(setting), "level %u direct %u", io_level, direct);
	scans_setting = setting;
	scans_config(&config);
	config.direct = direct;
	config.window_bytes = WINDOW;
	expect_ready("mnt", chdir("mnt") == 0);
	scan = scans_create(runtime, &config);
	for (enum kind kind = first; kind <= last; kind++) {
		scans_add(scan, kind);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL));
	expect_ready("..", chdir("..") == 0);
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
}

/* The whole file by one request, from outside. */
static void read_whole(uint32_t io_level, uint32_t direct, enum kind kind)
{
	static uint8_t expected[SIZE];
	static uint8_t bytes[(SIZE / 4096 + 1) * 4096] __attribute__((aligned(4096)));
	struct pinion_runtime *runtime = runtimes_start(1, io_level);
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_READ);
	struct pinion_file file;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "mnt/%u", (unsigned)kind);
	expect_number("open", 0, pinion_file_open(&file, path, direct));
	memset(bytes, 0, sizeof(bytes));
	request->file = &file;
	request->bytes = bytes;
	request->length_bytes = sizeof(bytes);
	expect_number("one read", SIZE, requests_do(runtime, &one));
	fd = open(path + strlen("mnt/"), O_RDONLY);
	expect_ready("original", fd >= 0 && read(fd, expected, SIZE) == SIZE && close(fd) == 0);
	expect_true("every byte of one read", memcmp(bytes, expected, SIZE) == 0);
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
}

static void check(uint32_t io_level, uint32_t direct)
{
	pid_t server = start_server();

	scan_kinds(io_level, direct, KIND_HONEST, KIND_BUSY);
	for (uint32_t kind = KIND_HONEST; kind <= KIND_BUSY; kind++) {
		scans_expect_end(kind, kind == KIND_FAILS ? PINION_SCAN_FAILED : PINION_SCAN_DONE,
			kind == KIND_FAILS ? -EIO : 0);
	}
	read_whole(io_level, direct, KIND_HONEST);
	read_whole(io_level, direct, KIND_SHORT);
	read_whole(io_level, direct, KIND_INTERRUPTED);
	read_whole(io_level, direct, KIND_BUSY);
	scan_kinds(io_level, direct, KIND_DIES, KIND_DIES);
	expect_number("reports", 1, pin_load_acquire_u32(&scans_files[KIND_DIES].reports));
	expect_number("it died", PINION_SCAN_FAILED, scans_files[KIND_DIES].outcome);
	end_server(server);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("skipped: no mount namespace of its own: %s\n", strerror(errno));
		return EXPECT_SKIPPED;
	}
	scratch_enter("fuse_reads_misbehave");
	expect_ready("mnt", mkdir("mnt", 0755) == 0);
	for (uint32_t kind = 0; kind < KIND_COUNT; kind++) {
		scans_make(kind, SIZE);
	}
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER;
			direct++) {
			check(level, direct);
		}
	}
	scans_forget();
	scratch_leave();
	return expect_status();
}
