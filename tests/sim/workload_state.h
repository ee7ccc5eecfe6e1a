/* SPDX-License-Identifier: MIT */
/*
 * State of a workload, shared by the files of its tasks, its requests and its
 * threads; workload.h describes its behaviour.
 */
#ifndef SIM_WORKLOAD_STATE_H
#define SIM_WORKLOAD_STATE_H

#include "runtime/base/base.h"
#include "runtime/queue/wait_queue.h"
#include "tests/sim/case.h"
#include "tests/sim/workload.h"

#include <pinion/pinion.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum {
	WORKLOAD_READ_BYTES_MAX = 4096,
	WORKLOAD_VECTOR_COUNT = 4,
};

enum workload_kind { WORKLOAD_TASK, WORKLOAD_READ };

struct workload_entry {
	struct pinion_request request; /* its task is the one spawned */
	enum workload_kind kind;
	bool is_accepted;
	bool is_entered;
	uint32_t attempt_count; /* a read's refusals, a task's spawns */
	const struct sim_program *program;
	struct workload_entry *parent; /* of a read: the task that waits for it */
	uint32_t reads_left;
	uint32_t reads_to_start;
	/* A read's memory: of the worker's pool, or its own. */
	struct pinion_buffer buffer;
	bool has_buffer;
	uint8_t *memory;			    /* that it reads into, or writes */
	struct iovec vector[WORKLOAD_VECTOR_COUNT]; /* of that, from its end on */
	uint32_t worker_index;			    /* that it was submitted on; UINT32_MAX: any */
	bool was_cancelled;
	struct pinion_file opened;
	struct msghdr message;
	struct statx status;
	/* Of tasks that await those they have spawned. */
	struct workload_entry *joiner;
	struct pinion_wait wait;
	struct pin_waiters waiters;
	uint32_t children_left; /* [lock:waiters] */
};

struct workload {
	const struct sim_case *test;
	struct pinion_runtime *runtime;
	struct pinion_file file;
	struct pinion_file namespace; /* the same bytes, read by commands */
	uint32_t entry_count;
	bool is_stopping;
	bool is_draining;
	bool cancels_all; /* a request that cancels others was submitted */
	bool was_free;	  /* of limits: a depth that is not set may be kept, unused */
	/* The books. */
	uint64_t spawned;
	uint64_t submitted;
	uint64_t run;
	uint64_t cancelled;
	uint64_t failed;
	uint64_t joins; /* waits begun: each counts as a task */
};

extern struct workload_entry workload_entries[WORKLOAD_TASKS_MAX];
extern struct workload workload;

static inline uint32_t workload_number(const struct workload_entry *entry)
{
	return (uint32_t)(entry - workload_entries);
}

static inline struct workload_entry *workload_entry_of(struct pinion_task *task)
{
	return PIN_CONTAINER_OF(task, struct workload_entry, request.task);
}

/* ---- workload_tasks.c ---- */

/* Any entry; the caller fills in its task. */
struct workload_entry *workload_new_entry(
	enum workload_kind kind, const struct sim_program *program);
struct workload_entry *workload_new_task(const struct sim_program *program);

/* An entry may be spawned again once it was entered, to go on where it was. */
bool workload_spawn(struct workload_entry *entry, bool is_shared);
/* True: it awaits their end, and a task of its wait goes on. */
bool workload_spawn_children(struct workload_entry *entry);

/* The entry's one run or cancel. */
void workload_enter(struct workload_entry *entry, const char *what);

/* ---- workload_requests.c ---- */

/*
 * With the ring full the task spawns itself again and tries later; it goes on
 * by itself too where none of its reads is in flight.
 */
void workload_start_reads(struct workload_entry *task);

/* False: refused, the runtime has been closed. */
bool workload_submit_outside(const struct sim_program *program);

/* Any request that there is, whatever has become of it. */
void workload_cancel_any(void);

#endif
