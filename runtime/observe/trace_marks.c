/* SPDX-License-Identifier: MIT */
/*
 * Goes through the events of all rings in the order of time, and pairs them.
 *
 * The writer of a trace calls it, once. trace_marks.h has the marks.
 *
 * Invariant: each kind of event makes a known number of marks at most, so the
 * room for all of them is known before the first, whatever a page says. No
 * event is gone through twice, and addresses are hashed with a number that the
 * page's writer does not know: it cannot choose them so that they collide.
 */
#include "runtime/observe/trace_marks.h"
#include "runtime/base/check.h"
#include "runtime/io/operation.h"
#include "runtime/observe/trace_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { NONE = PIN_MARK_NO_EVENT };

/* Keys of descriptors in the table. */
#define DESCRIPTORS (UINT64_C(1) << 63)

/*
 * The most that an event of each kind is the reason of: a begin of its slice,
 * of a spawn with its arrow, and of a request's arrow.
 */
static const uint8_t marks_of[PIN_TRACE_KINDS] = {
	[PIN_TRACE_TASK_BEGIN] = 6,
	[PIN_TRACE_TASK_CANCEL] = 6,
	[PIN_TRACE_PANIC] = 1,
	[PIN_TRACE_TIMER] = 1,
	[PIN_TRACE_STEAL] = 4,
	[PIN_TRACE_PARK] = 1,
	[PIN_TRACE_UNPARK] = 3,
	[PIN_TRACE_WAKE] = 1,
	[PIN_TRACE_DONE] = 1,
	[PIN_TRACE_SUBMIT] = 3,
	[PIN_TRACE_STALL] = 1,
	[PIN_TRACE_FILE] = 1,
};

/* A task or request by its address, with the events that wait for others. */
struct entry {
	uint64_t address; /* 0: free */
	uint32_t spawn;	  /* event, or NONE */
	uint32_t submit;
	uint32_t timer;
	uint32_t path; /* of a request that opens, or of a descriptor */
	uint64_t request_id;
	bool is_over; /* the request was completed, and its task is to come */
};

/* The slices of a track that have begun. */
struct track {
	uint32_t task; /* event, or NONE */
	uint32_t park;
	uint32_t wake; /* the last of it, or NONE */
	uint32_t open; /* the submission whose path comes next, or NONE */
	size_t file;   /* the mark of a file whose path comes next; 0: none, else less one */
	uint32_t path; /* the last event, if it is a part of a path; or NONE */
};

struct maker {
	struct pin_marks *marks;
	uint32_t track_count;
	struct track *tracks;
	struct entry *entries;
	size_t entry_mask;
	uint64_t secret; /* of the hash */
	uint64_t next_id;
	size_t mark_room;
};

/* ---- the table ---- */

/* The kernel gives each program 16 random bytes as it starts. */
static uint64_t make_secret(void)
{
	const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
	uint64_t secret = 0;

	if (random != NULL) {
		memcpy(&secret, random, sizeof(secret));
	}
	return secret;
}

/* Source of the mixing: splitmix64, Steele, Lea and Flood, 2014. */
static size_t hash(const struct maker *maker, uint64_t address)
{
	uint64_t mixed = address ^ maker->secret;

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	return (size_t)(mixed ^ mixed >> 31);
}

static struct entry *entry_of(const struct maker *maker, uint64_t address)
{
	size_t place = hash(maker, address);

	for (;; place++) {
		struct entry *entry = &maker->entries[place & maker->entry_mask];

		if (entry->address == 0) {
			*entry = (struct entry){.address = address,
				.spawn = NONE,
				.submit = NONE,
				.timer = NONE,
				.path = NONE};
		}
		if (entry->address == address) {
			return entry;
		}
	}
}

/* ---- marks ---- */

static struct pin_mark *add(struct maker *maker, enum pin_mark_shape shape, enum pin_mark_name name,
	uint32_t event, uint32_t track)
{
	struct pin_marks *marks = maker->marks;
	struct pin_mark *mark = &marks->marks[marks->mark_count++];

	PIN_CHECK(marks->mark_count <= maker->mark_room);
	*mark = (struct pin_mark){
		.time_ns = marks->events[event].event.time_ns,
		.event = event,
		.end = event,
		.path = NONE,
		.track = track,
		.shape = (uint8_t)shape,
		.name = (uint8_t)name,
	};
	return mark;
}

