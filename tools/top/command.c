/* SPDX-License-Identifier: MIT */
/*
 * pinion top: what the workers of a process do, from its metrics page.
 *
 * The process is neither asked nor stopped, and notices nothing: the page and
 * /proc are all that is read. pinion-metrics(5) describes the page.
 *
 * Invariant: bytes of other processes reach a terminal escaped only
 * (output_text.h).
 */
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/top/openmetrics.h"
#include "tools/top/screen.h"
#include "tools/top/show.h"
#include "tools/top/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

static const uint64_t INTERVAL_NS_MIN = 10000000;
static const uint64_t INTERVAL_NS_MAX = 86400000000000;

enum {
	OPTION_INTERVAL,
	OPTION_JSON,
	OPTION_ONCE,
	OPTION_OPENMETRICS,
};

static const struct option_spec top_options[] = {
	[OPTION_INTERVAL] = {'i', "interval", "SECONDS", "time between reports (default: 1)", NULL},
	[OPTION_JSON] = {.name = "json", .brief = "a JSON object for each runtime and report"},
	[OPTION_ONCE] = {'1', "once", NULL, "one report as lines, and the end", NULL},
	[OPTION_OPENMETRICS] = {0, "openmetrics", "DIR",
		"each report as DIR/pinion.prom, for node_exporter's textfile collector", NULL},
};

struct job {
	struct top_watch watch;
	uint64_t interval_ns;
	bool is_json;
	bool is_once;
	const char *folder; /* of --openmetrics, or NULL */
	bool has_written;   /* a report there */
	/* Of a screen. */
	struct top_view view;
	struct top_scroll scroll;
	bool shows_help;
};

/* ---- reports ---- */

static int milliseconds(uint64_t time_ns)
{
	return (int)(time_ns / 1000000);
}

