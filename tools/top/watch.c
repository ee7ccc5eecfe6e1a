/* SPDX-License-Identifier: MIT */
#include "tools/top/watch.h"

#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Runtimes of one process. */
	RUNTIMES_MAX = 64,
	/* A page is filled within a millisecond of its making. Of a report. */
	FILL_PAUSES = 20,
	FILL_PAUSE_NS = 10000000,
	/* What the kernel keeps of a name. */
	COMM_LENGTH = 15,
	/* Pages whose process or runtime has ended. */
	ENDED_MAX = 32,
};

/* Twice as long as Prometheus takes a value for the newest. */
#define ENDED_NS (UINT64_C(600) * 1000000000)

/* The last line that the library has said, until it is known to matter. */
static char last_line[512];

static void note_line(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(last_line, sizeof(last_line), "%s", message);
}

static void say(struct top_watch *watch, const char *line)
{
	if (watch->holds_lines) {
		output_text_append(&watch->held, line, strlen(line) + 1);
	} else {
		report_line("%s", line);
	}
}

static void report_trouble(struct top_watch *watch, int error)
{
	watch->had_trouble = true;
	say(watch, last_line[0] != '\0' ? last_line : report_reason(error));
	last_line[0] = '\0';
}

void top_watch_print_held(struct top_watch *watch)
{
	size_t position = 0;

	watch->holds_lines = false;
	while (position < watch->held.length) {
		report_line("%s", watch->held.bytes + position);
		position += strlen(watch->held.bytes + position) + 1;
	}
	output_text_free(&watch->held);
}

/* ---- the list ---- */

static bool add_page(
	struct top_watch *watch, struct pinion_metrics *metrics, const char *path, int pid)
{
	struct top_page *pages = realloc(watch->pages, (watch->count + 1) * sizeof(*watch->pages));

	if (pages == NULL) {
		return false;
	}
	watch->pages = pages;
	if (!top_page_init(&pages[watch->count], metrics, path, pid)) {
		return false;
	}
	watch->count++;
	watch->had_page = true;
	return true;
}

static bool is_known(const struct top_watch *watch, const struct pinion_metrics *metrics, int pid)
{
	struct pinion_metrics_info info;

	pinion_metrics_get_info(metrics, &info, sizeof(info));
	/* Of a process, or of its file that was given. */
	for (size_t i = 0; i < watch->count; i++) {
		const struct top_page *page = &watch->pages[i];

		if (page->process.pid == pid && page->info.process_start == info.process_start &&
			page->info.created_ns == info.created_ns) {
			return true;
		}
	}
	return false;
}

/* Whether it has its line of that kind already; now it has. */
static bool is_noted(struct top_noted *noted, int pid)
{
	struct top_process process;
	struct top_process *more;

	if (!top_process_read(pid, &process)) {
		return false;
	}
	for (size_t i = 0; i < noted->count; i++) {
		if (noted->processes[i].pid == pid && noted->processes[i].start == process.start) {
			return true;
		}
	}
	more = realloc(noted->processes, (noted->count + 1) * sizeof(*more));
	if (more != NULL) {
		noted->processes = more;
		noted->processes[noted->count++] = process;
	}
	return false;
}

static void let_go(struct top_watch *watch, size_t index)
{
	top_page_fini(&watch->pages[index]);
	watch->count--;
	memmove(&watch->pages[index], &watch->pages[index + 1],
		(watch->count - index) * sizeof(*watch->pages));
}

/* ---- opening ---- */

static int try_page(const char *path, int pid, uint32_t index, struct pinion_metrics **out_metrics)
{
	last_line[0] = '\0';
	return path != NULL ? pinion_metrics_open(path, note_line, NULL, out_metrics)
			    : pinion_metrics_open_pid(pid, index, note_line, NULL, out_metrics);
}

/*
 * `path` or a page of `pid`; waits while it is being filled, as long as this
 * report may still wait: a hostile process never fills its pages.
 */
