/* SPDX-License-Identifier: MIT */
/*
 * Goal: from the events of all rings come the marks of the picture: slices of
 * tasks and sleeps with the right ends, requests with their paths, arrows from
 * cause to effect and none twice; slices without an end last until the trace
 * ends, ends without a begin are counted, unknown events are passed by. EX-37.
 * Method: traces of a few events, made by hand.
 */
#include "runtime/io/operation.h"
#include "runtime/observe/trace_marks.h"
#include "runtime/observe/trace_order.h"
#include "tests/support/expect.h"

#include <stdlib.h>
#include <string.h>

enum { RINGS = 3, EVENTS_MAX = 32, READ_NS = 1000 };

static struct pinion_trace trace;
static struct pin_trace_taken taken[EVENTS_MAX];
static struct pin_marks marks;

static void begin(void)
{
	trace = (struct pinion_trace){
		.taken = taken, .header.ring_count = RINGS, .read_ns = READ_NS};
}

/* At the next time, unless that is given. */
static struct pin_trace_event *add_at(
	uint64_t time_ns, uint32_t ring, int kind, uint64_t first, uint64_t second)
{
	struct pin_trace_taken *event = &taken[trace.taken_count++];

	*event = (struct pin_trace_taken){.ring = ring,
		.event = {.time_ns = time_ns,
			.kind = (uint8_t)kind,
			.first = first,
			.second = second}};
	return &event->event;
}

static struct pin_trace_event *add(uint32_t ring, int kind, uint64_t first, uint64_t second)
{
	return add_at(10 * trace.taken_count + 10, ring, kind, first, second);
}

static void make(void)
{
	expect_ready("marks", pin_marks_make(&trace, &marks) == 0);
}

static uint32_t count(enum pin_mark_shape shape, enum pin_mark_name name)
{
	uint32_t found = 0;

	for (size_t i = 0; i < marks.mark_count; i++) {
		found += marks.marks[i].shape == shape && marks.marks[i].name == name;
	}
	return found;
}

/* The nth of that kind. */
static const struct pin_mark *find(
	enum pin_mark_shape shape, enum pin_mark_name name, uint32_t index)
{
	for (size_t i = 0; i < marks.mark_count; i++) {
		const struct pin_mark *mark = &marks.marks[i];

		if (mark->shape == shape && mark->name == name && index-- == 0) {
			return mark;
		}
	}
	expect_ready("mark", false);
	return NULL;
}

static void expect_slice(enum pin_mark_name name, uint32_t index, uint64_t from, uint64_t lasts)
{
	const struct pin_mark *slice = find(PIN_MARK_SLICE, name, index);

	expect_number("begins", (long long)from, (long long)slice->time_ns);
	expect_number("lasts", (long long)lasts, (long long)slice->duration_ns);
}

/* ---- tasks ---- */

static void check_tasks(void)
{
	begin();
	add(0, PIN_TRACE_TASK_END, 0, 0);	   /* 10: its begin was lost */
	add(0, PIN_TRACE_TASK_BEGIN, 0x100, 0xf);  /* 20 */
	add(1, PIN_TRACE_TASK_CANCEL, 0x200, 0xe); /* 30 */
	add(0, PIN_TRACE_TASK_END, 0, 0);	   /* 40 */
	add(1, PIN_TRACE_TASK_END, 0, 0);	   /* 50 */
	add(0, PIN_TRACE_TASK_BEGIN, 0x100, 0xf);  /* 60: its end was lost */
	add(0, PIN_TRACE_TASK_BEGIN, 0x110, 0xf);  /* 70: goes on */
	add(1, 99, 0x100, 0);			   /* of a newer library */
	make();
	expect_number("halves", 1, (long long)marks.halves);
	expect_number("tasks", 3, count(PIN_MARK_SLICE, PIN_MARK_TASK));
	expect_slice(PIN_MARK_TASK, 0, 20, 20);
	expect_slice(PIN_MARK_TASK, 1, 60, 10);
	expect_slice(PIN_MARK_TASK, 2, 70, READ_NS - 70);
	expect_number("open", PIN_MARK_NO_EVENT, find(PIN_MARK_SLICE, PIN_MARK_TASK, 2)->end);
	expect_number("cancelled", 1, count(PIN_MARK_SLICE, PIN_MARK_CANCEL));
	expect_slice(PIN_MARK_CANCEL, 0, 30, 20);
	expect_number("no others", 4, (long long)marks.mark_count);
	pin_marks_free(&marks);
}

