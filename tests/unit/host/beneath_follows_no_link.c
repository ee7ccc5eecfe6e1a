/* SPDX-License-Identifier: MIT */
/*
 * Goal: a path opens beneath its directory at any depth, no link in any part of
 * it is followed, nothing leads out, and no descriptor is left: with openat2,
 * and where a filter answers it with ENOSYS or EPERM. Magic links of procfs are
 * no loops. A file that itself answers EPERM does not end the use of openat2.
 * Method: one table of paths, asked in a forked child for each of the three;
 * a 60 kB path, with a link in its middle as well. For EPERM a child without
 * privileges asks for O_NOATIME of a file of root's, and can then open by
 * openat2 alone: a filter refuses openat.
 */
#include "runtime/base/base.h"
#include "runtime/host/long_path.h"
#include "tests/support/child.h"
#include "tests/support/filter.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <limits.h>
#include <pinion/file.h>
#include <sys/syscall.h>

#define DEPTH 300
#define NAME_BYTES 200

static char *deep; /* path of the last folder */
static char long_name[PATH_MAX + 10];

/* 0 if it opens. */
static int result_of(int root_fd, const char *path, int flags)
{
	int fd = pin_beneath_open(root_fd, path, flags | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
	}
	return fd < 0 ? fd : 0;
}

static void check_table(int root_fd)
{
	static const struct {
		const char *path;
		int flags;
		int result;
	} cases[] = {
		{"file", O_RDONLY, 0},
		{"folder/file", O_RDONLY, 0},
		{"folder//.//file", O_RDONLY, 0},
		{".", O_RDONLY | O_DIRECTORY, 0},
		{"folder/", O_RDONLY, 0},
		{"..dots/...", O_RDONLY, 0},
		{"", O_RDONLY, -ENOENT},
		{"none", O_RDONLY, -ENOENT},
		{"file/", O_RDONLY, -ENOTDIR},
		{"file/below", O_RDONLY, -ENOTDIR},
		{"file", O_RDONLY | O_DIRECTORY, -ENOTDIR},
		{"..", O_RDONLY, -EXDEV},
		{"folder/../file", O_RDONLY, -EXDEV},
		{"folder/..", O_RDONLY, -EXDEV},
		{"/etc/passwd", O_RDONLY, -EXDEV},
		{"out/stolen", O_RDONLY, -EXDEV},
		{"absolute/passwd", O_RDONLY, -EXDEV},
		{"inward/file", O_RDONLY, -EXDEV},
		{"out", O_RDONLY, -EXDEV},
		{"out", O_RDONLY | O_DIRECTORY, -EXDEV},
		{"out", O_PATH, -EXDEV},
		{"out", O_PATH | O_DIRECTORY, -EXDEV},
		{"self", O_RDONLY, -EXDEV},
	};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(cases); i++) {
		expect_number(cases[i].path, cases[i].result,
			result_of(root_fd, cases[i].path, cases[i].flags));
	}
}

/* As callers do it who have a directory, also without openat2. */
static void check_public(int root_fd)
{
	struct pinion_file_options options;
	struct pinion_file file;

	pinion_file_options_init(&options);
	options.directory_fd = root_fd;
	options.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
	if (expect_number("open", 0, pinion_file_open_with(&file, "folder/file", &options))) {
		pinion_file_close(&file);
	}
	expect_number("open of two dots", -EXDEV,
		pinion_file_open_with(&file, "../outside/stolen", &options));
	expect_true(
		"open through a link", pinion_file_open_with(&file, "out/stolen", &options) < 0);
}

static void check_loops(int root_fd, bool is_refused)
{
	expect_number("self", !is_refused, pin_beneath_loops(root_fd, "self"));
	expect_number("a loop outside", false, pin_beneath_loops(root_fd, "out/loop"));
	expect_number("a link to a loop outside", false, pin_beneath_loops(root_fd, "loop"));
	expect_number("a link", false, pin_beneath_loops(root_fd, "inward"));
	expect_number("nothing", false, pin_beneath_loops(root_fd, "none"));
}

/* Links of procfs that name an open file, and are no text. */
static void check_magic_links(void)
{
	static const char *const links[] = {"ns/mnt", "ns/user", "exe", "cwd", "root", "fd/0"};
	int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	expect_ready("/proc/self", fd >= 0);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(links); i++) {
		expect_number(links[i], false, pin_beneath_loops(fd, links[i]));
		expect_number(links[i], -EXDEV, result_of(fd, links[i], O_RDONLY));
	}
	close(fd);
}

