/* SPDX-License-Identifier: MIT */
/*
 * Lines on stderr. Each is built whole and written under one lock, because
 * several workers report at once and a path may hold any byte but NUL.
 */
#include "tools/report.h"

#include "tools/log_form.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum {
	LATE_NS = 999000000,
	LATE_TRIES = 100,
};

static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *prefix_command;
static struct log_form form;
static _Thread_local bool drops_late_lines;
static bool has_status; /* [W:write_lock R:any] on the terminal */

static bool form_from_env(void)
{
	const char *text = getenv("PINION_LOG");
	char mistake[256];

	(void)log_form_parse("warn", &form, mistake, sizeof(mistake));
	form.is_journal = log_form_is_journal(getenv("JOURNAL_STREAM"), STDERR_FILENO);
	if (text != NULL && !log_form_parse(text, &form, mistake, sizeof(mistake))) {
		report_line("PINION_LOG: %s", mistake);
		return false;
	}
	return true;
}

bool report_init(void)
{
	return form_from_env();
}

void report_name_command(const char *command_name)
{
	prefix_command = command_name;
}

void report_drop_late_lines(void)
{
	drops_late_lines = true;
}

static bool becomes_possible(void)
{
	struct timespec pause = {.tv_nsec = LATE_NS / LATE_TRIES};

	for (int i = 0; i < LATE_TRIES; i++) {
		if (report_is_possible()) {
			return true;
		}
		nanosleep(&pause, NULL);
	}
	return false;
}

/* The lock is held. */
static void lift_status(void)
{
	static const char sequence[] = "\r\033[K";

	if (has_status) {
		__atomic_store_n(&has_status, false, __ATOMIC_RELAXED);
		(void)!write(STDERR_FILENO, sequence, sizeof(sequence) - 1);
	}
}

/* A failing stderr leaves no way to report that, so errors end the line. */
static void write_line(struct output_text *line)
{
	size_t position = 0;

	if (drops_late_lines && !becomes_possible()) {
		output_text_free(line);
		return;
	}
	pthread_mutex_lock(&write_lock);
	lift_status();
	while (position < line->length) {
		ssize_t count =
			write(STDERR_FILENO, line->bytes + position, line->length - position);

		if (count > 0) {
			position += (size_t)count;
		} else if (count == 0 || errno != EINTR) {
			break;
		}
	}
	pthread_mutex_unlock(&write_lock);
	output_text_free(line);
}

void report_status(const char *text)
{
	struct winsize size = {.ws_col = 0};
	struct output_text line = {0};
	size_t length = strlen(text);

	if (pthread_mutex_trylock(&write_lock) != 0) {
		return;
	}
	/* A line that is broken cannot be removed. */
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 &&
		length >= size.ws_col) {
		length = size.ws_col - 1U;
	}
	lift_status();
	output_text_append(&line, text, length);
	if (!line.failed && length > 0) {
		__atomic_store_n(&has_status, write(STDERR_FILENO, line.bytes, length) > 0,
			__ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&write_lock);
	output_text_free(&line);
}

void report_lift_status(void)
{
	if (__atomic_load_n(&has_status, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&write_lock);
		lift_status();
		pthread_mutex_unlock(&write_lock);
	}
}

void report_raw(struct output_text *line)
{
	write_line(line);
}

/* Frees the message. `component` NULL: the command's own. */
static void write_message(
	enum pinion_log_level level, const char *component, struct output_text *message)
{
	const struct log_line line = {
		.level = level,
		.component = component,
		.command = prefix_command,
		.message = message->bytes == NULL ? "" : message->bytes,
		.message_length = message->length,
	};
	struct output_text out = {0};

	log_form_append(&form, &line, &out);
	output_text_free(message);
	write_line(&out);
}

bool report_is_possible(void)
{
	struct pollfd waiting = {.fd = STDERR_FILENO, .events = POLLOUT};
	bool is_free = pthread_mutex_trylock(&write_lock) == 0;

	if (is_free) {
		pthread_mutex_unlock(&write_lock);
	}
	return is_free && poll(&waiting, 1, 0) == 1;
}

__attribute__((format(printf, 2, 0))) static void say(
	enum pinion_log_level level, const char *format, va_list arguments)
{
	int saved_errno = errno;
	struct output_text message = {0};
	char small[512];
	char *text = small;
	va_list again;
	int length;

	va_copy(again, arguments);
	length = vsnprintf(small, sizeof(small), format, arguments);
	if (length < 0) {
		length = 0;
	}
	if ((size_t)length >= sizeof(small)) {
		text = malloc((size_t)length + 1);
		if (text != NULL) {
			vsnprintf(text, (size_t)length + 1, format, again);
		} else {
			text = small;
			length = (int)sizeof(small) - 1;
		}
	}
	va_end(again);
	output_text_escaped(&message, text, (size_t)length, false);
	write_message(level, NULL, &message);
	if (text != small) {
		free(text);
	}
	errno = saved_errno;
}