/* Elsewhere alone it has an arrow; a timer's task says so, once. */
static void check_spawns(void)
{
	begin();
	add(0, PIN_TRACE_SPAWN_LOCAL, 0x100, 0xf);
	add(0, PIN_TRACE_TASK_BEGIN, 0x100, 0xf);
	add(0, PIN_TRACE_TASK_END, 0, 0);
	add(0, PIN_TRACE_SPAWN_GLOBAL, 0x200, 0xf); /* 40 */
	add(1, PIN_TRACE_TASK_BEGIN, 0x200, 0xf);   /* 50 */
	add(1, PIN_TRACE_TASK_END, 0, 0);
	add(1, PIN_TRACE_TASK_BEGIN, 0x200, 0xf);
	add(1, PIN_TRACE_TASK_END, 0, 0);
	add(0, PIN_TRACE_TIMER, 0x300, 5);
	add(1, PIN_TRACE_TASK_BEGIN, 0x300, 0xf);
	add(1, PIN_TRACE_TASK_END, 0, 0);
	add(1, PIN_TRACE_TASK_BEGIN, 0x300, 0xf);
	add(1, PIN_TRACE_TASK_END, 0, 0);
	add(0, PIN_TRACE_TIMER, 0x400, 5); /* its task was lost, and is spawned now */
	add(0, PIN_TRACE_SPAWN_LOCAL, 0x400, 0xf);
	add(0, PIN_TRACE_TASK_BEGIN, 0x400, 0xf);
	add(0, PIN_TRACE_TASK_END, 0, 0);
	make();
	expect_number("arrow", 1, count(PIN_MARK_ARROW_FROM, PIN_MARK_SPAWN));
	expect_number("from", 40, (long long)find(PIN_MARK_ARROW_FROM, PIN_MARK_SPAWN, 0)->time_ns);
	expect_number("to", 50, (long long)find(PIN_MARK_ARROW_TO, PIN_MARK_SPAWN, 0)->time_ns);
	expect_number("on its track", 1, find(PIN_MARK_ARROW_TO, PIN_MARK_SPAWN, 0)->track);
	expect_number("slice", 1, count(PIN_MARK_SLICE, PIN_MARK_SPAWN));
	for (uint32_t i = 0; i < 6; i++) {
		expect_number("timer", i == 3, find(PIN_MARK_SLICE, PIN_MARK_TASK, i)->is_timer);
	}
	pin_marks_free(&marks);
}

/* ---- requests ---- */

static void add_path(uint32_t ring, const char *part)
{
	struct pin_trace_event *event = add(ring, PIN_TRACE_PATH, 0, 0);

	event->way = (uint8_t)strlen(part);
	memcpy(pin_trace_event_text(event), part, strlen(part));
}

/* Of the ends one, of the same request, has the id of each begin. */
static void check_ids(void)
{
	for (uint32_t i = 0; i < count(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO); i++) {
		const struct pin_mark *one = find(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO, i);
		uint32_t ends = 0;

		for (uint32_t j = 0; j < count(PIN_MARK_REQUEST_END, PIN_MARK_IO); j++) {
			const struct pin_mark *end = find(PIN_MARK_REQUEST_END, PIN_MARK_IO, j);

			ends += end->id == one->id;
			expect_true("its own", end->id != one->id || end->event == one->event);
		}
		expect_number("ends of an id", 1, ends);
	}
}

