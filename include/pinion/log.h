/* SPDX-License-Identifier: MIT */
/*
 * Where the library's rare messages go. It never prints by itself: one function
 * of the embedder receives the start-up steps that failed, and the command that
 * would lift the limit.
 */
#ifndef PINION_LOG_H
#define PINION_LOG_H

#include <pinion/version.h>
#include <stdint.h>

PINION_BEGIN_DECLS

enum pinion_log_level {
	PINION_LOG_ERROR = 0,
	PINION_LOG_WARN = 1,
	PINION_LOG_INFO = 2,
	PINION_LOG_DEBUG = 3,
};

enum {
	PINION_LOG_LEVELS = 4,
};

/* The part of the library that a message is from. */
enum pinion_log_component {
	PINION_LOG_API = 0,	/* configuration, start and end of runtimes */
	PINION_LOG_HOST = 1,	/* CPUs, kernel */
	PINION_LOG_MEMORY = 2,	/* arenas, pools */
	PINION_LOG_IO = 3,	/* rings, files, devices */
	PINION_LOG_OBSERVE = 4, /* the metrics page */
	PINION_LOG_WORKER = 5,	/* workers: faults, stalls, requests */
	PINION_LOG_TASK = 6,	/* admissions and their jobs, channels */
	PINION_LOG_SCAN = 7,
	PINION_LOG_COMPONENTS = 8,
};

/*
 * Returns the name of a component, such as "io"; NULL: there is none of that
 * number.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API const char *pinion_log_component_name(uint32_t component);

/*
 * Receives one message.
 *
 * Shape: `message` is one line of UTF-8 without the newline.
 * Owns: `message` belongs to the library and is valid during the call only.
 * Context: the thread the message arose on, workers included; it must not
 * call back into the runtime that sent it. A message that a task caused is
 * received within that task: the call's time is part of the task's in
 * PINION_TIMING_RUN, and a call as long as `stall_ms` is a stall. Hand lines
 * over to a thread of your own where writing them may block.
 * Since: 0.1
 */
typedef void (*pinion_log_fn)(void *arg, enum pinion_log_level level, const char *message);

/*
 * One message, with the part of the library that it is from.
 *
 * Shape: `size` is the number of bytes that the library knows; later versions
 * may append fields.
 * Since: 0.1
 */
struct pinion_log_record {
	uint32_t size;
	uint32_t level;	    /* enum pinion_log_level */
	uint32_t component; /* enum pinion_log_component */
	uint32_t reserved;
	const char *message; /* as pinion_log_fn receives it */
};

/*
 * Receives one message, as pinion_log_fn does: `log_record` of struct
 * pinion_config.
 *
 * Owns: `record` belongs to the library and is valid during the call only.
 * Since: 0.1
 */
typedef void (*pinion_log_record_fn)(void *arg, const struct pinion_log_record *record);

/*
 * Returns `dropped`, a `log_dropped` of struct pinion_config, changed so that
 * `component` sends `level_count` levels: 0 none, 1 errors, 2 warnings as well,
 * 4 all.
 *
 * Since: 0.1
 */
static inline uint64_t pinion_log_limit(
	uint64_t dropped, enum pinion_log_component component, uint32_t level_count)
{
	uint32_t shift = 8 * (uint32_t)component;
	uint64_t off = level_count < PINION_LOG_LEVELS ? PINION_LOG_LEVELS - level_count : 0;

	return (dropped & ~(UINT64_C(255) << shift)) | off << shift;
}

PINION_END_DECLS

#endif
