/* SPDX-License-Identifier: MIT */
/*
 * The embedder's message hook, carried as a value by any part that may log.
 *
 * pin_log() is in front of the hook: a level that no component passes on costs
 * a load and a comparison. The component of a message is the folder of its
 * source file. Where `rates` is set, each message has a limit of lines a
 * second.
 */
#ifndef PIN_BASE_LOG_H
#define PIN_BASE_LOG_H

#include "runtime/base/atomic.h"

#include <pinion/log.h>
#include <stdbool.h>
#include <stddef.h>

struct pin_log_rates;

struct pin_log {
	pinion_log_fn fn; /* NULL: messages are dropped, unless there is `record` */
	void *arg;
	pinion_log_record_fn record; /* in place of `fn`, or NULL */
	struct pin_log_rates *rates; /* NULL: no limit */
	uint64_t dropped;	     /* as `log_dropped` of struct pinion_config */
	uint32_t levels_off;	     /* that every component drops, from debug on */
};

static inline bool pin_log_has_hook(const struct pin_log *log)
{
	return log->fn != NULL || log->record != NULL;
}

/* False: the message would be dropped. */
static inline bool pin_log_is_on(const struct pin_log *log, enum pinion_log_level level)
{
	return (uint32_t)level + log->levels_off < PINION_LOG_LEVELS;
}

/* `levels_off`, after the other fields were set. */
void pin_log_init(struct pin_log *log);

/*
 * Formats one line of at most 511 bytes and hands it over; control characters
 * in it, of names of files say, become '?'. A macro for the name of the file.
 */
#define pin_log(log, level, ...) \
	do { \
		const struct pin_log *pin_log_to = (log); \
		if (pin_log_is_on(pin_log_to, level)) { \
			pin_log_write(pin_log_to, level, __FILE__, __VA_ARGS__); \
		} \
	} while (0)

void pin_log_write(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * For a message whose parts take long to find: whether a line of that format is
 * to be handed over now. True: pin_log_put() does so. False: it is dropped, or
 * counted as left out.
 */
#define pin_log_try(log, level, format) \
	(pin_log_is_on(log, level) && pin_log_is_due(log, level, __FILE__, format))
#define pin_log_put(log, level, ...) pin_log_write_due(log, level, __FILE__, __VA_ARGS__)

bool pin_log_is_due(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format);
void pin_log_write_due(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Hands over a whole line, whatever its level. */
void pin_log_send(const struct pin_log *log, enum pinion_log_level level,
	enum pinion_log_component component, const char *message);

/* Its name; NULL: there is none of that number. */
const char *pin_log_component_name(uint32_t component);

/* ---- rates ---- */

/*
 * A limit of lines a second for each message of a runtime, so that a fault that
 * repeats itself cannot fill a journal. Messages at debug level, which a caller
 * asks for, have none.
 *
 * A message is known by its format, which each place in the source has for
 * itself. Of each PIN_LOG_LINES_MAX are passed on in a second; the next second
 * begins with a line that says how many were left out, or the watchdog, or the
 * end of the runtime, sends that line (pin_log_flush).
 *
 * Any thread, lock-free. Under races a second may have some lines more.
 *
 * Invariant: each message is passed on, or counted in one line of those left
 * out.
 */

enum {
	PIN_LOG_LINES_MAX = 20,
	/* More messages than the library has; others are not limited. */
	PIN_LOG_MESSAGES_MAX = 128,
};

struct pin_log_rate {
	struct pin_atomic_u64 format;	 /* [W:any R:any] its address; 0: unused */
	struct pin_atomic_u64 second;	 /* [W:any R:any] of the last line, from 1 on */
	struct pin_atomic_u32 lines;	 /* [W:any R:any] in that second */
	struct pin_atomic_u32 skipped;	 /* [W:any R:any] and left out */
	struct pin_atomic_u32 level;	 /* [W:any R:any] of the last one left out, */
	struct pin_atomic_u32 component; /* and its component */
};

struct pin_log_rates {
	uint64_t (*now_ns)(void);	   /* [const] */
	struct pin_atomic_u32 has_skipped; /* [W:any R:any] some message has left out lines */
	struct pin_log_rate messages[PIN_LOG_MESSAGES_MAX];
};

/* Whether a line of that message may be passed on; says how many were not. */
bool pin_log_rate_try(const struct pin_log *log, enum pinion_log_level level,
	enum pinion_log_component component, const char *format);

/*
 * Says of each message how many lines were left out, if their second is over;
 * or, at the end, in any case.
 */
void pin_log_flush(const struct pin_log *log, bool is_end);

#endif