static void check_requests(void)
{
	begin();
	add(0, PIN_TRACE_SUBMIT, 0x100, 0)->way = PINION_OP_OPEN; /* 10 */
	add_path(0, "first");
	add(1, PIN_TRACE_SUBMIT, 0x900, 0); /* another worker's, between them */
	add_path(1, "other");
	add_path(0, "second");
	add(0, PIN_TRACE_TASK_BEGIN, 0x800, 0xf);
	add_path(0, "astray"); /* of an open that was lost */
	add(0, PIN_TRACE_TASK_END, 0, 0);
	add(0, PIN_TRACE_COMPLETE, 0x100, 7)->way = PINION_OP_OPEN; /* 90 */
	add(1, PIN_TRACE_TASK_BEGIN, 0x100, 0xf);		    /* 100 */
	add(1, PIN_TRACE_TASK_END, 0, 0);
	add(1, PIN_TRACE_TASK_BEGIN, 0x100, 0xf); /* the same again: no arrow */
	add(1, PIN_TRACE_TASK_END, 0, 0);
	add(0, PIN_TRACE_COMPLETE, 0x100, 7);			    /* 140: a second end */
	add(0, PIN_TRACE_SUBMIT, 0x200, 0)->way = PINION_OP_READ;   /* 150 */
	add(0, PIN_TRACE_COMPLETE, 0x200, 7)->way = PINION_OP_READ; /* 160 */
	add(0, PIN_TRACE_COMPLETE, 0x200, 7)->way = PINION_OP_READ; /* and again */
	add(0, PIN_TRACE_SUBMIT, 0x300, 0);			    /* 180: goes on */
	make();
	expect_number("halves", 2, (long long)marks.halves);
	expect_number("arrow", 1, count(PIN_MARK_ARROW_FROM, PIN_MARK_IO));
	expect_number(
		"to its task", 100, (long long)find(PIN_MARK_ARROW_TO, PIN_MARK_IO, 0)->time_ns);
	expect_number("begins", 4, count(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO));
	expect_number("ends", 4, count(PIN_MARK_REQUEST_END, PIN_MARK_IO));
	expect_number(
		"at once", 10, (long long)find(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO, 0)->time_ns);
	expect_number(
		"its end", 90, (long long)find(PIN_MARK_REQUEST_END, PIN_MARK_IO, 0)->time_ns);
	expect_number("its completion", 8, find(PIN_MARK_REQUEST_END, PIN_MARK_IO, 0)->end);
	/* The read has the path of its descriptor, 7. */
	expect_number("path", 1, find(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO, 0)->path);
	expect_number("of the file", 1, find(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO, 2)->path);
	expect_number("its second part", 4, marks.events[1].next);
	expect_number("and no third", 0, marks.events[4].next);
	expect_number("nor another's", 0, marks.events[3].next);
	/* Two are open at the end. */
	for (uint32_t i = 2; i < 4; i++) {
		const struct pin_mark *end = find(PIN_MARK_REQUEST_END, PIN_MARK_IO, i);

		expect_number("open until then", READ_NS, (long long)end->time_ns);
		expect_number("without an end", PIN_MARK_NO_EVENT, end->end);
	}
	check_ids();
	pin_marks_free(&marks);
}