/* Finds and reads all pages. False: no memory, with a line. */
static bool look(struct job *job)
{
	if (!top_watch_find(&job->watch)) {
		job->watch.had_trouble = true;
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	top_watch_read(&job->watch);
	return true;
}

/* A disk that is full for a moment ends nothing once a report was written. */
static bool write_report(struct job *job)
{
	bool is_written = top_openmetrics_write(&job->watch, job->folder);

	job->has_written |= is_written;
	return is_written || (job->has_written && !job->is_once);
}

static bool print_report(struct job *job)
{
	struct output_text text = {0};

	if (job->folder != NULL) {
		return write_report(job);
	}
	for (size_t i = 0; i < job->watch.count; i++) {
		if (job->is_json) {
			top_show_json(&text, &job->watch.pages[i]);
		} else {
			top_show_lines(&text, &job->watch.pages[i], &job->view);
		}
	}
	return output_print(&text);
}

/* True: a signal has come. */
static bool pause_for(uint64_t time_ns)
{
	struct pollfd waiting = {.fd = signals_fd(), .events = POLLIN};

	poll(&waiting, waiting.fd < 0 ? 0 : 1, milliseconds(time_ns));
	return signals_interrupted();
}

/* A file for others is kept up to date also while there is no process. */
static bool goes_on(const struct job *job)
{
	return job->watch.count > 0 || job->folder != NULL;
}

static bool print_reports(struct job *job)
{
	do {
		if (!look(job) || !goes_on(job)) {
			return true;
		}
		if (!print_report(job)) {
			return false;
		}
		/* The file is read less often than it is written. */
		if (job->folder != NULL) {
			top_watch_drop_old(&job->watch);
		} else {
			top_watch_drop_ended(&job->watch);
		}
	} while (!job->is_once && goes_on(job) && !pause_for(job->interval_ns));
	return true;
}

/* ---- the screen ---- */

static void append_help(struct output_text *text)
{
	output_text_string(text,
		TOP_MARK_TITLE
		"pinion top\n"
		"  q   end\n"
		"  s   sort by the next column\n"
		"  ?   this help, and back\n"
		"  arrows, PgUp, PgDn, Home, End: the rest of the lines\n"
		"\n"
		"  state   runs, sleeps, in its ring (until a request completes), absent,\n"
		"          stopped, or task and for how long, if that is more than 100 ms\n"
		"  busy %  time in tasks\n"
		"  queue   tasks in the worker's own queue; shared: in the queue of a lane\n"
		"  in I/O  requests in flight\n"
		"  run, I/O, after: a task; a read or write; from its completion to its task;\n"
		"          half and 99 % are not above, since the start of the runtime\n"
		"\n"
		"  man pinion-top has all of it.\n");
}

static bool draw(struct job *job)
{
	struct output_text text = {0};
	char title[64];
	bool is_drawn;

	job->view.columns = top_screen_columns();
	snprintf(title, sizeof(title), "pinion top: ? helps, q ends, s sorts (by %s)",
		top_column_title(job->view.column));
	if (job->shows_help) {
		append_help(&text);
	} else {
		for (size_t i = 0; i < job->watch.count; i++) {
			top_show_lines(&text, &job->watch.pages[i], &job->view);
		}
		if (job->watch.count == 0) {
			output_text_string(&text, "no process has a metrics page now\n");
		}
	}
	is_drawn = top_screen_draw(title, &text, &job->scroll);
	output_text_free(&text);
	return is_drawn;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Keys and sizes until the next report. False: the end. */
static bool handle_events(struct job *job, uint64_t until_ns)
{
	uint64_t now = now_ns();

	while (now < until_ns) {
		int event = top_screen_wait(milliseconds(until_ns - now) + 1);

		if (event == 'q' || event == TOP_SCREEN_STOP) {
			return false;
		}
		if (event == 's') {
			job->view.column = (enum top_column)((job->view.column + 1) % TOP_COLUMNS);
		} else if (event == '?') {
			job->shows_help = !job->shows_help;
			job->scroll = (struct top_scroll){0};
		} else {
			top_screen_scroll(&job->scroll, event);
		}
		if (event != TOP_SCREEN_TIME && !draw(job)) {
			return false;
		}
		now = now_ns();
	}
	return true;
}

/* Of all pages; those that have ended stay for a while. */
static bool look_again(struct job *job)
{
	top_watch_drop_old(&job->watch);
	return look(job);
}

/*
 * Lines of trouble come before the screen and after it: on it they would not be
 * seen for long.
 */
static bool show_screen(struct job *job)
{
	uint64_t until_ns;

	if (!look(job) || job->watch.count == 0) {
		return true;
	}
	if (!top_screen_begin()) {
		return false;
	}
	job->watch.holds_lines = true;
	job->view.is_screen = true;
	job->view.has_blocks = top_screen_has_utf8();
	do {
		until_ns = now_ns() + job->interval_ns;
	} while (draw(job) && handle_events(job, until_ns) && look_again(job));
	top_screen_end();
	top_watch_print_held(&job->watch);
	return true;
}

/* ---- the command ---- */

static bool take_option(struct job *job, int option, const char *value)
{
	switch (option) {
	case OPTION_INTERVAL:
		return options_duration(
			"interval", value, INTERVAL_NS_MIN, INTERVAL_NS_MAX, &job->interval_ns);
	case OPTION_JSON:
		job->is_json = true;
		return true;
	case OPTION_OPENMETRICS:
		job->folder = value;
		return true;
	default:
		job->is_once = true;
		return true;
	}
}

static int end(struct job *job, bool is_whole)
{
	int status = EXIT_STATUS_CLEAN;

	if (!job->watch.had_page && !job->watch.had_trouble) {
		report_line("no process of this user has a metrics page; any program with a pinion "
			    "runtime has one, without PINION_METRICS_PAGE=0");
		status = EXIT_STATUS_FOUND;
	}
	if (!is_whole || job->watch.had_trouble) {
		status = EXIT_STATUS_TROUBLE;
	}
	top_watch_fini(&job->watch);
	return status;
}

static int top_run(const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct job job = {.interval_ns = UINT64_C(1000000000)};
	const char *value;
	bool is_whole;
	int rc = options_next(&parser, &value);

	for (; rc >= 0; rc = options_next(&parser, &value)) {
		if (!take_option(&job, rc, value)) {
			return EXIT_STATUS_TROUBLE;
		}
	}
	if (rc != OPTIONS_END) {
		return rc == OPTIONS_HELP ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
	}
	if (job.is_json && job.folder != NULL) {
		report_line("--json and --openmetrics exclude each other");
		return EXIT_STATUS_TROUBLE;
	}
	job.watch.operands = argv + 1;
	job.watch.operand_count = parser.operand_count;
	if (!job.is_json && !job.is_once && job.folder == NULL && top_screen_is_possible()) {
		is_whole = show_screen(&job);
	} else {
		signals_hold();
		is_whole = print_reports(&job);
		signals_release();
	}
	return end(&job, is_whole);
}

const struct command top_command = {
	.name = "top",
	.arguments = "[OPTION]… [PID|NAME|FILE]…",
	.brief = "what the workers of a running process do, without its help",
	.detail =
		"Shows each runtime of a process, by its number or its name, or of a file that "
		"PINION_METRICS_FILE has made, also when its process is dead; without an operand, "
		"of every process of this user, as root of all. Nothing is asked of the process, "
		"and nothing slows it.\n\n"
		"On a terminal it is a screen: q ends it, s sorts, ? helps. Elsewhere it prints a "
		"report in each interval, until no process is left or a signal comes.\n\n"
		"Exit status: 0 done; 1 no process of this user has a metrics page, and none was "
		"named; 2 a process that was named has none, or a page, process or file could not "
		"be read or written, or bad usage; 3 a signal came, and it could not end within 4 "
		"s.",
	.options = top_options,
	.option_count = sizeof(top_options) / sizeof(top_options[0]),
	.run = top_run,
};
