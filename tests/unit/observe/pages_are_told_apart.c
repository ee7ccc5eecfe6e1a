/* SPDX-License-Identifier: MIT */
/*
 * Goal: a new page shows its workers as absent. Where it would take one of the
 * last descriptors there is none, and a line says so. Of the descriptors of a
 * process its own pages count: of another start of that number none does, and
 * of files those alone that are open as a runtime opens them. `pinion top` says
 * how many runtimes of a process it does not show. The first four devices have
 * their values. WP-33.
 * A page has room for as many workers as fit, and the program's name in UTF-8,
 * cut at the end of a character, without bytes that a terminal would obey.
 * Method: pages without a runtime, and copies of these in other files.
 */
#include "runtime/observe/metrics_page.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <pinion/metrics.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORKERS = 3, SHOWN = 64, CROWD = 70, MANY = 4096, DEVICES = 4 };

static char said[512];

static void note(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(said, sizeof(said), "%s", message);
}

static const struct pin_log log_lines = {.fn = note};

static bool is_scarce(int fd)
{
	return fd >= 0;
}

static struct pin_metrics_page *make(const struct pin_host *host, const char *path)
{
	struct pin_page_setup setup = {
		.host = host,
		.log = &log_lines,
		.worker_count = WORKERS,
		.is_shared = true,
		.path = path,
	};
	struct pin_metrics_page *page = NULL;

	said[0] = '\0';
	expect_ready("page", pin_metrics_page_create(&setup, &page) == 0);
	return page;
}

static void check_absent(void)
{
	struct pin_metrics_page *page = make(&pin_host_linux, NULL);
	struct pin_observed observed = {.slot = NULL};

	for (uint32_t i = 0; i < WORKERS; i++) {
		pin_metrics_page_join(page, i, &observed);
		expect_number("place", PINION_WORKER_ABSENT,
			(long long)pin_load_relaxed_u64(&observed.slot[PIN_SLOT_PLACE]));
	}
	expect_text("no line", "", said);
	pin_metrics_page_destroy(page, &pin_host_linux);
}

static void check_scarce(void)
{
	struct pin_host host = pin_host_linux;
	struct pin_metrics_page *page;

	host.fd_is_scarce = is_scarce;
	page = make(&host, NULL);
	expect_true("memory of its own", page->words != NULL && page->page.memory == NULL);
	expect_number("no descriptor", -1, page->page.fd);
	expect_true(said,
		strstr(said,
			": it would take one of the last descriptors (ulimit -n): "
			"Too many open files") != NULL);
	pin_metrics_page_destroy(page, &host);
}

/* ---- which are found ---- */

static uint32_t count_pages(void)
{
	struct pinion_metrics *metrics = NULL;
	uint32_t found = 0;

	while (pinion_metrics_open_pid(getpid(), found, note, NULL, &metrics) == 0) {
		pinion_metrics_close(metrics);
		found++;
	}
	return found;
}

static void copy_to(int fd, const struct pin_metrics_page *page, uint64_t later)
{
	size_t bytes = page->word_count * 8;
	struct pin_page_header *copy = malloc(bytes);

	expect_ready("copy", copy != NULL);
	memcpy(copy, page->words, bytes);
	copy->owner.process_start += later;
	expect_ready("write", pwrite(fd, copy, bytes, 0) == (ssize_t)bytes);
	free(copy);
}

static void check_starts(void)
{
	struct pin_metrics_page *page = make(&pin_host_linux, NULL);
	int other = memfd_create(PIN_SHARED_PAGE_NAME, MFD_CLOEXEC);

	expect_ready("memfd", other >= 0);
	copy_to(other, page, 0);
	expect_number("a copy", 2, count_pages());
	copy_to(other, page, 1);
	expect_number("of another start", 1, count_pages());
	close(other);
	pin_metrics_page_destroy(page, &pin_host_linux);
}

