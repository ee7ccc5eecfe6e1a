/* SPDX-License-Identifier: MIT */
/*
 * Goal: every entry of a hostile tree is visited exactly once, with its kind
 * and path; failures are visits, not losses; memory and descriptors stay small.
 * Method: trees made here, the visits sorted and compared with the entries
 * made: loops of links, a FIFO, a socket, hard links, 60 kB paths, bytes that
 * are no text, closed and vanishing directories, limits on descriptors, a bind
 * mount that contains itself (as root).
 */
#include "tests/support/scratch.h"
#include "tests/support/visits.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <pinion/walk.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#define NOBODY 65534
#define DEEP_LEVELS 300
#define DEEP_NAME_BYTES 200
#define CROWD_COUNT 20000
#define CROWD_BYTES_MAX (256u << 10)

static void make_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	expect_ready(path, fd >= 0 && bind(fd, (void *)&address, sizeof(address)) == 0);
	close(fd);
}

static void make_hostile(void)
{
	static const char *const links[][2] = {
		{"a", "tree/link"}, {"nowhere", "tree/dangling"}, {"self", "tree/self"},
		{"pong", "tree/ping"}, {"ping", "tree/pong"}, {"..", "tree/up"},
		{".", "tree/dir/here"}, {"/", "tree/dir/root"},
		{"../looping", "tree/away"}, /* leads to a loop, outside */
	};
	char longest[300] = "tree/";

	expect_ready("tree",
		mkdir("tree", 0755) == 0 && mkdir("tree/empty", 0755) == 0 &&
			mkdir("tree/dir", 0755) == 0 && mkdir("tree/dir/dir", 0755) == 0 &&
			mkdir("tree/...", 0755) == 0);
	scratch_file("tree/a", "a");
	expect_ready("link", link("tree/a", "tree/hard1") == 0);
	expect_ready("link", link("tree/a", "tree/dir/hard2") == 0);
	scratch_file("tree/new\nline\x1b[31m", "");
	scratch_file("tree/\xff\xfe not text", "");
	scratch_file("tree/-rf", "");
	scratch_file("tree/ space \"quote\" ", "");
	scratch_file("tree/dir/dir/file", "");
	scratch_file("tree/.../..file", "");
	memset(longest + 5, 'm', 255);
	scratch_file(longest, "");
	expect_ready("fifo", mkfifo("tree/fifo", 0644) == 0);
	expect_ready("looping", symlink("looping", "looping") == 0);
	make_socket("tree/socket");
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		expect_ready(links[i][1], symlink(links[i][0], links[i][1]) == 0);
	}
}

/* What make_hostile() made and a walk of `root` shows as being below `top`. */
static void expect_hostile(struct visits *expected, const char *top, const char *deep)
{
	static const struct {
		enum pinion_walk_kind kind;
		const char *path;
		int error;
		uint32_t mode;
	} entries[] = {
		{PINION_WALK_FILE, "a", 0, 0},
		{PINION_WALK_FILE, "hard1", 0, 0},
		{PINION_WALK_FILE, "dir/hard2", 0, 0},
		{PINION_WALK_FILE, "new\nline\x1b[31m", 0, 0},
		{PINION_WALK_FILE, "\xff\xfe not text", 0, 0},
		{PINION_WALK_FILE, "-rf", 0, 0},
		{PINION_WALK_FILE, " space \"quote\" ", 0, 0},
		{PINION_WALK_FILE, "dir/dir/file", 0, 0},
		{PINION_WALK_FILE, ".../..file", 0, 0},
		{PINION_WALK_SPECIAL, "fifo", 0, S_IFIFO},
		{PINION_WALK_SPECIAL, "socket", 0, S_IFSOCK},
		{PINION_WALK_SYMLINK, "link", 0, 0},
		{PINION_WALK_SYMLINK, "dangling", 0, 0},
		{PINION_WALK_SYMLINK, "self", -ELOOP, 0},
		{PINION_WALK_SYMLINK, "ping", -ELOOP, 0},
		{PINION_WALK_SYMLINK, "pong", -ELOOP, 0},
		{PINION_WALK_SYMLINK, "up", 0, 0},
		{PINION_WALK_SYMLINK, "away", 0, 0},
		{PINION_WALK_SYMLINK, "dir/here", 0, 0},
		{PINION_WALK_SYMLINK, "dir/root", 0, 0},
	};
	char longest[256];
	char *path = NULL;

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		expect_ready("asprintf", asprintf(&path, "%s%s", top, entries[i].path) >= 0);
		visits_add(expected, entries[i].kind, path, entries[i].error, entries[i].mode);
		free(path);
	}
	memset(longest, 'm', 255);
	longest[255] = '\0';
	expect_ready("asprintf", asprintf(&path, "%s%s", top, longest) >= 0);
	visits_add(expected, PINION_WALK_FILE, path, 0, 0);
	free(path);
	expect_ready("asprintf", asprintf(&path, "%s%s/leaf", top, deep) >= 0);
	visits_add(expected, PINION_WALK_FILE, path, 0, 0);
	free(path);
}

