/* SPDX-License-Identifier: MIT */
/*
 * Goal: each limit takes the values that its page names and no others; a limits
 * file changes all of its limits or none; the rates, and the window that keeps
 * them within 3 %, are those worked out by hand.
 */
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tools/limits.h"

#include <sys/stat.h>

static struct limits parse(const char *name, const char *value, bool is_good)
{
	struct limits limits = {.bytes_per_second = 1,
		.requests_per_second = 1,
		.latency_ns = 1,
		.pressure_ppm = 1,
		.nice = 1,
		.io_priority = 1};

	expect_number(value, is_good, limits_set(&limits, name, value));
	return limits;
}

static void check_rates(void)
{
	static const char *const bad[] = {"", "x", "-1", "1X", "2000000000000000000T"};

	expect_number("bytes", 2000000, (long long)parse("bwlimit", "2MB", true).bytes_per_second);
	expect_number("KiB", 2048, (long long)parse("bwlimit", "2K", true).bytes_per_second);
	expect_number("none", 0, (long long)parse("bwlimit", "0", true).bytes_per_second);
	expect_number(
		"most", 1ll << 50, (long long)parse("bwlimit", "1024T", true).bytes_per_second);
	expect_number(
		"reads", 250, (long long)parse("iops-limit", "250", true).requests_per_second);
	expect_number("none", 0, (long long)parse("iops-limit", "0", true).requests_per_second);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		expect_number("as it was", 1,
			(long long)parse("bwlimit", bad[i], false).bytes_per_second);
		expect_number("as it was", 1,
			(long long)parse("iops-limit", bad[i], false).requests_per_second);
	}
	parse("bwlimit", "1025T", false);
	parse("iops-limit", "2K", false);
}

static void check_priorities(void)
{
	expect_number("idle", 0x6000, parse("ioprio", "idle", true).io_priority);
	expect_number("high", 0x4000, parse("ioprio", "0", true).io_priority);
	expect_number("low", 0x4007, parse("ioprio", "7", true).io_priority);
	expect_number("as it was", 1, parse("ioprio", "8", false).io_priority);
	parse("ioprio", "", false);
	parse("ioprio", "best", false);
	parse("ioprio", "-1", false);
	expect_number("least", 0, parse("nice", "0", true).nice);
	expect_number("most", 19, parse("nice", "19", true).nice);
	expect_number("as it was", 1, parse("nice", "20", false).nice);
	parse("nice", "-1", false);
}

static void check_targets(void)
{
	static const char *const bad_times[] = {"3", "ms", "3 ms", "3m", "3601s", "0.0009us", "-1s",
		"1e3us", "99999999999999999999s", "0.00001us", "0.0000001s"};
	static const char *const bad_shares[] = {
		"", "%", "100.1", "101", "5 %", "5%%", "-5", "0.00001"};

	expect_number("3 ms", 3000000, (long long)parse("latency-target", "3ms", true).latency_ns);
	expect_number("us", 250000, (long long)parse("latency-target", "250us", true).latency_ns);
	expect_number("s", 1500000000, (long long)parse("latency-target", "1.5s", true).latency_ns);
	expect_number("least", 1, (long long)parse("latency-target", "0.001us", true).latency_ns);
	expect_number("most", 3600000000000,
		(long long)parse("latency-target", "3600s", true).latency_ns);
	expect_number("none", 0, (long long)parse("latency-target", "0", true).latency_ns);
	expect_number("none", 0, (long long)parse("latency-target", "0ms", true).latency_ns);
	for (size_t i = 0; i < sizeof(bad_times) / sizeof(bad_times[0]); i++) {
		expect_number("as it was", 1,
			(long long)parse("latency-target", bad_times[i], false).latency_ns);
	}
	expect_number("5 %", 50000, (long long)parse("psi-target", "5", true).pressure_ppm);
	expect_number("5 %", 50000, (long long)parse("psi-target", "5%", true).pressure_ppm);
	expect_number("0.25 %", 2500, (long long)parse("psi-target", "0.25", true).pressure_ppm);
	expect_number("all", 1000000, (long long)parse("psi-target", "100", true).pressure_ppm);
	expect_number("none", 0, (long long)parse("psi-target", "0", true).pressure_ppm);
	expect_number("none", 0, (long long)parse("psi-target", "0.00000", true).pressure_ppm);
	expect_number("least", 1, (long long)parse("psi-target", "0.0001", true).pressure_ppm);
	for (size_t i = 0; i < sizeof(bad_shares) / sizeof(bad_shares[0]); i++) {
		expect_number("as it was", 1,
			(long long)parse("psi-target", bad_shares[i], false).pressure_ppm);
	}
	parse("psi", "5", false);
}

