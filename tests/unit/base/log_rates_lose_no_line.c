/* SPDX-License-Identifier: MIT */
/*
 * Goal: of a message that repeats itself, 20 lines a second are passed on, then
 * a line that counts the others: with the next line, with a flush in a later
 * second, or at the end. Each line is passed on or counted, also when threads
 * send it at once; other messages have a limit of their own. A level that is
 * off, for all or for a component, sends nothing; the component is the folder
 * of the file. WP-34.
 * Method: a clock that is set by hand, lines that are counted by a hook, and
 * threads that send while the clock moves on.
 */
#include "runtime/base/log.h"
#include "tests/support/expect.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREADS = 4,
	LINES_EACH = 20000,
};

#define SECOND_NS UINT64_C(1000000000)

static struct pin_atomic_u64 clock_ns;
static struct pin_log_rates rates;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[512];
static uint32_t last_level;
static uint32_t last_component;
static uint32_t passed; /* as they were sent */
static uint32_t skipped;
static uint32_t reports; /* lines that say how many were skipped */

static uint64_t now_ns(void)
{
	return pin_load_acquire_u64(&clock_ns);
}

static void keep(void *arg, const struct pinion_log_record *record)
{
	unsigned count;

	(void)arg;
	pthread_mutex_lock(&lock);
	expect_number("size", sizeof(*record), record->size);
	snprintf(last, sizeof(last), "%s", record->message);
	last_level = record->level;
	last_component = record->component;
	if (sscanf(record->message, "%u more like", &count) == 1) {
		skipped += count;
		reports++;
	} else {
		passed++;
	}
	pthread_mutex_unlock(&lock);
}

static struct pin_log begin(uint64_t dropped)
{
	struct pin_log log = {.record = keep, .rates = &rates, .dropped = dropped};

	memset(&rates, 0, sizeof(rates));
	rates.now_ns = now_ns;
	pin_store_release_u64(&clock_ns, 5 * SECOND_NS);
	passed = skipped = reports = 0;
	pin_log_init(&log);
	return log;
}

static void send_one(const struct pin_log *log, uint32_t number)
{
	pin_log_write(log, PINION_LOG_WARN, "../runtime/io/ring.c", "read %u failed", number);
}

static void send_other(const struct pin_log *log)
{
	pin_log_write(log, PINION_LOG_INFO, "runtime/worker/stall.c", "another");
}

static void expect_lines(const char *what, uint32_t wanted, uint32_t left_out, uint32_t said)
{
	expect_number(what, wanted, passed);
	expect_number(what, left_out, skipped);
	expect_number(what, said, reports);
}

static void check_limit(void)
{
	struct pin_log log = begin(0);

	for (uint32_t i = 0; i < PIN_LOG_LINES_MAX; i++) {
		send_one(&log, i);
	}
	expect_lines("all", PIN_LOG_LINES_MAX, 0, 0);
	for (uint32_t i = 0; i < 7; i++) {
		send_one(&log, i);
	}
	expect_lines("no more", PIN_LOG_LINES_MAX, 0, 0);
	send_other(&log);
	expect_lines("of another", PIN_LOG_LINES_MAX + 1, 0, 0);
	pin_log_flush(&log, false);
	expect_lines("in the same second", PIN_LOG_LINES_MAX + 1, 0, 0);
	pin_store_release_u64(&clock_ns, 6 * SECOND_NS);
	send_one(&log, 0);
	expect_lines("the next", PIN_LOG_LINES_MAX + 2, 7, 1);
	for (uint32_t i = 1; i < PIN_LOG_LINES_MAX + 3; i++) {
		send_one(&log, i);
	}
	expect_lines("as many again", 2 * PIN_LOG_LINES_MAX + 1, 7, 1);
	pin_store_release_u64(&clock_ns, 7 * SECOND_NS);
	pin_log_flush(&log, false);
	expect_lines("a flush", 2 * PIN_LOG_LINES_MAX + 1, 10, 2);
	expect_true(last, strcmp(last, "3 more like \"read %u failed\" in a second") == 0);
	expect_number("level", PINION_LOG_WARN, last_level);
	expect_number("component", PINION_LOG_IO, last_component);
	pin_log_flush(&log, true);
	expect_lines("once", 2 * PIN_LOG_LINES_MAX + 1, 10, 2);
	for (uint32_t i = 0; i < PIN_LOG_LINES_MAX + 1; i++) {
		send_one(&log, i);
	}
	pin_log_flush(&log, true);
	expect_lines("the end", 3 * PIN_LOG_LINES_MAX + 1, 11, 3);
}

