/* SPDX-License-Identifier: MIT */
/*
 * The events of all rings in the order of time. Those of one ring that have the
 * same time keep their order: a task's end comes before the next one's begin.
 */
#ifndef PIN_OBSERVE_TRACE_ORDER_H
#define PIN_OBSERVE_TRACE_ORDER_H

#include "runtime/observe/trace_reader.h"

#include <stddef.h>

/* `room` has space for `count` events. */
void pin_trace_sort(struct pin_trace_taken *events, struct pin_trace_taken *room, size_t count);

#endif
