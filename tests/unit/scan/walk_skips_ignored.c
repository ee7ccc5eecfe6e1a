/* SPDX-License-Identifier: MIT */
/*
 * Goal: a walk with that option leaves out entries that ignore files hide
 * (EX-53), and says so once for each: deeper files outrank those above, nothing
 * below a hidden directory is visited, a repository within another has rules of
 * its own, those around the root count, and no other user's. Ignore files that
 * are links, are none, or cannot be used do no harm, and the latter are
 * reported.
 * Method: small trees and the visits there have to be.
 */
#include "runtime/base/base.h"
#include "runtime/scan/ignore.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/visits.h"

#include <sys/resource.h>

enum {
	LIMIT_SECONDS = 120,
	NOBODY = 65534,
	DEEP_LEVELS = 30,
	DEEP_NAME_BYTES = 200, /* so that the path is longer than PATH_MAX */
	STACKED = PIN_IGNORE_BYTES_MAX / PIN_IGNORE_FILE_BYTES_MAX,
};

static struct pinion_walk_config config;

/* A list of "KIND path" with NULL at its end. */
static void check(const char *root, const char *const *wanted)
{
	struct visits expected = {.count = 0};

	for (size_t i = 0; wanted[i] != NULL; i++) {
		const char *path = wanted[i] + 2;

		switch (wanted[i][0]) {
		case 'f':
			visits_add(&expected, PINION_WALK_FILE, path, 0, 0);
			break;
		case 'l':
			visits_add(&expected, PINION_WALK_SYMLINK, path, 0, 0);
			break;
		case 'i':
			visits_add(&expected, PINION_WALK_IGNORED, path, 0, S_IFREG);
			break;
		case 'd':
			visits_add(&expected, PINION_WALK_IGNORED, path, 0, S_IFDIR);
			break;
		default:
			expect_ready(wanted[i], false);
		}
	}
	visits_check_with(root, root, &config, &expected);
}

#define CHECK(root, ...) check(root, (const char *const[]){__VA_ARGS__, NULL})

static void make(const char *path)
{
	expect_ready(path, mkdir(path, 0755) == 0);
}

static void check_tree(void)
{
	struct visits expected = {.count = 0};

	make("tree");
	make("tree/hidden");
	make("tree/hidden/below");
	make("tree/deeper");
	make("tree/deeper/hidden");
	make("tree/build");
	scratch_file("tree/.gitignore", "*.o\nhidden/\n/build\n!keep.o\nlink\nfifo\n");
	scratch_file("tree/.ignore", "other\n!special.o\n");
	scratch_file("tree/a.o", "");
	scratch_file("tree/keep.o", "");
	scratch_file("tree/special.o", "");
	scratch_file("tree/other", "");
	scratch_file("tree/plain", "");
	scratch_file("tree/hidden/.gitignore", "!*\n");
	scratch_file("tree/hidden/below/keep.o", "");
	scratch_file("tree/build/keep.o", "");
	expect_ready("link", symlink("plain", "tree/link") == 0);
	expect_ready("fifo", mkfifo("tree/fifo", 0644) == 0);
	/* Deeper ones outrank those above; a file there is no directory. */
	scratch_file("tree/deeper/.gitignore", "!a.o\nkeep.o\n/plain\n");
	scratch_file("tree/deeper/a.o", "");
	scratch_file("tree/deeper/b.o", "");
	scratch_file("tree/deeper/keep.o", "");
	scratch_file("tree/deeper/plain", "");
	scratch_file("tree/deeper/build", "");
	scratch_file("tree/deeper/hidden/file", "");
	visits_add(&expected, PINION_WALK_IGNORED, "tree/link", 0, S_IFLNK);
	visits_add(&expected, PINION_WALK_IGNORED, "tree/fifo", 0, S_IFIFO);
	visits_add(&expected, PINION_WALK_FILE, "tree/.gitignore", 0, 0);
	visits_add(&expected, PINION_WALK_FILE, "tree/.ignore", 0, 0);
	visits_add(&expected, PINION_WALK_IGNORED, "tree/a.o", 0, S_IFREG);
	visits_add(&expected, PINION_WALK_FILE, "tree/keep.o", 0, 0);
	visits_add(&expected, PINION_WALK_FILE, "tree/special.o", 0, 0);
	visits_add(&expected, PINION_WALK_IGNORED, "tree/other", 0, S_IFREG);
	visits_add(&expected, PINION_WALK_FILE, "tree/plain", 0, 0);
	visits_add(&expected, PINION_WALK_IGNORED, "tree/hidden", 0, S_IFDIR);
	visits_add(&expected, PINION_WALK_IGNORED, "tree/build", 0, S_IFDIR);
	visits_add(&expected, PINION_WALK_FILE, "tree/deeper/.gitignore", 0, 0);
	visits_add(&expected, PINION_WALK_FILE, "tree/deeper/a.o", 0, 0);
	visits_add(&expected, PINION_WALK_IGNORED, "tree/deeper/b.o", 0, S_IFREG);
	visits_add(&expected, PINION_WALK_IGNORED, "tree/deeper/keep.o", 0, S_IFREG);
	visits_add(&expected, PINION_WALK_IGNORED, "tree/deeper/plain", 0, S_IFREG);
	visits_add(&expected, PINION_WALK_FILE, "tree/deeper/build", 0, 0);
	visits_add(&expected, PINION_WALK_IGNORED, "tree/deeper/hidden", 0, S_IFDIR);
	visits_check_with("a tree", "tree", &config, &expected);
	/* A named path is visited. */
	CHECK("tree/a.o", "f tree/a.o");
	CHECK("tree/hidden", "f tree/hidden/.gitignore", "f tree/hidden/below/keep.o");
	/* Another sibling's rules are gone when the walk gets here. */
	make("siblings");
	make("siblings/a");
	make("siblings/a/below");
	make("siblings/b");
	scratch_file("siblings/a/below/.gitignore", "name\n");
	scratch_file("siblings/a/below/name", "");
	scratch_file("siblings/a/name", "");
	scratch_file("siblings/b/name", "");
	CHECK("siblings", "f siblings/a/below/.gitignore", "i siblings/a/below/name",
		"f siblings/a/name", "f siblings/b/name");
}