static void check_unlimited(void)
{
	struct pin_log log = begin(0);

	log.rates = NULL;
	for (uint32_t i = 0; i < 1000; i++) {
		send_one(&log, i);
	}
	pin_log_flush(&log, true);
	expect_lines("without rates", 1000, 0, 0);
}

/* ---- levels and components ---- */

static void check_levels(void)
{
	uint64_t dropped = 0;
	struct pin_log log;

	for (uint32_t i = 0; i < PINION_LOG_COMPONENTS; i++) {
		dropped = pinion_log_limit(dropped, (enum pinion_log_component)i, 2);
	}
	dropped = pinion_log_limit(dropped, PINION_LOG_WORKER, 4);
	dropped = pinion_log_limit(dropped, PINION_LOG_IO, 1);
	log = begin(dropped);
	expect_true("some component sends it", pin_log_is_on(&log, PINION_LOG_DEBUG));
	send_one(&log, 0);
	expect_lines("io's warnings are off", 0, 0, 0);
	pin_log_write(&log, PINION_LOG_ERROR, "/a/runtime/io/x.c", "x");
	expect_lines("its errors are not", 1, 0, 0);
	send_other(&log);
	expect_lines("nor are a worker's", 2, 0, 0);
	expect_number("component", PINION_LOG_WORKER, last_component);
	pin_log_write(&log, PINION_LOG_INFO, "runtime/task/x.c", "y");
	expect_lines("others' are", 2, 0, 0);
	pin_log_write(&log, PINION_LOG_WARN, "/runtime/scan/runtime/task/x.c", "z");
	expect_number("the last folder", PINION_LOG_TASK, last_component);
	pin_log_write(&log, PINION_LOG_WARN, "x.c", "z2");
	expect_number("none", PINION_LOG_API, last_component);
	dropped = pinion_log_limit(dropped, PINION_LOG_WORKER, 2);
	log = begin(dropped);
	expect_true("none sends it", !pin_log_is_on(&log, PINION_LOG_INFO));
	expect_true("some send it", pin_log_is_on(&log, PINION_LOG_WARN));
	pin_log(&log, PINION_LOG_INFO, "no %d", 1);
	pin_log(&log, PINION_LOG_WARN, "yes %d", 2);
	expect_lines("in front of it", 1, 0, 0);
	log.record = NULL;
	pin_log_init(&log);
	expect_true("no hook", !pin_log_is_on(&log, PINION_LOG_ERROR));
}

/* ---- lines ---- */

/* Names may have control characters, which stay in the process. */
static void check_controls(void)
{
	struct pin_log log = begin(0);

	pin_log(&log, PINION_LOG_WARN, "file %s", "a\n\x1b[2J\x7f\tb\xc3\xa4");
	expect_text("cleaned", "file a??[2J??b\xc3\xa4", last);
}

/* For names that take long to find: the question first, then the line. */
static void check_try(void)
{
	static const char format[] = "name %s";
	struct pin_log log = begin(0);
	uint32_t found = 0;

	for (uint32_t i = 0; i < PIN_LOG_LINES_MAX + 5; i++) {
		if (pin_log_try(&log, PINION_LOG_WARN, format)) {
			found++;
			pin_log_put(&log, PINION_LOG_WARN, format, "x");
		}
	}
	expect_number("looked up", PIN_LOG_LINES_MAX, found);
	expect_lines("and sent", PIN_LOG_LINES_MAX, 0, 0);
	pin_log_flush(&log, true);
	expect_lines("the others count", PIN_LOG_LINES_MAX, 5, 1);
	expect_true("of a level that is on",
		!pin_log_try(&(struct pin_log){0}, PINION_LOG_WARN, format));
}

/* ---- threads ---- */

static void *send_many(void *arg)
{
	for (uint32_t i = 0; i < LINES_EACH; i++) {
		send_one(arg, i);
		if (i % 100 == 0) {
			pin_fetch_add_seq_cst_u64(&clock_ns, SECOND_NS / 7);
			pin_log_flush(arg, false);
		}
	}
	return NULL;
}

static void check_threads(void)
{
	struct pin_log log = begin(0);
	pthread_t threads[THREADS];

	for (uint32_t i = 0; i < THREADS; i++) {
		expect_ready("thread", pthread_create(&threads[i], NULL, send_many, &log) == 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	pin_log_flush(&log, true);
	expect_number("each line", THREADS * LINES_EACH, passed + skipped);
	expect_true("some were left out", skipped > 0 && reports > 0);
}

int main(void)
{
	check_limit();
	check_unlimited();
	check_levels();
	check_controls();
	check_try();
	check_threads();
	return expect_status();
}