void report_line(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(PINION_LOG_ERROR, format, arguments);
	va_end(arguments);
}

void report_note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(PINION_LOG_INFO, format, arguments);
	va_end(arguments);
}

void report_debug(const char *format, ...)
{
	va_list arguments;

	if (!log_form_shows(&form, PINION_LOG_DEBUG, PINION_LOG_SCAN)) {
		return;
	}
	va_start(arguments, format);
	say(PINION_LOG_DEBUG, format, arguments);
	va_end(arguments);
}

void report_path(const char *path, const char *reason)
{
	int saved_errno = errno;
	struct output_text message = {0};

	if (path[0] == '\0') {
		output_text_string(&message, "''");
	}
	output_text_escaped(&message, path, strlen(path), true);
	output_text_string(&message, ": ");
	output_text_escaped(&message, reason, strlen(reason), false);
	write_message(PINION_LOG_ERROR, NULL, &message);
	errno = saved_errno;
}

const char *report_reason(int error)
{
	/* Where something can be done about it, the words say what. */
	static const struct {
		int error;
		const char *words;
	} reasons[] = {
		{EACCES, "permission denied"},
		{EAGAIN, "the system is out of a resource for now; try again"},
		{EBADF, "is closed"},
		{EBADMSG, "its data is damaged on the disk (checksum mismatch)"},
		{ECANCELED, "stopped early"},
		{EXDEV, "is no longer beneath the root, or has become a symbolic link: left out"},
		{EFBIG, "too large for an ignore file, or a line of it is; it hides nothing"},
		{EILSEQ, "no text, there is a NUL byte: as an ignore file it hides nothing"},
		{EINVAL, "the file system refused the request (invalid argument)"},
		{EIO, "input/output error: the device gave no data (dmesg may say why)"},
		{EISDIR, "is a directory"},
		{ELOOP, "symbolic link loop"},
		{EMFILE, "too many open files (raise the limit: ulimit -n)"},
		{ENAMETOOLONG, "name too long"},
		{ENFILE, "too many open files on this machine (sysctl fs.file-max)"},
		/* A medium error, past the page cache. */
		{ENODATA, "input/output error: the disk cannot read some sectors"},
		{ENODEV, "no such device"},
		{ENOENT, "no such file or directory"},
		{ENOMEM, "out of memory"},
		{ENOMSG, "not a path: a NUL byte in a list of lines (use -0 for a list with NULs)"},
		{ENOSPC, "no space left on the device"},
		{ENOTDIR, "not a directory"},
		{ENOTSUP, "not a regular file"},
		{EMEDIUMTYPE, "its blocks carry metadata, or are larger than a page"},
		{ENXIO, "no such device or address"},
		{EPERM, "operation not permitted"},
		{EPIPE, "closed pipe: its reader has gone"},
		{EROFS, "read-only file system"},
		{ESTALE, "changed while it was read"},
		{ETIMEDOUT, "timed out"},
	};
	int positive = error < 0 ? -error : error;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].error == positive) {
			return reasons[i].words;
		}
	}
	return strerror(positive);
}

static const char *special_reason(uint32_t mode)
{
	switch (mode) {
	case S_IFIFO:
		return "not a regular file (FIFO)";
	case S_IFSOCK:
		return "not a regular file (socket)";
	case S_IFCHR:
		return "not a regular file (character device)";
	case S_IFBLK:
		return "not a regular file (block device; name it to read it)";
	default:
		return "not a regular file";
	}
}

void report_gap_reason(const struct pinion_gap *gap, char *out_reason, size_t bytes)
{
	snprintf(out_reason, bytes, "bytes %llu to %llu could not be read: %s",
		(unsigned long long)gap->offset_bytes,
		(unsigned long long)(gap->offset_bytes + gap->length_bytes - 1),
		report_reason(gap->error));
}

void report_gap(const char *path, const struct pinion_gap *gap)
{
	char reason[192];

	report_gap_reason(gap, reason, sizeof(reason));
	report_path(path, reason);
}

void report_unread_byte(const char *path, const struct pinion_gap *gap)
{
	char reason[192];

	snprintf(reason, sizeof(reason), "byte %llu could not be read: %s",
		(unsigned long long)gap->offset_bytes, report_reason(gap->error));
	report_path(path, reason);
}

static uint64_t file_timeout_ns;

