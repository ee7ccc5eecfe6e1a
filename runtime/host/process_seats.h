/* SPDX-License-Identifier: MIT */
/*
 * Seats: the CPUs that runtimes of this process have bound workers to.
 *
 * Each runtime takes the best places of the machine, and so two of them, with
 * fewer workers than there are cores, would take the same ones and leave the
 * rest empty. So what others have taken comes last.
 *
 * Workers are counted by core, in one table for all runtimes that live. Two
 * that are created at the same time may not see each other, and then share
 * cores: nothing worse, so nothing is locked. A child starts with an empty
 * table, as it has none of its parent's workers.
 *
 * Any thread. What depends on the machine alone is host/topology.h's.
 */
#ifndef PIN_HOST_PROCESS_SEATS_H
#define PIN_HOST_PROCESS_SEATS_H

#include "runtime/host/topology.h"

/* The least taken first, otherwise in the order they have. */
void pin_seats_sort(struct pin_cpu_place *places, uint32_t count);

/* A worker is bound there, or no longer. */
void pin_seats_take(const struct pin_cpu_place *place);
void pin_seats_leave(const struct pin_cpu_place *place);

/* In a child: none are taken. */
void pin_seats_forget(void);

#endif
