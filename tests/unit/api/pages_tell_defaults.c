/* SPDX-License-Identifier: MIT */
/*
 * Goal: a default that a manual page or a public header names is the value that
 * the library writes: of configurations, pools, files, retries and scans.
 * Method: "Default N." of the comment that ends with "Environment: PINION_X."
 * is compared with the row of PINION_X in docs/man/pinion_config.md, whose
 * numbers config_page_tells_ranges holds; the others with structs that were
 * just initialised. tests/api/pages_match_help.sh has the options of commands.
 */
#include "tests/support/expect.h"

#include "runtime/api/internal.h"
#include "runtime/worker/worker.h"

#include <fcntl.h>
#include <pinion/pinion.h>
#include <stdint.h>
#include <unistd.h>

enum {
	TEXT_BYTES = 1 << 20,
	LEAST_COMPARED = 30, /* fields of configurations whose comment has this form */
};

static char page[TEXT_BYTES];
static char header[TEXT_BYTES];

static void read_text(char *text, const char *path)
{
	const char *top = getenv("top_srcdir");
	char whole[1024];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", top == NULL ? "." : top, path);
	file = fopen(whole, "r");
	expect_ready(whole, file != NULL);
	text[fread(text, 1, TEXT_BYTES - 1, file)] = '\0';
	fclose(file);
}

/* A comment as one line: without its stars, with single blanks. */
static void flatten(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; from++) {
		bool is_blank = *from == ' ' || *from == '\t' || *from == '\n' ||
			(*from == '*' && from[1] == ' ');

		if (!is_blank) {
			*to++ = *from;
		} else if (to > text && to[-1] != ' ') {
			*to++ = ' ';
		}
	}
	*to = '\0';
}

/* ---- variables ---- */

/* The third column of a variable's row, without quotes; false: none. */
static bool find_default(const char *variable, char *out_value, size_t bytes)
{
	char start[128];
	const char *row;
	const char *bar;
	size_t length;

	snprintf(start, sizeof(start), "\n| `%s` |", variable);
	row = strstr(page, start);
	if (row == NULL) {
		return false;
	}
	bar = row + strlen(start);
	for (int column = 0; column < 2; column++) {
		bar = strchr(bar, '|') + 1;
	}
	bar += strspn(bar, " `");
	length = strcspn(bar, "` |");
	snprintf(out_value, bytes, "%.*s", (int)length, bar);
	return true;
}

static bool compare_variable(const char *stated, const char *variable)
{
	char expected[64] = "";
	char what[160];

	snprintf(what, sizeof(what), "%s: the header's default", variable);
	if (!expect_true(what, find_default(variable, expected, sizeof(expected)))) {
		return false;
	}
	/* A set of bits has a word for none. */
	return expect_text(what, strcmp(expected, "nothing") == 0 ? "0" : expected, stated);
}

static uint32_t compare_header(const char *path)
{
	static const char environment[] = "Environment: ";
	uint32_t count = 0;

	read_text(header, path);
	flatten(header);
	for (char *at = strstr(header, "Default "); at != NULL; at = strstr(at + 1, "Default ")) {
		char stated[64];
		char variable[64];

		/* "Default 128. Environment: PINION_BUDGET_POLLS." */
		if (sscanf(at, "Default %63[a-zA-Z0-9_-]. Environment: %63[A-Z_].", stated,
			    variable) == 2 &&
			strcmp(stated, "NULL") != 0) {
			count += compare_variable(stated, variable) ? 1 : 0;
		}
	}
	expect_true("it names variables", strstr(header, environment) != NULL);
	return count;
}

/* ---- other structs ---- */

static void expect_words(const char *what, const char *words)
{
	if (strstr(page, words) == NULL) {
		printf("%s: expected \"%s\" in the page\n", what, words);
		expect_failure_count++;
	}
}

/* One row of a table of options: its last column but the meaning. */
static void expect_row(const char *field, const char *values, unsigned long long standard)
{
	char row[256];

	snprintf(row, sizeof(row), "\n| `%s` | %s | %llu |", field, values, standard);
	expect_words(field, row);
}

static void check_pool(void)
{
	struct pinion_pool_config config;
	char row[160];

	read_text(page, "docs/man/pinion_pool.md");
	pinion_pool_config_init(&config);
	expect_row("worker_count", "0 … 4096", config.worker_count);
	expect_row("thread_count", "0 … 4096", config.thread_count);
	expect_row("local_count", "1 … 65536", config.local_count);
	expect_row("buffer_count", "0 … 16777216", config.buffer_count);
	snprintf(row, sizeof(row), "multiple of 4096 | %u KiB |", config.buffer_bytes / 1024);
	expect_words("buffer_bytes", row);
	snprintf(row, sizeof(row), "multiple of 4096 | %u |", config.headroom_bytes);
	expect_words("headroom_bytes", row);
	snprintf(row, sizeof(row), "\n| `flags` | | %u |", config.flags);
	expect_words("flags", row);
}

