/* SPDX-License-Identifier: MIT */
/*
 * Goal: `pinion top` shows the values of a page: rates of reads and writes
 * together, the right quantiles, a device's number, rings; what starves as long
 * as it does, and what was counted since the report before; the CPU time since
 * the snapshot before, and waits for a CPU; of a runtime that has ended the
 * rates of its whole life; of a dead process where its workers were last. A
 * stopped process is in no long task, and a task of 100 ms is none yet. Of the
 * ended it keeps the latest 32, for ten minutes. A large page is cut: its
 * object after 16 MiB, its samples for Prometheus after 4 MiB. A process of
 * another PID namespace is found by its number there. WP-33.
 * Method: a page without a runtime, whose values the test writes; a file with
 * more rows than a runtime has; an open() of the test's own.
 */
#include "runtime/observe/metrics_page.h"
#include "tests/support/expect.h"
#include "tests/support/metrics.h"
#include "tests/support/scratch.h"
#include "tools/top/openmetrics.h"
#include "tools/top/show.h"
#include "tools/top/watch.h"

#include <fcntl.h>
#include <limits.h>
#include <pinion/timer.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { ENDED = 40, KEPT = 32, SECOND_NS = 1000000000 };

#define LONG_AGO_NS (UINT64_C(601) * SECOND_NS)
#define LATELY_NS (UINT64_C(580) * SECOND_NS)

static const struct pin_log log_lines = {.fn = note};

static struct pin_metrics_page *make(struct pin_observed *out_observed)
{
	struct pin_page_setup setup = {
		.host = &pin_host_linux, .log = &log_lines, .worker_count = 1, .is_shared = true};
	struct pin_metrics_page *page = NULL;

	expect_ready("page", pin_metrics_page_create(&setup, &page) == 0);
	pin_metrics_page_join(page, 0, out_observed);
	return page;
}

/* The values of a life that has lasted for two seconds. */
static void fill(
	struct pin_metrics_page *page, const struct pin_observed *observed, uint64_t created_ns)
{
	const uint64_t now_ns = created_ns + 2 * (uint64_t)SECOND_NS;
	struct pin_shown_worker worker = {.stats = {.tasks_run = 84,
						  .read_bytes = 4000,
						  .write_bytes = 2000,
						  .requests_completed = 80,
						  .busy_ns = 3 * (uint64_t)SECOND_NS,
						  .ring_enters = 20,
						  .parks_ring = 6,
						  .short_transfers = 3,
						  .retries_again = 4,
						  .retries_interrupted = 5},
		.info.requests_in_flight = 7};
	struct pin_shown_runtime runtime = {
		.device_count = 2, .starved_lanes = 2, .lanes_starving = 1};
	struct pin_shown_device devices[2] = {
		{.device = makedev(259, 3)}, {.device = makedev(8, 17)}};
	uint32_t run = pin_timing_of(PINION_TIMING_RUN, PINION_LANE_NORMAL);

	/* Of 100, the 90th is a millisecond and the 99th a second. */
	pin_timings_record(observed->timings, run, 1000, 60);
	pin_timings_record(observed->timings, run, 1000000, 35);
	pin_timings_record(observed->timings, run, SECOND_NS, 5);
	pin_metrics_page_write_slot(observed, &worker, now_ns);
	pin_metrics_page_write_runtime(page, &runtime, devices, observed->timings, now_ns);
}

/* A line of `text` that begins so, up to its end. */
static void expect_line(struct output_text *text, const char *begin, const char *expected)
{
	char *line;
	char *end;

	output_text_append(text, "", 1);
	text->length--;
	line = strstr(text->bytes, begin);
	if (!expect_true(begin, line != NULL)) {
		return;
	}
	end = strchr(line, '\n');
	expect_ready(begin, end != NULL);
	*end = '\0';
	expect_text(begin, expected, line);
	*end = '\n';
}