/* Wherever the table has them, which is another place in each round. */
static void check_open(void)
{
	enum { OPEN = 20, ROUNDS = 64 };

	begin();
	for (uint64_t i = 1; i <= OPEN; i++) {
		add(0, PIN_TRACE_SUBMIT, i * 0x100, 0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		make();
		expect_number("open", OPEN, count(PIN_MARK_REQUEST_END, PIN_MARK_IO));
		check_ids();
		pin_marks_free(&marks);
	}
}

/* Each file has a path of its own, and its reads have the same. */
static void check_files(void)
{
	begin();
	add(0, PIN_TRACE_TASK_BEGIN, 0x100, 0xf);
	add(0, PIN_TRACE_FILE, 0, 7); /* 20 */
	add_path(0, "first");
	add_path(0, "second");
	add(0, PIN_TRACE_FILE, 0, 8); /* 50 */
	add_path(0, "other");
	add(1, PIN_TRACE_FILE, 0, 9); /* 70: its path was lost */
	add(1, PIN_TRACE_SUBMIT, 0x900, 0)->way = PINION_OP_OPEN;
	add_path(1, "an open's");
	add(0, PIN_TRACE_SUBMIT, 0x200, 0)->way = PINION_OP_READ;
	add(0, PIN_TRACE_COMPLETE, 0x200, 7)->way = PINION_OP_READ;
	add(0, PIN_TRACE_TASK_END, 0, 0);
	make();
	expect_number("files", 3, count(PIN_MARK_INSTANT, PIN_MARK_FILE));
	expect_number("at", 20, (long long)find(PIN_MARK_INSTANT, PIN_MARK_FILE, 0)->time_ns);
	expect_number("path", 2, find(PIN_MARK_INSTANT, PIN_MARK_FILE, 0)->path);
	expect_number("its second part", 3, marks.events[2].next);
	expect_number("the next", 5, find(PIN_MARK_INSTANT, PIN_MARK_FILE, 1)->path);
	expect_number("none", PIN_MARK_NO_EVENT, find(PIN_MARK_INSTANT, PIN_MARK_FILE, 2)->path);
	expect_number("the open's", 8, find(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO, 0)->path);
	expect_number("the read's", 2, find(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO, 1)->path);
	pin_marks_free(&marks);
}

/* The same request opens again, and that path was lost. */
static void check_reuse(void)
{
	begin();
	add(0, PIN_TRACE_SUBMIT, 0x100, 0)->way = PINION_OP_OPEN;
	add_path(0, "first");
	add(0, PIN_TRACE_COMPLETE, 0x100, 7)->way = PINION_OP_OPEN;
	add(0, PIN_TRACE_SUBMIT, 0x100, 0)->way = PINION_OP_OPEN;
	add(0, PIN_TRACE_COMPLETE, 0x100, 8)->way = PINION_OP_OPEN;
	make();
	expect_number("path", 1, find(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO, 0)->path);
	expect_number(
		"none", PIN_MARK_NO_EVENT, find(PIN_MARK_REQUEST_BEGIN, PIN_MARK_IO, 1)->path);
	pin_marks_free(&marks);
}

/* ---- sleeps, wakes and thefts ---- */

static void check_sleeps(void)
{
	begin();
	add(0, PIN_TRACE_UNPARK, 0, 0);		    /* 10: its begin was lost */
	add(0, PIN_TRACE_PARK, 0, 0);		    /* 20 */
	add(2, PIN_TRACE_WAKE, 0, 0)->number = 0;   /* 30 */
	add(1, PIN_TRACE_WAKE, 0, 0)->number = 0;   /* 40: it is woken already */
	add(1, PIN_TRACE_WAKE, 0, 0)->number = 1;   /* no sleeper */
	add(1, PIN_TRACE_WAKE, 0, 0)->number = 2;   /* no worker */
	add(0, PIN_TRACE_UNPARK, 0, 0);		    /* 70 */
	add(0, PIN_TRACE_PARK, 0, 0);		    /* 80 */
	add(0, PIN_TRACE_UNPARK, 0, 0);		    /* 90: by itself */
	add(1, PIN_TRACE_STEAL, 4, 0)->number = 0;  /* 100 */
	add(1, PIN_TRACE_STEAL, 4, 0)->number = -1; /* 110: of no worker */
	add(1, PIN_TRACE_PARK, 0, 0);		    /* 120: goes on */
	/* By a hostile writer, before it is woken. */
	add_at(55, 2, PIN_TRACE_PARK, 0, 0);
	make();
	expect_number("halves", 1, (long long)marks.halves);
	expect_slice(PIN_MARK_PARKED, 0, 20, 50);
	expect_slice(PIN_MARK_PARKED, 1, 55, READ_NS - 55);
	expect_slice(PIN_MARK_PARKED, 2, 80, 10);
	expect_slice(PIN_MARK_PARKED, 3, 120, READ_NS - 120);
	expect_number("wake", 1, count(PIN_MARK_SLICE, PIN_MARK_WAKE));
	expect_number("woken", 1, count(PIN_MARK_SLICE, PIN_MARK_WOKEN));
	expect_number("by the first", 2, find(PIN_MARK_ARROW_FROM, PIN_MARK_WAKE, 0)->track);
	expect_number("when it got up", 70,
		(long long)find(PIN_MARK_ARROW_TO, PIN_MARK_WAKE, 0)->time_ns);
	expect_number("thefts", 2, count(PIN_MARK_SLICE, PIN_MARK_STEAL));
	expect_number("of a worker", 1, count(PIN_MARK_SLICE, PIN_MARK_ROBBED));
	expect_number("on its track", 0, find(PIN_MARK_SLICE, PIN_MARK_ROBBED, 0)->track);
	expect_number("arrow", 1, count(PIN_MARK_ARROW_TO, PIN_MARK_STEAL));
	pin_marks_free(&marks);
}

/* ---- order ---- */

/* By time. At the same time a ring keeps its order, and outer slices lead. */
static void check_order(void)
{
	begin();
	add_at(30, 1, PIN_TRACE_STALL, 0, 0)->number = 0;
	add_at(50, 0, PIN_TRACE_TASK_BEGIN, 0x100, 0xf);
	add_at(20, 1, PIN_TRACE_DONE, 0, 0);
	add_at(50, 0, PIN_TRACE_STEAL, 1, 0)->number = -1;
	add_at(50, 0, PIN_TRACE_TASK_END, 0, 0);
	add_at(25, 1, PIN_TRACE_STALL, 0, 0)->way = PIN_STALLED_LANE;
	add_at(50, 0, PIN_TRACE_TASK_BEGIN, 0x110, 0xf);
	add_at(60, 0, PIN_TRACE_TASK_END, 0, 0);
	make();
	expect_number("begin", 20, (long long)marks.begin_ns);
	expect_number("no halves", 0, (long long)marks.halves);
	expect_number("first", PIN_MARK_DONE, marks.marks[0].name);
	expect_number("then", PIN_MARK_STALL, marks.marks[1].name);
	expect_number("a lane's where it was found", 1, marks.marks[1].track);
	expect_number("a task's on its worker's track", 0, marks.marks[2].track);
	expect_number("the longest outside", 10, (long long)marks.marks[3].duration_ns);
	expect_number("then in their order", PIN_MARK_TASK, marks.marks[4].name);
	expect_number("inside", PIN_MARK_STEAL, marks.marks[5].name);
	expect_number("all", 6, (long long)marks.mark_count);
	pin_marks_free(&marks);
}

/* Of few times, so that many are the same: these keep their order. */
static void check_sort(void)
{
	static struct pin_trace_taken room[EVENTS_MAX];
	uint64_t random = 1;

	for (uint32_t number = 0; number <= EVENTS_MAX; number++) {
		for (uint32_t i = 0; i < number; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			taken[i] = (struct pin_trace_taken){
				.ring = i, .event = {.time_ns = random >> 62}};
		}
		pin_trace_sort(taken, room, number);
		for (uint32_t i = 1; i < number; i++) {
			uint64_t before_ns = taken[i - 1].event.time_ns;

			expect_true("sorted",
				before_ns < taken[i].event.time_ns ||
					(before_ns == taken[i].event.time_ns &&
						taken[i - 1].ring < taken[i].ring));
		}
	}
}

int main(void)
{
	check_sort();
	check_tasks();
	check_spawns();
	check_requests();
	check_open();
	check_files();
	check_reuse();
	check_sleeps();
	check_order();
	return expect_status();
}