static void check_long(int root_fd)
{
	const char *below = deep + strlen("root/");
	char *path = NULL;
	char text[8] = {0};
	int fd;

	expect_ready("asprintf", asprintf(&path, "%s/leaf", below) >= 0);
	fd = pin_beneath_open(root_fd, path, O_RDONLY | O_CLOEXEC);
	if (expect_true("60 kB path", fd >= 0)) {
		expect_number("leaf", 4, read(fd, text, sizeof(text)));
		expect_text("leaf", "leaf", text);
		close(fd);
	}
	free(path);
	expect_ready("asprintf", asprintf(&path, "%s/link/passwd", below) >= 0);
	expect_number("60 kB and a link", -EXDEV, result_of(root_fd, path, O_RDONLY));
	free(path);
	expect_ready("asprintf", asprintf(&path, "%s/../leaf", below) >= 0);
	expect_number("60 kB and two dots", -EXDEV, result_of(root_fd, path, O_RDONLY));
	free(path);
	expect_number("a name of 4 kB", -ENAMETOOLONG, result_of(root_fd, long_name, O_RDONLY));
}

/* `error`: the answer to openat2, 0: the kernel's own. */
static int check_all(void *arg)
{
	int error = *(const int *)arg;
	int root_fd = open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int before = dup(0);
	int after;

	close(before);
	expect_ready("root", root_fd >= 0);
	if (error != 0 && !filter_refuse(SYS_openat2, error)) {
		return EXPECT_SKIPPED;
	}
	errno = 4711;
	check_table(root_fd);
	check_loops(root_fd, error != 0);
	check_magic_links();
	expect_number("errno", 4711, errno);
	check_public(root_fd);
	check_long(root_fd);
	after = dup(0);
	close(after);
	expect_number("next free descriptor", before, after);
	return expect_status();
}

enum {
	NOBODY = 65534,
};

/* A file that may not be opened so: its error is not that of openat2. */
static int check_own_eperm(void *arg)
{
	int root_fd = open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)arg;
	expect_ready("/etc", fd >= 0 && root_fd >= 0);
	if ((geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) ||
		result_of(fd, "passwd", O_RDONLY | O_NOATIME) != -EPERM ||
		!filter_refuse(SYS_openat, ENOTTY)) {
		return EXPECT_SKIPPED;
	}
	expect_number("O_NOATIME", -EPERM, result_of(fd, "passwd", O_RDONLY | O_NOATIME));
	expect_number("by openat2", 0, result_of(root_fd, "folder/file", O_RDONLY));
	return expect_status();
}

static void make_links(void)
{
	int fd;

	expect_ready("links",
		symlink("../outside", "root/out") == 0 && symlink("/etc", "root/absolute") == 0 &&
			symlink("folder", "root/inward") == 0 &&
			symlink("self", "root/self") == 0 &&
			symlink("../outside/loop", "root/loop") == 0 &&
			symlink("loop", "outside/loop") == 0);
	fd = open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (const char *name = deep + strlen("root/"); *name != '\0';) {
		size_t bytes = strcspn(name, "/");
		char part[NAME_MAX + 1];
		int next;

		memcpy(part, name, bytes);
		part[bytes] = '\0';
		next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		expect_ready("openat", next >= 0);
		close(fd);
		fd = next;
		name += bytes + (name[bytes] == '/');
	}
	expect_ready("link", symlinkat("/etc", fd, "link") == 0);
	close(fd);
}

int main(void)
{
	static const int answers[] = {0, ENOSYS, EPERM};
	int code;

	scratch_enter("beneath_follows_no_link");
	expect_ready("root",
		mkdir("root", 0755) == 0 && mkdir("root/folder", 0755) == 0 &&
			mkdir("root/..dots", 0755) == 0 && mkdir("outside", 0755) == 0);
	scratch_file("root/file", "");
	scratch_file("root/folder/file", "");
	scratch_file("root/..dots/...", "");
	scratch_file("outside/stolen", "");
	memset(long_name, 'n', sizeof(long_name) - 1);
	deep = scratch_deep("root/deep", DEPTH, NAME_BYTES);
	make_links();
	for (size_t i = 0; i < PIN_ARRAY_COUNT(answers); i++) {
		int answer = answers[i];

		code = child_code(child_run(check_all, &answer, NULL, 0));

		if (code == EXPECT_SKIPPED) {
			printf("seccomp filters are not allowed here: that part is left out\n");
		} else {
			expect_number("child", 0, code);
		}
	}
	code = child_code(child_run(check_own_eperm, NULL, NULL, 0));
	if (code == EXPECT_SKIPPED) {
		printf("no file here answers EPERM, or no filters: that part is left out\n");
	} else {
		expect_number("child with EPERM", 0, code);
	}
	free(deep);
	scratch_leave();
	return expect_status();
}