/* Its worker has read the clock so long before the page was read. */
static void expect_since(struct top_page *page, uint64_t since_ns, const char *expected)
{
	const struct top_view view = {.column = TOP_BY_WORKER};
	struct output_text text = {0};

	page->values[TOP_CLOCK_NS] = page->read_ns - since_ns;
	top_show_lines(&text, page, &view);
	output_text_append(&text, "", 1);
	expect_true(expected, strstr(text.bytes, expected) != NULL);
	output_text_free(&text);
}

static void check_long_task(struct top_page *page)
{
	expect_since(page, 100000000, "     0  runs ");
	expect_since(page, 100000001, "     0  task 100ms ");
}

/* As if it waited for CPUs, and then were stopped; its worker is in a task. */
static void check_alive(struct top_page *page)
{
	const struct top_view view = {.column = TOP_BY_WORKER};
	const uint32_t places[] = {TOP_PLACE, TOP_CLOCK_NS};
	struct output_text text = {0};
	struct top_threads threads;

	for (size_t i = 0; i < PIN_ARRAY_COUNT(places); i++) {
		page->values[places[i]] = i == 0 ? PINION_WORKER_RUNNING : 1;
	}
	expect_true("as long as it has lasted",
		top_process_read_threads(getpid(), &threads)
			? page->has_threads && page->threads.wait_ns <= threads.wait_ns
			: !page->has_threads);
	page->cpu_share = 1.5;
	page->wait_share = 0.3;
	top_show_lines(&text, page, &view);
	expect_line(&text, ", CPU", ", CPU 150 %, waits for CPUs 30 %");
	output_text_free(&text);
	text = (struct output_text){0};
	page->has_threads = true;
	page->threads.io_wq_count = 2;
	page->io_wq_share = 0.25;
	top_show_lines(&text, page, &view);
	expect_line(
		&text, ", CPU", ", CPU 150 %, waits for CPUs 30 %, io-wq: 2 threads with CPU 25 %");
	page->threads.io_wq_count = 1;
	page->io_wq_share = -1;
	output_text_free(&text);
	text = (struct output_text){0};
	top_show_lines(&text, page, &view);
	expect_line(&text, ", io-wq", ", io-wq: 1 thread");
	page->threads.io_wq_count = 0;
	output_text_free(&text);
	text = (struct output_text){0};
	top_show_lines(&text, page, &view);
	/* As long as it starves, though the count is as it was. */
	page->alarms_grown[TOP_ALARM_STARVED_LANES] = 0;
	expect_line(&text, "  starved_lanes", "  starved_lanes: 2, 1 of them now");
	page->alarms_now[TOP_ALARM_STARVED_LANES] = 0;
	page->alarms_grown[TOP_ALARM_STARVED_LANES] = 2;
	output_text_free(&text);
	text = (struct output_text){0};
	top_show_lines(&text, page, &view);
	expect_line(&text, "  starved_lanes", "  starved_lanes: 2, 2 of them new");
	page->alarms_now[TOP_ALARM_STARVED_LANES] = 1;
	expect_true("in a long task", strstr(text.bytes, "     0  task ") != NULL);
	output_text_free(&text);
	check_long_task(page);
	page->process.state = 'T';
	page->wait_share = -1;
	top_show_lines(&text, page, &view);
	output_text_append(&text, "", 1);
	expect_true("stopped", strstr(text.bytes, ": stopped, up ") != NULL);
	expect_true("its worker, too", strstr(text.bytes, "     0  stopped ") != NULL);
	expect_true("no waits", strstr(text.bytes, "waits") == NULL);
	output_text_free(&text);
	text = (struct output_text){0};
	top_show_json(&text, page);
	output_text_append(&text, "", 1);
	expect_true("and says so", strstr(text.bytes, "\"is_stopped\":true,") != NULL);
	output_text_free(&text);
}