static void check_pool_header(void)
{
	struct pinion_pool_config config;
	unsigned expected[16];
	size_t count = 0;

	pinion_pool_config_init(&config);
	read_text(header, "include/pinion/pool.h");
	flatten(header);
	for (char *at = strstr(header, "Default "); at != NULL && count < 16;
		at = strstr(at + 1, "Default ")) {
		if (sscanf(at, "Default %u", &expected[count]) == 1) {
			unsigned kib;
			int length = 0;

			if (sscanf(at, "Default %u KiB%n", &kib, &length) == 1 && length > 0) {
				expected[count] = kib * 1024;
			}
			count++;
		}
	}
	expect_number("numbers in pool.h", 6, (long long)count);
	expect_number("worker_count", expected[0], config.worker_count);
	expect_number("thread_count", expected[1], config.thread_count);
	expect_number("local_count", expected[2], config.local_count);
	expect_number("buffer_count", expected[3], config.buffer_count);
	expect_number("buffer_bytes", expected[4], config.buffer_bytes);
	expect_number("headroom_bytes", expected[5], config.headroom_bytes);
}

static void check_retry(void)
{
	struct pinion_retry retry;
	char words[64];

	read_text(page, "docs/man/pinion_retry.md");
	pinion_retry_init(&retry, NULL, NULL);
	snprintf(words, sizeof(words), "`attempts_max` (%u)", retry.attempts_max);
	expect_words("attempts", words);
	snprintf(words, sizeof(words), "`base_ns` (%llu ms)",
		(unsigned long long)retry.base_ns / 1000000);
	expect_words("first wait", words);
	snprintf(words, sizeof(words), "`cap_ns` (%llu s)",
		(unsigned long long)retry.cap_ns / 1000000000);
	expect_words("longest wait", words);
	snprintf(words, sizeof(words), "`jitter_percent` (%u)", retry.jitter_percent);
	expect_words("jitter", words);
}

static void check_file(void)
{
	struct pinion_file_options options;
	char words[64];

	read_text(page, "docs/man/pinion_file.md");
	pinion_file_options_init(&options);
	snprintf(words, sizeof(words), "less the umask | 0%o |", options.mode);
	expect_words("mode", words);
	expect_number("direct", PINION_DIRECT_AUTO, options.direct);
	expect_number("flags", PINION_FILE_READ, options.flags);
	expect_number("directory", AT_FDCWD, options.directory_fd);
	expect_number("resolve", 0, (long long)options.resolve);
}

/*
 * "28, and a share of 32", in 1/64 of the memory and 512 MiB, beside 3 MiB of
 * small buffers; 4 at least.
 */
static void check_buffers(void)
{
	uint64_t most_mib = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) /
		64 / (1 << 20);

	most_mib = most_mib < 512 ? most_mib : 512;
	for (uint32_t workers = 1; workers <= 256; workers *= 2) {
		struct pinion_config config;
		uint64_t each = most_mib / workers;
		uint64_t expected = 28 + 32 / workers;

		if (each < expected + 3) {
			expected = each < 7 ? 4 : each - 3;
		}
		pinion_config_init(&config);
		config.worker_count = workers;
		pin_config_complete(&config, 1);
		expect_number("large buffers", (long long)expected, config.buffer_count);
	}
}

/* The limits of buffers in "Memory" of pinion-scan(1). */
static void check_memory(void)
{
	uint32_t count = 0;

	read_text(page, "docs/man/pinion-scan.md");
	for (const char *at = strstr(page, "| workers | buffers of each"); at != NULL;
		at = strchr(at + 1, '\n')) {
		struct pinion_config config;
		unsigned workers;
		unsigned stated_mib;
		uint64_t mib;

		if (sscanf(at, "\n| %u | %u MiB |", &workers, &stated_mib) != 2) {
			continue;
		}
		pinion_config_init(&config);
		pin_config_complete(&config, workers);
		mib = pin_round_up(pin_arena_setup_arena_bytes(&config), 2 << 20) >> 20;
		expect_true("at most", mib <= stated_mib);
		/* Machines with little memory have less. */
		if (workers == 64 || config.buffer_count == 28 + 32 / workers) {
			expect_number("of each", stated_mib, (long long)mib);
		}
		count++;
	}
	expect_number("rows", 4, count);
}

int main(void)
{
	uint32_t count = 0;

	read_text(page, "docs/man/pinion_config.md");
	count += compare_header("include/pinion/config.h");
	count += compare_header("include/pinion/tuning.h");
	expect_true("most fields were compared", count >= LEAST_COMPARED);
	printf("%u fields compared\n", count);
	check_pool();
	check_pool_header();
	check_retry();
	check_file();
	check_buffers();
	check_memory();
	return expect_status();
}
