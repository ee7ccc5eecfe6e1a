/* SPDX-License-Identifier: MIT */
/*
 * Goal: the newest way counts the huge pages of a range exactly, and the older
 * one never counts more than there are. G6.
 * Method: ranges of huge, small and mixed pages; both ways on them; and a
 * recorded smaps in which the range is part of a larger mapping, or of two.
 */
#include "runtime/base/base.h"
#include "runtime/host/host.h"
#include "runtime/host/numa.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

enum { HUGE = PIN_HUGE_PAGE_BYTES };

static void check_count(const char *what, const uint8_t *memory, size_t bytes, size_t expected)
{
	size_t huge_bytes = 12345;

	expect_number(what, 0, pin_pages_count_huge(memory, bytes, &huge_bytes));
	expect_number(what, (long long)expected, (long long)huge_bytes);
	expect_number(
		what, 0, pin_pages_count_huge_in("/proc/self/smaps", memory, bytes, &huge_bytes));
	if (huge_bytes > expected) {
		printf("%s by smaps: expected at most %zu, got %zu\n", what, expected, huge_bytes);
		expect_failure_count++;
	}
}

/* Of these eight all but the third; the kernel may have had none left. */
static bool has_huge_pages(const uint8_t *memory)
{
	bool has_all = true;

	for (size_t i = 0; i < 8; i++) {
		size_t bytes = 0;

		expect_number("count", 0, pin_pages_count_huge(memory + i * HUGE, HUGE, &bytes));
		has_all = has_all && (i == 2 || bytes == HUGE);
	}
	return has_all;
}

static void check_memory(void)
{
	uint8_t *memory = pin_host_linux.map(8 * HUGE, PIN_PAGES_THP);
	size_t all;
	size_t local;
	size_t count;

	expect_ready("map", memory != NULL);
	check_count("untouched", memory, 8 * HUGE, 0);
	/* Two small pages among huge ones. */
	expect_ready("madvise", madvise(memory + 2 * HUGE, HUGE, MADV_NOHUGEPAGE) == 0);
	memset(memory, 1, 8 * HUGE);
	if (!has_huge_pages(memory)) {
		printf("no transparent huge pages here, or too few\n");
	} else {
		check_count("all huge", memory, 2 * HUGE, 2 * HUGE);
		check_count("mixed", memory, 8 * HUGE, 7 * HUGE);
		check_count("small in the middle", memory + 2 * HUGE, HUGE, 0);
		check_count("a part of a huge page", memory + 4 * HUGE, PIN_PAGE_BYTES * 3,
			PIN_PAGE_BYTES * 3);
	}
	expect_number("populate present pages", 0, pin_pages_populate(memory, 8 * HUGE));

	/* W12. */
	if (pin_placement_count_local(memory, 8 * HUGE, PIN_PAGE_BYTES, 0, &local, &count) == 0) {
		size_t elsewhere;

		expect_number("pages asked about", 8 * HUGE / PIN_PAGE_BYTES, (long long)count);
		expect_number("asked again", 0,
			pin_placement_count_local(
				memory, 8 * HUGE, PIN_PAGE_BYTES, 900, &elsewhere, &count));
		expect_number("pages on node 900", 0, (long long)elsewhere);
	}
	pin_host_linux.unmap(memory, 8 * HUGE);
	expect_true("unmapped pages are no memory",
		pin_pages_count_huge_in("/proc/self/smaps", memory, HUGE, &all) < 0);
}

static const struct recorded {
	const char *what;
	size_t start; /* in units of 2 MiB from the base */
	size_t count;
	long long expected; /* of the older way; or -1: unknown */
} recorded[] = {
	{"all of a mapping", 0, 4, 3},
	{"less than the small rest of it", 0, 1, 0},
	{"more than the small rest of it", 0, 2, 1},
	{"two mappings", 0, 8, 7},
	{"the end of one page and the start of another", 3, 3, 2},
	{"all huge", 4, 4, 4},
	{"beyond the last", 6, 3, -1},
	{"hugetlb", 16, 2, 2},
};

static void check_recorded(void)
{
	const uint64_t base = UINT64_C(0x7f0000000000);
	FILE *file = fopen("smaps", "w");
	size_t huge_bytes;

	expect_ready("smaps", file != NULL);
	fprintf(file, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0\n", base, base + 4 * HUGE);
	fprintf(file, "Size: 8192 kB\nAnonHugePages: %u kB\nVmFlags: rd wr hg\n", 3 * 2048);
	fprintf(file, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 [heap]\n", base + 4 * HUGE,
		base + 8 * HUGE);
	fprintf(file, "AnonHugePages:    %u kB\nPrivate_Hugetlb: 0 kB\n", 4 * 2048);
	fprintf(file, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:10 1 /anon_hugepage (deleted)\n",
		base + 16 * HUGE, base + 18 * HUGE);
	fprintf(file, "AnonHugePages: 0 kB\nPrivate_Hugetlb: %u kB\n", 2 * 2048);
	fclose(file);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(recorded); i++) {
		const struct recorded *r = &recorded[i];
		int rc = pin_pages_count_huge_in(
			"smaps", (void *)(base + r->start * HUGE), r->count * HUGE, &huge_bytes);

		expect_number(r->what, r->expected < 0 ? -ENOENT : 0, rc);
		if (rc == 0) {
			expect_number(r->what, r->expected * HUGE, (long long)huge_bytes);
		}
	}
	expect_number("no such file", -ENOENT,
		pin_pages_count_huge_in("no-smaps", (void *)base, HUGE, &huge_bytes));
}

int main(void)
{
	scratch_enter("pages");
	check_memory();
	check_recorded();
	scratch_leave();
	return expect_status();
}