void report_note_file_timeout(uint64_t timeout_ns)
{
	file_timeout_ns = timeout_ns;
}

static void report_timeout(const char *path)
{
	char reason[64];

	snprintf(reason, sizeof(reason), "no data for %g s (--file-timeout)",
		(double)file_timeout_ns / 1e9);
	report_path(path, reason);
}

/* `user` is set once a file is open: before, -EFBIG is of an ignore file. */
static bool is_endless(const struct pinion_scan_file *file, int error)
{
	return error == -EFBIG && file->user != NULL;
}

static void report_endless(const char *path)
{
	char reason[128];

	snprintf(reason, sizeof(reason),
		"it has not ended after %g s, as files of its file system may never "
		"(--file-timeout)",
		(double)file_timeout_ns / 1e9);
	report_path(path, reason);
}

void report_hole_timeout(const struct pinion_scan_file *file, uint64_t offset)
{
	char reason[160];

	snprintf(reason, sizeof(reason),
		"its holes took more than %g s: given up at byte %llu of %llu "
		"(--file-timeout=0: no limit)",
		(double)file_timeout_ns / 1e9, (unsigned long long)offset,
		(unsigned long long)file->file.size_bytes);
	report_path(file->path, reason);
}

/*
 * A file of /proc, or of another file system without a disk of its own: no
 * device is to blame.
 */
static const char *reason_of(const struct pinion_scan_file *file, int error)
{
	if (error == -EIO && file->file.device != 0 && major(file->file.device) == 0) {
		return "input/output error: its file system gave no data";
	}
	return report_reason(error);
}

const char *report_outcome_words(const struct pinion_scan_file *file, int error)
{
	return error == -ENOTSUP ? special_reason(file->mode) : reason_of(file, error);
}

void report_outcome(
	const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	switch (outcome) {
	case PINION_SCAN_DONE:
	case PINION_SCAN_CANCELLED:
	case PINION_SCAN_IGNORED:
		return;
	case PINION_SCAN_SKIPPED:
		if (error == 0) {
			return;
		}
		if (error == -ENOENT) {
			report_path(file->path,
				"is gone: it was deleted or renamed after its directory was "
				"listed");
			return;
		}
		break;
	case PINION_SCAN_FAILED:
		if (error == -ECANCELED) {
			return;
		}
		break;
	}
	if (error == -ETIME) {
		report_timeout(file->path);
		return;
	}
	if (is_endless(file, error)) {
		report_endless(file->path);
		return;
	}
	report_path(file->path, report_outcome_words(file, error));
}

static void report_record(void *arg, const struct pinion_log_record *record)
{
	struct output_text message = {0};

	(void)arg;
	output_text_escaped(&message, record->message, strlen(record->message), false);
	write_message((enum pinion_log_level)record->level,
		pinion_log_component_name(record->component), &message);
}

static void report_of(
	enum pinion_log_component component, enum pinion_log_level level, const char *message)
{
	const struct pinion_log_record record = {
		.level = (uint32_t)level,
		.component = (uint32_t)component,
		.message = message,
	};

	if (log_form_shows(&form, level, component)) {
		report_record(NULL, &record);
	}
}

void report_log(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	report_of(PINION_LOG_OBSERVE, level, message);
}

void report_checkpoint_log(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	report_of(PINION_LOG_API, level, message);
}

void report_log_of(struct pinion_config *config)
{
	config->log_record = report_record;
	config->log_dropped = form.dropped;
}

void report_totals(const struct pinion_scan_stats *totals)
{
	char ignored[48] = "";

	/* Only with --gitignore there are any. */
	if (totals->ignored > 0) {
		snprintf(ignored, sizeof(ignored), ", %llu ignored",
			(unsigned long long)totals->ignored);
	}
	report_note("%llu %s: %llu done, %llu failed, %llu skipped, %llu cancelled%s",
		(unsigned long long)totals->seen, totals->seen == 1 ? "file" : "files",
		(unsigned long long)totals->done, (unsigned long long)totals->failed,
		(unsigned long long)totals->skipped, (unsigned long long)totals->cancelled,
		ignored);
}

void report_no_start(int error)
{
	bool is_short = error == -ENOMEM || error == -EAGAIN;
	struct rlimit limit;

	if (is_short && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		report_line("cannot start below `ulimit -v` %llu: %s; raise that (LimitAS= in the "
			    "systemd unit)",
			(unsigned long long)limit.rlim_cur / 1024,
			error == -EAGAIN ? "no memory for a thread" : report_reason(error));
	} else if (error != -EAGAIN) {
		/* The library has a line for a thread that is refused. */
		report_line("cannot start: %s",
			error == -EINVAL ? "a value is refused" : report_reason(error));
	}
}
