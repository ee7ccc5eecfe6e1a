/* SPDX-License-Identifier: MIT */
/*
 * Goal: pages that are never filled, or whose parts are never whole, hold up a
 * report for a bounded time, however many they are: 20 pauses for all pages
 * that are not filled, and 64 for the parts of one page.
 * Method: this process has 64 empty pages; a page's parts are made odd. Pauses
 * are counted in place of nanosleep(2).
 */
#include "runtime/observe/metrics_page.h"
#include "tests/support/expect.h"
#include "tests/support/metrics.h"
#include "tools/report.h"
#include "tools/top/watch.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 64, PAGE = 4096, WORKERS = 40, PAUSES = 20, PART_PAUSES = 64 };

static const struct pin_log log_lines = {.fn = note};
static uint32_t pauses;

/* In place of libc's. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	pauses++;
	return 0;
}

static void check_unfilled(void)
{
	char number[16];
	char *operands[] = {number, number, NULL};
	struct top_watch watch = {.operands = operands, .operand_count = 2};
	int pages[PAGES];

	snprintf(number, sizeof(number), "%d", (int)getpid());
	for (uint32_t i = 0; i < PAGES; i++) {
		pages[i] = memfd_create("pinion-metrics", MFD_CLOEXEC);
		expect_ready("page", pages[i] >= 0 && ftruncate(pages[i], PAGE) == 0);
	}
	for (uint32_t report = 1; report <= 2; report++) {
		expect_true("memory", top_watch_find(&watch));
		expect_number("pauses", report * PAUSES, pauses);
	}
	expect_number("pages", 0, (long long)watch.count);
	expect_true("refused", watch.had_trouble);
	top_watch_fini(&watch);
	for (uint32_t i = 0; i < PAGES; i++) {
		close(pages[i]);
	}
}

static void check_torn(void)
{
	struct pin_page_setup setup = {.host = &pin_host_linux,
		.log = &log_lines,
		.worker_count = WORKERS,
		.is_shared = true};
	struct pin_metrics_page *page = NULL;
	struct pinion_metrics_info info;
	struct pin_observed observed;
	struct pinion_metrics *metrics;

	expect_ready("page", pin_metrics_page_create(&setup, &page) == 0);
	for (uint32_t i = 0; i < WORKERS; i++) {
		pin_metrics_page_join(page, i, &observed);
		pin_store_relaxed_u64(&observed.slot[0], 7);
	}
	metrics = open_own(0);
	pauses = 0;
	expect_number("snapshot", -EAGAIN, pinion_metrics_snapshot(metrics));
	expect_number("pauses for its parts", PART_PAUSES, pauses);
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_number("torn", WORKERS, info.torn_count);
	pinion_metrics_close(metrics);
	pin_metrics_page_destroy(page, &pin_host_linux);
}

int main(void)
{
	report_name_command("top");
	check_unfilled();
	check_torn();
	return expect_status();
}
