/* SPDX-License-Identifier: MIT */
/*
 * Parses limits (limits.h): an option, or a line of a limits file.
 */
#include "tools/limits.h"

#include "tools/options.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NICE_MAX = 19,
	IO_LEVEL_MAX = 7,
	FILE_BYTES_MAX = 64 << 10,
	LINE_BYTES_MAX = 254,
	WINDOW_BYTES_MIN = 128 << 10,
	WINDOW_BYTES_MAX = 1 << 20,
	/* What all windows, and one more, are of a second's bytes. */
	EXCESS_PART = 50,
	/* What a small read costs a device, compared with a long one. */
	READ_BYTES_MIN = 16384,
};

#define RATE_MAX (UINT64_C(1) << 50)
#define LATENCY_NS_MAX (UINT64_C(3600) * 1000000000)
#define PPM_PER_PERCENT UINT64_C(10000)

static bool set_bwlimit(struct limits *limits, const char *name, const char *value)
{
	limits->has_bytes = true;
	return options_size(name, value, 0, RATE_MAX, &limits->bytes_per_second);
}

static bool set_iops(struct limits *limits, const char *name, const char *value)
{
	limits->has_requests = true;
	return options_count(name, value, 0, RATE_MAX, &limits->requests_per_second);
}

static bool set_ioprio(struct limits *limits, const char *name, const char *value)
{
	uint64_t level;

	if (strcmp(value, "idle") == 0) {
		limits->io_priority = LIMITS_IDLE;
		return true;
	}
	if (value[0] == '\0' || value[strspn(value, "0123456789")] != '\0') {
		report_line("--%s: '%s' is neither idle nor a number from 0 to %d", name, value,
			IO_LEVEL_MAX);
		return false;
	}
	if (!options_count(name, value, 0, IO_LEVEL_MAX, &level)) {
		return false;
	}
	limits->io_priority = limits_best_effort((int32_t)level);
	return true;
}

static bool set_nice(struct limits *limits, const char *name, const char *value)
{
	uint64_t nice;

	if (!options_count(name, value, 0, NICE_MAX, &nice)) {
		return false;
	}
	limits->nice = (int32_t)nice;
	return true;
}

/*
 * Digits, perhaps a point and more of them: in 10 000ths. NULL: no such number,
 * or so small that it would count as 0.
 */
static const char *parse_decimal(const char *text, uint64_t whole_max, uint64_t *out)
{
	uint64_t number = 0;
	uint64_t digit_value = PPM_PER_PERCENT / 10;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++) {
		number = number * 10 + (uint64_t)(*at - '0');
		if (number > whole_max) {
			return NULL;
		}
	}
	if (at == text) {
		return NULL;
	}
	number *= PPM_PER_PERCENT;
	if (*at == '.') {
		for (at++; *at >= '0' && *at <= '9'; at++) {
			number += (uint64_t)(*at - '0') * digit_value;
			digit_value /= 10;
			if (number == 0 && digit_value == 0 && *at != '0') {
				return NULL;
			}
		}
	}
	*out = number;
	return at;
}

static bool set_psi(struct limits *limits, const char *name, const char *value)
{
	uint64_t ppm;
	const char *end = parse_decimal(value, 100, &ppm);

	if (end != NULL && strcmp(end, "%") == 0) {
		end++;
	}
	if (end == NULL || *end != '\0' || ppm > 100 * PPM_PER_PERCENT) {
		report_line("--%s: '%s' is not a number of percent from 0 to 100", name, value);
		return false;
	}
	limits->pressure_ppm = ppm;
	return true;
}

static bool set_latency(struct limits *limits, const char *name, const char *value)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	uint64_t number;
	const char *end = parse_decimal(value, LATENCY_NS_MAX / 1000, &number);

	if (end != NULL && number == 0 && *end == '\0') {
		limits->latency_ns = 0;
		return true;
	}
	for (size_t i = 0; end != NULL && i < sizeof(units) / sizeof(units[0]); i++) {
		uint64_t most = LATENCY_NS_MAX / units[i].ns * PPM_PER_PERCENT;
		/* Of 10 000ths of a unit. */
		uint64_t ns = number * (units[i].ns / 1000) / (PPM_PER_PERCENT / 1000);

		if (strcmp(end, units[i].name) == 0 && number <= most && (ns > 0 || number == 0)) {
			limits->latency_ns = ns;
			return true;
		}
	}
	report_line("--%s: '%s' is not a time up to an hour with us, ms or s (examples: 3ms, 0.5s)",
		name, value);
	return false;
}

static const struct {
	const char *name;
	bool (*set)(struct limits *limits, const char *name, const char *value);
} kinds[] = {
	{"bwlimit", set_bwlimit},
	{"iops-limit", set_iops},
	{"ioprio", set_ioprio},
	{"nice", set_nice},
	{"psi-target", set_psi},
	{"latency-target", set_latency},
};

bool limits_set(struct limits *limits, const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name) == 0) {
			return kinds[i].set(limits, name, value);
		}
	}
	report_line("there is no limit '%s'; there are bwlimit, iops-limit, ioprio, nice, "
		    "psi-target and latency-target",
		name);
	return false;
}

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL) {
		text[--length] = '\0';
	}
	return text;
}

