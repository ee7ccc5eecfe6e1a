/* SPDX-License-Identifier: MIT */
/*
 * Goal: a page that cannot be read costs only itself. Every match in readable
 * pages is found, none that touches a bad page is, and the unreadable ranges
 * are exactly the bad pages, at every window size, worker count, level and
 * order; the file ends as FAILED with the error. Without `report_gaps` the
 * file ends as FAILED as well.
 * Method: the linker leads reads through this program, which fails those that
 * touch a bad page with -EIO, on the ring and on the fallback alike. What
 * `pinion scan` searches with is held against a plain search of the bytes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/io/request.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tools/scan/search.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

enum {
	LIMIT_SECONDS = 200,
	PAGE = 4096,
	PAGES = 1024,
	SIZE = PAGES * PAGE + 1234,
	FOUND_MAX = 4096,
	GAPS_MAX = 16,
};

/* Ranges of pages, also at borders of windows, the first and the last page. */
static const struct {
	uint32_t first;
	uint32_t count;
} bad[] = {{0, 1}, {5, 1}, {15, 2}, {30, 3}, {63, 1}, {64, 40}, {500, 1}, {502, 1}, {511, 2},
	{1023, 2}};

enum { BAD_COUNT = sizeof(bad) / sizeof(bad[0]) };

/* Pages 63 to 103 are one range. */
enum { GAP_COUNT = BAD_COUNT - 1 };

static bool is_armed;
static uint8_t *text;

static bool is_bad(uint64_t offset, uint64_t length)
{
	for (size_t i = 0; is_armed && i < BAD_COUNT; i++) {
		uint64_t start = (uint64_t)bad[i].first * PAGE;
		uint64_t end = start + (uint64_t)bad[i].count * PAGE;

		if (offset < end && offset + length > start && offset < SIZE) {
			return true;
		}
	}
	return false;
}

/* ---- between the library and its reads ---- */

struct pinion_request *__wrap_pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result);
struct pinion_request *__real_pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result);
struct pinion_request *__wrap_pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result)
{
	const struct pinion_request *request = (void *)(uintptr_t)user_data;

	if (request->op == PINION_OP_READ && is_bad(request->offset_bytes, request->length_bytes)) {
		result = -EIO;
	}
	return __real_pin_request_complete(ring, user_data, result);
}

bool __wrap_pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request);
bool __real_pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request);
bool __wrap_pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request)
{
	return !is_bad(request->offset_bytes, request->length_bytes) &&
		__real_pin_cached_read(cached, meter, request);
}

ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t __real_pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset)
{
	if (is_bad((uint64_t)offset, length)) {
		errno = EIO;
		return -1;
	}
	return __real_pread(fd, bytes, length, offset);
}

ssize_t __wrap_preadv2(int fd, const struct iovec *vectors, int count, off_t offset, int flags);
ssize_t __real_preadv2(int fd, const struct iovec *vectors, int count, off_t offset, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *vectors, int count, off_t offset, int flags)
{
	if (is_bad((uint64_t)offset, vectors[0].iov_len)) {
		errno = EIO;
		return -1;
	}
	return __real_preadv2(fd, vectors, count, offset, flags);
}

/* ---- the file, and its contents ---- */

static struct finding expected[FOUND_MAX];
static size_t expected_count;

static void plant(uint64_t offset)
{
	memcpy(text + offset, "needle", 6);
}

