/* SPDX-License-Identifier: MIT */
/*
 * Goal: a path of any length opens as a short one would, with the same errors,
 * and nothing is left open.
 * Method: a tree of 60 kB paths; then one file named in every length around
 * PATH_MAX by putting "./" in front.
 */
#include "runtime/host/long_path.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <limits.h>

#define DEPTH 300
#define NAME_BYTES 200

static void check_reads_leaf(const char *what, const char *path)
{
	char text[8] = {0};
	int fd = pin_open_long(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		expect_number(what, 0, fd);
		return;
	}
	expect_number(what, 4, read(fd, text, sizeof(text)));
	expect_text(what, "leaf", text);
	close(fd);
}

/* The error pin_open_long gives, or 0 when it opens. */
static int error_of(const char *path, int flags)
{
	int fd = pin_open_long(path, flags | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
	}
	return fd < 0 ? fd : 0;
}

static char *join(const char *left, const char *middle, const char *right)
{
	char *path = NULL;

	expect_ready("asprintf", asprintf(&path, "%s%s%s", left, middle, right) >= 0);
	return path;
}

static void check_deep(void)
{
	char *folder = scratch_deep("deep", DEPTH, NAME_BYTES);
	char *leaf = join(folder, "/", "leaf");
	char *missing = join(folder, "/", "missing");
	char *slash = join(folder, "//", "");
	char *through = join(leaf, "/", "below");
	char *absolute = join(scratch_path, "//", leaf);
	char *many = malloc(DEPTH * (NAME_BYTES + 9) + 64);
	char *end = many;
	char *name;

	errno = 4711;
	check_reads_leaf("60 kB path", leaf);
	check_reads_leaf("absolute 60 kB path", absolute);
	expect_number("errno", 4711, errno);
	expect_number("directory with a slash", 0, error_of(slash, O_RDONLY | O_DIRECTORY));
	expect_number("directory as a file", -ENOTDIR, error_of(leaf, O_RDONLY | O_DIRECTORY));
	expect_number("missing", -ENOENT, error_of(missing, O_RDONLY));
	expect_number("below a file", -ENOTDIR, error_of(through, O_RDONLY));

	expect_ready("malloc", many != NULL);
	for (const char *from = leaf; *from != '\0'; from++) {
		*end++ = *from;
		if (*from == '/') {
			memcpy(end, "////////", 8);
			end += 8;
		}
	}
	*end = '\0';
	check_reads_leaf("many slashes", many);

	name = malloc(2 * PATH_MAX);
	expect_ready("malloc", name != NULL);
	memset(name, 'n', 2 * PATH_MAX - 1);
	name[2 * PATH_MAX - 1] = '\0';
	expect_number("a name of 8 kB", -ENAMETOOLONG, error_of(name, O_RDONLY));

	expect_ready("symlink", symlink("deep", "link") == 0);
	free(absolute);
	absolute = join("link", leaf + strlen("deep"), "");
	check_reads_leaf("through a link in the first piece", absolute);
	free(folder);
	free(leaf);
	free(missing);
	free(slash);
	free(through);
	free(absolute);
	free(many);
	free(name);
}

/* Each length from well below to well above what the kernel takes at once. */
static void check_border(void)
{
	static char path[2 * PATH_MAX];

	scratch_file("xleaf", "leaf");
	scratch_file("yxleaf", "leaf");
	for (size_t bytes = PATH_MAX - 1200; bytes < PATH_MAX + 1200; bytes++) {
		const char *name = bytes % 2 == 1 ? "xleaf" : "yxleaf";
		size_t dots = bytes - strlen(name);

		for (size_t i = 0; i < dots; i += 2) {
			memcpy(path + i, "./", 2);
		}
		memcpy(path + dots, name, strlen(name) + 1);
		check_reads_leaf("length around PATH_MAX", path);
	}
	expect_number("empty path", -ENOENT, error_of("", O_RDONLY));
	expect_number("short missing path", -ENOENT, error_of("none", O_RDONLY));
}

int main(void)
{
	int before = dup(0);
	int after;

	close(before);
	scratch_enter("longpath");
	check_deep();
	check_border();
	scratch_leave();
	after = dup(0);
	close(after);
	expect_number("next free descriptor", before, after);
	return expect_status();
}
