/* SPDX-License-Identifier: MIT */
/*
 * Goal: a line that is drawn on a terminal and removed later leaves its last
 * column free, so that the terminal does not break it; a shorter one is whole,
 * and so is any where the width is not known.
 * Method: a terminal of the test's own as stderr, of several widths.
 */
#include "tests/support/expect.h"
#include "tools/report.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE = 8 };

static const char line[] = "12345678";
static int terminal;

static void expect_shown(const char *what, unsigned short columns, const char *expected)
{
	struct winsize size = {.ws_row = 24, .ws_col = columns};
	char shown[64] = "";
	ssize_t length;

	expect_ready("size", ioctl(STDERR_FILENO, TIOCSWINSZ, &size) == 0);
	report_status(line);
	length = read(terminal, shown, sizeof(shown) - 1);
	expect_number(what, (long long)strlen(expected), length);
	expect_text(what, expected, shown);
	report_lift_status();
	memset(shown, 0, sizeof(shown));
	expect_ready("read", read(terminal, shown, sizeof(shown) - 1) > 0);
	expect_text("removed", "\r\033[K", shown);
}

int main(void)
{
	int side;

	_Static_assert(sizeof(line) == LINE + 1, "its length");
	terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal < 0) {
		puts("there are no pseudo-terminals here");
		return EXPECT_SKIPPED;
	}
	expect_ready("terminal", grantpt(terminal) == 0 && unlockpt(terminal) == 0);
	side = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	expect_ready("terminal", side >= 0 && dup2(side, STDERR_FILENO) == STDERR_FILENO);
	expect_shown("longer", LINE - 1, "123456");
	expect_shown("as long", LINE, "1234567");
	expect_shown("shorter", LINE + 1, line);
	expect_shown("unknown", 0, line);
	close(side);
	close(terminal);
	return expect_status();
}