static void check_files(void)
{
	struct pin_metrics_page *page = make(&pin_host_linux, NULL);
	int file = open("file", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	expect_ready("file", file >= 0);
	copy_to(file, page, 0);
	expect_number("as a runtime", 2, count_pages());
	expect_ready("fcntl", fcntl(file, F_SETFD, 0) == 0);
	expect_number("not closed by exec", 1, count_pages());
	close(file);
	file = open("file", O_RDONLY | O_CLOEXEC);
	expect_number("read alone", 1, count_pages());
	close(file);
	pin_metrics_page_destroy(page, &pin_host_linux);
}

/* ---- many ---- */

static void check_crowd(void)
{
	static struct pin_metrics_page *pages[CROWD];
	const char *folder = getenv("top_builddir");
	char command[512];

	for (uint32_t i = 0; i < CROWD; i++) {
		pages[i] = make(&pin_host_linux, NULL);
	}
	snprintf(command, sizeof(command),
		"%s/pinion top --once --json %d 2>err >out && [ \"$(wc -l <out)\" = %d ] && "
		"[ \"$(cat err)\" = 'pinion top: process %d has %d more runtimes: %d are shown' ]",
		folder == NULL ? "." : folder, (int)getpid(), SHOWN, (int)getpid(), CROWD - SHOWN,
		SHOWN);
	/* NOLINTNEXTLINE(cert-env33-c): the text is the test's own. */
	expect_number("top", 0, system(command));
	for (uint32_t i = 0; i < CROWD; i++) {
		pin_metrics_page_destroy(pages[i], &pin_host_linux);
	}
}

static void expect_device(const struct pinion_metrics *metrics, const char *name, uint32_t index,
	int error, uint64_t expected)
{
	int row = pinion_metrics_find(metrics, name, PINION_METRICS_DEVICE, UINT32_MAX);
	uint64_t value = 0;

	expect_ready(name, row >= 0);
	expect_number(name, error, pinion_metrics_read(metrics, (uint32_t)row, index, &value));
	expect_number(name, (long long)expected, (long long)value);
}

/* Each by its first value and its last; one more writes over nothing. */
static void check_devices(void)
{
	struct pin_metrics_page *page = make(&pin_host_linux, NULL);
	struct pin_shown_runtime shown = {.device_count = DEVICES + 1};
	struct pin_shown_device devices[DEVICES + 1];
	struct pinion_metrics *metrics = NULL;
	static struct pinion_histogram histogram;

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(devices); i++) {
		devices[i] = (struct pin_shown_device){.device = 100 + i, .slow = 200 + i};
	}
	pin_metrics_page_write_runtime(page, &shown, devices, NULL, 1);
	expect_ready("open", pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics) == 0);
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
	for (uint32_t i = 0; i < DEVICES; i++) {
		expect_device(metrics, "device", i, 0, 100 + i);
		expect_device(metrics, "slow", i, 0, 200 + i);
	}
	expect_device(metrics, "device", DEVICES, -ENOENT, 0);
	expect_true("histogram", pin_metrics_page_read_histogram(page, 0, &histogram));
	expect_number("no time", 0, (long long)histogram.count);
	pinion_metrics_close(metrics);
	pin_metrics_page_destroy(page, &pin_host_linux);
}

/* The program's name as a reader has it. */
static void expect_program(char *name, const char *expected)
{
	char *before = program_invocation_short_name;
	struct pinion_metrics *metrics = NULL;
	struct pinion_metrics_info info;
	struct pin_metrics_page *page;

	program_invocation_short_name = name;
	page = make(&pin_host_linux, NULL);
	program_invocation_short_name = before;
	expect_ready("open", pinion_metrics_open_pid(getpid(), 0, note, NULL, &metrics) == 0);
	pinion_metrics_get_info(metrics, &info, sizeof(info));
	expect_text("program", expected, info.program);
	pinion_metrics_close(metrics);
	pin_metrics_page_destroy(page, &pin_host_linux);
}

static void check_programs(void)
{
	char long_name[] = "0123456789abcdefg";
	char borders[][24] = {"0123456789abc\u00e9", "0123456789abcd\u00e9", "0123456789ab\u20ac",
		"0123456789abc\u20ac", "0123456789a\U0001f600", "0123456789ab\U0001f600"};
	const char *cut[] = {"0123456789abc\u00e9", "0123456789abcd", "0123456789ab\u20ac",
		"0123456789abc", "0123456789a\U0001f600", "0123456789ab"};
	char controls[] = "a\033\177\xc2\x85\u00a0";
	char invalid[] = "\xff\xc3(\xed\xa0\x80\xe2\x82";

	expect_program(long_name, "0123456789abcde");
	for (size_t i = 0; i < PIN_ARRAY_COUNT(cut); i++) {
		expect_program(borders[i], cut[i]);
	}
	expect_program(controls, "a\?\?\?\?\u00a0");
	expect_program(invalid, "\?\?(\?\?\?\?\?");
}

/* As many workers as fit have a slot in it. */
static void check_many(void)
{
	struct pin_page_setup setup = {
		.host = &pin_host_linux, .log = &log_lines, .worker_count = MANY};
	const struct pin_page_header *header;
	struct pin_metrics_page *page = NULL;
	uint64_t used;

	expect_ready("page", pin_metrics_page_create(&setup, &page) == 0);
	header = (const struct pin_page_header *)(const void *)page->words;
	used = (header->slots_at + header->slot_count * header->slot_words) * sizeof(uint64_t);
	expect_number("workers", MANY, header->worker_count);
	expect_true("it fits", used <= PIN_PAGE_BYTES_MAX);
	expect_true(
		"no other fits", used + header->slot_words * sizeof(uint64_t) > PIN_PAGE_BYTES_MAX);
	expect_number("all of it", PIN_PAGE_BYTES_MAX, (long long)(page->word_count * 8));
	pin_metrics_page_destroy(page, &pin_host_linux);
}

int main(void)
{
	scratch_enter("pages_are_told_apart");
	check_absent();
	check_scarce();
	check_starts();
	check_files();
	check_crowd();
	check_devices();
	check_many();
	check_programs();
	scratch_leave();
	return expect_status();
}