/* Inside one repository is another, and the root may be in it. */
static void check_repositories(void)
{
	make("outer");
	make("outer/.git");
	make("outer/.git/info");
	make("outer/src");
	make("outer/src/deep");
	make("outer/inner");
	make("outer/inner/src");
	scratch_file("outer/.git/info/exclude", "excluded\n*.tmp\n");
	scratch_file("outer/.gitignore", "*.o\n/src/deep/path\n!a.tmp\n");
	scratch_file("outer/src/.gitignore", "!b.o\nhere\n");
	scratch_file("outer/src/deep/excluded", "");
	scratch_file("outer/src/deep/path", "");
	scratch_file("outer/src/deep/a.o", "");
	scratch_file("outer/src/deep/b.o", "");
	scratch_file("outer/src/deep/here", "");
	scratch_file("outer/src/deep/a.tmp", "");
	scratch_file("outer/src/deep/b.tmp", "");
	/* A work tree of its own: a file says where its repository is. */
	scratch_file("outer/inner/.git", "gitdir: elsewhere\n");
	scratch_file("outer/inner/.gitignore", "x\n");
	scratch_file("outer/inner/a.o", "");
	scratch_file("outer/inner/excluded", "");
	scratch_file("outer/inner/src/x", "");
	CHECK("outer", "d outer/.git", "f outer/.gitignore", "f outer/src/.gitignore",
		"i outer/src/deep/excluded", "i outer/src/deep/path", "i outer/src/deep/a.o",
		"f outer/src/deep/b.o", "i outer/src/deep/here", "f outer/src/deep/a.tmp",
		"i outer/src/deep/b.tmp", "i outer/inner/.git", "f outer/inner/.gitignore",
		"f outer/inner/a.o", "f outer/inner/excluded", "i outer/inner/src/x");
	CHECK("outer/src/deep", "i outer/src/deep/excluded", "i outer/src/deep/path",
		"i outer/src/deep/a.o", "f outer/src/deep/b.o", "i outer/src/deep/here",
		"f outer/src/deep/a.tmp", "i outer/src/deep/b.tmp");
	CHECK("outer/inner/src", "i outer/inner/src/x");
	/* By another path to it. */
	expect_ready("link", symlink("outer/inner/src", "way") == 0);
	CHECK("way", "i way/x");
	CHECK("outer/../outer/inner/src/.", "i outer/../outer/inner/src/./x");
	expect_ready("chdir", chdir("outer/src/deep") == 0);
	CHECK("..", "f ../.gitignore", "i ../deep/excluded", "i ../deep/path", "i ../deep/a.o",
		"f ../deep/b.o", "i ../deep/here", "f ../deep/a.tmp", "i ../deep/b.tmp");
	expect_ready("chdir", chdir("../../..") == 0);
}

