/* SPDX-License-Identifier: MIT */
/*
 * Events of a worker that others may watch: static probes, and the events of a
 * trace (observe/trace.h).
 *
 * A probe is a place at which perf(1), bpftrace(8) or SystemTap may observe a
 * running program by stable names, even if the program was not built for that
 * or has no symbols. It is one instruction that does nothing, and a note in the
 * file that says where the instruction is and where its values are then.
 * Without a tracer a probe costs that instruction: nothing is computed for it,
 * since the values are in memory or registers anyway. So arguments are plain:
 * no calls, no locals of their own. A library that was built without
 * <sys/sdt.h> has no probes, and they cost nothing at all. pinion_runtime(3)
 * promises names and values.
 *
 * A runtime without a trace pays nothing for events: the usual ways of tasks
 * and requests have no test for them. A worker with a trace leaves those ways
 * by tests that they have anyway, and writes its events beside them:
 *
 *     begin, end     `slow_reasons` is set: pin_run_otherwise()
 *     spawn          PIN_SLOW_REASON_TRACED closes the LIFO slot
 *     submission     `shares_ring` or `is_traced`, side by side
 *     completion     `sorts_ends` is set
 *
 * The other events test the worker's pointer to its ring.
 */
#ifndef PIN_WORKER_EVENTS_H
#define PIN_WORKER_EVENTS_H

#include "runtime/base/check.h"
#include "runtime/worker/state.h"

#include <string.h>

/* ---- static probes ---- */

/* Macros, since a name becomes part of the note. */
#if defined(HAVE_SYS_SDT_H)
#include <sys/sdt.h>
#define PIN_TRACE1(name, a) DTRACE_PROBE1(pinion, name, a)
#define PIN_TRACE2(name, a, b) DTRACE_PROBE2(pinion, name, a, b)
#define PIN_TRACE3(name, a, b, c) DTRACE_PROBE3(pinion, name, a, b, c)
#define PIN_TRACE4(name, a, b, c, d) DTRACE_PROBE4(pinion, name, a, b, c, d)
#else
#define PIN_TRACE1(name, a) ((void)sizeof(a))
#define PIN_TRACE2(name, a, b) ((void)sizeof(a), (void)sizeof(b))
#define PIN_TRACE3(name, a, b, c) ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c))
#define PIN_TRACE4(name, a, b, c, d) (PIN_TRACE2(name, a, b), PIN_TRACE2(name, c, d))
#endif

/* ---- events of a trace ---- */

static inline bool pin_events_are_traced(const struct pin_worker *worker)
{
	return PIN_UNLIKELY(worker->trace_ring != NULL);
}

static inline uint64_t pin_event_address(const void *address)
{
	return (uintptr_t)address;
}

/* On the worker, which has a ring. */
static inline void pin_event_note(struct pin_worker *worker, enum pin_trace_kind kind, uint32_t way,
	int64_t number, uint64_t first, uint64_t second)
{
	PIN_DCHECK(worker->trace_ring != NULL);
	PIN_DCHECK((uint32_t)kind < PIN_TRACE_KINDS && way <= UINT8_MAX);
	pin_trace_put(worker->shared->trace, worker->trace_ring,
		&(struct pin_trace_event){.kind = (uint8_t)kind,
			.way = (uint8_t)way,
			.number = (int32_t)number,
			.first = first,
			.second = second});
}

/* Any thread, of a runtime with a trace; a worker of another is outside. */
static inline void pin_event_note_any(
	const struct pin_shared *shared, const struct pin_trace_event *event)
{
	struct pin_worker *worker = pin_worker_current();

	PIN_DCHECK(shared->trace != NULL);
	if (worker != NULL && worker->shared == shared) {
		pin_trace_put(shared->trace, worker->trace_ring, event);
	} else {
		pin_trace_put_outside(shared->trace, event);
	}
}

/* ---- those that are no worker's usual way: probe and event together ---- */

static inline void pin_event_steal(
	struct pin_worker *thief, const struct pin_worker *victim, uint32_t count)
{
	PIN_DCHECK(thief != victim);
	PIN_TRACE3(steal, thief->index, victim->index, count);
	if (pin_events_are_traced(thief)) {
		pin_event_note(thief, PIN_TRACE_STEAL, 0, victim->index, count, 0);
	}
}

static inline void pin_event_park(
	struct pin_worker *worker, enum pin_park_state mode, uint64_t deadline_ns)
{
	PIN_TRACE3(park, worker->index, mode, deadline_ns);
	if (pin_events_are_traced(worker)) {
		pin_event_note(worker, PIN_TRACE_PARK, mode, 0, deadline_ns, 0);
	}
}

static inline void pin_event_unpark(struct pin_worker *worker)
{
	PIN_TRACE1(unpark, worker->index);
	if (pin_events_are_traced(worker)) {
		pin_event_note(worker, PIN_TRACE_UNPARK, 0, 0, 0, 0);
	}
}

/* Any thread, before it ends the sleep. */
static inline void pin_event_wake(const struct pin_worker *target)
{
	PIN_TRACE1(wake, target->index);
	if (pin_events_are_traced(target)) {
		pin_event_note_any(target->shared,
			&(struct pin_trace_event){
				.kind = PIN_TRACE_WAKE, .number = (int32_t)target->index});
	}
}

