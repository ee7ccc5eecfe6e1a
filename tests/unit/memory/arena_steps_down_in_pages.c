/* SPDX-License-Identifier: MIT */
/*
 * Goal: an arena is aligned to 2 MiB, writable, as large as asked, on huge
 * pages rounded up to 2 MiB, on the best pages that can be had, and says which,
 * as the kernel gave them and not as it promised; a message names pages that
 * cannot be had. W2, BP-49, C21.
 * Method: copies of the host whose map() refuses the first kinds, keeps no
 * promise, or gives pages that end the process when they are touched; a child
 * for whom the kernel makes no huge pages; and counts of mapped pages.
 */
#include "runtime/base/base.h"
#include "runtime/host/numa.h"
#include "runtime/memory/arena.h"
#include "tests/support/child.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static enum pin_page_kind best_kind; /* what map() grants at best */
static bool refuses_all;
static int mapped_count;
static size_t unmapped_bytes;
static const void *arena_memory; /* of the arena that ends */
static char message[512];
static bool can_have_huge; /* transparent ones */
static bool can_collapse;
static bool may_be_huge_unasked;
static bool lacks_huge; /* there was not enough when an arena was made */

enum { TRIES = 5 };

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
	/* Less than a huge page: the part added by rounding up. */
	if (bytes % PIN_HUGE_PAGE_BYTES == 0 || memory == arena_memory) {
		mapped_count--;
		unmapped_bytes = bytes;
	}
	pin_host_linux.unmap(memory, bytes);
}

static void keep_message(void *arg, enum pinion_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	snprintf(message, sizeof(message), "%s", text);
}

static size_t count_huge(const void *memory, size_t bytes)
{
	size_t huge_bytes = 0;

	expect_number("the kernel reports its pages", 0,
		pin_pages_count_huge(memory, bytes, &huge_bytes));
	return huge_bytes;
}

/* That amount on huge pages, by the calls themselves. */
static bool has_huge_now(size_t bytes, enum pin_page_kind kind)
{
	uint8_t *memory = pin_host_linux.map(bytes, kind);
	bool is_huge;

	if (memory == NULL) {
		return false;
	}
	memset(memory, 1, bytes);
	is_huge = kind == PIN_PAGES_SMALL ? pin_pages_collapse(memory, bytes) == 0
					  : count_huge(memory, bytes) == bytes;
	pin_host_linux.unmap(memory, bytes);
	return is_huge;
}

/*
 * The kernel has huge pages as long as memory is not in pieces, which others
 * may do. Where it has them, an arena has got them, then or the next time.
 */
static int init_huge(struct pin_arena *arena, const struct pin_host *host,
	const struct pin_arena_options *options, const struct pin_log *log, enum pin_page_kind kind)
{
	int rc = pin_arena_init(arena, host, options, log);

	lacks_huge = false;
	for (int i = 0; i < TRIES && rc == 0 && arena->huge_bytes < arena->bytes && !lacks_huge;
		i++) {
		lacks_huge = !has_huge_now(arena->bytes, kind);
		if (!lacks_huge) {
			pin_arena_fini(arena);
			rc = pin_arena_init(arena, host, options, log);
		}
	}
	return rc;
}

static void check_kind(const struct pin_host *host, const struct pin_log *log, size_t bytes,
	enum pin_page_kind best, enum pin_page_kind expected)
{
	struct pin_arena_options options = {.bytes = bytes};
	struct pin_arena arena;

