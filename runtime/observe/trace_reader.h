/* SPDX-License-Identifier: MIT */
/*
 * A trace as its reader has it: the events taken from all rings so far.
 */
#ifndef PIN_OBSERVE_TRACE_READER_H
#define PIN_OBSERVE_TRACE_READER_H

#include "runtime/base/log.h"
#include "runtime/host/symbols.h"
#include "runtime/observe/trace.h"

#include <pinion/trace.h>

/* An event, and whose. */
struct pin_trace_taken {
	struct pin_trace_event event;
	uint32_t ring; /* the worker, or the number of workers: other threads */
	uint32_t next; /* of marks: the event with the next part of a path; 0: none */
};

struct pinion_trace {
	const struct pin_atomic_u64 *words; /* of this process; or NULL: of `fd` */
	int fd;
	uint32_t forked; /* pin_forked_now() of the process that opened it */
	int pid;	 /* as the reader sees it */
	struct pin_log log;
	char name[64]; /* what messages call it */
	struct pin_trace_header header;
	struct pin_trace_cursor *cursors; /* one for each ring */
	struct pin_trace_taken *taken;	  /* ring by ring in each read */
	size_t taken_count;
	size_t taken_room;
	size_t taken_max;		/* and copied in one read */
	struct pin_trace_event *copied; /* of one ring */
	size_t copied_room;
	uint64_t read_ns;	     /* when the last read began, of a runtime that lives; or 0 */
	uint64_t lost_beyond;	     /* events beyond the limit */
	struct pin_symbols *symbols; /* of the process when it was opened, or NULL */
};

/* The words are those of the process that this one was forked from. */
bool pin_trace_is_foreign(const struct pinion_trace *trace);

/* Of a runtime of this process. */
int pin_trace_open_words(
	const struct pin_atomic_u64 *words, int pid, struct pinion_trace **out_trace);

/* Of process `pid`, from a descriptor of its or a copy of its page. */
int pin_trace_open_file(
	const char *path, int pid, const struct pin_log *log, struct pinion_trace **out_trace);

#endif