static int open_page(struct top_watch *watch, const char *path, int pid, uint32_t index,
	struct pinion_metrics **out_metrics)
{
	const struct timespec pause = {.tv_nsec = FILL_PAUSE_NS};
	int rc = try_page(path, pid, index, out_metrics);

	while (rc == -EAGAIN && watch->pauses_left > 0 && !signals_interrupted()) {
		watch->pauses_left--;
		nanosleep(&pause, NULL);
		rc = try_page(path, pid, index, out_metrics);
	}
	return rc;
}

/* Of the page alone, so that the next one may be in order. */
static bool is_about_page(int error)
{
	return error == -EPROTO || error == -EPROTONOSUPPORT || error == -EAGAIN;
}

/* Once for a process: it has more than are shown. */
static void say_left_out(struct top_watch *watch, int pid)
{
	struct pinion_metrics *metrics;
	uint32_t count = 0;
	char line[128];

	if (is_noted(&watch->crowded, pid)) {
		return;
	}
	while (count < RUNTIMES_MAX &&
		open_page(watch, NULL, pid, RUNTIMES_MAX + count, &metrics) == 0) {
		pinion_metrics_close(metrics);
		count++;
	}
	if (count > 0) {
		snprintf(line, sizeof(line), "process %d has %u%s more runtimes: %d are shown", pid,
			count, count == RUNTIMES_MAX ? " or" : "", RUNTIMES_MAX);
		say(watch, line);
	}
}

/*
 * The pages of a process. Returns how many it has, or why they, or the first
 * that is refused, cannot be read; then last_line says it.
 */
static int find_pages(struct top_watch *watch, int pid)
{
	char first_line[sizeof(last_line)] = "";
	struct pinion_metrics *metrics;
	int refused = 0;
	int rc = 0;
	int count = 0;

	for (uint32_t i = 0; i < RUNTIMES_MAX && rc == 0; i++) {
		rc = open_page(watch, NULL, pid, i, &metrics);
		if (is_about_page(rc)) {
			if (refused == 0) {
				memcpy(first_line, last_line, sizeof(first_line));
				refused = rc;
			}
			rc = 0;
			continue;
		}
		if (rc < 0) {
			break;
		}
		count++;
		if (is_known(watch, metrics, pid)) {
			pinion_metrics_close(metrics);
		} else if (!add_page(watch, metrics, NULL, pid)) {
			pinion_metrics_close(metrics);
			return -ENOMEM;
		}
	}
	if (rc == 0) {
		say_left_out(watch, pid);
	}
	if (refused != 0) {
		memcpy(last_line, first_line, sizeof(last_line));
	}
	return rc < 0 && rc != -ENOENT ? rc : refused != 0 ? refused : count;
}

static bool is_about_rights(int error)
{
	return error == -EACCES || error == -EPERM;
}

/* It has neither memory nor descriptors any more, and so no page. */
static void say_zombie(struct top_watch *watch, const struct top_process *process)
{
	char line[128];

	snprintf(line, sizeof(line), "process %d has ended; its parent has not waited for it yet",
		process->pid);
	watch->had_trouble = true;
	say(watch, line);
}

static bool is_zombie(int pid, struct top_process *out_process)
{
	return !top_process_read(pid, out_process) && top_process_is_zombie(out_process);
}

enum asked { ASKED_BY_NUMBER, ASKED_BY_NAME, NOT_ASKED };

/* As above, but with a line for a page that is refused. */
static int find_pages_or_say(struct top_watch *watch, int pid, enum asked asked)
{
	struct top_process process;
	int rc = find_pages(watch, pid);

	if (rc >= 0 || rc == -ENOMEM) {
		return rc;
	}
	/* -EAGAIN: it has just begun, and the next report has it. */
	if (asked == NOT_ASKED && (is_about_rights(rc) || rc == -EAGAIN)) {
		return 0;
	}
	/* It has ended since it was listed, or was found. */
	if ((watch->is_old || asked != ASKED_BY_NUMBER) && !top_process_read(pid, &process)) {
		return 0;
	}
	if (!is_noted(&watch->refused, pid)) {
		report_trouble(watch, rc);
	}
	return rc;
}

