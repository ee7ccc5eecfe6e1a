/* SPDX-License-Identifier: MIT */
/*
 * The choices of one execution, and the search over all of them.
 *
 * An execution asks for one choice after another. Searching, the first
 * execution takes 0 everywhere, and each further one differs from its
 * predecessor in the last choice that had something left to try. Instead, the
 * choices can be drawn at random, or repeated from a text.
 *
 * Choices are numbered in the order in which they are asked for, also those
 * with one outcome only, so that a text like "17:1,40:2" stands for the same
 * execution whatever the search had learnt or was bounded by: choice 17 took 1,
 * 40 took 2, all others took 0.
 */
#ifndef MODEL_CHOICES_H
#define MODEL_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keeps the state of this file out of snapshots; once, before all else. */
void choices_exclude(void);

void choices_search(void);
void choices_random(uint64_t seed);
/* False when the text makes no sense. */
bool choices_repeat(const char *text);
bool choices_are_repeated(void);
bool choices_are_searched(void);

/* Starts an execution. */
void choices_begin(void);
/* Moves on to the next execution of the search; false when there is none. */
bool choices_advance(void);

/* One of 0 … count - 1; drawn at random, other than 0 in `percent` of cases. */
uint32_t choices_take(uint32_t count, uint32_t percent);
/* Counts choices asked for in this execution. */
uint32_t choices_asked(void);
/* Counts those with more than one outcome. */
uint32_t choices_made(void);
/* True when no execution of the search has come here by this way. */
bool choices_are_new(void);
/* Those that the next execution of the search repeats, but for the last. */
uint32_t choices_depth(void);
/* The execution goes on from where it had asked for these. */
void choices_resume(uint32_t made, uint32_t asked);

/* Writes the execution as a text, cut to fit. */
void choices_text(char *out, size_t size);

#endif
