/* SPDX-License-Identifier: MIT */
#include "tools/top/screen.h"

#include "tools/report.h"
#include "tools/top/show.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
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
	KEY_BYTES = 32,
	/* By how much a key moves sideways. */
	COLUMN_STEP = 8,
	COLUMN_MAX = 240,
	ESCAPE = 033,
};

static const int taken_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_taken;
static struct termios former;
static sigset_t former_mask;
static int signal_fd = -1;

/* Bytes of keys that were read and not yet taken. */
static unsigned char keys[KEY_BYTES];
static size_t key_count;

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

/* ECMA-48 and xterm: the end of the sequence of a key, and its number. */
static int name_key(unsigned char end, unsigned int number)
{
	switch (end) {
	case 'A':
		return TOP_SCREEN_UP;
	case 'B':
		return TOP_SCREEN_DOWN;
	case 'C':
		return TOP_SCREEN_RIGHT;
	case 'D':
		return TOP_SCREEN_LEFT;
	case 'H':
		return TOP_SCREEN_HOME;
	case 'F':
		return TOP_SCREEN_END;
	case '~':
		return number == 5		     ? TOP_SCREEN_PAGE_UP
			: number == 6		     ? TOP_SCREEN_PAGE_DOWN
			: number == 1 || number == 7 ? TOP_SCREEN_HOME
			: number == 4 || number == 8 ? TOP_SCREEN_END
						     : TOP_SCREEN_OTHER;
	default:
		return TOP_SCREEN_OTHER;
	}
}

/* Its bytes come at once; an incomplete sequence is a key without a name. */
static int take_sequence(size_t *out_used)
{
	unsigned int number = 0;
	size_t end = 2;

	while (end < key_count && keys[end] >= ' ' && keys[end] < '@') {
		if (keys[end] >= '0' && keys[end] <= '9' && number < 100) {
			number = 10 * number + (unsigned int)(keys[end] - '0');
		}
		end++;
	}
	*out_used = end < key_count ? end + 1 : key_count;
	return end < key_count ? name_key(keys[end], number) : TOP_SCREEN_OTHER;
}

static int take_key(void)
{
	size_t used = 1;
	int key = keys[0];

	if (key_count >= 2 && keys[0] == ESCAPE && (keys[1] == '[' || keys[1] == 'O')) {
		key = take_sequence(&used);
	}
	key_count -= used;
	memmove(keys, keys + used, key_count);
	return key;
}

