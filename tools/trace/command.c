/* SPDX-License-Identifier: MIT */
/*
 * pinion trace: what the workers of a process do, for some seconds, as a
 * picture.
 *
 * The process is neither asked nor stopped, and notices nothing: its rings of
 * events are all that is read. pinion_trace(3) describes them.
 */
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/scanning.h"
#include "tools/signals.h"
#include "tools/top/process.h"
#include "tools/tracing.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECONDS_NS_MAX UINT64_C(86400000000000)

enum {
	/* A ring of 65536 events is filled in some 30 ms by short tasks. */
	PAUSE_MS = 5,
	/* Of the process for its trace: each 100 ms. */
	LOOKS_PER_SEARCH = 20,
	NS_PER_MS = 1000000,
	PID_MAX = 1 << 22,
	FILL_TRIES = 20,
	FILL_PAUSE_NS = 10000000,
};

enum {
	OPTION_OUTPUT,
	OPTION_RUNTIME,
};

static const struct option_spec trace_options[] = {
	[OPTION_OUTPUT] = {'o', "output", "FILE", "write there; default: standard output",
		"FILE is replaced when the new one is whole."},
	[OPTION_RUNTIME] = {.name = "runtime",
		.argument = "N",
		.brief = "the Nth runtime of the process; default: 0, the first"},
};

struct job {
	uint64_t pid;
	uint64_t time_ns; /* 0: what the rings have */
	const char *path; /* NULL: standard output */
	uint64_t runtime;
};

/* True: a signal has come. */
static bool pause_for(uint64_t time_ns)
{
	struct pollfd waiting = {.fd = signals_fd(), .events = POLLIN};
	uint64_t pause_ms = time_ns / NS_PER_MS + 1;

	poll(&waiting, waiting.fd < 0 ? 0 : 1, pause_ms < PAUSE_MS ? (int)pause_ms : PAUSE_MS);
	return signals_interrupted();
}

static bool has_ended(const struct pinion_trace *trace)
{
	struct pinion_trace_info info;

	pinion_trace_get_info(trace, &info, sizeof(info));
	return info.has_ended != 0;
}

/* Whether a descriptor there is a trace, or may be: it cannot be read. */
static bool has_trace(const char *descriptors)
{
	static const char wanted[] = "/memfd:pinion-trace (deleted)";
	DIR *folder = opendir(descriptors);
	const struct dirent *entry;
	bool is_found = folder == NULL && errno != ENOENT;

	while (folder != NULL && !is_found && (entry = readdir(folder)) != NULL) {
		char target[sizeof(wanted)];
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target));

		is_found = length == (ssize_t)strlen(wanted) &&
			memcmp(target, wanted, strlen(wanted)) == 0;
	}
	if (folder != NULL) {
		closedir(folder);
	}
	return is_found;
}

/* A zombie: it has no descriptors, and its folder of them is root's. */
static bool has_ended_thread(int number)
{
	struct top_process thread;

	(void)top_process_read(number, &thread);
	return top_process_is_zombie(&thread);
}

/*
 * A process that was killed, or has called exec, has not said that its runtime
 * is destroyed. None of its threads has the trace any more. If the main thread
 * alone has ended, the others have the descriptors.
 */
static bool is_gone(const struct job *job)
{
	char path[64];
	DIR *threads;
	const struct dirent *entry;
	bool has_none;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)job->pid);
	threads = opendir(path);
	has_none = threads != NULL || errno == ENOENT;
	while (threads != NULL && has_none && (entry = readdir(threads)) != NULL) {
		if (entry->d_name[0] == '.' || has_ended_thread(atoi(entry->d_name))) {
			continue;
		}
		snprintf(
			path, sizeof(path), "/proc/%d/task/%.16s/fd", (int)job->pid, entry->d_name);
		has_none = !has_trace(path) && !signals_interrupted();
	}
	if (threads != NULL) {
		closedir(threads);
	}
	return has_none;
}

/*
 * Until the time is over, a signal comes, the runtime is destroyed or the
 * process has gone.
 */
static int collect(const struct job *job, struct pinion_trace *trace)
{
	uint64_t end_ns = scanning_ns_now() + job->time_ns;
	int rc = job->time_ns == 0 ? 0 : pinion_trace_skip(trace);

	for (uint64_t looks = 0;; looks++) {
		bool is_last = has_ended(trace) || scanning_ns_now() >= end_ns ||
			(looks % LOOKS_PER_SEARCH == 0 && is_gone(job));

		rc = rc == 0 ? pinion_trace_read(trace) : rc;
		if (rc != 0 || is_last || pause_for(end_ns - scanning_ns_now())) {
			return rc;
		}
	}
}

