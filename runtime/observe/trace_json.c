/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace as JSON, in the trace event format that ui.perfetto.dev and
 * chrome://tracing read.
 *
 * pinion_trace_write() is its one call. pinion_trace(3) has the meaning of all
 * that it writes.
 *
 * Source: "Trace Event Format", the Chromium project; its phases X, b, e, s, f,
 * i and M.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"
#include "runtime/host/symbols.h"
#include "runtime/io/operation.h"
#include "runtime/observe/trace_marks.h"
#include "runtime/observe/trace_reader.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	ROOM_BYTES = 64 << 10,
	/* Of one call of put(). */
	PIECE_BYTES = 512,
	/* Functions whose names are kept, and places for each. */
	NAMES_MAX = 4096,
	NAME_PLACES = 32,
};

/* The name of a function of tasks. */
struct function_name {
	uint64_t address; /* 0: free */
	char text[PIN_SYMBOL_BYTES];
};

struct json {
	const struct pinion_trace *trace;
	const struct pin_marks *marks;
	struct pin_symbols *symbols; /* or NULL */
	struct function_name *names;
	int fd;
	int error; /* 0, or what the first write that failed said */
	size_t used;
	char room[ROOM_BYTES];
};

/* ---- text ---- */

static void flush(struct json *json)
{
	size_t done = 0;

	while (json->error == 0 && done < json->used) {
		ssize_t count = write(json->fd, json->room + done, json->used - done);

		if (count < 0 && errno != EINTR) {
			json->error = -errno;
		}
		done += count > 0 ? (size_t)count : 0;
	}
	json->used = 0;
}

static void put(struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct json *json, const char *format, ...)
{
	va_list arguments;
	int length;

	if (ROOM_BYTES - json->used < PIECE_BYTES) {
		flush(json);
	}
	va_start(arguments, format);
	length = vsnprintf(json->room + json->used, PIECE_BYTES, format, arguments);
	va_end(arguments);
	PIN_CHECK(length >= 0 && length < PIECE_BYTES);
	json->used += (size_t)length;
}

/* As it is; the same as put() of it, which takes ten times as long. */
static void put_bytes(struct json *json, const char *bytes, size_t length)
{
	PIN_DCHECK(length < PIECE_BYTES);
	if (ROOM_BYTES - json->used < PIECE_BYTES) {
		flush(json);
	}
	memcpy(json->room + json->used, bytes, length);
	json->used += length;
}

#define PUT(json, literal) put_bytes(json, literal, sizeof(literal) - 1)

static void put_number(struct json *json, uint64_t number)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	PIN_DCHECK(at < sizeof(digits));
	put_bytes(json, digits + at, sizeof(digits) - at);
}

/* Names may come from another process; paths are bytes, mostly UTF-8. */
static void put_text(struct json *json, const char *text)
{
	PUT(json, "\"");
	while (*text != '\0') {
		unsigned char byte = (unsigned char)*text;
		size_t length = byte < 0x7f ? 1 : pin_utf8_bytes(text);

		if (byte == '"' || byte == '\\') {
			put(json, "\\%c", byte);
		} else if (byte < ' ' || length == 0) {
			put(json, "\\u%04x", byte);
		} else {
			put_bytes(json, text, length);
		}
		text += length == 0 ? 1 : length;
	}
	PUT(json, "\"");
}

/* Microseconds since the first event. */
static void put_time(struct json *json, uint64_t time_ns)
{
	char decimals[] = {'.', (char)('0' + time_ns / 100 % 10), (char)('0' + time_ns / 10 % 10),
		(char)('0' + time_ns % 10)};

	put_number(json, time_ns / 1000);
	put_bytes(json, decimals, sizeof(decimals));
}

/* ---- names ---- */

static const char *name_of(struct json *json, uint64_t address)
{
	size_t place = (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 48);

	for (size_t i = 0; i < NAME_PLACES; i++) {
		struct function_name *name = &json->names[(place + i) % NAMES_MAX];

		if (name->address == 0) {
			name->address = address;
			pin_symbols_name(json->symbols, address, name->text);
		}
		if (name->address == address) {
			return name->text;
		}
	}
	return "a function";
}

/* In small letters: of operations that the library has for itself, too. */
static void put_operation(struct json *json, uint8_t operation)
{
#define OPERATION_NAME(set, name, ...) #name,
	static const char *const names[] = {PIN_OPERATIONS(OPERATION_NAME, 0)};
#undef OPERATION_NAME
	const char *name = operation < PIN_ARRAY_COUNT(names) ? names[operation] : "operation";

	PUT(json, "\"");
	for (; *name != '\0'; name++) {
		char letter = (char)tolower((unsigned char)*name);

		put_bytes(json, &letter, 1);
	}
	PUT(json, "\"");
}