static void make_file(void)
{
	int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	text = malloc(SIZE);
	expect_ready("malloc", text != NULL);
	memset(text, '.', SIZE);
	for (size_t i = 0; i < BAD_COUNT; i++) {
		uint64_t start = (uint64_t)bad[i].first * PAGE;
		uint64_t end = start + (uint64_t)bad[i].count * PAGE;

		if (start > 0) {
			/* Across, not found; or up to it. */
			plant(start - (i % 2 == 0 ? 3 : 6));
			plant(start - 40);
		}
		if (end + 100 < SIZE) {
			plant(end); /* right after */
			plant(end + 30);
		}
	}
	for (uint64_t offset = 100; offset + 26 < SIZE; offset += 2999) {
		/* None adjoins another, so that words end where they do. */
		if (memchr(text + offset - 20, 'n', 40) == NULL) {
			plant(offset);
		}
	}
	expect_ready("file", fd >= 0 && write(fd, text, SIZE) == SIZE);
	close(fd);
	is_armed = true;
	for (uint64_t i = 0; i + 6 <= SIZE; i++) {
		if (memcmp(text + i, "needle", 6) == 0 && !is_bad(i, 6)) {
			expected[expected_count++] = (struct finding){.start = i, .end = i + 6};
		}
	}
	is_armed = false;
}

/* ---- the scan ---- */

struct job {
	struct search search;
	struct search_worker workers[4];
	struct pinion_runtime *runtime;
	struct finding found[2 * FOUND_MAX];
	size_t found_count;
	struct pinion_gap gaps[GAPS_MAX];
	size_t gap_count;
	enum pinion_scan_outcome outcome;
	int error;
};

static struct job job;

static struct search_worker *worker_here(void)
{
	int index = pinion_worker_index(job.runtime);

	return &job.workers[index >= 0 ? index : 0];
}

static void note_findings(void *arg, const struct finding *findings, size_t count)
{
	(void)arg;
	for (size_t i = 0; i < count && job.found_count < 2 * FOUND_MAX; i++) {
		job.found[job.found_count++] = findings[i];
	}
}

static void note_gaps(void *arg, const struct pinion_gap *gaps, size_t count)
{
	(void)arg;
	for (size_t i = 0; i < count && job.gap_count < GAPS_MAX; i++) {
		job.gaps[job.gap_count++] = gaps[i];
	}
}

static int on_open(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	return search_open(&job.search, file->user);
}

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	return search_window(&job.search, worker_here(), file->user, window, note_findings, arg);
}

static const struct search_notes notes = {.gaps = note_gaps};

static int on_close(void *arg, struct pinion_scan_file *file, int error)
{
	(void)error;
	return search_close(&job.search, worker_here(), file->user, note_findings, &notes, arg);
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	job.outcome = outcome;
	job.error = error;
}

static const struct pinion_scan_ops ops = {on_open, on_window, on_close, on_report};

static void scan(const struct rules *rules, uint32_t window, uint32_t workers, uint32_t level,
	uint32_t direct, uint32_t report_gaps, struct pinion_scan_stats *out_stats)
{
	struct matcher_trouble trouble;
	struct pinion_config runtime;
	struct pinion_scan_config config;
	struct pinion_scan *scan;
	struct engine_needs needs;

	memset(&job, 0, sizeof(job));
	expect_ready("search", search_init(&job.search, matcher_default(), rules, &trouble) == 0);
	needs = engine_needs(job.search.engine);
	runtimes_config(&runtime, workers, level);
	runtime.buffer_bytes = window + 2 * PAGE;
	expect_ready("runtime", pinion_runtime_create(&runtime, &job.runtime) == 0);
	for (uint32_t i = 0; i < workers; i++) {
		expect_ready("worker", search_worker_init(&job.workers[i], &job.search) == 0);
	}
	pinion_scan_config_init(&config);
	config.order = needs.in_order ? PINION_SCAN_IN_ORDER : PINION_SCAN_PARALLEL;
	config.overlap_bytes = needs.overlap_bytes;
	config.window_bytes = window;
	config.direct = direct;
	config.file_user_bytes = sizeof(struct search_file);
	config.report_gaps = report_gaps;
	expect_ready("scan", pinion_scan_create(job.runtime, &config, &ops, NULL, &scan) == 0);
	is_armed = true;
	expect_number("add", 0, pinion_scan_add_file(scan, "file"));
	expect_number("finish", 0, pinion_scan_finish(scan, out_stats, sizeof(*out_stats)));
	is_armed = false;
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(job.runtime);
	for (uint32_t i = 0; i < workers; i++) {
		search_worker_fini(&job.workers[i]);
	}
	search_fini(&job.search);
}

