/* SPDX-License-Identifier: MIT */
/*
 * Goal: a metrics page that is cut, of another version, no page at all, or
 * hostile, is refused with one line, or read within its bounds: never a touch
 * beyond it, an endless read or a signal. A page with more rows, larger rows
 * and rows of unknown kinds, as of a newer writer, is read.
 * Method: mutations of a true page in a file: bits, bytes, words of dangerous
 * values, cuts; most in the header and the table. METRICS_MUTATIONS=n for more
 * than 10000; PINION_SEED repeats.
 */
#include "runtime/observe/metrics_page.h"
#include "tests/support/parts.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>

enum { MUTATIONS = 10000 };

static uint8_t *page; /* as it was written */
static size_t page_bytes;
static uint8_t *mutant;
static struct random_source random_state;
static uint32_t lines;
static uint32_t refused;
static uint32_t accepted;

static void note(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	lines++;
	expect_true("a line has no line's end", strchr(message, '\n') == NULL);
}

static void read_page(void)
{
	char path[512];
	struct pinion_config config;
	struct pinion_runtime *runtime;
	FILE *file;

	expect_ready("folder", getcwd(path, sizeof(path) - 16) != NULL);
	strcat(path, "/page");
	runtimes_config(&config, 2, PINION_IO_FALLBACK);
	runtimes_tuning.metrics_file = path;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	pinion_runtime_destroy(runtime);
	page = calloc(1, PIN_PAGE_BYTES_MAX);
	mutant = calloc(1, 2 * PIN_PAGE_BYTES_MAX);
	file = fopen(path, "re");
	expect_ready("page", file != NULL && page != NULL && mutant != NULL);
	page_bytes = fread(page, 1, PIN_PAGE_BYTES_MAX, file);
	expect_true("of whole pages", page_bytes > 0 && page_bytes % 4096 == 0);
	fclose(file);
}

