/* SPDX-License-Identifier: MIT */
/*
 * The descriptors of a host in a model build that threads can sleep on: tokens
 * are counted. A second token in one is a failure, as is any use of a closed
 * one: its number may be another's by then.
 */
#ifndef MODEL_EVENT_MODEL_H
#define MODEL_EVENT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Of a case: none is open, and it fails where one is still at the end. */
void model_events_begin(void);
void model_events_end(void);

int model_event_create(void);
void model_event_raise(int fd);
bool model_event_clear(int fd);
void model_event_close(int fd);

/* A condition, `fd` being an int's address. */
bool model_event_is_readable(const void *fd);
/* How often it has become so. */
uint32_t model_event_edges(int fd);

#endif
