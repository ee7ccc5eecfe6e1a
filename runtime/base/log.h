/* SPDX-License-Identifier: MIT */
/*
 * The embedder's message hook, carried as a value by any part that may log.
 */
#ifndef PIN_BASE_LOG_H
#define PIN_BASE_LOG_H

#include <pinion/log.h>

struct pin_log {
	pinion_log_fn fn; /* NULL: messages are dropped */
	void *arg;
};

/* Formats one line of at most 511 bytes and hands it over. */
void pin_log(const struct pin_log *log, enum pinion_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