static void check_hostile(void)
{
	static const char *const roots[][2] = {
		{"tree", "tree/"}, {"tree/", "tree/"}, {"./tree//", "./tree//"},
		{"root", "root/"}, /* a link to it */
	};
	struct visits expected = {.count = 0};
	char *deep;

	make_hostile();
	deep = scratch_deep("tree/deep", DEEP_LEVELS, DEEP_NAME_BYTES);
	expect_ready("root", symlink("tree", "root") == 0);
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		expect_hostile(&expected, roots[i][1], deep + strlen("tree/"));
		visits_check(roots[i][0], roots[i][0], &expected);
	}
	free(deep);
}

static void check_root(const char *root, enum pinion_walk_kind kind, int error, uint32_t mode)
{
	struct visits expected = {.count = 0};

	visits_add(&expected, kind, root, error, mode);
	visits_check("a root that is no directory", root, &expected);
}

static void check_roots(void)
{
	struct visits expected = {.count = 0};

	check_root("tree/a", PINION_WALK_FILE, 0, 0);
	check_root("tree/link", PINION_WALK_FILE, 0, 0);
	check_root("tree/fifo", PINION_WALK_SPECIAL, 0, S_IFIFO);
	check_root("tree/socket", PINION_WALK_SPECIAL, 0, S_IFSOCK);
	check_root("/dev/null", PINION_WALK_SPECIAL, 0, S_IFCHR);
	check_root("tree/none", PINION_WALK_ERROR, -ENOENT, 0);
	check_root("tree/dangling", PINION_WALK_ERROR, -ENOENT, 0);
	check_root("tree/self", PINION_WALK_ERROR, -ELOOP, 0);
	check_root("tree/a/b", PINION_WALK_ERROR, -ENOTDIR, 0);
	check_root("", PINION_WALK_ERROR, -ENOENT, 0);
	visits_check("an empty root", "tree/empty", &expected);
}

/* In some containers root is all there is, and may do everything. */
static bool may_be_another(void)
{
	return geteuid() != 0 || (seteuid(NOBODY) == 0 && seteuid(0) == 0);
}

/* Without root's rights, also when run by root. */
static void check_closed(void)
{
	bool is_root = geteuid() == 0;
	struct visits expected = {.count = 0};

	if (!may_be_another()) {
		printf("no other user can be had: closed directories are left out\n");
		return;
	}
	expect_ready("half", mkdir("half", 0755) == 0);
	expect_ready("half/closed", mkdir("half/closed", 0755) == 0);
	expect_ready("half/blind", mkdir("half/blind", 0755) == 0);
	scratch_file("half/closed/unseen", "");
	scratch_file("half/blind/unseen", "");
	scratch_file("half/seen", "");
	scratch_file("half/locked", "");
	expect_ready("chmod",
		chmod("half/closed", 0) == 0 && chmod("half/blind", 0311) == 0 &&
			chmod("half/locked", 0) == 0);
	expect_ready("seteuid", !is_root || seteuid(NOBODY) == 0);
	visits_add(&expected, PINION_WALK_ERROR, "half/closed", -EACCES, 0);
	visits_add(&expected, PINION_WALK_ERROR, "half/blind", -EACCES, 0);
	visits_add(&expected, PINION_WALK_FILE, "half/seen", 0, 0);
	visits_add(&expected, PINION_WALK_FILE, "half/locked", 0, 0);
	visits_check("closed directories", "half", &expected);
	check_root("half/closed", PINION_WALK_ERROR, -EACCES, 0);
	expect_ready("seteuid", !is_root || seteuid(0) == 0);
	expect_ready("chmod", chmod("half/closed", 0755) == 0 && chmod("half/blind", 0755) == 0);
}