	best_kind = best;
	if (!expect_number("init", 0,
		    can_have_huge && best < PIN_PAGES_SMALL
			    ? init_huge(&arena, host, &options, log, PIN_PAGES_THP)
			    : pin_arena_init(&arena, host, &options, log))) {
		return;
	}
	expect_number("alignment", 0, (long long)((uintptr_t)arena.memory % PIN_HUGE_PAGE_BYTES));
	expect_true("size is as asked, but for the last huge page",
		arena.bytes == pin_round_up(bytes, PIN_PAGE_BYTES) ||
			(arena.bytes == pin_round_up(bytes, PIN_HUGE_PAGE_BYTES) &&
				(arena.huge_bytes > 0 || arena.has_unknown_pages)));
	expect_true("kind is not better than granted", arena.page_kind >= best);
	if (expected != PIN_PAGES_HUGETLB) {
		expect_number("kind", expected, arena.page_kind);
	}
	if (arena.page_kind == PIN_PAGES_SMALL && !may_be_huge_unasked) {
		expect_number("page bytes", PIN_PAGE_BYTES, pin_arena_page_bytes(&arena));
		expect_number("huge bytes", 0, (long long)arena.huge_bytes);
	} else if (arena.page_kind == PIN_PAGES_SMALL) {
		/* Some of it, or all; the kernel may have made more since. */
		expect_true("no more huge than the kernel has them",
			arena.huge_bytes <= count_huge(arena.memory, arena.bytes));
	} else if (can_have_huge && lacks_huge) {
		expect_true("no more huge than the kernel has them",
			arena.huge_bytes <= count_huge(arena.memory, arena.bytes));
	} else if (can_have_huge) {
		expect_number("page bytes", PIN_HUGE_PAGE_BYTES, pin_arena_page_bytes(&arena));
		expect_number("huge bytes", (long long)arena.bytes, (long long)arena.huge_bytes);
	}
	arena.memory[0] = 1;
	arena.memory[arena.bytes - 1] = 1;
	bytes = arena.bytes;
	arena_memory = arena.memory;
	pin_arena_fini(&arena);
	expect_number("unmapped", (long long)bytes, (long long)unmapped_bytes);
	pin_arena_fini(&arena);
}

/*
 * By its setting: where it is "always", the first page that is tried may find
 * no room and the next ones may.
 */
static bool gives_huge_unasked(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char words[64] = "";
	bool is_always = false;

	if (file != NULL) {
		is_always = fgets(words, sizeof(words), file) != NULL &&
			strstr(words, "[always]") != NULL;
		fclose(file);
	}
	return is_always;
}

/* What this machine can do, by the calls themselves. */
static void find_abilities(void)
{
	uint8_t *memory = pin_host_linux.map(PIN_HUGE_PAGE_BYTES, PIN_PAGES_SMALL);

	expect_ready("map", memory != NULL);
	memset(memory, 1, PIN_HUGE_PAGE_BYTES);
	may_be_huge_unasked = gives_huge_unasked() || count_huge(memory, PIN_HUGE_PAGE_BYTES) > 0;
	can_collapse = pin_pages_collapse(memory, PIN_HUGE_PAGE_BYTES) == 0;
	pin_host_linux.unmap(memory, PIN_HUGE_PAGE_BYTES);
	memory = pin_host_linux.map(PIN_HUGE_PAGE_BYTES, PIN_PAGES_THP);
	if (memory != NULL) {
		memset(memory, 1, PIN_HUGE_PAGE_BYTES);
		can_have_huge = count_huge(memory, PIN_HUGE_PAGE_BYTES) > 0;
		pin_host_linux.unmap(memory, PIN_HUGE_PAGE_BYTES);
	}
}

/* Huge pages are promised, and small ones given. */
static void *map_broken_promise(size_t bytes, enum pin_page_kind kind)
{
	return kind == PIN_PAGES_THP ? pin_host_linux.map(bytes, PIN_PAGES_SMALL) : NULL;
}

static void check_collapse(struct pin_host host, const struct pin_log *log)
{
	struct pin_arena_options options = {.bytes = 3 * PIN_HUGE_PAGE_BYTES};
	struct pin_arena arena;

	host.map = map_broken_promise;
	host.unmap = pin_host_linux.unmap;
	if (!can_collapse) {
		return;
	}
	expect_number(
		"a broken promise", 0, init_huge(&arena, &host, &options, log, PIN_PAGES_SMALL));
	if (lacks_huge) {
		pin_arena_fini(&arena);
		return;
	}
	expect_number("is mended while warm", (long long)arena.bytes, (long long)arena.huge_bytes);
	expect_number("which is true", (long long)arena.bytes,
		(long long)count_huge(arena.memory, arena.bytes));
	pin_arena_fini(&arena);
}

