/* SPDX-License-Identifier: MIT */
/*
 * Goal: PINION_LOG's levels, of all and of components, in any order, become
 * what the library drops; a wrong part is named with the values that exist, and
 * changes nothing. Lines are text, JSON that holds control characters and
 * quotes, and have a priority in the journal, which JOURNAL_STREAM names.
 * WP-34.
 * Method: texts beside the levels that they are to show; lines compared as a
 * whole, at a time that the test gives.
 */
#include "tests/support/expect.h"
#include "tools/log_form.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How many levels of a component are shown. */
static uint32_t levels_of(const struct log_form *form, enum pinion_log_component component)
{
	return PINION_LOG_LEVELS - (uint32_t)(form->dropped >> 8 * component & 255);
}

static void expect_levels(
	const char *text, uint32_t worker, uint32_t io, uint32_t others, bool is_json)
{
	struct log_form form = {0};
	char mistake[256] = "";

	expect_true(text, log_form_parse(text, &form, mistake, sizeof(mistake)));
	for (uint32_t i = 0; i < PINION_LOG_COMPONENTS; i++) {
		expect_number(text,
			i == PINION_LOG_WORKER	     ? worker
				: i == PINION_LOG_IO ? io
						     : others,
			levels_of(&form, (enum pinion_log_component)i));
	}
	expect_number(text, is_json, form.is_json);
	for (uint32_t level = 0; level < PINION_LOG_LEVELS; level++) {
		expect_number(text, level < io,
			log_form_shows(&form, (enum pinion_log_level)level, PINION_LOG_IO));
	}
}

static void expect_mistake(const char *text, const char *expected)
{
	struct log_form form = {.dropped = 7};
	char mistake[256] = "";

	expect_true(text, !log_form_parse(text, &form, mistake, sizeof(mistake)));
	if (strcmp(mistake, expected) != 0) {
		printf("%s: expected %s, got %s\n", text, expected, mistake);
	}
	expect_true(text, strcmp(mistake, expected) == 0);
	expect_true("nothing has changed", form.dropped == 7 && !form.is_json);
}

static void check_parts(void)
{
	expect_levels("", 4, 4, 4, false);
	expect_levels("off", 0, 0, 0, false);
	expect_levels("error", 1, 1, 1, false);
	expect_levels("warn", 2, 2, 2, false);
	expect_levels("info", 3, 3, 3, false);
	expect_levels("debug", 4, 4, 4, false);
	expect_levels("json", 4, 4, 4, true);
	expect_levels("warn,worker=debug", 4, 2, 2, false);
	expect_levels("worker=debug,io=off,error,json", 4, 0, 1, true);
	expect_levels("worker=error,worker=info", 3, 4, 4, false);
	expect_mistake("loud",
		"\"loud\" is neither a level (off, error, warn, info, debug), nor "
		"COMPONENT=LEVEL, nor json");
	expect_mistake("warn,worker=loud",
		"\"worker=loud\": \"loud\" is not one of off, error, warn, info, debug");
	expect_mistake("disk=warn,json",
		"\"disk=warn\": \"disk\" is no component: there are api, host, memory, io, "
		"observe, worker, task, scan");
	expect_mistake("warn,=debug",
		"\"=debug\": \"\" is no component: there are api, host, memory, io, observe, "
		"worker, task, scan");
	expect_mistake("warn, info",
		"\" info\" is neither a level (off, error, warn, info, debug), nor "
		"COMPONENT=LEVEL, nor json");
	expect_mistake("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" is neither a level (off, error, "
		"warn, info, debug), nor COMPONENT=LEVEL, nor json");
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out_now);

/* In place of clock_gettime(). */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out_now)
{
	(void)clock;
	*out_now = (struct timespec){.tv_sec = 1767323045, .tv_nsec = 678999};
	return 0;
}

static void expect_line(struct log_form form, struct log_line line, const char *expected)
{
	struct output_text out = {0};

	line.message_length = strlen(line.message);
	log_form_append(&form, &line, &out);
	output_text_append(&out, "", 1);
	if (strcmp(out.bytes, expected) != 0) {
		printf("expected %sgot %s", expected, out.bytes);
	}
	expect_true(expected, strcmp(out.bytes, expected) == 0);
	output_text_free(&out);
}

static void check_lines(void)
{
	const struct log_form text = {0};
	const struct log_form journal = {.is_journal = true};
	const struct log_form json = {.is_json = true, .is_journal = true};
	const struct log_line own = {
		.level = PINION_LOG_ERROR, .command = "sum", .message = "a\"b\\"};
	const struct log_line warning = {.level = PINION_LOG_WARN,
		.component = "io",
		.command = "sum",
		.message = "slow \x01\n\xc3\xa4"};
	const struct log_line info = {
		.level = PINION_LOG_INFO, .component = "host", .message = "grows"};
	const struct log_line debug = {
		.level = PINION_LOG_DEBUG, .component = "task", .message = "begins"};

	expect_line(text, own, "pinion sum: a\"b\\\n");
	expect_line(text, warning, "pinion sum: warning: slow \x01\n\xc3\xa4\n");
	expect_line(text, debug, "pinion: debug: task: begins\n");
	expect_line(journal, own, "<3>pinion sum: a\"b\\\n");
	expect_line(journal, warning, "<4>pinion sum: warning: slow \x01\n\xc3\xa4\n");
	expect_line(journal, info, "<6>pinion: info: host: grows\n");
	expect_line(journal, debug, "<7>pinion: debug: task: begins\n");
	expect_line(json, own,
		"<3>{\"level\":\"error\",\"component\":\"command\",\"message\":\"a\\\"b\\\\\"}\n");
	expect_line(json, warning,
		"<4>{\"level\":\"warn\",\"component\":\"io\",\"message\":"
		"\"slow \\u0001\\n\xc3\xa4\"}\n");
}

/* Of each time, all digits: 678 us after that second. */
static void check_time(void)
{
	const struct log_form json = {.is_json = true};
	const struct log_line line = {
		.level = PINION_LOG_INFO, .component = "host", .message = "m"};

	expect_line(json, line,
		"{\"time\":\"2026-01-02T03:04:05.000678Z\",\"level\":\"info\","
		"\"component\":\"host\",\"message\":\"m\"}\n");
}

static void check_journal(void)
{
	int fd = open("/dev/null", O_WRONLY);
	struct stat status;
	char stream[64];

	expect_ready("/dev/null", fd >= 0 && fstat(fd, &status) == 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)status.st_dev,
		(unsigned long long)status.st_ino);
	expect_true("that file", log_form_is_journal(stream, fd));
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)status.st_dev,
		(unsigned long long)status.st_ino + 1);
	expect_true("another", !log_form_is_journal(stream, fd));
	expect_true("none", !log_form_is_journal(NULL, fd));
	expect_true("no numbers", !log_form_is_journal("x", fd));
	expect_true("closed", !log_form_is_journal("0:0", -1));
	close(fd);
}

int main(void)
{
	check_parts();
	check_lines();
	check_time();
	check_journal();
	return expect_status();
}