/* From `first` to `end`, or to the end of the trace. */
static struct pin_mark *add_slice(
	struct maker *maker, enum pin_mark_name name, uint32_t first, uint32_t end)
{
	const struct pin_marks *marks = maker->marks;
	struct pin_mark *mark = add(maker, PIN_MARK_SLICE, name, first, marks->events[first].ring);
	uint64_t end_ns = end == NONE ? marks->end_ns : marks->events[end].event.time_ns;

	PIN_DCHECK(end_ns >= mark->time_ns);
	mark->end = end;
	mark->duration_ns = end_ns - mark->time_ns;
	return mark;
}

/* Both ends of an arrow, at the times of two events. */
static void add_arrow(struct maker *maker, enum pin_mark_name name, uint32_t from,
	uint32_t from_track, uint32_t to, uint32_t to_track)
{
	struct pin_mark *mark = add(maker, PIN_MARK_ARROW_FROM, name, from, from_track);

	PIN_DCHECK(from_track < maker->track_count && to_track < maker->track_count);
	mark->id = maker->next_id;
	mark = add(maker, PIN_MARK_ARROW_TO, name, to, to_track);
	mark->id = maker->next_id++;
	/* Both have the name of the cause. */
	mark->event = from;
}

/* ---- tasks ---- */

/* Whether the event is in a slice of its track. */
static bool is_in_task(const struct maker *maker, uint32_t event)
{
	return maker->tracks[maker->marks->events[event].ring].task != NONE;
}

static void note_spawn(struct maker *maker, uint32_t number)
{
	struct entry *entry = entry_of(maker, maker->marks->events[number].event.first);

	entry->spawn = number;
	entry->timer = NONE;
}

/* An arrow to a task from its spawn, if that was elsewhere. */
static void connect_spawn(struct maker *maker, struct entry *entry, uint32_t number)
{
	const struct pin_trace_taken *events = maker->marks->events;
	uint32_t spawn = entry->spawn;

	entry->spawn = NONE;
	if (spawn != NONE && events[spawn].ring != events[number].ring) {
		(void)add_slice(maker, PIN_MARK_SPAWN, spawn, spawn);
		add_arrow(maker, PIN_MARK_SPAWN, spawn, events[spawn].ring, number,
			events[number].ring);
	}
}

/* An arrow to the task of a request from its submission. */
static void connect_request(struct maker *maker, struct entry *entry, uint32_t number)
{
	const struct pin_trace_taken *events = maker->marks->events;

	if (entry->is_over && entry->submit != NONE) {
		add_arrow(maker, PIN_MARK_IO, entry->submit, events[entry->submit].ring, number,
			events[number].ring);
	}
	if (entry->is_over) {
		/* No other end or task of it counts. */
		entry->submit = NONE;
	}
}

static void end_task(struct maker *maker, uint32_t ring, uint32_t end)
{
	struct track *track = &maker->tracks[ring];
	const struct pin_trace_event *begin;
	struct entry *entry;
	struct pin_mark *slice;

	PIN_DCHECK(ring < maker->track_count);
	if (track->task == NONE) {
		maker->marks->halves++;
		return;
	}
	begin = &maker->marks->events[track->task].event;
	entry = entry_of(maker, begin->first);
	slice = add_slice(maker,
		begin->kind == PIN_TRACE_TASK_CANCEL ? PIN_MARK_CANCEL : PIN_MARK_TASK, track->task,
		end);
	slice->is_timer = entry->timer == track->task;
	if (slice->is_timer) {
		entry->timer = NONE;
	}
	track->task = NONE;
}

static void begin_task(struct maker *maker, uint32_t number)
{
	uint32_t ring = maker->marks->events[number].ring;
	struct entry *entry = entry_of(maker, maker->marks->events[number].event.first);

	if (maker->tracks[ring].task != NONE) {
		/* Its end was lost: it ended before this begins. */
		end_task(maker, ring, number);
	}
	PIN_DCHECK(maker->tracks[ring].task == NONE); /* slices of a track nest */
	maker->tracks[ring].task = number;
	connect_spawn(maker, entry, number);
	connect_request(maker, entry, number);
	/* From here on `timer` is the task that it has made ready. */
	entry->timer = entry->timer != NONE ? number : NONE;
}

