/* SPDX-License-Identifier: MIT */
/*
 * Turns a crash of a modelled thread into a failure of its case.
 *
 * The explorer does not see plain reads and writes. A plain read of freed
 * memory finds poison (heap.h), and a pointer made of poison crashes: that is
 * how such a bug shows. The handler ends the execution as model_fail() does, so
 * a mutant may end in this way as well. A crash outside of an execution is one
 * of the explorer's own, and kills the program.
 */
#ifndef MODEL_CRASH_H
#define MODEL_CRASH_H

/* Keeps the state of this file out of snapshots; once, before all else. */
void crash_exclude(void);
/* For the rest of the program. */
void crash_watch(void);

#endif