/* ---- operands ---- */

static bool find_everywhere(struct top_watch *watch)
{
	size_t count;
	int *pids = top_process_list(&count);
	int rc = 0;

	if (pids == NULL) {
		report_line("/proc cannot be read: is it mounted?");
		return false;
	}
	for (size_t i = 0; i < count && rc != -ENOMEM; i++) {
		if (pids[i] != getpid() && top_process_is_ours(pids[i])) {
			rc = find_pages_or_say(watch, pids[i], NOT_ASKED);
		}
	}
	free(pids);
	return rc != -ENOMEM;
}

static bool find_number(struct top_watch *watch, const char *operand)
{
	bool is_pid = strlen(operand) <= 9 && strtoul(operand, NULL, 10) > 0;
	struct top_process process;
	int rc = -ESRCH;

	if (is_pid && !watch->is_old && is_zombie(atoi(operand), &process)) {
		say_zombie(watch, &process);
		return true;
	}
	rc = is_pid ? find_pages_or_say(watch, atoi(operand), ASKED_BY_NUMBER) : rc;
	if (watch->is_old) {
		return rc != -ENOMEM;
	}
	if (!is_pid) {
		watch->had_trouble = true;
		report_line("there is no process %s", operand);
	} else if (rc == 0) {
		watch->had_trouble = true;
		report_line("process %s has no metrics page: it needs a pinion runtime, without "
			    "PINION_METRICS_PAGE=0",
			operand);
	}
	return rc != -ENOMEM;
}

static bool open_file(struct top_watch *watch, const char *path)
{
	struct pinion_metrics *metrics;
	int rc = open_page(watch, path, 0, 0, &metrics);

	if (rc < 0 && rc != -ENOMEM) {
		report_trouble(watch, rc);
		return true;
	}
	if (rc == 0 && !add_page(watch, metrics, path, 0)) {
		pinion_metrics_close(metrics);
		rc = -ENOMEM;
	}
	return rc == 0;
}

/* Another file has the name now. */
static void note_replaced(struct top_watch *watch, const char *path)
{
	for (size_t i = 0; i < watch->count; i++) {
		watch->pages[i].is_replaced |= watch->pages[i].path == path;
	}
}

/* The file of the operand, unless it is the one of the search before. */
static bool find_file(struct top_watch *watch, int index)
{
	const char *path = watch->operands[index];
	struct top_file *file = &watch->files[index];
	struct stat status = {0};
	bool is_there = stat(path, &status) == 0;
	size_t page_count;
	bool is_done;

	if (watch->is_old &&
		(!is_there || (file->device == status.st_dev && file->inode == status.st_ino))) {
		return true;
	}
	*file = (struct top_file){.is_file = true, .device = status.st_dev, .inode = status.st_ino};
	note_replaced(watch, path);
	page_count = watch->count;
	is_done = open_file(watch, path);
	file->is_page = watch->count > page_count;
	return is_done;
}

/*
 * Returns how many processes are called so, or -ENOMEM. *out_ended: a zombie
 * with that name, or none.
 */
static int find_called(
	struct top_watch *watch, const char *name, int *out_pages, struct top_process *out_ended)
{
	size_t count;
	int *pids = top_process_list(&count);
	int called = 0;
	int rc = pids == NULL ? -ENOMEM : 0;

	*out_pages = 0;
	*out_ended = (struct top_process){.pid = 0};
	for (size_t i = 0; pids != NULL && i < count && rc != -ENOMEM; i++) {
		struct top_process process;
		bool is_ended = is_zombie(pids[i], &process);

		if (pids[i] == getpid() || strncmp(process.comm, name, COMM_LENGTH) != 0) {
			continue;
		}
		if (is_ended) {
			*out_ended = process;
			continue;
		}
		called++;
		rc = find_pages_or_say(watch, pids[i], ASKED_BY_NAME);
		/* A refused page has its line. */
		*out_pages += rc != 0;
	}
	free(pids);
	return rc == -ENOMEM ? rc : called;
}

