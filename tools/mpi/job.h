/* SPDX-License-Identifier: MIT */
/*
 * The processes that mpirun has started, and what they agree on: that the
 * command can start, which rank does which part, and how it has ended.
 *
 * A thread makes all calls of MPI, and never waits in one: it sends from memory
 * of its own, tests for messages, and passes them to the protocol (stealing.h).
 * The command runs on the main thread, which the calls below are for; they wait
 * for that thread, and it for them.
 *
 *   job_begin      rank and count are known
 *   rank 0         runs the command; job_start() as soon as it can work
 *   other ranks    job_await_start(), then the same command
 *   all            the command shares its work out; job_add_up()
 *   all            job_agree(), job_leave()
 *
 * A rank whose command ends before job_add_up() ends the job for all
 * (MPI_Abort), as its part would be missing: its log says what it has done.
 */
#ifndef PINION_TOOLS_MPI_JOB_H
#define PINION_TOOLS_MPI_JOB_H

#include "tools/mpi/parts.h"

#include <stdbool.h>
#include <stdint.h>

/* Enters the job. False: reported. */
bool job_begin(uint32_t *out_rank, uint32_t *out_count);

/* Its work, from job_begin() to job_leave(). */
struct parts *job_parts(void);

/* Rank 0: the others may start. */
void job_start(void);

/* The others: false: rank 0's command has ended before, with that status. */
bool job_await_start(int *out_status);

enum { JOB_SUMS = 4 };

/* Makes each value the sum of all ranks'. */
void job_add_up(uint64_t values[JOB_SUMS]);

/*
 * The command has ended; `is_whole`: this rank's log has all that it has done.
 * Returns the largest status of all ranks; *out_are_whole: all logs are.
 */
int job_agree(int status, bool is_whole, bool *out_are_whole);

/* As soon as all ranks call this; mpirun may end them then, by their status. */
void job_leave(void);

#endif
