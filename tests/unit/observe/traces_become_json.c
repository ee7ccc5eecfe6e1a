/* SPDX-License-Identifier: MIT */
/*
 * Goal: a trace is written as JSON with each value in its place: names, times
 * in microseconds, arguments of each kind of event, odd bytes of a path as
 * escapes, UTF-8 as it is. EX-37.
 * Method: a trace of some events of each kind, made by hand, and the text that
 * it has to be.
 */
#include "runtime/base/base.h"
#include "runtime/io/operation.h"
#include "runtime/observe/trace_marks.h"
#include "runtime/observe/trace_reader.h"
#include "tests/support/expect.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Characters at the ends of the ranges of UTF-8. */
#define VALID "\xc2\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"

enum {
	RINGS = 3,
	RINGS_MAX = 1000,
	EVENTS_MAX = 64,
	TEXT_BYTES = 1 << 19,
	BEGIN_NS = 1000000,
};

static struct pin_trace_taken taken[EVENTS_MAX];
static struct pin_trace_cursor cursors[RINGS_MAX];
static struct pin_atomic_u64 words[64];
static struct pinion_trace trace;

/* The function of all tasks. */
static int work(struct pinion_task *task)
{
	(void)task;
	return 0;
}

/* 1234 ns after the event before. */
static struct pin_trace_event *add(uint32_t ring, int kind, uint64_t first, uint64_t second)
{
	size_t number = trace.taken_count++;

	taken[number] = (struct pin_trace_taken){.ring = ring,
		.event = {.time_ns = BEGIN_NS + 1234 * number,
			.kind = (uint8_t)kind,
			.first = first,
			.second = second}};
	return &taken[number].event;
}

static void add_path(uint32_t ring, const char *part)
{
	struct pin_trace_event *event = add(ring, PIN_TRACE_PATH, 0, 0);

	event->way = (uint8_t)strlen(part);
	memcpy(pin_trace_event_text(event), part, strlen(part));
}

static void set(struct pin_trace_event *event, int way, int32_t number)
{
	event->way = (uint8_t)way;
	event->number = number;
}

static void add_task(uint32_t ring, uint64_t address, int source, int32_t lane, int32_t result)
{
	set(add(ring, PIN_TRACE_TASK_BEGIN, address, (uintptr_t)work), source, lane);
	set(add(ring, PIN_TRACE_TASK_END, 0, 0), 0, result);
}

static void add_tasks(void)
{
	for (int source = 0; source <= PIN_SOURCES; source++) {
		add_task(0, 0x100, source, source % 4 - 1, -source);
	}
	add(0, PIN_TRACE_TASK_CANCEL, 0x200, (uintptr_t)work);
	add(0, PIN_TRACE_TASK_END, 0, 0);
	add(2, PIN_TRACE_SPAWN_LOCAL, 0x300, (uintptr_t)work);
	add(2, PIN_TRACE_SPAWN_GLOBAL, 0x310, (uintptr_t)work);
	add(2, PIN_TRACE_SPAWN_EXTERNAL, 0x320, (uintptr_t)work);
	add_task(1, 0x300, PIN_SOURCE_STEAL, 2, 0);
	add_task(1, 0x310, PIN_SOURCE_INJECTOR, 1, 0);
	add_task(1, 0x320, PIN_SOURCE_INJECTOR, 0, 0);
	add(1, PIN_TRACE_TIMER, 0x330, 77);
	add_task(1, 0x330, PIN_SOURCE_LOCAL, 1, 0);
	set(add(1, PIN_TRACE_PANIC, 0, (uintptr_t)work), 0, -5);
}

static void add_requests(void)
{
	set(add(0, PIN_TRACE_SUBMIT, 0x400, 0), PINION_OP_OPEN, 0);
	add_path(0, "a/\"q\\\x01 ~\x7f\xc3");
	add_path(0, "/" VALID);
	set(add(0, PIN_TRACE_COMPLETE, 0x400, 7), PINION_OP_OPEN, 0);
	set(add(0, PIN_TRACE_SUBMIT, 0x410, 4096), PINION_OP_READ, 512);
	set(add(0, PIN_TRACE_COMPLETE, 0x410, 7), PINION_OP_READ, -5);
	set(add(0, PIN_TRACE_SUBMIT, 0x420, 0), 255, 0);
	add(0, PIN_TRACE_FILE, 0, 8);
	/* Overlong, a surrogate, past the last code, cut. */
	add_path(0, "\xc1\xbf\xe0\x9f\xbf\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82");
}

