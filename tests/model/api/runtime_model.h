/* SPDX-License-Identifier: MIT */
/*
 * A real runtime inside a case: create, spawn, drain are the product's own;
 * threads, rings and the machine are doubles.
 */
#ifndef MODEL_RUNTIME_MODEL_H
#define MODEL_RUNTIME_MODEL_H

#include "tests/model/io/ring_model.h"

#include <pinion/runtime.h>

/* Whether workers have a LIFO slot; to be set before a runtime begins. */
extern bool model_uses_lifo;

/*
 * Whether there is a watchdog; then workers wake no sleepers for their spawns.
 * To be set before the runtime begins, too.
 */
extern bool model_has_watchdog;
extern uint64_t model_stall_ms; /* 0: no task is watched */
extern bool model_announces;	/* lone spawns wake sleepers, without a pause */

/* The configuration's lanes, set before the runtime begins, too. */
extern const char *model_lanes;
extern uint32_t model_assist;
extern uint32_t model_assist_reserve;

/* Rings can register files: see file_close_model.c. Begins with none. */
extern bool model_registers_files;
void model_files_begin(void);
int model_ring_register(int ring_fd, uint32_t opcode, const void *argument, uint32_t count);

/* To be looked at as plain memory: how many slots of any ring hold it. */
uint32_t model_file_slots(int fd);

/*
 * From then on no slot may be given up before that many entries are submitted.
 */
void model_file_slots_keep(uint32_t entry_count);

/* Of each worker class, those that are there at first; NULL: all, for good. */
extern const uint32_t *model_serving_counts;

/* Workers ask devices for completions, whatever these are. */
extern bool model_polls;
/* The kernel of the next runtime has rings of 128-byte entries. */
extern bool model_takes_commands;

/* Of the configuration; 0: no limit. */
extern uint64_t model_injector_tasks;

/*
 * Unannounced spawns after which workers check for sleepers with a fence; first
 * 1.
 */
extern uint32_t model_fence_wake_batches;

/* The host has no fence_all. */
extern bool model_has_no_fence;

/* A task that counts what happened to it. */
struct model_task {
	struct pinion_request request; /* its task is the spawned one */
	uint32_t run_count;
	uint32_t cancel_count;
	/* In the task, after it was counted; NULL: nothing. */
	void (*body)(struct model_task *task);
};

/* To be called once, before any case runs. */
void model_runtime_register(void);

/*
 * A runtime whose workers have just started, or, as the explorer chooses, have
 * all gone to sleep. What follows is explored.
 */
struct pinion_runtime *model_runtime_begin(
	uint32_t worker_count, enum pin_doorbell_kind doorbell, void (*in_between)(void));

/*
 * The rest is not explored: stops and frees it. Exactly one worker must have
 * reported its end.
 */
void model_runtime_end(struct pinion_runtime *runtime);

/*
 * The next runtime's arenas are registered for all at its start; the arena of
 * worker `failure` cannot be had, UINT32_MAX: each can.
 */
void model_arenas_begin(bool shares_arenas, uint32_t failure);

/* For machine and thread. */
void model_worker_register(void);

void model_task_init(struct model_task *task, void (*body)(struct model_task *task));

/* To be looked at as plain memory: a condition. */
bool model_is_worker_awake(const struct pinion_runtime *runtime, uint32_t worker_index);

/* Not explored: returns when the watchdog sleeps, as it must when all do. */
void model_watchdog_settle(struct pinion_runtime *runtime);

/* How often it was run, or cancelled; more than once fails at once. */
bool model_task_has_run(const void *task);

#endif
