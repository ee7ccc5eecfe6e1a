/* SPDX-License-Identifier: MIT */
/*
 * Goal: commands that are to read little take little memory, and only then:
 * what may be much, or is of unknown size, gets the default.
 * Method: files made as long as it takes, sparse, and what cannot be measured.
 */
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tools/scanning.h"

enum { BUFFER_BYTES = 1 << 20 };

static long long fit(const struct scanning_options *options, const char *const *paths, int count)
{
	struct pinion_config runtime = options->runtime;

	/* As argv has it, but nothing is written to. */
	scanning_fit_buffers(options, (char *const *)(uintptr_t)paths, count, &runtime);
	return runtime.buffer_count;
}

static void make(const char *path, off_t bytes)
{
	scratch_file(path, "");
	expect_ready(path, truncate(path, bytes) == 0);
}

int main(void)
{
	struct scanning_options options = {0};
	const char *small[] = {"empty", "page"};
	const char *absent[] = {"absent"};
	const char *some[] = {"some"};
	const char *large[] = {"large"};
	const char *mixed[] = {"empty", "large"};
	const char *folder[] = {"empty", "."};
	const char *device[] = {"/dev/null"};

	scratch_enter("fit");
	expect_true("options", scanning_options_init(&options));
	options.runtime.buffer_bytes = BUFFER_BYTES;
	options.runtime.buffer_count = 0;
	make("empty", 0);
	make("page", 4096);
	make("large", 64 * (off_t)BUFFER_BYTES);
	make("some", 4 * (off_t)BUFFER_BYTES);

	expect_number("two small files", 5, fit(&options, small, 2));
	expect_number("a file that is not there", 3, fit(&options, absent, 1));
	expect_number("4 MiB, in halves of a buffer", 12, fit(&options, some, 1));
	expect_number("a large file", 0, fit(&options, large, 1));
	expect_number("a small and a large file", 0, fit(&options, mixed, 2));
	expect_number("a folder", 0, fit(&options, folder, 2));
	expect_number("a device", 0, fit(&options, device, 1));
	options.runtime.buffer_count = 7;
	expect_number("a number somebody set", 7, fit(&options, small, 2));
	options.runtime.buffer_count = 0;
	options.list_path = "list";
	expect_number("a list names others", 0, fit(&options, small, 2));
	scratch_leave();
	return expect_status();
}
