/* SPDX-License-Identifier: MIT */
/*
 * Goal: the part of a deep path that is opened is short, however deep the tree
 * (EX-53): down a branch and up again, an anchor is opened once for some
 * hundred bytes; it is not used for a path that it is not above, does not
 * follow a link, and is closed when its descriptor is needed.
 * Method: a branch of 800 levels, each reached from its root.
 */
#include "runtime/scan/anchor.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"

#include <string.h>

enum {
	LEVELS = 800,
	NAME_BYTES = 3,
	LEVEL_BYTES = NAME_BYTES + 1,
	REST_MAX = 512, /* of anchor.c */
	MOVE_BYTES = 256,
};

static struct pin_anchor anchor;
static int root_fd;

/* The bytes that are left to be opened, which are there. */
static size_t reach(const char *path, size_t bytes)
{
	char part[LEVELS * LEVEL_BYTES + 1];
	size_t start;
	int from_fd;
	int fd;

	memcpy(part, path, bytes);
	part[bytes] = '\0';
	from_fd = pin_anchor_reach(&pin_host_linux, &anchor, root_fd, part, bytes, &start);
	expect_true("start", start < bytes && (start == 0) == (from_fd == root_fd));
	fd = openat(from_fd, part + start, O_PATH | O_CLOEXEC);
	expect_true("it is there", fd >= 0);
	close(fd);
	return bytes - start;
}

static void check_branch(const char *path)
{
	uint64_t moves;

	for (size_t level = 1; level <= LEVELS; level++) {
		expect_true("down", reach(path, level * LEVEL_BYTES - 1) <= REST_MAX);
	}
	moves = LEVELS * LEVEL_BYTES / MOVE_BYTES;
	expect_true("few anchors down", anchor.moves > 0 && anchor.moves <= moves);
	for (size_t level = LEVELS; level > 0; level--) {
		expect_true("up", reach(path, level * LEVEL_BYTES - 1) <= REST_MAX);
	}
	expect_true("few anchors up", anchor.moves <= 2 * moves + 1);
}

static void check_others(const char *path)
{
	size_t bytes = LEVELS * LEVEL_BYTES - 1;
	char other[LEVELS * LEVEL_BYTES];
	uint64_t moves;
	size_t start;

	(void)reach(path, bytes);
	moves = anchor.moves;
	memcpy(other, path, bytes + 1);
	other[0] = 'e';
	expect_number("not above it", root_fd,
		pin_anchor_reach(&pin_host_linux, &anchor, root_fd, other, bytes, &start));
	expect_number("from the root", 0, (long long)start);
	expect_number("nothing was opened", (long long)moves, (long long)anchor.moves);
	expect_number("nothing is open", 0, pin_anchor_drop(&anchor));

	expect_ready("symlink", symlinkat("ddd", root_fd, "eee") == 0);
	expect_number("through a link", root_fd,
		pin_anchor_reach(&pin_host_linux, &anchor, root_fd, other, bytes, &start));

	(void)reach(path, bytes);
	expect_number("dropped", 1, pin_anchor_drop(&anchor));
	expect_true("a short path needs none", reach(path, LEVEL_BYTES - 1) == NAME_BYTES);
	expect_number("and has none", 0, pin_anchor_drop(&anchor));
}

int main(void)
{
	char *deep;

	scratch_enter("anchors");
	deep = scratch_deep("tree", LEVELS, NAME_BYTES);
	root_fd = open("tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
	expect_ready("tree", root_fd >= 0);
	check_branch(deep + strlen("tree/"));
	check_others(deep + strlen("tree/"));
	pin_anchor_fini(&pin_host_linux, &anchor);
	close(root_fd);
	free(deep);
	scratch_leave();
	return expect_status();
}