static int lowest_free_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void check_descriptors(void)
{
	rlim_t free_fd = (rlim_t)lowest_free_fd();
	struct visits expected = {.count = 0};
	struct rlimit before;
	struct rlimit tight;
	char *deep = scratch_deep("shallow", 60, 3);
	char *leaf = NULL;

	expect_ready("asprintf", asprintf(&leaf, "%s/leaf", deep) >= 0);
	getrlimit(RLIMIT_NOFILE, &before);
	tight = (struct rlimit){.rlim_cur = free_fd + 2, .rlim_max = before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &tight);
	visits_add(&expected, PINION_WALK_FILE, leaf, 0, 0);
	visits_check("60 levels with two descriptors", "shallow", &expected);

	tight.rlim_cur = free_fd;
	setrlimit(RLIMIT_NOFILE, &tight);
	visits_add(&expected, PINION_WALK_ERROR, "shallow", -EMFILE, 0);
	visits_check("no descriptor left", "shallow", &expected);
	setrlimit(RLIMIT_NOFILE, &before);
	free(leaf);
	free(deep);
}

static int stop_at_third(void *arg, const struct pinion_walk_entry *entry)
{
	int *count = arg;

	(void)entry;
	return ++*count == 3 ? 42 : 0;
}

static void check_stop(void)
{
	int free_fd = lowest_free_fd();
	int count = 0;

	expect_number("result of a stopped walk", 42, pinion_walk("tree", stop_at_third, &count));
	expect_number("visits of a stopped walk", 3, count);
	expect_number("next free descriptor", free_fd, lowest_free_fd());
}

static int remove_others(void *arg, const struct pinion_walk_entry *entry)
{
	if (strcmp(entry->path, "moving/first") == 0) {
		expect_ready("rmdir", rmdir("moving/gone") == 0);
		expect_ready("rmdir", rmdir("moving/swapped") == 0);
		expect_ready("symlink", symlink("../tree", "moving/swapped") == 0);
	}
	return visits_note(arg, entry);
}

/*
 * Files of a directory are visited before its subdirectories are entered, so by
 * then both of these have changed. A file system without types shows the link
 * as a link; it must not be followed in any case.
 */
static void check_vanishing(void)
{
	struct visits got = {.count = 0};

	expect_ready("moving",
		mkdir("moving", 0755) == 0 && mkdir("moving/gone", 0755) == 0 &&
			mkdir("moving/swapped", 0755) == 0);
	scratch_file("moving/first", "");
	expect_number("walk of a changing tree", 0, pinion_walk("moving", remove_others, &got));
	qsort(got.items, got.count, sizeof(char *), visits_compare);
	if (expect_number("visits of a changing tree", 3, (long long)got.count)) {
		const char *swapped = got.items[1][0] == 'F' ? got.items[2] : got.items[1];

		expect_text("vanished", "ERROR moving/gone -2 0", got.items[0]);
		expect_true("swapped is an error or a link",
			strncmp(swapped, "ERROR moving/swapped ", 21) == 0 ||
				strncmp(swapped, "SYMLINK moving/swapped ", 23) == 0);
	}
	visits_fini(&got);
}

static int exchange_outer(void *arg, const struct pinion_walk_entry *entry)
{
	if (strcmp(entry->path, "guarded/outer/first") == 0) {
		expect_ready("rename", rename("guarded/outer", "away") == 0);
		expect_ready("symlink", symlink("../secret", "guarded/outer") == 0);
	}
	return visits_note(arg, entry);
}