static void note_timer(struct maker *maker, uint32_t number)
{
	struct entry *entry = entry_of(maker, maker->marks->events[number].event.first);

	entry->spawn = NONE;
	entry->timer = number;
	(void)add(
		maker, PIN_MARK_INSTANT, PIN_MARK_TIMER, number, maker->marks->events[number].ring);
}

/* ---- requests ---- */

static void submit(struct maker *maker, uint32_t number)
{
	struct entry *entry = entry_of(maker, maker->marks->events[number].event.first);

	entry->submit = number;
	entry->path = NONE;
	entry->is_over = false;
	maker->tracks[maker->marks->events[number].ring].open = number;
	maker->tracks[maker->marks->events[number].ring].file = 0;
	entry->request_id = maker->next_id++;
	if (!is_in_task(maker, number)) {
		(void)add_slice(maker, PIN_MARK_SUBMIT, number, number);
	}
}

/* `end` NONE: it is under way when the trace ends. */
static void add_request(struct maker *maker, const struct entry *entry, uint32_t path, uint32_t end)
{
	const struct pin_trace_taken *events = maker->marks->events;
	struct pin_mark *mark;

	PIN_DCHECK(entry->submit != NONE); /* each request begins */
	mark = add(maker, PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO, entry->submit,
		events[entry->submit].ring);
	mark->id = entry->request_id;
	mark->end = end;
	mark->path = path;
	mark = add(maker, PIN_MARK_REQUEST_END, PIN_MARK_IO, end == NONE ? entry->submit : end,
		events[entry->submit].ring);
	mark->id = entry->request_id;
	mark->time_ns = end == NONE ? maker->marks->end_ns : mark->time_ns;
	mark->event = entry->submit;
	mark->end = end;
}

/* The entry of a descriptor; no task has such an address. */
static struct entry *descriptor_of(const struct maker *maker, uint64_t descriptor)
{
	return entry_of(maker, DESCRIPTORS | (uint32_t)descriptor);
}

/* A file that a task has opened by itself; its path comes next. */
static void note_opened(struct maker *maker, uint32_t number)
{
	uint32_t ring = maker->marks->events[number].ring;

	(void)add(maker, PIN_MARK_INSTANT, PIN_MARK_FILE, number, ring);
	maker->tracks[ring].file = maker->marks->mark_count;
	maker->tracks[ring].open = NONE;
}

/* A part of the path of the last open on that track: the first, or another. */
static void note_path(struct maker *maker, uint32_t number)
{
	struct pin_trace_taken *events = maker->marks->events;
	struct track *track = &maker->tracks[events[number].ring];

	if (track->open != NONE) {
		entry_of(maker, events[track->open].event.first)->path = number;
		track->open = NONE;
	} else if (track->file != 0) {
		struct pin_mark *mark = &maker->marks->marks[track->file - 1];

		PIN_DCHECK(track->file <= maker->marks->mark_count);
		mark->path = number;
		descriptor_of(maker, events[mark->event].event.second)->path = number;
		track->file = 0;
	} else if (track->path != NONE) {
		events[track->path].next = number;
	}
	track->path = number;
}

static bool opens(uint8_t operation)
{
	return operation == PINION_OP_OPEN || operation == PIN_OP_OPEN_PLAIN;
}

/*
 * The path of a completed request's file, or NONE: of its own, where it opens,
 * or that with which its descriptor was opened.
 */
static uint32_t note_file(struct maker *maker, const struct entry *entry, uint32_t number)
{
	const struct pin_trace_event *event = &maker->marks->events[number].event;
	int32_t descriptor = (int32_t)(uint32_t)event->second;
	uint32_t path = entry->path;
	struct entry *file;

	if (descriptor < 0) {
		return path;
	}
	file = descriptor_of(maker, (uint32_t)descriptor);
	if (opens(event->way)) {
		file->path = path;
	} else {
		path = file->path;
		file->path = event->way == PINION_OP_CLOSE ? NONE : path;
	}
	return path;
}

static void complete(struct maker *maker, uint32_t number)
{
	struct entry *entry = entry_of(maker, maker->marks->events[number].event.first);

	if (entry->submit == NONE || entry->is_over) {
		maker->marks->halves++;
		return;
	}
	add_request(maker, entry, note_file(maker, entry, number), number);
	entry->is_over = true;
}

/* ---- sleeps and wakes ---- */

static bool is_worker(const struct maker *maker, int32_t number)
{
	return number >= 0 && (uint32_t)number + 1 < maker->track_count;
}

