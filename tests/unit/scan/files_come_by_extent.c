/* SPDX-License-Identifier: MIT */
/*
 * Goal: with PINION_SCAN_WALK_BY_EXTENT files are added by the place of their
 * first extent, those without one first, by inode; so are all where the file
 * system refuses to say. Each comes once, of several batches too, beneath deep
 * directories, and by links that are followed.
 * Method: ioctl(2) is the test's: it passes FIEMAP on, refuses it, or answers
 * with addresses that fall as inodes rise, below most inodes. A file's
 * `sequence` is its order.
 */
#include "tests/support/scans.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum {
	LIMIT_SECONDS = 100,
	FILES = 1500, /* a batch has 1024 */
	BATCH = 1024,
};

static enum { REAL, REFUSED, FALLING, WITHOUT } answers;
static uint32_t asked;
static uint64_t last_inode; /* the highest */

struct seen {
	uint64_t inode;
	uint64_t at;
	bool has_extent;
	bool is_seen;
};

static struct seen order[FILES]; /* by sequence */
static uint32_t order_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int answer(int fd, struct fiemap *map)
{
	struct stat status;

	asked++;
	if (answers == REFUSED) {
		errno = EOPNOTSUPP;
		return -1;
	}
	expect_number("extents asked for", 1, map->fm_extent_count);
	expect_number("from the start", 0, (long long)map->fm_start);
	expect_ready("fstat", fstat(fd, &status) == 0);
	map->fm_mapped_extents = 1;
	map->fm_extents[0] = (struct fiemap_extent){
		.fe_physical = last_inode - status.st_ino,
		/* Every third has no address. */
		.fe_flags =
			answers == WITHOUT && status.st_ino % 3 == 0 ? FIEMAP_EXTENT_DELALLOC : 0,
	};
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (request == FS_IOC_FIEMAP && answers != REAL) {
		return answer(fd, argument);
	}
	asked += request == FS_IOC_FIEMAP;
	return (int)syscall(SYS_ioctl, fd, request, argument);
}

/* As the kernel has it, asked here. */
static bool find_extent(const char *path, uint64_t *out_at)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} request = {.map = {.fm_length = ~0ULL, .fm_extent_count = 1}};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is_given = syscall(SYS_ioctl, fd, FS_IOC_FIEMAP, &request) == 0 &&
		request.map.fm_mapped_extents == 1 &&
		(request.map.fm_extents[0].fe_flags &
			(FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
				FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_NOT_ALIGNED)) == 0;

	close(fd);
	*out_at = is_given ? request.map.fm_extents[0].fe_physical : 0;
	return is_given;
}

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	(void)window;
	return 0;
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct stat status;

	(void)arg;
	expect_number(file->path, 0, error);
	if (outcome != PINION_SCAN_DONE) {
		return;
	}
	expect_ready(file->path, file->sequence < FILES);
	/* A path may be too long for a call. */
	if (stat(file->path, &status) != 0) {
		status.st_ino = 0;
	}
	pthread_mutex_lock(&lock);
	expect_number(file->path, false, order[file->sequence].is_seen);
	order[file->sequence] = (struct seen){.inode = status.st_ino, .is_seen = true};
	order[file->sequence].has_extent = find_extent(file->path, &order[file->sequence].at);
	order_count++;
	pthread_mutex_unlock(&lock);
}

static void scan(struct pinion_runtime *runtime, const char *root, bool follows)
{
	static const struct pinion_scan_ops ops = {.window = on_window, .report = on_report};
	struct pinion_scan *scan = NULL;
	struct pinion_scan_config config;
	struct pinion_scan_stats totals;

	memset(order, 0, sizeof(order));
	order_count = 0;
	asked = 0;
	pinion_scan_config_init(&config);
	config.walk_order = PINION_SCAN_WALK_BY_EXTENT;
	config.follow_links = follows;
	expect_number("create", 0, pinion_scan_create(runtime, &config, &ops, NULL, &scan));
	expect_number("add", 0, pinion_scan_add_tree(scan, root));
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	pinion_scan_destroy(scan);
}

/* Whether the one may come after the other. */
static bool is_sorted(const struct seen *left, const struct seen *right)
{
	switch (answers) {
	case FALLING:
		return left->inode > right->inode;
	case WITHOUT:
		if ((left->inode % 3 == 0) != (right->inode % 3 == 0)) {
			return left->inode % 3 == 0;
		}
		return left->inode % 3 == 0 ? left->inode < right->inode
					    : left->inode > right->inode;
	case REAL:
		if (left->has_extent != right->has_extent) {
			return right->has_extent;
		}
		return left->has_extent ? left->at <= right->at : left->inode < right->inode;
	case REFUSED:
		break;
	}
	return left->inode < right->inode;
}

static void expect_sorted(const char *what, uint32_t count)
{
	expect_number(what, count, order_count);
	for (uint32_t i = 1; i < count; i++) {
		if (i % BATCH != 0 && !is_sorted(&order[i - 1], &order[i])) {
			expect_number(what, -1, i);
			return;
		}
	}
}

/* Each has some bytes, as an empty one has no extent. */
static void make_files(void)
{
	struct stat status;
	char name[32];

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "tree/%d", (i * 7) % FILES);
		scratch_file(name, "bytes");
		expect_ready(name, stat(name, &status) == 0);
		last_inode = status.st_ino > last_inode ? status.st_ino : last_inode;
	}
	sync();
}

static void check_deep(struct pinion_runtime *runtime)
{
	char *deep;

	expect_ready("deep", mkdir("deep", 0755) == 0);
	deep = scratch_deep("deep/d", 30, 200);
	scratch_file("deep/leaf", "leaf");
	answers = REFUSED;
	scan(runtime, "deep", false);
	expect_number("deep files", 2, order_count);
	expect_ready("link", symlink("../tree/1", "deep/link") == 0);
	scan(runtime, "deep", true);
	expect_number("files and a link that is followed", 3, order_count);
	free(deep);
}

int main(void)
{
	struct pinion_runtime *runtime;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("files_come_by_extent");
	expect_ready("tree", mkdir("tree", 0755) == 0);
	make_files();
	runtime = runtimes_start(2, PINION_IO_AUTO);
	for (answers = REAL; answers <= WITHOUT; answers++) {
		static const char *const names[] = {
			"real", "refused", "falling", "without an address"};

		scan(runtime, "tree", false);
		expect_sorted(names[answers], FILES);
		expect_number("calls", FILES, asked);
	}
	check_deep(runtime);
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