static const char *source_name(const struct pin_mark *mark, uint8_t source)
{
	static const char *const names[PIN_SOURCES] = {
		[PIN_SOURCE_SLOT] = "slot",
		[PIN_SOURCE_LOCAL] = "local",
		[PIN_SOURCE_COMPLETION] = "completion",
		[PIN_SOURCE_INBOX] = "inbox",
		[PIN_SOURCE_INJECTOR] = "injector",
		[PIN_SOURCE_STEAL] = "steal",
		[PIN_SOURCE_LANE] = "lane",
	};

	if (mark->is_timer) {
		return "timer";
	}
	return source < PIN_SOURCES ? names[source] : "another";
}

static const char *lane_name(int32_t lane)
{
	static const char *const names[] = {"high", "normal", "low"};

	return names[lane >= 0 && lane < 3 ? lane : 1];
}

/* ---- marks ---- */

static const char *plain_name(const struct pin_mark *mark)
{
	static const char *const names[PIN_MARK_NAMES] = {
		[PIN_MARK_PARKED] = "parked",
		[PIN_MARK_WAKE] = "wake",
		[PIN_MARK_WOKEN] = "woken",
		[PIN_MARK_STEAL] = "steal",
		[PIN_MARK_ROBBED] = "robbed",
		[PIN_MARK_SPAWN] = "spawn",
		[PIN_MARK_SUBMIT] = "submit",
		[PIN_MARK_PANIC] = "panic",
		[PIN_MARK_TIMER] = "timer",
		[PIN_MARK_STALL] = "stall",
		[PIN_MARK_DONE] = "done",
		[PIN_MARK_FILE] = "file",
	};

	PIN_DCHECK(mark->name < PIN_MARK_NAMES && names[mark->name] != NULL);
	return names[mark->name];
}

static const char *category_of(const struct pin_mark *mark)
{
	switch (mark->name) {
	case PIN_MARK_TASK:
	case PIN_MARK_CANCEL:
	case PIN_MARK_PANIC:
		return "task";
	case PIN_MARK_PARKED:
	case PIN_MARK_WAKE:
	case PIN_MARK_WOKEN:
		return "sleep";
	case PIN_MARK_IO:
	case PIN_MARK_SUBMIT:
	case PIN_MARK_FILE:
		return "io";
	default:
		return "schedule";
	}
}

static void put_name(struct json *json, const struct pin_mark *mark)
{
	const struct pin_trace_event *event = &json->marks->events[mark->event].event;

	switch (mark->name) {
	case PIN_MARK_TASK:
	case PIN_MARK_CANCEL:
		put_text(json, name_of(json, event->second));
		break;
	case PIN_MARK_IO:
		put_operation(json, event->way);
		break;
	default:
		put_text(json, plain_name(mark));
		break;
	}
}

static void put_task_arguments(
	struct json *json, const struct pin_mark *mark, const struct pin_trace_event *event)
{
	const struct pin_trace_taken *events = json->marks->events;

	put(json, "\"task\":\"0x%" PRIx64 "\"", event->first);
	if (mark->name == PIN_MARK_TASK) {
		put(json, ",\"source\":\"%s\"", source_name(mark, event->way));
		if (event->number >= 0) {
			put(json, ",\"lane\":\"%s\"", lane_name(event->number));
		}
	} else {
		put(json, ",\"cancelled\":true");
	}
	if (mark->end != PIN_MARK_NO_EVENT && events[mark->end].event.kind == PIN_TRACE_TASK_END) {
		put(json, ",\"result\":%" PRId32, events[mark->end].event.number);
	} else {
		put(json, ",\"unfinished\":true");
	}
}

static void put_path(struct json *json, uint32_t number)
{
	char path[PIN_TRACE_PATH_PARTS * PIN_TRACE_TEXT + 1];
	size_t length = 0;

	for (uint32_t i = 0; i < PIN_TRACE_PATH_PARTS && (i == 0 || number != 0); i++) {
		struct pin_trace_taken *part = &json->marks->events[number];
		size_t bytes = pin_min_u64(part->event.way, PIN_TRACE_TEXT);

		PIN_DCHECK(length + bytes < sizeof(path));
		memcpy(path + length, pin_trace_event_text(&part->event), bytes);
		length += bytes;
		number = part->next;
	}
	path[length] = '\0';
	PUT(json, "\"file\":");
	put_text(json, path);
}

