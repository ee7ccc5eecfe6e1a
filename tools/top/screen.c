/* SPDX-License-Identifier: MIT */
#include "tools/top/screen.h"

#include "tools/report.h"
#include "tools/top/show.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* The alternate screen, no cursor, no wrapping of long lines; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

enum {
	/* A terminal that takes any output takes as much. */
	WRITE_BYTES = 256,
	DEFAULT_ROWS = 24,
	DEFAULT_COLUMNS = 80,
};

static const int taken_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_taken;
static struct termios former;
static sigset_t former_mask;
static int signal_fd = -1;

bool top_screen_is_possible(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && terminal != NULL &&
		terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}

/* Async-signal-safe. */
static void write_plainly(const char *sequence)
{
	ssize_t written = write(STDOUT_FILENO, sequence, strlen(sequence));

	(void)written;
}

static void restore(void)
{
	write_plainly(LEAVE);
	tcsetattr(STDIN_FILENO, TCSANOW, &former);
}

/* SA_RESETHAND: raised again, it does what it would have done. */
static void take_crash(int number)
{
	restore();
	raise(number);
}

static bool make_raw(void)
{
	struct termios raw = former;

	/* No flow control: ^S would keep it from drawing and ending. */
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) {
		return false;
	}
	write_plainly(ENTER);
	return true;
}

static bool take_signals(void)
{
	struct sigaction crash = {.sa_handler = take_crash, .sa_flags = (int)SA_RESETHAND};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT(taken_signals); i++) {
		struct sigaction action;

		/* Ignored, by nohup(1) for example: it stays so. */
		if (sigaction(taken_signals[i], NULL, &action) == 0 &&
			(action.sa_handler != SIG_IGN || taken_signals[i] == SIGWINCH)) {
			sigaddset(&set, taken_signals[i]);
		}
	}
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0) {
		return false;
	}
	sigprocmask(SIG_BLOCK, &set, &former_mask);
	for (size_t i = 0; i < COUNT(crash_signals); i++) {
		sigaction(crash_signals[i], &crash, NULL);
	}
	return true;
}

bool top_screen_begin(void)
{
	if (tcgetattr(STDIN_FILENO, &former) != 0 || !take_signals()) {
		report_line("the terminal cannot be drawn on: %s", report_reason(errno));
		return false;
	}
	is_taken = true;
	if (!make_raw()) {
		report_line("the terminal cannot be drawn on: %s", report_reason(errno));
		top_screen_end();
		return false;
	}
	return true;
}

void top_screen_end(void)
{
	if (!is_taken) {
		return;
	}
	is_taken = false;
	restore();
	for (size_t i = 0; i < COUNT(crash_signals); i++) {
		signal(crash_signals[i], SIG_DFL);
	}
	close(signal_fd);
	sigprocmask(SIG_SETMASK, &former_mask, NULL);
}

/* ---- waiting ---- */

static void sleep_in_background(void)
{
	restore();
	raise(SIGSTOP);
	make_raw();
}

/* 0: it was no signal that matters. */
static int take_signal(void)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
		return 0;
	}
	if (info.ssi_signo == SIGTSTP) {
		sleep_in_background();
		return TOP_SCREEN_SIZE;
	}
	return info.ssi_signo == SIGWINCH ? TOP_SCREEN_SIZE : TOP_SCREEN_STOP;
}

int top_screen_wait(int timeout_ms)
{
	struct pollfd waiting[] = {
		{.fd = signal_fd, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	int count = poll(waiting, COUNT(waiting), timeout_ms);
	unsigned char key;

	if (count <= 0) {
		return TOP_SCREEN_TIME;
	}
	if (waiting[0].revents != 0) {
		int event = take_signal();

		return event != 0 ? event : TOP_SCREEN_TIME;
	}
	return read(STDIN_FILENO, &key, 1) == 1 ? key : TOP_SCREEN_STOP;
}

/* ---- drawing ---- */

static struct winsize size_now(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
		size = (struct winsize){.ws_row = DEFAULT_ROWS, .ws_col = DEFAULT_COLUMNS};
	}
	return size;
}

/* The first `columns` characters; the terminal cuts wide ones. */
static void append_cut(struct output_text *out, const char *line, size_t length, size_t columns)
{
	size_t end = 0;

	for (size_t column = 0; end < length; column++) {
		size_t step = output_text_utf8_length(line + end, length - end);

		if (column == columns) {
			break;
		}
		end += step > 0 ? step : 1;
	}
	output_text_append(out, line, end);
}

static void append_line(struct output_text *out, const char *line, size_t length, size_t columns)
{
	bool is_title = length > 0 && line[0] == TOP_MARK_TITLE[0];
	bool is_alarm = length > 0 && line[0] == TOP_MARK_ALARM[0];
	size_t mark = is_title || is_alarm ? 1 : 0;

	output_text_string(out, is_title ? "\033[1m" : is_alarm ? "\033[1;31m" : "");
	append_cut(out, line + mark, length - mark, columns);
	output_text_string(out, mark > 0 ? "\033[0m\033[K" : "\033[K");
}

/* In small parts, so that a terminal that takes none does not hold it. */
static bool write_patiently(const char *bytes, size_t length)
{
	while (length > 0) {
		struct pollfd waiting[] = {
			{.fd = signal_fd, .events = POLLIN},
			{.fd = STDOUT_FILENO, .events = POLLOUT},
		};
		size_t part = length < WRITE_BYTES ? length : WRITE_BYTES;
		ssize_t count;

		if (poll(waiting, COUNT(waiting), -1) < 0 && errno != EINTR) {
			return false;
		}
		if (waiting[1].revents == 0) {
			/* A signal ends it; the next wait takes that. */
			return true;
		}
		count = write(STDOUT_FILENO, bytes, part);
		if (count < 0 && errno != EINTR && errno != EAGAIN) {
			return false;
		}
		bytes += count > 0 ? count : 0;
		length -= count > 0 ? (size_t)count : 0;
	}
	return true;
}

bool top_screen_draw(const struct output_text *lines)
{
	struct winsize size = size_now();
	struct output_text out = {0};
	const char *position = lines->bytes;
	size_t left = lines->length;
	bool is_drawn;

	output_text_string(&out, "\033[H");
	for (unsigned int row = 0; row < size.ws_row && left > 0; row++) {
		const char *end = memchr(position, '\n', left);
		size_t length = end == NULL ? left : (size_t)(end - position);

		output_text_string(&out, row > 0 ? "\r\n" : "");
		append_line(&out, position, length, size.ws_col);
		position += end == NULL ? length : length + 1;
		left -= end == NULL ? length : length + 1;
	}
	output_text_string(&out, "\033[J");
	is_drawn = !out.failed && !lines->failed && write_patiently(out.bytes, out.length);
	output_text_free(&out);
	return is_drawn;
}