/* The line has ended with '\0'; an empty one and a comment are good too. */
static bool load_line(struct limits *limits, char *line, size_t length)
{
	char *name;
	char *value;

	if (memchr(line, '\0', length) != NULL) {
		report_line("a NUL byte is no text: write it as UTF-8");
		return false;
	}
	name = trim(line);
	if (*name == '\0' || *name == '#') {
		return true;
	}
	if (length > LINE_BYTES_MAX) {
		report_line("a line has at most %d bytes", LINE_BYTES_MAX);
		return false;
	}
	value = strchr(name, '=');
	if (value == NULL) {
		report_line("'%s' is not NAME=VALUE", name);
		return false;
	}
	*value++ = '\0';
	return limits_set(limits, trim(name), trim(value));
}

/* `text` has room for a byte more than `length`. */
static bool load_lines(struct limits *limits, const char *path, char *text, size_t length)
{
	char *end = text + length;
	char *line = text;

	/* As some editors begin a file of UTF-8; no part of the first line. */
	if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		line += 3;
	}
	for (uint32_t number = 1; line < end; number++) {
		char *line_end = memchr(line, '\n', (size_t)(end - line));

		line_end = line_end == NULL ? end : line_end;
		*line_end = '\0';
		if (!load_line(limits, line, (size_t)(line_end - line))) {
			report_line(
				"%s: line %u is bad, so the file changes no limit", path, number);
			return false;
		}
		line = line_end + 1;
	}
	return true;
}

/*
 * Never blocks, since its thread also takes SIGTERM: refuses a pipe. Negative:
 * it has been reported.
 */
static int open_file(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) != 0) {
		report_path(path, report_reason(errno));
	} else if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) {
		report_path(path,
			S_ISDIR(status.st_mode)
				? "is a directory, not a limits file"
				: "is not a regular file, as a limits file has to be");
	} else {
		return fd;
	}
	if (fd >= 0) {
		close(fd);
	}
	return -1;
}

/* One byte more than a limits file may have, if there are as many. */
static ssize_t read_text(int fd, char text[FILE_BYTES_MAX + 1])
{
	size_t length = 0;

	while (length <= FILE_BYTES_MAX) {
		ssize_t got = read(fd, text + length, FILE_BYTES_MAX + 1 - length);

		if (got == 0) {
			break;
		}
		if (got < 0 && errno != EINTR) {
			return -errno;
		}
		length += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)length;
}

bool limits_load(struct limits *limits, const char *path)
{
	/* Two threads never load at once: the first has begun the other. */
	static char text[FILE_BYTES_MAX + 1];
	struct limits loaded = *limits;
	int fd = open_file(path);
	ssize_t length;

	if (fd < 0) {
		return false;
	}
	length = read_text(fd, text);
	close(fd);
	if (length < 0) {
		report_path(path, report_reason((int)length));
		return false;
	}
	if (length > FILE_BYTES_MAX) {
		report_line("%s: is larger than %d bytes, the most that a limits file may have, "
			    "so it changes no limit",
			path, FILE_BYTES_MAX);
		return false;
	}
	if (!load_lines(&loaded, path, text, (size_t)length)) {
		return false;
	}
	*limits = loaded;
	return true;
}

uint32_t limits_window_bytes(const struct limits *limits, uint32_t worker_count, bool is_moving)
{
	uint64_t most = is_moving ? WINDOW_BYTES_MIN : WINDOW_BYTES_MAX;
	uint32_t window_bytes = WINDOW_BYTES_MIN;

	if (!is_moving && limits->bytes_per_second == 0) {
		return 0;
	}
	if (limits->bytes_per_second != 0) {
		uint64_t share = limits->bytes_per_second / EXCESS_PART / (worker_count + 1);

		most = share < most ? share : most;
	}
	while (window_bytes * UINT64_C(2) <= most) {
		window_bytes *= 2;
	}
	return window_bytes;
}

/* The lower rate of two; 0 means no rate. */
static uint64_t lower(uint64_t a, uint64_t b)
{
	if (a == 0 || b == 0) {
		return a == 0 ? b : a;
	}
	return a < b ? a : b;
}

uint64_t limits_bytes(const struct limits *limits, const struct pinion_tuning *tuning)
{
	return limits->has_bytes ? limits->bytes_per_second : tuning->bytes_per_second;
}

void limits_rates(const struct limits *limits, const struct pinion_tuning *tuning, uint64_t pace,
	struct pinion_limits *out_rates)
{
	uint64_t requests =
		limits->has_requests ? limits->requests_per_second : tuning->requests_per_second;

	pinion_limits_init(out_rates);
	out_rates->depth_count = tuning->depth_count;
	out_rates->depth_bytes = tuning->depth_bytes;
	out_rates->bytes_per_second = lower(limits_bytes(limits, tuning), pace);
	out_rates->requests_per_second = lower(requests, pace / READ_BYTES_MIN);
	out_rates->slow_ns = limits->latency_ns;
}
