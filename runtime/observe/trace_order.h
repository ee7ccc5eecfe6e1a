/* SPDX-License-Identifier: MIT */
/*
 * Sorts the events of all rings by time. Events of one ring with equal times
 * keep their order: the end of a task comes before the begin of the next task.
 */
#ifndef PIN_OBSERVE_TRACE_ORDER_H
#define PIN_OBSERVE_TRACE_ORDER_H

#include "runtime/observe/trace_reader.h"

#include <stddef.h>

/* `room` has space for `count` events. */
void pin_trace_sort(struct pin_trace_taken *events, struct pin_trace_taken *room, size_t count);

#endif
