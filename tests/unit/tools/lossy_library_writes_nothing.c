/* SPDX-License-Identifier: MIT */
/*
 * Goal: a scan reads while the regular-expression library is still put to the
 * test, but writes nothing and ends with status 2 and the reason if the test
 * fails, whether or not something was found.
 * Method: the linker puts this file before the library's search of streams,
 * which the test uses and the pattern here does not; it loses all matches.
 */
#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tools/commands.h"

#if defined(HAVE_HYPERSCAN)

#include <hs.h>

enum { LIMIT_BYTES = 1024 };

static bool loses;

hs_error_t __real_hs_scan_stream(hs_stream_t *stream, const char *bytes, unsigned length,
	unsigned flags, hs_scratch_t *scratch, match_event_handler handler, void *arg);
hs_error_t __wrap_hs_scan_stream(hs_stream_t *stream, const char *bytes, unsigned length,
	unsigned flags, hs_scratch_t *scratch, match_event_handler handler, void *arg);

hs_error_t __wrap_hs_scan_stream(hs_stream_t *stream, const char *bytes, unsigned length,
	unsigned flags, hs_scratch_t *scratch, match_event_handler handler, void *arg)
{
	return loses ? HS_SUCCESS
		     : __real_hs_scan_stream(stream, bytes, length, flags, scratch, handler, arg);
}

static int scan(void *arg)
{
	char name[] = "scan";
	char option[] = "-e";
	char pattern[] = "needle[0-9]";
	char *arguments[] = {name, option, pattern, arg, NULL};

	expect_ready("stdout", freopen("out", "w", stdout) != NULL);
	return scan_command.run(&scan_command, 4, arguments);
}

static void check(char *path, bool is_lossy, int expected_status, const char *expected_output)
{
	char reason[LIMIT_BYTES];
	char output[LIMIT_BYTES] = "";
	int status;
	FILE *out;

	loses = is_lossy;
	status = child_run(scan, path, reason, sizeof(reason));
	expect_number(path, expected_status, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	expect_number("the reason is there", is_lossy, strstr(reason, "loses matches") != NULL);
	out = fopen("out", "r");
	expect_ready("out", out != NULL);
	output[fread(output, 1, sizeof(output) - 1, out)] = '\0';
	fclose(out);
	expect_number("output", 0, strcmp(expected_output, output));
}

int main(void)
{
	char with[] = "with";
	char without[] = "without";

	scratch_enter("lossy_library_writes_nothing");
	scratch_file(with, "a needle7 here");
	scratch_file(without, "nothing here");
	check(with, false, 1, "with:1:3: e1: n…\n");
	check(without, false, 0, "");
	check(with, true, 2, "");
	check(without, true, 2, "");
	scratch_leave();
	return expect_status();
}

#else

int main(void)
{
	printf("skipped: built without Hyperscan\n");
	return 77;
}

#endif