static bool load(struct limits *limits, const char *text)
{
	FILE *file = fopen("limits", "w");

	*limits = (struct limits){.bytes_per_second = 7, .nice = 8, .io_priority = 9};
	expect_ready("file", file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
	return limits_load(limits, "limits");
}

static void check_file(void)
{
	struct limits limits;
	char line[300];

	expect_true("nothing", load(&limits, ""));
	expect_number("stays", 7, (long long)limits.bytes_per_second);
	expect_true("lines", load(&limits, "# all\n\n bwlimit = 5 \r\n\tnice=3\npsi-target=1"));
	expect_number("bytes", 5, (long long)limits.bytes_per_second);
	expect_number("nice", 3, limits.nice);
	expect_number("pressure", 10000, (long long)limits.pressure_ppm);
	expect_number("not named", 9, limits.io_priority);
	expect_true("a bad one", !load(&limits, "bwlimit=5\nnice=30\n"));
	expect_number("all stay", 7, (long long)limits.bytes_per_second);
	expect_true("no value", !load(&limits, "bwlimit\n"));
	expect_true("no name", !load(&limits, "=5\n"));
	expect_true("an unknown name", !load(&limits, "limits-file=x\n"));
	memset(line, ' ', sizeof(line));
	memcpy(line, "nice=6", 6);
	line[254] = '\n';
	line[255] = '\0';
	expect_true("254 bytes", load(&limits, line));
	expect_number("are a line", 6, limits.nice);
	line[254] = ' ';
	line[255] = '\n';
	line[256] = '\0';
	expect_true("255 bytes", !load(&limits, line));
	line[0] = '#';
	expect_true("but as a comment", load(&limits, line));
	memset(line, ' ', 6);
	expect_true("or blanks", load(&limits, line));
	expect_true("a byte order mark", load(&limits, "\xef\xbb\xbfnice=4\n"));
	expect_number("is passed by", 4, limits.nice);
	expect_true("in another line", !load(&limits, "nice=4\n\xef\xbb\xbfnice=5\n"));
	expect_true("no file", !limits_load(&limits, "none"));
	expect_true("a folder", !limits_load(&limits, "."));
	/* It has no writer, so a blocking open would not return. */
	expect_ready("fifo", mkfifo("fifo", 0600) == 0);
	expect_true("a pipe", !limits_load(&limits, "fifo"));
	expect_true("a device", limits_load(&limits, "/dev/null"));
	expect_number("stays", 7, (long long)limits.bytes_per_second);
}

/* A text of `length` bytes: newlines, and a limit at the end. */
static bool load_long(struct limits *limits, size_t length)
{
	static const char last[] = "nice=5";
	static char text[65538];

	memset(text, '\n', length);
	strcpy(text + length - strlen(last), last);
	return load(limits, text);
}

static void check_file_size(void)
{
	struct limits limits;

	expect_true("64 KiB", load_long(&limits, 65536));
	expect_number("all are read", 5, limits.nice);
	expect_true("a byte more", !load_long(&limits, 65537));
	expect_number("nothing of it counts", 8, limits.nice);
}

static void expect_rates(const char *what, const struct limits *limits, uint64_t pace,
	uint64_t bytes, uint64_t requests)
{
	struct pinion_tuning tuning;
	struct pinion_limits rates;

	pinion_tuning_init(&tuning);
	tuning.depth_count = 3;
	tuning.depth_bytes = 4;
	tuning.bytes_per_second = 500000;
	tuning.requests_per_second = 50;
	limits_rates(limits, &tuning, pace, &rates);
	expect_number(what, (long long)bytes, (long long)rates.bytes_per_second);
	expect_number(what, (long long)requests, (long long)rates.requests_per_second);
	expect_number(what, 3, (long long)rates.depth_count);
	expect_number(what, 4, (long long)rates.depth_bytes);
	expect_number(what, (long long)limits->latency_ns, (long long)rates.slow_ns);
}

static void check_merging(void)
{
	struct limits limits = LIMITS_NONE;
	struct pinion_tuning tuning;
	struct pinion_limits rates;

	expect_rates("of the environment", &limits, 0, 500000, 50);
	expect_rates("a lower pace", &limits, 327680, 327680, 20);
	expect_rates("a higher pace", &limits, 1638400, 500000, 50);
	expect_true("a rate", limits_set(&limits, "bwlimit", "400000"));
	expect_true("a rate", limits_set(&limits, "iops-limit", "60"));
	limits.latency_ns = 5;
	expect_rates("options replace it", &limits, 0, 400000, 60);
	expect_rates("and a pace lowers them", &limits, 16384, 16384, 1);
	expect_true("no rate", limits_set(&limits, "bwlimit", "0"));
	expect_rates("0 lifts the environment's", &limits, 0, 0, 60);
	expect_true("no rate", limits_set(&limits, "iops-limit", "0"));
	expect_rates("that of requests as well", &limits, 0, 0, 0);
	limits = (struct limits)LIMITS_NONE;
	pinion_tuning_init(&tuning);
	limits_rates(&limits, &tuning, 0, &rates);
	expect_number("none", 0, (long long)rates.bytes_per_second);
	expect_number("none", 0, (long long)rates.requests_per_second);
	limits_rates(&limits, &tuning, 163840, &rates);
	expect_number("the pace alone", 163840, (long long)rates.bytes_per_second);
	expect_number("as reads", 10, (long long)rates.requests_per_second);
}

static void expect_window(
	uint64_t bytes_per_second, uint32_t workers, bool is_moving, uint32_t window_bytes)
{
	struct limits limits = LIMITS_NONE;

	limits.bytes_per_second = bytes_per_second;
	expect_number("window", window_bytes, limits_window_bytes(&limits, workers, is_moving));
}

/* With 2 workers a hundred and fiftieth of the rate, at most. */
static void check_windows(void)
{
	expect_window(0, 2, false, 0);
	expect_window(0, 2, true, 128 << 10);
	expect_window(1, 2, false, 128 << 10);
	expect_window((150ull << 18) - 150, 2, false, 128 << 10);
	expect_window(150ull << 18, 2, false, 256 << 10);
	expect_window(150ull << 20, 2, false, 1 << 20);
	expect_window((150ull << 20) - 150, 2, false, 512 << 10);
	expect_window(150ull << 20, 3, false, 512 << 10);
	expect_window(150ull << 30, 2, false, 1 << 20);
	expect_window(150ull << 20, 2, true, 128 << 10);
	expect_window(150 * 8192, 2, true, 128 << 10);
}

int main(void)
{
	/* The messages are not under test here. */
	expect_ready("/dev/null", freopen("/dev/null", "w", stderr) != NULL);
	scratch_enter("limits");
	check_rates();
	check_priorities();
	check_targets();
	check_file();
	check_file_size();
	check_merging();
	check_windows();
	scratch_leave();
	return expect_status();
}