static void put_request_arguments(
	struct json *json, const struct pin_mark *mark, const struct pin_trace_event *event)
{
	const struct pin_trace_event *end;

	if (mark->path != PIN_MARK_NO_EVENT) {
		put_path(json, mark->path);
		PUT(json, ",");
	}
	if (mark->shape == PIN_MARK_REQUEST_BEGIN) {
		put(json, "\"offset\":%" PRIu64 ",\"bytes\":%" PRIu32, event->second,
			(uint32_t)event->number);
		return;
	}
	if (mark->end == PIN_MARK_NO_EVENT) {
		put(json, "\"unfinished\":true");
		return;
	}
	end = &json->marks->events[mark->end].event;
	put(json, "\"result\":%" PRId32 ",\"fd\":%" PRId32, end->number,
		(int32_t)(uint32_t)end->second);
}

static void put_spawn_arguments(struct json *json, const struct pin_trace_event *event)
{
	static const char *const to[] = {"local", "global", "external"};

	PIN_DCHECK(event->kind >= PIN_TRACE_SPAWN_LOCAL && event->kind <= PIN_TRACE_SPAWN_EXTERNAL);
	put(json, "\"way\":\"%s\",\"task\":\"0x%" PRIx64 "\",\"function\":",
		to[event->kind - PIN_TRACE_SPAWN_LOCAL], event->first);
	put_text(json, name_of(json, event->second));
}

static void put_stall_arguments(struct json *json, const struct pin_trace_event *event)
{
	put(json, "\"lasts_ns\":%" PRIu64, event->first);
	switch (event->way) {
	case PIN_STALLED_TASK:
	case PIN_STALLED_RING:
		put(json, ",\"of\":\"%s\",\"worker\":%" PRId32 ",\"function\":",
			event->way == PIN_STALLED_TASK ? "task" : "ring", event->number);
		put_text(json, name_of(json, event->second));
		break;
	case PIN_STALLED_DEVICE:
		put(json, ",\"of\":\"device\",\"device\":\"%u:%u\"", major(event->second),
			minor(event->second));
		break;
	default:
		put(json, ",\"of\":\"lane\",\"lane\":\"%s\"", lane_name(event->number));
		break;
	}
}

static void put_arguments(struct json *json, const struct pin_mark *mark)
{
	const struct pin_trace_event *event = &json->marks->events[mark->event].event;

	switch (mark->name) {
	case PIN_MARK_TASK:
	case PIN_MARK_CANCEL:
		put_task_arguments(json, mark, event);
		break;
	case PIN_MARK_IO:
		put_request_arguments(json, mark, event);
		break;
	case PIN_MARK_SPAWN:
		put_spawn_arguments(json, event);
		break;
	case PIN_MARK_PARKED:
		put(json, "\"way\":\"%s\"", event->way == 2 ? "ring" : "futex");
		break;
	case PIN_MARK_WAKE:
		put(json, "\"worker\":%" PRId32, event->number);
		break;
	case PIN_MARK_STEAL:
		put(json, "\"victim\":%" PRId32 ",\"tasks\":%" PRIu64, event->number, event->first);
		break;
	case PIN_MARK_ROBBED:
		put(json, "\"tasks\":%" PRIu64, event->first);
		break;
	case PIN_MARK_PANIC:
		put(json, "\"error\":%" PRId32 ",\"function\":", event->number);
		put_text(json, name_of(json, event->second));
		break;
	case PIN_MARK_TIMER:
		put(json, "\"late_ns\":%" PRIu64, event->second);
		break;
	case PIN_MARK_STALL:
		put_stall_arguments(json, event);
		break;
	case PIN_MARK_FILE:
		if (mark->path != PIN_MARK_NO_EVENT) {
			put_path(json, mark->path);
		}
		break;
	default:
		break;
	}
}