static void note_silence(const struct job *job, const struct pinion_trace *trace)
{
	struct pinion_trace_info info;

	pinion_trace_get_info(trace, &info, sizeof(info));
	if (info.event_count == 0 && job->time_ns != 0) {
		report_line("process %llu: nothing began or ended in that time; with 0 in place "
			    "of SECONDS the trace has what came before",
			(unsigned long long)job->pid);
	}
}

static bool write_out(const struct job *job, struct pinion_trace *trace)
{
	int rc;

	if (job->path != NULL) {
		return tracing_write(job->path, trace);
	}
	signals_begin_file("standard output");
	rc = pinion_trace_write(trace, STDOUT_FILENO);
	signals_end_file();
	if (rc != 0) {
		report_line("standard output: %s", report_reason(rc));
	}
	return rc == 0;
}

/* What the library says before the trace is open is kept until it is final. */
static char last_line[512];
static bool is_open;

static void note_line(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	if (!is_open) {
		snprintf(last_line, sizeof(last_line), "%s", message);
	} else {
		report_log(NULL, level, message);
	}
}

/* A process that is just starting fills its pages within a millisecond. */
static int open_trace(const struct job *job, struct pinion_trace **out_trace)
{
	const struct timespec pause = {.tv_nsec = FILL_PAUSE_NS};
	int rc = -EAGAIN;

	for (int i = 0; i < FILL_TRIES && rc == -EAGAIN && !signals_interrupted(); i++) {
		if (i > 0) {
			nanosleep(&pause, NULL);
		}
		last_line[0] = '\0';
		rc = pinion_trace_open_pid(
			(int)job->pid, (uint32_t)job->runtime, note_line, NULL, out_trace);
	}
	is_open = rc == 0;
	if (last_line[0] != '\0') {
		report_log(NULL, PINION_LOG_ERROR, last_line);
	}
	return rc;
}

static int run_job(const struct job *job)
{
	struct pinion_trace *trace = NULL;
	bool is_written = false;
	int rc;

	signals_hold();
	rc = open_trace(job, &trace);
	if (rc == 0) {
		rc = collect(job, trace);
		note_silence(job, trace);
		/* Also the events before a fault. */
		is_written = write_out(job, trace);
		tracing_report_lost(trace);
	} else if (rc == -ENOMEM || (rc == -ENOENT && job->runtime > 0)) {
		report_line("runtime %llu of process %llu: %s", (unsigned long long)job->runtime,
			(unsigned long long)job->pid,
			rc == -ENOENT ? "there is none with a trace" : report_reason(rc));
	}
	pinion_trace_close(trace);
	signals_release();
	return rc == 0 && is_written ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

static bool parse_operands(struct job *job, char *const *operands, int count)
{
	if (count != 2) {
		report_line("a PID and SECONDS are needed: pinion trace 4711 2 -o FILE");
		return false;
	}
	if (!options_count("PID", operands[0], 1, PID_MAX, &job->pid) ||
		!options_duration("SECONDS", operands[1], 0, SECONDS_NS_MAX, &job->time_ns)) {
		return false;
	}
	if (job->path == NULL && output_is_terminal()) {
		report_line("the trace is not for a terminal: -o FILE, or a pipe");
		return false;
	}
	return job->path == NULL || tracing_check(job->path);
}

static int trace_run(const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct job job = {0};
	const char *value;
	int option;

	while ((option = options_next(&parser, &value)) >= 0) {
		if (option == OPTION_OUTPUT) {
			job.path = value;
		} else if (!options_count("runtime", value, 0, UINT16_MAX, &job.runtime)) {
			return EXIT_STATUS_TROUBLE;
		}
	}
	if (option == OPTIONS_HELP) {
		return EXIT_STATUS_CLEAN;
	}
	if (option == OPTIONS_ERROR || !parse_operands(&job, argv + 1, parser.operand_count)) {
		return EXIT_STATUS_TROUBLE;
	}
	return run_job(&job);
}

const struct command trace_command = {
	.name = "trace",
	.arguments = "[-o FILE] PID SECONDS",
	.brief = "what the workers of a running process do, as a picture",
	.detail =
		"Writes tasks, requests, sleeps, wakes and thefts of SECONDS from now on as JSON, "
		"which ui.perfetto.dev and chrome://tracing show; with 0 SECONDS, what the process "
		"has of the past. It must have been started with PINION_TRACE_EVENTS=65536, or "
		"with `trace_events` in its tuning; it is not asked, and not slowed.\n\n"
		"Exit status: 0 done, also by a signal; 2 the process has no trace, the file could "
		"not be written, or bad usage; 3 a signal came, and it could not end within 4 s.",
	.options = trace_options,
	.option_count = sizeof(trace_options) / sizeof(trace_options[0]),
	.run = trace_run,
};