static void write_mutant(size_t bytes)
{
	int fd = open("mutant", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	expect_ready("mutant", fd >= 0 && write(fd, mutant, bytes) == (ssize_t)bytes);
	close(fd);
}

/* All that a reader can do with it. */
static int use_mutant(void)
{
	static struct pinion_histogram histogram;
	struct pinion_metrics *metrics = NULL;
	struct pinion_metrics_field field;
	struct pinion_metrics_info info;
	uint32_t before = lines;
	int rc = pinion_metrics_open("mutant", note, NULL, &metrics);

	expect_number("one line for a refusal", rc < 0 ? 1 : 0, lines - before);
	if (rc < 0) {
		return rc;
	}
	rc = pinion_metrics_snapshot(metrics);
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	for (uint32_t i = 0; pinion_metrics_get_field(metrics, i, &field, sizeof(field)) == 0;
		i++) {
		uint64_t value;

		for (uint32_t copy = 0; copy < field.copies; copy++) {
			expect_number("value", 0, pinion_metrics_read(metrics, i, copy, &value));
			(void)pinion_metrics_read_histogram(metrics, i, copy, &histogram);
		}
	}
	(void)pinion_histogram_quantile_ns(&histogram, 500);
	pinion_metrics_close(metrics);
	return rc == -EAGAIN ? 0 : rc;
}

/* ---- mutations ---- */

static size_t below(size_t limit)
{
	return (size_t)random_below(&random_state, limit);
}

/* Most in the header and the table, as no other word is believed. */
static size_t place(void)
{
	switch (below(4)) {
	case 0:
		return below(page_bytes);
	case 1:
		return below(sizeof(struct pin_page_header));
	default:
		return below(16384);
	}
}

static void spoil(void)
{
	static const uint64_t dangerous[] = {0, 1, UINT64_MAX, UINT64_MAX / 8, INT64_MAX,
		UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 61, 32768, 32767, 20000, 992, 994};
	uint64_t word = dangerous[below(PIN_ARRAY_COUNT(dangerous))];
	size_t at = place();

	switch (below(4)) {
	case 0:
		mutant[at] ^= (uint8_t)(1u << below(8));
		break;
	case 1:
		mutant[at] = (uint8_t)below(256);
		break;
	case 2:
		memcpy(mutant + at / 8 * 8, &word, 8);
		break;
	default:
		memcpy(mutant + at / 4 * 4, &word, 4);
		break;
	}
}

/* The sequence of a part would keep a reader for a millisecond. */
static void settle(void)
{
	const struct pin_page_header *header = (const void *)page;
	uint64_t zero = 0;

	if (below(100) != 0) {
		memcpy(mutant + header->runtime_at * 8, &zero, 8);
		for (uint32_t i = 0; i < header->slot_count; i++) {
			memcpy(mutant + (header->slots_at + i * header->slot_words) * 8, &zero, 8);
		}
	}
}

static void check_mutations(unsigned long count)
{
	for (unsigned long i = 0; i < count && expect_failure_count == 0; i++) {
		size_t bytes = page_bytes;

		memcpy(mutant, page, page_bytes);
		for (size_t k = below(4) + 1; k > 0; k--) {
			spoil();
		}
		settle();
		if (below(16) == 0) {
			bytes = below(2) == 0 ? below(page_bytes) : below(1024);
		}
		write_mutant(bytes);
		if (use_mutant() == 0) {
			accepted++;
		} else {
			refused++;
		}
	}
	expect_true("some are refused, some are not", refused > 0 && accepted > 0);
	printf("%u refused, %u read\n", refused, accepted);
}

/* ---- by value ---- */

static void start_again(void)
{
	memset(mutant, 0, 2 * PIN_PAGE_BYTES_MAX);
	memcpy(mutant, page, page_bytes);
}

static void check_refusals(void)
{
	struct pin_page_header *header = (void *)mutant;
	struct pinion_metrics *metrics;

	start_again();
	write_mutant(page_bytes);
	expect_number("the true one", 0, use_mutant());
	header->version = 2;
	write_mutant(page_bytes);
	expect_number("version", -EPROTONOSUPPORT, use_mutant());
	start_again();
	write_mutant(page_bytes - 4096);
	expect_number("cut", -EPROTO, use_mutant());
	write_mutant(100);
	expect_number("cut in the header", -EPROTO, use_mutant());
	write_mutant(0);
	expect_number("empty", -EPROTO, use_mutant());
	memset(mutant, 0, 8);
	write_mutant(page_bytes);
	expect_number("not filled yet", -EAGAIN, use_mutant());
	memset(mutant, 'x', 8);
	write_mutant(page_bytes);
	expect_number("something else", -EPROTO, use_mutant());
	lines = 0;
	expect_number("a folder", -EPROTO, pinion_metrics_open(".", note, NULL, &metrics));
	expect_number("a device", -EPROTO, pinion_metrics_open("/dev/zero", note, NULL, &metrics));
	expect_number("none", -ENOENT, pinion_metrics_open("nothing", note, NULL, &metrics));
	expect_number("a line each", 3, lines);
}

/* Copies without end, all in the same place: a reader would never be done. */
static void check_copies(void)
{
	static const struct {
		uint32_t copies;
		uint32_t stride;
		int status;
	} cases[] = {
		{4, 1, 0},
		{1, 0, 0},
		{2, 0, -EPROTO},
		{UINT32_MAX, 0, -EPROTO},
		{4097, 1, -EPROTO},
		{0, 1, -EPROTO},
	};
	const struct pin_page_header *header = (const void *)page;

	for (size_t i = 0; i < PIN_ARRAY_COUNT(cases); i++) {
		struct pin_page_field *field;

		start_again();
		field = (void *)(mutant + header->fields_at * 8);
		field->kind = PIN_PAGE_GAUGE;
		field->scope = PIN_PAGE_DEVICE;
		field->at = 1;
		field->words = 1;
		field->copies = cases[i].copies;
		field->stride = cases[i].stride;
		write_mutant(page_bytes);
		expect_number("copies", cases[i].status, use_mutant());
	}
}

/* As a newer version would: rows of 96 bytes, one of an unknown kind. */
static void check_newer(void)
{
	struct pin_page_header *header = (void *)mutant;
	const struct pin_page_header *old = (const void *)page;
	const size_t wide = 96;

	start_again();
	header->field_bytes = (uint32_t)wide;
	header->fields_at = page_bytes / 8;
	for (uint32_t i = 0; i < old->field_count; i++) {
		memcpy(mutant + page_bytes + i * wide, page + old->fields_at * 8 + i * 64, 64);
	}
	((struct pin_page_field *)(void *)(mutant + page_bytes))->kind = 77;
	header->word_count = (page_bytes + old->field_count * wide) / 8;
	write_mutant(header->word_count * 8);
	expect_number("a newer one", 0, use_mutant());
}

/* Its writer was killed within a write. */
static void check_torn(void)
{
	const struct pin_page_header *header = (const void *)page;
	struct pinion_metrics *metrics;
	struct pinion_metrics_info info;
	uint64_t odd = 7;

	start_again();
	memcpy(mutant + (header->slots_at + header->slot_words) * 8, &odd, 8);
	write_mutant(page_bytes);
	expect_number("open", 0, pinion_metrics_open("mutant", note, NULL, &metrics));
	expect_number("snapshot", -EAGAIN, pinion_metrics_snapshot(metrics));
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_number("one part", 1, info.torn_count);
	expect_ready("cut", truncate("mutant", 4096) == 0);
	expect_number("cut meanwhile", -EPROTO, pinion_metrics_snapshot(metrics));
	pinion_metrics_close(metrics);
}

int main(void)
{
	const char *given = getenv("METRICS_MUTATIONS");

	random_begin(&random_state);
	scratch_enter("hostile_metrics_are_refused");
	read_page();
	check_refusals();
	check_newer();
	check_copies();
	check_torn();
	parts_run(given == NULL ? MUTATIONS : strtoul(given, NULL, 10), &random_state,
		check_mutations);
	free(page);
	free(mutant);
	scratch_leave();
	return expect_status();
}