/* In some containers root is all there is, and may do everything. */
static bool may_be_another(void)
{
	return geteuid() != 0 || (seteuid(NOBODY) == 0 && seteuid(0) == 0);
}

/* A repository around the root has to be ours, or the root's owner's. */
static void check_owner(void)
{
	if (geteuid() != 0 || !may_be_another()) {
		printf("no other user: that his repository does not count is left out\n");
		return;
	}
	make("shared");
	make("shared/.git");
	make("shared/root");
	scratch_file("shared/.gitignore", "*\n");
	scratch_file("shared/root/file", "");
	CHECK("shared/root", "i shared/root/file");
	expect_ready("chown", chown("shared/.git", NOBODY, (gid_t)-1) == 0);
	CHECK("shared/root", "f shared/root/file");
	expect_ready("chown", chown("shared/root", NOBODY, (gid_t)-1) == 0);
	CHECK("shared/root", "i shared/root/file");
}

static void write_bytes(const char *path, const void *bytes, size_t count)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	expect_ready(path, fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
	close(fd);
}

/* Only `path`; it hides nothing else. */
static void check_bad(const char *what, const char *path, int error)
{
	struct visits expected = {.count = 0};

	visits_add(&expected, PINION_WALK_ERROR, path, error, 0);
	visits_add(&expected, PINION_WALK_FILE, "bad/name", 0, 0);
	visits_add(&expected, PINION_WALK_IGNORED, "bad/.git", 0, S_IFDIR);
	visits_check_with(what, "bad", &config, &expected);
	expect_ready(path, unlink(path) == 0);
}

/* As another user, who is the owner of nothing here. */
static void check_unreadable(void)
{
	struct visits expected = {.count = 0};
	bool is_root = geteuid() == 0;

	write_bytes("bad/.gitignore", "name\n", 5);
	expect_ready("chmod", chmod("bad/.gitignore", 0) == 0);
	expect_ready("seteuid", !is_root || seteuid(NOBODY) == 0);
	visits_add(&expected, PINION_WALK_ERROR, "bad/.gitignore", -EACCES, 0);
	visits_add(&expected, PINION_WALK_FILE, "bad/name", 0, 0);
	visits_add(&expected, PINION_WALK_IGNORED, "bad/.git", 0, S_IFDIR);
	visits_check_with("an unreadable one", "bad", &config, &expected);
	expect_ready("seteuid", !is_root || seteuid(0) == 0);
	expect_ready("unlink", unlink("bad/.gitignore") == 0);
}

static void check_unusable(void)
{
	static char line[PIN_IGNORE_LINE_BYTES_MAX + 1];

	make("bad");
	make("bad/.git");
	make("bad/.git/info");
	scratch_file("bad/name", "");
	write_bytes("bad/.gitignore", "name\n\0", 6);
	check_bad("a NUL", "bad/.gitignore", -EILSEQ);
	write_bytes("bad/.ignore", "n\0a\0m\0e\0\n\0", 10);
	check_bad("UTF-16", "bad/.ignore", -EILSEQ);
	write_bytes("bad/.git/info/exclude", "name\n\0", 6);
	check_bad("a NUL", "bad/.git/info/exclude", -EILSEQ);
	memset(line, 'x', sizeof(line));
	write_bytes("bad/.gitignore", line, sizeof(line));
	check_bad("a long line", "bad/.gitignore", -EFBIG);
	write_bytes("bad/.gitignore", "name\n", 5);
	expect_ready("truncate", truncate("bad/.gitignore", PIN_IGNORE_FILE_BYTES_MAX + 1) == 0);
	check_bad("a huge one", "bad/.gitignore", -EFBIG);
	if (may_be_another()) {
		check_unreadable();
	}

	/* Above the root as well. */
	make("bad/root");
	write_bytes("bad/.gitignore", "name\n\0", 6);
	{
		struct visits expected = {.count = 0};
		char *path = realpath("bad/.gitignore", NULL);

		visits_add(&expected, PINION_WALK_ERROR, path, -EILSEQ, 0);
		visits_check_with("above the root", "bad/root", &config, &expected);
		free(path);
	}
}