static void add_others(void)
{
	set(add(1, PIN_TRACE_PARK, 0, 0), 2, 0);
	set(add(0, PIN_TRACE_WAKE, 0, 0), 0, 1);
	add(1, PIN_TRACE_UNPARK, 0, 0);
	set(add(1, PIN_TRACE_PARK, 0, 0), 1, 0);
	set(add(0, PIN_TRACE_STEAL, 4, 0), 0, 1);
	set(add(1, PIN_TRACE_STALL, 11, (uintptr_t)work), PIN_STALLED_TASK, 0);
	set(add(1, PIN_TRACE_STALL, 12, (uintptr_t)work), PIN_STALLED_RING, 1);
	set(add(1, PIN_TRACE_STALL, 13, makedev(8, 16)), PIN_STALLED_DEVICE, 0);
	set(add(1, PIN_TRACE_STALL, 14, 0), PIN_STALLED_LANE, 2);
	set(add(1, PIN_TRACE_STALL, 15, 0), PIN_STALLED_LANE, 3); /* of a hostile writer */
	add(2, PIN_TRACE_TIMER, 0x500, 9);			  /* of other threads: for all */
	add(2, PIN_TRACE_DONE, 0, 0);
}

/* Each line, with ' in place of ", and without the number of the process. */
static const char *const wanted[] = {
	"{'displayTimeUnit':'ns','otherData':{'library':'1.2','start_ns':1000000,'events':52,"
	"'lost_events':7,'halves':0,'ring_events':16},",
	"'traceEvents':[",
	"{'ph':'M','name':'process_name','args':{'name':'pro\\'gram'}},",
	"{'ph':'M','tid':1,'name':'thread_name','args':{'name':'worker 0'}},",
	"{'ph':'M','tid':1,'name':'thread_sort_index','args':{'sort_index':1}},",
	"{'ph':'M','tid':2,'name':'thread_name','args':{'name':'worker 1'}},",
	"{'ph':'M','tid':2,'name':'thread_sort_index','args':{'sort_index':2}},",
	"{'ph':'M','tid':3,'name':'thread_name','args':{'name':'other threads'}},",
	"{'ph':'M','tid':3,'name':'thread_sort_index','args':{'sort_index':3}},",
	"{'ph':'X','tid':1,'ts':0.000,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x100','source':'slot','result':0}},",
	"{'ph':'X','tid':1,'ts':2.468,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x100','source':'local','lane':'high','result':-1}},",
	"{'ph':'X','tid':1,'ts':4.936,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x100','source':'completion','lane':'normal','result':-2}},",
	"{'ph':'X','tid':1,'ts':7.404,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x100','source':'inbox','lane':'low','result':-3}},",
	"{'ph':'X','tid':1,'ts':9.872,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x100','source':'injector','result':-4}},",
	"{'ph':'X','tid':1,'ts':12.340,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x100','source':'steal','lane':'high','result':-5}},",
	"{'ph':'X','tid':1,'ts':14.808,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x100','source':'lane','lane':'normal','result':-6}},",
	"{'ph':'X','tid':1,'ts':17.276,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x100','source':'another','lane':'low','result':-7}},",
	"{'ph':'X','tid':1,'ts':19.744,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x200','cancelled':true,'result':0}},",
	"{'ph':'X','tid':3,'ts':22.212,'cat':'schedule','name':'spawn','dur':0.000,'args':{"
	"'way':'local','task':'0x300','function':'work'}},",
	"{'ph':'s','tid':3,'ts':22.212,'cat':'schedule','name':'spawn','id':1},",
	"{'ph':'X','tid':3,'ts':23.446,'cat':'schedule','name':'spawn','dur':0.000,'args':{"
	"'way':'global','task':'0x310','function':'work'}},",
	"{'ph':'s','tid':3,'ts':23.446,'cat':'schedule','name':'spawn','id':2},",
	"{'ph':'X','tid':3,'ts':24.680,'cat':'schedule','name':'spawn','dur':0.000,'args':{"
	"'way':'external','task':'0x320','function':'work'}},",
	"{'ph':'s','tid':3,'ts':24.680,'cat':'schedule','name':'spawn','id':3},",
	"{'ph':'X','tid':2,'ts':25.914,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x300','source':'steal','lane':'low','result':0}},",
	"{'ph':'f','tid':2,'ts':25.914,'cat':'schedule','name':'spawn','bp':'e','id':1},",
	"{'ph':'X','tid':2,'ts':28.382,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x310','source':'injector','lane':'normal','result':0}},",
	"{'ph':'f','tid':2,'ts':28.382,'cat':'schedule','name':'spawn','bp':'e','id':2},",
	"{'ph':'X','tid':2,'ts':30.850,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x320','source':'injector','lane':'high','result':0}},",
	"{'ph':'f','tid':2,'ts':30.850,'cat':'schedule','name':'spawn','bp':'e','id':3},",
	"{'ph':'i','tid':2,'ts':33.318,'cat':'schedule','name':'timer','s':'t','args':{"
	"'late_ns':77}},",
	"{'ph':'X','tid':2,'ts':34.552,'cat':'task','name':'work','dur':1.234,'args':{"
	"'task':'0x330','source':'timer','lane':'normal','result':0}},",
	"{'ph':'i','tid':2,'ts':37.020,'cat':'task','name':'panic','s':'t','args':{"
	"'error':-5,'function':'work'}},",
	"{'ph':'X','tid':1,'ts':38.254,'cat':'io','name':'submit','dur':0.000,'args':{}},",
	"{'ph':'b','tid':1,'ts':38.254,'cat':'io','name':'open','id':4,'args':{"
	"'file':'a/\\'q\\\\\\u0001 ~\\u007f\\u00c3/" VALID "','offset':0,'bytes':0}},",
	"{'ph':'e','tid':1,'ts':41.956,'cat':'io','name':'open','id':4,'args':{'result':0,"
	"'fd':7}},",
	"{'ph':'X','tid':1,'ts':43.190,'cat':'io','name':'submit','dur':0.000,'args':{}},",
	"{'ph':'b','tid':1,'ts':43.190,'cat':'io','name':'read','id':5,'args':{"
	"'file':'a/\\'q\\\\\\u0001 ~\\u007f\\u00c3/" VALID "','offset':4096,'bytes':512}},",
	"{'ph':'e','tid':1,'ts':44.424,'cat':'io','name':'read','id':5,'args':{'result':-5,"
	"'fd':7}},",
	"{'ph':'X','tid':1,'ts':45.658,'cat':'io','name':'submit','dur':0.000,'args':{}},",
	"{'ph':'b','tid':1,'ts':45.658,'cat':'io','name':'operation','id':6,'args':{"
	"'offset':0,'bytes':0}},",
	"{'ph':'i','tid':1,'ts':46.892,'cat':'io','name':'file','s':'t','args':{"
	"'file':'\\u00c1\\u00bf\\u00e0\\u009f\\u00bf\\u00ed\\u00a0\\u0080\\u00f4\\u0090\\u0080"
	"\\u0080\\u00e2\\u0082'}},",
	"{'ph':'X','tid':2,'ts':49.360,'cat':'sleep','name':'parked','dur':2.468,'args':{"
	"'way':'ring'}},",
	"{'ph':'X','tid':1,'ts':50.594,'cat':'sleep','name':'wake','dur':0.000,'args':{"
	"'worker':1}},",
	"{'ph':'s','tid':1,'ts':50.594,'cat':'sleep','name':'wake','id':7},",
	"{'ph':'X','tid':2,'ts':51.828,'cat':'sleep','name':'woken','dur':0.000,'args':{}},",
	"{'ph':'f','tid':2,'ts':51.828,'cat':'sleep','name':'wake','bp':'e','id':7},",
	"{'ph':'X','tid':2,'ts':53.062,'cat':'sleep','name':'parked','dur':9.872,'args':{"
	"'way':'futex'}},",
	"{'ph':'X','tid':1,'ts':54.296,'cat':'schedule','name':'steal','dur':0.000,'args':{"
	"'victim':1,'tasks':4}},",
	"{'ph':'X','tid':2,'ts':54.296,'cat':'schedule','name':'robbed','dur':0.000,'args':{"
	"'tasks':4}},",
	"{'ph':'s','tid':2,'ts':54.296,'cat':'schedule','name':'steal','id':8},",
	"{'ph':'f','tid':1,'ts':54.296,'cat':'schedule','name':'steal','bp':'e','id':8},",
	"{'ph':'i','tid':1,'ts':55.530,'cat':'schedule','name':'stall','s':'t','args':{"
	"'lasts_ns':11,'of':'task','worker':0,'function':'work'}},",
	"{'ph':'i','tid':2,'ts':56.764,'cat':'schedule','name':'stall','s':'t','args':{"
	"'lasts_ns':12,'of':'ring','worker':1,'function':'work'}},",
	"{'ph':'i','tid':2,'ts':57.998,'cat':'schedule','name':'stall','s':'t','args':{"
	"'lasts_ns':13,'of':'device','device':'8:16'}},",
	"{'ph':'i','tid':2,'ts':59.232,'cat':'schedule','name':'stall','s':'t','args':{"
	"'lasts_ns':14,'of':'lane','lane':'low'}},",
	"{'ph':'i','tid':2,'ts':60.466,'cat':'schedule','name':'stall','s':'t','args':{"
	"'lasts_ns':15,'of':'lane','lane':'normal'}},",
	"{'ph':'i','tid':3,'ts':61.700,'cat':'schedule','name':'timer','s':'p','args':{"
	"'late_ns':9}},",
	"{'ph':'e','tid':1,'ts':62.934,'cat':'io','name':'operation','id':6,'args':{"
	"'unfinished':true}},",
	"{'ph':'i','tid':3,'ts':62.934,'cat':'schedule','name':'done','s':'p','args':{}}",
	"]}",
};

