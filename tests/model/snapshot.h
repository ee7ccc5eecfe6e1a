/* SPDX-License-Identifier: MIT */
/*
 * States of the running execution, kept for the executions that begin alike.
 *
 * An execution of a depth-first search repeats the choices of its predecessor
 * up to the last that had something left to try. All that it does up to there
 * is the same again, setting up a runtime above all. So the search keeps the
 * program's state at some of the choices, and the next execution goes on from
 * the last of them that comes before the choice it changes.
 *
 * A state is all writable memory of the program: its static and thread-local
 * variables, the case's heap, the used parts of the coroutines' stacks. What
 * the explorer has to remember from one execution to the next is left as it is:
 * its owners exclude it by snapshot_exclude(), and memory.c and execution.c
 * keep their parts of a state by themselves.
 *
 * PINION_MODEL_FRESH=1 runs each execution from its beginning. The searches
 * are the same: explorer_reports compares them.
 */
#ifndef MODEL_SNAPSHOT_H
#define MODEL_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A static variable that no state contains. */
void snapshot_exclude(const void *address, size_t bytes);

/*
 * Begins a state: that of the execution in which `position` choices have been
 * made, of `asked`. Drops states of as many choices or more.
 */
void snapshot_begin(uint32_t position, uint32_t asked);
/* Adds a piece, which snapshot_restore() puts back. */
void snapshot_add(void *address, size_t bytes);

/*
 * Puts back the last state of fewer than `depth` choices and drops all later
 * ones. False: there is none.
 */
bool snapshot_restore(uint32_t depth, uint32_t *out_position, uint32_t *out_asked);

#endif
