/* SPDX-License-Identifier: MIT */
/*
 * Goal: a page that others read is sealed, and no child has it mapped; a page
 * that is given up, or finds no name, leaves no file; a name that another
 * writer takes just then stays that writer's; a child of fork has no
 * descriptor, and neither keeps nor breaks the lock of its parent's file.
 * WP-33.
 * Method: pages without a runtime; a flock() of the test's own, before which
 * another file takes the name; writers that die while their child lives.
 */
#include "runtime/host/shared_page.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { BYTES = 8192, F_SEAL_LATER_WRITE = 0x10 };

static const char mark[PIN_SHARED_PAGE_MARK] = "a page!";
static const char *rival; /* takes the name before the next lock of a file that has it */

int flock(int fd, int operation)
{
	if (rival != NULL) {
		expect_ready("rival", rename(rival, "page") == 0);
		rival = NULL;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static void make(struct pin_shared_page *page, const char *path)
{
	const char *call = "";

	expect_ready(call, pin_shared_page_create(page, BYTES, path, mark, &call) == 0);
	memcpy(page->memory, mark, sizeof(mark));
}

static int show(struct pin_shared_page *page, const char *path)
{
	const char *call = "";

	return pin_shared_page_show(page, path, &call);
}

/* The memory that it was given is nowhere in a child. */
static int look_in_child(void *arg)
{
	struct pin_shared_page *page = arg;
	unsigned char resident[BYTES / 4096];

	expect_true("not mapped", mincore(page->memory, BYTES, resident) != 0 && errno == ENOMEM);
	return expect_status();
}

static void check_seals(void)
{
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_LATER_WRITE;
	struct pin_shared_page page;

	make(&page, NULL);
	expect_number("shown", 0, show(&page, NULL));
	expect_number("sealed", all, fcntl(page.fd, F_GET_SEALS) & all);
	expect_number("child", 0, child_code(child_run(look_in_child, &page, NULL, 0)));
	pin_shared_page_destroy(&page);
	expect_number("gone", -1, page.fd);
}

static uint32_t count_files(void)
{
	FILE *list = popen("ls -A | wc -l", "r"); /* NOLINT(cert-env33-c) */
	unsigned found = 0;

	expect_ready("ls", list != NULL && fscanf(list, "%u", &found) == 1);
	pclose(list);
	return found;
}

static void check_names(void)
{
	struct pin_shared_page first;
	struct pin_shared_page second;

	make(&first, "page");
	expect_number("a draft", 1, count_files());
	pin_shared_page_destroy(&first);
	expect_number("given up", 0, count_files());

	/* Its name is a folder's before it is shown. */
	make(&first, "page");
	expect_ready("mkdir", mkdir("page", 0700) == 0);
	expect_number("no name", -EEXIST, show(&first, "page"));
	expect_number("the folder alone", 1, count_files());
	expect_true("the memory stays", first.memory != NULL);
	pin_shared_page_destroy(&first);
	expect_ready("rmdir", rmdir("page") == 0);

	/* Of a process that has ended, and a rival that is quicker. */
	make(&first, "page");
	expect_number("shown", 0, show(&first, "page"));
	pin_shared_page_destroy(&first);
	make(&first, "rival");
	expect_number("rival", 0, show(&first, "rival"));
	make(&second, "page");
	rival = "rival";
	expect_number("shown", 0, show(&second, "page"));
	expect_number("by the next name", 1, second.number);
	expect_number("both are there", 2, count_files());
	pin_shared_page_destroy(&first);
	pin_shared_page_destroy(&second);
}

/* ---- forks ---- */

/* The number of the name that a new writer gets. */
static uint32_t number_of_next(void)
{
	struct pin_shared_page page;
	uint32_t number;

	make(&page, "page");
	expect_number("shown", 0, show(&page, "page"));
	number = page.number;
	pin_shared_page_destroy(&page);
	return number;
}

static int have_none_in_child(void *arg)
{
	struct pin_shared_page *pages = arg;

	for (int i = 0; i < 3; i++) {
		expect_number("no descriptor", -1, pages[i].fd);
		pin_shared_page_destroy(&pages[i]);
	}
	/* A file that has got the number of one stays open in children. */
	expect_true("others stay", fcntl(pages[3].fd, F_GETFD) >= 0);
	return expect_status();
}

/* A child that destroys and exits leaves its parent's file locked. */
static void check_lock_of_parent(void)
{
	struct pin_shared_page pages[4];
	int others;

	make(&pages[0], "page");
	expect_number("shown", 0, show(&pages[0], "page"));
	make(&pages[1], NULL);
	make(&pages[2], "draft");
	make(&pages[3], NULL);
	others = pages[3].fd;
	pin_shared_page_destroy(&pages[3]);
	pages[3].fd = memfd_create("other", MFD_CLOEXEC);
	expect_number("the same number", others, pages[3].fd);
	expect_number("child", 0, child_code(child_run(have_none_in_child, pages, NULL, 0)));
	expect_number("still locked", 1, number_of_next());
	close(pages[3].fd);
	for (int i = 0; i < 3; i++) {
		pin_shared_page_destroy(&pages[i]);
	}
	expect_number("no longer", 0, number_of_next());
}

/* The end of a page frees its name, whoever still refers to the file. */
static void check_end(void)
{
	struct pin_shared_page page;
	int other;

	make(&page, "page");
	expect_number("shown", 0, show(&page, "page"));
	other = dup(page.fd);
	expect_ready("dup", other >= 0);
	pin_shared_page_destroy(&page);
	expect_number("free", 0, number_of_next());
	close(other);
}

/* Its child writes to `out`, and lives until `in` ends. */
static _Noreturn void die_before_child(int in, int out, bool is_destroyed)
{
	struct pin_shared_page page;
	char byte = 0;

	make(&page, "page");
	expect_number("shown", 0, show(&page, "page"));
	if (fork() == 0) {
		expect_ready("write", write(out, "c", 1) == 1);
		expect_number("the end", 0, read(in, &byte, 1));
		_exit(0);
	}
	if (is_destroyed) {
		pin_shared_page_destroy(&page);
		expect_ready("write", write(out, "d", 1) == 1);
		expect_number("the end", 0, read(in, &byte, 1));
	} else {
		raise(SIGKILL);
	}
	_exit(expect_status());
}

/* The file of a writer that has ended is free, though its child lives. */
static void check_child_keeps_no_lock(bool is_destroyed)
{
	int ends[2];
	int hold[2];
	int status;
	char byte;
	pid_t writer;

	expect_ready("pipe", pipe(ends) == 0 && pipe(hold) == 0);
	writer = fork();
	expect_ready("fork", writer >= 0);
	if (writer == 0) {
		close(hold[1]);
		die_before_child(hold[0], ends[1], is_destroyed);
	}
	close(hold[0]);
	for (int i = 0; i < 1 + is_destroyed; i++) {
		expect_ready("read", read(ends[0], &byte, 1) == 1);
	}
	if (!is_destroyed) {
		expect_ready("waitpid", waitpid(writer, &status, 0) == writer);
	}
	expect_number("free", 0, number_of_next());
	close(hold[1]);
	if (is_destroyed) {
		expect_ready("waitpid", waitpid(writer, &status, 0) == writer);
		expect_number("writer", 0, child_code(status));
	}
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	scratch_enter("shared_pages_are_safe");
	check_seals();
	check_names();
	check_lock_of_parent();
	check_end();
	check_child_keeps_no_lock(true);
	check_child_keeps_no_lock(false);
	scratch_leave();
	return expect_status();
}