/* Once it has ended its rates are those of the two seconds. */
static void check_lines(const struct top_page *page)
{
	const struct top_view view = {.column = TOP_BY_WORKER};
	struct output_text text = {0};

	expect_number("ended", TOP_ENDED, page->state);
	expect_number("until it wrote last", 2 * (long long)SECOND_NS,
		(long long)(page->read_ns - page->before_ns));
	expect_number("tasks a second", 42, (long long)top_page_rate(page, 0, TOP_TASKS));
	top_show_lines(&text, page, &view);
	expect_line(
		&text, "  since its start: ", "  since its start: 42 tasks/s, 40 I/O/s, 3.00kB/s");
	expect_line(
		&text, "      10       4.0", "      10       4.0      3.0      7      3      9");
	expect_line(&text, "  starved_lanes", "  starved_lanes: 2");
	expect_line(&text, "  normal",
		"  normal         0    1.00us    998ms         -        -         -        -");
	output_text_free(&text);
}

/* A row of a worker that was in `place` when the page was written last. */
static void expect_place(struct top_page *page, uint64_t place, const char *expected)
{
	const struct top_view view = {.column = TOP_BY_WORKER};
	struct output_text text = {0};

	page->values[TOP_PLACE] = place;
	top_show_lines(&text, page, &view);
	output_text_append(&text, "", 1);
	if (strstr(text.bytes, expected) == NULL) {
		printf("place %u: expected \"%s\" in:\n%s", (unsigned)place, expected, text.bytes);
		expect_failure_count++;
	}
	output_text_free(&text);
}

/* Also: a worker is not busy for more than all of the time. */
static void check_places(struct top_page *page)
{
	expect_place(page, PINION_WORKER_PARKED_FUTEX,
		"\n     0  ended            42     40   3.00k    100 ");
	page->values[TOP_BUSY_NS] = SECOND_NS;
	expect_place(page, PINION_WORKER_PARKED_FUTEX,
		"\n     0  ended            42     40   3.00k     50 ");
	page->state = TOP_DEAD;
	expect_place(page, PINION_WORKER_RUNNING, "\n     0  was running ");
	expect_place(page, PINION_WORKER_PARKED_FUTEX, "\n     0  was asleep ");
	expect_place(page, PINION_WORKER_PARKED_RING, "\n     0  was in ring ");
	expect_place(page, PINION_WORKER_ABSENT, "\n     0  was absent ");
	expect_place(page, PINION_WORKER_ABSENT + 1, "\n     0  - ");
	expect_place(page, TOP_MISSING, "\n     0  - ");
	page->state = TOP_ENDED;
}

static void check_devices(struct top_watch *watch)
{
	struct output_text text = {0};
	char *number;

	top_openmetrics_append(&text, watch);
	output_text_append(&text, "", 1);
	number = strstr(text.bytes, ",number=");
	expect_ready("a device", number != NULL);
	expect_true(number, strncmp(number, ",number=\"259:3\"", 15) == 0);
	expect_true("another", strstr(number, ",number=\"8:17\"") != NULL);
	output_text_free(&text);
}

/* The CPU time that the next snapshot counts from. */
static void check_cpu(struct top_page *page)
{
	while (page->process.cpu_ns == 0) {
		expect_ready("read", top_page_read(page));
	}
	expect_number("counted until now", (long long)page->process.cpu_ns,
		(long long)page->cpu_before_ns);
}

static void expect_alarm(const struct top_page *page, enum top_alarm alarm, uint64_t all,
	uint64_t grown, uint64_t now)
{
	const char *name = top_page_alarm_name(alarm);

	expect_number(name, (long long)all, (long long)page->alarms[alarm]);
	expect_number(name, (long long)grown, (long long)page->alarms_grown[alarm]);
	expect_number(name, (long long)now, (long long)page->alarms_now[alarm]);
}