static void note_wake(struct maker *maker, uint32_t number)
{
	const struct pin_trace_event *event = &maker->marks->events[number].event;

	/* Of several wakes the first ends the sleep. */
	if (is_worker(maker, event->number) && maker->tracks[event->number].park != NONE &&
		maker->tracks[event->number].wake == NONE) {
		maker->tracks[event->number].wake = number;
		(void)add_slice(maker, PIN_MARK_WAKE, number, number);
	}
}

static void park(struct maker *maker, uint32_t number)
{
	struct track *track = &maker->tracks[maker->marks->events[number].ring];

	if (track->park != NONE) {
		(void)add_slice(maker, PIN_MARK_PARKED, track->park, number);
	}
	track->park = number;
	track->wake = NONE;
}

static void unpark(struct maker *maker, uint32_t number)
{
	uint32_t ring = maker->marks->events[number].ring;
	struct track *track = &maker->tracks[ring];

	if (track->park == NONE) {
		maker->marks->halves++;
		return;
	}
	(void)add_slice(maker, PIN_MARK_PARKED, track->park, number);
	if (track->wake != NONE) {
		(void)add_slice(maker, PIN_MARK_WOKEN, number, number);
		add_arrow(maker, PIN_MARK_WAKE, track->wake, maker->marks->events[track->wake].ring,
			number, ring);
	}
	track->park = NONE;
	track->wake = NONE;
}

static void steal(struct maker *maker, uint32_t number)
{
	const struct pin_trace_taken *taken = &maker->marks->events[number];

	(void)add_slice(maker, PIN_MARK_STEAL, number, number);
	if (is_worker(maker, taken->event.number)) {
		uint32_t victim = (uint32_t)taken->event.number;

		add(maker, PIN_MARK_SLICE, PIN_MARK_ROBBED, number, victim)->end = number;
		add_arrow(maker, PIN_MARK_STEAL, number, victim, number, taken->ring);
	}
}

/* ---- all of them ---- */

static void take(struct maker *maker, uint32_t number)
{
	const struct pin_trace_taken *taken = &maker->marks->events[number];

	PIN_DCHECK(taken->ring < maker->track_count); /* its reader numbers the rings */
	if (taken->event.kind != PIN_TRACE_PATH) {
		maker->tracks[taken->ring].path = NONE;
	}
	switch (taken->event.kind) {
	case PIN_TRACE_TASK_BEGIN:
	case PIN_TRACE_TASK_CANCEL:
		begin_task(maker, number);
		break;
	case PIN_TRACE_TASK_END:
		end_task(maker, taken->ring, number);
		break;
	case PIN_TRACE_SPAWN_LOCAL:
	case PIN_TRACE_SPAWN_GLOBAL:
	case PIN_TRACE_SPAWN_EXTERNAL:
		note_spawn(maker, number);
		break;
	case PIN_TRACE_TIMER:
		note_timer(maker, number);
		break;
	case PIN_TRACE_STEAL:
		steal(maker, number);
		break;
	case PIN_TRACE_PARK:
		park(maker, number);
		break;
	case PIN_TRACE_UNPARK:
		unpark(maker, number);
		break;
	case PIN_TRACE_WAKE:
		note_wake(maker, number);
		break;
	case PIN_TRACE_SUBMIT:
		submit(maker, number);
		break;
	case PIN_TRACE_COMPLETE:
		complete(maker, number);
		break;
	case PIN_TRACE_PATH:
		note_path(maker, number);
		break;
	case PIN_TRACE_FILE:
		note_opened(maker, number);
		break;
	case PIN_TRACE_PANIC:
		(void)add(maker, PIN_MARK_INSTANT, PIN_MARK_PANIC, number, taken->ring);
		break;
	case PIN_TRACE_DONE:
		(void)add(maker, PIN_MARK_INSTANT, PIN_MARK_DONE, number, taken->ring);
		break;
	case PIN_TRACE_STALL:
		(void)add(maker, PIN_MARK_INSTANT, PIN_MARK_STALL, number,
			taken->event.way <= PIN_STALLED_RING &&
					is_worker(maker, taken->event.number)
				? (uint32_t)taken->event.number
				: taken->ring);
		break;
	default:
		/* Of a newer library. */
		break;
	}
}