static void simplify(char *line)
{
	char number[32];
	char *place;

	snprintf(number, sizeof(number), "\"pid\":%d,", (int)getpid());
	place = strstr(line, number);
	if (place != NULL) {
		memmove(place, place + strlen(number), strlen(place + strlen(number)) + 1);
	}
	for (; *line != '\0'; line++) {
		*line = *line == '"' ? '\'' : *line;
	}
}

static void check(char *text)
{
	size_t count = 0;

	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), count++) {
		simplify(line);
		if (count < PIN_ARRAY_COUNT(wanted)) {
			expect_text("line", wanted[count], line);
		}
	}
	expect_number("lines", PIN_ARRAY_COUNT(wanted), (long long)count);
}

/* The text of `trace`, for the caller to free. */
static char *write_trace(void)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	char *text = calloc(1, TEXT_BYTES);
	ssize_t length;

	expect_ready("memfd", fd >= 0 && text != NULL);
	expect_number("write", 0, pinion_trace_write(&trace, fd));
	length = pread(fd, text, TEXT_BYTES - 1, 0);
	expect_ready("read", length > 0 && length < TEXT_BYTES - 1);
	close(fd);
	return text;
}

/* More than its writer has room for at once, in pieces of all lengths. */
static void check_many_rings(void)
{
	char *text;
	uint32_t lines = 0;

	trace.header.ring_count = RINGS_MAX;
	trace.taken_count = 0;
	text = write_trace();
	for (const char *place = text; (place = strchr(place, '\n')) != NULL; place++) {
		lines++;
	}
	expect_number("a begin, a name, two lines for each, an end", 2 * RINGS_MAX + 4, lines);
	expect_true("to the end", strcmp(text + strlen(text) - 4, "\n]}\n") == 0);
	free(text);
}

int main(void)
{
	char *text;

	trace = (struct pinion_trace){.words = words,
		.fd = -1,
		.pid = getpid(),
		.taken = taken,
		.cursors = cursors,
		.lost_beyond = 3,
		.header = {.ring_count = RINGS,
			.slots = 16,
			.owner = {.pid = 1, .program = "pro\"gram", .library = "1.2"}}};
	cursors[1].lost = 4;
	add_tasks();
	add_requests();
	add_others();
	text = write_trace();
	check(text);
	free(text);
	check_many_rings();
	return expect_status();
}