static bool find_name(struct top_watch *watch, int index)
{
	const char *name = watch->operands[index];
	struct top_process ended;
	int pages;
	int called = find_called(watch, name, &pages, &ended);

	if (called < 0) {
		return false;
	}
	if (called == 0 &&
		(watch->files[index].is_file || (!watch->is_old && access(name, F_OK) == 0))) {
		return find_file(watch, index);
	}
	if (called == 0 && ended.pid > 0 && !watch->is_old) {
		say_zombie(watch, &ended);
	} else if (called == 0 && !watch->is_old) {
		watch->had_trouble = true;
		report_line("there is neither a process nor a file called %s", name);
	} else if (pages == 0 && !watch->is_old) {
		watch->had_trouble = true;
		report_line("no process called %s has a metrics page: it needs a pinion runtime, "
			    "without PINION_METRICS_PAGE=0",
			name);
	}
	return true;
}

static bool find_operand(struct top_watch *watch, int index)
{
	const char *operand = watch->operands[index];

	if (operand[strspn(operand, "0123456789")] == '\0' && operand[0] != '\0') {
		return find_number(watch, operand);
	}
	if (strchr(operand, '/') != NULL || watch->files[index].is_page) {
		return find_file(watch, index);
	}
	return find_name(watch, index);
}

bool top_watch_find(struct top_watch *watch)
{
	bool is_done = true;

	watch->pauses_left = FILL_PAUSES;
	if (watch->files == NULL) {
		watch->files = calloc((size_t)watch->operand_count + 1, sizeof(*watch->files));
		is_done = watch->files != NULL;
	}
	for (int i = 0; i < watch->operand_count && is_done; i++) {
		is_done = find_operand(watch, i);
	}
	if (watch->operand_count == 0 && is_done) {
		is_done = find_everywhere(watch);
	}
	watch->is_old = true;
	return is_done;
}

/* ---- reading ---- */

void top_watch_read(struct top_watch *watch)
{
	for (size_t i = watch->count; i-- > 0;) {
		last_line[0] = '\0';
		if (!top_page_read(&watch->pages[i])) {
			report_trouble(watch, -EPROTO);
			let_go(watch, i);
		}
	}
}

void top_watch_drop_ended(struct top_watch *watch)
{
	for (size_t i = watch->count; i-- > 0;) {
		if (watch->pages[i].state != TOP_ALIVE) {
			let_go(watch, i);
		}
	}
}

static bool stays(const struct top_page *page)
{
	return page->state == TOP_ALIVE || (page->path != NULL && !page->is_replaced);
}

/* The page that has ended first, or the count: there is none. */
static size_t first_ended(const struct top_watch *watch, size_t *out_count)
{
	size_t first = watch->count;

	*out_count = 0;
	for (size_t i = 0; i < watch->count; i++) {
		if (stays(&watch->pages[i])) {
			continue;
		}
		(*out_count)++;
		if (first == watch->count ||
			watch->pages[i].gone_ns < watch->pages[first].gone_ns) {
			first = i;
		}
	}
	return first;
}

void top_watch_drop_old(struct top_watch *watch)
{
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	for (;;) {
		size_t count;
		size_t first = first_ended(watch, &count);

		if (count == 0 ||
			(count <= ENDED_MAX && now_ns - watch->pages[first].gone_ns < ENDED_NS)) {
			return;
		}
		let_go(watch, first);
	}
}

void top_watch_fini(struct top_watch *watch)
{
	while (watch->count > 0) {
		let_go(watch, watch->count - 1);
	}
	free(watch->pages);
	free(watch->refused.processes);
	free(watch->crowded.processes);
	free(watch->files);
}