/* Counts since the snapshot before; of the first nothing has grown. */
static void check_alarms(struct pin_metrics_page *metrics, struct top_page *page)
{
	const struct pin_shown_runtime more = {.stalls = 3,
		.starved_lanes = 6,
		.device_stalls = 5,
		.tasks_stalled = 1,
		.lanes_starving = 2,
		.devices_stalled = 4};

	expect_alarm(page, TOP_ALARM_STALLS, 0, 0, 0);
	expect_alarm(page, TOP_ALARM_STARVED_LANES, 2, 0, 1);
	expect_alarm(page, TOP_ALARM_DEVICE_STALLS, 0, 0, 0);
	pin_metrics_page_write_runtime(metrics, &more, NULL, NULL, page->read_ns);
	expect_ready("read", top_page_read(page));
	expect_alarm(page, TOP_ALARM_STALLS, 3, 3, 1);
	expect_alarm(page, TOP_ALARM_STARVED_LANES, 6, 4, 2);
	expect_alarm(page, TOP_ALARM_DEVICE_STALLS, 5, 5, 4);
	expect_ready("read", top_page_read(page));
	expect_alarm(page, TOP_ALARM_STALLS, 3, 0, 1);
}

/* The share of a CPU that its threads have waited, from `before_ns` on. */
static void expect_waits(const struct top_page *page, uint64_t before_ns, uint64_t from_ns)
{
	double passed = (double)(page->cpu_read_ns - from_ns);

	expect_true("a time", page->cpu_read_ns > from_ns);
	expect_true("share of waits",
		page->wait_share == (double)(page->threads.wait_ns - before_ns) / passed);
}

static void check_waits(struct top_page *page)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const uint64_t tick_ns = SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK);
	struct top_threads threads = {0};

	/* The first snapshot's is that of the whole life. */
	expect_number("first", 1, (long long)page->reads);
	if (!page->has_threads) {
		return;
	}
	expect_waits(page, 0, page->process.start * tick_ns);
	while (threads.wait_ns < 1000 && top_process_read_threads(getpid(), &threads)) {
		nanosleep(&pause, NULL);
	}
	for (uint64_t before_ns = 0; before_ns < 1000; before_ns += 400) {
		uint64_t from_ns = page->cpu_read_ns;

		page->threads.wait_ns = before_ns;
		expect_ready("read", top_page_read(page));
		expect_waits(page, before_ns, from_ns);
	}
	page->has_threads = false;
	expect_ready("read", top_page_read(page));
	expect_true("not known before", page->wait_share == -1 && page->has_threads);
}

static void check_page(void)
{
	struct pin_observed observed = {.slot = NULL};
	struct pin_metrics_page *page = make(&observed);
	struct top_page pages[1];
	struct top_watch watch = {.pages = pages, .count = 1};

	expect_ready("page", top_page_init(pages, open_own(0), NULL, getpid()));
	fill(page, &observed, pages[0].info.created_ns);
	expect_true("read", top_page_read(pages));
	expect_number("alive", TOP_ALIVE, pages[0].state);
	check_devices(&watch);
	check_waits(pages);
	check_cpu(pages);
	check_alive(pages);
	pin_metrics_page_destroy(page, &pin_host_linux);
	expect_true("read", top_page_read(pages));
	expect_true("and read again", top_page_read(pages));
	check_lines(pages);
	check_places(pages);
	top_page_fini(pages);
}

/* A process that was seen alive later than its last write, and then died. */
static void check_dead(void)
{
	struct pin_observed observed = {.slot = NULL};
	struct pin_metrics_page *metrics = make(&observed);
	struct top_page page;

	/* No process has that number. */
	expect_ready("page", top_page_init(&page, open_own(0), NULL, INT_MAX));
	fill(metrics, &observed, page.info.created_ns);
	page.alive_ns = page.info.created_ns + 4 * (uint64_t)SECOND_NS;
	expect_ready("read", top_page_read(&page));
	expect_number("dead", TOP_DEAD, page.state);
	expect_number("tasks a second", 21, (long long)top_page_rate(&page, 0, TOP_TASKS));
	top_page_fini(&page);
	pin_metrics_page_destroy(metrics, &pin_host_linux);
}