static int read_above(struct pin_ignore *ignore)
{
	struct pin_ignore_errors errors;
	size_t path_bytes;

	expect_number("one more", 1, pin_ignore_read_above(ignore, &path_bytes, &errors));
	for (int i = 0; i < PIN_IGNORE_FILES - 1; i++) {
		expect_number("of a file", 0, errors.of[i]);
	}
	return errors.of[PIN_IGNORE_FILES - 1];
}

/* A directory above the root that goes meanwhile is passed over. */
static void check_vanished(void)
{
	struct pin_ignore ignore = {.host = NULL};

	make("above");
	make("above/.git");
	make("above/a");
	make("above/a/root");
	expect_number(
		"begin", 0, pin_ignore_begin(&ignore, &pin_host_linux, "above/a/root", geteuid()));
	expect_ready("rename", rename("above", "vanished") == 0);
	expect_number("no error", 0, read_above(&ignore));
	scratch_file("above", "");
	expect_number("a file in its place", -ENOTDIR, read_above(&ignore));
	pin_ignore_fini(&ignore);
}

/* Nothing that is no regular file counts, or is opened. */
static void check_kinds(void)
{
	struct visits expected = {.count = 0};

	make("kinds");
	make("kinds/linked");
	make("kinds/piped");
	make("kinds/device");
	make("kinds/folder");
	make("kinds/folder/.gitignore");
	scratch_file("kinds/rules", "name\n");
	expect_ready("link", symlink("../rules", "kinds/linked/.gitignore") == 0);
	expect_ready("link", symlink("/dev/zero", "kinds/device/.gitignore") == 0);
	expect_ready("fifo", mkfifo("kinds/piped/.gitignore", 0644) == 0);
	scratch_file("kinds/linked/name", "");
	scratch_file("kinds/piped/name", "");
	scratch_file("kinds/device/name", "");
	scratch_file("kinds/folder/name", "");
	scratch_file("kinds/folder/.gitignore/name", "");
	visits_add(&expected, PINION_WALK_FILE, "kinds/rules", 0, 0);
	visits_add(&expected, PINION_WALK_SYMLINK, "kinds/linked/.gitignore", 0, 0);
	visits_add(&expected, PINION_WALK_SYMLINK, "kinds/device/.gitignore", 0, 0);
	visits_add(&expected, PINION_WALK_SPECIAL, "kinds/piped/.gitignore", 0, S_IFIFO);
	visits_add(&expected, PINION_WALK_FILE, "kinds/linked/name", 0, 0);
	visits_add(&expected, PINION_WALK_FILE, "kinds/piped/name", 0, 0);
	visits_add(&expected, PINION_WALK_FILE, "kinds/device/name", 0, 0);
	visits_add(&expected, PINION_WALK_FILE, "kinds/folder/name", 0, 0);
	visits_add(&expected, PINION_WALK_FILE, "kinds/folder/.gitignore/name", 0, 0);
	visits_check_with("kinds", "kinds", &config, &expected);
}

/* A file of as many bytes as may be, which hides `name`. */
static void write_large(const char *path, size_t bytes)
{
	char *text = malloc(bytes);

	expect_ready("malloc", text != NULL);
	memset(text, '\n', bytes);
	memcpy(text, "name", 4);
	write_bytes(path, text, bytes);
	free(text);
}

/* One below the other they are bounded, and side by side each counts. */
static void check_bound(void)
{
	struct visits expected = {.count = 0};
	char path[64] = "stack";
	char file[100];

	make("stack");
	make("stack/beside");
	for (size_t i = 0; i <= STACKED; i++) {
		bool is_over = i == STACKED;

		snprintf(file, sizeof(file), "%s/.gitignore", path);
		write_large(file, PIN_IGNORE_FILE_BYTES_MAX);
		visits_add(&expected, is_over ? PINION_WALK_ERROR : PINION_WALK_FILE, file,
			is_over ? -EFBIG : 0, 0);
		strcat(path, "/d");
		make(path);
	}
	for (size_t i = 0; i < STACKED - 1; i++) {
		snprintf(file, sizeof(file), "stack/beside/%zu", i);
		make(file);
		strcat(file, "/.gitignore");
		write_large(file, PIN_IGNORE_FILE_BYTES_MAX);
		visits_add(&expected, PINION_WALK_FILE, file, 0, 0);
	}
	scratch_file("stack/beside/name", "");
	visits_add(&expected, PINION_WALK_IGNORED, "stack/beside/name", 0, S_IFREG);
	visits_check_with("a stack", "stack", &config, &expected);
}