static void put_mark(struct json *json, const struct pin_mark *mark)
{
	static const char phases[] = {
		[PIN_MARK_SLICE] = 'X',
		[PIN_MARK_REQUEST_BEGIN] = 'b',
		[PIN_MARK_REQUEST_END] = 'e',
		[PIN_MARK_ARROW_FROM] = 's',
		[PIN_MARK_ARROW_TO] = 'f',
		[PIN_MARK_INSTANT] = 'i',
	};
	bool is_of_all;

	PUT(json, ",\n{\"ph\":\"");
	put_bytes(json, &phases[mark->shape], 1);
	PUT(json, "\",\"pid\":");
	put_number(json, (uint64_t)json->trace->pid);
	PUT(json, ",\"tid\":");
	put_number(json, mark->track + 1);
	PUT(json, ",\"ts\":");
	put_time(json, mark->time_ns - json->marks->begin_ns);
	PUT(json, ",\"cat\":");
	put_text(json, category_of(mark));
	PUT(json, ",\"name\":");
	put_name(json, mark);
	switch ((enum pin_mark_shape)mark->shape) {
	case PIN_MARK_SLICE:
		PUT(json, ",\"dur\":");
		put_time(json, mark->duration_ns);
		break;
	case PIN_MARK_REQUEST_BEGIN:
	case PIN_MARK_REQUEST_END:
	case PIN_MARK_ARROW_FROM:
		PUT(json, ",\"id\":");
		put_number(json, mark->id);
		break;
	case PIN_MARK_ARROW_TO:
		PUT(json, ",\"bp\":\"e\",\"id\":");
		put_number(json, mark->id);
		break;
	case PIN_MARK_INSTANT:
		is_of_all = mark->name == PIN_MARK_DONE ||
			mark->track + 1 == json->trace->header.ring_count;
		put(json, ",\"s\":\"%s\"", is_of_all ? "p" : "t");
		break;
	}
	if (mark->shape != PIN_MARK_ARROW_FROM && mark->shape != PIN_MARK_ARROW_TO) {
		PUT(json, ",\"args\":{");
		put_arguments(json, mark);
		PUT(json, "}");
	}
	PUT(json, "}");
}

/* ---- the whole ---- */

static void put_metadata(struct json *json, const struct pinion_trace_info *info)
{
	int pid = json->trace->pid;

	put(json, "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":", pid);
	put_text(json, info->program);
	put(json, "}}");
	for (uint32_t i = 0; i <= info->worker_count; i++) {
		put(json,
			",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu32
			",\"name\":\"thread_name\",\"args\":{\"name\":",
			pid, i + 1);
		if (i == info->worker_count) {
			put(json, "\"other threads\"}}");
		} else {
			put(json, "\"worker %" PRIu32 "\"}}", i);
		}
		put(json,
			",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu32
			",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}",
			pid, i + 1, i + 1);
	}
}

static void put_all(struct json *json)
{
	struct pinion_trace_info info;
	char library[sizeof(json->trace->header.owner.library) + 1];

	/* The page of another process may have no end of it. */
	snprintf(library, sizeof(library), "%.16s", json->trace->header.owner.library);
	pinion_trace_get_info(json->trace, &info, sizeof(info));
	put(json, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"library\":");
	put_text(json, library);
	put(json,
		",\"start_ns\":%" PRIu64 ",\"events\":%" PRIu64 ",\"lost_events\":%" PRIu64
		",\"halves\":%" PRIu64 ",\"ring_events\":%" PRIu64 "},\n\"traceEvents\":[\n",
		json->marks->begin_ns, info.event_count, info.lost_count, json->marks->halves,
		info.ring_events);
	put_metadata(json, &info);
	for (size_t i = 0; i < json->marks->mark_count && json->error == 0; i++) {
		put_mark(json, &json->marks->marks[i]);
	}
	put(json, "\n]}\n");
	flush(json);
}

int pinion_trace_write(struct pinion_trace *trace, int fd)
{
	struct pin_symbols *newer;
	struct pin_marks marks;
	struct json *json;
	int rc;

	if (pin_trace_is_foreign(trace)) {
		return -ECHILD;
	}
	json = calloc(1, sizeof(*json));
	rc = json == NULL ? -ENOMEM : pin_marks_make(trace, &marks);
	if (rc < 0) {
		free(json);
		return rc;
	}
	json->trace = trace;
	json->marks = &marks;
	json->fd = fd;
	json->names = calloc(NAMES_MAX, sizeof(*json->names));
	/* Libraries may have come since. */
	if (pin_symbols_open(trace->pid, &newer) == 0) {
		pin_symbols_close(trace->symbols);
		trace->symbols = newer;
	}
	json->symbols = trace->symbols;
	if (json->names == NULL) {
		rc = -ENOMEM;
	} else {
		put_all(json);
		rc = json->error;
	}
	free(json->names);
	free(json);
	pin_marks_free(&marks);
	return rc;
}