/* The trace ends before these do. */
static void close_all(struct maker *maker)
{
	for (uint32_t i = 0; i < maker->track_count; i++) {
		if (maker->tracks[i].task != NONE) {
			end_task(maker, i, NONE);
		}
		if (maker->tracks[i].park != NONE) {
			(void)add_slice(maker, PIN_MARK_PARKED, maker->tracks[i].park, NONE);
		}
	}
	for (size_t i = 0; i <= maker->entry_mask; i++) {
		const struct entry *entry = &maker->entries[i];

		if (entry->address != 0 && entry->submit != NONE && !entry->is_over) {
			add_request(maker, entry, entry->path, NONE);
		}
	}
}

/* ---- making ---- */

static int by_place(const void *left, const void *right)
{
	const struct pin_mark *a = left;
	const struct pin_mark *b = right;

	if (a->time_ns != b->time_ns) {
		return a->time_ns < b->time_ns ? -1 : 1;
	}
	/* Slices first: arrows begin and end in them. The longest outside. */
	if (a->shape != b->shape) {
		return a->shape < b->shape ? -1 : 1;
	}
	if (a->duration_ns != b->duration_ns) {
		return a->duration_ns > b->duration_ns ? -1 : 1;
	}
	return a->event < b->event ? -1 : a->event > b->event;
}

static size_t table_size(size_t event_count)
{
	size_t size = 64;

	/* A completion has two: of its request and of its descriptor. */
	while (size < 4 * event_count) {
		size *= 2;
	}
	return size;
}

static size_t count_marks(const struct pinion_trace *trace)
{
	size_t count = 0;

	for (size_t i = 0; i < trace->taken_count; i++) {
		uint8_t kind = trace->taken[i].event.kind;

		count += kind < PIN_TRACE_KINDS ? marks_of[kind] : 0;
	}
	return count;
}

static int allocate(struct maker *maker, const struct pinion_trace *trace)
{
	struct pin_marks *marks = maker->marks;
	size_t count = trace->taken_count;
	struct pin_trace_taken *room = calloc(count + 1, sizeof(*room));

	marks->events = calloc(count + 1, sizeof(*marks->events));
	maker->mark_room = count_marks(trace);
	marks->marks = calloc(maker->mark_room + 1, sizeof(*marks->marks));
	maker->tracks = calloc(maker->track_count, sizeof(*maker->tracks));
	maker->entries = calloc(table_size(count), sizeof(*maker->entries));
	maker->entry_mask = table_size(count) - 1;
	if (room == NULL || marks->events == NULL || marks->marks == NULL ||
		maker->tracks == NULL || maker->entries == NULL) {
		free(room);
		return -ENOMEM;
	}
	if (count > 0) {
		memcpy(marks->events, trace->taken, count * sizeof(*marks->events));
	}
	pin_trace_sort(marks->events, room, count);
	free(room);
	marks->event_count = count;
	for (uint32_t i = 0; i < maker->track_count; i++) {
		maker->tracks[i] = (struct track){
			.task = NONE, .park = NONE, .wake = NONE, .open = NONE, .path = NONE};
	}
	return 0;
}

static void make(struct maker *maker, uint64_t read_ns)
{
	struct pin_marks *marks = maker->marks;

	marks->begin_ns = marks->event_count == 0 ? 0 : marks->events[0].event.time_ns;
	marks->end_ns =
		marks->event_count == 0 ? 0 : marks->events[marks->event_count - 1].event.time_ns;
	/* An open slice lasts until it is read, not until the last event. */
	if (marks->event_count > 0 && read_ns > marks->end_ns) {
		marks->end_ns = read_ns;
	}
	for (size_t i = 0; i < marks->event_count; i++) {
		take(maker, (uint32_t)i);
	}
	close_all(maker);
	qsort(marks->marks, marks->mark_count, sizeof(*marks->marks), by_place);
}

int pin_marks_make(const struct pinion_trace *trace, struct pin_marks *out_marks)
{
	struct maker maker = {.marks = out_marks,
		.track_count = trace->header.ring_count,
		.secret = make_secret(),
		.next_id = 1};
	int rc;

	*out_marks = (struct pin_marks){0};
	rc = allocate(&maker, trace);
	if (rc == 0) {
		make(&maker, trace->read_ns);
	} else {
		pin_marks_free(out_marks);
	}
	free(maker.tracks);
	free(maker.entries);
	return rc;
}

void pin_marks_free(struct pin_marks *marks)
{
	free(marks->events);
	free(marks->marks);
	*marks = (struct pin_marks){0};
}
