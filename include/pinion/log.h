/* SPDX-License-Identifier: MIT */
/*
 * Where the library's rare messages go. It never prints by itself: one function
 * of the embedder receives the start-up steps that failed, and the command that
 * would lift the limit.
 */
#ifndef PINION_LOG_H
#define PINION_LOG_H

#include <pinion/version.h>

PINION_BEGIN_DECLS

enum pinion_log_level {
	PINION_LOG_ERROR = 0,
	PINION_LOG_WARN = 1,
	PINION_LOG_INFO = 2,
	PINION_LOG_DEBUG = 3,
};

/*
 * Receives one message.
 *
 * Shape: `message` is one line of UTF-8 without the newline.
 * Owns: `message` belongs to the library and is valid during the call only.
 * Context: the thread the message arose on, workers included; it must not
 * call back into the runtime that sent it.
 * Since: 0.1
 */
typedef void (*pinion_log_fn)(void *arg, enum pinion_log_level level, const char *message);

PINION_END_DECLS

#endif