/* A part in the middle of a path becomes a link that leads out of the tree. */
static void check_exchanged(void)
{
	struct visits got = {.count = 0};

	expect_ready("guarded",
		mkdir("guarded", 0755) == 0 && mkdir("guarded/outer", 0755) == 0 &&
			mkdir("guarded/outer/inner", 0755) == 0 && mkdir("secret", 0755) == 0 &&
			mkdir("secret/inner", 0755) == 0);
	scratch_file("guarded/outer/first", "");
	scratch_file("guarded/outer/inner/own", "");
	scratch_file("secret/inner/stolen", "");
	expect_number("walk of an exchanged tree", 0, pinion_walk("guarded", exchange_outer, &got));
	if (expect_number("visits of an exchanged tree", 2, (long long)got.count)) {
		expect_text("first", "FILE guarded/outer/first 0 0", got.items[0]);
		expect_text("exchanged", "ERROR guarded/outer/inner -18 0", got.items[1]);
	}
	visits_fini(&got);
}

/* Subdirectories come in the order listed, each with all that is below it. */
static void check_order(void)
{
	struct visits got = {.count = 0};
	struct dirent *entry;
	size_t position = 0;
	char path[300];
	DIR *listing;

	expect_ready("order", mkdir("order", 0755) == 0);
	for (int i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "order/%d", i * 7919 % 1000);
		expect_ready(path, mkdir(path, 0755) == 0);
		snprintf(path, sizeof(path), "order/%d/below", i * 7919 % 1000);
		expect_ready(path, mkdir(path, 0755) == 0);
		snprintf(path, sizeof(path), "order/%d/below/file", i * 7919 % 1000);
		scratch_file(path, "");
	}
	expect_number("walk in order", 0, pinion_walk("order", visits_note, &got));
	expect_number("visits in order", 40, (long long)got.count);
	listing = opendir("order");
	expect_ready("opendir", listing != NULL);
	while ((entry = readdir(listing)) != NULL && position < got.count) {
		if (entry->d_name[0] != '.') {
			snprintf(path, sizeof(path), "FILE order/%.100s/below/file 0 0",
				entry->d_name);
			expect_text("order of directories", path, got.items[position++]);
		}
	}
	closedir(listing);
	visits_fini(&got);
}

struct crowd {
	size_t count;
	size_t heap_max;
};

static int note_heap(void *arg, const struct pinion_walk_entry *entry)
{
	struct crowd *crowd = arg;

	(void)entry;
	if (crowd->count++ % 64 == 0) {
		size_t heap = mallinfo2().uordblks;

		crowd->heap_max = heap > crowd->heap_max ? heap : crowd->heap_max;
	}
	return 0;
}

static void check_crowd(void)
{
	struct crowd crowd = {.count = 0};
	size_t heap_before;
	char path[64];

	expect_ready("crowd", mkdir("crowd", 0755) == 0);
	for (int i = 0; i < CROWD_COUNT; i++) {
		snprintf(path, sizeof(path), "crowd/file-with-a-longish-name-%d", i);
		scratch_file(path, "");
	}
	heap_before = mallinfo2().uordblks;
	expect_number("walk of a crowd", 0, pinion_walk("crowd", note_heap, &crowd));
	expect_number("visits in a crowd", CROWD_COUNT, (long long)crowd.count);
	expect_true(
		"heap does not grow with files", crowd.heap_max <= heap_before + CROWD_BYTES_MAX);
}

/* In a mount namespace of its own, where that is allowed. */
static void check_bind_loop(void)
{
	struct visits expected = {.count = 0};

	expect_ready("loop",
		mkdir("loop", 0755) == 0 && mkdir("loop/a", 0755) == 0 &&
			mkdir("loop/a/b", 0755) == 0);
	scratch_file("loop/a/file", "");
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("loop", "loop/a/b", NULL, MS_BIND, NULL) != 0) {
		printf("bind mounts are not allowed here: that part is left out\n");
		return;
	}
	visits_add(&expected, PINION_WALK_FILE, "loop/a/file", 0, 0);
	visits_add(&expected, PINION_WALK_ERROR, "loop/a/b", -ELOOP, 0);
	visits_check("a directory below itself", "loop", &expected);
	umount2("loop/a/b", MNT_DETACH);
}

int main(void)
{
	scratch_enter("walk");
	check_hostile();
	check_roots();
	check_closed();
	check_descriptors();
	check_stop();
	check_vanishing();
	check_exchanged();
	check_order();
	check_crowd();
	check_bind_loop();
	scratch_leave();
	return expect_status();
}
