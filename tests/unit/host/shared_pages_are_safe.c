/* SPDX-License-Identifier: MIT */
/*
 * Goal: a page that others read is sealed, and no child has it mapped; a page
 * that is given up, or finds no name, leaves no file; a name that another
 * writer takes just then stays that writer's. WP-33.
 * Method: pages without a runtime; a flock() of the test's own, before which
 * another file takes the name.
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

	/* Of one that has ended, and a rival that is quicker. */
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

int main(void)
{
	scratch_enter("shared_pages_are_safe");
	check_seals();
	check_names();
	scratch_leave();
	return expect_status();
}
