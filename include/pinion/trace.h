/* SPDX-License-Identifier: MIT */
/*
 * A trace: what each worker did and when, as a picture that ui.perfetto.dev and
 * chrome://tracing show.
 *
 * A runtime with `trace_events` in its tuning notes each task, request, sleep,
 * wake and theft in a ring for each worker, which keeps the latest. The program
 * itself or another process of the same user reads them, at any time, and
 * writes them as JSON. Reading writes nothing that the workers see, and neither
 * stops nor slows them.
 */
#ifndef PINION_TRACE_H
#define PINION_TRACE_H

#include <pinion/log.h>
#include <pinion/runtime.h>
#include <stddef.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/* The events that a reader has taken from a runtime's rings so far. */
struct pinion_trace;

/*
 * What a trace has.
 *
 * Shape: size-versioned.
 * Since: 0.1
 */
struct pinion_trace_info {
	uint64_t event_count; /* taken so far */
	uint64_t lost_count;  /* overwritten before they were taken */
	uint64_t ring_events; /* that each ring keeps */
	uint32_t worker_count;
	uint32_t has_ended;  /* the runtime was destroyed, or this is a forked child */
	uint64_t pid;	     /* of the runtime's process, as that sees it */
	char program[16];    /* its name */
	uint64_t created_ns; /* the runtime's, on CLOCK_MONOTONIC */
};

/*
 * Opens the trace of a runtime of this process. All events that its rings still
 * have can be read.
 *
 * Owns: the caller, until pinion_trace_close(), which comes before
 * pinion_runtime_destroy().
 * Context: any thread; allocates.
 * Errors: -ENOTSUP: `trace_events` of the runtime's tuning is 0. -ENOMEM;
 * -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_trace_open(
	const struct pinion_runtime *runtime, struct pinion_trace **out_trace);

/*
 * Opens the trace of the `index`th runtime of a process that has one, in the
 * order of its descriptors.
 *
 * Owns: the caller, until pinion_trace_close(). `log` may be NULL; it gets a
 * line for each failure, also of later calls with this trace.
 * Context: any thread; allocates.
 * Errors: -ESRCH: there is no such process. -ENOENT: it has no (further)
 * runtime with a trace: start it with PINION_TRACE_EVENTS=65536. -EAGAIN: it
 * is starting, and has not filled its trace yet. -EACCES: of another user.
 * -EPROTO, -EPROTONOSUPPORT: it is no trace, or of another version.
 * Since: 0.1
 */
PINION_API int pinion_trace_open_pid(
	int pid, uint32_t index, pinion_log_fn log, void *log_arg, struct pinion_trace **out_trace);

/* Frees it, and its events. Accepts NULL. Since: 0.1 */
PINION_API void pinion_trace_close(struct pinion_trace *trace);

/*
 * Skips all events so far, so that the next read begins with events from now
 * on.
 *
 * Errors: -EPROTO: the rings of a process that is no runtime's. -ECHILD: of a
 * runtime of the process that this one was forked from.
 * Since: 0.1
 */
PINION_API int pinion_trace_skip(struct pinion_trace *trace);

/*
 * Takes the events since the last read; those that the rings do not have any
 * more are counted as lost. To lose none, read more often than a ring fills.
 *
 * Context: one thread at a time; allocates 40 bytes for each event, 4194304
 * events at most: later ones are lost.
 * Errors: -ENOMEM; -EPROTO: the process has damaged its rings; -ECHILD: as
 * pinion_trace_skip().
 * Since: 0.1
 */
PINION_API int pinion_trace_read(struct pinion_trace *trace);

/*
 * Writes all events that were taken as one JSON object in the trace event
 * format, to a descriptor: pinion_trace(3) has the meaning of its parts.
 * Functions get the names that the program's symbol tables have.
 *
 * Context: one thread at a time; allocates some 200 bytes for each event.
 * Errors: -ENOMEM; -ECHILD: as pinion_trace_skip(); those of write(2).
 * Since: 0.1
 */
PINION_API int pinion_trace_write(struct pinion_trace *trace, int fd);

/* Describes the trace. Since: 0.1 */
PINION_API void pinion_trace_get_info(
	const struct pinion_trace *trace, struct pinion_trace_info *out_info, size_t size);

PINION_END_DECLS

#endif
