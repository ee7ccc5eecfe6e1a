/* SPDX-License-Identifier: MIT */
/*
 * Goal: commands that are to read little, or only copy from the page cache,
 * take little memory, and only then: if it may be much, or is of unknown size,
 * they get the default.
 * Method: files made as long as needed, sparse, and files that cannot be
 * measured; a file that has just been written, and the same when the cache has
 * let it go.
 */
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tools/scanning.h"

enum { BUFFER_BYTES = 1 << 20, WRITTEN_BLOCKS = 16 };

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

static uint32_t cached_percent(const char *path)
{
	struct pinion_file file;
	uint32_t percent;

	expect_ready(path, pinion_file_open(&file, path, PINION_DIRECT_NEVER) == 0);
	percent = file.cached_percent;
	pinion_file_close(&file);
	return percent;
}

static void write_large(const char *path)
{
	static char block[BUFFER_BYTES];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	for (int i = 0; i < WRITTEN_BLOCKS; i++) {
		expect_ready(path, write(fd, block, sizeof(block)) == sizeof(block));
	}
	/* Written back, it can leave the cache. */
	expect_ready(path, fsync(fd) == 0 && close(fd) == 0);
}

static void let_go(const char *path)
{
	int fd = open(path, O_RDONLY);

	expect_ready(path, posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0 && close(fd) == 0);
}

/* By what the system says of the cache, which may do what it likes. */
static void check_cached(struct scanning_options *options)
{
	const char *written[] = {"written"};
	const char *nine[] = {"written", "written", "written", "written", "written", "written",
		"written", "written", "written"};

	write_large("written");
	if (cached_percent("written") != 100) {
		puts("a file just written is not known to be cached: not counted");
		return;
	}
	expect_number("a cached file", 4, fit(options, written, 1));
	expect_number("eight that are", 11, fit(options, nine, 8));
	expect_number("nine are not asked for", 0, fit(options, nine, 9));
	options->scan.direct = PINION_DIRECT_ALWAYS;
	expect_number("read past the cache", 0, fit(options, written, 1));
	options->scan.direct = PINION_DIRECT_AUTO;
	let_go("written");
	if (cached_percent("written") < 100) {
		expect_number("no longer cached", 0, fit(options, written, 1));
	}
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
	check_cached(&options);
	options.runtime.buffer_count = 7;
	expect_number("a number set by the user", 7, fit(&options, small, 2));
	options.runtime.buffer_count = 0;
	options.list_count = 1;
	expect_number("a list names others", 0, fit(&options, small, 2));
	scratch_leave();
	return expect_status();
}