static void check_counts(void)
{
	struct pin_observed observed = {.slot = NULL};
	struct pin_metrics_page *metrics = make(&observed);
	struct top_page page;

	expect_ready("page", top_page_init(&page, open_own(0), NULL, getpid()));
	fill(metrics, &observed, page.info.created_ns);
	expect_ready("read", top_page_read(&page));
	check_alarms(metrics, &page);
	pin_metrics_page_destroy(metrics, &pin_host_linux);
	expect_ready("read", top_page_read(&page));
	/* Nothing starves any more. */
	expect_alarm(&page, TOP_ALARM_STARVED_LANES, 6, 0, 0);
	top_page_fini(&page);
}

/* A page that ended ten minutes ago goes, a later one stays. */
static void check_oldest(struct top_watch *watch, uint64_t now_ns)
{
	const uint64_t later_ns = now_ns - LATELY_NS;

	watch->pages[3].gone_ns = now_ns - LONG_AGO_NS;
	watch->pages[4].gone_ns = later_ns;
	top_watch_drop_old(watch);
	expect_number("ten minutes", KEPT - 1, (long long)watch->count);
	expect_true("and no less", watch->pages[3].gone_ns == later_ns);
}

/* Those that ended first go first, wherever they are in the list. */
static void check_ended(void)
{
	struct pin_observed observed = {.slot = NULL};
	struct pin_metrics_page *page = make(&observed);
	struct top_page *pages = calloc(ENDED, sizeof(*pages));
	struct top_watch watch = {.pages = pages, .count = ENDED};
	uint64_t now_ns = pinion_clock_now_ns();

	expect_ready("memory", pages != NULL);
	for (uint32_t i = 0; i < ENDED; i++) {
		expect_ready("page", top_page_init(&pages[i], open_own(0), NULL, getpid()));
		pages[i].state = TOP_ENDED;
		/* In another order: 7 has no divisor of 40. */
		pages[i].gone_ns = now_ns - 7 * i % ENDED;
	}
	top_watch_drop_old(&watch);
	expect_number("kept", KEPT, (long long)watch.count);
	for (size_t i = 0; i < watch.count; i++) {
		expect_true("the latest", now_ns - watch.pages[i].gone_ns < KEPT);
	}
	if (now_ns > LONG_AGO_NS) {
		check_oldest(&watch, now_ns);
	}
	top_watch_fini(&watch);
	pin_metrics_page_destroy(page, &pin_host_linux);
}

/* ---- a large page ---- */

enum {
	LARGE_ROWS = 4096, /* more than a page may have are refused */
	LARGE_SLOTS = 120,
	LARGE_NAME = 31,
	OBJECT_BYTES = 16 << 20,
	SAMPLES_BYTES = 4 << 20,
	/* Of a worker as an object, whose values are 0; and its number. */
	WORKER_BYTES = LARGE_ROWS * (LARGE_NAME + 5) + 32,
	/* What a family has beside its samples, for 1024 of them. */
	WORDS_BYTES = 1024 * 512,
};

/* Of workers whose values are all in one word. */
static void write_large(const char *path)
{
	static const struct pin_page_field like = {.kind = PIN_PAGE_COUNTER,
		.scope = PIN_PAGE_WORKER,
		.lane = UINT32_MAX,
		.words = 1,
		.copies = 1};
	struct pin_page_header header = {.version = PIN_PAGE_VERSION,
		.header_words = sizeof(header) / 8,
		.field_count = LARGE_ROWS,
		.field_bytes = sizeof(like),
		.fields_at = sizeof(header) / 8,
		.runtime_words = 8,
		.slot_words = 8,
		.slot_count = LARGE_SLOTS,
		.worker_count = LARGE_SLOTS};
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	off_t end;

	pin_store_relaxed_u64(&header.magic, PIN_PAGE_MAGIC);
	header.runtime_at = header.fields_at + LARGE_ROWS * sizeof(like) / 8;
	header.slots_at = header.runtime_at + header.runtime_words;
	header.word_count = header.slots_at + header.slot_count * header.slot_words;
	end = (off_t)header.word_count * 8;
	expect_ready(path, fd >= 0 && write(fd, &header, sizeof(header)) == sizeof(header));
	for (int row = 0; row < LARGE_ROWS; row++) {
		struct pin_page_field field = like;

		snprintf(field.name, sizeof(field.name), "value_%0*d", LARGE_NAME - 6, row);
		expect_ready(path, write(fd, &field, sizeof(field)) == sizeof(field));
	}
	expect_ready(path, ftruncate(fd, end) == 0);
	close(fd);
}