/* The first worker that finds no task left. */
static inline void pin_event_done(const struct pin_shared *shared)
{
	PIN_TRACE1(done, shared->worker_count);
	if (PIN_UNLIKELY(shared->trace != NULL)) {
		pin_event_note_any(shared, &(struct pin_trace_event){.kind = PIN_TRACE_DONE});
	}
}

static inline void pin_event_panic(struct pin_worker *worker, uint64_t function, int error)
{
	PIN_TRACE3(panic, worker->index, function, error);
	if (pin_events_are_traced(worker)) {
		pin_event_note(worker, PIN_TRACE_PANIC, 0, error, 0, function);
	}
}

static inline void pin_event_timer(
	struct pin_worker *worker, const struct pinion_task *task, uint64_t late_ns)
{
	PIN_TRACE3(timer, worker->index, task, late_ns);
	if (pin_events_are_traced(worker)) {
		pin_event_note(worker, PIN_TRACE_TIMER, 0, 0, pin_event_address(task), late_ns);
	}
}

/* The watchdog: no progress for that long. */
static inline void pin_event_stall(const struct pin_shared *shared, enum pin_trace_stall of,
	uint32_t place, uint64_t lasts_ns, uint64_t function_or_device)
{
	if (PIN_UNLIKELY(shared->trace != NULL)) {
		pin_event_note_any(shared,
			&(struct pin_trace_event){.kind = PIN_TRACE_STALL,
				.way = (uint8_t)of,
				.number = (int32_t)place,
				.first = lasts_ns,
				.second = function_or_device});
	}
}

/* On a worker: for a lane's queue, the injector, or `target`'s inbox. */
static inline void pin_event_spawn_global(
	struct pin_worker *worker, const struct pin_worker *target, const struct pinion_task *task)
{
	PIN_TRACE3(spawn_global, worker->index, task, task->run);
	if (pin_events_are_traced(worker)) {
		pin_event_note(worker, PIN_TRACE_SPAWN_GLOBAL, pin_task_lane(task),
			target == NULL ? -1 : (int64_t)target->index, pin_event_address(task),
			(uintptr_t)task->run);
	}
}

/* The event alone, of a runtime with a trace. */
static inline void pin_event_note_external(const struct pin_shared *shared,
	const struct pin_worker *target, const struct pinion_task *task)
{
	pin_event_note_any(shared,
		&(struct pin_trace_event){.kind = PIN_TRACE_SPAWN_EXTERNAL,
			.way = (uint8_t)pin_task_lane(task),
			.number = target == NULL ? -1 : (int32_t)target->index,
			.first = pin_event_address(task),
			.second = (uintptr_t)task->run});
}

/* From a thread that is no worker of the runtime, before it is queued. */
static inline void pin_event_spawn_external(const struct pin_shared *shared,
	const struct pin_worker *target, const struct pinion_task *task)
{
	PIN_TRACE3(spawn_external, task, task->run, 1);
	if (PIN_UNLIKELY(shared->trace != NULL)) {
		pin_event_note_external(shared, target, task);
	}
}

/* ---- events alone, by a worker that has a ring ---- */

static inline void pin_event_note_task(struct pin_worker *worker, enum pin_trace_kind kind,
	uint32_t way, const struct pinion_task *task, uint64_t function)
{
	pin_event_note(worker, kind, way, -1, pin_event_address(task), function);
}

/* The task runs in the lane that the worker is in. */
static inline void pin_event_note_begin(struct pin_worker *worker, enum pin_trace_source source,
	const struct pinion_task *task, uint64_t function)
{
	/* Relaxed: its own. */
	pin_event_note(worker, PIN_TRACE_TASK_BEGIN, source,
		pin_load_relaxed_u32(&worker->running_lane), pin_event_address(task), function);
}

/* Whether the file was examined or not; its result is a descriptor. */
static inline bool pin_event_opens(uint32_t operation)
{
	return operation == PINION_OP_OPEN || operation == PIN_OP_OPEN_PLAIN;
}

/* The end of it, in several events; its reader knows the descriptor later. */
static inline void pin_event_note_path(struct pin_worker *worker, const char *path)
{
	size_t length = strlen(path);
	size_t most = PIN_TRACE_PATH_PARTS * PIN_TRACE_TEXT;
	size_t at = length > most ? length - most : 0;

	while (at < length) {
		size_t bytes = pin_min_u64(length - at, PIN_TRACE_TEXT);
		struct pin_trace_event event = {.kind = PIN_TRACE_PATH, .way = (uint8_t)bytes};

		PIN_DCHECK(bytes > 0 && bytes <= UINT8_MAX);
		memcpy(pin_trace_event_text(&event), path + at, bytes);
		pin_trace_put(worker->shared->trace, worker->trace_ring, &event);
		at += bytes;
	}
}

/* A task has opened a file by a plain call: no request has its name. */
static inline void pin_event_file(struct pin_worker *worker, int fd, const char *path)
{
	if (pin_events_are_traced(worker)) {
		pin_event_note(worker, PIN_TRACE_FILE, 0, 0, 0, (uint32_t)fd);
		pin_event_note_path(worker, path);
	}
}

/* Its result is what an int holds, if it is no number of bytes. */
static inline void pin_event_note_request(struct pin_worker *worker, enum pin_trace_kind kind,
	const struct pinion_request *request, int64_t number, uint64_t second)
{
	pin_event_note(worker, kind, request->op, number, pin_event_address(request), second);
}

#endif
