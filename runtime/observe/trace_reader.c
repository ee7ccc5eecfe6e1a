/* SPDX-License-Identifier: MIT */
/*
 * Takes the events of a runtime, of this process or another, out of its rings.
 *
 * A watching thread calls it; nothing of the watched process is called, and
 * nothing written that it sees. The page of another process is read by pread(2)
 * into memory of the reader's, never mapped: a file that is cut meanwhile is an
 * error then, and no signal.
 *
 * Invariant: every place and size in a page is checked against its length
 * before it is used, in numbers that cannot wrap; the writer may be hostile, or
 * of another version. So the work for a page is bounded, too: by the number of
 * rings, and by the events that a read copies, whatever the heads say.
 */
#include "runtime/observe/trace_reader.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/process.h"
#include "runtime/host/thread_state.h"
#include "runtime/queue/idle_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	/* One for each worker, and one. */
	RINGS_MAX = PIN_IDLE_WORKERS_MAX + 1,
	/* Events that a trace takes in, 40 bytes each. */
	TAKEN_MAX = 1 << 22,
	/* Descriptors that are called so; others are not opened. */
	PAGES_MAX = 128,
	TAKEN_STEP = 4096,
	PATH_BYTES = 64,
};

/* ---- messages ---- */

static int refuse(const struct pinion_trace *trace, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(const struct pinion_trace *trace, int error, const char *format, ...)
{
	char reason[256];
	va_list arguments;

	PIN_DCHECK(error < 0);
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	pin_log(&trace->log, PINION_LOG_ERROR, "trace of %s: %s", trace->name, reason);
	return error;
}

/* ---- reading ---- */

static bool read_bytes(const struct pinion_trace *trace, uint64_t at, void *out, size_t bytes)
{
	size_t done = 0;

	PIN_DCHECK(at <= (uint64_t)INT64_MAX - bytes); /* an off_t, after the checks */
	while (done < bytes) {
		ssize_t got =
			pread(trace->fd, (char *)out + done, bytes - done, (off_t)(at + done));

		if (got == 0 || (got < 0 && errno != EINTR)) {
			return false;
		}
		done += got > 0 ? (size_t)got : 0;
	}
	return true;
}

/* A child does not have their memory. */
bool pin_trace_is_foreign(const struct pinion_trace *trace)
{
	return trace->words != NULL && trace->forked != pin_forked_now();
}

/* The source of a cursor. */
static bool fetch(const void *source, size_t first, size_t count, uint64_t *out_words)
{
	const struct pinion_trace *trace = source;

	if (trace->words != NULL) {
		return pin_seqlock_fetch(trace->words, first, count, out_words);
	}
	return read_bytes(
		trace, (uint64_t)first * sizeof(uint64_t), out_words, count * sizeof(uint64_t));
}

/* ---- opening ---- */

#define UNFILLED "its process has not filled it yet: try again"

static int check_header(const struct pinion_trace *trace, uint64_t file_bytes)
{
	const struct pin_trace_header *header = &trace->header;
	uint64_t all = header->word_count;

	/* Relaxed: copies of the reader's own. */
	if (pin_load_relaxed_u64(&header->magic) == 0) {
		return refuse(trace, -EAGAIN, UNFILLED);
	}
	if (pin_load_relaxed_u64(&header->magic) != PIN_TRACE_MAGIC) {
		return refuse(trace, -EPROTO, "it is no trace, or of another byte order");
	}
	if (header->version != PIN_TRACE_VERSION) {
		return refuse(trace, -EPROTONOSUPPORT,
			"its format has version %u, this program reads %d: use libpinion %.15s",
			header->version, PIN_TRACE_VERSION, header->owner.library);
	}
	if (header->event_bytes != sizeof(struct pin_trace_event) || header->ring_count < 2 ||
		header->ring_count > RINGS_MAX || header->slots < PIN_TRACE_EVENTS_MIN ||
		header->slots > PIN_TRACE_EVENTS_MAX || !pin_is_power_of_two(header->slots) ||
		header->ring_words < pin_trace_ring_words(header->slots) ||
		all > file_bytes / sizeof(uint64_t) || header->rings_at > all ||
		header->ring_words > (all - header->rings_at) / header->ring_count) {
		return refuse(trace, -EPROTO, "it says %u rings of %llu events, and has %llu bytes",
			header->ring_count, (unsigned long long)header->slots,
			(unsigned long long)file_bytes);
	}
	return 0;
}

static int make_cursors(struct pinion_trace *trace)
{
	PIN_DCHECK(trace->header.ring_count >= 2); /* of a worker, and of all other threads */
	trace->taken_max = TAKEN_MAX;
	trace->cursors = calloc(trace->header.ring_count, sizeof(*trace->cursors));
	if (trace->cursors == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < trace->header.ring_count; i++) {
		trace->cursors[i].at =
			(size_t)(trace->header.rings_at + i * trace->header.ring_words);
		trace->cursors[i].slots = trace->header.slots;
	}
	return 0;
}

static int take_file(struct pinion_trace *trace)
{
	struct stat status;
	int rc;

	if (fstat(trace->fd, &status) != 0) {
		return refuse(trace, -errno, "fstat: %s", strerror(errno));
	}
	if (S_ISREG(status.st_mode) && status.st_size == 0) {
		return refuse(trace, -EAGAIN, UNFILLED);
	}
	if (!S_ISREG(status.st_mode) ||
		!read_bytes(trace, 0, &trace->header, sizeof(trace->header))) {
		return refuse(trace, -EPROTO, "it is too short for a trace");
	}
	rc = check_header(trace, (uint64_t)status.st_size);
	return rc < 0 ? rc : make_cursors(trace);
}

int pin_trace_open_file(
	const char *path, int pid, const struct pin_log *log, struct pinion_trace **out_trace)
{
	struct pinion_trace *trace = calloc(1, sizeof(*trace));
	int rc;

	if (trace == NULL) {
		return -ENOMEM;
	}
	trace->log = *log;
	trace->pid = pid;
	snprintf(trace->name, sizeof(trace->name), "%s", path);
	trace->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	rc = trace->fd < 0 ? refuse(trace, -errno, "open: %s", strerror(errno)) : take_file(trace);
	if (rc < 0) {
		pinion_trace_close(trace);
		return rc;
	}
	*out_trace = trace;
	return 0;
}

int pin_trace_open_words(
	const struct pin_atomic_u64 *words, int pid, struct pinion_trace **out_trace)
{
	struct pinion_trace *trace = calloc(1, sizeof(*trace));
	int rc;

	if (trace == NULL) {
		return -ENOMEM;
	}
	trace->words = words;
	trace->forked = pin_forked_now();
	trace->fd = -1;
	trace->pid = pid;
	snprintf(trace->name, sizeof(trace->name), "this process");
	memcpy(&trace->header, words, sizeof(trace->header));
	rc = make_cursors(trace);
	if (rc < 0) {
		pinion_trace_close(trace);
		return rc;
	}
	*out_trace = trace;
	return 0;
}

static bool is_page_link(const char *path)
{
	static const char wanted[] = "/memfd:" PIN_TRACE_PAGE_NAME " (deleted)";
	char target[PATH_BYTES];
	ssize_t length = readlink(path, target, sizeof(target));

	return length == (ssize_t)strlen(wanted) && memcmp(target, wanted, strlen(wanted)) == 0;
}

/* A child has its parent's descriptors until it execs. */
static bool is_its_own(const struct pinion_trace *trace, int pid)
{
	uint64_t start = pin_process_start(pid);

	return trace->header.owner.process_start == 0 || start == 0 ||
		trace->header.owner.process_start == start;
}

/* ---- a process's ---- */

struct search {
	int pid;
	int thread;	 /* of that process, which has its descriptors */
	uint32_t index;	 /* of those that are left, the wanted one */
	uint32_t opened; /* descriptors with the name of a page */
	struct {
		dev_t device;
		ino_t inode;
	} seen[PAGES_MAX];
	uint32_t seen_count;
	int refusal; /* of the first that was refused, or 0 */
	char refused[PATH_BYTES];
};

/* Not by another descriptor before. */
static bool is_new(struct search *search, const struct pinion_trace *trace)
{
	struct stat status;

	if (fstat(trace->fd, &status) != 0) {
		return false;
	}
	for (uint32_t i = 0; i < search->seen_count; i++) {
		if (search->seen[i].device == status.st_dev &&
			search->seen[i].inode == status.st_ino) {
			return false;
		}
	}
	PIN_CHECK(search->seen_count < PAGES_MAX); /* `opened` is */
	search->seen[search->seen_count].device = status.st_dev;
	search->seen[search->seen_count].inode = status.st_ino;
	search->seen_count++;
	return true;
}

/* -ENOENT: it is not the wanted one, or is refused. */
static int try_page(struct search *search, const char *path, struct pinion_trace **out_trace)
{
	static const struct pin_log silent = {.fn = NULL};
	struct pinion_trace *trace = NULL;
	int rc = pin_trace_open_file(path, search->pid, &silent, &trace);

	if (rc == -ENOMEM) {
		return rc;
	}
	if (rc < 0) {
		/* It may have been closed meanwhile. */
		if (search->refusal == 0 && rc != -ENOENT) {
			search->refusal = rc;
			snprintf(search->refused, sizeof(search->refused), "%s", path);
		}
		return -ENOENT;
	}
	if (is_its_own(trace, search->pid) && is_new(search, trace) && search->index-- == 0) {
		*out_trace = trace;
		return 0;
	}
	pinion_trace_close(trace);
	return -ENOENT;
}

/* /proc lists descriptors in their order. */
static int find_page(struct search *search, struct pinion_trace **out_trace)
{
	const struct dirent *entry;
	char path[PATH_BYTES];
	int rc = -ENOENT;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", search->thread);
	folder = opendir(path);
	if (folder == NULL) {
		return errno == ENOENT ? -ESRCH : -errno;
	}
	while (rc == -ENOENT && search->opened < PAGES_MAX && (entry = readdir(folder)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", search->thread, entry->d_name);
		if (is_page_link(path)) {
			search->opened++;
			rc = try_page(search, path, out_trace);
		}
	}
	closedir(folder);
	return rc;
}

/* The process has no other page, so the line names the defect of this one. */
static int say_refused(const struct search *search, const struct pin_log *log)
{
	struct pinion_trace *trace = NULL;

	PIN_DCHECK(search->refusal < 0 && search->refused[0] != '\0');
	if (pin_trace_open_file(search->refused, search->pid, log, &trace) == 0) {
		/* It has been filled meanwhile. */
		pinion_trace_close(trace);
		return -EAGAIN;
	}
	return search->refusal;
}

static void say_not_found(const struct pin_log *log, int pid, int error)
{
	if (error == -ENOENT) {
		pin_log(log, PINION_LOG_ERROR,
			"process %d has no trace: start it with PINION_TRACE_EVENTS=65536, if it "
			"reads its configuration from the environment, or with `trace_events` in "
			"its tuning",
			pid);
	} else {
		pin_log(log, PINION_LOG_ERROR, "trace of process %d: %s", pid,
			error == -ESRCH ? "there is no such process" : strerror(-error));
	}
}

int pinion_trace_open_pid(int pid, uint32_t index, pinion_log_fn log_fn, void *log_arg,
	struct pinion_trace **out_trace)
{
	const struct pin_log log = {.fn = log_fn, .arg = log_arg};
	struct search search = {.pid = pid, .thread = pin_process_thread(pid), .index = index};
	struct pinion_trace *trace = NULL;
	int rc = find_page(&search, &trace);

	if (rc == -ENOENT && search.refusal != 0) {
		return say_refused(&search, &log);
	}
	if (rc < 0) {
		if (rc != -ENOENT || index == 0) {
			say_not_found(&log, pid, rc);
		}
		return rc;
	}
	PIN_DCHECK(trace != NULL && trace->symbols == NULL);
	trace->log = log;
	/* Now: it may have ended when the names are wanted. */
	(void)pin_symbols_open(pid, &trace->symbols);
	*out_trace = trace;
	return 0;
}

void pinion_trace_close(struct pinion_trace *trace)
{
	if (trace == NULL) {
		return;
	}
	if (trace->fd >= 0) {
		close(trace->fd);
	}
	pin_symbols_close(trace->symbols);
	free(trace->cursors);
	free(trace->taken);
	free(trace->copied);
	free(trace);
}

/* ---- taking ---- */

int pinion_trace_skip(struct pinion_trace *trace)
{
	if (pin_trace_is_foreign(trace)) {
		return -ECHILD;
	}
	for (uint32_t i = 0; i < trace->header.ring_count; i++) {
		if (!pin_trace_cursor_skip(&trace->cursors[i], fetch, trace)) {
			return refuse(trace, -EPROTO, "it was cut short meanwhile");
		}
	}
	return 0;
}

/* Room for `count` more; false: there is no memory for them. */
static bool make_room(struct pinion_trace *trace, size_t count)
{
	size_t room = trace->taken_room;
	struct pin_trace_taken *grown;

	if (trace->taken_count + count <= room) {
		return true;
	}
	while (trace->taken_count + count > room) {
		room = room < TAKEN_STEP ? TAKEN_STEP : 2 * room;
	}
	grown = realloc(trace->taken, room * sizeof(*grown));
	if (grown == NULL) {
		return false;
	}
	trace->taken = grown;
	trace->taken_room = room;
	PIN_DCHECK(trace->taken_count + count <= room);
	return true;
}

/* The events of one ring; those beyond the limit are lost. */
static int keep(struct pinion_trace *trace, uint32_t ring, size_t count)
{
	size_t left = trace->taken_max - trace->taken_count;
	size_t kept = count < left ? count : left;

	PIN_DCHECK(trace->taken_count <= trace->taken_max);
	PIN_DCHECK(count <= trace->copied_room && ring < trace->header.ring_count);
	trace->lost_beyond += count - kept;
	if (!make_room(trace, kept)) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < kept; i++) {
		trace->taken[trace->taken_count++] =
			(struct pin_trace_taken){.event = trace->copied[i], .ring = ring};
	}
	return 0;
}

static int refuse_damaged(const struct pinion_trace *trace)
{
	return refuse(trace, -EPROTO, "it was cut short or damaged meanwhile");
}

/* There is no room for any: it counts them as lost. */
static int pass_ring(struct pinion_trace *trace, struct pin_trace_cursor *cursor)
{
	uint64_t before = cursor->next;

	if (!pin_trace_cursor_skip(cursor, fetch, trace) || cursor->next < before) {
		return refuse_damaged(trace);
	}
	trace->lost_beyond += cursor->next - before;
	return 0;
}

/* Copies at most `*left` events, whatever the head says, and subtracts them. */
static int read_ring(struct pinion_trace *trace, uint32_t ring, size_t *left)
{
	struct pin_trace_cursor *cursor = &trace->cursors[ring];
	size_t limit = trace->copied_room < *left ? trace->copied_room : *left;
	uint64_t before = cursor->next;
	size_t count;

	if (limit == 0 || trace->taken_count == trace->taken_max) {
		return pass_ring(trace, cursor);
	}
	if (!pin_trace_cursor_take(cursor, fetch, trace, trace->copied, limit, &count)) {
		return refuse_damaged(trace);
	}
	PIN_DCHECK(cursor->next >= before);
	*left -= (size_t)pin_min_u64(cursor->next - before, limit);
	return keep(trace, ring, count);
}

static bool has_ended(const struct pinion_trace *trace)
{
	uint64_t state;

	return pin_trace_is_foreign(trace) ||
		!fetch(trace, offsetof(struct pin_trace_header, owner.state) / sizeof(uint64_t), 1,
			&state) ||
		state == PIN_PAGE_ENDED;
}

/* The clock of events, which all processes share. */
static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int pinion_trace_read(struct pinion_trace *trace)
{
	size_t left = trace->taken_max;

	if (pin_trace_is_foreign(trace)) {
		return -ECHILD;
	}
	trace->read_ns = has_ended(trace) ? 0 : clock_ns();
	if (trace->copied == NULL) {
		trace->copied_room = (size_t)trace->header.slots;
		trace->copied = calloc(trace->copied_room, sizeof(*trace->copied));
		if (trace->copied == NULL) {
			return -ENOMEM;
		}
	}
	for (uint32_t i = 0; i < trace->header.ring_count; i++) {
		int rc = read_ring(trace, i, &left);

		if (rc < 0) {
			return rc;
		}
	}
	return 0;
}

void pinion_trace_get_info(
	const struct pinion_trace *trace, struct pinion_trace_info *out_info, size_t size)
{
	struct pinion_trace_info info = {
		.event_count = trace->taken_count,
		.lost_count = trace->lost_beyond,
		.ring_events = trace->header.slots,
		.worker_count = trace->header.ring_count - 1,
		.has_ended = has_ended(trace),
		.pid = trace->header.owner.pid,
		.created_ns = trace->header.owner.created_ns,
	};

	memcpy(info.program, trace->header.owner.program, sizeof(info.program) - 1);
	for (uint32_t i = 0; i < trace->header.ring_count; i++) {
		info.lost_count += trace->cursors[i].lost;
	}
	pin_sized_give(out_info, size, &info, sizeof(info));
}