static void check_deep(void)
{
	struct visits expected = {.count = 0};
	char *deep = scratch_deep("deep", DEEP_LEVELS, DEEP_NAME_BYTES);
	char *leaf = NULL;

	scratch_file("deep/.gitignore", "d*/**/leaf\n");
	expect_ready("asprintf", asprintf(&leaf, "%s/leaf", deep) >= 0);
	visits_add(&expected, PINION_WALK_FILE, "deep/.gitignore", 0, 0);
	visits_add(&expected, PINION_WALK_IGNORED, leaf, 0, S_IFREG);
	visits_check_with("a deep tree", "deep", &config, &expected);
	/* A root whose path is longer than PATH_MAX has nothing above. */
	visits_add(&expected, PINION_WALK_FILE, leaf, 0, 0);
	visits_check_with("a deep root", deep, &config, &expected);
	free(leaf);
	free(deep);
}

static void check_descriptors(void)
{
	struct visits expected = {.count = 0};
	struct rlimit before;
	struct rlimit tight;
	int free_fd = dup(0);

	close(free_fd);
	make("few");
	scratch_file("few/.gitignore", "name\n");
	scratch_file("few/name", "");
	getrlimit(RLIMIT_NOFILE, &before);
	tight = (struct rlimit){.rlim_cur = (rlim_t)free_fd + 2, .rlim_max = before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &tight);
	CHECK("few", "f few/.gitignore", "i few/name");
	tight.rlim_cur--;
	setrlimit(RLIMIT_NOFILE, &tight);
	visits_add(&expected, PINION_WALK_ERROR, "few/.gitignore", -EMFILE, 0);
	visits_add(&expected, PINION_WALK_FILE, "few/name", 0, 0);
	visits_check_with("one descriptor", "few", &config, &expected);
	setrlimit(RLIMIT_NOFILE, &before);
}

static int stop(void *arg, const struct pinion_walk_entry *entry)
{
	int *count = arg;

	(void)entry;
	++*count;
	return 42;
}

static void check_config(void)
{
	struct {
		struct pinion_walk_config known;
		uint8_t tail[8];
	} newer;
	struct pinion_walk_config bad = config;
	int count = 0;

	bad.skip_ignored = 2;
	expect_number("skip_ignored 2", -EINVAL, pinion_walk_with("few", &bad, stop, &count));
	bad = config;
	bad.size = 4;
	expect_number("size 4", -EINVAL, pinion_walk_with("few", &bad, stop, &count));
	pinion_walk_config_init_sized(&newer.known, sizeof(newer));
	newer.tail[3] = 1;
	expect_number("unknown tail", -E2BIG, pinion_walk_with("few", &newer.known, stop, &count));
	expect_number("visits", 0, count);
	newer.tail[3] = 0;
	expect_number("stopped", 42, pinion_walk_with("few", &newer.known, stop, &count));
	/* By an ignored one, and by an ignore file that cannot be used. */
	expect_number("stopped", 42, pinion_walk_with("shut", &config, stop, &count));
	expect_number("stopped", 42, pinion_walk_with("broken", &config, stop, &count));
	expect_number("visits", 3, count);
	/* Nothing is hidden by default. */
	pinion_walk_config_init(&bad);
	expect_number("default", 0, bad.skip_ignored);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("walk_skips_ignored");
	/* So that nothing around this folder has a say. */
	make(".git");
	pinion_walk_config_init(&config);
	config.skip_ignored = 1;
	check_tree();
	check_repositories();
	check_owner();
	check_unusable();
	check_vanished();
	check_kinds();
	check_bound();
	check_deep();
	check_descriptors();
	make("shut");
	scratch_file("shut/.ignore", ".ignore\n");
	make("broken");
	write_bytes("broken/.gitignore", "\0", 1);
	check_config();
	scratch_leave();
	return expect_status();
}
