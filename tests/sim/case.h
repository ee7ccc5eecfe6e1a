/* SPDX-License-Identifier: MIT */
/*
 * A case: the input of a simulation, read from a JSON file.
 *
 *     {
 *       "about": "what the case is for",
 *       "workers": 3,             1 … 8
 *       "ring_entries": 8,        as in the configuration
 *       "end": "drain",           or "stop", or "either"
 *       "end_us": 400,            the end comes at a random time up to that
 *       "age_limit_us": 3000,     no runnable task waits longer
 *       "sleeper_limit_us": 500,  nor this long while some worker sleeps
 *       "rings_wait": 1,          completions excepted: its worker
 *                                 may be stalled
 *       "task_ns": 1,             as in the configuration; 0: its default
 *       "lanes": "h:1,hnl",       as there; left out: all workers serve all
 *       "lane_floor": 16,         as there; left out: 0, strict
 *       "low_max_wait_ms": 1,     as there
 *       "assist": 1,              0 or 1: off or idle, with a reserve of
 *       "assist_reserve": 1,
 *       "ring_sharing": 1,        0 or 1: own or shared
 *       "resizes": 4,             so often another number of them, up to
 *                                 "workers", is asked for; without rings then
 *       "depth": 2,               reads and writes in the disk at once, and so
 *       "limits": 3,              often other limits, up to it; 0: not limited
 *       "no_rings": 1,            as in the configuration
 *       "polled": 2,              as there: 0 or 2, never or always
 *       "commands": 1,            of half of the reads and writes the file is a
 *                                 namespace, read by commands; 2: which rings
 *                                 always refuse
 *       "park_timeout_us": 200,   as there; it must never find work
 *       "spawn_wake_us": 100,     as there; left out: 0, lone spawns wake none
 *       "stall_ms": 10,           as there; left out: 0, no task is watched
 *       "programs": [             what tasks do, in this order:
 *         {"name": "leaf",
 *          "burn_us": 20,         compute for a random time up to that
 *          "reads": 2,            start reads, each of up to "read_bytes",
 *          "read_bytes": 4096,
 *          "write_percent": 20,   this share of them writes, and this share
 *          "other_percent": 10,   something else than read or write,
 *          "deadline_percent": 5, this share with a deadline, up to so far
 *          "deadline_us": 100,    ahead, and this share cancelled at once
 *          "cancel_percent": 5},
 *         {"name": "root",        and, once all reads are done,
 *          "children": 3,         spawn tasks of a program further up,
 *          "spawns": "leaf",      this share of them for any worker
 *          "shared_percent": 50,
 *          "hold_us": 9000,       and then block for that long; with reads,
 *          "high_percent": 10,    when they are started. This share of them is
 *          "low_percent": 60,     high, and this one low
 *          "urgent_percent": 10,  this share of its reads and writes is high
 *          "joins": 1}            await the end of these; without reads
 *       ],
 *       "threads": [              outside threads that spawn
 *         {"program": "root", "tasks": 10, "pause_us": 30,
 *          "requests": 5,         and this number of the program's requests,
 *          "cancels": 3}          and cancel a request, any of all
 *       ],
 *       "faults": {"late": 20}    in 1000; see struct sim_faults
 *     }
 *
 * Left-out numbers are 0. Unknown names, and numbers out of range, are errors.
 */
#ifndef SIM_CASE_H
#define SIM_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIM_WORKERS_MAX = 8,
	SIM_PROGRAMS_MAX = 8,
	SIM_SOURCES_MAX = 8,
	SIM_NAME_BYTES = 32,
	SIM_LANES_BYTES = 32,
};

struct sim_program {
	char name[SIM_NAME_BYTES];
	uint32_t burn_us;
	uint32_t hold_us;
	uint32_t joins;
	uint32_t reads;
	uint32_t read_bytes;
	uint32_t write_percent;
	uint32_t other_percent;
	uint32_t deadline_percent;
	uint32_t deadline_us;
	uint32_t cancel_percent;
	uint32_t children;
	uint32_t shared_percent;
	uint32_t high_percent;
	uint32_t low_percent;
	uint32_t urgent_percent;
	const struct sim_program *spawns;
};

struct sim_source {
	const struct sim_program *program;
	uint32_t tasks;
	uint32_t pause_us;
	uint32_t requests;
	uint32_t cancels;
};

/*
 * The fault plan: how often in 1000 times, but for stalls, in 1000000 points;
 * and how long a late completion or a stall may take. Each run leaves out about
 * half of them, as some hide others.
 */
struct sim_faults {
	uint32_t late;		   /* a completion takes up to late_us */
	uint32_t hung;		   /* a read ends only when it is cancelled */
	uint32_t short_read;	   /* a read delivers a part */
	uint32_t io_error;	   /* a read fails with EIO */
	uint32_t interrupted;	   /* a read ends with EINTR or EAGAIN */
	uint32_t enter_fails;	   /* an enter does nothing but fail */
	uint32_t enter_short;	   /* an enter takes a part of the entries */
	uint32_t cancel_misses;	   /* requests in flight are not found */
	uint32_t doorbell_fails;   /* a message must be sent again */
	uint32_t poll_ends;	   /* a multishot poll has to be armed anew */
	uint32_t spurious;	   /* a sleep ends for no reason */
	uint32_t stall;		   /* a thread loses its CPU, for up to stall_us */
	uint32_t no_ring;	   /* the kernel has no io_uring */
	uint32_t no_ring_memory;   /* a ring's set-up fails with ENOMEM */
	uint32_t no_locked_memory; /* registering buffers fails */
	uint32_t no_thread;	   /* starting a worker fails */
	uint32_t late_us;
	uint32_t stall_us;
};

struct sim_case {
	char name[SIM_NAME_BYTES]; /* of the file, without its folder and ending */
	uint32_t workers;
	uint32_t ring_entries;
	bool may_drain;
	bool may_stop;
	uint32_t end_us;
	uint32_t age_limit_us;
	uint32_t sleeper_limit_us; /* 0: none but that */
	uint32_t rings_wait;
	uint32_t task_ns;
	char lanes[SIM_LANES_BYTES];
	uint32_t lane_floor;
	uint32_t low_max_wait_ms;
	uint32_t assist;
	uint32_t assist_reserve;
	uint32_t ring_sharing;
	uint32_t resizes;
	uint32_t depth;
	uint32_t limits;
	uint32_t no_rings;
	uint32_t polled;
	uint32_t commands;
	uint32_t park_timeout_us;
	uint32_t spawn_wake_us;
	uint32_t stall_ms;
	struct sim_program programs[SIM_PROGRAMS_MAX];
	uint32_t program_count;
	struct sim_source sources[SIM_SOURCES_MAX];
	uint32_t source_count;
	struct sim_faults faults;
};

/* Prints the mistake in the file and returns false. */
bool sim_case_load(struct sim_case *test, const char *path);

#endif
