/* SPDX-License-Identifier: MIT */
/*
 * A FUSE file system of a test's own: a child that speaks the kernel's protocol
 * and serves files of one size, named 0, 1, … in the folder "mnt". How a read
 * of them ends is the test's to say. Needs root and /dev/fuse, and mounts in a
 * namespace of its own.
 */
#ifndef PIN_TESTS_SUPPORT_FUSES_H
#define PIN_TESTS_SUPPORT_FUSES_H

#include "tests/support/expect.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	FUSES_REQUEST_BYTES_MAX = 1 << 17,
};

struct fuses {
	uint32_t file_count;
	uint64_t file_bytes;
	/* Through the page cache; each read of others gets to the server. */
	bool (*is_cached)(uint32_t file);
	/* Whose open is answered once it is interrupted; NULL: none. */
	bool (*hangs_open)(uint32_t file);
	/* In the server: answers by fuses_answer(), or never. */
	void (*read)(uint64_t unique, uint32_t file, uint64_t offset, size_t length);
};

static const struct fuses *fuses_served;
static int fuses_fd = -1;

/* In the server. `error` is negative or 0. */
static inline void fuses_answer(uint64_t unique, int error, const void *bytes, size_t length)
{
	static uint8_t message[sizeof(struct fuse_out_header) + FUSES_REQUEST_BYTES_MAX];
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + length),
		.error = error,
		.unique = unique,
	};

	memcpy(message, &header, sizeof(header));
	if (length > 0) {
		memcpy(message + sizeof(header), bytes, length);
	}
	/* ENOENT: it was interrupted and no thread waits for the answer. */
	if (write(fuses_fd, message, header.len) < 0 && errno != ENOENT) {
		_exit(1);
	}
}

static inline struct fuse_attr fuses_attributes(uint64_t node)
{
	uint64_t size = node == FUSE_ROOT_ID ? 0 : fuses_served->file_bytes;

	return (struct fuse_attr){
		.ino = node,
		.size = size,
		.blocks = (size + 511) / 512,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
		.nlink = 1,
		.blksize = 4096,
	};
}

static inline void fuses_look_up(const struct fuse_in_header *request, const char *name)
{
	uint64_t node = FUSE_ROOT_ID + 1 + strtoul(name, NULL, 10);
	struct fuse_entry_out entry = {.nodeid = node, .generation = 1};

	if (node > FUSE_ROOT_ID + fuses_served->file_count) {
		fuses_answer(request->unique, -ENOENT, NULL, 0);
		return;
	}
	entry.attr = fuses_attributes(node);
	fuses_answer(request->unique, 0, &entry, sizeof(entry));
}

static inline void fuses_read(
	const struct fuse_in_header *request, const struct fuse_read_in *asked)
{
	uint64_t size = fuses_served->file_bytes;
	uint64_t left = asked->offset < size ? size - asked->offset : 0;

	fuses_served->read(request->unique, (uint32_t)(request->nodeid - FUSE_ROOT_ID - 1),
		asked->offset, asked->size < left ? asked->size : left);
}

static inline void fuses_open(const struct fuse_in_header *request)
{
	uint32_t file = (uint32_t)(request->nodeid - FUSE_ROOT_ID - 1);
	bool is_file = request->nodeid != FUSE_ROOT_ID;
	bool is_cached = is_file && fuses_served->is_cached(file);
	struct fuse_open_out open_out = {
		/*
		 * A short answer is one to the reader, not zeros in the cache.
		 */
		.open_flags = is_cached ? 0 : FOPEN_DIRECT_IO,
	};

	if (is_file && fuses_served->hangs_open != NULL && fuses_served->hangs_open(file)) {
		return;
	}
	fuses_answer(request->unique, 0, &open_out, sizeof(open_out));
}

static inline void fuses_serve_one(const struct fuse_in_header *request, const void *body)
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
	struct fuse_attr_out attributes = {.attr = fuses_attributes(request->nodeid)};

	switch (request->opcode) {
	case FUSE_INIT:
		fuses_answer(request->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		fuses_look_up(request, body);
		break;
	case FUSE_GETATTR:
		fuses_answer(request->unique, 0, &attributes, sizeof(attributes));
		break;
	case FUSE_OPEN:
		fuses_open(request);
		break;
	case FUSE_READ:
		fuses_read(request, body);
		break;
	case FUSE_RELEASE:
	case FUSE_FLUSH:
		fuses_answer(request->unique, 0, NULL, 0);
		break;
	case FUSE_INTERRUPT:
		if (fuses_served->hangs_open != NULL) {
			fuses_answer(
				((const struct fuse_interrupt_in *)body)->unique, -EINTR, NULL, 0);
		}
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		break;
	default:
		fuses_answer(request->unique, -ENOSYS, NULL, 0);
		break;
	}
}

static inline void fuses_serve(void)
{
	static union {
		struct fuse_in_header header;
		uint8_t bytes[FUSES_REQUEST_BYTES_MAX];
	} request;

	for (;;) {
		ssize_t got = read(fuses_fd, &request, sizeof(request));

		if (got >= (ssize_t)sizeof(request.header)) {
			fuses_serve_one(&request.header, request.bytes + sizeof(request.header));
		} else if (errno != EINTR && errno != EAGAIN && errno != ENOENT) {
			_exit(errno == ENODEV ? 0 : 1);
		}
	}
}

/* Before anything else; false: a line says why not. */
static inline bool fuses_may_mount(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("skipped: no mount namespace of its own: %s\n", strerror(errno));
		return false;
	}
	return true;
}

/* In the scratch folder. The server; a test that cannot have it is skipped. */
static inline pid_t fuses_start(const struct fuses *served)
{
	char options[96];
	pid_t child;

	fuses_served = served;
	fuses_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuses_fd);
	if (fuses_fd < 0 ||
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
		fuses_serve();
	}
	close(fuses_fd);
	return child;
}

static inline void fuses_end(pid_t child)
{
	int status;

	expect_ready("umount", umount2("mnt", MNT_DETACH) == 0);
	expect_ready("kill", kill(child, SIGKILL) == 0);
	expect_ready("waitpid", waitpid(child, &status, 0) == child);
}

#endif
