/* SPDX-License-Identifier: MIT */
/*
 * What a picture of a trace shows, made from its events: slices of time on the
 * track of each worker, arrows between them, and requests beside them.
 *
 *     mark      made from                        on the track of
 *     slice     the begin and the end of a task  its worker
 *     slice     a park and its unpark            the sleeper
 *     slice     a wake, a theft, a spawn that    the thread that does it; no
 *               another worker runs              length
 *     request   a submission and a completion    none, between two times
 *     arrow     a wake and the unpark; a theft;  from cause to effect
 *               a spawn and the task elsewhere;
 *               a submission and its callback
 *     instant   a panic, an expiry, a stall, a   its worker
 *               file that a task opens, the end
 *
 * Invariants, which tests/support/trace_schema holds a written trace against:
 * slices of a track nest, each arrow has both ends, each end is in a slice of
 * its track, each request begins and ends.
 */
#ifndef PIN_OBSERVE_TRACE_MARKS_H
#define PIN_OBSERVE_TRACE_MARKS_H

#include "runtime/observe/trace_reader.h"

enum pin_mark_shape {
	PIN_MARK_SLICE,
	PIN_MARK_REQUEST_BEGIN,
	PIN_MARK_REQUEST_END,
	PIN_MARK_ARROW_FROM,
	PIN_MARK_ARROW_TO,
	PIN_MARK_INSTANT,
};

enum pin_mark_name {
	PIN_MARK_TASK,
	PIN_MARK_CANCEL,
	PIN_MARK_PARKED,
	PIN_MARK_WAKE,
	PIN_MARK_WOKEN,
	PIN_MARK_STEAL,
	PIN_MARK_ROBBED,
	PIN_MARK_SPAWN,
	PIN_MARK_IO,
	PIN_MARK_SUBMIT,
	PIN_MARK_PANIC,
	PIN_MARK_TIMER,
	PIN_MARK_STALL,
	PIN_MARK_DONE,
	PIN_MARK_FILE,
	PIN_MARK_NAMES,
};

/* In place of an event's number: there is none. */
#define PIN_MARK_NO_EVENT UINT32_MAX

struct pin_mark {
	uint64_t time_ns;
	uint64_t duration_ns; /* of a slice */
	uint64_t id;	      /* of a request or an arrow */
	uint32_t event;	      /* the first of its events */
	uint32_t end;	      /* the last, or PIN_MARK_NO_EVENT: the trace ends before it */
	uint32_t path;	      /* of a request or file: its first PIN_TRACE_PATH, or none */
	uint32_t track;	      /* a worker, or the number of workers: other threads */
	uint8_t shape;	      /* enum pin_mark_shape */
	uint8_t name;	      /* enum pin_mark_name */
	bool is_timer;	      /* a task that an expired timer has made ready */
};

struct pin_marks {
	struct pin_trace_taken *events; /* all, by time */
	size_t event_count;
	struct pin_mark *marks; /* by time, an outer slice before an inner one */
	size_t mark_count;
	uint64_t begin_ns; /* of the first event */
	uint64_t end_ns;   /* of the last, or when they were read */
	uint64_t halves;   /* ends whose beginnings were lost */
};

/* -ENOMEM: then there is nothing to free. */
int pin_marks_make(const struct pinion_trace *trace, struct pin_marks *out_marks);

void pin_marks_free(struct pin_marks *marks);

#endif