static void expect_length(const char *what, size_t length, size_t least, size_t room)
{
	if (length <= least || length > least + room) {
		printf("%s: expected %zu bytes and up to %zu more, got %zu\n", what, least, room,
			length);
		expect_failure_count++;
	}
}

static void check_large(void)
{
	static const char end[] = "],\"is_cut\":true}\n";
	struct pinion_metrics *metrics = NULL;
	struct output_text text = {0};
	struct top_page page;
	struct top_watch watch = {.pages = &page, .count = 1};

	write_large("large");
	expect_ready("open", pinion_metrics_open("large", note, NULL, &metrics) == 0);
	expect_ready("page", top_page_init(&page, metrics, "large", 0));
	expect_ready("read", top_page_read(&page));
	top_show_json(&text, &page);
	expect_length("object", text.length, OBJECT_BYTES, WORKER_BYTES + sizeof(end));
	expect_ready("end", !text.failed && text.length > sizeof(end));
	expect_true(
		"says so", memcmp(text.bytes + text.length - strlen(end), end, strlen(end)) == 0);
	output_text_free(&text);
	text = (struct output_text){0};
	top_openmetrics_append(&text, &watch);
	expect_length("samples", text.length, SAMPLES_BYTES, WORDS_BYTES);
	output_text_free(&text);
	top_page_fini(&page);
}

/* ---- another namespace ---- */

enum { NUMBER_THERE = 2147483646 }; /* no process has it here */

static char own_status[32];
static const char *shown_status; /* in place of this process's, or NULL */

int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode = 0;

	if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		va_end(arguments);
	}
	if (shown_status != NULL && strcmp(path, own_status) == 0) {
		int fd = memfd_create("status", MFD_CLOEXEC);
		ssize_t length = (ssize_t)strlen(shown_status);

		expect_ready(
			"status", fd >= 0 && pwrite(fd, shown_status, (size_t)length, 0) == length);
		return fd;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void check_namespaces(void)
{
	struct pin_observed observed;
	struct pin_metrics_page *page = make(&observed);
	struct pinion_metrics *metrics = NULL;
	struct top_process own;
	char status[128];

	expect_ready("page", pinion_metrics_open_pid(getpid(), 0, NULL, NULL, &metrics) == 0);
	snprintf(own_status, sizeof(own_status), "/proc/%d/status", (int)getpid());
	expect_ready("own", top_process_read(getpid(), &own));
	expect_number("here", getpid(), top_process_find((uint64_t)getpid(), own.start, metrics));
	snprintf(status, sizeof(status), "Name:\tworker\nNSpid:\t%d\t17\t%d\nNSpgid:\t1\n",
		(int)getpid(), NUMBER_THERE);
	shown_status = status;
	expect_number("there", getpid(), top_process_find(NUMBER_THERE, own.start, metrics));
	expect_number("another number", 0, top_process_find(NUMBER_THERE - 1, own.start, metrics));
	expect_number("another start", 0, top_process_find(NUMBER_THERE, own.start + 1, metrics));
	/* As of a kernel that does not say it. */
	shown_status = "Name:\tworker\n";
	expect_number("not known", 0, top_process_find(NUMBER_THERE, own.start, metrics));
	shown_status = NULL;
	pinion_metrics_close(metrics);
	pin_metrics_page_destroy(page, &pin_host_linux);
}

int main(void)
{
	scratch_enter("top_shows_what_pages_hold");
	check_page();
	check_dead();
	check_counts();
	check_ended();
	check_large();
	check_namespaces();
	scratch_leave();
	return expect_status();
}