static void check_gaps(const char *setting)
{
	size_t gap = 0;

	expect_number(setting, GAP_COUNT, (long long)job.gap_count);
	for (size_t i = 0; i < BAD_COUNT && gap < job.gap_count; gap++) {
		uint64_t start = (uint64_t)bad[i].first * PAGE;
		uint64_t end = start + (uint64_t)bad[i].count * PAGE;

		for (i++; i < BAD_COUNT && (uint64_t)bad[i].first * PAGE == end; i++) {
			end += (uint64_t)bad[i].count * PAGE;
		}
		end = end < SIZE ? end : SIZE;
		expect_number(setting, (long long)start, (long long)job.gaps[gap].offset_bytes);
		expect_number(
			setting, (long long)(end - start), (long long)job.gaps[gap].length_bytes);
		expect_number(setting, -EIO, job.gaps[gap].error);
	}
}

static void check(const struct rules *rules, uint32_t window, uint32_t workers, uint32_t level,
	uint32_t direct)
{
	struct pinion_scan_stats totals;
	uint64_t unread = 0;
	char setting[96];

	snprintf(setting, sizeof(setting), "rule %s window %u workers %u level %u direct %u",
		rules->items[0].pattern, window, workers, level, direct);
	scan(rules, window, workers, level, direct, 1, &totals);
	expect_number(setting, PINION_SCAN_FAILED, job.outcome);
	expect_number(setting, -EIO, job.error);
	expect_number(setting, 1, (long long)totals.failed);
	expect_number(setting, (long long)expected_count, (long long)job.found_count);
	for (size_t i = 0; i < expected_count && i < job.found_count; i++) {
		expect_number(setting, (long long)expected[i].start, (long long)job.found[i].start);
		expect_number(setting, (long long)expected[i].end, (long long)job.found[i].end);
	}
	check_gaps(setting);
	for (size_t i = 0; i < job.gap_count; i++) {
		unread += job.gaps[i].length_bytes;
	}
	expect_number(setting, (long long)(SIZE - unread), (long long)totals.read_bytes);
}

static void check_unasked(const struct rules *rules)
{
	struct pinion_scan_stats totals;

	scan(rules, 64 << 10, 2, PINION_IO_AUTO, PINION_DIRECT_AUTO, 0, &totals);
	expect_number("without gaps: outcome", PINION_SCAN_FAILED, job.outcome);
	expect_number("without gaps: error", -EIO, job.error);
	expect_number("without gaps: none", 0, (long long)job.gap_count);
}

static void check_rule(const char *pattern, bool is_literal)
{
	static const uint32_t windows[] = {4 << 10, 64 << 10, 1 << 20, 8 << 20};
	struct rules rules = {0};
	struct matcher_trouble trouble;

	expect_ready("rule", rules_add(&rules, "rule", pattern, strlen(pattern), is_literal) == 0);
	if (matcher_default()->measure(&rules.items[0], &trouble) != 0) {
		printf("%s: not known without a regular-expression library\n", pattern);
		rules_free(&rules);
		return;
	}
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		for (uint32_t workers = 1; workers <= 4; workers *= 2) {
			check(&rules, windows[i], workers, PINION_IO_AUTO, PINION_DIRECT_AUTO);
			check(&rules, windows[i], workers, PINION_IO_AUTO, PINION_DIRECT_ALWAYS);
			check(&rules, windows[i], workers, PINION_IO_FALLBACK, PINION_DIRECT_NEVER);
		}
	}
	check_unasked(&rules);
	rules_free(&rules);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("bad_pages_cost_themselves");
	make_file();
	check_rule("needle", true);
	check_rule("ne{1,9}dle", false);
	check_rule("\\bne+dle\\b", false);
	free(text);
	scratch_leave();
	return expect_status();
}
