/* SPDX-License-Identifier: MIT */
/*
 * Goal: an arena is aligned to 2 MiB, writable, at least as large as asked, on
 * the best pages that can be had, and says which; what cannot be had is told.
 * Method: copies of the host whose map() refuses the first kinds, counts what
 * is mapped, and keeps the kinds it was asked for.
 */
#include "runtime/base/base.h"
#include "runtime/memory/arena.h"
#include "tests/support/expect.h"

#include <errno.h>

static enum pin_page_kind best_kind; /* what map() grants at best */
static bool refuses_all;
static int mapped_count;
static size_t unmapped_bytes;
static char message[512];

static void *map_some(size_t bytes, enum pin_page_kind kind)
{
	void *memory;

	if (kind < best_kind || refuses_all) {
		return NULL;
	}
	memory = pin_host_linux.map(bytes, kind);
	mapped_count += memory != NULL ? 1 : 0;
	return memory;
}

static void count_unmap(void *memory, size_t bytes)
{
	mapped_count--;
	unmapped_bytes = bytes;
	pin_host_linux.unmap(memory, bytes);
}

static void keep_message(void *arg, enum pinion_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	snprintf(message, sizeof(message), "%s", text);
}

static void check_kind(const struct pin_host *host, const struct pin_log *log, size_t bytes,
	enum pin_page_kind best, enum pin_page_kind expected)
{
	struct pin_arena arena;

	best_kind = best;
	if (!expect_number("init", 0, pin_arena_init(&arena, host, bytes, 0, log))) {
		return;
	}
	expect_number("alignment", 0, (long long)((uintptr_t)arena.memory % PIN_HUGE_PAGE_BYTES));
	expect_true("size is at least as asked and a multiple of 2 MiB",
		arena.bytes >= bytes && arena.bytes % PIN_HUGE_PAGE_BYTES == 0);
	expect_true("kind is not better than granted", arena.page_kind >= best);
	if (expected != PIN_PAGES_HUGETLB) {
		expect_number("kind", expected, arena.page_kind);
	}
	expect_number("page bytes",
		arena.page_kind == PIN_PAGES_SMALL ? PIN_PAGE_BYTES : PIN_HUGE_PAGE_BYTES,
		pin_arena_page_bytes(&arena));
	arena.memory[0] = 1;
	arena.memory[arena.bytes - 1] = 1;
	bytes = arena.bytes;
	pin_arena_fini(&arena);
	expect_number("unmapped", (long long)bytes, (long long)unmapped_bytes);
	pin_arena_fini(&arena);
}

int main(void)
{
	struct pin_host host = pin_host_linux;
	struct pin_log log = {.fn = keep_message};
	struct pin_arena arena = {0};
	void *thp = pin_host_linux.map(PIN_HUGE_PAGE_BYTES, PIN_PAGES_THP);

	host.map = map_some;
	host.unmap = count_unmap;
	check_kind(&host, &log, 1, PIN_PAGES_HUGETLB, PIN_PAGES_HUGETLB);
	check_kind(&host, &log, PIN_HUGE_PAGE_BYTES + 1, PIN_PAGES_THP,
		thp != NULL ? PIN_PAGES_THP : PIN_PAGES_SMALL);
	check_kind(&host, &log, 5 * PIN_HUGE_PAGE_BYTES, PIN_PAGES_SMALL, PIN_PAGES_SMALL);
	if (thp != NULL) {
		pin_host_linux.unmap(thp, PIN_HUGE_PAGE_BYTES);
	}

	refuses_all = true;
	expect_number("init without memory", -ENOMEM,
		pin_arena_init(&arena, &host, 3 * PIN_HUGE_PAGE_BYTES, 0, &log));
	expect_true("the message names the size", strstr(message, "6 MiB") != NULL);
	pin_arena_fini(&arena);
	expect_number("mappings left", 0, mapped_count);
	return expect_status();
}