/* As huge pages that a cgroup withholds: mapped, and a signal when touched. */
static void *map_hollow(size_t bytes, enum pin_page_kind kind)
{
	void *memory;
	int fd;

	if (kind != PIN_PAGES_HUGETLB) {
		return pin_host_linux.map(bytes, kind);
	}
	fd = memfd_create("hollow", MFD_CLOEXEC);
	expect_ready("memfd", fd >= 0);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

static int init_on_hollow(void *arg)
{
	struct pin_host host = pin_host_linux;
	struct pin_arena_options options = {.bytes = PIN_HUGE_PAGE_BYTES};
	struct pin_log log = {0};
	struct pin_arena arena;

	(void)arg;
	host.map = map_hollow;
	expect_number("init", 0, pin_arena_init(&arena, &host, &options, &log));
	expect_true("the next kind is taken", arena.page_kind > PIN_PAGES_HUGETLB);
	memset(arena.memory, 1, arena.bytes);
	pin_arena_fini(&arena);
	return expect_status();
}

static int init_without_huge(void *arg)
{
	struct pin_arena_options options = {.bytes = 2 * PIN_HUGE_PAGE_BYTES + 1};
	struct pin_log log = {0};
	struct pin_host host = pin_host_linux;
	struct pin_arena arena;

	(void)arg;
	host.map = map_some;
	best_kind = PIN_PAGES_THP;
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
		printf("skipped: huge pages cannot be forbidden here\n");
		return EXPECT_SKIPPED;
	}
	expect_number("init", 0, pin_arena_init(&arena, &host, &options, &log));
	expect_number("asked for as", PIN_PAGES_THP, arena.page_kind);
	expect_number("and yet no huge page", 0, (long long)arena.huge_bytes);
	expect_true("which is known", !arena.has_unknown_pages);
	expect_number("so none is filled up", 2 * PIN_HUGE_PAGE_BYTES + PIN_PAGE_BYTES,
		(long long)arena.bytes);
	expect_number("page bytes", PIN_PAGE_BYTES, pin_arena_page_bytes(&arena));
	pin_arena_fini(&arena);
	return expect_status();
}

/* BP-48, DONTFORK: a child's copy would take pages away under a read. */
static int look_from_child(void *arg)
{
	const struct pin_arena *arena = arg;
	unsigned char resident;

	for (size_t i = 0; i < arena->bytes; i += PIN_PAGE_BYTES) {
		expect_number("a page of the arena in a child", -1,
			mincore(arena->memory + i, PIN_PAGE_BYTES, &resident));
		expect_number("and why not", ENOMEM, errno);
	}
	return expect_status();
}

/*
 * ThreadSanitizer maps memory of its own into a child, perhaps at that address.
 */
#ifdef __SANITIZE_THREAD__
static const bool can_look_from_child = false;
#else
static const bool can_look_from_child = true;
#endif

static void check_fork(const struct pin_host *host, const struct pin_log *log)
{
	for (int kind = PIN_PAGES_THP; kind <= PIN_PAGES_SMALL && can_look_from_child; kind++) {
		struct pin_arena_options options = {.bytes = PIN_HUGE_PAGE_BYTES};
		struct pin_arena arena;

		best_kind = (enum pin_page_kind)kind;
		expect_number("init", 0, pin_arena_init(&arena, host, &options, log));
		expect_number("a child's look", 0,
			child_code(child_run(look_from_child, &arena, NULL, 0)));
		pin_arena_fini(&arena);
	}
}

static void check_child(const char *what, int (*body)(void *))
{
	int code = child_code(child_run(body, NULL, NULL, 0));

	if (code != EXPECT_SKIPPED) {
		expect_number(what, 0, code);
	}
}

int main(void)
{
	struct pin_host host = pin_host_linux;
	struct pin_log log = {.fn = keep_message};
	struct pin_arena_options options = {.bytes = 3 * PIN_HUGE_PAGE_BYTES};
	struct pin_arena arena = {0};
	void *thp = pin_host_linux.map(PIN_HUGE_PAGE_BYTES, PIN_PAGES_THP);

	find_abilities();
	check_collapse(host, &log);
	check_child("huge pages that cannot be touched", init_on_hollow);
	check_child("a process without huge pages", init_without_huge);
	host.map = map_some;
	host.unmap = count_unmap;
	check_fork(&host, &log);
	check_kind(&host, &log, 1, PIN_PAGES_HUGETLB, PIN_PAGES_HUGETLB);
	check_kind(&host, &log, PIN_HUGE_PAGE_BYTES + 1, PIN_PAGES_THP,
		thp != NULL ? PIN_PAGES_THP : PIN_PAGES_SMALL);
	check_kind(&host, &log, 5 * PIN_HUGE_PAGE_BYTES, PIN_PAGES_SMALL, PIN_PAGES_SMALL);
	if (thp != NULL) {
		pin_host_linux.unmap(thp, PIN_HUGE_PAGE_BYTES);
	}

	refuses_all = true;
	expect_number(
		"init without memory", -ENOMEM, pin_arena_init(&arena, &host, &options, &log));
	expect_true("the message names the size", strstr(message, "6 MiB") != NULL);
	pin_arena_fini(&arena);
	expect_number("mappings left", 0, mapped_count);
	return expect_status();
}