int top_screen_wait(int timeout_ms)
{
	struct pollfd waiting[] = {
		{.fd = signal_fd, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	int count = key_count > 0 ? 0 : poll(waiting, COUNT(waiting), timeout_ms);
	ssize_t length;

	if (key_count > 0) {
		return take_key();
	}
	if (count <= 0) {
		return TOP_SCREEN_TIME;
	}
	if (waiting[0].revents != 0) {
		int event = take_signal();

		return event != 0 ? event : TOP_SCREEN_TIME;
	}
	length = read(STDIN_FILENO, keys, sizeof(keys));
	key_count = length > 0 ? (size_t)length : 0;
	return length > 0 ? take_key() : TOP_SCREEN_STOP;
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

unsigned int top_screen_columns(void)
{
	return size_now().ws_col;
}

bool top_screen_has_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool has_utf8;

	if (locale == (locale_t)0) {
		return false;
	}
	has_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
	freelocale(locale);
	return has_utf8;
}

bool top_screen_scroll(struct top_scroll *scroll, int key)
{
	size_t page = size_now().ws_row > 2 ? size_now().ws_row - 2u : 1;

	switch (key) {
	case TOP_SCREEN_UP:
		scroll->row -= scroll->row > 0;
		return true;
	case TOP_SCREEN_DOWN:
		scroll->row++;
		return true;
	case TOP_SCREEN_PAGE_UP:
		scroll->row -= scroll->row < page ? scroll->row : page;
		return true;
	case TOP_SCREEN_PAGE_DOWN:
		scroll->row += page;
		return true;
	case TOP_SCREEN_LEFT:
		scroll->column -= scroll->column < COLUMN_STEP ? scroll->column : COLUMN_STEP;
		return true;
	case TOP_SCREEN_RIGHT:
		scroll->column += COLUMN_STEP;
		return true;
	case TOP_SCREEN_HOME:
		*scroll = (struct top_scroll){0};
		return true;
	case TOP_SCREEN_END:
		scroll->row = SIZE_MAX / 2;
		return true;
	default:
		return false;
	}
}

/* Where the character after the first `count` of a line begins. */
static size_t skip_characters(const char *line, size_t length, size_t count)
{
	size_t end = 0;

	for (size_t i = 0; i < count && end < length; i++) {
		size_t step = output_text_utf8_length(line + end, length - end);

		end += step > 0 ? step : 1;
	}
	return end;
}

/* `columns` characters from `from` on; a '>' ends a line that goes on. */
static void append_cut(
	struct output_text *out, const char *line, size_t length, size_t from, size_t columns)
{
	size_t begin = skip_characters(line, length, from);
	size_t end = begin + skip_characters(line + begin, length - begin, columns);

	if (end < length && columns > 0) {
		end = begin + skip_characters(line + begin, length - begin, columns - 1);
		output_text_append(out, line + begin, end - begin);
		output_text_string(out, ">");
	} else {
		output_text_append(out, line + begin, end - begin);
	}
}

static void append_line(
	struct output_text *out, const char *line, size_t length, size_t from, size_t columns)
{
	bool is_title = length > 0 && line[0] == TOP_MARK_TITLE[0];
	bool is_alarm = length > 0 && line[0] == TOP_MARK_ALARM[0];
	size_t mark = is_title || is_alarm ? 1 : 0;

	/* First: after the last column it would take that. */
	output_text_string(out, "\033[K");
	output_text_string(out, is_title ? "\033[1m" : is_alarm ? "\033[1;31m" : "");
	append_cut(out, line + mark, length - mark, from, columns);
	output_text_string(out, mark > 0 ? "\033[0m" : "");
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

static size_t count_lines(const struct output_text *lines)
{
	size_t count = 0;

	for (size_t i = 0; i < lines->length; i++) {
		count += lines->bytes[i] == '\n';
	}
	return count;
}

/* The rest of the lines, from line `row` on. */
static const char *find_line(const struct output_text *lines, size_t row)
{
	const char *position = lines->bytes;

	for (size_t i = 0; i < row; i++) {
		const char *end =
			memchr(position, '\n', lines->length - (size_t)(position - lines->bytes));

		position = end + 1; /* the caller has counted them */
	}
	return position;
}

static void append_title(struct output_text *out, const char *title, const struct winsize *size,
	size_t row, size_t count)
{
	struct output_text line = {0};
	size_t rows = size->ws_row - 1u;

	output_text_string(&line, title);
	if (count > rows) {
		output_text_format(&line, "  rows %zu-%zu of %zu", row + 1,
			row + rows < count ? row + rows : count, count);
	}
	append_line(out, line.bytes, line.length, 0, size->ws_col);
	out->failed = out->failed || line.failed;
	output_text_free(&line);
}

bool top_screen_draw(const char *title, const struct output_text *lines, struct top_scroll *scroll)
{
	struct winsize size = size_now();
	size_t count = count_lines(lines);
	size_t rows = size.ws_row - 1u;
	size_t row_max = count > rows ? count - rows : 0;
	struct output_text out = {0};
	const char *position;
	bool is_drawn;

	scroll->row = scroll->row < row_max ? scroll->row : row_max;
	scroll->column = scroll->column < COLUMN_MAX ? scroll->column : COLUMN_MAX;
	output_text_string(&out, "\033[H");
	append_title(&out, title, &size, scroll->row, count);
	position = find_line(lines, scroll->row);
	for (size_t row = scroll->row; row < count && row < scroll->row + rows; row++) {
		const char *end =
			memchr(position, '\n', lines->length - (size_t)(position - lines->bytes));

		output_text_string(&out, "\r\n");
		append_line(&out, position, (size_t)(end - position), scroll->column, size.ws_col);
		position = end + 1;
	}
	output_text_string(&out, "\033[J");
	is_drawn = !out.failed && !lines->failed && write_patiently(out.bytes, out.length);
	output_text_free(&out);
	return is_drawn;
}
